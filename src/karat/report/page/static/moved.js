// The queries that changed most between two runs.

import { dataText, element } from "./dom.js";
import { grouped, number, signed } from "./numbers.js";
import { changeState } from "./state.js";

/**
 * @typedef {import("./scatter").ScatterData} ScatterData
 * @typedef {import("./pairs").PairedQuery} PairedQuery
 */

const MOST_MOVED = 5;
const MOVED_TEXT = 240;

/**
 * List the largest improvements and degradations in a container.
 * @param {HTMLElement} container
 * @param {ScatterData} data
 */
export function showMoved(container, data) {
  const ordered = data.queries.filter(({ gain }) => gain !== 0);
  ordered.sort((one, other) => other.gain - one.gain || one.row - other.row);
  const better = ordered.filter(({ gain }) => gain > 0);
  const worse = ordered.filter(({ gain }) => gain < 0);
  worse.sort((one, other) => one.gain - other.gain || one.row - other.row);
  container.replaceChildren(
    movedList(data, better, "better"),
    movedList(data, worse, "worse"),
  );
}

/** @param {ScatterData} data @param {PairedQuery[]} queries @param {"better"|"worse"} kind */
function movedList(data, queries, kind) {
  const name = data.page.runs[data.b];
  const title =
    kind === "better" ? `▲ Largest improvements in ${name}` : `▼ Largest degradations in ${name}`;
  const head = dataText("h3", { class: kind }, title, 100);
  if (!queries.length) {
    const none = kind === "better" ? "No query improved." : "No query got worse.";
    return element("div", { class: "moved" }, head, element("p", { class: "note" }, none));
  }
  const shownQueries = queries.slice(0, MOST_MOVED);
  const all = `show all ${grouped(queries.length)} ${kind === "better" ? "improved" : "degraded"} ${queries.length === 1 ? "query" : "queries"}`;
  return element(
    "div",
    { class: "moved" },
    head,
    element("ol", {}, shownQueries.map((query) => movedQuery(data, query, kind))),
    queries.length > MOST_MOVED
      ? element("button", { type: "button", class: "all", onclick: () => showAll(kind) }, all)
      : null,
  );
}

/** @param {ScatterData} data @param {PairedQuery} query @param {"better"|"worse"} kind */
function movedQuery({ measure, ids, texts }, { row, a, b, difference }, kind) {
  const id = ids[row];
  const text = texts?.[row];
  return element(
    "li",
    {},
    element(
      "button",
      { type: "button", class: "open-query", onclick: () => changeState({ query: id }) },
      dataText("code", {}, id, 60),
    ),
    text ? dataText("span", { class: "text" }, text, MOVED_TEXT) : null,
    element(
      "span",
      { class: "change", "data-value": String(difference) },
      `${number(a, measure)} → ${number(b, measure)} `,
      element("strong", { class: kind }, `${kind === "better" ? "▲" : "▼"} ${signed(difference, measure)}`),
    ),
  );
}

/** @param {"better"|"worse"} movement */
function showAll(movement) {
  changeState({ movement, search: "", outcome: "", field: "", value: "" });
  document.getElementById("queries")?.scrollIntoView();
}
