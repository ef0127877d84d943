// The evidence texts of a query, and what each run retrieved of them.

import { dataText, element, shown } from "./dom.js";
import { counted, grouped, number } from "./numbers.js";
import { runDot } from "./columns.js";
import { runColours } from "./run_colours.js";
import { lastCounted, markedText } from "./ranking.js";

/** @typedef {import("./query.js").OpenedQuery} OpenedQuery */
/** @typedef {import("./types").EvidenceMatch} Match */

const EVIDENCE_TEXT = 2000; // characters
const CONTEXT = 300; // characters around a match
const LONG_TEXT = 500; // characters
const MANY_LINES = 6;

/**
 * Show each evidence text; those that no run covers come first.
 * @param {OpenedQuery} query
 */
export function evidenceOf(query) {
  const { detail, runs } = query;
  if (!detail?.evidence.length) return null;
  /** @param {number} run @param {number} at */
  const matchOf = (run, at) =>
    detail.runs[run].matches.find(({ evidence }) => evidence === at) ?? null;
  const texts = detail.evidence.map((text, at) => ({
    text,
    at,
    matches: runs.map((run) => matchOf(run, at)),
  }));
  if (!texts.some(({ matches }) => matches.some(Boolean))) return null;
  /** @param {(Match | null)[]} matches */
  const missed = (matches) => matches.every((match) => !match?.covered);
  const order = [...texts].sort((a, b) => Number(missed(b.matches)) - Number(missed(a.matches)));
  const unfound = texts.filter(({ matches }) => missed(matches)).length;
  const summary = unfound
    ? `${grouped(unfound)} of ${counted(texts.length, "evidence text")} not covered by ${runs.length === 1 ? "the run" : "any run"}`
    : "";
  return element(
    "section",
    { class: "highlights", "aria-labelledby": "query-evidence" },
    element("h3", { id: "query-evidence" }, "Evidence"),
    summary ? element("p", { class: "note" }, summary) : null,
    element(
      "ol",
      { class: "evidence" },
      order.map(({ text, at, matches }) =>
        element(
          "li",
          { class: missed(matches) ? "missed" : "covered", value: at + 1 },
          element("p", { class: "evidence-number" }, `Evidence text ${at + 1}`),
          dataText("blockquote", scrollable(`Evidence text ${at + 1}`, text), text, EVIDENCE_TEXT),
          element(
            "ul",
            { class: "matches" },
            matches.map((match, position) => matchLine(query, runs[position], match)),
          ),
        ),
      ),
    ),
  );
}

/**
 * What a text needs that may be too long for its box: to be reached with the keyboard.
 * @param {string} label
 * @param {string} text
 */
export function scrollable(label, text) {
  const long = text.length > LONG_TEXT || text.split("\n").length > MANY_LINES;
  return long ? { tabindex: "0", role: "region", "aria-label": shown(label) } : {};
}

/** @param {OpenedQuery} query @param {number} run @param {Match | null} match */
function matchLine(query, run, match) {
  const { page, state } = query;
  return element(
    "li",
    {},
    runDot(runColours(page, state)[run]),
    dataText("strong", {}, page.runs[run], 60),
    " ",
    match === null
      ? "✗ missed: the run has no list"
      : match.covered
        ? coveredText(query, run, match)
        : missedText(match),
    match ? inContext(query, match) : null,
  );
}

/** @param {OpenedQuery} query @param {number} run @param {Match} match */
function coveredText(query, run, { rank, how, ratio, item }) {
  const similarity = ratio === null || ratio === 1 ? "" : `, similarity ${number(ratio)}`;
  const below = (rank ?? 0) > lastCounted(query, run) ? ", below the cutoff" : "";
  return [
    element("span", { class: "better" }, `✓ covered at rank ${grouped(rank ?? 0)}`),
    ` (${how}${similarity}${below}) `,
    item === null ? null : dataText("code", {}, item, 120),
  ];
}

/** @param {Match} match */
function missedText({ rank, ratio, item }) {
  if (rank === null) return element("span", { class: "worse" }, "✗ missed, no similar item");
  const similarity = ratio === null ? "" : `, similarity ${number(ratio)}`;
  return [
    element("span", { class: "worse" }, "✗ missed"),
    `, nearest at rank ${grouped(rank)}${similarity} `,
    item === null ? null : dataText("code", {}, item, 120),
  ];
}

/** @param {OpenedQuery} query @param {Match} match */
function inContext({ chunk }, { covered, stretch }) {
  if (!stretch) return null;
  const characters = [...chunk(stretch.text)];
  const from = Math.max(0, stretch.start - CONTEXT);
  const to = covered ? Math.min(characters.length, stretch.end + CONTEXT) : characters.length;
  /** @type {[number, number][]} */
  const gold = covered ? [[stretch.start, stretch.end]] : [];
  return element(
    "details",
    { class: "in-context" },
    element("summary", {}, covered ? "in context" : "its text"),
    element(
      "p",
      { class: "chunk", dir: "auto" },
      from > 0 ? "… " : null,
      markedText(characters, gold, from, to),
      to < characters.length ? shown(" …") : null,
    ),
  );
}
