// Documents with gold and retrieved text highlighted, and ranks in the margin.

import { choice, dataText, element, shown } from "./dom.js";
import { counted, grouped } from "./numbers.js";

const KINDS = {
  overlap: "gold and retrieved",
  gold: "gold, missed",
  retrieved: "retrieved, not gold",
};

// Show the documents of a query, highlighted for one run.
export function documentsOf(query, runs) {
  const { page, state, detail } = query;
  if (!detail?.documents?.length) return null;
  const body = element("div", { class: "documents" });
  const show = (run) =>
    body.replaceChildren(
      ...detail.documents.map((document) => documentOf(document, run, maxRank(query, run))),
      legend(query),
    );
  const named = runs.map((run) => [String(run), page.runs[run]]);
  const first = runs.includes(state.run) ? state.run : runs[0];
  show(first);
  return element(
    "section",
    { class: "highlights" },
    element("h4", {}, "Documents"),
    runs.length > 1
      ? element(
          "div",
          { class: "controls" },
          choice("run", named, String(first), (run) => show(Number(run))),
        )
      : null,
    body,
  );
}

// The last rank that the chosen measure reads: its cutoff, or where its character budget ends.
function maxRank({ measure, detail }, run) {
  if (measure.cutoff !== null) return measure.cutoff;
  if (measure.budget === null) return Infinity;
  let characters = 0;
  for (const { rank, start, end } of detail.runs[run].results) {
    if (characters >= measure.budget) return rank - 1;
    characters += (end ?? 0) - (start ?? 0);
  }
  return Infinity;
}

function legend({ measure }) {
  const keys = Object.entries(KINDS).map(([kind, label]) =>
    element("li", {}, element("mark", { class: kind }, label)),
  );
  const limit = measure.cutoff ?? measure.budget;
  const text =
    limit === null
      ? "Retrieved: at any rank."
      : `Retrieved: within the cutoff of ${measure.name}; ranks beyond it are in parentheses.`;
  return element(
    "div",
    {},
    element("ul", { class: "kinds" }, keys),
    element("p", { class: "note" }, `${text} Ranks in the margin mark the start of an item.`),
  );
}

function documentOf({ doc_id: name, length, pieces }, run, most) {
  const text = element("div", { class: "document-text", dir: "auto" });
  let end = 0;
  let before = new Set();
  for (const piece of pieces) {
    if (piece.start > end) {
      text.append(skipped(piece.start - end));
      before = new Set();
    }
    const ranks = piece.ranks[run] ?? [];
    const begins = ranks.filter((rank) => !before.has(rank));
    if (begins.length) text.append(marginMark(begins, most));
    text.append(
      pieceOf(
        piece,
        ranks.some((rank) => rank <= most),
      ),
    );
    before = new Set(ranks);
    end = piece.end;
  }
  if (length !== null && end < length) text.append(skipped(length - end));
  new ResizeObserver(() => gather(text)).observe(text); // now, and whenever the line breaks change
  requestAnimationFrame(() => scrollToFirst(text));
  const size = length === null ? null : element("small", {}, ` ${counted(length, "character")}`);
  return element(
    "article",
    { class: "document" },
    element("h5", {}, dataText("code", {}, name, 120), size),
    text,
  );
}

function pieceOf({ start, end, text, gold }, retrieved) {
  const kind = gold ? (retrieved ? "overlap" : "gold") : retrieved ? "retrieved" : null;
  const content = text === null ? skipped(end - start) : shown(text.replaceAll("\r\n", "\n"));
  if (kind === null) return text === null ? content : document.createTextNode(content);
  // The kind is also given as text, for screen readers.
  return element(
    "mark",
    { class: kind, title: KINDS[kind] },
    element("span", { class: "visually-hidden" }, `[${KINDS[kind]}: `),
    content,
    element("span", { class: "visually-hidden" }, "] "),
  );
}

function skipped(length) {
  return element("span", { class: "skipped" }, `⋯ ${counted(length, "character")} ⋯`);
}

function marginMark(ranks, most) {
  const text = ranks.map((rank) => (rank <= most ? grouped(rank) : `(${grouped(rank)})`)).join(" ");
  return element("span", { class: "rank", "aria-label": `rank ${text}`, "data-ranks": text }, text);
}

// Scroll a long document to slightly above its first gold text.
function scrollToFirst(text) {
  const first = text.querySelector("mark.overlap, mark.gold") ?? text.querySelector("mark");
  if (first) text.scrollTop = first.offsetTop - text.clientHeight / 4;
}

// Rank marks on one line would overlap: the first one shows all of them.
function gather(text) {
  const lines = new Map();
  for (const mark of text.querySelectorAll(".rank")) {
    mark.hidden = false;
    mark.textContent = mark.dataset.ranks;
    const line = Math.round(mark.offsetTop / 4);
    const leading = lines.get(line);
    if (leading) {
      leading.textContent += ` ${mark.dataset.ranks}`;
      leading.title = leading.textContent;
      mark.hidden = true;
    } else {
      lines.set(line, mark);
      mark.title = mark.textContent;
    }
  }
}
