// The differences between two runs, one row per measure.

import { dataText, element, scrolling, shown, svgElement } from "./dom.js";
import { grouped, number, probability, signed } from "./numbers.js";
import { changeState } from "./state.js";
import { markdownTable, toolbar } from "./export.js";

/**
 * @typedef {import("./types").PageData} PageData
 * @typedef {import("./types").Difference} Difference
 * @typedef {import("./types").PageMeasure} Measure
 */

const FOREST_HEIGHT = 44;
const FOREST_EDGE = 6; // percent of the width at both sides, so that no end is cut off
const FOREST_WHISKER = 5; // half the height of the ends of an interval
const FOREST_ALPHA = 0.05;

/**
 * Show the differences b − a in a container.
 * @param {HTMLElement} container
 * @param {PageData} page
 * @param {number} a
 * @param {number} b
 * @param {Difference[]} differences
 */
export function showForest(container, page, a, b, differences) {
  const measures = differences.map(({ measure }) => page.measures[measure]);
  const extents = extentsOf(measures, differences);
  const [nameA, nameB] = [page.runs[a], page.runs[b]];
  const shared = measures.findIndex(({ bounded }) => bounded);
  const rows = differences.map((difference, at) =>
    forestRow(difference, measures[at], extents[at], nameB),
  );
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, "measure"),
    element("th", { scope: "col", class: "axis" }, axisHead(nameA, nameB, extents[shared])),
    element("th", { scope: "col", class: "numeric" }, "difference B − A"),
    element("th", { scope: "col" }, "wins / ties / losses"),
  );
  const table = element(
    "table",
    { class: "forest" },
    dataText("caption", { class: "unseen" }, `Differences ${nameB} − ${nameA}`, 200),
    element("thead", {}, head),
    element("tbody", {}, rows),
  );
  const alone = measures.filter(({ bounded }) => !bounded).map(({ name }) => name);
  container.replaceChildren(
    element(
      "div",
      { class: "figure-head" },
      dataText("p", { class: "takeaway", role: "status" }, forestCaption(nameA, nameB, differences), 400),
      toolbar({
        name: `differences ${nameB} - ${nameA}`,
        label: "the differences",
        rows: () => differenceRows(nameA, nameB, measures, differences),
        markdown: () => differencesAsMarkdown(nameA, nameB, measures, differences),
      }),
    ),
    scrolling("Differences per measure", table),
    ...leftOutNotes(measures, differences),
    alone.length && alone.length < measures.length
      ? element("p", { class: "note" }, shown(`Drawn on separate axes: ${alone.join(", ")}`))
      : "",
  );
}

/**
 * Mark the row of the chosen measure.
 * @param {HTMLElement} container
 * @param {number} measure
 */
export function markMeasure(container, measure) {
  for (const button of container.querySelectorAll("button[data-measure]")) {
    const chosen = button.getAttribute("data-measure") === String(measure);
    button.setAttribute("aria-pressed", String(chosen));
    button.closest("tr")?.classList.toggle("chosen", chosen);
  }
}

/** @param {Difference} difference @param {Measure} measure @param {number} extent @param {string} nameB */
function forestRow(difference, measure, extent, nameB) {
  const { mark, value_a: from, value_b: to } = difference;
  const button = element(
    "button",
    {
      type: "button",
      "data-measure": String(difference.measure),
      title: "Show the queries by this measure",
      onclick: () => changeState({ measure: difference.measure }),
    },
    shown(measure.label),
  );
  const values = `${number(from, measure)} → ${number(to, measure)}`;
  const sign = mark === "better" ? "▲ " : mark === "worse" ? "▼ " : "";
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, button, element("small", {}, values)),
    element("td", { class: "plot" }, forestPlot(difference, measure, extent)),
    element(
      "td",
      { class: "numeric", ...exactValues(difference) },
      element("span", { class: `difference ${mark}` }, sign + signed(difference.difference, measure)),
      " ",
      element("span", { class: "interval" }, intervalOf(difference, measure)),
      element("small", { title: beforeCorrection(difference) }, testResult(difference)),
    ),
    element("td", {}, outcomeBar(difference, nameB)),
  );
}

/** @param {Difference} difference @returns {Record<string, string|null>} all digits */
function exactValues({ difference, low, high, p_corrected: p }) {
  const exact = { "data-value": difference, "data-low": low, "data-high": high, "data-p": p };
  return Object.fromEntries(
    Object.entries(exact).map(([name, value]) => [name, value === null ? null : String(value)]),
  );
}

/** @param {Difference} difference @param {Measure} measure */
function intervalOf({ low, high }, measure) {
  if (low === null && high === null) return "";
  const ends = [low, high].map((end) => signed(end, measure).replace("+", ""));
  return `[${ends.join(", ")}]`;
}

/** @param {Difference} difference @returns {string} what the test says */
export function testResult({ tested, p, p_corrected: corrected, mark }) {
  if (!tested || corrected === null) return "too few queries differ";
  const words = mark
    ? "significant"
    : p !== null && p < FOREST_ALPHA
      ? "not significant after correction"
      : "not significant";
  return `${words}, p ${probability(corrected)}`;
}

/** @param {Difference} difference */
function beforeCorrection({ p, p_corrected: corrected }) {
  return p === null || p === corrected ? null : `p ${probability(p)} before correction`;
}

/**
 * The largest value on the axis of each row: measures from 0 to 1 share one axis.
 * @param {Measure[]} measures
 * @param {Difference[]} differences
 */
function extentsOf(measures, differences) {
  const sizes = differences.map(({ difference, low, high }) =>
    Math.max(...[difference, low, high].map((value) => Math.abs(value ?? 0))),
  );
  const shared = Math.max(...sizes.filter((_, at) => measures[at].bounded));
  return sizes.map((size, at) => axisExtent(measures[at].bounded ? shared : size));
}

/** @param {number} size @returns {number} the next larger number with one digit, or 1.5 */
function axisExtent(size) {
  if (!(size > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(size));
  const steps = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
  const step = steps.find((each) => each * power >= size * (1 - 1e-9)) ?? 10;
  return Number((step * power).toPrecision(2));
}

/** @param {string} nameA @param {string} nameB @param {number|undefined} extent */
function axisHead(nameA, nameB, extent) {
  /** @param {string} name @param {string} before @param {string} after */
  const end = (name, before, after) =>
    element("span", { title: shown(name) }, before, dataText("span", {}, name), after);
  const ends = [end(nameA, "◀\u00a0", "\u00a0better"), end(nameB, "", "\u00a0better\u00a0▶")];
  const names = element("div", { class: "ends" }, ends);
  if (extent === undefined) return names;
  const text = { y: 12, "text-anchor": "middle", "font-size": 12, "font-weight": 400 };
  const ticks = [-1, 0, 1].map((side) =>
    svgElement(
      "text",
      { ...text, x: percent(side), fill: "var(--muted)" },
      String(Math.abs(side) * extent),
    ),
  );
  return [names, svgElement("svg", { class: "ticks", height: 16, "aria-hidden": "true" }, ticks)];
}

/** @param {number} share of the axis, from -1 (left end) to 1 @returns {string} */
function percent(share) {
  return `${(50 + share * (50 - FOREST_EDGE)).toFixed(3)}%`;
}

/** @param {Difference} difference @param {Measure} measure @param {number} extent */
function forestPlot({ difference, low, high, mark }, measure, extent) {
  const sign = measure.higher ? 1 : -1;
  const middle = FOREST_HEIGHT / 2;
  /** @param {number} value */
  const x = (value) => percent((sign * value) / extent);
  const stroke = mark === "" ? "var(--muted)" : `var(--${mark})`;
  const zero = { x1: "50%", x2: "50%", y1: 0, y2: FOREST_HEIGHT, stroke: "var(--line-strong)" };
  /** @type {SVGElement[]} */
  const parts = [svgElement("line", zero)];
  if (low !== null && high !== null) {
    const whisker = { stroke, "stroke-width": 2 };
    parts.push(
      svgElement("line", { ...whisker, x1: x(low), x2: x(high), y1: middle, y2: middle }),
    );
    const [y1, y2] = [middle - FOREST_WHISKER, middle + FOREST_WHISKER];
    for (const end of [low, high]) {
      parts.push(svgElement("line", { ...whisker, x1: x(end), x2: x(end), y1, y2 }));
    }
  }
  if (difference !== null) {
    parts.push(svgElement("circle", { cx: x(difference), cy: middle, r: 5.5, fill: stroke }));
  }
  return svgElement("svg", { height: FOREST_HEIGHT, "aria-hidden": "true" }, parts);
}

/** @param {Difference} difference @param {string} nameB */
function outcomeBar({ wins, ties, losses }, nameB) {
  const all = wins + ties + losses;
  const title = `${nameB} is better on ${grouped(wins)}, equal on ${grouped(ties)}, worse on ${grouped(losses)} queries`;
  const parts = [wins, ties, losses].map((count, at) => {
    const part = element("span", { class: ["won", "tied", "lost"][at] });
    part.style.setProperty("width", `${all ? (100 * count) / all : 0}%`);
    return part;
  });
  return element(
    "div",
    { class: "outcomes", title: shown(title) },
    element("span", { class: "counts" }, [wins, ties, losses].map(grouped).join(" / ")),
    element("span", { class: "bar", "aria-hidden": "true" }, parts),
  );
}

/** @param {string} nameA @param {string} nameB @param {Difference[]} differences */
function forestCaption(nameA, nameB, differences) {
  const n = differences.length;
  /** @param {string} mark */
  const count = (mark) => differences.filter((difference) => difference.mark === mark).length;
  const [better, worse] = [count("better"), count("worse")];
  const every = ["", "the measure", "both measures"][n] ?? `all ${n} measures`;
  /** @param {number} some */
  const of = (some) => (some === n ? every : `${some} of ${n} measures`);
  if (!better && !worse) {
    return n === 1
      ? `${nameB} and ${nameA} do not differ significantly`
      : `${nameB} and ${nameA} do not differ significantly in ${n === 2 ? "either measure" : `any of ${n} measures`}`;
  }
  if (!better) return `${nameB} is significantly worse than ${nameA} in ${of(worse)}`;
  const also = worse ? `, significantly worse in ${worse}` : "";
  return `${nameB} is significantly better than ${nameA} in ${of(better)}${also}`;
}

/** @param {Measure[]} measures @param {Difference[]} differences */
function leftOutNotes(measures, differences) {
  /** @type {Map<number, string[]>} */
  const labels = new Map();
  differences.forEach(({ left_out: count }, at) => {
    if (count) labels.set(count, [...(labels.get(count) ?? []), measures[at].name]);
  });
  return [...labels].map(([count, names]) => {
    const scope = names.length === measures.length ? "" : ` of ${names.join(", ")}`;
    const queries = count === 1 ? "1 query" : `${grouped(count)} queries`;
    const text = `${queries} left out${scope}: value in only one of the two runs`;
    return element("p", { class: "note left-out" }, shown(text));
  });
}

/** @param {string} nameA @param {string} nameB @param {Measure[]} measures @param {Difference[]} differences */
function differencesAsMarkdown(nameA, nameB, measures, differences) {
  const head = ["measure", nameA, nameB, "difference", "95% interval", "p", "wins / ties / losses"];
  const rows = differences.map((difference, at) => [
    measures[at].label,
    number(difference.value_a, measures[at]),
    number(difference.value_b, measures[at]),
    signed(difference.difference, measures[at]),
    intervalOf(difference, measures[at]) || "–",
    probability(difference.p_corrected),
    `${difference.wins} / ${difference.ties} / ${difference.losses}`,
  ]);
  return markdownTable(head, rows);
}

/** @param {string} nameA @param {string} nameB @param {Measure[]} measures @param {Difference[]} differences */
function differenceRows(nameA, nameB, measures, differences) {
  const head = ["measure", nameA, nameB, "difference", "low", "high", "p", "p corrected"];
  const rows = differences.map((difference, at) => [
    measures[at].name,
    difference.value_a,
    difference.value_b,
    difference.difference,
    difference.low,
    difference.high,
    difference.p,
    difference.p_corrected,
    difference.wins,
    difference.ties,
    difference.losses,
  ]);
  return [[...head, "wins", "ties", "losses"], ...rows];
}
