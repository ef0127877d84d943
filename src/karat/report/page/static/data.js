// What the page knows of its queries: small facts at once, blocks only when they are looked at.

const KEPT = 8; // blocks of lists that stay unpacked, so that going to and fro does not wait

const whole = new Map(); // columns: wanted again at every sort
const lately = new Map(); // lists and details: the oldest is let go

export function readPage() {
  return JSON.parse(document.getElementById("page").textContent);
}

// Unpack a block as numbers or as JSON, once.
export function column(block, Kind = null) {
  if (!whole.has(block)) whole.set(block, unpacked(block, Kind));
  return whole.get(block);
}

// Return what each run returned for a query, or null where the lists are not at hand.
export async function listOf(page, row) {
  const block = page.lists.blocks[Math.floor(row / page.lists.size)];
  return block === undefined ? null : (await recent(block))[row % page.lists.size];
}

// Return the texts, calculations and highlights of a query, or null where they are not kept.
export async function detailOf(page, row) {
  const block = page.details[row];
  return block === undefined ? null : recent(block);
}

function recent(block) {
  const found = lately.get(block) ?? unpacked(block);
  lately.delete(block);
  lately.set(block, found);
  if (lately.size > KEPT) lately.delete(lately.keys().next().value);
  return found;
}

async function unpacked(block, Kind) {
  const packed = bytesOf(document.getElementById(`b${block}`).textContent.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const response = new Response(stream);
  return Kind ? new Kind(await response.arrayBuffer()) : response.json();
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
