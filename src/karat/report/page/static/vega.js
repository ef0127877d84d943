// Vega-Embed draws the charts; it is loaded when the first chart is drawn.

/**
 * @typedef {object} VegaResult
 * @property {{ finalize: () => void }} view
 */
/** @typedef {(container: HTMLElement, spec: object, options: object) => Promise<VegaResult>} VegaEmbed */

/** @returns {Promise<VegaEmbed>} */
export async function loadVega() {
  return /** @type {any} */ (window).vegaEmbed;
}
