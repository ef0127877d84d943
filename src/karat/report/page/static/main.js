// Starts the page, and connects buttons in other sections to the table of queries.
import { openQuery, setFilters, startQueries } from "./table.js";
import { startCharts } from "./charts.js";
import { startComparison } from "./comparison.js";
import { onStateChange, startState } from "./state.js";
import { readPage } from "./data.js";

const queriesSection = document.getElementById("queries");
const page = readPage();
startState(page);
const comparisonSection = document.getElementById("comparison");
if (comparisonSection) startComparison(comparisonSection, page);
onStateChange(({ query, movement }) => {
  if (query) openQuery(query);
  if (movement) setFilters({ movement });
});
startQueries(queriesSection);
startCharts(openQuery);

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-show], [data-query]");
  if (!button) return;
  if (button.dataset.query) openQuery(JSON.parse(button.dataset.query));
  if (button.dataset.show) {
    setFilters(JSON.parse(button.dataset.show));
    queriesSection.scrollIntoView();
  }
});

// Print with all details expanded.
window.addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    folded.dataset.folded = "";
  }
});
window.addEventListener("afterprint", () => {
  for (const folded of document.querySelectorAll("details[data-folded]")) {
    folded.open = false;
    delete folded.dataset.folded;
  }
});
