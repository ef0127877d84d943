// The columns of the list of queries.

import { dataText, element, shownUpTo } from "./dom.js";
import { axisEnds, dotPlot, largestValue } from "./dots.js";
import { grouped, number, signed } from "./numbers.js";
import { OUTCOMES, difference, fieldText, numbersOf, textKeys } from "./rows.js";
import { runColours } from "./run_colours.js";

/** @typedef {import("./filters.js").Filtering} Filtering */
/** @typedef {import("./types").PageMeasure} Measure */
/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} words The title.
 * @property {string} kind The class of its cells.
 * @property {boolean} ofMeasure Whether it shows values, so that the worst come first.
 * @property {() => Float64Array} keys What rows are sorted by.
 * @property {(row: number) => HTMLElement} cell
 * @property {string} [colour] Of the run that the column is about.
 * @property {HTMLElement} [below] What the head shows below the title.
 */

const SHOWN_FIELDS = 2;
const ALL_FIRST_HITS = 4; // with more runs, only the first hits of the compared runs are shown
export const LONGEST = 200; // characters of a text in a cell
const LONGEST_NAME = 40;

/**
 * The current columns.
 * @param {Filtering & { keys: Map<string, Float64Array> }} table
 * @returns {Column[]}
 */
export function columnsOf(table) {
  return [
    queryColumn(table),
    dotColumn(table),
    ...valueColumns(table),
    ...(table.state.a === null ? [] : [changeColumn(table)]),
    ...(table.rows.outcomes.length ? [firstHitColumn(table)] : []),
    ...fieldColumns(table),
  ];
}

/**
 * Sort keys of texts take long to make, so they are kept.
 * @param {Map<string, Float64Array>} kept
 * @param {string} key
 * @param {() => Float64Array} make
 */
function keptKeys(kept, key, make) {
  return () => {
    const keys = kept.get(key) ?? make();
    kept.set(key, keys);
    return keys;
  };
}

/** @param {Filtering & { keys: Map<string, Float64Array> }} table @returns {Column} */
function queryColumn({ rows, keys }) {
  return {
    key: "query",
    words: "query",
    kind: "query",
    ofMeasure: false,
    keys: keptKeys(keys, "query", () => textKeys(rows.ids)),
    cell: (row) => {
      const text = rows.texts?.[row];
      return element(
        "th",
        { scope: "row", class: "query" },
        dataText("button", { type: "button", class: "open" }, rows.ids[row], LONGEST),
        text ? dataText("span", { class: "beginning" }, text, LONGEST) : null,
      );
    },
  };
}

/** @param {Filtering} table @returns {Column} */
function dotColumn({ page, rows, state, values }) {
  const measure = page.measures[state.measure];
  const most = largestValue(values, measure);
  const plot = { values, most, colours: runColours(page, state) };
  const mean = (/** @type {number} */ row) => {
    let sum = 0;
    for (const each of values) sum += each[row];
    return sum / values.length;
  };
  return {
    key: "runs",
    words: page.runs.length > 1 ? "all runs" : measure.label,
    kind: "dots",
    ofMeasure: true,
    keys: () => numbersOf(rows.n, mean),
    cell: (row) => element("td", { class: "dots" }, dotPlot(page, measure, plot, row)),
    below: axisEnds(measure, most),
  };
}

/** @param {Filtering} table @returns {Column[]} */
function valueColumns({ page, state, values }) {
  const measure = page.measures[state.measure];
  const colours = runColours(page, state);
  const compared = /** @type {const} */ (["a", "b"]).filter((side) => state[side] !== null);
  return compared.map((side) => {
    const run = state[side] ?? 0;
    return {
      key: side,
      words: page.runs[run],
      kind: "numeric value",
      ofMeasure: true,
      keys: () => values[run],
      cell: (row) => valueCell(values[run][row], measure),
      colour: colours[run],
    };
  });
}

/** @param {Filtering} table @returns {Column} */
function changeColumn({ page, rows, state, values }) {
  const measure = page.measures[state.measure];
  return {
    key: "change",
    words: "change",
    kind: "numeric difference",
    ofMeasure: true,
    keys: () => numbersOf(rows.n, (row) => difference(values, state, row)),
    cell: (row) => differenceCell(difference(values, state, row), measure),
  };
}

/** @param {Filtering} table @returns {Column} */
function firstHitColumn({ page, rows, state }) {
  const compared = state.a === null ? [state.b] : [state.a, state.b];
  const runs = page.runs.length <= ALL_FIRST_HITS ? page.runs.map((_, run) => run) : compared;
  const colours = runColours(page, state);
  const hit = (/** @type {number} */ run, /** @type {number} */ row) => {
    const [kind, text] = firstHit(rows, run, row);
    const name = shownUpTo(page.runs[run], LONGEST_NAME);
    const named = element("span", { class: "run-name", dir: "auto", title: name }, name);
    const place = element("span", { class: kind }, text);
    return element("span", { class: "hit" }, runDot(colours[run]), named, " ", place, " ");
  };
  return {
    key: "first",
    words: "first hit",
    kind: "first",
    ofMeasure: false,
    keys: () => numbersOf(rows.n, (row) => rows.outcomes[state.b].first[row] || NaN),
    cell: (row) => element("td", { class: "first" }, runs.map((run) => hit(run, row))),
  };
}

/**
 * The class and text of a first hit.
 * @param {import("./rows.js").Rows} rows
 * @param {number} run
 * @param {number} row
 */
function firstHit(rows, run, row) {
  const [outcome] = OUTCOMES[rows.codes[run][row]];
  if (outcome === "failed") return ["failed", "failed"];
  if (outcome === "missing") return ["missing", "not in run"];
  const rank = rows.outcomes[run].first[row];
  return rank ? ["place", `#${grouped(rank)}`] : ["no-place", "–"];
}

/** @param {Filtering & { keys: Map<string, Float64Array> }} table @returns {Column[]} */
function fieldColumns({ rows, keys }) {
  const groups = rows.fields.filter(({ codes }) => codes !== null);
  return groups.slice(0, SHOWN_FIELDS).map((field) => {
    const key = `field-${field.name}`;
    const code = (/** @type {number} */ row) => {
      const found = field.codes?.[row] ?? -1;
      return found < 0 ? NaN : found;
    };
    return {
      key,
      words: field.name,
      kind: "field",
      ofMeasure: false,
      keys: keptKeys(keys, key, () => numbersOf(rows.n, code)),
      cell: (row) => dataText("td", { class: "field" }, fieldText(field, row) ?? "–", LONGEST),
    };
  });
}

/**
 * A dot in the colour of a run, next to its name.
 * @param {string} colour
 */
export function runDot(colour) {
  const dot = element("span", { class: "run-dot", "aria-hidden": "true" });
  dot.style.setProperty("background", colour);
  return dot;
}

/** @param {number} value @param {Measure} measure */
function valueCell(value, measure) {
  const attributes = {
    class: "numeric value",
    "data-value": Number.isNaN(value) ? null : String(value),
  };
  return element("td", attributes, number(value, measure));
}

/**
 * A difference, with a mark for better or worse.
 * @param {number} value
 * @param {Measure} measure
 */
function differenceCell(value, measure) {
  const better = measure.higher ? value > 0 : value < 0;
  const moved = value > 0 || value < 0;
  const sign = !moved ? "" : better ? "▲ " : "▼ ";
  const kind = !moved ? "" : better ? " better" : " worse";
  const attributes = {
    class: `numeric difference${kind}`,
    "data-value": Number.isNaN(value) ? null : String(value),
  };
  return element("td", attributes, sign + signed(value, measure));
}
