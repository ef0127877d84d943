// Starts the page, and connects buttons in other sections to the table of queries.
import { readPage } from "./data.js";
import { changeState, startState } from "./state.js";
import { setFilters, startQueries } from "./table.js";
import { startCharts } from "./charts.js";

const queriesSection = document.getElementById("queries");
const pageData = readPage();
const openQuery = (id) => changeState({ query: id });
startState(pageData);
startQueries(queriesSection, pageData);
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
