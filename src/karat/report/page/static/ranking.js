// The ranked lists of the runs side by side: hits, snippets, and how items moved between lists.

import { dataText, element, shown } from "./dom.js";
import { counted, grouped, number } from "./numbers.js";

/** @typedef {import("./query.js").OpenedQuery} OpenedQuery */
/** @typedef {import("./types").QueryLists} QueryLists */
/** @typedef {import("./types").ListedResult} Result */
/**
 * @typedef {object} ListedItem
 * @property {number} rank
 * @property {number} item The index in the items of the query.
 * @property {number | null} grade
 * @property {number | null} characters New gold characters.
 * @property {number[] | null} evidence Numbers of the covered evidence texts.
 * @property {boolean} hit
 */

const ITEM_NAME = 120; // characters of an item name
const SNIPPET = 120; // characters of a snippet
const BEFORE_GOLD = 30; // characters before gold that is too far down for the snippet

/**
 * Show the top of the list of a run, the hits below it, and what is missing.
 * @param {OpenedQuery} query
 * @param {number} run
 */
export function rankedList(query, run) {
  const { list } = query;
  if (!list) return null;
  const items = listedItems(query, run);
  const { a } = query.state;
  const before = a === null || run === a ? null : ranksOf(list, a);
  // Runs with different chunks have no item in common: everything would be new.
  const comparable = items.some(({ item }) => before?.has(item));
  const note = before?.size && items.length && !comparable ? noSharedItem(query) : null;
  const parts = [
    note,
    comparable ? lostItems(query, run) : null,
    missingGold(query, run, items),
  ];
  if (!items.length)
    return [element("p", { class: "note" }, "Nothing was retrieved."), ...parts];
  const most = lastCounted(query, run);
  const lines = items.flatMap((item, at) => {
    const card = itemCard(query, run, item, comparable ? before : null);
    const ends = item.rank <= most && (items[at + 1]?.rank ?? Infinity) > most;
    return ends && list.n[run] > most ? [card, cutoffLine(query)] : [card];
  });
  /** @type {HTMLElement} */
  const ranking = element(
    "ol",
    {
      class: "ranking",
      "aria-label": shown(`Items of ${query.page.runs[run]}`),
      onkeydown: (/** @type {KeyboardEvent} */ event) => moveInList(ranking, event),
    },
    lines,
  );
  ranking.querySelector("[data-stop]")?.setAttribute("tabindex", "0");
  return [ranking, restOfList(list, run, items), ...parts];
}

/**
 * The last rank that the chosen measure reads: its cutoff, or where its character budget ends.
 * @param {OpenedQuery} query
 * @param {number} run
 */
export function lastCounted({ measure, detail }, run) {
  if (measure.cutoff !== null) return measure.cutoff;
  if (measure.budget === null) return Infinity;
  let characters = 0;
  for (const { rank, start, end } of detail?.runs[run].results ?? []) {
    if (characters >= measure.budget) return rank - 1;
    characters += (end ?? 0) - (start ?? 0);
  }
  return Infinity;
}

/**
 * Return the shown items; one is a hit if its grade is at least that of the measure, or if it
 * covers gold text.
 * @param {OpenedQuery} query
 * @param {number} run
 * @returns {ListedItem[]}
 */
function listedItems({ list, measure }, run) {
  if (!list) return [];
  /** @type {Map<number, [number | null, number | null, number[] | null]>} */
  const hits = new Map(list.hits[run].map(([rank, ...known]) => [rank, known]));
  return placesOf(list, run).map(([rank, item]) => {
    const [grade, characters, evidence] = hits.get(rank) ?? [null, null, null];
    const relevant = grade !== null && grade >= (measure.rel ?? 1);
    const hit = relevant || (characters ?? 0) > 0 || (evidence?.length ?? 0) > 0;
    return { rank, item, grade, characters, evidence, hit };
  });
}

/** @param {QueryLists} list @param {number} run @returns {[rank: number, item: number][]} */
function placesOf(list, run) {
  /** @type {[number, number][]} */
  const top = list.lists[run].map((item, at) => [at + 1, item]);
  return [...top, ...list.below[run]];
}

/**
 * Return the first rank of each shown item of a run.
 * @param {QueryLists} list
 * @param {number} run
 */
function ranksOf(list, run) {
  /** @type {Map<number, number>} */
  const ranks = new Map();
  for (const [rank, item] of placesOf(list, run)) if (!ranks.has(item)) ranks.set(item, rank);
  return ranks;
}

/**
 * One item as a card: rank, movement, name, hit, score, and its text.
 * @param {OpenedQuery} query
 * @param {number} run
 * @param {ListedItem} item
 * @param {Map<number, number> | null} before The ranks in the run that this one is compared with.
 */
function itemCard(query, run, item, before) {
  const { list, detail } = query;
  const result = detail?.runs[run].results.find(({ rank }) => rank === item.rank);
  const name = list?.items[item.item] ?? "";
  const kinds = ["result", item.hit && "hit", item.rank > lastCounted(query, run) && "beyond"];
  const text = result?.text ?? null;
  return element(
    "li",
    {
      class: kinds.filter(Boolean).join(" "),
      "data-item": item.item,
      "data-rank": item.rank,
      "data-stop": text === null,
      tabindex: text === null ? "-1" : null,
    },
    element("span", { class: "rank" }, grouped(item.rank)),
    element(
      "div",
      { class: "item" },
      element(
        "p",
        { class: "item-head" },
        before ? movementBadge(query, item, before) : null,
        dataText("code", {}, name, ITEM_NAME),
        " ",
        hitBadge(item),
        scoreText(query, run, result?.score ?? null),
      ),
      result && text !== null ? textOfItem(query, result, text, name) : null,
    ),
  );
}

/** @param {ListedItem} item */
function hitBadge({ grade, characters, evidence, hit }) {
  const gold = [
    characters ? counted(characters, "gold character") : "",
    evidence?.length ? `evidence ${evidence.map((each) => each + 1).join(", ")}` : "",
  ];
  const found = gold.filter(Boolean).join(", ");
  if (hit && grade !== null)
    return element("span", { class: "hit-badge", title: found || null }, `✓ grade ${grade}`);
  if (hit)
    return element(
      "span",
      { class: "hit-badge", title: found },
      evidence?.length ? `✓ ${gold[1]}` : "✓ gold",
    );
  return grade === null ? null : element("span", { class: "grade" }, `grade ${grade}`);
}

/**
 * How an item moved against the compared run: up, down, the same rank, or new.
 * @param {OpenedQuery} query
 * @param {ListedItem} item
 * @param {Map<number, number>} before
 */
function movementBadge({ page, state, list }, { item, rank, hit }, before) {
  const other = page.runs[state.a ?? 0];
  const was = before.get(item);
  if (was === undefined) {
    const whole = list && list.n[state.a ?? 0] <= before.size;
    const where = whole ? `not in the list of ${other}` : `not in the shown list of ${other}`;
    return badge("new", "new", where, hit ? "better" : "");
  }
  const known = `rank ${grouped(was)} in ${other}`;
  if (was === rank) return badge("=", "unmoved", known, "");
  const up = was > rank;
  const text = `${up ? "▲" : "▼"}${grouped(Math.abs(was - rank))}`;
  return badge(text, up ? "up" : "down", known, hit ? (up ? "better" : "worse") : "");
}

/** @param {string} text @param {string} kind @param {string} title @param {string} judgement */
function badge(text, kind, title, judgement) {
  const label = shown(title);
  const attributes = { class: `moved ${kind} ${judgement}`.trim(), title: label };
  return element(
    "span",
    attributes,
    text,
    element("span", { class: "visually-hidden" }, `, ${label}`),
  );
}

/**
 * Scores of a list have equally many decimals, except very small ones, which would be 0.
 * @param {OpenedQuery} query
 * @param {number} run
 * @param {number | null} score
 */
function scoreText({ detail }, run, score) {
  if (score === null) return null;
  const scores = (detail?.runs[run].results ?? []).map((each) => Math.abs(each.score ?? 0));
  const text = Math.max(...scores) < 0.01 ? score.toPrecision(3) : number(score);
  return element("span", { class: "score", title: `score ${score}` }, text);
}

/**
 * The snippet of an item, which unfolds to its whole text; gold is marked in both.
 * @param {OpenedQuery} query
 * @param {Result} result
 * @param {number} at The number of the text.
 * @param {string} name
 */
function textOfItem(query, { doc_id, start, end, gold, length }, at, name) {
  const characters = [...query.chunk(at)];
  const place = doc_id !== null && start !== null ? `${doc_id}[${start}:${end}]` : null;
  const missing = (length ?? 0) - characters.length;
  const cut = missing > 0 ? ` … ${counted(missing, "further character")}` : "";
  return element(
    "details",
    { class: "chunk-text" },
    element(
      "summary",
      { "data-stop": true, tabindex: "-1" },
      element("span", { class: "snippet", dir: "auto" }, snippetOf(characters, gold)),
      element("span", { class: "less" }, "less"),
    ),
    place !== null && place !== name ? dataText("p", { class: "where" }, place, ITEM_NAME) : null,
    element("p", { class: "chunk", dir: "auto" }, markedText(characters, gold), cut),
  );
}

/**
 * The beginning of a text; if gold comes later, a short beginning and the text around the gold.
 * @param {string[]} characters
 * @param {[number, number][]} gold
 */
function snippetOf(characters, gold) {
  const first = gold[0]?.[0] ?? 0;
  const from = first > SNIPPET - BEFORE_GOLD ? first - BEFORE_GOLD : 0;
  const to = Math.min(characters.length, from + SNIPPET);
  return [
    from > 0 ? "… " : null,
    ...markedText(characters, gold, from, to),
    to < characters.length ? "…" : null,
  ];
}

/**
 * A part of a text with gold marked.
 * @param {string[]} characters The code points of the text.
 * @param {[number, number][]} gold
 * @param {number} [from]
 * @param {number} [to]
 */
export function markedText(characters, gold, from = 0, to = characters.length) {
  /** @type {(Node | string)[]} */
  const parts = [];
  let at = from;
  /** @param {number} start @param {number} end */
  const part = (start, end) => shown(characters.slice(start, end).join("").replaceAll("\r\n", "\n"));
  for (const [start, end] of gold) {
    const [begin, stop] = [Math.max(start, at), Math.min(end, to)];
    if (begin >= stop) continue;
    parts.push(part(at, begin), element("mark", { class: "found" }, part(begin, stop)));
    at = stop;
  }
  parts.push(part(at, to));
  return parts;
}

/** @param {OpenedQuery} query */
function cutoffLine({ measure }) {
  const text =
    measure.cutoff === null
      ? `cutoff ${grouped(measure.budget ?? 0)} characters`
      : `cutoff ${grouped(measure.cutoff)}`;
  return element("li", { class: "cutoff" }, element("span", {}, text));
}

/** @param {OpenedQuery} query */
function noSharedItem({ page, state }) {
  const text = `No item is also in the list of ${page.runs[state.a ?? 0]}.`;
  return element("p", { class: "note" }, shown(text));
}

/**
 * What the compared run has in its top, and this one has not.
 * @param {OpenedQuery} query
 * @param {number} run
 */
function lostItems(query, run) {
  const { page, list, state } = query;
  const other = state.a;
  if (other === null || !list) return null;
  const own = ranksOf(list, run);
  const most = lastCounted(query, run);
  const lost = listedItems(query, other).filter(
    ({ item, rank }) =>
      rank <= Math.min(lastCounted(query, other), list.lists[other].length) &&
      (own.get(item) ?? Infinity) > most,
  );
  if (!lost.length) return null;
  const lines = lost.map(({ item, rank, hit }) => {
    const now = own.get(item);
    const places = `${grouped(rank)} in ${page.runs[other]}${now ? `, ${grouped(now)} here` : ""}`;
    return element(
      "li",
      { class: hit ? "hit" : null, "data-item": item, title: shown(`rank ${places}`) },
      hit ? "✓ " : null,
      dataText("code", {}, list.items[item], ITEM_NAME),
      element("small", {}, shown(` ${places}`)),
    );
  });
  const head = `In ${page.runs[other]}, but not here`;
  return element(
    "div",
    { class: "lost" },
    dataText("h5", {}, head, ITEM_NAME),
    element("ul", {}, lines),
  );
}

/** @param {QueryLists} list @param {number} run @param {ListedItem[]} items */
function restOfList(list, run, items) {
  const length = list.n[run];
  if (items.length >= length) return null;
  const last = items[items.length - 1].rank;
  const hidden = list.hits[run].filter(([rank]) => rank > last).length;
  const more = hidden ? ` ${counted(hidden, "more judged item")} further down.` : "";
  const text = `Shown: ${grouped(items.length)} of ${counted(length, "rank")}, the top of the list and the first hits below it.${more}`;
  return element("p", { class: "note" }, text);
}

/**
 * The gold that was not found.
 * @param {OpenedQuery} query
 * @param {number} run
 * @param {ListedItem[]} items
 */
function missingGold({ list }, run, items) {
  if (!list) return null;
  const shownNames = new Set(items.map(({ item }) => list.items[item]));
  const shownRanks = new Set(items.map(({ rank }) => rank));
  const hasHiddenHits = list.hits[run].some(([rank]) => !shownRanks.has(rank));
  const notShown = list.wanted.filter(([item]) => !shownNames.has(item));
  const covered = new Set(list.hits[run].flatMap(([, , , evidence]) => evidence ?? []));
  const evidence = [...Array(list.n_wanted.evidence ?? 0).keys()].filter(
    (each) => !covered.has(each),
  );
  const relevant = new Set(list.wanted.map(([item]) => item));
  const shownOthers = items.filter(({ item, hit }) => hit && !relevant.has(list.items[item])).length;
  const more = (list.n_wanted.items ?? 0) - list.wanted.length - shownOthers;
  const lines = [
    ...notShown.map(([name, grade]) => {
      const item = list.items.indexOf(name);
      return element(
        "li",
        { "data-item": item < 0 ? null : item },
        dataText("code", {}, name, ITEM_NAME),
        ` grade ${grade}`,
      );
    }),
    ...evidence.map((each) => element("li", {}, `evidence text ${each + 1}`)),
  ];
  if (!lines.length) return null;
  const others =
    more > 0 ? element("li", {}, `and ${counted(more, "more relevant item")}`) : null;
  return element(
    "div",
    { class: "missing" },
    element("h5", {}, hasHiddenHits ? "Not in the shown part of the list" : "Not found"),
    element("ul", {}, lines, others),
  );
}

/**
 * Up, Down, Home and End move between the items of a list, which is one stop of the Tab key.
 * @param {HTMLElement} ranking
 * @param {KeyboardEvent} event
 */
function moveInList(ranking, event) {
  const stops = /** @type {HTMLElement[]} */ ([...ranking.querySelectorAll("[data-stop]")]);
  const at = stops.findIndex((stop) => stop === document.activeElement);
  /** @type {Record<string, number>} */
  const targets = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: stops.length - 1 };
  const target = at < 0 ? undefined : stops[targets[event.key]];
  if (!target) return;
  event.preventDefault();
  stops[at].setAttribute("tabindex", "-1");
  target.setAttribute("tabindex", "0");
  target.focus();
}
