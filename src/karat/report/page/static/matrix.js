// All pairs of runs: who is significantly better than whom by the main measure.

import { dataText, element, scrolling, shown } from "./dom.js";
import { signed } from "./numbers.js";
import { changeState } from "./state.js";
import { differencesOf } from "./pairs.js";
import { runColours } from "./run_colours.js";
import { testResult } from "./forest.js";

/**
 * @typedef {import("./types").PageData} PageData
 * @typedef {import("./types").Difference} Difference
 */

const MOST_NUMBERS = 12; // with more runs, cells have symbols only
const MATRIX_SYMBOLS = { better: "▲", worse: "▼", "": "·" };
const MATRIX_STEPS = new Map([
  ["ArrowRight", [0, 1]],
  ["ArrowLeft", [0, -1]],
  ["ArrowDown", [1, 0]],
  ["ArrowUp", [-1, 0]],
]);

/**
 * Create the matrix; with a baseline it has one column.
 * @param {PageData} page
 * @returns {HTMLElement}
 */
export function createMatrix(page) {
  const baseline = page.comparison?.baseline ?? null;
  const columns = baseline === null ? page.ranking : [baseline];
  const rows = page.ranking.filter((run) => run !== baseline);
  const small = columns.length > MOST_NUMBERS;
  const head = columns.map((run) =>
    element("th", { scope: "col", title: shown(page.runs[run]) }, runName(page, run)),
  );
  const lines = rows.map((row) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", title: shown(page.runs[row]) }, runName(page, row)),
      columns.map((column) => matrixCell(page, row, column, small)),
    ),
  );
  const table = element(
    "table",
    { class: small ? "matrix small" : "matrix" },
    element(
      "thead",
      {},
      element("tr", {}, element("td", { class: "corner" }, "row − column"), head),
    ),
    element("tbody", { onkeydown: moveInMatrix }, lines),
  );
  table.querySelector("button")?.setAttribute("tabindex", "0");
  const measure = page.measures[page.main].label;
  return element(
    "div",
    { class: "matrix-box" },
    dataText("h3", {}, `All pairs by ${measure}`, 100),
    dataText("p", { class: "takeaway" }, matrixCaption(page), 300),
    scrolling("Differences of all pairs", table),
    element(
      "p",
      { class: "note" },
      "▲ the row is significantly better than the column, ▼ significantly worse; no colour: not significant. Choose a cell to compare that pair.",
    ),
  );
}

/**
 * Mark the cell of the chosen pair.
 * @param {HTMLElement} matrix
 * @param {number|null} a
 * @param {number} b
 */
export function markPair(matrix, a, b) {
  for (const button of matrix.querySelectorAll("button[data-a]")) {
    const { a: column, b: row } = /** @type {HTMLElement} */ (button).dataset;
    button.setAttribute("aria-pressed", String(column === String(a) && row === String(b)));
  }
}

/** @param {PageData} page @param {number} run */
function runName(page, run) {
  const dot = element("span", { class: "run-dot" });
  dot.style.setProperty("background", runColours(page, { a: null, b: page.best ?? 0 })[run]);
  const name = dataText("span", { class: "run-name" }, page.runs[run], 80);
  return element("span", { class: "named-run" }, dot, name);
}

/** @param {PageData} page @param {number} row @param {number} column @param {boolean} small */
function matrixCell(page, row, column, small) {
  const found = row === column ? null : differencesOf(page, column, row);
  const difference = found?.find(({ measure }) => measure === page.main);
  if (!difference) return element("td", { class: "empty" }, row === column ? "" : "–");
  const measure = page.measures[page.main];
  const change = signed(difference.difference, measure);
  const symbol = MATRIX_SYMBOLS[difference.mark];
  const text = small ? symbol : difference.mark ? `${symbol} ${change}` : change;
  const title = `${page.runs[row]} − ${page.runs[column]}: ${change}, ${testResult(difference)}`;
  return element(
    "td",
    { class: difference.mark ? `significantly-${difference.mark}` : null },
    element(
      "button",
      {
        type: "button",
        tabindex: "-1",
        title: shown(title),
        "aria-label": shown(title),
        "aria-pressed": "false",
        "data-a": String(column),
        "data-b": String(row),
        "data-value": String(difference.difference),
        onclick: () => changeState({ a: column, b: row }),
      },
      text,
    ),
  );
}

/** @param {KeyboardEvent} event moves the focus to the next cell in the direction of an arrow key */
function moveInMatrix(event) {
  const step = MATRIX_STEPS.get(event.key);
  const cell = /** @type {Element} */ (event.target).closest("td");
  const body = cell?.closest("tbody");
  if (!step || !cell || !body) return;
  const line = /** @type {HTMLTableRowElement} */ (cell.parentElement);
  let [row, column] = [line.sectionRowIndex + step[0], cell.cellIndex + step[1]];
  let target = body.rows[row]?.cells[column];
  while (target && !target.querySelector("button")) {
    [row, column] = [row + step[0], column + step[1]]; // the diagonal has no button
    target = body.rows[row]?.cells[column];
  }
  const button = target?.querySelector("button");
  if (!button) return;
  event.preventDefault();
  body.querySelector("button[tabindex='0']")?.setAttribute("tabindex", "-1");
  button.setAttribute("tabindex", "0");
  button.focus();
}

/** @param {PageData} page */
function matrixCaption(page) {
  const baseline = page.comparison?.baseline ?? null;
  const others = page.ranking.filter((run) => run !== (baseline ?? page.best));
  /** @param {number} a @param {number} b */
  const markOf = (a, b) =>
    differencesOf(page, a, b)?.find(({ measure }) => measure === page.main)?.mark ?? "";
  const n = others.length;
  if (baseline !== null) {
    const better = others.filter((run) => markOf(baseline, run) === "better").length;
    const worse = others.filter((run) => markOf(baseline, run) === "worse").length;
    return `${better} of ${n} runs are significantly better than ${page.runs[baseline]}, ${worse} significantly worse`;
  }
  if (page.best === null) return "No run has a value";
  const { best } = page;
  const beaten = others.filter((run) => markOf(run, best) === "better").length;
  const name = page.runs[best];
  if (!beaten) return `${name} leads, but is not significantly better than any other run`;
  if (beaten === n) return `${name} is significantly better than ${n === 2 ? "both" : `all ${n}`} other runs`;
  return `${name} is significantly better than ${beaten} of ${n} other runs`;
}
