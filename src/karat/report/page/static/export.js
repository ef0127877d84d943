// Copying and downloading tables and drawings.

import { element } from "./dom.js";

const PNG_SCALE = 2; // pixels of a PNG per CSS pixel
const ANNOUNCED_FOR = 4000; // milliseconds
// What a drawing inherits from the style sheet of the page.
const SVG_STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-dasharray",
  "stroke-opacity",
  "stroke-width",
  "opacity",
];
const TEXT_STYLES = ["font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline"];
const CSV_FORMULA = /^[=+\-@\t\r]/;

/**
 * A drawing as the text of an SVG file: without variables, and with a background.
 * @param {SVGSVGElement} svg
 * @returns {string}
 */
function svgText(svg) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const originals = [svg, ...svg.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  copies.forEach((part, at) => {
    const styles = getComputedStyle(originals[at]);
    const names = part.localName === "text" || part.localName === "tspan" ? TEXT_STYLES : [];
    for (const name of [...SVG_STYLES, ...names]) {
      part.setAttribute(name, styles.getPropertyValue(name));
    }
    for (const name of ["class", "style", "tabindex", "id"]) part.removeAttribute(name);
  });
  const { width, height } = svgSize(svg);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", themeColour("--surface"));
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {string} variable @returns {string} the value of a colour of the theme */
function themeColour(variable) {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

/** @param {SVGSVGElement} svg */
function svgSize(svg) {
  const { width, height } = svg.viewBox.baseVal ?? {};
  return width && height ? { width, height } : svg.getBoundingClientRect();
}

/** @param {SVGSVGElement} svg @param {string} name without an extension */
export function downloadSvg(svg, name) {
  downloadUrl(`${name}.svg`, `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`);
}

/** @param {SVGSVGElement} svg @param {string} name without an extension */
export async function downloadPng(svg, name) {
  const { width, height } = svgSize(svg);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await image.decode();
  const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", {}));
  canvas.width = PNG_SCALE * width;
  canvas.height = PNG_SCALE * height;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  downloadUrl(`${name}.png`, canvas.toDataURL("image/png"));
}

/**
 * Download rows as a CSV file (RFC 4180).
 * @param {string} name without an extension
 * @param {(string|number|null)[][]} rows
 */
export function downloadCsv(name, rows) {
  const text = rows.map((row) => row.map(csvCell).join(",") + "\r\n").join("");
  // The byte order mark is for spreadsheets, which would not read UTF-8 without it. Data URLs are
  // limited to two megabytes.
  const url = URL.createObjectURL(new Blob([`\ufeff${text}`], { type: "text/csv" }));
  downloadUrl(`${name}.csv`, url);
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * A cell of a CSV file. A text that a spreadsheet would take for a formula gets an apostrophe.
 * @param {string|number|null} value
 */
function csvCell(value) {
  if (value === null) return "";
  if (typeof value === "number") return Number.isNaN(value) ? "" : String(value);
  const text = CSV_FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {string} name @param {string} url */
function downloadUrl(name, url) {
  const file = name.replace(/[^\p{L}\p{N}._ @+-]/gu, "_");
  element("a", { href: url, download: file }).click();
}

/**
 * Copy a text to the clipboard and announce it.
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    if (!copiedBySelection(text)) {
      announce("The browser does not allow copying");
      return;
    }
  }
  announce("Copied");
}

/** @param {string} text @returns {boolean} whether the older way of copying worked */
function copiedBySelection(text) {
  const focused = document.activeElement;
  const area = /** @type {HTMLTextAreaElement} */ (
    element("textarea", { class: "copied", readonly: true, "aria-hidden": "true" })
  );
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}

let announced = 0;

/** @param {string} message is shown for a moment, and read by screen readers */
function announce(message) {
  // While a dialog is open, everything outside it is inert.
  const parent = document.querySelector("dialog[open]") ?? document.body;
  let box = parent.querySelector(":scope > .announcement");
  if (!box) {
    box = /** @type {HTMLElement} */ (element("div", { class: "announcement", role: "status" }));
    parent.append(box);
  }
  box.textContent = message;
  clearTimeout(announced);
  announced = window.setTimeout(() => box.replaceChildren(), ANNOUNCED_FOR);
}

/**
 * Buttons that export a drawing or a table.
 * @param {object} content
 * @param {string} content.name The name of the files, without an extension.
 * @param {string} content.label What is exported, for screen readers.
 * @param {() => SVGSVGElement|null} [content.svg]
 * @param {() => (string|number|null)[][]} [content.rows]
 * @param {() => string} [content.markdown]
 * @returns {HTMLElement}
 */
export function toolbar({ name, label, svg, rows, markdown }) {
  /** @param {string} text @param {string} title @param {() => void} onclick */
  const button = (text, title, onclick) => element("button", { type: "button", title, onclick }, text);
  /** @param {(svg: SVGSVGElement, name: string) => void} save */
  const drawing = (save) => () => {
    const drawn = svg?.();
    if (drawn) save(drawn, name);
  };
  return element(
    "div",
    { class: "toolbar", role: "group", "aria-label": `Export ${label}` },
    svg ? button("SVG", "Download as SVG", drawing(downloadSvg)) : null,
    svg ? button("PNG", "Download as PNG", drawing(downloadPng)) : null,
    rows ? button("CSV", "Download as CSV", () => downloadCsv(name, rows())) : null,
    markdown
      ? button("Copy as Markdown", "Copy the table as Markdown", () => copyText(markdown()))
      : null,
  );
}

/**
 * A table in Markdown; all columns but the first are aligned to the right.
 * @param {string[]} head
 * @param {string[][]} rows
 */
export function markdownTable(head, rows) {
  /** @param {string[]} cells */
  const line = (cells) => `| ${cells.map(markdownCell).join(" | ")} |`;
  const rule = `|${head.map((_, at) => (at ? " ---: " : " --- ")).join("|")}|`;
  return [line(head), rule, ...rows.map(line), ""].join("\n");
}

/** @param {string} text */
function markdownCell(text) {
  const escaped = text.replace(/[\\|<&*`]/g, "\\$&").replaceAll("](", "]\\(");
  return escaped.replace(/\s+/g, " ");
}
