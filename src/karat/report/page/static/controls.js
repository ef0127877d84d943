// The controls above the table of queries.

import { choice, element, labelledControl, setOptions } from "./dom.js";
import { ANY, MOVEMENTS, NO_FILTERS, outcomeOptions, valueOptions } from "./filters.js";

const PAUSE = 150; // milliseconds after the last key press before a search

// Create the controls that these queries and runs need.
export function createControls({ page, rows }, change) {
  const numbered = (names) => names.map((name, at) => [String(at), name]);
  const set = (name) => (value) => change({ [name]: value });
  const setNumber = (name) => (value) => change({ [name]: Number(value) });
  const search = element("input", {
    type: "search",
    placeholder: rows.texts ? "id or text" : "id",
  });
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => change({ search: search.value }), PAUSE);
  });
  const choices = {
    measure: choice(
      "measure",
      numbered(page.measures.map(({ label }) => label)),
      "0",
      setNumber("measure"),
    ),
  };
  if (page.runs.length > 1) {
    choices.run = choice("run", numbered(page.runs), "0", setNumber("run"));
    choices.against = choice("compared with", numbered(page.runs), "0", setNumber("against"));
    choices.movement = choice("change", MOVEMENTS, ANY, set("movement"));
  }
  choices.outcome = choice("outcome", [[ANY, "any"]], ANY, set("outcome"));
  const fields = rows.fields.flatMap(({ name, words }, at) => (words ? [[String(at), name]] : []));
  if (fields.length) {
    choices.field = choice("group", [[ANY, "any"], ...fields], ANY, (field) =>
      change({ field, value: ANY }),
    );
    choices.value = choice("value", [[ANY, "any"]], ANY, set("value"));
  }
  const clear = element(
    "button",
    { type: "button", onclick: () => change(NO_FILTERS) },
    "clear filters",
  );
  const form = element(
    "form",
    { class: "controls", role: "search", onsubmit: (event) => event.preventDefault() },
    labelledControl("search", search, "search"),
    Object.values(choices),
    clear,
  );
  return { form, search, choices, clear };
}

// Set every control to the current state.
export function showControls(table) {
  const { rows, state } = table;
  const { search, choices, clear } = table.controls;
  if (document.activeElement !== search) search.value = state.search;
  const select = (name) => choices[name]?.querySelector("select");
  for (const name of ["measure", "run", "against", "movement", "field"]) {
    if (select(name)) select(name).value = String(state[name]);
  }
  setOptions(select("outcome"), outcomeOptions(table), state.outcome);
  if (choices.value) {
    const field = state.field === ANY ? null : rows.fields[state.field];
    choices.value.hidden = field === null;
    setOptions(select("value"), [[ANY, "any"], ...(field ? valueOptions(field) : [])], state.value);
  }
  clear.hidden = Object.keys(NO_FILTERS).every((name) => state[name] === NO_FILTERS[name]);
}
