// Two runs: their differences per measure, and their values per query.

import { column } from "./data.js";
import { apart } from "./rows.js";

/**
 * @typedef {import("./types").PageData} PageData
 * @typedef {import("./types").Difference} Difference
 * @typedef {object} PairedQuery A query with a value in both runs.
 * @property {number} row
 * @property {number} a
 * @property {number} b
 * @property {number} difference b − a
 * @property {number} gain The difference, positive if b is better.
 */

/**
 * The differences b − a per measure, or null if the two runs were not compared.
 * @param {PageData} page
 * @param {number} a
 * @param {number} b
 * @returns {Difference[]|null}
 */
export function differencesOf(page, a, b) {
  for (const pair of page.comparison?.pairs ?? []) {
    if (pair.a === a && pair.b === b) return pair.differences;
    if (pair.a === b && pair.b === a) return pair.differences.map(reversed);
  }
  return null;
}

/** @param {Difference} difference @returns {Difference} the same with a and b exchanged */
function reversed(difference) {
  const { value_a, value_b, low, high, wins, losses, mark } = difference;
  return {
    ...difference,
    value_a: value_b,
    value_b: value_a,
    difference: negated(difference.difference),
    low: negated(high),
    high: negated(low),
    wins: losses,
    losses: wins,
    mark: mark === "better" ? "worse" : mark === "worse" ? "better" : "",
  };
}

/** @param {number|null} value */
function negated(value) {
  return value === null ? null : 0 - value; // 0 - 0 is 0, but -0 would be shown with a sign
}

/**
 * The queries with a value in both runs, in the order of the page.
 * @param {PageData} page
 * @param {number} measure
 * @param {number} a
 * @param {number} b
 * @returns {Promise<PairedQuery[]>}
 */
export async function pairedQueries(page, measure, a, b) {
  /** @type {Float64Array[]} */
  const [ofA, ofB] = await Promise.all(
    [a, b].map((run) => column(page.values[run][measure], Float64Array)),
  );
  const sign = page.measures[measure].higher ? 1 : -1;
  const queries = [];
  for (let row = 0; row < page.n; row += 1) {
    if (Number.isNaN(ofA[row]) || Number.isNaN(ofB[row])) continue;
    const difference = apart(ofB[row], ofA[row]);
    queries.push({ row, a: ofA[row], b: ofB[row], difference, gain: sign * difference });
  }
  return queries;
}
