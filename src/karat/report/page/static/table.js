// The table of queries: search, sort, filter, pages of rows, and the way into a query.

import { bar, choice, dataText, element, setOptions, shown } from "./dom.js";
import { readPage } from "./data.js";
import { counted, grouped, number, signed } from "./numbers.js";
import { OUTCOMES, difference, fieldText, isUnfound, openRows, passing } from "./rows.js";
import { sortedRows, textKeys, valuesOf } from "./rows.js";
import { createView } from "./query.js";

const ROWS = 100; // a page: few enough to lay out at once, and to go through by keyboard
const SHOWN_FIELDS = 3;
const SHOWN_RUNS = 6;
const LONGEST = 160; // characters of a text in a cell
const PAUSE = 150; // milliseconds of no typing before a search
const ANY = "";
const NO_FILTERS = { search: "", field: ANY, value: ANY, outcome: ANY, movement: ANY };

let started = null;

// Put the table into a section of the page; what opens a query or sets filters waits for it.
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

// Show the queries that a finding is about: all other filters are taken off.
// Names: run, against, measure, outcome, movement, field, value, search.
export async function setFilters(filters) {
  const table = await started;
  if (!table) return;
  const { page, rows, state } = table;
  const place = (list, name, otherwise) => (list.indexOf(name) < 0 ? otherwise : list.indexOf(name));
  Object.assign(state, NO_FILTERS);
  state.run = place(page.runs, filters.run, state.run);
  state.against = place(page.runs, filters.against, state.against);
  state.measure = place(page.measures.map((each) => each.name), filters.measure, state.measure);
  for (const name of ["outcome", "movement", "search"]) state[name] = filters[name] ?? ANY;
  const field = rows.fields.findIndex((each) => each.words && each.name === filters.field);
  if (field >= 0) {
    state.field = String(field);
    state.value = String(rows.fields[field].words.indexOf(filters.value ?? null));
  }
  await refresh(table);
}

async function start(container) {
  const page = readPage();
  if (!page.n) return null;
  const rows = await openRows(page);
  const [against, run] = page.pair ?? [null, 0];
  const state = { measure: 0, run, against, page: 0, ...NO_FILTERS };
  state.sort = { key: against === null ? `value${run}` : "difference", descending: false };
  state.sort.descending = !page.measures[0].higher;
  const table = { page, rows, state, keys: new Map(), filtered: new Uint32Array() };
  table.view = createView(table, { measureChosen: (measure) => choose(table, { measure }) });
  table.parts = parts(table);
  container.append(...table.parts.all);
  await refresh(table);
  openFromHash(table);
  addEventListener("hashchange", () => openFromHash(table));
  return table;
}

function openFromHash(table) {
  const asked = new URLSearchParams(location.hash.slice(1)).get("query");
  const row = asked === null ? -1 : table.rows.ids.indexOf(asked);
  if (row >= 0) table.view.open(row);
  else table.view.close();
}

// Change what is chosen and show what follows from it.
async function choose(table, changes) {
  const { page, state } = table;
  const before = page.measures[state.measure].higher;
  Object.assign(state, changes);
  const after = page.measures[state.measure].higher;
  // What was sorted worst first stays so where the other end of a measure is the good one.
  if (before !== after && ofMeasure(state.sort.key)) state.sort.descending = !state.sort.descending;
  await refresh(table);
}

async function refresh(table) {
  const { page, state } = table;
  state.page = 0;
  table.values = await valuesOf(page, state.measure);
  table.columns = columnsOf(table);
  if (!table.columns.some(({ key }) => key === state.sort.key)) state.sort.key = `value${state.run}`;
  reorder(table);
}

function reorder(table) {
  const { state } = table;
  const sorted = table.columns.find(({ key }) => key === state.sort.key);
  table.filtered = passing(sortedRows(sorted.keys(), state.sort.descending), testsOf(table));
  showControls(table);
  showHead(table, sorted);
  showPage(table);
}

// The columns that there are now: how each is called, sorted by, and shown.
function columnsOf(table) {
  const { page, rows, state, values } = table;
  const measure = page.measures[state.measure];
  const kept = (key, make) => {
    if (!table.keys.has(key)) table.keys.set(key, make());
    return table.keys.get(key);
  };
  const columns = [{ key: "query", words: "query", keys: () => kept("query", () => textKeys(rows.ids)) }];
  rows.fields.slice(0, SHOWN_FIELDS).forEach((field, at) => {
    const key = `field${at}`;
    const keys = () => (field.words ? Float64Array.from(field.codes, (code) => (code < 0 ? NaN : code)) : textKeys(field.texts));
    const cell = (row) => dataText("td", { class: "field" }, fieldText(field, row) ?? "–", LONGEST);
    columns.push({ key, words: field.name, keys: () => kept(key, keys), cell });
  });
  const most = largest(values);
  for (const run of runsShown(page, state)) {
    const cell = (row) => valueCell(values[run][row], measure, most);
    columns.push({ key: `value${run}`, words: page.runs[run], numeric: true, keys: () => values[run], cell });
  }
  if (state.against !== null) {
    const keys = () => Float64Array.from(rows.ids, (_, row) => difference(values, state, row));
    const cell = (row) => differenceCell(difference(values, state, row), measure);
    const words = page.runs.length > 2 ? `${page.runs[state.run]} − ${page.runs[state.against]}` : "difference";
    columns.push({ key: "difference", words, numeric: true, keys, cell });
  }
  const outcomes = rows.outcomes[state.run];
  if (outcomes) columns.push(...outcomeColumns(rows, outcomes, rows.codes[state.run]));
  return columns;
}

function outcomeColumns(rows, { first, found }, codes) {
  const rank = (row) => first[row] || NaN;
  const share = (row) => (rows.wanted[row] ? found[row] / rows.wanted[row] : NaN);
  const said = (row) => {
    const [name, words] = OUTCOMES[codes[row]];
    if (name === "failed" || name === "missing") return words;
    return `${grouped(found[row])} of ${grouped(rows.wanted[row])}`;
  };
  return [
    {
      key: "first",
      words: "first hit at",
      numeric: true,
      keys: () => Float64Array.from(first, (_, row) => rank(row)),
      cell: (row) => element("td", { class: "numeric" }, first[row] ? grouped(first[row]) : "–"),
    },
    {
      key: "found",
      words: "found",
      numeric: true,
      keys: () => Float64Array.from(found, (_, row) => share(row)),
      cell: (row) => element("td", { class: "numeric" }, said(row)),
    },
  ];
}

// All runs side by side where there are few, else the two that are set against each other.
function runsShown(page, state) {
  if (page.runs.length <= SHOWN_RUNS) return page.runs.keys();
  return [...new Set([state.against, state.run])];
}

function ofMeasure(key) {
  return key === "difference" || key.startsWith("value");
}

// What a full bar stands for: 1, or the largest value where values go beyond.
function largest(values) {
  let most = 1;
  for (const each of values) for (const value of each) if (value > most) most = value;
  return most;
}

function valueCell(value, measure, most) {
  const attributes = { class: "numeric value", "data-value": Number.isNaN(value) ? null : String(value) };
  return element("td", attributes, element("span", {}, number(value, measure)), bar(value / most));
}

function differenceCell(value, measure) {
  const better = measure.higher ? value > 0 : value < 0;
  const moved = value > 0 || value < 0;
  const sign = !moved ? "" : better ? "▲ " : "▼ ";
  const kind = !moved ? "" : better ? " better" : " worse";
  return element("td", { class: `numeric difference${kind}` }, sign + signed(value, measure));
}

// One test for each filter that is set.
function testsOf({ page, rows, state, values }) {
  const tests = [];
  const codes = rows.codes[state.run];
  if (state.outcome === "left_out") tests.push((row) => Number.isNaN(values[state.run][row]));
  else if (state.outcome === "unfound") tests.push((row) => isUnfound(rows, row));
  else if (state.outcome !== ANY && codes) {
    const code = OUTCOMES.findIndex(([name]) => name === state.outcome);
    tests.push((row) => codes[row] === code);
  }
  if (state.field !== ANY && state.value !== ANY) {
    const { codes: words } = rows.fields[state.field];
    const code = Number(state.value);
    tests.push((row) => words[row] === code);
  }
  if (state.movement !== ANY && state.against !== null) {
    const better = page.measures[state.measure].higher ? 1 : -1;
    const sign = { better, worse: -better, same: 0 }[state.movement];
    tests.push((row) => Math.sign(difference(values, state, row)) === sign);
  }
  if (state.search) {
    const wanted = state.search.toLowerCase();
    rows.lower ??= rows.ids.map((id, row) => `${id}\n${rows.texts?.[row] ?? ""}`.toLowerCase());
    tests.push((row) => rows.lower[row].includes(wanted));
  }
  return tests;
}

// The parts of the table that stay while rows come and go.
function parts(table) {
  const { page, rows, state } = table;
  const named = (names) => names.map((name, at) => [String(at), name]);
  const set = (name) => (value) => choose(table, { [name]: value });
  const setNumber = (name) => (value) => choose(table, { [name]: Number(value) });
  let typing = 0;
  const search = element("input", {
    type: "search",
    placeholder: rows.texts ? "id or text" : "id",
    oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(() => choose(table, { search: search.value }), PAUSE);
    },
  });
  const fields = rows.fields.flatMap((field, at) => (field.words ? [[String(at), field.name]] : []));
  const several = page.runs.length > 1;
  const movements = [[ANY, "any"], ["better", "better"], ["worse", "worse"], ["same", "the same"]];
  const controls = {
    measure: choice("measure", named(page.measures.map(({ label }) => label)), "0", setNumber("measure")),
    run: several && choice("run", named(page.runs), String(state.run), setNumber("run")),
    against: several && choice("against", named(page.runs), String(state.against), setNumber("against")),
    movement: several && choice("movement", movements, ANY, set("movement")),
    outcome: choice("outcome", [[ANY, "any"]], ANY, set("outcome")),
    field:
      fields.length > 0 &&
      choice("group", [[ANY, "any"], ...fields], ANY, (field) => choose(table, { field, value: ANY })),
    value: fields.length > 0 && choice("is", [[ANY, "any"]], ANY, set("value")),
  };
  const head = element("thead");
  const body = element("tbody", {
    onkeydown: (event) => moveFocus(table, event),
    onclick: (event) => {
      const line = event.target.closest("tr");
      if (!line || getSelection().toString()) return; // a text was marked, to copy it
      reachRow(body, line.querySelector("button.open"));
      table.view.open(Number(line.dataset.row));
    },
  });
  const caption = element("caption");
  const status = element("p", { class: "count", role: "status", "aria-live": "polite" });
  const clear = element("button", { type: "button", onclick: () => choose(table, NO_FILTERS) }, "clear filters");
  const turn = (words, page) =>
    element("button", { type: "button", onclick: () => turnTo(table, page()) }, words);
  const pages = {
    back: turn("‹ previous", () => state.page - 1),
    on: turn("next ›", () => state.page + 1),
    said: element("span"),
  };
  const box = element(
    "div",
    { class: "scroll rows", role: "region", tabindex: "0", "aria-label": "Queries" },
    element("table", { class: "queries" }, caption, head, body)
  );
  const search_ = element("label", { class: "choice search" }, element("span", {}, "search"), search);
  const all = [
    element("form", { class: "controls", role: "search", onsubmit: (event) => event.preventDefault() }, search_, Object.values(controls)),
    element("div", { class: "shown" }, status, clear),
    box,
    element("div", { class: "controls pages" }, pages.back, pages.said, pages.on),
  ];
  return { all, controls, search, head, body, caption, status, clear, pages, box };
}

// Set every control to what is chosen, with only the options that lead to a query.
function showControls(table) {
  const { page, rows, state, parts: shownParts } = table;
  const { controls, search, clear } = shownParts;
  if (search.value !== state.search) search.value = state.search;
  for (const name of ["measure", "run", "against", "movement", "field"]) {
    if (controls[name]) controls[name].querySelector("select").value = String(state[name]);
  }
  setOptions(controls.outcome.querySelector("select"), outcomeOptions(table), state.outcome);
  if (controls.value) {
    const field = state.field === ANY ? null : rows.fields[state.field];
    const options = field ? valueOptions(field) : [];
    controls.value.hidden = !field;
    setOptions(controls.value.querySelector("select"), [[ANY, "any"], ...options], state.value);
  }
  clear.hidden = Object.keys(NO_FILTERS).every((name) => state[name] === NO_FILTERS[name]);
}

function outcomeOptions({ page, rows, state, values }) {
  const options = [[ANY, "any"]];
  const add = (name, words, count) => {
    if (count || state.outcome === name) options.push([name, `${words} (${grouped(count)})`]);
  };
  const codes = rows.codes[state.run];
  if (codes) {
    const counts = new Uint32Array(OUTCOMES.length);
    for (const code of codes) counts[code] += 1;
    OUTCOMES.forEach(([name, words], code) => add(name, words, counts[code]));
    if (page.runs.length > 1) {
      let unfound = 0;
      for (let row = 0; row < rows.n; row += 1) if (isUnfound(rows, row)) unfound += 1;
      add("unfound", "nothing found by any run", unfound);
    }
  }
  let leftOut = 0;
  for (const value of values[state.run]) if (Number.isNaN(value)) leftOut += 1;
  add("left_out", "left out of the measure", leftOut);
  return options;
}

function valueOptions(field) {
  const counts = new Map();
  for (const code of field.codes) counts.set(code, (counts.get(code) ?? 0) + 1);
  const options = field.words.map((word, code) => [String(code), `${word} (${grouped(counts.get(code) ?? 0)})`]);
  if (counts.has(-1)) options.push(["-1", `– (${grouped(counts.get(-1))})`]);
  return options;
}

function showHead(table, sorted) {
  const { columns, state, parts: { head, caption }, page } = table;
  const cells = columns.map((column) => {
    const active = column === sorted;
    const direction = state.sort.descending ? "descending" : "ascending";
    const mark = active ? (state.sort.descending ? " ↓" : " ↑") : "";
    const sort = element("button", { type: "button", onclick: () => sortBy(table, column) }, dataText("span", {}, column.words, 60), mark);
    const kind = column.numeric ? "numeric" : null;
    return element("th", { scope: "col", class: kind, "aria-sort": active ? direction : null }, sort);
  });
  const focused = [...head.querySelectorAll("button")].indexOf(document.activeElement);
  head.replaceChildren(element("tr", {}, cells));
  if (focused >= 0) head.querySelectorAll("button")[focused]?.focus();
  const measure = page.measures[state.measure];
  caption.replaceChildren(shown(`${measure.label}: ${measure.title}. ${orderWords(table, sorted)}`));
}

function orderWords({ page, state }, sorted) {
  const measure = page.measures[state.measure];
  const worst = state.sort.descending !== measure.higher;
  if (sorted.key === "difference") {
    const end = worst ? "lost" : "gained";
    return `What ${end} most from ${page.runs[state.against]} to ${page.runs[state.run]} comes first.`;
  }
  if (ofMeasure(sorted.key)) return `The ${worst ? "worst" : "best"} of ${sorted.words} come first.`;
  return `Sorted by ${sorted.words}, ${state.sort.descending ? "from the end" : "from the beginning"}.`;
}

function sortBy(table, { key }) {
  const { page, state } = table;
  const worst = ofMeasure(key) ? !page.measures[state.measure].higher : false;
  state.sort = { key, descending: state.sort.key === key ? !state.sort.descending : worst };
  state.page = 0;
  reorder(table);
}

function showPage(table) {
  const { filtered, rows, state, parts: { body, status, pages, box } } = table;
  const last = Math.max(0, Math.ceil(filtered.length / ROWS) - 1);
  const from = state.page * ROWS;
  const part = filtered.subarray(from, from + ROWS);
  body.replaceChildren(...Array.from(part, (row, at) => rowOf(table, row, at === 0)));
  box.scrollTop = 0;
  const of = filtered.length < rows.n ? ` (of ${grouped(rows.n)})` : "";
  const range = last ? `${grouped(from + 1)}–${grouped(from + part.length)} of ` : "";
  status.textContent = filtered.length ? `${range}${counted(filtered.length, "query")}${of}` : "No query is like this.";
  pages.said.textContent = `page ${grouped(state.page + 1)} of ${grouped(last + 1)}`;
  pages.back.disabled = state.page === 0;
  pages.on.disabled = state.page === last;
  pages.said.parentElement.hidden = last === 0;
}

function rowOf({ rows, columns }, row, reached) {
  const id = rows.ids[row];
  const open = dataText("button", { type: "button", class: "open", tabindex: reached ? "0" : "-1" }, id, LONGEST);
  const text = rows.texts?.[row];
  const said = text ? dataText("span", { class: "beginning" }, text, LONGEST) : null;
  const query = element("th", { scope: "row" }, open, said);
  return element("tr", { "data-row": row }, query, columns.slice(1).map((column) => column.cell(row)));
}

function turnTo(table, page) {
  table.state.page = page;
  showPage(table);
}

// Arrows, Home and End go from row to row; Page Up and Page Down turn pages.
function moveFocus(table, event) {
  const { state, filtered, parts: { body } } = table;
  const buttons = [...body.querySelectorAll("button.open")];
  const at = buttons.indexOf(document.activeElement);
  const last = Math.ceil(filtered.length / ROWS) - 1;
  const places = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 };
  const pages = { PageDown: state.page + 1, PageUp: state.page - 1 };
  if (event.key in pages) {
    event.preventDefault();
    if (pages[event.key] < 0 || pages[event.key] > last) return;
    turnTo(table, pages[event.key]);
    body.querySelector("button.open")?.focus();
  } else if (buttons[places[event.key]]) {
    event.preventDefault();
    reachRow(body, buttons[places[event.key]]);
  }
}

// Let one row alone be reached by Tab, so that a hundred of them need not be passed.
function reachRow(body, button) {
  body.querySelector("button.open[tabindex='0']")?.setAttribute("tabindex", "-1");
  button.setAttribute("tabindex", "0");
  button.focus();
}
