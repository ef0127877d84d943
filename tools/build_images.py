"""Take the screenshots of the report in docs/images.

.venv/bin/karat demo && PYTHONPATH=tests .venv/bin/python tools/build_images.py
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from support.chromium import ARGUMENTS, draw_charts, find_chromium

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "images"
REPORT = ROOT / "karat-demo" / "report.html"
QUERY = "q039"
WIDTH, HEIGHT = 1280, 900
PARTS = {"summary": 470, "findings": 590, "results": 430, "queries": 760}
"""The sections that the documentation explains, with the height of their picture."""
# A table that is wider than the page scrolls, so a picture would cut a column.
FIT_TABLES = """() => {
  for (const region of document.querySelectorAll("#results .results-scroll"))
    region.firstElementChild.style.zoom = Math.min(1, region.clientWidth / region.scrollWidth);
}"""


def main() -> None:
    """Write one picture of the first screen, one per section, and one of an open query."""
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.goto(REPORT.as_uri())
        draw_charts(page)
        page.wait_for_timeout(1000)
        save(page, "report", 0, HEIGHT)
        page.evaluate(FIT_TABLES)
        for section, height in PARTS.items():
            top = page.locator(f"#{section}").bounding_box()["y"]
            save(page, f"report-{section}", top - 16, height)
        page.goto(f"{REPORT.as_uri()}#query={QUERY}")
        page.wait_for_selector("dialog[open]")
        page.wait_for_timeout(500)
        path = FOLDER / "report-query.png"
        page.screenshot(path=path)
        browser.close()
    for path in sorted(FOLDER.glob("report*.png")):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:,.0f} KB")


def save(page: Page, name: str, top: float, height: int) -> None:
    """Save a part of the whole page."""
    clip = {"x": 0, "y": max(0, top), "width": WIDTH, "height": height}
    page.screenshot(path=FOLDER / f"{name}.png", clip=clip, full_page=True)


if __name__ == "__main__":
    main()
