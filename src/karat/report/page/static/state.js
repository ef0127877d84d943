// The state of the page that a link can hold: the compared runs, the measure, filters and query.

/**
 * @typedef {object} State
 * @property {number|null} a The run that b is compared with; null if there is only one run.
 * @property {number} b
 * @property {number} measure
 * @property {string} search
 * @property {string} outcome
 * @property {string} movement
 * @property {string} field The index of a field, or "".
 * @property {string} value The code of a value of the field, or "".
 * @property {string|null} sort The key of the column that the queries are sorted by; null: default.
 * @property {boolean} descending
 * @property {string|null} query The id of the opened query.
 */

/** @type {State} */
let state;
/** @type {State} */
let defaults;
/** @type {import("./types").PageData} */
let data;
/** @type {((changes: Partial<State>) => void)[]} */
const listeners = [];

const TEXTS = /** @type {const} */ (["search", "outcome", "movement", "sort", "query"]);

/** @returns {State} the current state, which only `changeState` may change */
export function currentState() {
  return state;
}

/** @param {(changes: Partial<State>) => void} listener is called after every change */
export function onStateChange(listener) {
  listeners.push(listener);
}

/**
 * Change the state, put it into the URL, and tell every listener.
 * @param {Partial<State>} changes
 */
export function changeState(changes) {
  Object.assign(state, changes);
  const hash = stateHash(state);
  const opens = "query" in changes && changes.query !== null && !location.hash.includes("query=");
  if (hash !== location.hash.slice(1)) {
    const url = hash ? `#${hash}` : location.pathname + location.search;
    // Opening a query adds a history entry, so that the back button closes it.
    history[opens ? "pushState" : "replaceState"](null, "", url);
  }
  for (const listener of listeners) listener(changes);
}

/**
 * Read the state from the URL.
 * @param {import("./types").PageData} page
 */
export function startState(page) {
  data = page;
  const [a, b] = page.pair ?? [null, 0];
  defaults = {
    a,
    b,
    measure: page.main,
    search: "",
    outcome: "",
    movement: "",
    field: "",
    value: "",
    sort: null,
    descending: false,
    query: null,
  };
  state = { ...defaults, ...stateOf(location.hash) };
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=") && location.hash) return; // a link to a section
    const read = { ...defaults, ...stateOf(location.hash) };
    Object.assign(state, read);
    for (const listener of listeners) listener(read);
  });
}

/** @param {State} current @returns {string} what differs from the defaults */
function stateHash(current) {
  const parts = new URLSearchParams();
  if (current.a !== null && (current.a !== defaults.a || current.b !== defaults.b)) {
    parts.set("a", data.runs[current.a]);
    parts.set("b", data.runs[current.b]);
  }
  if (current.measure !== defaults.measure) parts.set("measure", data.measures[current.measure].name);
  for (const name of TEXTS) if (current[name]) parts.set(name, String(current[name]));
  if (current.sort && current.descending) parts.set("descending", "1");
  const field = current.field === "" ? undefined : data.fields[Number(current.field)];
  if (field?.words && current.value !== "") {
    parts.set("field", field.name);
    const word = field.words[Number(current.value)];
    if (word !== undefined) parts.set("value", word);
  }
  return parts.toString();
}

/** @param {string} hash @returns {Partial<State>} the parts of the state that a link holds */
function stateOf(hash) {
  const parts = new URLSearchParams(hash.slice(1));
  /** @type {Partial<State>} */
  const read = {};
  const [a, b] = ["a", "b"].map((name) => data.runs.indexOf(parts.get(name) ?? ""));
  if (a >= 0 && b >= 0 && a !== b) Object.assign(read, { a, b });
  const measure = data.measures.findIndex(({ name }) => name === parts.get("measure"));
  if (measure >= 0) read.measure = measure;
  for (const name of TEXTS) if (parts.get(name)) read[name] = parts.get(name) ?? "";
  if (parts.has("descending")) read.descending = true;
  const field = data.fields.findIndex(({ name, words }) => words && name === parts.get("field"));
  if (field >= 0) {
    read.field = String(field);
    read.value = String((data.fields[field].words ?? []).indexOf(parts.get("value") ?? ""));
  }
  return read;
}
