// The data of the queries; compressed blocks are unpacked when they are first used.

/** @typedef {import("./types").PageData} PageData */
/** @typedef {import("./types").QueryLists} QueryLists */
/** @typedef {Float64Array | Int32Array | Uint8Array} Numbers */

const CACHED_BLOCKS = 8; // blocks of lists that stay unpacked, so that going back is fast

/** @type {Map<number, Promise<any>>} used at every sort, so they stay unpacked */
const columns = new Map();
/** @type {Map<number, Promise<any>>} lists and details: the oldest is dropped */
const recentBlocks = new Map();

/** @returns {PageData} */
export function readPage() {
  return JSON.parse(textOf("page"));
}

/**
 * Unpack a block as numbers or as JSON, once.
 * @template {Numbers | null} [Content=null]
 * @param {number} block
 * @param {(new (buffer: ArrayBuffer) => Content) | null} [Kind]
 * @returns {Promise<Content extends null ? any : Content>}
 */
export function column(block, Kind = null) {
  let content = columns.get(block);
  if (!content) {
    content = Kind ? numbersIn(block, Kind) : jsonIn(block);
    columns.set(block, content);
  }
  return content;
}

/**
 * Return the lists of a query, or null if the lists are not available.
 * @param {PageData} page
 * @param {number} row
 * @returns {Promise<QueryLists | null>}
 */
export async function listOf(page, row) {
  const block = page.lists.blocks[Math.floor(row / page.lists.size)];
  return block === undefined ? null : (await recent(block))[row % page.lists.size];
}

/**
 * Return the texts, calculations and highlights of a query, or null if the page has none.
 * @param {PageData} page
 * @param {number} row
 * @returns {Promise<any>}
 */
export async function detailOf(page, row) {
  const block = page.details[row];
  return block === undefined ? null : recent(block);
}

/** @param {number} block @returns {Promise<any>} */
function recent(block) {
  const content = recentBlocks.get(block) ?? jsonIn(block);
  recentBlocks.delete(block);
  recentBlocks.set(block, content);
  const [oldest] = recentBlocks.keys();
  if (recentBlocks.size > CACHED_BLOCKS) recentBlocks.delete(oldest);
  return content;
}

/** @param {number} block @param {new (buffer: ArrayBuffer) => any} Kind */
async function numbersIn(block, Kind) {
  return new Kind(await unpacked(`b${block}`).arrayBuffer());
}

/** @param {number} block @returns {Promise<any>} */
function jsonIn(block) {
  return unpacked(`b${block}`).json();
}

/** @param {string} id of an element with compressed content @returns {Response} */
export function unpacked(id) {
  const packed = bytesOf(textOf(id).trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream);
}

/** @param {string} id @returns {string} the content of a script element */
function textOf(id) {
  return document.getElementById(id)?.textContent ?? "";
}

/** @param {string} base64 @returns {Uint8Array<ArrayBuffer>} */
function bytesOf(base64) {
  if ("fromBase64" in Uint8Array)
    return /** @type {any} */ (Uint8Array).fromBase64(base64);
  const decoded = atob(base64);
  const bytes = new Uint8Array(decoded.length);
  for (let at = 0; at < decoded.length; at += 1) bytes[at] = decoded.charCodeAt(at);
  return bytes;
}
