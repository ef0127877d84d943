// Elements and texts: nothing from data is ever read as markup.

// Control characters but tab and line feed, what begins a line, and what turns the direction of writing.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

// Make visible what would hide, move or turn the text around it.
export function shown(text) {
  return text.replace(UNSEEN, (character) => {
    const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${code}⟩`;
  });
}

// Make an element; children are elements or texts, and what is null or false is left out.
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) made.append(child);
  }
  return made;
}

// Make an element that holds a text from data, in whichever direction that is written.
export function dataText(tag, attributes, text, most = Infinity) {
  const long = text.length > most;
  const said = shown(long ? cutAt(text, most) : text) + (long ? "…" : "");
  return element(tag, { dir: "auto", ...attributes }, said);
}

// Cut a text without tearing a character that takes two units.
function cutAt(text, most) {
  const torn = text.charCodeAt(most - 1) >> 10 === 0xd800 >> 10;
  return text.slice(0, torn ? most - 1 : most);
}

let labelled = 0;

// A control with its label.
export function labelledControl(words, control, kind = "") {
  labelled += 1;
  control.id = `control-${labelled}`;
  return element(
    "div",
    { class: `choice ${kind}` },
    element("label", { for: control.id }, words),
    control,
  );
}

// A select with its label; options are [value, words] pairs.
export function choice(words, options, chosen, change) {
  const select = element("select", { onchange: () => change(select.value) });
  setOptions(select, options, chosen);
  return labelledControl(words, select);
}

export function setOptions(select, options, chosen) {
  select.replaceChildren(
    ...options.map(([value, words]) => element("option", { value }, shown(words))),
  );
  select.value = chosen;
}

// A bar as wide as a share of its cell; the browser is told by CSSOM, as the page allows no markup.
export function gauge(share) {
  const fill = element("span", { class: "gauge-fill" });
  fill.style.setProperty("width", `${100 * Math.min(1, Math.max(0, share))}%`);
  return element("span", { class: "gauge", "aria-hidden": "true" }, fill);
}

// A table that scrolls inside its own box, which a keyboard reaches.
export function scrolling(name, ...children) {
  return element(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": name },
    children,
  );
}
