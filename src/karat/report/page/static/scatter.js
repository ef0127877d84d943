// Scatter plot of two runs: one point per query, which opens it.

import { dataText, element, shown, svgElement } from "./dom.js";
import { counted, grouped, number, signed } from "./numbers.js";
import { changeState } from "./state.js";
import { toolbar } from "./export.js";

/**
 * @typedef {import("./types").PageData} PageData
 * @typedef {import("./types").PageMeasure} Measure
 * @typedef {import("./pairs").PairedQuery} PairedQuery
 * @typedef {object} ScatterPoint All queries with the same two values.
 * @property {PairedQuery[]} queries
 * @property {number} x
 * @property {number} y
 * @property {SVGElement} mark
 * @typedef {object} ScatterData
 * @property {PageData} page
 * @property {number} a
 * @property {number} b
 * @property {Measure} measure
 * @property {PairedQuery[]} queries
 * @property {string[]} ids
 * @property {(string|null)[]|null} texts
 */

const SCATTER_SIDE = 380;
const SCATTER_EDGE = { left: 46, right: 12, top: 10, bottom: 42 };
const MOST_POINTS = 2000; // with more queries, squares are drawn, and points for large changes
const MOST_CHANGES = 200;
const SCATTER_SQUARES = 20; // per side
const SCATTER_SMALL = 4.5; // radius of a point of one query
const SCATTER_REACH = 14; // how far the pointer may be from a point
const NAMED_QUERIES = 3;
const TOOLTIP_TEXT = 200;
const TOOLTIP_GAP = 12;
const LONGEST_LABEL = 26; // characters of a name at an axis
const LONGEST_CORNER = 18;

/**
 * Draw the queries in a figure.
 * @param {HTMLElement} figure
 * @param {ScatterData} data
 */
export function showScatter(figure, data) {
  const { page, a, b, measure, queries } = data;
  const [nameA, nameB] = [page.runs[a], page.runs[b]];
  const caption = dataText("p", { class: "takeaway" }, scatterCaption(data), 400);
  const title = `${measure.label}: ${nameB} against ${nameA}`;
  if (!queries.length) {
    figure.replaceChildren(caption);
    return;
  }
  const readOut = scatterReadOut(data);
  const scale = scatterScale(data);
  const tooltip = element("div", { class: "tooltip", hidden: true, "aria-hidden": "true" });
  const points = scatterPoints(data, scale);
  const svg = /** @type {SVGSVGElement} */ (
    svgElement(
      "svg",
      {
        viewBox: `0 0 ${SCATTER_SIDE} ${SCATTER_SIDE}`,
        role: "group",
        "aria-label": shown(`Scatter plot of ${title}`),
        "aria-description": shown(readOut),
        class: "scatter",
      },
      scatterGrid(scale),
      queries.length > MOST_POINTS ? scatterSquares(data, scale) : [],
      scatterLabels(data, scale),
      points.map(({ mark }) => mark),
    )
  );
  points[0]?.mark.setAttribute("tabindex", "0");
  // Listeners are on the box: an <svg> with focus listeners would be a tab stop in Chromium.
  const box = element("div", { class: "plot-area" }, svg, tooltip);
  listenToPoints(box, tooltip, points, data);
  figure.replaceChildren(
    element(
      "div",
      { class: "figure-head" },
      caption,
      toolbar({ name: title, label: "the scatter plot", svg: () => svg }),
    ),
    box,
    element(
      "details",
      {},
      element("summary", {}, "Description"),
      dataText("p", {}, readOut),
    ),
  );
}

/** @param {ScatterData} data */
function outcomeCounts({ queries }) {
  const better = queries.filter(({ gain }) => gain > 0).length;
  const worse = queries.filter(({ gain }) => gain < 0).length;
  return { better, worse, same: queries.length - better - worse };
}

/** @param {ScatterData} data */
function scatterCaption(data) {
  const { page, b, measure, queries } = data;
  if (!queries.length) return `No query has a value of ${measure.name} in both runs`;
  const { better, worse } = outcomeCounts(data);
  const all = counted(queries.length, "query");
  if (!better && !worse) return `The runs are equal on all ${all} by ${measure.name}`;
  /** @param {number} count */
  const some = (count) => (count ? grouped(count) : "none");
  return `${page.runs[b]} is better on ${some(better)} of ${all}, worse on ${some(worse)}, by ${measure.name}`;
}

/** @param {ScatterData} data */
function scatterReadOut(data) {
  const { page, a, b, measure, queries, ids } = data;
  const { better, worse, same } = outcomeCounts(data);
  const [nameA, nameB] = [page.runs[a], page.runs[b]];
  const sentences = [
    `Each point is a query: across, its ${measure.label} in ${nameA}; up, in ${nameB}.`,
    `Of ${counted(queries.length, "query")}, ${nameB} is better on ${grouped(better)} (▲), worse on ` +
      `${grouped(worse)} (▼), and equal on ${grouped(same)}.`,
  ];
  const ordered = [...queries].sort((one, other) => other.gain - one.gain);
  const [best, last] = [ordered[0], ordered[ordered.length - 1]];
  /** @param {PairedQuery} query */
  const change = (query) => `${signed(query.difference, measure)} (${ids[query.row]})`;
  if (best.gain > 0) sentences.push(`The largest improvement is ${change(best)}.`);
  if (last.gain < 0) sentences.push(`The largest degradation is ${change(last)}.`);
  const leftOut = page.n - queries.length;
  if (leftOut) {
    const have = leftOut === 1 ? "has" : "have";
    sentences.push(`${counted(leftOut, "query")} ${have} no value in at least one of the runs.`);
  }
  if (queries.length > MOST_POINTS) {
    sentences.push(
      `Squares show the number of queries; points are the ${MOST_CHANGES} largest changes.`,
    );
  }
  return sentences.join(" ");
}

/** @param {ScatterData} data @returns {{ low: number, high: number, step: number }} */
function scatterScale({ measure, queries }) {
  let [low, high] = [Infinity, -Infinity];
  for (const { a, b } of queries) {
    low = Math.min(low, a, b);
    high = Math.max(high, a, b);
  }
  if (measure.bounded) return { low: 0, high: 1, step: 0.2 };
  if (low === high) [low, high] = [Math.min(0, low), Math.max(low, 0) || 1];
  const step = tickStep((high - low) / 5);
  return { low: step * Math.floor(low / step), high: step * Math.ceil(high / step), step };
}

/** @param {number} least @returns {number} the next larger 1, 2 or 5 times a power of ten */
function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].find((each) => each * power >= least) ?? 10;
  return Number((step * power).toPrecision(1));
}

/** @param {{ low: number, high: number }} scale @param {number} value */
function across({ low, high }, value) {
  return SCATTER_EDGE.left + ((value - low) / (high - low)) * (SCATTER_SIDE - SCATTER_EDGE.left - SCATTER_EDGE.right);
}

/** @param {{ low: number, high: number }} scale @param {number} value */
function upwards({ low, high }, value) {
  return SCATTER_SIDE - SCATTER_EDGE.bottom - ((value - low) / (high - low)) * (SCATTER_SIDE - SCATTER_EDGE.top - SCATTER_EDGE.bottom);
}

/** @param {{ low: number, high: number, step: number }} scale */
function scatterGrid(scale) {
  const { low, high, step } = scale;
  const [left, right] = [across(scale, low), across(scale, high)];
  const [bottom, top] = [upwards(scale, low), upwards(scale, high)];
  const text = { "font-size": 11, fill: "var(--muted)" };
  const parts = [];
  for (let at = 0; at <= Math.round((high - low) / step); at += 1) {
    const value = Number((low + at * step).toPrecision(10));
    const [x, y] = [across(scale, value), upwards(scale, value)];
    parts.push(
      svgElement("line", { x1: x, x2: x, y1: top, y2: bottom, stroke: "var(--line)" }),
      svgElement("line", { x1: left, x2: right, y1: y, y2: y, stroke: "var(--line)" }),
      svgElement("text", { ...text, x, y: bottom + 15, "text-anchor": "middle" }, grouped(value)),
      svgElement("text", { ...text, x: left - 6, y: y + 4, "text-anchor": "end" }, grouped(value)),
    );
  }
  return parts;
}

/**
 * The diagonal, the names of the runs at the axes, and on which side each is better.
 * @param {ScatterData} data
 * @param {{ low: number, high: number }} scale
 */
function scatterLabels({ page, a, b, measure }, scale) {
  const [left, right] = [across(scale, scale.low), across(scale, scale.high)];
  const [bottom, top] = [upwards(scale, scale.low), upwards(scale, scale.high)];
  /** @param {number} run @param {number} longest */
  const name = (run, longest = LONGEST_LABEL) => {
    const full = shown(page.runs[run]);
    return full.length > longest ? `${full.slice(0, longest - 1)}…` : full;
  };
  const dashed = { stroke: "var(--line-strong)", "stroke-dasharray": "4 4" };
  const axis = { "text-anchor": "middle", "font-size": 12, fill: "var(--ink)" };
  const corner = { "font-size": 11, fill: "var(--muted)" };
  const [above, below] = measure.higher ? [b, a] : [a, b];
  return [
    svgElement("line", { x1: left, y1: bottom, x2: right, y2: top, ...dashed }),
    svgElement("text", { ...axis, x: (left + right) / 2, y: SCATTER_SIDE - 8 }, `${shown(measure.label)} of ${name(a)} →`),
    svgElement(
      "text",
      { ...axis, transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)` },
      `${shown(measure.label)} of ${name(b)} →`,
    ),
    svgElement("text", { ...corner, x: left + 8, y: top + 16 }, `${name(above, LONGEST_CORNER)} better`),
    svgElement(
      "text",
      { ...corner, x: right - 8, y: bottom - 8, "text-anchor": "end" },
      `${name(below, LONGEST_CORNER)} better`,
    ),
  ];
}

/** @param {ScatterData} data @param {{ low: number, high: number }} scale @returns {ScatterPoint[]} */
function scatterPoints(data, scale) {
  const { queries } = data;
  let drawn = queries;
  if (queries.length > MOST_POINTS) {
    const moved = queries.filter(({ gain }) => gain !== 0);
    moved.sort((one, other) => Math.abs(other.gain) - Math.abs(one.gain) || one.row - other.row);
    drawn = moved.slice(0, MOST_CHANGES);
  }
  /** @type {Map<string, PairedQuery[]>} */
  const places = new Map();
  for (const query of drawn) {
    const key = `${query.a},${query.b}`;
    const same = places.get(key);
    if (same) same.push(query);
    else places.set(key, [query]);
  }
  // Large points are drawn first, so that they do not hide small ones; then from left to right.
  const sorted = [...places.values()].sort(
    (one, other) => other.length - one.length || one[0].a - other[0].a || one[0].b - other[0].b,
  );
  return sorted.map((same) => {
    const [{ a, b, gain }] = same;
    const [x, y] = [across(scale, a), upwards(scale, b)];
    const r = SCATTER_SMALL * Math.min(3, same.length ** 0.35);
    const mark = svgElement(
      "g",
      {
        class: "point",
        transform: `translate(${x.toFixed(2)} ${y.toFixed(2)})`,
        role: "button",
        tabindex: -1,
        "aria-label": shown(pointLabel(data, same)),
      },
      svgElement("circle", { class: "ring", r: r + 5, fill: "none" }),
      pointShape(gain, r),
    );
    mark.dataset.a = String(a);
    mark.dataset.b = String(b);
    mark.dataset.gain = String(Math.sign(gain));
    mark.dataset.row = String(same[0].row);
    return { queries: same, x, y, mark };
  });
}

/** @param {number} gain @param {number} r */
function pointShape(gain, r) {
  const outline = { stroke: "var(--surface)", "stroke-width": 1, class: "shape" };
  if (gain === 0) return svgElement("circle", { r, fill: "var(--muted)", ...outline });
  const [half, tip] = [r * 1.15, r * 1.3];
  const up = `M0 ${-tip}L${half} ${tip * 0.7}L${-half} ${tip * 0.7}Z`;
  const down = `M0 ${tip}L${half} ${-tip * 0.7}L${-half} ${-tip * 0.7}Z`;
  return gain > 0
    ? svgElement("path", { d: up, fill: "var(--better)", ...outline })
    : svgElement("path", { d: down, fill: "var(--worse)", ...outline });
}

/** @param {ScatterData} data @param {PairedQuery[]} same */
function pointLabel({ page, a, b, measure, ids, texts }, same) {
  const named = same.slice(0, NAMED_QUERIES).map(({ row }) => {
    const text = texts?.[row];
    return text ? `${ids[row]}: ${text.slice(0, TOOLTIP_TEXT)}` : ids[row];
  });
  if (same.length > named.length) named.push(`and ${grouped(same.length - named.length)} more`);
  const values = [
    `${page.runs[a]} ${number(same[0].a, measure)}`,
    `${page.runs[b]} ${number(same[0].b, measure)}`,
  ];
  return `${named.join("; ")}; ${values.join(", ")}`;
}

/** @param {ScatterData} data @param {{ low: number, high: number }} scale */
function scatterSquares({ queries }, scale) {
  const { low, high } = scale;
  const size = (high - low) / SCATTER_SQUARES;
  /** @param {number} value */
  const cell = (value) => Math.min(SCATTER_SQUARES - 1, Math.floor((value - low) / size));
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const { a, b } of queries) {
    const key = cell(a) * SCATTER_SQUARES + cell(b);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const most = Math.log1p(Math.max(...counts.values()));
  return [...counts].map(([key, count]) => {
    const [a, b] = [low + Math.floor(key / SCATTER_SQUARES) * size, low + (key % SCATTER_SQUARES) * size];
    const square = svgElement("rect", {
      class: "square",
      x: across(scale, a),
      y: upwards(scale, b + size),
      width: across(scale, a + size) - across(scale, a),
      height: upwards(scale, b) - upwards(scale, b + size),
      fill: "var(--heat)",
      "fill-opacity": (0.12 + (0.78 * Math.log1p(count)) / most).toFixed(3),
    });
    square.dataset.count = String(count);
    square.dataset.a = `${number(a)}–${number(a + size)}`;
    square.dataset.b = `${number(b)}–${number(b + size)}`;
    return square;
  });
}

/**
 * Show tooltips, open queries, and move between points with the arrow keys.
 * @param {HTMLElement} box
 * @param {HTMLElement} tooltip
 * @param {ScatterPoint[]} points
 * @param {ScatterData} data
 */
function listenToPoints(box, tooltip, points, data) {
  const focused = () => points.find(({ mark }) => mark === document.activeElement);
  /** @param {ScatterPoint|null|undefined} point */
  const show = (point) => {
    tooltip.hidden = !point;
    if (point) showTooltip(tooltip, point.x, point.y, pointTooltip(data, point));
  };
  /** @param {ScatterPoint} point */
  const open = (point) => {
    focusPoint(points, point);
    tooltip.hidden = true;
    changeState({ query: data.ids[point.queries[0].row] });
  };
  box.addEventListener("pointermove", (event) => {
    const point = pointNear(box, points, event);
    box.classList.toggle("at-point", point !== null);
    const square = event.target;
    if (point === null && square instanceof SVGRectElement) {
      const [x, y] = [square.x.baseVal.value, square.y.baseVal.value];
      showTooltip(tooltip, x, y, squareTooltip(data, square));
    } else show(point ?? focused());
  });
  box.addEventListener("pointerleave", () => show(focused())); // the keyboard may be at a point
  box.addEventListener("focusin", () => show(focused()));
  box.addEventListener("focusout", () => show(null));
  box.addEventListener("click", (event) => {
    const point = pointNear(box, points, event);
    if (point) open(point);
  });
  box.addEventListener("keydown", (event) => {
    const point = focused();
    if (!point) return;
    if (event.key === "Enter" || event.key === " ") open(point);
    else if (event.key === "Escape" && !tooltip.hidden) show(null);
    else {
      const next = nextPoint(points, point, event.key);
      if (!next) return;
      focusPoint(points, next);
    }
    event.preventDefault();
  });
}

/**
 * The point nearest to the pointer: small points next to each other can all be reached.
 * @param {HTMLElement} box
 * @param {ScatterPoint[]} points
 * @param {MouseEvent} event
 * @returns {ScatterPoint|null}
 */
function pointNear(box, points, { clientX, clientY }) {
  const { left, top, width } = box.getBoundingClientRect();
  const [x, y] = [clientX - left, clientY - top].map((at) => (at / width) * SCATTER_SIDE);
  let [nearest, least] = [/** @type {ScatterPoint|null} */ (null), SCATTER_REACH];
  for (const point of points) {
    const distance = Math.hypot(point.x - x, point.y - y);
    if (distance <= least) [nearest, least] = [point, distance];
  }
  return nearest;
}

/** @param {ScatterPoint[]} points @param {ScatterPoint} point */
function focusPoint(points, point) {
  for (const { mark } of points) mark.setAttribute("tabindex", "-1");
  point.mark.setAttribute("tabindex", "0");
  point.mark.focus();
}

const SCATTER_ARROWS = new Map([
  ["ArrowRight", [1, 0]],
  ["ArrowLeft", [-1, 0]],
  ["ArrowDown", [0, 1]],
  ["ArrowUp", [0, -1]],
]);

/**
 * The nearest point in the direction of an arrow key; deviation counts twice.
 * @param {ScatterPoint[]} points
 * @param {ScatterPoint} from
 * @param {string} key
 * @returns {ScatterPoint|null}
 */
function nextPoint(points, from, key) {
  const arrow = SCATTER_ARROWS.get(key);
  if (!arrow) return null;
  let [nearest, least] = [/** @type {ScatterPoint|null} */ (null), Infinity];
  for (const point of points) {
    const [dx, dy] = [point.x - from.x, point.y - from.y];
    const ahead = dx * arrow[0] + dy * arrow[1];
    const aside = Math.abs(dx * arrow[1]) + Math.abs(dy * arrow[0]);
    if (ahead > 1e-9 && ahead + 2 * aside < least) {
      [nearest, least] = [point, ahead + 2 * aside];
    }
  }
  return nearest;
}

/** @param {HTMLElement} tooltip @param {number} x @param {number} y @param {(Node | string)[]} content */
function showTooltip(tooltip, x, y, content) {
  tooltip.replaceChildren(...content);
  tooltip.hidden = false;
  const left = x < SCATTER_SIDE / 2;
  const above = y > SCATTER_SIDE / 2;
  /** @param {string} side @param {number|null} distance from that side */
  const place = (side, distance) => {
    const percent = distance === null ? "auto" : `${(distance / SCATTER_SIDE) * 100}%`;
    tooltip.style.setProperty(side, percent);
  };
  place("left", left ? x : null);
  place("right", left ? null : SCATTER_SIDE - x);
  place("top", above ? null : y + TOOLTIP_GAP);
  place("bottom", above ? SCATTER_SIDE - y + TOOLTIP_GAP : null);
}

/** @param {ScatterData} data @param {ScatterPoint} point @returns {(Node | string)[]} */
function pointTooltip({ page, a, b, measure, ids, texts }, { queries }) {
  const named = queries.slice(0, NAMED_QUERIES).flatMap(({ row }) => {
    const text = texts?.[row];
    return [
      dataText("code", {}, ids[row], 60),
      text ? dataText("p", {}, text, TOOLTIP_TEXT) : element("p", {}),
    ];
  });
  const more = queries.length - Math.min(queries.length, NAMED_QUERIES);
  const [{ a: from, b: to, difference, gain }] = queries;
  const sign = gain > 0 ? "▲ " : gain < 0 ? "▼ " : "";
  const kind = gain > 0 ? "better" : gain < 0 ? "worse" : "";
  return [
    ...named,
    more ? element("p", {}, `and ${grouped(more)} more`) : "",
    dataText("p", {}, `${page.runs[a]} ${number(from, measure)}`, 80),
    dataText("p", {}, `${page.runs[b]} ${number(to, measure)}`, 80),
    element("p", { class: kind }, `${sign}${signed(difference, measure)}`),
    element("p", { class: "hint" }, "click or Enter opens it"),
  ].filter((node) => node !== "");
}

/** @param {ScatterData} data @param {SVGRectElement} square @returns {(Node | string)[]} */
function squareTooltip({ page, a, b }, square) {
  return [
    element("strong", {}, counted(Number(square.dataset.count), "query")),
    dataText("p", {}, `${page.runs[a]} ${square.dataset.a}`, 80),
    dataText("p", {}, `${page.runs[b]} ${square.dataset.b}`, 80),
  ];
}
