// Vega is unpacked and run when the first chart needs it: as an inline module, whose hash is in the
// Content-Security-Policy, so that neither `blob:` nor `unsafe-eval` is needed.

import { unpacked } from "./data.js";

/** @type {Promise<Function> | null} */
let loading = null;

/** @returns {Promise<Function>} the function that draws a chart into an element */
export function loadVega() {
  loading ??= runVega();
  return loading;
}

async function runVega() {
  const script = document.createElement("script");
  script.type = "module";
  script.textContent = await unpacked("vega").text();
  const ready = new Promise((resolve) => addEventListener("vega", resolve, { once: true }));
  document.head.append(script);
  await ready;
  return /** @type {any} */ (window).vegaEmbed;
}
