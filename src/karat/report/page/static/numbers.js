// Numbers in the same format as in the tables of the terminal.

/** @typedef {{ unit?: string | null, whole?: boolean }} Format */

const DASH = "–";
/** Two means may differ by so much only because sums are rounded. */
const SMALLEST_DIFFERENCE = 1e-12;

/**
 * Format a value of a measure: three decimals; counts as integers; amounts by their size.
 * @param {number | null} value
 * @param {Format} [measure]
 */
export function number(value, measure, decimals = 3) {
  if (value === null || Number.isNaN(value)) return DASH;
  if (measure?.whole && Number.isInteger(value)) return grouped(fixed(value, 0));
  return measure?.unit ? amount(value) : fixed(value, decimals);
}

/**
 * Format an amount: two decimals, or as many as needed for three significant digits.
 * @param {number} value
 */
export function amount(value) {
  const exponent = value > 0 ? Number(value.toExponential().split("e")[1]) : 0;
  return grouped(fixed(value, Math.max(2, 2 - exponent)));
}

/**
 * Format a difference between two values of a measure, with its sign.
 * @param {number | null} value
 * @param {Format} [measure]
 */
export function signed(value, measure) {
  if (value === null || Number.isNaN(value)) return DASH;
  return (value > 0 ? "+" : value < 0 ? "-" : "") + notAsZero(Math.abs(value), number(Math.abs(value), measure));
}

/**
 * A formatted number, with one significant digit if rounding made it zero, like cells.format_size.
 * @param {number} size
 * @param {string} formatted
 */
function notAsZero(size, formatted) {
  if (size <= SMALLEST_DIFFERENCE || /[1-9]/.test(formatted)) return formatted;
  const rounded = size.toExponential(0);
  return Number(rounded) >= 1e-4 ? String(Number(rounded)) : rounded.replace(/-(\d)$/, "-0$1");
}

/** @param {number | string} digits */
export function grouped(digits) {
  const [whole, ...rest] = String(digits).split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, ","), ...rest].join(".");
}

/**
 * "1 query", "2 queries", like errors.counted.
 * @param {number} count
 * @param {string} word
 */
export function counted(count, word) {
  const many = word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`;
  return `${grouped(count)} ${count === 1 ? word : many}`;
}

/**
 * Python rounds half to even, toFixed rounds half away from zero. Only odd multiples of
 * 2^-(decimals + 1) are exact halves, and scaling by a power of two is exact.
 * @param {number} value
 * @param {number} decimals
 */
function fixed(value, decimals) {
  const size = Math.abs(value);
  const digitsAfterPoint = Math.min(decimals, 99);
  const scaled = size * 2 ** (digitsAfterPoint + 1);
  let digits = size.toFixed(digitsAfterPoint);
  const middle = digitsAfterPoint > 0 && Number.isInteger(scaled) && scaled % 2 === 1;
  if (middle && Number(digits.at(-1)) % 2 === 1) digits = size.toFixed(digitsAfterPoint + 1).slice(0, -1);
  return (value < 0 || Object.is(value, -0) ? "-" : "") + digits;
}

/**
 * Format a p-value like format.probability: rounding changes it neither to 0 nor to 0.05.
 * @param {number|null} p
 * @returns {string}
 */
export function probability(p) {
  if (p === null) return DASH;
  if (p < 0.001) return "<0.001";
  let decimals = 3;
  while (p < 0.05 && Number(p.toFixed(decimals)) >= 0.05) decimals += 1;
  return fixed(p, decimals);
}
