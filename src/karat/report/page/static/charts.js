// Charts are drawn when they scroll into view; the others when the browser is idle.

// Colours are variables of the style sheet, so that they follow light, dark and print styles.
const CHART_STYLE = {
  background: "transparent",
  font: "system-ui, sans-serif",
  axis: {
    domainColor: "var(--line-strong)",
    gridColor: "var(--line)",
    labelColor: "var(--muted)",
    tickColor: "var(--line-strong)",
    titleColor: "var(--ink)",
    titleFontWeight: 500,
  },
  header: { labelColor: "var(--ink)", titleColor: "var(--ink)" },
  legend: { labelColor: "var(--muted)", titleColor: "var(--ink)", titleFontWeight: 500 },
  text: { color: "var(--ink)" },
  title: { color: "var(--ink)", subtitleColor: "var(--muted)" },
  view: { stroke: "var(--line)" },
};

export function startCharts(openQuery) {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const waiting = new Map(
    charts.map((chart) => [document.getElementById(`chart-${chart.id}`), chart]),
  );
  const seen = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "50% 0%" },
  );

  function draw(figure) {
    const chart = waiting.get(figure);
    if (!chart) return;
    waiting.delete(figure);
    seen.unobserve(figure);
    drawChart(figure.querySelector(".drawing"), chart.spec, openQuery);
  }

  function drawNext() {
    const [figure] = waiting.keys();
    if (!figure) return;
    draw(figure);
    whenIdle(drawNext);
  }

  for (const figure of waiting.keys()) seen.observe(figure);
  whenIdle(drawNext);
  window.addEventListener("beforeprint", () => [...waiting.keys()].forEach(draw));
}

async function drawChart(container, spec, openQuery) {
  const options = { mode: "vega-lite", ast: true, actions: false, renderer: "svg", config: CHART_STYLE };
  const { view } = await vegaEmbed(container, spec, options);
  view.addEventListener("click", (event, item) => {
    const query = item?.datum?.query_id;
    if (typeof query === "string") openQuery(query);
  });
}

function whenIdle(work) {
  if ("requestIdleCallback" in window) requestIdleCallback(work, { timeout: 2000 });
  else setTimeout(work, 200);
}
