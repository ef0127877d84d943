// Sharing the list of queries: a link, a CSV file, a Markdown table.

import { LONGEST } from "./columns.js";
import { cutText, element, shownUpTo } from "./dom.js";
import { copyText, downloadCsv } from "./export.js";
import { number, signed } from "./numbers.js";
import { difference, fieldText } from "./rows.js";

/** @typedef {import("./filters.js").Filtering & { filtered: Uint32Array }} Listed */

const MARKDOWN_ROWS = 20;
const MARKDOWN_TEXT = 120; // characters of a query

/**
 * Create the buttons that share the list as it is shown.
 * @param {() => Listed} listed
 */
export function createSharing(listed) {
  const status = element("span", { class: "copied", role: "status" });
  /** @param {string} label @param {() => unknown} onclick */
  const button = (label, onclick) => element("button", { type: "button", onclick }, label);
  return element("div", { class: "sharing" }, [
    button("Copy link", () => copyText(location.href, status)),
    button("CSV", () => downloadCsv(csvName(listed()), csvRows(listed()))),
    button("Copy as Markdown", () => copyText(markdown(listed()), status)),
    status,
  ]);
}

/** @param {Listed} listed */
function csvName({ page, state }) {
  return `queries-${page.measures[state.measure].name.replace(/[^\w.@-]+/g, "_")}.csv`;
}

/**
 * The filtered queries with the values of all runs, in full digits.
 * @param {Listed} listed
 * @returns {(string | number | null)[][]}
 */
function csvRows({ page, rows, state, values, filtered }) {
  const compares = state.a !== null;
  const head = [
    "query_id",
    ...(rows.texts ? ["text"] : []),
    ...rows.fields.map(({ name }) => name),
    ...page.runs,
    ...(compares ? ["change"] : []),
  ];
  const known = (/** @type {number} */ value) => (Number.isNaN(value) ? null : value);
  const lines = Array.from(filtered, (row) => [
    rows.ids[row],
    ...(rows.texts ? [cutText(rows.texts[row] ?? "", LONGEST)] : []),
    ...rows.fields.map((field) => fieldText(field, row)),
    ...page.runs.map((_, run) => known(values[run][row])),
    ...(compares ? [known(difference(values, state, row))] : []),
  ]);
  return [head, ...lines];
}

/**
 * The first queries as a Markdown table.
 * @param {Listed} listed
 */
function markdown({ page, rows, state, values, filtered }) {
  const measure = page.measures[state.measure];
  const runs = state.a === null ? [state.b] : [state.a, state.b];
  const head = ["query", ...runs.map((run) => page.runs[run]), ...(runs.length > 1 ? ["change"] : [])];
  const lines = Array.from(filtered.subarray(0, MARKDOWN_ROWS), (row) => [
    [rows.ids[row], rows.texts?.[row]].filter(Boolean).join(": "),
    ...runs.map((run) => number(values[run][row], measure)),
    ...(runs.length > 1 ? [signed(difference(values, state, row), measure)] : []),
  ]);
  const rules = head.map((_, at) => (at ? "---:" : "---"));
  const title = `${measure.label}, ${filtered.length} of ${rows.n} queries`;
  return [title, "", ...[head, rules, ...lines].map(markdownLine), ""].join("\n");
}

/** @param {string[]} cells */
function markdownLine(cells) {
  const escaped = cells.map((cell) =>
    shownUpTo(cell.replace(/\s+/g, " "), MARKDOWN_TEXT).replace(/[\\|`*_<[\]]/g, "\\$&"),
  );
  return `| ${escaped.join(" | ")} |`;
}
