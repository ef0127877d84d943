// The data of the queries; compressed blocks are unpacked when they are first used.

const CACHED_BLOCKS = 8; // blocks of lists that stay unpacked, so that going back is fast

const columns = new Map(); // used at every sort, so they stay unpacked
const recentBlocks = new Map(); // lists and details: the oldest is dropped

export function readPage() {
  return JSON.parse(document.getElementById("page").textContent);
}

// Unpack a block as numbers or as JSON, once.
export function column(block, Kind = null) {
  if (!columns.has(block)) columns.set(block, unpack(block, Kind));
  return columns.get(block);
}

// Return the lists of a query, or null if the lists are not available.
export async function listOf(page, row) {
  const block = page.lists.blocks[Math.floor(row / page.lists.size)];
  return block === undefined ? null : (await recent(block))[row % page.lists.size];
}

// Return the texts, calculations and highlights of a query, or null if the page has none.
export async function detailOf(page, row) {
  const block = page.details[row];
  return block === undefined ? null : recent(block);
}

function recent(block) {
  const content = recentBlocks.get(block) ?? unpack(block);
  recentBlocks.delete(block);
  recentBlocks.set(block, content);
  if (recentBlocks.size > CACHED_BLOCKS) recentBlocks.delete(recentBlocks.keys().next().value);
  return content;
}

async function unpack(block, Kind) {
  const response = unpacked(`b${block}`);
  return Kind ? new Kind(await response.arrayBuffer()) : response.json();
}

// Decompress the content of an element.
export function unpacked(id) {
  const packed = bytesOf(document.getElementById(id).textContent.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream);
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
