// Starts the page, and connects buttons in other sections to the table of queries.
import { readPage } from "./data.js";
import { changeState, startState } from "./state.js";
import { setFilters, startQueries } from "./table.js";
import { startCharts } from "./charts.js";

const queriesSection = document.getElementById("queries");
const page = readPage();
startState(page);
startQueries(queriesSection, page);
startCharts((id) => changeState({ query: id }));

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-show], [data-query]");
  if (!button) return;
  if (button.dataset.query) changeState({ query: JSON.parse(button.dataset.query) });
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
