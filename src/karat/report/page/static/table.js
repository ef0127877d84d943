// The table of queries: search, sorting, filters, pagination, and opening a query.

import { dataText, element, shown } from "./dom.js";
import { readPage } from "./data.js";
import { counted, grouped } from "./numbers.js";
import { openRows, passing, sortedRows, valuesOf } from "./rows.js";
import { LONGEST, columnsOf, ofMeasure, runsShown } from "./columns.js";
import { ANY, NO_FILTERS, testsOf } from "./filters.js";
import { createControls, showControls } from "./controls.js";
import { createView } from "./query.js";

const ROWS = 100; // per page: fast to lay out, and usable with the keyboard

let started = null;

// Add the table to a section of the page; openQuery and setFilters wait for it.
export function startQueries(container) {
  started = start(container);
  return started;
}

// Open a query by its id.
export async function openQuery(id) {
  const table = await started;
  const row = table?.rows.ids.indexOf(id) ?? -1;
  if (row >= 0) table.view.open(row);
}

// Set filters by name and clear all others.
// Names: run, against, measure, outcome, movement, field, value, search.
export async function setFilters(filters) {
  const table = await started;
  if (!table) return;
  const { page, rows } = table;
  const changes = { ...NO_FILTERS };
  const put = (name, list) => {
    if (list.includes(filters[name])) changes[name] = list.indexOf(filters[name]);
  };
  put("run", page.runs);
  put("against", page.runs);
  put(
    "measure",
    page.measures.map(({ name }) => name),
  );
  for (const name of ["outcome", "movement", "search"]) changes[name] = filters[name] ?? ANY;
  const field = rows.fields.findIndex(({ name, words }) => words && name === filters.field);
  if (field >= 0) {
    changes.field = String(field);
    changes.value = String(rows.fields[field].words.indexOf(filters.value ?? null));
  }
  await choose(table, changes);
}

async function start(container) {
  const page = readPage();
  if (!page.n) return null;
  const rows = await openRows(page);
  const [against, run] = page.pair ?? [null, 0];
  const state = { measure: 0, run, against, page: 0, ...NO_FILTERS };
  state.sort = { key: against === null ? `value${run}` : "difference", descending: false };
  state.sort.descending = !page.measures[0].higher;
  const table = { page, rows, state, keys: new Map(), filtered: new Uint32Array(), requests: 0 };
  const change = (changes) => choose(table, changes);
  table.view = createView(table, change);
  table.controls = createControls(table, change);
  table.parts = createParts(table);
  container.append(table.controls.form, ...table.parts.all);
  await refresh(table);
  openFromHash(table);
  addEventListener("hashchange", () => openFromHash(table));
  return table;
}

function openFromHash(table) {
  const id = new URLSearchParams(location.hash.slice(1)).get("query");
  const row = id === null ? -1 : table.rows.ids.indexOf(id);
  if (row >= 0) table.view.open(row);
  else table.view.close();
}

// Change the state and update the table.
async function choose(table, changes) {
  const { page, state } = table;
  const before = page.measures[state.measure].higher;
  Object.assign(state, changes);
  const after = page.measures[state.measure].higher;
  // Worst first stays worst first if the direction of the measure changes.
  if (before !== after && ofMeasure(state.sort.key)) state.sort.descending = !state.sort.descending;
  await refresh(table);
}

async function refresh(table) {
  const { page, state } = table;
  state.page = 0;
  table.requests += 1;
  const { requests } = table;
  const values = await valuesOf(page, state.measure, runsShown(page, state));
  if (table.requests !== requests) return; // something else was chosen in the meantime
  table.values = values;
  table.columns = columnsOf(table);
  if (!table.columns.some(({ key }) => key === state.sort.key))
    state.sort.key = `value${state.run}`;
  reorder(table);
}

function reorder(table) {
  const { state } = table;
  const { key, descending } = state.sort;
  const sorted = table.columns.find((column) => column.key === key);
  // If only filters changed, the order is the same.
  const by = [key, descending, state.measure, state.run, state.against].join();
  if (table.orderedBy !== by) table.order = sortedRows(sorted.keys(), descending);
  table.orderedBy = by;
  table.filtered = passing(table.order, testsOf(table));
  showControls(table);
  showHead(table, sorted);
  showPage(table);
}

// The elements that persist when the rows change.
function createParts(table) {
  const { state } = table;
  const head = element("thead");
  const body = element("tbody", {
    onkeydown: (event) => moveFocus(table, event),
    onclick: (event) => {
      const line = event.target.closest("tr");
      if (!line || getSelection().toString()) return; // text is selected, for example to copy it
      focusRow(body, line.querySelector("button.open"));
      table.view.open(Number(line.dataset.row));
    },
  });
  const order = element("p", { class: "note", id: "queries-order", dir: "auto" });
  const status = element("p", { class: "count", role: "status", "aria-live": "polite" });
  const turn = (label, by) => {
    const onclick = () => turnTo(table, state.page + by);
    return element("button", { type: "button", onclick }, label);
  };
  const pages = { back: turn("‹ previous", -1), on: turn("next ›", 1), position: element("span") };
  const region = { class: "scroll rows", role: "region", tabindex: "0", "aria-label": "Queries" };
  const box = element(
    "div",
    region,
    element("table", { class: "queries", "aria-describedby": "queries-order" }, head, body),
  );
  const turning = element("div", { class: "controls pages" }, pages.back, pages.position, pages.on);
  return { all: [status, order, box, turning], head, order, body, status, pages, box, turning };
}

function showHead(table, sorted) {
  const {
    columns,
    state,
    parts: { head, order },
    page,
  } = table;
  const cells = columns.map((column) => {
    const active = column === sorted;
    const direction = state.sort.descending ? "descending" : "ascending";
    const mark = active ? (state.sort.descending ? " ↓" : " ↑") : "";
    const sort = element(
      "button",
      { type: "button", onclick: () => sortBy(table, column) },
      dataText("span", {}, column.words, 60),
      mark,
    );
    return element(
      "th",
      { scope: "col", class: column.kind, "aria-sort": active ? direction : null },
      sort,
    );
  });
  const focused = [...head.querySelectorAll("button")].indexOf(document.activeElement);
  head.replaceChildren(element("tr", {}, cells));
  if (focused >= 0) head.querySelectorAll("button")[focused]?.focus();
  const measure = page.measures[state.measure];
  order.replaceChildren(shown(`${measure.label}: ${measure.title}. ${orderText(table, sorted)}`));
}

function orderText({ page, state }, sorted) {
  const measure = page.measures[state.measure];
  const worst = state.sort.descending !== measure.higher;
  if (sorted.key === "difference") {
    const change = worst ? "degradation" : "improvement";
    return `Sorted by largest ${change} from ${page.runs[state.against]} to ${page.runs[state.run]}.`;
  }
  if (ofMeasure(sorted.key))
    return `Sorted by ${sorted.words}, ${worst ? "worst" : "best"} first.`;
  return `Sorted by ${sorted.words}, ${state.sort.descending ? "descending" : "ascending"}.`;
}

function sortBy(table, { key }) {
  const { page, state } = table;
  const worst = ofMeasure(key) ? !page.measures[state.measure].higher : false;
  state.sort = { key, descending: state.sort.key === key ? !state.sort.descending : worst };
  state.page = 0;
  reorder(table);
}

function showPage(table) {
  const {
    filtered,
    rows,
    state,
    parts: { body, status, pages, box, turning },
  } = table;
  const last = Math.max(0, Math.ceil(filtered.length / ROWS) - 1);
  const from = state.page * ROWS;
  const part = filtered.subarray(from, from + ROWS);
  body.replaceChildren(...Array.from(part, (row, at) => rowOf(table, row, at === 0)));
  box.scrollTop = 0;
  const of = filtered.length < rows.n ? ` (of ${grouped(rows.n)})` : "";
  const range = last ? `${grouped(from + 1)}–${grouped(from + part.length)} of ` : "";
  status.textContent = filtered.length
    ? `${range}${counted(filtered.length, "query")}${of}`
    : "No queries match the filters.";
  pages.position.textContent = `page ${grouped(state.page + 1)} of ${grouped(last + 1)}`;
  pages.back.disabled = state.page === 0;
  pages.on.disabled = state.page === last;
  turning.hidden = last === 0;
}

function rowOf({ rows, columns }, row, isFocusable) {
  const id = rows.ids[row];
  const open = dataText(
    "button",
    { type: "button", class: "open", tabindex: isFocusable ? "0" : "-1" },
    id,
    LONGEST,
  );
  const text = rows.texts?.[row];
  const beginning = text ? dataText("span", { class: "beginning" }, text, LONGEST) : null;
  const query = element("th", { scope: "row" }, open, beginning);
  return element(
    "tr",
    { "data-row": row },
    query,
    columns.slice(1).map((column) => column.cell(row)),
  );
}

function turnTo(table, page) {
  table.state.page = page;
  showPage(table);
}

// Arrows, Home and End move between rows; Page Up and Page Down change the page.
function moveFocus(table, event) {
  const {
    state,
    filtered,
    parts: { body },
  } = table;
  const buttons = [...body.querySelectorAll("button.open")];
  const at = buttons.indexOf(document.activeElement);
  const last = Math.ceil(filtered.length / ROWS) - 1;
  const targets = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 };
  const pages = { PageDown: state.page + 1, PageUp: state.page - 1 };
  if (event.key in pages) {
    event.preventDefault();
    if (pages[event.key] < 0 || pages[event.key] > last) return;
    turnTo(table, pages[event.key]);
    body.querySelector("button.open")?.focus();
  } else if (buttons[targets[event.key]]) {
    event.preventDefault();
    focusRow(body, buttons[targets[event.key]]);
  }
}

// Make one row focusable with Tab (roving tabindex), so that Tab does not stop at every row.
function focusRow(body, button) {
  body.querySelector("button.open[tabindex='0']")?.setAttribute("tabindex", "-1");
  button.setAttribute("tabindex", "0");
  button.focus();
}
