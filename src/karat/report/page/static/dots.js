// The dot plot of a query: the values of all runs on one axis, the same for every query.

import { element, shown, svgElement } from "./dom.js";
import { number } from "./numbers.js";
import { OTHER_RUN } from "./run_colours.js";

/** @typedef {import("./types").PageMeasure} Measure */
/** @typedef {import("./types").PageData} PageData */

const WIDTH = 160;
const HEIGHT = 36;
const MARGIN = 8;
const RADIUS = 4.5;
const STACKED = 5; // dots nearer than this are drawn above each other
const STACK = HEIGHT - 2 * RADIUS - 2;

/**
 * Return the value at the end of the axis: 1, or the largest value of all runs.
 * @param {Float64Array[]} values
 * @param {Measure} measure
 */
export function largestValue(values, { bounded }) {
  let most = bounded ? 1 : 0;
  for (const each of values) for (const value of each) if (value > most) most = value;
  return most || 1;
}

/**
 * The ends of the axis, for the head of the column.
 * @param {Measure} measure
 * @param {number} most
 */
export function axisEnds(measure, most) {
  const end = measure.bounded ? String(most) : number(most, measure);
  return element("span", { class: "axis", "aria-hidden": "true" }, [
    element("span", {}, "0"),
    element("span", {}, end),
  ]);
}

/**
 * Draw the values of all runs for a query.
 * @param {PageData} page
 * @param {Measure} measure
 * @param {{ values: Float64Array[], colours: string[], most: number }} plot
 * @param {number} row
 */
export function dotPlot(page, measure, { values, colours, most }, row) {
  const lines = page.runs.map((run, at) => `${run} ${number(values[at][row], measure)}`);
  const middle = HEIGHT / 2;
  const dots = placed(values, colours, most, row).map(({ run, x, y }) =>
    svgElement("circle", {
      cx: x,
      cy: y,
      r: colours[run] === OTHER_RUN ? RADIUS - 1.5 : RADIUS,
      fill: colours[run],
      "data-run": run,
      class: colours[run] === OTHER_RUN ? "other" : "dot",
    }),
  );
  return svgElement(
    "svg",
    { class: "dot-plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" },
    svgElement("title", {}, shown(lines.join("\n"))),
    svgElement("path", {
      d: `M${MARGIN} ${middle}H${WIDTH - MARGIN}M${MARGIN} ${middle - 4}v8M${WIDTH - MARGIN} ${middle - 4}v8`,
      stroke: "var(--line-strong)",
      fill: "none",
    }),
    dots,
  );
}

/**
 * Return where the dots are; those at nearly the same place are stacked. Grey dots come first, so
 * that others cover them.
 * @param {Float64Array[]} values
 * @param {string[]} colours
 * @param {number} most
 * @param {number} row
 */
function placed(values, colours, most, row) {
  const all = values.flatMap((each, run) => {
    const share = Math.min(1, Math.max(0, each[row] / most));
    return Number.isNaN(share)
      ? []
      : [{ run, x: MARGIN + share * (WIDTH - 2 * MARGIN), y: HEIGHT / 2 }];
  });
  const grey = all.filter(({ run }) => colours[run] === OTHER_RUN);
  const coloured = all.filter(({ run }) => colours[run] !== OTHER_RUN);
  const byPlace = [...coloured].sort((one, other) => one.x - other.x || one.run - other.run);
  for (let from = 0, to = 0; from < byPlace.length; from = to) {
    while (to < byPlace.length && byPlace[to].x - byPlace[from].x < STACKED) to += 1;
    const gap = Math.min(2 * RADIUS - 0.5, STACK / Math.max(1, to - from - 1));
    for (let at = from; at < to; at += 1)
      byPlace[at].y += (at - from - (to - from - 1) / 2) * gap;
  }
  return [...grey, ...coloured];
}
