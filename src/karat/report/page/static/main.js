// Starts everything, and lets what is said above the table of queries lead into it.
import { openQuery, setFilters, startQueries } from "./table.js";
import { startCharts } from "./charts.js";

const queriesSection = document.getElementById("queries");
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

// On paper nothing can be unfolded.
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
