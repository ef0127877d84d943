// Numbers as the tables of the terminal show them, digit for digit.

const DASH = "–";

// Show a value of a measure: four decimals, whole numbers whole, amounts by their size.
export function number(value, measure) {
  if (value === null || Number.isNaN(value)) return DASH;
  if (measure?.whole && Number.isInteger(value)) return grouped(fixed(value, 0));
  return measure?.unit ? amount(value) : fixed(value, 4);
}

// Show an amount of any size: two decimals, or as many as three digits take.
export function amount(value) {
  const exponent = value > 0 ? Number(value.toExponential().split("e")[1]) : 0;
  return grouped(fixed(value, Math.max(2, 2 - exponent)));
}

// Show a difference between two values of a measure, with its sign.
export function signed(value, measure) {
  if (value === null || Number.isNaN(value)) return DASH;
  return (value > 0 ? "+" : value < 0 ? "-" : "") + number(Math.abs(value), measure);
}

export function grouped(digits) {
  const [whole, ...rest] = String(digits).split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, ","), ...rest].join(".");
}

// "1 query", "2 queries", as errors.counted says it.
export function counted(count, word) {
  const many = word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`;
  return `${grouped(count)} ${count === 1 ? word : many}`;
}

// Python rounds what lies in the middle to the even digit, toFixed away from zero. Only an odd
// number of 2^-(decimals + 1) lies exactly in the middle, and scaling by a power of two is exact.
function fixed(value, decimals) {
  const size = Math.abs(value);
  const places = Math.min(decimals, 99);
  const scaled = size * 2 ** (places + 1);
  let digits = size.toFixed(places);
  const middle = places > 0 && Number.isInteger(scaled) && scaled % 2 === 1;
  if (middle && digits.at(-1) % 2 === 1) digits = size.toFixed(places + 1).slice(0, -1);
  return (value < 0 || Object.is(value, -0) ? "-" : "") + digits;
}
