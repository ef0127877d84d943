// The ranked list of one run for a query, with its hits.

import { dataText, element, scrolling } from "./dom.js";
import { counted, grouped, number } from "./numbers.js";

const LABEL = 120; // characters of an item name

// Show the top of the list, the hits below it, and the missing items.
export function rankedList(query, run) {
  const { list, detail, measure } = query;
  const items = shownItems(list, run, measure.rel ?? 1);
  if (!items.length)
    return [element("p", { class: "note" }, "Nothing was retrieved."), missing(query, run, items)];
  const results = new Map((detail?.runs[run].results ?? []).map((each) => [each.rank, each]));
  const kinds = extraColumns(list, results);
  const heads = ["rank", "item", ...kinds.map(({ head }) => head)];
  const first = items.find(({ hit }) => hit)?.rank;
  const lines = items.map((item) =>
    line(query.measure, item, item.rank === first, kinds, results.get(item.rank)),
  );
  const head = heads.map((words) =>
    element("th", { scope: "col", class: words === "item" ? null : "numeric" }, words),
  );
  return [
    scrolling(
      "Ranked list",
      element(
        "table",
        { class: "ranking" },
        element("thead", {}, element("tr", {}, head)),
        element("tbody", {}, lines),
      ),
    ),
    rest(list, run, items),
    missing(query, run, items),
  ];
}

// Return the shown items with rank, grade, characters and evidence texts; an item is a hit if its
// grade is at least `rel`, or if it covers gold text.
function shownItems(list, run, rel) {
  const hits = new Map(list.hits[run].map(([rank, ...known]) => [rank, known]));
  const top = list.lists[run].map((item, at) => [at + 1, item]);
  return [...top, ...list.below[run]].map(([rank, item]) => {
    const [grade, characters, evidence] = hits.get(rank) ?? [null, null, null];
    const hit = (grade !== null && grade >= rel) || characters > 0 || (evidence?.length ?? 0) > 0;
    return { rank, item: list.items[item], grade, characters, evidence, hit };
  });
}

// The columns that any run has data for in this query, so that all lists have the same ones.
function extraColumns(list, results) {
  const hits = list.hits.flat();
  const has = (at) => hits.some((hit) => hit[at] !== null);
  const text = (value) => (value === null ? "" : grouped(value));
  const scores = [...results.values()].map(({ score }) => score).filter((score) => score !== null);
  const small = Math.max(...scores.map(Math.abs)) < 0.01;
  return [
    has(1) && { head: "grade", cell: ({ grade }) => text(grade) },
    has(2) && { head: "gold characters", cell: ({ characters }) => text(characters) },
    has(3) && {
      head: "evidence texts",
      cell: ({ evidence }) => (evidence ?? []).map((each) => each + 1).join(", "),
    },
    scores.length > 0 && {
      head: "score",
      cell: (_, result) => scoreText(result?.score ?? null, small),
    },
  ].filter(Boolean);
}

// Scores of a list have equally many decimals, except very small ones, which would be 0.0000.
function scoreText(score, small) {
  if (score === null) return "";
  return small ? score.toPrecision(4) : number(score, undefined, 4);
}

function line(measure, item, first, kinds, result) {
  const beyond = measure.cutoff !== null && item.rank > measure.cutoff;
  const ends = item.rank === measure.cutoff;
  const names = [item.hit && "hit", first && "first", beyond && "beyond", ends && "cutoff"];
  return element(
    "tr",
    { class: names.filter(Boolean).join(" ") || null },
    element("td", { class: "numeric" }, grouped(item.rank)),
    element("td", { class: "item" }, itemOf(item, result, hitMark(item, first))),
    kinds.map(({ cell }) => element("td", { class: "numeric" }, cell(item, result))),
  );
}

function hitMark({ hit }, first) {
  if (!hit) return null;
  return element("span", { class: "hit-mark" }, first ? "✓ first hit" : "✓ hit");
}

// The name of an item, with its text to expand if it is known.
function itemOf(item, result, mark) {
  const name = dataText("code", {}, item.item, LABEL);
  if (!result || (result.text ?? null) === null) return [name, " ", mark];
  const where =
    result.doc_id !== null && result.start !== null
      ? `${result.doc_id}[${result.start}:${result.end}]`
      : null;
  const cut =
    result.length > result.text.length ? `… (${counted(result.length, "character")} in total)` : "";
  return element(
    "details",
    {},
    element("summary", {}, name, " ", mark),
    where && where !== item.item ? dataText("p", { class: "where" }, where, LABEL) : null,
    dataText("p", { class: "chunk" }, result.text + cut),
  );
}

function rest(list, run, items) {
  const length = list.n[run];
  if (items.length >= length) return null;
  const hidden = list.hits[run].filter(([rank]) => rank > items.at(-1).rank).length;
  const more = hidden ? `; ${counted(hidden, "judged item")} below` : "";
  return element(
    "p",
    { class: "note" },
    `${grouped(items.length)} of ${counted(length, "rank")} shown: the top of the list and hits below it${more}.`,
  );
}

// List the gold that was not found.
function missing(query, run, items) {
  const { list } = query;
  const shownNames = new Set(items.map(({ item }) => item));
  const shownRanks = new Set(items.map(({ rank }) => rank));
  const hasHiddenHits = list.hits[run].some(([rank]) => !shownRanks.has(rank));
  const notShown = list.wanted.filter(([item]) => !shownNames.has(item));
  const covered = new Set(list.hits[run].flatMap(([, , , evidence]) => evidence ?? []));
  const evidence = [...Array(list.n_wanted.evidence ?? 0).keys()].filter(
    (each) => !covered.has(each),
  );
  const more = (list.n_wanted.items ?? 0) - list.wanted.length;
  const parts = [
    ...notShown.map(([item, grade]) =>
      element("li", {}, dataText("code", {}, item, LABEL), ` grade ${grade}`),
    ),
    ...evidence.map((each) => element("li", {}, `evidence text ${each + 1}`)),
  ];
  if (!parts.length) return null;
  const head = hasHiddenHits ? "Not in the shown part of the list" : "Not found";
  const others =
    more > 0 ? element("li", {}, `${counted(more, "further relevant item")} not listed`) : null;
  return element(
    "div",
    { class: "missing" },
    element("h5", {}, head),
    element("ul", {}, parts, others),
  );
}
