// Starts the page, and connects buttons in the markup to the state of the page.

import { readPage } from "./data.js";
import { changeState, startState } from "./state.js";
import { copyText } from "./export.js";
import { startComparison } from "./comparison.js";
import { startQueries } from "./table.js";
import { startCharts } from "./charts.js";
import { startResults } from "./results.js";
import { startCard } from "./card.js";
import { startNavigation } from "./navigation.js";

/** @param {string} id @returns {HTMLElement | null} */
const sectionNamed = (id) => document.getElementById(id);
const page = readPage();
startState(page);
const queriesSection = sectionNamed("queries");
const comparisonSection = sectionNamed("comparison");
if (queriesSection) startQueries(queriesSection, page);
if (comparisonSection) startComparison(comparisonSection, page);
startResults();
startCard();
startCharts();
startNavigation();

document.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  const button = /** @type {HTMLElement | null} */ (
    target.closest("[data-show], [data-query], [data-copy]")
  );
  if (!button) return;
  const { query, show, copy } = button.dataset;
  if (query) changeState({ query: JSON.parse(query) });
  if (show) {
    changeState(filtersNamed(JSON.parse(show)));
    queriesSection?.scrollIntoView();
  }
  if (copy) copyText(copy);
});

/**
 * Return the state that shows some queries, given by the names of runs, measures and fields.
 * @param {Record<string, string>} names
 * @returns {Partial<import("./state.js").State>}
 */
function filtersNamed(names) {
  const b = page.runs.indexOf(names.run);
  const a = page.runs.indexOf(names.against);
  const measure = page.measures.findIndex(({ name }) => name === names.measure);
  const field = page.fields.findIndex(({ name, words }) => words && name === names.field);
  return {
    ...(b >= 0 ? runsShownWith(b, a) : {}),
    ...(measure >= 0 ? { measure } : {}),
    search: "",
    outcome: names.outcome ?? "",
    movement: names.movement ?? "",
    field: field >= 0 ? String(field) : "",
    value: field >= 0 ? String(page.fields[field].words?.indexOf(names.value) ?? "") : "",
    sort: names.movement === "better" ? "difference" : null,
    descending: names.movement === "better" && (page.measures[measure]?.higher ?? true),
  };
}

/** @param {number} b @param {number} a */
function runsShownWith(b, a) {
  if (page.runs.length < 2) return { b };
  if (a >= 0) return { a, b };
  const [first, second] = page.pair ?? [0, 1];
  return { b, a: b === first ? second : first };
}

// Print with all details expanded.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    /** @type {HTMLDetailsElement} */ (folded).open = true;
    folded.setAttribute("data-folded", "");
  }
});
addEventListener("afterprint", () => {
  for (const folded of document.querySelectorAll("details[data-folded]")) {
    /** @type {HTMLDetailsElement} */ (folded).open = false;
    folded.removeAttribute("data-folded");
  }
});
