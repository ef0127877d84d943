// What covers each evidence text of a query, or comes nearest to it.

import { dataText, element } from "./dom.js";
import { number } from "./numbers.js";

export function evidenceOf({ page, detail }, runs) {
  if (!detail?.runs.some(({ matches }) => matches?.length)) return null;
  const columns = runs.map((run) =>
    element(
      "section",
      { class: "run", "aria-label": page.runs[run] },
      dataText("h4", {}, page.runs[run], 80),
      element("ol", { class: "evidence" }, (detail.runs[run].matches ?? []).map(matchOf)),
    ),
  );
  return element(
    "section",
    { class: "highlights" },
    element("h4", {}, "Evidence texts"),
    element("div", { class: "runs" }, columns),
  );
}

function matchOf(match) {
  const covered = match.rank !== null;
  return element(
    "li",
    { class: covered ? "covered" : "missed" },
    dataText("blockquote", { class: covered ? "overlap" : "gold" }, match.evidence, 2000),
    covered ? found(match) : nearest(match),
  );
}

function found({ rank, item, how, ratio, before, stretch, after }) {
  const similarity = ratio === null ? "" : `, ratio ${number(ratio, undefined, 4)}`;
  const summary = element(
    "p",
    {},
    `✓ covered at rank ${rank} `,
    item ? dataText("code", {}, item, 120) : null,
    `: ${how}${similarity}`,
  );
  if (stretch === null || stretch === undefined) return summary;
  return [
    summary,
    element(
      "p",
      { class: "chunk" },
      dataText("span", {}, before ?? ""),
      dataText("mark", { class: "overlap" }, stretch),
      dataText("span", {}, after ?? ""),
    ),
  ];
}

function nearest({
  nearest_rank: rank,
  nearest_item: item,
  nearest_ratio: ratio,
  nearest_text: text,
}) {
  if (rank === null || rank === undefined)
    return element("p", {}, "✗ missed: no similar item");
  const similarity = ratio === null ? "" : `, ratio ${number(ratio, undefined, 4)}`;
  return [
    element(
      "p",
      {},
      `✗ missed; the nearest item is at rank ${rank} `,
      item ? dataText("code", {}, item, 120) : null,
      similarity,
    ),
    text ? dataText("p", { class: "chunk" }, text, 2000) : null,
  ];
}
