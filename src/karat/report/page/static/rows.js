// The queries as rows: sort keys and filters. A row is an index into the columns.

import { column } from "./data.js";

/** @typedef {import("./types").PageData} PageData */
/** @typedef {Float64Array[]} Values The values of a measure, by run and row. */
/**
 * @typedef {object} RowField A field of the queries: words and codes, or texts.
 * @property {string} name
 * @property {string[] | null} words
 * @property {Int32Array | null} codes
 * @property {(string | null)[] | null} texts
 */
/**
 * @typedef {object} RunOutcome What a run found, by row.
 * @property {Uint8Array} status
 * @property {Int32Array} found
 * @property {Int32Array} first The rank of the first hit; 0: none.
 */
/**
 * @typedef {object} Rows
 * @property {number} n
 * @property {string[]} ids
 * @property {(string | null)[] | null} texts
 * @property {RowField[]} fields
 * @property {Int32Array} wanted
 * @property {RunOutcome[]} outcomes
 * @property {Uint8Array[]} codes For each run, the index in OUTCOMES by row.
 */

/** @type {[name: string, words: string][]} */
export const OUTCOMES = [
  ["nothing", "nothing found"],
  ["some", "some found"],
  ["all", "everything found"],
  ["failed", "failed"],
  ["missing", "not in the run"],
  ["empty", "no gold"],
  ["unknown", "list not available"],
];
const OUTCOME_CODES = Object.fromEntries(OUTCOMES.map(([name], code) => [name, code]));
// The status of a query; 0: the run answered it.
const MISSING = 1;
const FAILED = 2;
const SCORES_ONLY = 3;
const ROUNDING = 1e-12;

/**
 * Unpack the columns that every view needs; values are unpacked when a measure is chosen.
 * @param {PageData} page
 * @returns {Promise<Rows>}
 */
export async function openRows(page) {
  const fields = page.fields.map(async ({ name, words, codes, texts }) => ({
    name,
    words,
    codes: codes === null ? null : await column(codes, Int32Array),
    texts: texts === null ? null : await column(texts),
  }));
  const outcomes = page.outcomes.map(async (each) => {
    const [status, found, first] = await Promise.all([
      column(each.status, Uint8Array),
      column(each.found, Int32Array),
      column(each.first, Int32Array),
    ]);
    return { status, found, first };
  });
  const [ids, texts, wanted] = await Promise.all([
    column(page.ids),
    page.texts === null ? null : column(page.texts),
    column(page.wanted, Int32Array),
  ]);
  const rows = {
    n: page.n,
    ids,
    texts,
    fields: await Promise.all(fields),
    wanted,
    outcomes: await Promise.all(outcomes),
  };
  return { ...rows, codes: rows.outcomes.map((each) => outcomeCodes(each, wanted)) };
}

/**
 * Return the values of one measure for some runs, at the index of each run.
 * @param {PageData} page
 * @param {number} measure
 * @param {number[]} runs
 */
export async function valuesOf(page, measure, runs) {
  /** @type {Values} */
  const values = [];
  const read = async (/** @type {number} */ run) => {
    values[run] = await column(page.values[run][measure], Float64Array);
  };
  await Promise.all(runs.map(read));
  return values;
}

/**
 * Return for each query its index in OUTCOMES.
 * @param {RunOutcome} outcome
 * @param {Int32Array} wanted
 */
function outcomeCodes({ status, found }, wanted) {
  return status.map((each, row) => {
    if (each === FAILED) return OUTCOME_CODES.failed;
    if (each === MISSING) return OUTCOME_CODES.missing;
    if (each === SCORES_ONLY) return OUTCOME_CODES.unknown;
    if (wanted[row] === 0) return OUTCOME_CODES.empty;
    if (found[row] === 0) return OUTCOME_CODES.nothing;
    return found[row] < wanted[row] ? OUTCOME_CODES.some : OUTCOME_CODES.all;
  });
}

/** @param {RowField} field @param {number} row @returns {string | null} */
export function fieldText({ words, codes, texts }, row) {
  return words && codes ? (words[codes[row]] ?? null) : (texts?.[row] ?? null);
}

/**
 * Whether the lists of all runs are available, so that 'found by no run' is known.
 * @param {Rows} rows
 */
export function hasAllLists(rows) {
  return rows.outcomes.every(({ status }) => status[0] !== SCORES_ONLY);
}

/**
 * Whether no run found anything for a query with gold.
 * @param {Rows} rows
 * @param {number} row
 */
export function isUnfound(rows, row) {
  return rows.wanted[row] > 0 && rows.outcomes.every(({ found }) => found[row] === 0);
}

/**
 * Whether a run failed on a query.
 * @param {Rows} rows
 * @param {number} run
 * @param {number} row
 */
export function hasFailed(rows, run, row) {
  return rows.outcomes[run]?.status[row] === FAILED;
}

/**
 * The change of a query from run a to run b; NaN if there is no run a.
 * @param {Values} values
 * @param {{ a: number | null, b: number }} compared
 * @param {number} row
 */
export function difference(values, { a, b }, row) {
  return a === null ? NaN : apart(values[b][row], values[a][row]);
}

/**
 * The difference of two values; 0 if it is only rounding, with the tolerance of stats/pairs.py, so
 * that page and charts agree on the number of changed queries.
 * @param {number} value
 * @param {number} other
 */
export function apart(value, other) {
  const difference = value - other;
  return Math.abs(difference) <= ROUNDING * Math.max(Math.abs(value), Math.abs(other))
    ? 0
    : difference;
}

/**
 * A number for each row. A loop is ten times as fast as `from` with an iterator.
 * @param {number} n
 * @param {(row: number) => number} numberOf
 */
export function numbersOf(n, numberOf) {
  const numbers = new Float64Array(n);
  for (let row = 0; row < n; row += 1) numbers[row] = numberOf(row);
  return numbers;
}

/** @param {number} n */
function allRows(n) {
  const rows = new Uint32Array(n);
  for (let row = 0; row < n; row += 1) rows[row] = row;
  return rows;
}

/**
 * Sort all rows by their keys; NaN comes last in both directions, ties keep their order.
 * @param {Float64Array} keys
 * @param {boolean} descending
 */
export function sortedRows(keys, descending) {
  const sign = descending ? -1 : 1;
  const sortKeys = numbersOf(keys.length, (row) =>
    Number.isNaN(keys[row]) ? Infinity : sign * keys[row],
  );
  const order = allRows(keys.length);
  // Infinity - Infinity is NaN, which is falsy, so that the row index decides.
  return order.sort((a, b) => sortKeys[a] - sortKeys[b] || a - b);
}

/**
 * Return sort keys of texts; numbers inside texts sort by value.
 * @param {(string | null)[]} texts
 */
export function textKeys(texts) {
  const { compare } = new Intl.Collator("en", { numeric: true });
  const order = allRows(texts.length).sort(
    (a, b) => compare(texts[a] ?? "", texts[b] ?? "") || a - b,
  );
  const positions = new Uint32Array(texts.length);
  order.forEach((row, position) => {
    const before = order[position - 1];
    const same = position > 0 && texts[row] === texts[before];
    positions[row] = same ? positions[before] : position;
  });
  return numbersOf(texts.length, (row) => (texts[row] === null ? NaN : positions[row]));
}

/**
 * Return the rows that pass every test, in their order.
 * @param {Uint32Array} order
 * @param {((row: number) => boolean)[]} tests
 */
export function passing(order, tests) {
  if (!tests.length) return order;
  return order.filter((row) => tests.every((test) => test(row)));
}
