// The button that copies the card as a picture; where that is not possible, it is downloaded.

/** Connect the button; without a clipboard it downloads the picture. */
export function startCard() {
  const button = /** @type {HTMLButtonElement|null} */ (document.querySelector("[data-copy-card]"));
  const template = /** @type {HTMLTemplateElement|null} */ (document.querySelector("[data-card]"));
  const status = document.querySelector("[data-copy-status]");
  const card = template?.content.querySelector("svg");
  if (!button || !status || !card) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    status.textContent = await shareCard(card);
    button.disabled = false;
  });
}

/**
 * Copy the card, or download it.
 * @param {SVGSVGElement} card
 * @returns {Promise<string>} what happened
 */
async function shareCard(card) {
  try {
    // The item is made at once: a browser forgets the click while it waits for the picture.
    const picture = cardCanvas(card).then(canvasBlob);
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
    return "Image copied.";
  } catch {
    try {
      const canvas = await cardCanvas(card);
      const link = document.createElement("a");
      link.download = "card.png";
      link.href = canvas.toDataURL("image/png");
      link.click();
      return "The browser does not allow copying; the image was downloaded as card.png.";
    } catch {
      return "This browser cannot make the image.";
    }
  }
}

/**
 * Draw the card in the current colours, with two pixels per unit.
 * @param {SVGSVGElement} card
 * @returns {Promise<HTMLCanvasElement>}
 */
async function cardCanvas(card) {
  const styles = getComputedStyle(document.documentElement);
  const markup = new XMLSerializer()
    .serializeToString(card)
    .replace(/var\((--[\w-]+)\)/g, (_, name) => styles.getPropertyValue(name).trim());
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * image.width;
  canvas.height = 2 * image.height;
  const context = canvas.getContext("2d");
  if (!context) throw new Error("no canvas");
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** @param {HTMLCanvasElement} canvas @returns {Promise<Blob>} */
function canvasBlob(canvas) {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png");
  });
}
