// Copying and saving what the page shows.

/**
 * Save rows as a CSV file.
 * @param {string} name
 * @param {(string | number | null)[][]} rows
 */
export function downloadCsv(name, rows) {
  const text = rows.map((row) => row.map(csvCell).join(",")).join("\r\n");
  const url = URL.createObjectURL(new Blob([`${text}\r\n`], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** @param {string | number | null} value */
function csvCell(value) {
  const text = value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Copy a text, and say so.
 * @param {string} text
 * @param {HTMLElement} status
 */
export async function copyText(text, status) {
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = "copied";
  } catch {
    status.textContent = "cannot copy: the browser does not allow it";
  }
}
