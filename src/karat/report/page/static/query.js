// One query in a dialog: its text and answers, values, ranked lists, documents and calculations.

import { choice, dataText, element, scrolling, shown } from "./dom.js";
import { column, detailOf, listOf } from "./data.js";
import { counted, grouped, number, signed } from "./numbers.js";
import { changeState, currentState, onStateChange } from "./state.js";
import { copyText } from "./export.js";
import { runColours } from "./run_colours.js";
import { apart, fieldText, valuesOf } from "./rows.js";
import { runDot } from "./columns.js";
import { calculationOf } from "./calculation.js";
import { documentsOf } from "./documents.js";
import { evidenceOf, scrollable } from "./evidence.js";
import { rankedList } from "./ranking.js";

/** @typedef {import("./types").PageData} PageData */
/** @typedef {import("./types").PageMeasure} Measure */
/** @typedef {import("./types").QueryDetail} QueryDetail */
/** @typedef {import("./types").QueryLists} QueryLists */
/** @typedef {import("./types").RunDetail} RunDetail */
/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./state.js").State} State */
/** @typedef {{ page: PageData, rows: Rows, filtered: Uint32Array }} QueryTable */
/**
 * @typedef {object} OpenedQuery
 * @property {PageData} page
 * @property {Rows} rows
 * @property {State} state
 * @property {number} row
 * @property {number[]} runs The runs that are shown; the one that others are compared with is first.
 * @property {Measure} measure The chosen measure.
 * @property {QueryLists | null} list
 * @property {QueryDetail | null} detail
 * @property {Float64Array[][]} values By measure, run and row.
 * @property {(at: number) => string} chunk Returns the text with a number.
 */

const SIDE_BY_SIDE = 4; // with more runs, only the two compared runs are shown at first
const MEASURES_SHOWN = 6; // with more measures, only the chosen one is shown at first
const TITLE = 300; // characters of the text in the title
const FAILED_QUERY = 2; // the status of a query that the retriever failed on
/** @type {Record<string, number>} */
const QUERY_STEPS = { ArrowLeft: -1, k: -1, ArrowRight: 1, j: 1 };
const REFERENCES = ["reference", "ground_truth"];

/**
 * Create the view of a query: a dialog that is open while the state has a query.
 * @param {QueryTable} table
 */
export function createView(table) {
  const content = element("div", { class: "query-content" });
  const position = element("span", { class: "position", role: "status" });
  const back = element("button", { type: "button", onclick: () => step(-1) }, "‹ previous");
  const on = element("button", { type: "button", onclick: () => step(1) }, "next ›");
  const hint = element("span", { class: "keys" }, "← → or j k: other queries · Esc: close");
  const close = () => dialog.close();
  const closing = element("button", { type: "button", class: "close", onclick: close }, "close");
  const head = element("div", { class: "query-head" }, back, position, on, hint, closing);
  /** @type {HTMLDialogElement} */
  const dialog = element(
    "dialog",
    { class: "query", "aria-labelledby": "query-title" },
    head,
    content,
  );
  /** @type {number | null} */
  let current = null;
  let shownState = "";
  let allRuns = false;
  /** @type {Element | null} */
  let opener = null;

  dialog.addEventListener("close", () => {
    const row = current;
    current = null;
    shownState = "";
    content.replaceChildren();
    if (currentState().query !== null) changeState({ query: null });
    if (opener === document.body || opener?.closest(".queries")) focusRowOf(row);
  });
  // A click outside closes the dialog: only then is the dialog itself the target.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => {
    const by = isShortcut(event) ? QUERY_STEPS[event.key] : undefined;
    if (by === undefined) return;
    event.preventDefault();
    step(by);
  });
  linkSameItems(content);

  /** @param {number} by */
  function step(by) {
    const row = current === null ? undefined : neighbour(table.filtered, current, by);
    if (row !== undefined) changeState({ query: table.rows.ids[row] });
  }

  function showPosition() {
    if (current === null) return;
    const at = table.filtered.indexOf(current);
    const all = table.filtered.length;
    position.textContent =
      at < 0 ? "not in the filtered queries" : `${grouped(at + 1)} of ${grouped(all)}`;
    back.disabled = at <= 0;
    on.disabled = at < 0 || at === all - 1;
  }

  async function update() {
    const { query: id, a, b, measure } = currentState();
    const row = id === null ? -1 : table.rows.ids.indexOf(id);
    if (row < 0) {
      if (dialog.open) dialog.close();
      return;
    }
    const wanted = [row, a, b, measure, allRuns].join();
    if (wanted === shownState) return;
    const isOther = row !== current;
    const opens = !dialog.open;
    current = row;
    shownState = wanted;
    if (!dialog.isConnected) document.body.append(dialog);
    if (opens) {
      opener = document.activeElement;
      dialog.showModal();
    }
    const query = await loadQuery(table, row, allRuns);
    if (shownState !== wanted) return; // something else was chosen in the meantime
    const focused = content.contains(document.activeElement);
    content.replaceChildren(...partsOf(query, showAll));
    showPosition();
    requestAnimationFrame(showPosition); // the list may be sorted again by now
    if (isOther) dialog.scrollTop = 0;
    if (opens || (isOther && !isUsable(head)))
      document.getElementById("query-title")?.focus({ preventScroll: true });
    else if (focused) content.querySelector("select")?.focus({ preventScroll: true });
  }

  function showAll() {
    allRuns = true;
    update();
  }

  onStateChange(update);
  update();
}

/** @param {Uint32Array} order @param {number} row @param {number} by */
function neighbour(order, row, by) {
  const at = order.indexOf(row);
  return at < 0 ? undefined : order[at + by];
}

/** @param {Element} head @returns {boolean} whether one of its buttons keeps the focus */
function isUsable(head) {
  return head.querySelector("button:focus:enabled") !== null;
}

/** @param {number | null} row */
function focusRowOf(row) {
  const button = document.querySelector(`.queries [data-row="${row}"] button.open`);
  if (button instanceof HTMLElement) button.focus();
}

/**
 * Whether a key press may move to another query: not while typing, and not if an arrow scrolls.
 * @param {KeyboardEvent} event
 */
function isShortcut(event) {
  const { target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || !(target instanceof Element)) return false;
  if (target.closest("input, select, textarea, [contenteditable]")) return false;
  const region = target.closest("[role=region]");
  const scrolls = region !== null && region.scrollWidth > region.clientWidth;
  return !(scrolls && event.key.startsWith("Arrow"));
}

/**
 * Highlight an item in all lists and documents while it is hovered or focused in one of them.
 * @param {HTMLElement} content
 */
function linkSameItems(content) {
  /** @param {EventTarget | null} target */
  const itemAt = (target) => (target instanceof Element ? target.closest("[data-item]") : null);
  /** @param {EventTarget | null} target */
  const show = (target) => {
    const item = itemAt(target) ?? itemAt(document.activeElement);
    const number = item && content.contains(item) ? item.getAttribute("data-item") : null;
    for (const each of content.querySelectorAll("[data-item]"))
      each.classList.toggle("same", each.getAttribute("data-item") === number);
  };
  content.addEventListener("mouseover", ({ target }) => show(target));
  content.addEventListener("focusin", ({ target }) => show(target));
  content.addEventListener("mouseleave", () => show(null));
  content.addEventListener("focusout", () => show(null));
}

/**
 * Load what the view shows of a query.
 * @param {QueryTable} table
 * @param {number} row
 * @param {boolean} allRuns
 * @returns {Promise<OpenedQuery>}
 */
async function loadQuery({ page, rows }, row, allRuns) {
  const state = { ...currentState() };
  const every = page.runs.map((_, run) => run);
  const few = page.runs.length <= SIDE_BY_SIDE || allRuns;
  const first = state.a === null ? [] : [state.a];
  const runs = [...new Set([...first, ...(few ? every : [state.b])])];
  const [list, detail, values] = await Promise.all([
    listOf(page, row),
    detailOf(page, row),
    Promise.all(page.measures.map((_, measure) => valuesOf(page, measure, runs))),
  ]);
  const chunk = await chunksOf(page, detail);
  const measure = page.measures[state.measure];
  return { page, rows, state, row, runs, measure, list, detail, values, chunk };
}

/**
 * Load the texts that the details of a query refer to.
 * @param {PageData} page
 * @param {QueryDetail | null} detail
 * @returns {Promise<(at: number) => string>}
 */
async function chunksOf({ chunks: { size, blocks } }, detail) {
  const used = (detail?.runs ?? []).flatMap(({ results, matches }) => [
    ...results.map(({ text }) => text),
    ...matches.map(({ stretch }) => stretch?.text ?? null),
  ]);
  for (const { pieces } of detail?.documents ?? [])
    for (const { text } of pieces) if (Array.isArray(text)) used.push(text[0]);
  const numbers = used.flatMap((at) => (at === null ? [] : [Math.floor(at / size)]));
  /** @type {Map<number, string[]>} */
  const loaded = new Map();
  const load = async (/** @type {number} */ at) => loaded.set(at, await column(blocks[at]));
  await Promise.all([...new Set(numbers)].map(load));
  return (at) => loaded.get(Math.floor(at / size))?.[at % size] ?? "";
}

/** @param {OpenedQuery} query @param {() => void} showAll @returns {Node[]} */
function partsOf(query, showAll) {
  const { page, state, runs } = query;
  /** @type {[string, string][]} */
  const measures = page.measures.map(({ label }, at) => [String(at), label]);
  const choose = (/** @type {string} */ measure) => changeState({ measure: Number(measure) });
  const more =
    runs.length < page.runs.length &&
    element("button", { type: "button", onclick: showAll }, `show all ${page.runs.length} runs`);
  const calculations = runs.map((run) => calculationOf(query, run)).filter((each) => each !== null);
  return [
    queryHeader(query),
    answersOf(query),
    element(
      "div",
      { class: "controls" },
      choice("measure", measures, String(state.measure), choose),
      more,
    ),
    measureTable(query),
    missingDetailNote(query),
    element(
      "section",
      { class: "lists", "aria-labelledby": "query-lists" },
      element("h3", { id: "query-lists" }, runs.length > 1 ? "Ranked lists" : "Ranked list"),
      element("div", { class: "runs" }, runs.map((run) => runPanel(query, run))),
    ),
    documentsOf(query),
    evidenceOf(query),
    calculations.length
      ? element(
          "section",
          { class: "calculations", "aria-labelledby": "query-calculation" },
          element("h3", { id: "query-calculation" }, "Calculation"),
          element("div", { class: "runs" }, calculations),
          dataText("code", { class: "command" }, explainCommand(query)),
        )
      : null,
  ].filter((part) => part !== null);
}

/**
 * The text of the query as title, its id, and its fields.
 * @param {OpenedQuery} query
 */
function queryHeader(query) {
  const { rows, row, list, detail } = query;
  const id = rows.ids[row];
  const text = detail?.text ?? rows.texts?.[row] ?? null;
  const fields = detail ? Object.entries(detail.fields) : fieldsOf(rows, row);
  const gold = list ? goldText(list) : "";
  /** @param {string} label @param {() => string} copied */
  const copying = (label, copied) =>
    element("button", { type: "button", onclick: () => copyText(copied()) }, label);
  return element(
    "header",
    { class: "query-title" },
    dataText("h2", { id: "query-title", tabindex: "-1" }, text ?? id, TITLE),
    text !== null && text.length > TITLE ? wholeText(text) : null,
    element(
      "p",
      { class: "query-id" },
      text === null ? null : dataText("code", {}, id, 200),
      copying("Copy link", () => location.href),
      copying("Copy command that explains the value", () => explainCommand(query)),
    ),
    element(
      "dl",
      { class: "fields" },
      fields.map(([name, value]) => fact(name, value)),
      gold ? fact("gold", gold) : null,
    ),
  );
}

/** @param {string} text */
function wholeText(text) {
  return element(
    "details",
    { class: "whole-text" },
    element("summary", {}, `Whole text (${counted(text.length, "character")})`),
    dataText("p", { class: "full", ...scrollable("Text of the query", text) }, text),
  );
}

/** @param {Rows} rows @param {number} row @returns {[string, string][]} */
function fieldsOf(rows, row) {
  return rows.fields.flatMap((field) => {
    const value = fieldText(field, row);
    /** @type {[string, string][]} */
    const known = value === null ? [] : [[field.name, value]];
    return known;
  });
}

/** @param {string} name @param {string} value */
function fact(name, value) {
  return element("div", {}, dataText("dt", {}, name, 60), dataText("dd", {}, value, 300));
}

/** @param {QueryLists} list */
function goldText({ n_wanted: counts }) {
  /** @type {Record<string, string>} */
  const names = { items: "relevant item", spans: "span", evidence: "evidence text" };
  return Object.keys(counts)
    .map((kind) => counted(counts[kind], names[kind]))
    .join(", ");
}

/**
 * The command that explains the value of the query; the reader puts in the files.
 * @param {OpenedQuery} query
 */
function explainCommand({ rows, row, state, measure }) {
  const other = state.a === null ? "" : " --other RUN_A";
  const run = state.a === null ? "RUN" : "RUN_B";
  const [name, id] = [measure.name, rows.ids[row]].map(shellWord);
  return `karat explain ${name} --gold GOLD --run ${run}${other} --query ${id}`;
}

/** @param {string} word */
function shellWord(word) {
  return /^[\w@.:/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * The reference answers of the gold and the responses of the runs.
 * @param {OpenedQuery} query
 */
function answersOf({ page, state, detail, runs }) {
  if (!detail) return null;
  const colours = runColours(page, state);
  const answers = Object.entries(detail.answers);
  const hasReference = answers.some(([name]) => REFERENCES.includes(name.toLowerCase()));
  const references = answers.map(([name, text]) => {
    // Beside a reference, an answer is what was generated.
    const lower = name.toLowerCase();
    const generated = lower === "response" || (lower === "answer" && hasReference);
    const label = generated ? "Response" : "Reference";
    const own = label.toLowerCase() === lower ? "" : ` (${name})`;
    return answer(`${label}${own}`, text, null, generated);
  });
  const responses = runs.flatMap((run) => {
    const { response } = detail.runs[run];
    if (response === null) return [];
    return [answer(`Response of ${page.runs[run]}`, response, runDot(colours[run]), true)];
  });
  const all = [...references, ...responses];
  return all.length ? element("div", { class: "answers" }, all) : null;
}

/** @param {string} label @param {string} text @param {Node | null} dot @param {boolean} generated */
function answer(label, text, dot, generated) {
  return element(
    "div",
    { class: generated ? "answer response" : "answer reference" },
    element("h3", {}, dot, dataText("span", {}, label, 100)),
    dataText("p", { class: "answer-text", ...scrollable(label, text) }, text),
  );
}

/**
 * The values of all measures; the chosen measure is marked.
 * @param {OpenedQuery} query
 */
function measureTable(query) {
  const { page, state, measure, runs } = query;
  const colours = runColours(page, state);
  const heads = runs.map((run) =>
    element(
      "th",
      { scope: "col" },
      runDot(colours[run]),
      dataText("span", {}, page.runs[run], 60),
    ),
  );
  const many = page.measures.length > MEASURES_SHOWN;
  const lines = page.measures.map((each, at) => {
    const chosen = each === measure;
    return element(
      "tr",
      { class: chosen ? "chosen" : null, hidden: many && !chosen },
      element("th", { scope: "row", title: each.title }, each.label),
      runs.map((run) => valueOf(query, at, run, "td")),
    );
  });
  const table = element(
    "table",
    { class: "measured" },
    element(
      "thead",
      {},
      element("tr", {}, element("th", { scope: "col" }, "measure"), heads),
    ),
    element("tbody", {}, lines),
  );
  table.style.setProperty("--runs", String(runs.length));
  const unfold = () => {
    for (const line of lines) line.hidden = false;
    more.remove();
  };
  const label = `show all ${page.measures.length} measures`;
  const more = element("button", { type: "button", class: "unfold", onclick: unfold }, label);
  const region = scrolling("Values of the query", table);
  return element("div", { class: "measures" }, region, many ? more : null);
}

/**
 * A value, and how it differs from that of the run that others are compared with.
 * @param {OpenedQuery} query
 * @param {number} at The measure.
 * @param {number} run
 * @param {"td" | "span"} tag
 */
function valueOf(query, at, run, tag) {
  const { page, state, row, values } = query;
  const measure = page.measures[at];
  const value = values[at][run][row];
  const known = Number.isNaN(value) ? null : String(value);
  // A failed query took hardly any time; that does not count as an improvement.
  const failed = [run, state.a ?? run].some((each) => statusOf(query, each) === FAILED_QUERY);
  const compared = state.a !== null && run !== state.a && !(failed && measure.unit !== null);
  const change = compared ? apart(value, values[at][state.a ?? run][row]) : NaN;
  return element(
    tag,
    { class: "numeric", "data-value": known },
    element("span", { class: "value" }, number(value, measure)),
    Number.isNaN(change) ? null : changeOf(change, measure),
  );
}

/** @param {number} change @param {Measure} measure */
function changeOf(change, measure) {
  if (change === 0) return element("span", { class: "change" }, "=");
  const better = change > 0 === measure.higher;
  const text = `${better ? "▲" : "▼"} ${signed(change, measure)}`;
  return element("span", { class: `change ${better ? "better" : "worse"}` }, text);
}

/** @param {OpenedQuery} query @param {number} run */
function statusOf({ rows, row }, run) {
  return rows.outcomes[run]?.status[row] ?? 0;
}

/** @param {OpenedQuery} query */
function missingDetailNote({ page, detail, list }) {
  if (!list)
    return element(
      "p",
      { class: "note" },
      "The ranked lists are not available: these scores were read from a file.",
    );
  if (detail) return null;
  const kept = counted(Object.keys(page.details).length, "query");
  return element(
    "p",
    { class: "note" },
    `This report contains texts and calculations for ${kept}. To include them for all ${grouped(page.n)}, write it with --report-texts ${page.n}.`,
  );
}

/** @param {OpenedQuery} query @param {number} run */
function runPanel(query, run) {
  const { page, state, row, values, detail, measure } = query;
  const known = detail?.runs[run] ?? null;
  const leftOut = Number.isNaN(values[state.measure][run][row]);
  const panel = element(
    "div",
    { class: "run", role: "group", "aria-label": shown(page.runs[run]) },
    element(
      "h4",
      {},
      runDot(runColours(page, state)[run]),
      dataText("span", { class: "run-name" }, page.runs[run], 80),
      element(
        "span",
        { class: "run-value", title: measure.label },
        valueOf(query, state.measure, run, "span"),
        leftOut ? " left out" : null,
      ),
    ),
    failureNote(query, run, known),
    usageOf(known),
    rankedList(query, run),
  );
  panel.style.setProperty("--run", runColours(page, state)[run]);
  return panel;
}

/**
 * The error of a query, or why it has no list.
 * @param {OpenedQuery} query
 * @param {number} run
 * @param {RunDetail | null} known
 */
function failureNote(query, run, known) {
  if (known?.error) {
    const { type, message, attempts } = known.error;
    const attempted = attempts ? ` (${counted(attempts, "attempt")})` : "";
    const text = `${type ?? "error"}: ${message ?? ""}${attempted}`;
    return element("p", { class: "failure" }, "✗ Failed: ", dataText("span", {}, text, 2000));
  }
  const status = statusOf(query, run);
  if (status === 1)
    return element("p", { class: "absent" }, "⚠ This query is not in the run.");
  if (status === FAILED_QUERY)
    return element("p", { class: "failure" }, "✗ The retriever failed on this query.");
  if (status === 3)
    return element("p", { class: "note" }, "Only the scores of this run are available.");
  return null;
}

/** @param {number | null} count @param {string} kind */
function tokenCount(count, kind) {
  return count === null ? null : counted(count, `${kind} token`);
}

/** @param {RunDetail | null} known */
function usageOf(known) {
  const timings = Object.entries(known?.timings ?? {}).map(
    ([stage, ms]) => `${stage} ${number(ms, { unit: "ms" })} ms`,
  );
  const calls = (known?.calls ?? []).map((call) => {
    const parts = [
      call.model,
      tokenCount(call.prompt_tokens, "input"),
      tokenCount(call.completion_tokens, "output"),
      call.usd === null ? null : `${number(call.usd, { unit: "USD" })} USD`,
    ];
    return `${call.stage}: ${parts.filter(Boolean).join(", ")}`;
  });
  const lines = [timings.join(" · "), ...calls].filter(Boolean);
  return lines.length
    ? element("p", { class: "usage", dir: "auto" }, shown(lines.join("\n")))
    : null;
}
