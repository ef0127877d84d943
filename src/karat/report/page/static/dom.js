// Creating elements and texts; data is never parsed as markup.

// Control characters except tab and line feed, line separators, and direction marks.
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

// Make characters visible that would hide, move or reverse the text around them.
export function shown(text) {
  return text.replace(INVISIBLE, (character) => {
    const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${code}⟩`;
  });
}

// Create an element; children are elements or texts, null and false are skipped.
export function element(tag, attributes, ...children) {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) created.addEventListener(name.slice(2), value);
    else created.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) created.append(child);
  }
  return created;
}

// Create an element with a text from data, which may be written in any direction.
export function dataText(tag, attributes, text, most = Infinity) {
  const long = text.length > most;
  const visible = shown(long ? cutAt(text, most) : text) + (long ? "…" : "");
  return element(tag, { dir: "auto", ...attributes }, visible);
}

// Cut a text without splitting a surrogate pair.
function cutAt(text, most) {
  const splitsPair = text.charCodeAt(most - 1) >> 10 === 0xd800 >> 10;
  return text.slice(0, splitsPair ? most - 1 : most);
}

let labelled = 0;

// A control with its label.
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

// A select with its label; options are [value, text] pairs.
export function choice(label, options, chosen, change) {
  const select = element("select", { onchange: () => change(select.value) });
  setOptions(select, options, chosen);
  return labelledControl(label, select);
}

export function setOptions(select, options, chosen) {
  select.replaceChildren(
    ...options.map(([value, text]) => element("option", { value }, shown(text))),
  );
  select.value = chosen;
}

// A bar as wide as a share of its cell; set by CSSOM, since the page allows no style attributes.
export function gauge(share) {
  const fill = element("span", { class: "gauge-fill" });
  fill.style.setProperty("width", `${100 * Math.min(1, Math.max(0, share))}%`);
  return element("span", { class: "gauge", "aria-hidden": "true" }, fill);
}

// A table that scrolls inside its own box, which can be focused with the keyboard.
export function scrolling(name, ...children) {
  return element(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": name },
    children,
  );
}

/**
 * Create an SVG element; children are SVG elements or texts.
 * @param {string} tag
 * @param {Record<string, string|number|null>} [attributes]
 * @param {...(Node|string|null|(Node|string|null)[])} children
 * @returns {SVGElement}
 */
export function svgElement(tag, attributes = {}, ...children) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) created.setAttribute(name, String(value));
  }
  for (const child of children.flat()) if (child !== null) created.append(child);
  return created;
}
