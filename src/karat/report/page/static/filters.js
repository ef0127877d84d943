// The filters of the table of queries.

import { grouped } from "./numbers.js";
import { OUTCOMES, difference, hasAllLists, isUnfound } from "./rows.js";

export const ANY = "";
export const NO_FILTERS = { search: "", field: ANY, value: ANY, outcome: ANY, movement: ANY };
export const MOVEMENTS = [
  [ANY, "any"],
  ["better", "better"],
  ["worse", "worse"],
  ["same", "unchanged"],
];

// One test for each filter that is set.
export function testsOf({ page, rows, state, values }) {
  const tests = [];
  const codes = rows.codes[state.run];
  if (state.outcome === "left_out") tests.push((row) => Number.isNaN(values[state.run][row]));
  else if (state.outcome === "unfound") tests.push((row) => isUnfound(rows, row));
  else if (state.outcome !== ANY && codes) {
    const code = OUTCOMES.findIndex(([name]) => name === state.outcome);
    tests.push((row) => codes[row] === code);
  }
  if (state.field !== ANY && state.value !== ANY) {
    const { codes: words } = rows.fields[state.field];
    const code = Number(state.value);
    tests.push((row) => words[row] === code);
  }
  if (state.movement !== ANY && state.against !== null) {
    const better = page.measures[state.measure].higher ? 1 : -1;
    const sign = { better, worse: -better, same: 0 }[state.movement];
    tests.push((row) => Math.sign(difference(values, state, row)) === sign);
  }
  if (state.search) {
    const needle = state.search.toLowerCase();
    rows.lower ??= rows.ids.map((id, row) => `${id}\n${rows.texts?.[row] ?? ""}`.toLowerCase());
    tests.push((row) => rows.lower[row].includes(needle));
  }
  return tests;
}

// Return the outcomes that occur in the chosen run, with their numbers of queries.
export function outcomeOptions({ page, rows, state, values }) {
  const options = [[ANY, "any"]];
  const add = (name, words, count) => {
    if (count || state.outcome === name) options.push([name, `${words} (${grouped(count)})`]);
  };
  const codes = rows.codes[state.run];
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
  for (const value of values[state.run]) if (Number.isNaN(value)) leftOut += 1;
  add("left_out", "excluded from the measure", leftOut);
  return options;
}

export function valueOptions(field) {
  const counts = new Map();
  for (const code of field.codes) counts.set(code, (counts.get(code) ?? 0) + 1);
  const options = field.words.map((word, code) => [
    String(code),
    `${word} (${grouped(counts.get(code) ?? 0)})`,
  ]);
  if (counts.has(-1)) options.push(["-1", `– (${grouped(counts.get(-1))})`]);
  return options;
}
