// Starts the page, and connects buttons in the markup to the state of the page.

import { readPage } from "./data.js";
import { changeState, currentState, startState } from "./state.js";
import { namedFilters } from "./filters.js";
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
  if (show) showQueries(JSON.parse(show));
  if (copy) copyText(copy);
});

/**
 * Show some queries, given by the names of runs, measures and fields.
 * @param {Record<string, string>} names
 */
function showQueries(names) {
  const changes = namedFilters(page, currentState(), names);
  const improved = names.movement === "better"; // the largest improvement comes first
  const { higher } = page.measures[changes.measure ?? currentState().measure];
  changeState({
    ...changes,
    sort: improved ? "difference" : null,
    descending: improved && higher,
  });
  queriesSection?.scrollIntoView();
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
