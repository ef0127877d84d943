// The leaderboard: a click on the head of a column sorts the runs by it.

/** Make every head of the leaderboard a button that sorts. */
export function startResults() {
  const table = document.querySelector("table.leaderboard");
  for (const head of table?.querySelectorAll("thead th[data-sort]") ?? []) {
    const label = head.querySelector("span");
    if (!label) continue;
    const button = document.createElement("button");
    button.type = "button";
    label.replaceWith(button);
    button.append(label);
    button.addEventListener("click", () => sortLeaderboard(/** @type {HTMLElement} */ (head)));
  }
}

/**
 * Sort the rows by a column: best first, and in the other direction with the second click.
 * @param {HTMLElement} head
 */
function sortLeaderboard(head) {
  const heads = head.parentElement;
  const body = head.closest("table")?.tBodies[0];
  if (!heads || !body) return;
  const first = head.dataset.sort === "descending" ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const direction = head.getAttribute("aria-sort") === first ? other : first;
  for (const each of heads.children) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction);
  const column = [...heads.children].indexOf(head);
  const byName = head.dataset.sort === "name";
  const sign = direction === "ascending" ? 1 : -1;
  const rows = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column], byName) }));
  rows.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
    if (typeof a.key === "string" && typeof b.key === "string") {
      return sign * a.key.localeCompare(b.key, "en", { numeric: true });
    }
    return sign * (Number(a.key) - Number(b.key));
  });
  body.append(...rows.map(({ row }) => row));
}

/**
 * What a cell is sorted by; a cell without a value is always last.
 * @param {HTMLTableCellElement} cell
 * @param {boolean} byName
 * @returns {string|number|null}
 */
function sortKey(cell, byName) {
  if (byName) return cell.querySelector("bdi")?.textContent ?? "";
  return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
}
