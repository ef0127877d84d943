// One query: its text and fields, the lists of the runs side by side, and the calculations.

import { choice, dataText, element, scrolling, shown } from "./dom.js";
import { detailOf, listOf } from "./data.js";
import { counted, grouped, number } from "./numbers.js";
import { apart, fieldText, valuesOf } from "./rows.js";
import { differenceCell } from "./columns.js";
import { calculationOf } from "./calculation.js";
import { documentsOf } from "./documents.js";
import { evidenceOf } from "./evidence.js";
import { rankedList } from "./ranking.js";

const SIDE_BY_SIDE = 4; // with more runs, only the two compared runs are shown at first

// Create the view of a query: a dialog that is empty until a row is opened.
export function createView(table, change) {
  const content = element("div", { class: "query-content" });
  const position = element("span", { class: "position", role: "status" });
  const step = (label, by) =>
    element("button", { type: "button", onclick: () => open(neighbour(by)) }, label);
  const back = step("‹ previous", -1);
  const on = step("next ›", 1);
  const closing = element(
    "button",
    { type: "button", class: "close", onclick: () => dialog.close() },
    "close",
  );
  const head = element("div", { class: "query-head" }, back, position, on, closing);
  const dialog = element(
    "dialog",
    { class: "query", "aria-labelledby": "query-title" },
    head,
    content,
  );
  let current = null;
  let allRuns = false;

  dialog.addEventListener("close", () => {
    current = null;
    content.replaceChildren();
    // Remove the hash without navigating, so that the page does not scroll.
    if (hasQueryHash())
      history.replaceState({ closed: true }, "", location.pathname + location.search);
  });
  // A click outside closes the dialog: only then is the dialog itself the target.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });

  function neighbour(by) {
    return table.filtered[table.filtered.indexOf(current) + by];
  }

  async function open(row) {
    if (row === current) return;
    current = row;
    if (!dialog.isConnected) document.body.append(dialog);
    linkTo(table.rows.ids[row]);
    if (!dialog.open) dialog.showModal();
    await render();
    dialog.scrollTop = 0;
  }

  async function render() {
    const row = current;
    const { page, state } = table;
    const few = page.runs.length <= SIDE_BY_SIDE || allRuns;
    const runs = few ? [...page.runs.keys()] : [...new Set([state.against, state.run])];
    const [list, detail, ...values] = await Promise.all([
      listOf(page, row),
      detailOf(page, row),
      ...page.measures.map((_, measure) => valuesOf(page, measure, runs)),
    ]);
    if (row !== current) return; // another query was opened in the meantime
    const at = table.filtered.indexOf(row);
    position.textContent =
      at < 0
        ? "not in the filtered queries"
        : `${grouped(at + 1)} of ${grouped(table.filtered.length)}`;
    back.disabled = at <= 0;
    on.disabled = at < 0 || at === table.filtered.length - 1;
    const measure = page.measures[state.measure];
    content.replaceChildren(...parts({ ...table, row, list, detail, values, measure }, runs));
  }

  function parts(query, runs) {
    const { page, state } = query;
    const measures = page.measures.map(({ label }, at) => [String(at), label]);
    const setMeasure = async (measure) => {
      await change({ measure: Number(measure) });
      await render();
      content.querySelector("select")?.focus();
    };
    const showAll = () => {
      allRuns = true;
      render();
    };
    const label = `show all ${page.runs.length} runs`;
    const more = element("button", { type: "button", onclick: showAll }, label);
    return [
      queryText(query),
      element(
        "div",
        { class: "controls" },
        choice("measure", measures, String(state.measure), setMeasure),
        runs.length < page.runs.length && more,
      ),
      measureTable(query, runs),
      missingDetailNote(query),
      element(
        "div",
        { class: "runs" },
        runs.map((run) => runPanel(query, run)),
      ),
      evidenceOf(query, runs),
      documentsOf(query, runs),
    ].filter(Boolean);
  }

  return { open, close: () => dialog.open && dialog.close() };
}

function hasQueryHash() {
  return location.hash.startsWith("#query=");
}

// Put the query into the URL, so that it can be linked to and the back button closes it.
function linkTo(id) {
  const hash = `#query=${encodeURIComponent(id)}`;
  if (location.hash === hash) return;
  // Reuse the history entry of the previous query.
  const replaces = hasQueryHash() || history.state?.closed;
  history[replaces ? "replaceState" : "pushState"](null, "", hash);
}

function queryText({ rows, row, list, detail }) {
  const fields = detail
    ? Object.entries(detail.fields)
    : rows.fields.map((field) => [field.name, fieldText(field, row)]);
  const text = detail?.text ?? rows.texts?.[row];
  return element(
    "header",
    { class: "query-text" },
    element("h3", { id: "query-title" }, "Query ", dataText("code", {}, rows.ids[row], 200)),
    text ? dataText("p", { class: "full", tabindex: "0" }, text) : null,
    element("dl", { class: "fields" }, [
      ...fields
        .filter(([, value]) => value !== null)
        .map(([name, value]) => fact(name, String(value))),
      list && goldText(list) ? fact("gold", goldText(list)) : null,
    ]),
  );
}

function fact(name, value) {
  return element("div", {}, dataText("dt", {}, name, 60), dataText("dd", {}, value, 300));
}

function goldText({ n_wanted: counts }) {
  const names = { items: "relevant item", spans: "span", evidence: "evidence text" };
  return Object.keys(counts)
    .map((kind) => counted(counts[kind], names[kind]))
    .join(", ");
}

// The values of all measures for the query; the chosen measure is highlighted.
function measureTable({ page, state, row, values, measure }, runs) {
  const compared = (run) => state.against !== null && run !== state.against;
  const columnHead = (text) => dataText("th", { scope: "col", class: "numeric" }, text, 60);
  const head = runs.map((run) => [
    columnHead(page.runs[run]),
    compared(run) ? columnHead(`− ${page.runs[state.against]}`) : null,
  ]);
  const lines = page.measures.map((each, at) => {
    const cells = runs.map((run) => {
      const value = values[at][run][row];
      const known = Number.isNaN(value) ? null : String(value);
      const cell = element("td", { class: "numeric", "data-value": known }, number(value, each));
      if (!compared(run)) return cell;
      return [cell, differenceCell(apart(value, values[at][state.against][row]), each)];
    });
    const name = element("th", { scope: "row", title: each.title }, each.label);
    return element("tr", { class: each === measure ? "chosen" : null }, name, cells);
  });
  const heads = element(
    "thead",
    {},
    element("tr", {}, element("th", { scope: "col" }, "measure"), head),
  );
  const table = element("table", { class: "measured" }, heads, element("tbody", {}, lines));
  return scrolling("Values of the query", table);
}

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

function runPanel(query, run) {
  const { page, rows, row, list, detail, values, state, measure } = query;
  const value = values[state.measure][run][row];
  const known = detail?.runs[run];
  return element(
    "section",
    { class: "run", "aria-label": page.runs[run] },
    dataText("h4", {}, page.runs[run], 80),
    element(
      "p",
      { class: "run-value" },
      `${measure.label} `,
      element("strong", {}, number(value, measure)),
      Number.isNaN(value) ? " left out" : null,
    ),
    failureNote(rows, row, run, known),
    usage(known),
    list ? rankedList(query, run) : null,
    known ? calculationOf(known.calculations[measure.name], measure) : null,
  );
}

// The error of a query, or why it has no list.
function failureNote(rows, row, run, known) {
  const status = rows.outcomes[run]?.status[row] ?? 0;
  if (known?.error) {
    const { type, message, attempts } = known.error;
    const attempted = attempts ? ` (${counted(attempts, "attempt")})` : "";
    return dataText(
      "p",
      { class: "failure" },
      `Failed: ${type ?? "error"}: ${message ?? ""}${attempted}`,
      2000,
    );
  }
  const text = [
    null,
    "This query is not in the run.",
    "The retriever failed on this query.",
    "Only the scores of this run are available.",
  ][status];
  return text ? element("p", { class: "failure" }, text) : null;
}

function usage(known) {
  const timings = Object.entries(known?.timings ?? {}).map(
    ([stage, ms]) => `${stage} ${number(ms, { unit: "ms" })} ms`,
  );
  const calls = (known?.calls ?? []).map((call) => {
    const tokens = `${grouped(call.prompt_tokens ?? "?")} tokens in, ${grouped(call.completion_tokens ?? "?")} out`;
    const cost = call.usd === null ? "" : `, ${number(call.usd, { unit: "USD" })} USD`;
    return `${call.stage}: ${call.model}, ${tokens}${cost}`;
  });
  const lines = [timings.join(" · "), ...calls].filter(Boolean);
  return lines.length
    ? element("p", { class: "usage", dir: "auto" }, shown(lines.join("\n")))
    : null;
}
