// How a value is computed, as `karat explain` shows it.

import { dataText, element, scrolling, shown } from "./dom.js";
import { amount, grouped, number } from "./numbers.js";

/** @typedef {import("./types").ShownCalculation} Calculation */
/** @typedef {import("./query.js").OpenedQuery} OpenedQuery */
/** @typedef {Record<string, unknown>} CalculatedRow */

const TOP_ROWS = 20; // shown items of the ideal list, and of the missed items
const AMOUNTS = ["ms", "USD"];

/**
 * The calculation of the chosen measure, folded, for one run.
 * @param {OpenedQuery} query
 * @param {number} run
 */
export function calculationOf({ page, detail, measure }, run) {
  const calculation = detail?.runs[run].calculations[measure.name];
  if (!calculation) return null;
  const { columns: recorded, rows, counted: counts, ideal, numbers, remarks, value } = calculation;
  const moreIdeal = calculation.n_ideal - Math.min(ideal.length, TOP_ROWS);
  const last = recorded[recorded.length - 1];
  const contributing = rows.filter(
    (row) => counts.includes(Number(row.rank)) && (last === undefined || Boolean(row[last])),
  );
  const facts = Object.entries(numbers).map(([name, each]) => `${name} = ${exactly(each)}`);
  const title = `${measure.name} of ${page.runs[run]} = ${exactly(value)}`;
  const table = `Calculation of ${page.runs[run]}`;
  return element(
    "details",
    { class: "calculation" },
    dataText("summary", {}, title, 200),
    rows.length ? rowsTable(table, rows, new Set(contributing)) : null,
    missedItems(calculation),
    ideal.length
      ? [
          element("h4", {}, "Ideal list"),
          rowsTable(`Ideal list, ${page.runs[run]}`, ideal.slice(0, TOP_ROWS)),
        ]
      : null,
    moreIdeal > 0 ? element("p", { class: "note" }, `${grouped(moreIdeal)} more`) : null,
    element(
      "ul",
      { class: "facts" },
      [...facts, ...remarks, `${measure.name} = ${exactly(value)}`].map((fact) =>
        dataText("li", {}, fact, 400),
      ),
    ),
  );
}

/** @param {Calculation} calculation */
function missedItems({ missed, n_missed: all }) {
  if (!missed.length) return null;
  const named = missed.slice(0, TOP_ROWS).map(({ item, grade, rank }) => {
    const position = (rank ?? null) === null ? "" : `, at rank ${rank}`;
    return element(
      "li",
      {},
      dataText("code", {}, String(item), 120),
      ` grade ${grade}${position}`,
    );
  });
  const left = all - named.length;
  const more = left > 0 ? element("li", {}, `${grouped(left)} more`) : null;
  return element(
    "div",
    { class: "missing" },
    element("h4", {}, "Missed relevant items"),
    element("ul", {}, named, more),
  );
}

/**
 * A table of rows with possibly different keys; columns of integers are shown without decimals.
 * @param {string} name
 * @param {CalculatedRow[]} rows
 * @param {Set<CalculatedRow>} [counts]
 */
function rowsTable(name, rows, counts = new Set()) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const wholes = new Map(
    keys.map((key) => [
      key,
      rows.every((row) => typeof row[key] !== "number" || Number.isInteger(row[key])),
    ]),
  );
  const head = keys.map((key) =>
    dataText("th", { scope: "col", class: key === "item" ? null : "numeric" }, key, 60),
  );
  const lines = rows.map((row) => {
    const cells = keys.map((key) => {
      const text = calculatedText(row[key] ?? null, key, wholes.get(key) ?? false);
      const named = typeof row[key] === "string";
      return element(
        "td",
        { class: named ? "item" : "numeric" },
        dataText(named ? "code" : "span", {}, text, 120),
      );
    });
    return element("tr", { class: counts.has(row) ? "hit" : null }, cells);
  });
  return scrolling(
    shown(name),
    element(
      "table",
      { class: "calculated" },
      element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, lines),
    ),
  );
}

/** @param {unknown} value @param {string} key @param {boolean} whole */
function calculatedText(value, key, whole) {
  if (value === null) return "–";
  if (typeof value !== "number" || whole) return String(value);
  return AMOUNTS.includes(key) ? amount(value) : number(value, undefined, 4);
}

/** @param {unknown} value */
function exactly(value) {
  return value === null ? "left out" : String(value);
}
