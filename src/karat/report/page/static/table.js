// The list of queries: its rows, sorting, and opening a query.

import { dataText, element, shown, shownUpTo } from "./dom.js";
import { counted, grouped } from "./numbers.js";
import { hasFailed, numbersOf, openRows, passing, sortedRows, valuesOf } from "./rows.js";
import { columnsOf, runDot } from "./columns.js";
import { testsOf } from "./filters.js";
import { createControls, showControls } from "./controls.js";
import { createSharing } from "./query_export.js";
import { createView } from "./query.js";
import { OTHER_RUN, runColours } from "./run_colours.js";
import { changeState, currentState, onStateChange } from "./state.js";

/** @typedef {import("./columns.js").Column} Column */
/** @typedef {import("./controls.js").Controls} Controls */
/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./types").PageData} PageData */
/** @typedef {ReturnType<typeof createParts>} Parts */
/** @typedef {{ column: Column, descending: boolean, failedFirst: boolean }} Order */
/**
 * @typedef {object} Table
 * @property {PageData} page
 * @property {Rows} rows
 * @property {State} state
 * @property {Float64Array[]} values Of the chosen measure, by run and row.
 * @property {Map<string, Float64Array>} keys Sort keys that do not depend on the state.
 * @property {Column[]} columns
 * @property {Uint32Array} order All rows.
 * @property {Uint32Array} filtered The rows that pass the filters.
 * @property {number} most How many rows are shown.
 * @property {string} orderedBy
 * @property {string} shownFor The state that the list shows.
 * @property {string | null} opened The query that is or was opened last.
 * @property {Controls} controls
 * @property {Parts} parts
 */

const FIRST_ROWS = 20;
const MORE_ROWS = 50;
const LONGEST_TITLE = 24; // characters of the title of a column
/** @type {Record<string, number>} */
const STEPS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };

/**
 * Add the list to a section of the page.
 * @param {HTMLElement} container
 * @param {PageData} page
 */
export async function startQueries(container, page) {
  if (!page.n) return;
  const state = currentState();
  const [rows, values] = await Promise.all([openRows(page), valuesOfAll(page, state.measure)]);
  const controls = createControls(page, rows);
  /** @type {Table} */
  const table = {
    page,
    rows,
    state,
    values,
    keys: new Map(),
    columns: [],
    order: new Uint32Array(),
    filtered: new Uint32Array(),
    most: FIRST_ROWS,
    orderedBy: "",
    shownFor: "",
    opened: null,
    controls,
    parts: /** @type {any} */ (null),
  };
  table.parts = createParts(table);
  container.append(controls.form, ...table.parts.all);
  await refresh(table);
  createView(table);
  onStateChange(() => {
    refresh(table);
    checkQuery(table);
    followQuery(table);
  });
  checkQuery(table);
}

/** @param {PageData} page @param {number} measure */
function valuesOfAll(page, measure) {
  return valuesOf(
    page,
    measure,
    page.runs.map((_, run) => run),
  );
}

/**
 * Tell the reader if a link leads to a query that does not exist.
 * @param {Table} table
 */
function checkQuery({ rows, state }) {
  if (state.query === null || rows.ids.includes(state.query)) return;
  /** @type {HTMLElement} */
  const unknown = element(
    "div",
    { class: "unknown-query", role: "alert" },
    element(
      "p",
      {},
      "The report has no query ",
      dataText("code", {}, state.query, 200),
      ".",
    ),
    element("button", { type: "button", onclick: () => unknown.remove() }, "dismiss"),
  );
  document.querySelector(".unknown-query")?.remove();
  document.body.append(unknown);
  changeState({ query: null });
}

/**
 * After a query was closed that was reached from another one, focus its row.
 * @param {Table} table
 */
function followQuery(table) {
  const { rows, state, opened, parts } = table;
  if (state.query !== null) table.opened = state.query;
  else if (opened !== null && parts.body.contains(document.activeElement)) {
    const row = rows.ids.indexOf(opened);
    focusRow(parts.body, [...parts.body.rows].find((line) => Number(line.dataset.row) === row));
  }
}

/**
 * Show the list for the current state, unless it is shown already.
 * @param {Table} table
 */
async function refresh(table) {
  const { page, state } = table;
  const shownFor = JSON.stringify({ ...state, query: null });
  if (table.shownFor === shownFor) return;
  table.shownFor = shownFor;
  const values = await valuesOfAll(page, state.measure);
  if (table.shownFor !== shownFor) return; // something else was chosen in the meantime
  Object.assign(table, { values, most: FIRST_ROWS });
  table.columns = columnsOf(table);
  const order = orderOf(table);
  // If only filters changed, the order is the same.
  const { column, descending, failedFirst } = order;
  const orderedBy = [column.key, descending, failedFirst, state.measure, state.a, state.b].join();
  if (table.orderedBy !== orderedBy) table.order = sortedBy(table, order);
  table.orderedBy = orderedBy;
  table.filtered = passing(table.order, testsOf(table));
  showControls(table);
  showLegend(table);
  showHead(table, order);
  showCount(table, order);
  showRows(table);
}

/**
 * The order of the rows. By default, what failed in run b comes first, then what is worst.
 * @param {Table} table
 * @returns {Order}
 */
function orderOf({ page, rows, state, columns }) {
  const chosen = columns.find(({ key }) => key === state.sort);
  if (chosen) return { column: chosen, descending: state.descending, failedFirst: false };
  const key = state.a === null ? "b" : "change";
  const column = columns.find((each) => each.key === key) ?? columns[0];
  const failedFirst = rows.ids.some((_, row) => hasFailed(rows, state.b, row));
  return { column, descending: !page.measures[state.measure].higher, failedFirst };
}

/** @param {Table} table @param {Order} order */
function sortedBy({ rows, state }, { column, descending, failedFirst }) {
  const keys = column.keys();
  if (!failedFirst) return sortedRows(keys, descending);
  const first = descending ? Infinity : -Infinity;
  const withFailed = (/** @type {number} */ row) =>
    hasFailed(rows, state.b, row) ? first : keys[row];
  return sortedRows(numbersOf(rows.n, withFailed), descending);
}

/**
 * The elements that persist when the rows change.
 * @param {Table} table
 */
function createParts(table) {
  const head = element("thead");
  const body = element("tbody", {
    onkeydown: (/** @type {KeyboardEvent} */ event) => moveFocus(table, event),
    onclick: (/** @type {MouseEvent} */ event) => openRow(table, event),
  });
  const status = element("p", { class: "count", role: "status", dir: "auto" });
  const legend = element("ul", { class: "run-legend", "aria-label": "Colours of the runs" });
  const more = element("button", { type: "button", class: "more", onclick: () => showMore(table) });
  const hint = element("p", { class: "hint" }, "↑ ↓ or j k: move between rows · Enter: open");
  const above = element("div", { class: "above-rows" }, status, createSharing(() => table));
  const list = element("table", { class: "queries", "aria-label": "Queries" }, head, body);
  const below = element("div", { class: "below-rows" }, more, hint);
  return { all: [above, legend, list, below], head, body, status, legend, more };
}

/** @param {Table} table */
function showLegend({ page, state, parts: { legend } }) {
  const colours = runColours(page, state);
  const coloured = page.runs.flatMap((run, at) => {
    const side = at === state.a ? " (A)" : at === state.b && state.a !== null ? " (B)" : "";
    const name = dataText("span", {}, run, 60);
    return colours[at] === OTHER_RUN
      ? []
      : [element("li", {}, runDot(colours[at]), name, side)];
  });
  const others = page.runs.length - coloured.length;
  const rest = others && element("li", {}, runDot(OTHER_RUN), counted(others, "other run"));
  legend.replaceChildren(...coloured, ...(rest ? [rest] : []));
  legend.hidden = page.runs.length < 2;
}

/** @param {Table} table @param {Order} order */
function showHead({ page, columns, state, parts: { head } }, order) {
  const higher = page.measures[state.measure].higher;
  const cells = columns.map((column) => {
    const active = column === order.column;
    const direction = order.descending ? "descending" : "ascending";
    const mark = active ? (order.descending ? " ↓" : " ↑") : "";
    const sort = () =>
      changeState({
        sort: column.key,
        descending: active ? !order.descending : column.ofMeasure && !higher,
      });
    return element(
      "th",
      { scope: "col", class: column.kind, "aria-sort": active ? direction : null },
      element(
        "button",
        { type: "button", title: shownUpTo(column.words, 200), onclick: sort },
        column.colour ? runDot(column.colour) : null,
        element("span", {}, dataText("span", {}, column.words, LONGEST_TITLE), mark),
      ),
      column.below,
    );
  });
  const focused = [...head.querySelectorAll("button")].findIndex(
    (button) => button === document.activeElement,
  );
  head.replaceChildren(element("tr", {}, cells));
  head.querySelectorAll("button")[focused]?.focus();
}

/** @param {Table} table @param {Order} order */
function showCount({ page, state, rows, filtered, parts: { status } }, order) {
  const all = counted(rows.n, "query");
  const count = filtered.length < rows.n ? `${grouped(filtered.length)} of ${all}` : all;
  status.textContent = filtered.length
    ? shown(`${count}, ${orderText(page, state, order)}`)
    : "No queries match the filters.";
}

/** @param {PageData} page @param {State} state @param {Order} order */
function orderText(page, state, { column, descending, failedFirst }) {
  const { label, higher } = page.measures[state.measure];
  const worst = descending !== higher;
  if (column.key === "change" && state.a !== null) {
    const change = `largest ${worst ? "loss" : "gain"} in ${label}`;
    const runs = `${page.runs[state.a]} → ${page.runs[state.b]}`;
    return `${failedFirst ? "failed first, then " : "sorted by "}${change}, ${runs}`;
  }
  const first = failedFirst ? ", failed first" : "";
  const words = column.key === "runs" ? `mean ${label} of all runs` : column.words;
  if (column.ofMeasure) return `sorted by ${words}, ${worst ? "worst" : "best"} first${first}`;
  return `sorted by ${words}, ${descending ? "descending" : "ascending"}`;
}

/** @param {Table} table */
function showRows(table) {
  const { filtered, most, parts } = table;
  const rows = Array.from(filtered.subarray(0, most), (row) => rowOf(table, row));
  parts.body.replaceChildren(...rows);
  parts.body.querySelector("button.open")?.setAttribute("tabindex", "0");
  showRemaining(table);
}

/** @param {Table} table */
function showRemaining({ filtered, most, parts: { more } }) {
  const remaining = filtered.length - most;
  more.hidden = remaining <= 0;
  more.textContent = remaining <= MORE_ROWS ? `show the remaining ${remaining}` : `show ${MORE_ROWS} more (${grouped(remaining)} remaining)`;
}

/** @param {Table} table @param {number} row */
function rowOf({ columns }, row) {
  const line = element("tr", { "data-row": row }, columns.map((column) => column.cell(row)));
  line.querySelector("button.open")?.setAttribute("tabindex", "-1");
  return line;
}

/**
 * Show more rows, and focus the first of them.
 * @param {Table} table
 */
function showMore(table) {
  const { filtered, most, parts } = table;
  const added = filtered.subarray(most, most + MORE_ROWS);
  const lines = Array.from(added, (row) => rowOf(table, row));
  parts.body.append(...lines);
  table.most += MORE_ROWS;
  showRemaining(table);
  focusRow(parts.body, lines[0]);
}

/** @param {Table} table @param {MouseEvent} event */
function openRow({ rows, parts: { body } }, { target }) {
  const line = target instanceof Element ? target.closest("tr") : null;
  if (!line || getSelection()?.toString()) return; // text is selected, for example to copy it
  focusRow(body, line);
  changeState({ query: rows.ids[Number(line.dataset.row)] });
}

/**
 * Arrows, j and k, Home and End move between rows.
 * @param {Table} table
 * @param {KeyboardEvent} event
 */
function moveFocus(table, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { body } = table.parts;
  const lines = [...body.rows];
  const at = lines.findIndex((line) => line.contains(document.activeElement));
  let to = at + (STEPS[event.key] ?? 0);
  if (event.key === "Home") to = 0;
  if (event.key === "End") to = lines.length - 1;
  if (to === at || to < 0) return;
  event.preventDefault();
  if (lines[to]) focusRow(body, lines[to]);
  else if (table.most < table.filtered.length) showMore(table);
}

/**
 * Make one row focusable with Tab (roving tabindex), so that Tab does not stop at every row.
 * @param {HTMLElement} body
 * @param {HTMLElement | undefined} line
 */
function focusRow(body, line) {
  const button = line?.querySelector("button");
  if (!button) return;
  body.querySelector("button.open[tabindex='0']")?.setAttribute("tabindex", "-1");
  button.setAttribute("tabindex", "0");
  button.focus();
}
