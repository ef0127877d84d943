// Documents with what is gold and what was retrieved marked in them, and ranks in the margin.

import { choice, dataText, element, shown } from "./dom.js";
import { counted, grouped } from "./numbers.js";

const KINDS = {
  overlap: "gold and retrieved",
  gold: "gold, missed",
  retrieved: "retrieved, not gold",
};

// Show the documents of a query, as one run found them.
export function documentsOf(query, runs) {
  const { page, state, detail } = query;
  if (!detail?.documents?.length) return null;
  const body = element("div", { class: "documents" });
  const show = (run) =>
    body.replaceChildren(
      ...detail.documents.map((each) => documentOf(each, run, reach(query, run))),
      legend(query),
    );
  const named = runs.map((run) => [String(run), page.runs[run]]);
  const first = runs.includes(state.run) ? state.run : runs[0];
  show(first);
  return element(
    "section",
    { class: "highlights" },
    element("h4", {}, "In the documents"),
    runs.length > 1
      ? element(
          "div",
          { class: "controls" },
          choice("as found by", named, String(first), (run) => show(Number(run))),
        )
      : null,
    body,
  );
}

// How far down the chosen measure looks: a rank, or where its budget of characters is used up.
function reach({ measure, detail }, run) {
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
  const keys = Object.entries(KINDS).map(([kind, words]) =>
    element("li", {}, element("mark", { class: kind }, words)),
  );
  const limit = measure.cutoff ?? measure.budget;
  const words =
    limit === null
      ? "Retrieved: anywhere in the list."
      : `Retrieved: as far down as ${measure.name} looks; ranks beyond it stand in brackets.`;
  return element(
    "div",
    {},
    element("ul", { class: "kinds" }, keys),
    element("p", { class: "note" }, `${words} Ranks in the margin stand where an item begins.`),
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
  new ResizeObserver(() => gather(text)).observe(text); // now, and whenever lines break elsewhere
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
  // The kind is said too, for those who hear the page.
  return element(
    "mark",
    { class: kind, title: KINDS[kind] },
    element("span", { class: "unseen" }, `[${KINDS[kind]}: `),
    content,
    element("span", { class: "unseen" }, "] "),
  );
}

function skipped(length) {
  return element("span", { class: "skipped" }, `⋯ ${counted(length, "character")} ⋯`);
}

function marginMark(ranks, most) {
  const said = ranks.map((rank) => (rank <= most ? grouped(rank) : `(${grouped(rank)})`)).join(" ");
  return element("span", { class: "rank", "aria-label": `rank ${said}`, "data-said": said }, said);
}

// Begin a long document a little above what should be found in it.
function scrollToFirst(text) {
  const first = text.querySelector("mark.overlap, mark.gold") ?? text.querySelector("mark");
  if (first) text.scrollTop = first.offsetTop - text.clientHeight / 4;
}

// Marks of one line would stand on each other: the first says them all.
function gather(text) {
  const lines = new Map();
  for (const mark of text.querySelectorAll(".rank")) {
    mark.hidden = false;
    mark.textContent = mark.dataset.said;
    const line = Math.round(mark.offsetTop / 4);
    const leading = lines.get(line);
    if (leading) {
      leading.textContent += ` ${mark.dataset.said}`;
      leading.title = leading.textContent;
      mark.hidden = true;
    } else {
      lines.set(line, mark);
      mark.title = mark.textContent;
    }
  }
}
