// The queries as rows: sort keys and filters. A row is an index into the columns.

import { column } from "./data.js";

export const OUTCOMES = [
  ["nothing", "nothing found"],
  ["some", "some found"],
  ["all", "everything found"],
  ["failed", "failed"],
  ["missing", "not in the run"],
  ["empty", "no gold"],
  ["unknown", "list not available"],
];
// The status of a query; 0: the run answered it.
const MISSING = 1;
const FAILED = 2;
const SCORES_ONLY = 3;
const ROUNDING = 1e-12;

// Unpack the columns that every view needs; values are unpacked when a measure is chosen.
export async function openRows(page) {
  const fields = page.fields.map(async (field) => ({
    name: field.name,
    words: field.words ?? null,
    codes: field.words ? await column(field.codes, Int32Array) : null,
    texts: field.words ? null : await column(field.texts),
  }));
  const outcomes = page.outcomes.map(async (each) => ({
    status: await column(each.status, Uint8Array),
    found: await column(each.found, Int32Array),
    first: await column(each.first, Int32Array),
  }));
  const rows = {
    n: page.n,
    ids: await column(page.ids),
    texts: page.texts === null ? null : await column(page.texts),
    fields: await Promise.all(fields),
    wanted: await column(page.wanted, Int32Array),
    outcomes: await Promise.all(outcomes),
  };
  rows.codes = rows.outcomes.map((each) => outcomeCodes(each, rows.wanted));
  return rows;
}

// Return the values of one measure for some runs, at the index of each run.
export async function valuesOf(page, measure, runs) {
  const values = [];
  const read = async (run) => {
    values[run] = await column(page.values[run][measure], Float64Array);
  };
  await Promise.all(runs.map(read));
  return values;
}

// Return for each query its index in OUTCOMES.
function outcomeCodes({ status, found }, wanted) {
  const at = Object.fromEntries(OUTCOMES.map(([name], code) => [name, code]));
  return status.map((each, row) => {
    if (each === FAILED) return at.failed;
    if (each === MISSING) return at.missing;
    if (each === SCORES_ONLY) return at.unknown;
    if (wanted[row] === 0) return at.empty;
    if (found[row] === 0) return at.nothing;
    return found[row] < wanted[row] ? at.some : at.all;
  });
}

export function fieldText(field, row) {
  return field.words ? (field.words[field.codes[row]] ?? null) : field.texts[row];
}

// Whether the lists of all runs are available, so that 'found by no run' is known.
export function hasAllLists(rows) {
  return rows.outcomes.every(({ status }) => status[0] !== SCORES_ONLY);
}

// Whether no run found anything for a query with gold.
export function isUnfound(rows, row) {
  return rows.wanted[row] > 0 && rows.outcomes.every(({ found }) => found[row] === 0);
}

export function difference(values, state, row) {
  return apart(values[state.run][row], values[state.against][row]);
}

// The difference of two values; 0 if it is only rounding, with the tolerance of stats/pairs.py, so
// that page and charts agree on the number of changed queries.
export function apart(value, other) {
  const difference = value - other;
  return Math.abs(difference) <= ROUNDING * Math.max(Math.abs(value), Math.abs(other))
    ? 0
    : difference;
}

// A number for each row. A loop is ten times as fast as `from` with an iterator.
export function numbersOf(n, numberOf) {
  const numbers = new Float64Array(n);
  for (let row = 0; row < n; row += 1) numbers[row] = numberOf(row);
  return numbers;
}

function allRows(n) {
  const rows = new Uint32Array(n);
  for (let row = 0; row < n; row += 1) rows[row] = row;
  return rows;
}

// Sort all rows by their keys; NaN comes last in both directions, ties keep their order.
export function sortedRows(keys, descending) {
  const sign = descending ? -1 : 1;
  const sortKeys = numbersOf(keys.length, (row) =>
    Number.isNaN(keys[row]) ? Infinity : sign * keys[row],
  );
  const order = allRows(keys.length);
  // Infinity - Infinity is NaN, which is falsy, so that the row index decides.
  return order.sort((a, b) => sortKeys[a] - sortKeys[b] || a - b);
}

// Return sort keys of texts; numbers inside texts sort by value.
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

// Return the rows that pass every test, in their order.
export function passing(order, tests) {
  if (!tests.length) return order;
  return order.filter((row) => tests.every((test) => test(row)));
}
