// What one run returned for a query, in its order, with what counted.

import { dataText, element, scrolling } from "./dom.js";
import { counted, grouped, number } from "./numbers.js";

const LABEL = 120; // characters of an item's name

// Show the top of the list and the hits below it, and name what is missing.
export function rankedList(query, run) {
  const { list, detail, measure } = query;
  const places = placesOf(list, run, measure.rel ?? 1);
  if (!places.length)
    return [element("p", { class: "note" }, "Nothing was retrieved."), missing(query, run, places)];
  const results = new Map((detail?.runs[run].results ?? []).map((each) => [each.rank, each]));
  const kinds = kindsOf(list, results);
  const heads = ["rank", "item", ...kinds.map(({ head }) => head)];
  const lines = places.map((place) => line(query, run, place, kinds, results.get(place.rank)));
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
    rest(list, run, places),
    missing(query, run, places),
  ];
}

// Return the places that are shown: rank, item, and what is known of it; from grade `rel` up, an
// item counts.
function placesOf(list, run, rel) {
  const hits = new Map(list.hits[run].map(([rank, ...known]) => [rank, known]));
  const top = list.lists[run].map((item, at) => [at + 1, item]);
  return [...top, ...list.below[run]].map(([rank, item]) => {
    const [grade, characters, evidence] = hits.get(rank) ?? [null, null, null];
    const hit = (grade !== null && grade >= rel) || characters > 0 || (evidence?.length ?? 0) > 0;
    return { rank, item: list.items[item], grade, characters, evidence, hit };
  });
}

// The columns that this query has anything for, over all runs, so that lists stay alike.
function kindsOf(list, results) {
  const hits = list.hits.flat();
  const has = (at) => hits.some((hit) => hit[at] !== null);
  const said = (value) => (value === null ? "" : grouped(value));
  const scores = [...results.values()].map(({ score }) => score).filter((score) => score !== null);
  const small = Math.max(...scores.map(Math.abs)) < 0.01;
  return [
    has(1) && { head: "grade", cell: ({ grade }) => said(grade) },
    has(2) && { head: "gold characters", cell: ({ characters }) => said(characters) },
    has(3) && {
      head: "evidence",
      cell: ({ evidence }) => (evidence ?? []).map((each) => each + 1).join(", "),
    },
    scores.length > 0 && {
      head: "score",
      cell: (_, result) => scoreText(result?.score ?? null, small),
    },
  ].filter(Boolean);
}

// Scores of one list with as many decimals, but for very small ones, which would all be 0.0000.
function scoreText(score, small) {
  if (score === null) return "";
  return small ? score.toPrecision(4) : number(score);
}

function line({ rows, row, measure }, run, place, kinds, result) {
  const first = rows.outcomes[run]?.first[row] === place.rank;
  const beyond = measure.cutoff !== null && place.rank > measure.cutoff;
  const ends = place.rank === measure.cutoff;
  const names = [place.hit && "hit", first && "first", beyond && "beyond", ends && "cutoff"];
  return element(
    "tr",
    { class: names.filter(Boolean).join(" ") || null },
    element("td", { class: "numeric" }, grouped(place.rank)),
    element("td", { class: "item" }, itemOf(place, result, hitMark(place, first))),
    kinds.map(({ cell }) => element("td", { class: "numeric" }, cell(place, result))),
  );
}

function hitMark({ hit }, first) {
  if (!hit && !first) return null;
  return element("span", { class: "hit-mark" }, first ? "✓ first hit" : "✓ hit");
}

// An item's name, and where it is known its text to unfold.
function itemOf(place, result, mark) {
  const name = dataText("code", {}, place.item, LABEL);
  if (!result || (result.text ?? null) === null) return [name, " ", mark];
  const where =
    result.doc_id !== null && result.start !== null
      ? `${result.doc_id}[${result.start}:${result.end}]`
      : null;
  const cut =
    result.length > result.text.length ? `… (${counted(result.length, "character")} in all)` : "";
  return element(
    "details",
    {},
    element("summary", {}, name, " ", mark),
    where && where !== place.item ? dataText("p", { class: "where" }, where, LABEL) : null,
    dataText("p", { class: "chunk" }, result.text + cut),
  );
}

function rest(list, run, places) {
  const length = list.n[run];
  if (places.length >= length) return null;
  const hidden = list.hits[run].filter(([rank]) => rank > places.at(-1).rank).length;
  const words = hidden ? `; ${counted(hidden, "judged item")} further down` : "";
  return element(
    "p",
    { class: "note" },
    `${grouped(places.length)} of ${counted(length, "rank")} shown: the top, and hits below it${words}.`,
  );
}

// Name what should have been found and was not.
function missing(query, run, places) {
  const { list } = query;
  const there = new Set(places.map(({ item }) => item));
  const known = new Set(places.map(({ rank }) => rank));
  const unnamed = list.hits[run].some(([rank]) => !known.has(rank)); // hits too far down to be named
  const items = list.wanted.filter(([item]) => !there.has(item));
  const covered = new Set(list.hits[run].flatMap(([, , , evidence]) => evidence ?? []));
  const evidence = [...Array(list.n_wanted.evidence ?? 0).keys()].filter(
    (each) => !covered.has(each),
  );
  const more = (list.n_wanted.items ?? 0) - list.wanted.length;
  const parts = [
    ...items.map(([item, grade]) =>
      element("li", {}, dataText("code", {}, item, LABEL), ` grade ${grade}`),
    ),
    ...evidence.map((each) => element("li", {}, `evidence ${each + 1}`)),
  ];
  if (!parts.length) return null;
  const head = unnamed ? "Not among those shown" : "Not found";
  const others =
    more > 0 ? element("li", {}, `${counted(more, "further relevant item")} not named here`) : null;
  return element(
    "div",
    { class: "missing" },
    element("h5", {}, head),
    element("ul", {}, parts, others),
  );
}
