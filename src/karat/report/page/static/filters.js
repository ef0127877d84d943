// The filters of the list of queries.

import { grouped } from "./numbers.js";
import { OUTCOMES, difference, hasAllLists, isUnfound } from "./rows.js";

/** @typedef {import("./dom.js").Option} Option */
/** @typedef {import("./rows.js").RowField} RowField */
/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./types").PageData} PageData */
/** @typedef {{ page: PageData, rows: Rows, state: State, values: Float64Array[] }} Filtering */

export const ANY = "";
export const NO_FILTERS = { search: "", field: ANY, value: ANY, outcome: ANY, movement: ANY };
/** @type {Option[]} */
export const MOVEMENTS = [
  [ANY, "any"],
  ["better", "better"],
  ["worse", "worse"],
  ["same", "unchanged"],
];

/** @type {WeakMap<Rows, string[]>} id and text of each query, for the search */
const lowered = new WeakMap();

/**
 * One test for each filter that is set.
 * @param {Filtering} filtering
 * @returns {((row: number) => boolean)[]}
 */
export function testsOf(filtering) {
  const { state } = filtering;
  return [
    outcomeTest(filtering),
    state.field !== ANY && state.value !== ANY && fieldTest(filtering),
    state.movement !== ANY && state.a !== null && movementTest(filtering),
    state.search !== "" && searchTest(filtering),
  ].filter((test) => typeof test === "function");
}

/** @param {Filtering} filtering */
function outcomeTest({ rows, state, values }) {
  if (state.outcome === "left_out")
    return (/** @type {number} */ row) => Number.isNaN(values[state.b][row]);
  if (state.outcome === "unfound") return (/** @type {number} */ row) => isUnfound(rows, row);
  const code = OUTCOMES.findIndex(([name]) => name === state.outcome);
  const codes = rows.codes[state.b];
  return code >= 0 && codes && ((/** @type {number} */ row) => codes[row] === code);
}

/** @param {Filtering} filtering */
function fieldTest({ rows, state }) {
  const codes = rows.fields[Number(state.field)]?.codes;
  const code = Number(state.value);
  return (/** @type {number} */ row) => codes?.[row] === code;
}

/** @param {Filtering} filtering */
function movementTest({ page, state, values }) {
  const better = page.measures[state.measure].higher ? 1 : -1;
  /** @type {Record<string, number>} */
  const signs = { better, worse: -better, same: 0 };
  const sign = signs[state.movement];
  return (/** @type {number} */ row) => Math.sign(difference(values, state, row)) === sign;
}

/** @param {Filtering} filtering */
function searchTest({ rows, state }) {
  const needle = state.search.toLowerCase();
  let texts = lowered.get(rows);
  if (!texts) {
    texts = rows.ids.map((id, row) => `${id}\n${rows.texts?.[row] ?? ""}`.toLowerCase());
    lowered.set(rows, texts);
  }
  const searched = texts;
  return (/** @type {number} */ row) => searched[row].includes(needle);
}

/**
 * Return the outcomes that occur in run b, with their numbers of queries.
 * @param {Filtering} filtering
 */
export function outcomeOptions({ page, rows, state, values }) {
  /** @type {Option[]} */
  const options = [[ANY, "any"]];
  /** @param {string} name @param {string} words @param {number} count */
  const add = (name, words, count) => {
    if (count || state.outcome === name) options.push([name, `${words} (${grouped(count)})`]);
  };
  const codes = rows.codes[state.b];
  if (codes) {
    const counts = new Uint32Array(OUTCOMES.length);
    for (const code of codes) counts[code] += 1;
    OUTCOMES.forEach(([name, words], code) => add(name, words, counts[code]));
    if (page.runs.length > 1 && hasAllLists(rows)) {
      let unfound = 0;
      for (let row = 0; row < rows.n; row += 1) if (isUnfound(rows, row)) unfound += 1;
      add("unfound", "nothing found by any run", unfound);
    }
  }
  let leftOut = 0;
  for (const value of values[state.b]) if (Number.isNaN(value)) leftOut += 1;
  add("left_out", "excluded from the measure", leftOut);
  return options;
}

/**
 * Return the values of a field, with their numbers of queries.
 * @param {RowField} field
 */
export function valueOptions({ words, codes }) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const code of codes ?? []) counts.set(code, (counts.get(code) ?? 0) + 1);
  const number = (/** @type {number} */ code) => grouped(counts.get(code) ?? 0);
  /** @type {Option[]} */
  const options = (words ?? []).map((word, code) => [String(code), `${word} (${number(code)})`]);
  if (counts.has(-1)) options.push(["-1", `– (${number(-1)})`]);
  return options;
}

/**
 * Return the state that filters by name stand for; filters that are not named are cleared.
 * @param {PageData} page
 * @param {State} state
 * @param {Record<string, string | null>} named Names: run, against, measure, outcome, movement,
 *   field, value, search.
 * @returns {Partial<State>}
 */
export function namedFilters(page, state, named) {
  /** @type {Partial<State>} */
  const changes = { ...NO_FILTERS };
  const b = page.runs.indexOf(named.run ?? "");
  const a = page.runs.indexOf(named.against ?? "");
  const measure = page.measures.findIndex(({ name }) => name === named.measure);
  if (measure >= 0) changes.measure = measure;
  if (a >= 0) changes.a = a;
  if (b >= 0) Object.assign(changes, pairWith(state, "b", b), a >= 0 ? { a } : {});
  for (const name of /** @type {const} */ (["outcome", "movement", "search"]))
    changes[name] = named[name] ?? ANY;
  const field = page.fields.findIndex(({ name, words }) => words && name === named.field);
  if (field >= 0) {
    changes.field = String(field);
    const words = page.fields[field].words ?? [];
    changes.value = String(typeof named.value === "string" ? words.indexOf(named.value) : -1);
  }
  return changes;
}

/**
 * Return the compared runs after one of them was chosen; choosing the other one swaps them.
 * @param {State} state
 * @param {"a" | "b"} side
 * @param {number} run
 * @returns {Partial<State>}
 */
export function pairWith({ a, b }, side, run) {
  if (a === null) return { b: run };
  if (side === "a") return { a: run, b: run === b ? a : b };
  return { a: run === a ? b : a, b: run };
}
