// The queries as rows: what they are sorted and filtered by. Rows are numbers into columns.

import { column } from "./data.js";

export const OUTCOMES = [
  ["nothing", "nothing found"],
  ["some", "some found"],
  ["all", "everything found"],
  ["failed", "failed"],
  ["missing", "not in the run"],
  ["empty", "nothing to find"],
  ["unknown", "list not at hand"],
];
// The status of a query: 0 where the run answered it.
const MISSING = 1;
const FAILED = 2;
const NOT_AT_HAND = 3;
const ROUNDING = 1e-12;

// Unpack the columns that every view needs; values follow when a measure is chosen.
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

// Return the values of one measure: at the number of each run that is wanted, its column.
export async function valuesOf(page, measure, runs) {
  const values = [];
  const read = async (run) => {
    values[run] = await column(page.values[run][measure], Float64Array);
  };
  await Promise.all(runs.map(read));
  return values;
}

// Say of each query which of OUTCOMES it is.
function outcomeCodes({ status, found }, wanted) {
  const at = Object.fromEntries(OUTCOMES.map(([name], code) => [name, code]));
  return status.map((each, row) => {
    if (each === FAILED) return at.failed;
    if (each === MISSING) return at.missing;
    if (each === NOT_AT_HAND) return at.unknown;
    if (wanted[row] === 0) return at.empty;
    if (found[row] === 0) return at.nothing;
    return found[row] < wanted[row] ? at.some : at.all;
  });
}

export function fieldText(field, row) {
  return field.words ? (field.words[field.codes[row]] ?? null) : field.texts[row];
}

// Tell whether the lists of all runs are at hand, so that 'by any run' can be said.
export function areAtHand(rows) {
  return rows.outcomes.every(({ status }) => status[0] !== NOT_AT_HAND);
}

// Tell whether no run found anything of what a query wants.
export function isUnfound(rows, row) {
  return rows.wanted[row] > 0 && rows.outcomes.every(({ found }) => found[row] === 0);
}

export function difference(values, state, row) {
  return apart(values[state.run][row], values[state.against][row]);
}

// How far a value lies above another: 0 where that is no more than rounding, as stats/pairs.py
// has it, so that the queries that moved are as many here as in the charts.
export function apart(value, other) {
  const difference = value - other;
  return Math.abs(difference) <= ROUNDING * Math.max(Math.abs(value), Math.abs(other))
    ? 0
    : difference;
}

// A number for each row. A loop: the iterators of `from` take ten times as long.
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

// Sort all rows by a number each; what has none comes last either way, and ties stay in order.
export function sortedRows(keys, descending) {
  const sign = descending ? -1 : 1;
  const ready = numbersOf(keys.length, (row) =>
    Number.isNaN(keys[row]) ? Infinity : sign * keys[row],
  );
  const order = allRows(keys.length);
  // Equal infinities differ by NaN, which is falsy: their rows decide.
  return order.sort((a, b) => ready[a] - ready[b] || a - b);
}

// Give texts the numbers of their order, with numbers inside them read as such.
export function textKeys(texts) {
  const { compare } = new Intl.Collator("en", { numeric: true });
  const order = allRows(texts.length).sort(
    (a, b) => compare(texts[a] ?? "", texts[b] ?? "") || a - b,
  );
  const places = new Uint32Array(texts.length);
  order.forEach((row, place) => {
    const before = order[place - 1];
    const same = place > 0 && texts[row] === texts[before];
    places[row] = same ? places[before] : place;
  });
  return numbersOf(texts.length, (row) => (texts[row] === null ? NaN : places[row]));
}

// Keep the rows that pass every test, in their order.
export function passing(order, tests) {
  if (!tests.length) return order;
  return order.filter((row) => tests.every((test) => test(row)));
}
