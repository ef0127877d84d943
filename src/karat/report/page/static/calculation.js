// How a value is computed, as `karat explain` shows it.

import { dataText, element, scrolling, shown } from "./dom.js";
import { amount, grouped, number } from "./numbers.js";

const TOP = 20; // shown items of the ideal list, and of the missed items
const UNITS = ["ms", "USD"];

export function calculationOf(calculation, measure) {
  if (!calculation) return null;
  const { columns, rows, counted: counts, ideal, numbers, remarks, value } = calculation;
  const moreIdeal = calculation.n_ideal - Math.min(ideal.length, TOP);
  const contributes = (row) => columns.length === 0 || Boolean(row[columns.at(-1)]);
  const ranks = new Set(
    rows.filter((row) => counts.includes(row.rank) && contributes(row)).map(({ rank }) => rank),
  );
  const facts = Object.entries(numbers).map(([name, number]) => `${name} = ${exact(number)}`);
  return element(
    "details",
    { class: "calculation", open: true },
    element("summary", {}, shown(`Calculation of ${measure.name}`)),
    rows.length ? rowsTable("Calculation", rows, ranks) : null,
    missedItems(calculation),
    ideal.length
      ? [element("h5", {}, "Ideal list"), rowsTable("Ideal list", ideal.slice(0, TOP))]
      : null,
    moreIdeal > 0 ? element("p", { class: "note" }, `${grouped(moreIdeal)} more`) : null,
    element(
      "ul",
      { class: "facts" },
      [...facts, ...remarks, `${measure.name} = ${exact(value)}`].map((fact) =>
        dataText("li", {}, fact, 400),
      ),
    ),
  );
}

function missedItems({ missed, n_missed: all }) {
  if (!missed.length) return null;
  const named = missed.slice(0, TOP).map(({ item, grade, rank }) => {
    const position = rank === null ? "" : `, at rank ${rank}`;
    return element("li", {}, dataText("code", {}, item, 120), ` grade ${grade}${position}`);
  });
  const left = all - named.length;
  const more = left > 0 ? element("li", {}, `${grouped(left)} more`) : null;
  return element(
    "div",
    { class: "missing" },
    element("h5", {}, "Missed relevant items"),
    element("ul", {}, named, more),
  );
}

// A table of rows with possibly different keys; columns of integers are shown without decimals.
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
      const text = cellText(row[key] ?? null, key, wholes.get(key));
      const named = typeof row[key] === "string";
      return element(
        "td",
        { class: named ? "item" : "numeric" },
        dataText(named ? "code" : "span", {}, text, 120),
      );
    });
    return element("tr", { class: counts.has(row.rank) ? "hit" : null }, cells);
  });
  return scrolling(
    name,
    element(
      "table",
      { class: "calculated" },
      element("thead", {}, element("tr", {}, head)),
      element("tbody", {}, lines),
    ),
  );
}

function cellText(value, key, whole) {
  if (value === null) return "–";
  if (typeof value !== "number" || whole) return String(value);
  return UNITS.includes(key) ? amount(value) : number(value, undefined, 4);
}

function exact(value) {
  return value === null ? "left out" : String(value);
}
