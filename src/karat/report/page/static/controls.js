// The controls above the list of queries.

import { choice, element, labelledControl, setOptions } from "./dom.js";
import { ANY, MOVEMENTS, NO_FILTERS, outcomeOptions, pairWith, valueOptions } from "./filters.js";
import { changeState, currentState } from "./state.js";

/** @typedef {import("./dom.js").Option} Option */
/** @typedef {import("./filters.js").Filtering} Filtering */
/** @typedef {import("./rows.js").Rows} Rows */
/** @typedef {import("./types").PageData} PageData */
/**
 * @typedef {object} Controls
 * @property {HTMLFormElement} form
 * @property {HTMLInputElement} search
 * @property {Record<string, HTMLElement>} choices
 * @property {HTMLButtonElement} clear
 */

const PAUSE = 150; // milliseconds after the last key press before a search

/**
 * Create the controls that these queries and runs need.
 * @param {PageData} page
 * @param {Rows} rows
 * @returns {Controls}
 */
export function createControls(page, rows) {
  const search = searchField(rows);
  const measures = numbered(page.measures.map(({ label }) => label));
  /** @type {Record<string, HTMLElement>} */
  const choices = {
    measure: choice("measure", measures, "0", (value) => changeState({ measure: Number(value) })),
  };
  const several = page.runs.length > 1;
  if (several) {
    const choose = (/** @type {"a" | "b"} */ side) => (/** @type {string} */ value) =>
      changeState(pairWith(currentState(), side, Number(value)));
    choices.a = choice("run A", numbered(page.runs), "0", choose("a"));
    choices.b = choice("run B", numbered(page.runs), "0", choose("b"));
    choices.movement = choice("change", MOVEMENTS, ANY, (movement) => changeState({ movement }));
  }
  choices.outcome = choice(several ? "found by B" : "found?", [[ANY, "any"]], ANY, (outcome) =>
    changeState({ outcome }),
  );
  Object.assign(choices, groupChoices(rows));
  const clear = element(
    "button",
    { type: "button", class: "clear", onclick: () => changeState(NO_FILTERS) },
    "clear filters",
  );
  const form = element(
    "form",
    { class: "controls", role: "search", "aria-label": "Queries", onsubmit: stay },
    labelledControl("search", search, "search"),
    Object.values(choices),
    clear,
  );
  return { form, search, choices, clear };
}

/** @param {Event} event */
function stay(event) {
  event.preventDefault();
}

/** @param {string[]} names @returns {Option[]} */
function numbered(names) {
  return names.map((name, at) => [String(at), name]);
}

/** @param {Rows} rows */
function searchField(rows) {
  const placeholder = rows.texts ? "id or text" : "id";
  const search = element("input", { type: "search", placeholder });
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => changeState({ search: search.value }), PAUSE);
  });
  return search;
}

/** @param {Rows} rows @returns {Record<string, HTMLElement>} */
function groupChoices(rows) {
  /** @type {Option[]} */
  const fields = rows.fields.flatMap(({ name, words }, at) => (words ? [[String(at), name]] : []));
  if (!fields.length) return {};
  const any = /** @type {Option} */ ([ANY, "any"]);
  return {
    field: choice("group", [any, ...fields], ANY, (field) => changeState({ field, value: ANY })),
    value: choice("value", [any], ANY, (value) => changeState({ value })),
  };
}

/**
 * Set every control to the current state.
 * @param {Filtering & { controls: Controls }} table
 */
export function showControls(table) {
  const { rows, state } = table;
  const { search, choices, clear } = table.controls;
  if (document.activeElement !== search) search.value = state.search;
  /** @param {string} name @param {(select: HTMLSelectElement) => void} set */
  const set = (name, set) => {
    const select = choices[name]?.querySelector("select");
    if (select) set(select);
  };
  for (const name of /** @type {const} */ (["measure", "a", "b", "movement", "field"]))
    set(name, (select) => {
      select.value = String(state[name]);
    });
  set("outcome", (select) => setOptions(select, outcomeOptions(table), state.outcome));
  set("value", (select) => {
    const field = state.field === ANY ? undefined : rows.fields[Number(state.field)];
    choices.value.hidden = !field;
    setOptions(select, [[ANY, "any"], ...(field ? valueOptions(field) : [])], state.value);
  });
  clear.hidden = /** @type {const} */ (["search", "field", "value", "outcome", "movement"]).every(
    (name) => state[name] === NO_FILTERS[name],
  );
}
