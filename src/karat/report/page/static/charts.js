// Charts are drawn when they scroll into view; the others when the browser is idle.
import { choice, element } from "./dom.js";
import { downloadPng, downloadSvg } from "./export.js";
import { loadVega } from "./vega.js";

/** @typedef {{ id: string, title: string, spec: object }} Chart */

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

/** Draw the charts of the page, and start the pickers of charts and tables. */
export function startCharts() {
  for (const box of document.querySelectorAll("[data-picker]")) startPicker(box);
  /** @type {Chart[]} */
  const charts = JSON.parse(document.getElementById("charts")?.textContent ?? "[]");
  /** @type {Map<Element, Chart>} */
  const waiting = new Map();
  for (const chart of charts) {
    const figure = document.getElementById(`chart-${chart.id}`);
    if (figure) waiting.set(figure, chart);
  }
  const seen = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "50% 0%" },
  );

  /** @param {Element} figure */
  function draw(figure) {
    const chart = waiting.get(figure);
    if (!chart) return;
    waiting.delete(figure);
    seen.unobserve(figure);
    drawChart(figure, chart);
  }

  // A hidden figure has no width; it is drawn when it is unfolded or picked.
  const visible = () => [...waiting.keys()].filter((figure) => figure.checkVisibility());

  function drawNext() {
    const [figure] = visible();
    if (!figure) return;
    draw(figure);
    whenIdle(drawNext);
  }

  for (const figure of waiting.keys()) seen.observe(figure);
  whenIdle(drawNext);
  addEventListener("resize", () => document.querySelectorAll(".drawing").forEach(markScrolling));
  addEventListener("beforeprint", () => {
    // The page unfolds everything for print; what has a chart must be unfolded before it is drawn.
    for (const figure of waiting.keys()) {
      const folded = figure.closest("details:not([open])");
      if (folded instanceof HTMLDetailsElement) {
        folded.open = true;
        folded.dataset.folded = "";
      }
    }
    visible().forEach(draw);
  });
}

/** @param {Element} figure @param {Chart} chart */
async function drawChart(figure, chart) {
  const plot = /** @type {HTMLElement} */ (figure.querySelector(".plot"));
  const options = { mode: "vega-lite", ast: true, actions: false, renderer: "svg", config: CHART_STYLE };
  const embed = await loadVega();
  await embed(plot, chart.spec, options);
  plot.classList.add("drawn");
  markScrolling(figure.querySelector(".drawing"));
  /** @param {string} kind @param {(svg: SVGSVGElement, name: string) => unknown} save */
  const button = (kind, save) => {
    const onclick = () => {
      const svg = plot.querySelector("svg");
      if (svg) save(svg, chart.title);
    };
    const label = `${kind}: download ${chart.title}`;
    return element("button", { type: "button", "aria-label": label, onclick }, kind);
  };
  figure.querySelector(".figure-tools")?.append(button("PNG", downloadPng), button("SVG", downloadSvg));
}

/**
 * Make a box that scrolls reachable by keyboard.
 * @param {Element | null} box
 */
function markScrolling(box) {
  if (!box) return;
  const title = box.closest("figure")?.querySelector("h3")?.textContent ?? "";
  const attributes = { tabindex: "0", role: "region", "aria-label": `Chart, scrollable: ${title}` };
  const scrolls = box.scrollWidth > box.clientWidth;
  for (const [name, value] of Object.entries(attributes)) {
    if (scrolls) box.setAttribute(name, value);
    else box.removeAttribute(name);
  }
}

/**
 * Show one of several charts or tables at a time; those with the same option are shown together.
 * @param {Element} box
 */
function startPicker(box) {
  const parts = /** @type {HTMLElement[]} */ ([...box.querySelectorAll("[data-option]")]);
  const options = [...new Set(parts.map((part) => part.dataset.option ?? ""))];
  if (options.length < 2) return;
  /** @param {string} chosen */
  const pick = (chosen) => {
    for (const part of parts) part.classList.toggle("unpicked", part.dataset.option !== chosen);
  };
  const label = box.getAttribute("data-picker") ?? "";
  const picker = choice(label, options.map((option) => [option, option]), options[0], pick);
  picker.classList.add("picker");
  box.prepend(picker);
  pick(options[0]);
}

/** @param {() => void} work */
function whenIdle(work) {
  if ("requestIdleCallback" in window) requestIdleCallback(work, { timeout: 2000 });
  else setTimeout(work, 200);
}
