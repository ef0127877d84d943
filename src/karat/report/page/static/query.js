// One query: its text and fields, each run's list side by side, how the value came about.

import { bar, choice, dataText, element, scrolling, shown } from "./dom.js";
import { detailOf, listOf } from "./data.js";
import { counted, grouped, number, signed } from "./numbers.js";
import { fieldText, valuesOf } from "./rows.js";
import { calculationOf } from "./calculation.js";
import { documentsOf } from "./highlight.js";
import { evidenceOf } from "./evidence.js";
import { rankedList } from "./ranking.js";

const SIDE_BY_SIDE = 4; // runs; of more, only the two set against each other are shown at first

// Make the view of a query, a dialog that is empty until a row is opened.
export function createView(table, { measureChosen }) {
  const content = element("div", { class: "query-content" });
  const place = element("span", { class: "place", role: "status" });
  const step = (words, by) =>
    element("button", { type: "button", onclick: () => open(neighbour(by)) }, words);
  const back = step("‹ previous", -1);
  const on = step("next ›", 1);
  const closing = element("button", { type: "button", class: "close", onclick: () => dialog.close() }, "close");
  const head = element("div", { class: "query-head" }, back, place, on, closing);
  const dialog = element("dialog", { class: "query", "aria-labelledby": "query-title" }, head, content);
  let current = null;
  let allRuns = false;

  dialog.addEventListener("close", () => {
    current = null;
    content.replaceChildren();
    // Without the part behind '#', but not by going to it: the page must not jump.
    if (location.hash.startsWith("#query=")) history.replaceState(null, "", location.pathname + location.search);
  });
  // A click beside the dialog closes it: only there is the dialog itself what was clicked.
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
    if (!dialog.open) dialog.showModal();
    history.replaceState(null, "", `#query=${encodeURIComponent(table.rows.ids[row])}`);
    await render();
    dialog.scrollTop = 0;
  }

  async function render() {
    const row = current;
    const { page, state } = table;
    const [list, detail, ...values] = await Promise.all([
      listOf(page, row),
      detailOf(page, row),
      ...page.measures.map((_, measure) => valuesOf(page, measure)),
    ]);
    if (row !== current) return; // another query was opened meanwhile
    const at = table.filtered.indexOf(row);
    place.textContent = at < 0 ? "not among the queries shown" : `${grouped(at + 1)} of ${grouped(table.filtered.length)}`;
    back.disabled = at <= 0;
    on.disabled = at < 0 || at === table.filtered.length - 1;
    const query = { ...table, row, list, detail, values, measure: page.measures[state.measure] };
    content.replaceChildren(...parts(query));
  }

  function parts(query) {
    const { page, state } = query;
    const measures = page.measures.map(({ label }, at) => [String(at), label]);
    const setMeasure = async (measure) => {
      await measureChosen(Number(measure));
      await render();
      content.querySelector("select")?.focus();
    };
    const few = page.runs.length <= SIDE_BY_SIDE || allRuns;
    const runs = few ? [...page.runs.keys()] : [...new Set([state.against, state.run])];
    const more = element("button", { type: "button", onclick: () => { allRuns = true; render(); } }, `show all ${page.runs.length} runs`);
    return [
      queryText(query),
      element("div", { class: "controls" }, choice("measure", measures, String(state.measure), setMeasure), !few && more),
      ofAllMeasures(query, runs),
      notKept(query),
      element("div", { class: "runs" }, runs.map((run) => runPanel(query, run))),
      evidenceOf(query, runs),
      documentsOf(query, runs),
    ].filter(Boolean);
  }

  return { open, close: () => dialog.open && dialog.close() };
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
      ...fields.filter(([, value]) => value !== null).map(([name, value]) => fact(name, String(value))),
      list && wantedWords(list) ? fact("to find", wantedWords(list)) : null,
    ])
  );
}

function fact(name, value) {
  return element("div", {}, dataText("dt", {}, name, 60), dataText("dd", {}, value, 300));
}

function wantedWords({ n_wanted: wanted }) {
  const words = { items: "relevant item", spans: "span", evidence: "evidence" };
  return Object.keys(wanted).map((kind) => counted(wanted[kind], words[kind])).join(", ");
}

// Every measure of the query, so that the chosen one does not stand alone.
function ofAllMeasures({ page, state, row, values, measure }, runs) {
  const heads = ["measure", ...runs.map((run) => page.runs[run])];
  const against = state.against;
  const lines = page.measures.map((each, at) => {
    const cells = runs.map((run) => {
      const value = values[at][run][row];
      const known = Number.isNaN(value) ? null : String(value);
      const moved = run === against || against === null ? NaN : value - values[at][against][row];
      const sign = moved > 0 || moved < 0 ? element("small", { class: (moved > 0) === each.higher ? "better" : "worse" }, ` ${signed(moved, each)}`) : null;
      return element("td", { class: "numeric", "data-value": known }, number(value, each), sign);
    });
    const chosen = each === measure;
    return element("tr", { class: chosen ? "chosen" : null }, element("th", { scope: "row", title: each.title }, each.label), cells);
  });
  const head = heads.map((name, at) => dataText("th", { scope: "col", class: at ? "numeric" : null }, name, 60));
  return scrolling("Values of the query", element("table", { class: "values" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, lines)));
}

function notKept({ page, detail, list }) {
  if (!list) return element("p", { class: "note" }, "The lists are not at hand: these scores were read from a file.");
  if (detail) return null;
  const kept = counted(Object.keys(page.details).length, "query");
  return element("p", { class: "note" }, `Texts and calculations are kept for ${kept}; write the report with --report-texts ${page.n} to keep them for all ${grouped(page.n)}.`);
}

function runPanel(query, run) {
  const { page, rows, row, list, detail, values, state, measure, codes } = query;
  const value = values[state.measure][run][row];
  const known = detail?.runs[run];
  return element(
    "section",
    { class: "run", "aria-label": page.runs[run] },
    dataText("h4", {}, page.runs[run], 80),
    element("p", { class: "value" }, `${measure.label} `, element("strong", {}, number(value, measure)), Number.isNaN(value) ? " left out" : null),
    happened(rows, row, run, known),
    usage(known),
    list ? rankedList(query, run) : null,
    known ? calculationOf(known.calculations[measure.name], measure) : null
  );
}

// Say what went wrong, where something did.
function happened(rows, row, run, known) {
  const status = rows.outcomes[run]?.status[row] ?? 0;
  if (known?.error) {
    const { type, message, attempts } = known.error;
    const tried = attempts ? ` (${counted(attempts, "attempt")})` : "";
    return dataText("p", { class: "failure" }, `Failed: ${type ?? "error"}: ${message ?? ""}${tried}`, 2000);
  }
  const words = [null, "This query is not in the run.", "The retriever failed on this query."][status];
  return words ? element("p", { class: "failure" }, words) : null;
}

function usage(known) {
  const timings = Object.entries(known?.timings ?? {}).map(([stage, ms]) => `${stage} ${number(ms, { unit: "ms" })} ms`);
  const calls = (known?.calls ?? []).map((call) => {
    const tokens = `${grouped(call.prompt_tokens ?? "?")} tokens in, ${grouped(call.completion_tokens ?? "?")} out`;
    const cost = call.usd === null ? "" : `, ${number(call.usd, { unit: "USD" })} USD`;
    return `${call.stage}: ${call.model}, ${tokens}${cost}`;
  });
  const lines = [timings.join(" · "), ...calls].filter(Boolean);
  return lines.length ? element("p", { class: "usage", dir: "auto" }, shown(lines.join("\n"))) : null;
}
