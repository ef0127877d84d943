// The colour of each run, the same everywhere on the page.

/** @typedef {import("./types").PageData} PageData */

const MOST_COLOURS = 8;
export const OTHER_RUN = "var(--run-other)";

/**
 * Return the colour of each run. Nine or more colours cannot be told apart: then only the best
 * run, the baseline and the two compared runs have one.
 * @param {PageData} page
 * @param {{ a: number | null, b: number }} compared
 */
export function runColours(page, { a, b }) {
  if (page.runs.length <= MOST_COLOURS) return page.runs.map((_, run) => `var(--run-${run})`);
  const colours = page.runs.map(() => OTHER_RUN);
  const coloured = [page.best, page.comparison?.baseline ?? null, b, a];
  for (let colour = coloured.length - 1; colour >= 0; colour -= 1) {
    const run = coloured[colour];
    if (run !== null) colours[run] = `var(--run-${colour})`;
  }
  return colours;
}
