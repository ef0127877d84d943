"""A browser to look at pages with; whatever goes wrong in a page fails its test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def _executable() -> str | None:
    places = [os.environ.get("CHROMIUM"), "/usr/bin/chromium", *map(shutil.which, NAMES)]
    return next((place for place in places if place and Path(place).exists()), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    if (executable := _executable()) is None:
        pytest.skip("no chromium found: install it, or say where it is in CHROMIUM")
    with playwright.sync_playwright() as driver:
        # Containers rarely allow a sandbox; the pages here are our own.
        started = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser) -> Iterator[Callable[..., object]]:
    """Open a file in a context of its own; what the console or a script complains of must be
    nothing by the end, and no request may have been made for anything but the file.
    """
    complaints, contexts = [], []

    def opened(path: Path, fragment: str = "", **context: object) -> object:
        contexts.append(browser.new_context(**context))
        page = contexts[-1].new_page()
        address = path.as_uri()

        def heard(message) -> None:
            if message.type == "error":
                complaints.append(message.text)

        def asked(request) -> None:
            if not request.url.startswith((address, "blob:", "data:")):
                complaints.append(f"asked for {request.url}")

        page.on("console", heard)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", asked)
        page.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}"))
        page.goto(address + fragment)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
