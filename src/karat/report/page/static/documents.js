// Documents with gold highlighted, and a rail in the margin for what each run retrieved.

import { dataText, element, shown } from "./dom.js";
import { counted, grouped } from "./numbers.js";
import { runColours } from "./run_colours.js";
import { lastCounted } from "./ranking.js";

/** @typedef {import("./query.js").OpenedQuery} OpenedQuery */
/** @typedef {import("./types").HighlightedDocument} ShownDocument */
/** @typedef {import("./types").DocumentPiece} DocumentPiece */
/**
 * @typedef {object} Rail What one run retrieved at one rank.
 * @property {number} run
 * @property {number} rank
 * @property {HTMLElement} first Where it starts in the text.
 * @property {HTMLElement} last
 * @property {HTMLElement} line
 */

const RAIL = 4; // pixels
const RAIL_STEP = 7; // pixels from one rail to the next
const TEXT_KINDS = { found: "gold, found", missed: "gold, missed" };

/**
 * Show the documents of a query that have gold.
 * @param {OpenedQuery} query
 */
export function documentsOf(query) {
  const documents = query.detail?.documents ?? [];
  if (!documents.length) return null;
  return element(
    "section",
    { class: "highlights", "aria-labelledby": "query-documents" },
    element("h3", { id: "query-documents" }, documents.length === 1 ? "Document" : "Documents"),
    documentLegend(query),
    documents.map((each) => documentOf(query, each)),
  );
}

/** @param {OpenedQuery} query */
function documentLegend(query) {
  const { page, state, runs, measure } = query;
  const colours = runColours(page, state);
  const marks = Object.entries(TEXT_KINDS).map(([kind, label]) =>
    element("li", {}, element("mark", { class: kind }, label)),
  );
  const rails = runs.map((run) => {
    const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.setProperty("background", colours[run]);
    return element("li", {}, swatch, dataText("span", {}, page.runs[run], 60));
  });
  const limit =
    measure.cutoff !== null
      ? ` within the top ${grouped(measure.cutoff)}`
      : measure.budget !== null
        ? ` within ${grouped(measure.budget)} characters`
        : "";
  return element(
    "div",
    { class: "legend" },
    element("ul", {}, marks, rails),
    element("p", { class: "note" }, `Lines in the margin: retrieved${limit}.`),
  );
}

/** @param {OpenedQuery} query @param {ShownDocument} shownDocument */
function documentOf(query, { doc_id: name, length, pieces }) {
  const { page, runs } = query;
  const text = element("div", { class: "document-text", dir: "auto" });
  const most = new Map(runs.map((run) => [run, lastCounted(query, run)]));
  /** @type {Map<string, Rail>} */
  let open = new Map();
  /** @type {Rail[]} */
  const rails = [];
  let end = 0;
  for (const piece of pieces) {
    if (piece.start > end) {
      text.append(skippedText(piece.start - end));
      open = new Map();
    }
    const retrieved = runs.flatMap((run) =>
      (piece.ranks[run] ?? []).filter((rank) => rank <= (most.get(run) ?? 0)).map((rank) => [run, rank]),
    );
    const starts = retrieved.filter(([run, rank]) => !open.has(`${run} ${rank}`));
    if (starts.length) text.append(retrievedFrom(page.runs, starts));
    const part = pieceOf(query, piece, retrieved.length > 0);
    text.append(part);
    const continued = new Map();
    for (const [run, rank] of retrieved) {
      const key = `${run} ${rank}`;
      const rail = open.get(key) ?? railOf(query, run, rank, part);
      if (!open.has(key)) rails.push(rail);
      rail.last = part;
      continued.set(key, rail);
    }
    open = continued;
    end = piece.end;
  }
  if (length !== null && end < length) text.append(skippedText(length - end));
  const size = length === null ? null : element("small", {}, ` ${counted(length, "character")}`);
  const margin = element("div", { class: "rails", "aria-hidden": "true" }, rails.map(({ line }) => line));
  const label = shown(`Text of ${name}`);
  const box = element(
    "div",
    { class: "document-box", tabindex: "0", role: "region", "aria-label": label },
    margin,
    text,
  );
  text.style.setProperty("margin-inline-start", `${runs.length * RAIL_STEP + RAIL}px`);
  // Now, and whenever the line breaks change.
  new ResizeObserver(() => placeRails(box, rails, runs)).observe(text);
  requestAnimationFrame(() => scrollToGold(box));
  return element(
    "article",
    { class: "document" },
    element("h4", {}, dataText("code", {}, name, 120), size),
    box,
  );
}

/**
 * One piece; gold is found if a shown run retrieved it within the cutoff.
 * @param {OpenedQuery} query
 * @param {DocumentPiece} piece
 * @param {boolean} retrieved
 */
function pieceOf({ chunk }, { start, end, text, gold }, retrieved) {
  const known =
    text === null || typeof text === "string"
      ? text
      : [...chunk(text[0])].slice(text[1], text[1] + end - start).join("");
  const content =
    known === null ? skippedText(end - start) : shown(known.replaceAll("\r\n", "\n"));
  if (!gold) return known === null ? skippedText(end - start) : element("span", {}, content);
  const kind = retrieved ? "found" : "missed";
  // The kind is also given as text, for screen readers.
  return element(
    "mark",
    { class: kind, title: TEXT_KINDS[kind] },
    element("span", { class: "visually-hidden" }, `[${TEXT_KINDS[kind]}: `),
    content,
    element("span", { class: "visually-hidden" }, "] "),
  );
}

/** @param {number} length */
function skippedText(length) {
  return element("span", { class: "skipped" }, `⋯ ${counted(length, "character")} ⋯`);
}

/**
 * Where retrieved items begin, for screen readers.
 * @param {string[]} names
 * @param {number[][]} starts
 */
function retrievedFrom(names, starts) {
  const text = starts.map(([run, rank]) => `${names[run]}, rank ${rank}`).join("; ");
  return element("span", { class: "visually-hidden" }, shown(`[retrieved from here: ${text}] `));
}

/**
 * @param {OpenedQuery} query
 * @param {number} run
 * @param {number} rank
 * @param {HTMLElement} first
 * @returns {Rail}
 */
function railOf({ page, state, list }, run, rank, first) {
  const item = list?.lists[run][rank - 1] ?? null;
  const title = shown(`${page.runs[run]}, rank ${rank}`);
  const line = element("span", { class: "rail", title, "data-item": item });
  line.style.setProperty("background", runColours(page, state)[run]);
  return { run, rank, first, last: first, line };
}

/**
 * Put each rail beside its lines; items that follow each other on one line do not overlap.
 * @param {HTMLElement} box
 * @param {Rail[]} rails
 * @param {number[]} runs
 */
function placeRails(box, rails, runs) {
  const origin = box.getBoundingClientRect().top - box.scrollTop + box.clientTop;
  /** @type {Map<number, { bottom: number, last: HTMLElement }>} */
  const above = new Map();
  for (const { run, first, last, line } of rails) {
    const rects = [...first.getClientRects(), ...last.getClientRects()];
    if (!rects.length) continue;
    let top = Math.min(...rects.map((rect) => rect.top)) - origin;
    const bottom = Math.max(...rects.map((rect) => rect.bottom)) - origin;
    const before = above.get(run);
    const follows = before && before.last !== first && !before.last.contains(first);
    if (before && follows && first.compareDocumentPosition(before.last) & Node.DOCUMENT_POSITION_PRECEDING)
      top = Math.min(Math.max(top, before.bottom + 2), bottom - RAIL);
    line.style.setProperty("left", `${RAIL + runs.indexOf(run) * RAIL_STEP}px`);
    line.style.setProperty("top", `${top}px`);
    line.style.setProperty("height", `${Math.max(RAIL, bottom - top)}px`);
    above.set(run, { bottom, last });
  }
}

/**
 * Scroll a long document to slightly above its first gold.
 * @param {HTMLElement} box
 */
function scrollToGold(box) {
  const first = box.querySelector("mark");
  if (first) box.scrollTop = first.offsetTop - box.clientHeight / 4;
}
