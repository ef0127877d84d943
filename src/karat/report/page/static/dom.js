// Creating elements and texts; data is never parsed as markup.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Child | readonly (Child | readonly (Child | readonly Child[])[])[]} Children */
/** @typedef {string | number | boolean | null | undefined | ((event: any) => unknown)} Attribute */
/** @typedef {Record<string, Attribute>} Attributes Functions are listeners: `onclick`. */
/** @typedef {[value: string, text: string]} Option */

// Control characters except tab and line feed, line separators, and direction marks.
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const SVG = "http://www.w3.org/2000/svg";

/**
 * Make characters visible that would hide, move or reverse the text around them.
 * @param {string} text
 */
export function shown(text) {
  return text.replace(INVISIBLE, (character) => {
    const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${code}⟩`;
  });
}

/**
 * Create an element; children are elements or texts, null and false are skipped.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Children} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * Create an element of a drawing, in the same way as `element`.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Children} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svgElement(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * @template {Element} Created
 * @param {Created} created
 * @param {Attributes | undefined} attributes
 * @param {Children[]} children
 */
function filled(created, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") created.addEventListener(name.slice(2), value);
    else created.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) addChildren(created, child);
  return created;
}

/** @param {Element} parent @param {Children} children */
function addChildren(parent, children) {
  if (children === null || children === undefined || children === false) return;
  if (children instanceof Node) parent.append(children);
  else if (typeof children === "object") for (const child of children) addChildren(parent, child);
  else parent.append(String(children));
}

/**
 * Create an element with a text from data, which may be written in any direction.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {string} text
 * @param {number} [most] Longer texts are cut after this number of characters.
 */
export function dataText(tag, attributes, text, most = Infinity) {
  return element(tag, { dir: "auto", ...attributes }, shownUpTo(text, most));
}

/**
 * Return a text from data with invisible characters made visible, cut if it is too long.
 * @param {string} text
 * @param {number} most
 */
export function shownUpTo(text, most) {
  return shown(cutText(text, most));
}

/**
 * Cut a text that is too long, without splitting a surrogate pair.
 * @param {string} text
 * @param {number} most
 */
export function cutText(text, most) {
  if (text.length <= most) return text;
  const splitsPair = text.charCodeAt(most - 1) >> 10 === 0xd800 >> 10;
  return `${text.slice(0, splitsPair ? most - 1 : most)}…`;
}

let labelled = 0;

/**
 * A control with its label.
 * @param {string} label
 * @param {HTMLElement} control
 */
export function labelledControl(label, control, kind = "") {
  labelled += 1;
  control.id = `control-${labelled}`;
  return element(
    "div",
    { class: `choice ${kind}` },
    element("label", { for: control.id }, label),
    control,
  );
}

/**
 * A select with its label.
 * @param {string} label
 * @param {Option[]} options
 * @param {string} chosen
 * @param {(value: string) => unknown} change
 */
export function choice(label, options, chosen, change) {
  /** @type {HTMLSelectElement} */
  const select = element("select", { onchange: () => change(select.value) });
  setOptions(select, options, chosen);
  return labelledControl(label, select);
}

/** @param {HTMLSelectElement} select @param {Option[]} options @param {string} chosen */
export function setOptions(select, options, chosen) {
  select.replaceChildren(
    ...options.map(([value, text]) => element("option", { value }, shown(text))),
  );
  select.value = chosen;
}

/**
 * A table that scrolls inside its own box, which can be focused with the keyboard.
 * @param {string} name
 * @param {...Children} children
 */
export function scrolling(name, ...children) {
  return element(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": name },
    ...children,
  );
}
