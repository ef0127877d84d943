// The section that compares two runs: differences, scatter plot, changed queries, all pairs.

import { choice, dataText, element, shown } from "./dom.js";
import { column } from "./data.js";
import { changeState, currentState, onStateChange } from "./state.js";
import { differencesOf, pairedQueries } from "./pairs.js";
import { runColours } from "./run_colours.js";
import { markMeasure, showForest } from "./forest.js";
import { showScatter } from "./scatter.js";
import { showMoved } from "./moved.js";
import { createMatrix, markPair } from "./matrix.js";

/** @typedef {import("./types").PageData} PageData */

/**
 * Add the comparison of two runs to a section of the page.
 * @param {HTMLElement} container
 * @param {PageData} page
 */
export function startComparison(container, page) {
  if (page.runs.length < 2) return;
  const picker = createPicker(page);
  const forest = element("div", { class: "forest-box" });
  const figure = element("figure", { class: "scatter-box" });
  const moved = element("div", { class: "moved-box" });
  const { comparison } = page;
  const matrix = comparison && page.runs.length > 2 ? createMatrix(page) : null;
  container.append(
    picker.form,
    forest,
    element("div", { class: "compared" }, figure, moved),
    ...(matrix ? [matrix] : []),
    ...(comparison?.notes.length ? [testNotes(comparison.notes)] : []),
  );
  let drawings = 0;

  async function showQueries() {
    drawings += 1;
    const drawing = drawings;
    const { a, b, measure } = currentState();
    if (a === null) return;
    const [queries, ids, texts] = await Promise.all([
      pairedQueries(page, measure, a, b),
      column(page.ids),
      page.texts === null ? null : column(page.texts),
    ]);
    if (drawing !== drawings) return; // something else was chosen in the meantime
    const data = { page, a, b, measure: page.measures[measure], queries, ids, texts };
    showScatter(figure, data);
    showMoved(moved, data);
  }

  function showPair() {
    const { a, b } = currentState();
    if (a === null) return;
    picker.show(a, b);
    const differences = differencesOf(page, a, b);
    if (differences) showForest(forest, page, a, b, differences);
    else forest.replaceChildren(dataText("p", { class: "note untested" }, untested(page, a, b), 400));
    if (matrix) markPair(matrix, a, b);
  }

  function showMeasure() {
    markMeasure(forest, currentState().measure);
  }

  showPair();
  showMeasure();
  showQueries();
  onStateChange((changes) => {
    const pair = "a" in changes || "b" in changes;
    if (pair) showPair();
    if (pair || "measure" in changes) {
      showMeasure();
      showQueries();
    }
  });
}

/**
 * The choice of the two runs. Choosing the run of the other side exchanges both.
 * @param {PageData} page
 */
function createPicker(page) {
  /** @type {import("./dom.js").Option[]} */
  const options = page.runs.map((name, run) => [String(run), name]);
  /** @param {string} chosen */
  const setA = (chosen) => {
    const { a, b } = currentState();
    changeState(Number(chosen) === b ? { a: b, b: a ?? b } : { a: Number(chosen) });
  };
  /** @param {string} chosen */
  const setB = (chosen) => {
    const { a, b } = currentState();
    changeState(Number(chosen) === a ? { a: b, b: a } : { b: Number(chosen) });
  };
  const swap = () => {
    const { a, b } = currentState();
    if (a !== null) changeState({ a: b, b: a });
  };
  const sides = [choice("A", options, "0", setA), choice("B", options, "0", setB)];
  const dots = sides.map((side) => {
    const dot = element("span", { class: "run-dot", "aria-hidden": "true" });
    side.prepend(dot);
    return dot;
  });
  const form = element(
    "form",
    {
      class: "pair-picker",
      "aria-label": "Runs to compare",
      onsubmit: (/** @type {Event} */ event) => event.preventDefault(),
    },
    sides[0],
    element("span", { class: "versus" }, "vs"),
    sides[1],
    element("button", { type: "button", class: "swap", title: "Exchange A and B", onclick: swap }, "⇄ swap"),
  );
  /** @param {number} a @param {number} b */
  const show = (a, b) => {
    [a, b].forEach((run, at) => {
      const select = sides[at].querySelector("select");
      if (select) select.value = String(run);
      dots[at].style.setProperty("background", runColours(page, currentState())[run]);
    });
  };
  return { form, show };
}

/** @param {PageData} page @param {number} a @param {number} b */
function untested(page, a, b) {
  if (page.comparison === null) return "Differences were not tested: run karat compare";
  const baseline = page.comparison.baseline ?? a;
  return (
    `${page.runs[b]} and ${page.runs[a]} were not tested against each other: ` +
    `every run was compared with the baseline ${page.runs[baseline]}`
  );
}

/** @param {string[]} notes */
function testNotes(notes) {
  return element(
    "details",
    { class: "tests" },
    element("summary", {}, "How differences were tested"),
    element("ul", { class: "remarks" }, notes.map((note) => element("li", {}, shown(note)))),
  );
}
