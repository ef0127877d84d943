"""Build the nine reports of tests/support/report_set.py and take screenshots of each.

Per report: the first screen and the full page, 1280 and 390 px wide, light and dark, and one open
query. `make shots` runs this; PYTHONPATH must contain `tests`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from support.chromium import (
    ARGUMENTS,
    WATCH_FIRST_ROW,
    draw_charts,
    find_chromium,
    page_height,
    wait_for_first_row,
)
from support.report_set import available_reports, build_report

SCREENS = {1280: 900, 390: 844}
LINE = "{:<14} {:>9} {:>8} {:>8} {:>10}"


def main() -> None:
    """Take the screenshots, and print one line per report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/shots"))
    parser.add_argument("--only", nargs="+", choices=available_reports(), metavar="REPORT")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if (executable := find_chromium()) is None:
        parser.error("no chromium found: install it, or set CHROMIUM to its path")
    print(LINE.format("report", "KB", "px 1280", "px 390", "first row"))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=ARGUMENTS)
        for name in options.only or available_reports():
            path = build_report(name, folder)
            heights, milliseconds = shoot(browser, path)
            size = f"{path.stat().st_size / 1000:,.0f}"
            pixels = [f"{heights[width]:,}" for width in SCREENS]
            print(LINE.format(name, size, *pixels, f"{milliseconds:,.0f} ms"), flush=True)
        browser.close()
    print(f"reports and screenshots are in {folder}")


def shoot(browser: Browser, path: Path) -> tuple[dict[int, int], float]:
    """Take all screenshots of a report; return heights by width, and when its table was shown."""
    heights, times = {}, []
    for width, height in SCREENS.items():
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page.on("console", lambda message: _print_error(path, message.type, message.text))
            page.on("pageerror", lambda error: _print_error(path, "error", str(error)))
            page.add_init_script(WATCH_FIRST_ROW)
            page.goto(path.as_uri())
            times.append(wait_for_first_row(page))
            target = path.with_name(f"{path.stem}-{width}-{scheme}")
            page.screenshot(path=f"{target}-first.png")
            draw_charts(page)
            heights[width] = page_height(page)
            page.screenshot(path=f"{target}-full.png", full_page=True)
            if (width, scheme) == (1280, "light"):
                _shoot_query(page, path.with_name(f"{path.stem}-query.png"))
            page.close()
    return heights, times[0]


def _shoot_query(page: Page, target: Path) -> None:
    """Take a picture of the first query of the table, with all that its dialog scrolls to."""
    page.locator(".queries button.open").first.click()
    dialog = page.locator("dialog[open]")
    dialog.wait_for()
    height = dialog.evaluate(
        """(dialog) => Math.max(...[dialog, ...dialog.querySelectorAll("*")].map(
          (part) => part.scrollHeight))"""
    )
    page.set_viewport_size({"width": 1280, "height": min(height + 100, 6000)})
    page.screenshot(path=target)


def _print_error(path: Path, kind: str, text: str) -> None:
    if kind == "error":
        print(f"{path.name}: error in the page: {text}")


if __name__ == "__main__":
    main()
