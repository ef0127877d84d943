"""Chromium without a window, and what to wait for in a report before looking at it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Containers rarely allow a sandbox; the pages here are our own.
ARGUMENTS = ["--no-sandbox"]

# Runs before the page's own scripts: a promise of when the first query is laid out, in ms.
WATCH_FIRST_ROW = """window.firstRowAt = new Promise((resolve) => {
  const look = () => {
    const row = document.querySelector(".queries tbody tr");
    if (row?.getClientRects().length) resolve(performance.now());
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""

# Charts are drawn when they come into view. (Playwright's wait_for_function evaluates strings in
# the page, which its Content-Security-Policy forbids, so this waits by itself.)
SCROLL_THROUGH = """async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const isDrawn = (figure) =>
    !figure.checkVisibility() || figure.querySelector("svg, canvas, img, table");
  for (let y = 0; y < document.documentElement.scrollHeight; y += window.innerHeight / 2) {
    window.scrollTo(0, y);
    await frame();
    await frame();
  }
  const latest = performance.now() + 20_000;
  while (![...document.querySelectorAll("figure")].every(isDrawn)) {
    if (performance.now() > latest) throw new Error("a figure is still empty after 20 s");
    await frame();
  }
  window.scrollTo(0, 0);
}"""


def find_chromium() -> str | None:
    """Return the path of the browser: of $CHROMIUM, or of what is installed."""
    places = [os.environ.get("CHROMIUM"), "/usr/bin/chromium", *map(shutil.which, NAMES)]
    return next((place for place in places if place and Path(place).exists()), None)


def wait_for_first_row(page) -> float:
    """Return the ms from opening the page until the first row of the query table was laid out.

    WATCH_FIRST_ROW must be an init script of the page.
    """
    return page.evaluate("window.firstRowAt")


def draw_charts(page) -> None:
    """Scroll through the page until all charts are drawn, and back to the top."""
    page.evaluate(SCROLL_THROUGH)


def page_height(page) -> int:
    """Return the height of the whole page in CSS pixels."""
    return page.evaluate("document.documentElement.scrollHeight")
