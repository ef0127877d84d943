// The columns of the table of queries.

import { dataText, element, gauge } from "./dom.js";
import { grouped, number, signed } from "./numbers.js";
import { OUTCOMES, difference, fieldText, numbersOf, textKeys } from "./rows.js";

const SHOWN_FIELDS = 3;
const SHOWN_RUNS = 6;
export const LONGEST = 160; // characters of a text in a cell

// The current columns: their titles, sort keys and cells.
export function columnsOf(table) {
  const { page, rows, state, values } = table;
  const measure = page.measures[state.measure];
  const cached = (key, make) => {
    if (!table.keys.has(key)) table.keys.set(key, make());
    return table.keys.get(key);
  };
  const columns = [
    { key: "query", words: "query", keys: () => cached("query", () => textKeys(rows.ids)) },
  ];
  rows.fields.slice(0, SHOWN_FIELDS).forEach((field, at) => {
    const key = `field${at}`;
    const code = (row) => (field.codes[row] < 0 ? NaN : field.codes[row]);
    const keys = () => (field.words ? numbersOf(rows.n, code) : textKeys(field.texts));
    const cell = (row) => dataText("td", { class: "field" }, fieldText(field, row) ?? "–", LONGEST);
    columns.push({ key, words: field.name, kind: "field", keys: () => cached(key, keys), cell });
  });
  const most = largest(values, measure);
  for (const run of runsShown(page, state)) {
    const cell = (row) => valueCell(values[run][row], measure, most);
    columns.push({
      key: `value${run}`,
      words: page.runs[run],
      kind: "numeric",
      keys: () => values[run],
      cell,
    });
  }
  if (state.against !== null) {
    const keys = () => numbersOf(rows.n, (row) => difference(values, state, row));
    const cell = (row) => differenceCell(difference(values, state, row), measure);
    const words =
      page.runs.length > 2 ? `${page.runs[state.run]} − ${page.runs[state.against]}` : "difference";
    columns.push({ key: "difference", words, kind: "numeric", keys, cell });
  }
  const outcomes = rows.outcomes[state.run];
  if (outcomes) columns.push(...outcomeColumns(rows, outcomes, rows.codes[state.run]));
  return columns;
}

function outcomeColumns(rows, { first, found }, codes) {
  const rank = (row) => first[row] || NaN;
  const known = (row) => rows.wanted[row] > 0 && OUTCOMES[codes[row]][0] !== "unknown";
  const share = (row) => (known(row) ? found[row] / rows.wanted[row] : NaN);
  const text = (row) => {
    const [name, label] = OUTCOMES[codes[row]];
    if (["failed", "missing", "unknown"].includes(name)) return label;
    return `${grouped(found[row])} of ${grouped(rows.wanted[row])}`;
  };
  return [
    {
      key: "first",
      words: "first hit",
      kind: "numeric",
      keys: () => numbersOf(rows.n, rank),
      cell: (row) => element("td", { class: "numeric" }, first[row] ? grouped(first[row]) : "–"),
    },
    {
      key: "found",
      words: "found",
      kind: "numeric",
      keys: () => numbersOf(rows.n, share),
      cell: (row) => element("td", { class: "numeric" }, text(row)),
    },
  ];
}

// All runs if there are few, otherwise the two compared runs.
export function runsShown(page, state) {
  if (page.runs.length <= SHOWN_RUNS) return [...page.runs.keys()];
  return [...new Set([state.against, state.run])];
}

export function ofMeasure(key) {
  return key === "difference" || key.startsWith("value");
}

// The value of a full bar: 1, or the largest value if there is a unit or values exceed 1.
function largest(values, { unit }) {
  let most = unit ? 0 : 1;
  values.forEach((each) => {
    for (const value of each) if (value > most) most = value;
  });
  return most;
}

function valueCell(value, measure, most) {
  const attributes = {
    class: "numeric value",
    "data-value": Number.isNaN(value) ? null : String(value),
  };
  return element(
    "td",
    attributes,
    element("span", {}, number(value, measure)),
    gauge(value / most),
  );
}

// A difference, with a mark for better or worse.
export function differenceCell(value, measure) {
  const better = measure.higher ? value > 0 : value < 0;
  const moved = value > 0 || value < 0;
  const sign = !moved ? "" : better ? "▲ " : "▼ ";
  const kind = !moved ? "" : better ? " better" : " worse";
  return element("td", { class: `numeric difference${kind}` }, sign + signed(value, measure));
}
