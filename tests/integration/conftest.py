"""A browser to open pages in; every error in a page fails its test."""

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
        pytest.skip("no chromium found: install it, or set CHROMIUM to its path")
    with playwright.sync_playwright() as driver:
        # Containers rarely allow a sandbox; the pages here are our own.
        started = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def shared_page(browser) -> object:
    """One tab for all tests that need no special context: a new one costs a new process."""
    return browser.new_page()


class Watch:
    """Collects what the console, scripts and dialogs of a page report, and its requests."""

    def __init__(self, page, address: str, complaints: list[str]) -> None:
        self.page, self.address, self.complaints = page, address, complaints
        self.listeners = {
            "console": self.hear,
            "pageerror": lambda error: complaints.append(str(error)),
            "request": self.check,
            "dialog": lambda dialog: complaints.append(f"a dialog: {dialog.message}"),
        }
        for event, listener in self.listeners.items():
            page.on(event, listener)

    def hear(self, message) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def check(self, request) -> None:
        if not request.url.startswith((self.address, "blob:", "data:")):
            self.complaints.append(f"request for {request.url}")

    def end(self) -> None:
        while self.listeners:
            self.page.remove_listener(*self.listeners.popitem())


@pytest.fixture
def opened(browser, shared_page) -> Iterator[Callable[..., object]]:
    """Open a file: in the shared tab, or in a context of its own if options are given.

    At the end of the test there must be no error in the console or a script, no dialog, and no
    request for anything but the file.
    """
    complaints, watches, contexts = [], [], []

    def opened(path: Path, fragment: str = "", **context: object) -> object:
        if context:
            contexts.append(browser.new_context(**context))
            page = contexts[-1].new_page()
        else:
            page = shared_page
            for watch in watches:
                if watch.page is page:
                    watch.end()
            page.goto("about:blank")  # a fragment alone would not load the page again
        watches.append(Watch(page, path.as_uri(), complaints))
        page.goto(path.as_uri() + fragment)
        return page

    yield opened
    for watch in watches:
        watch.end()
    for context in contexts:
        context.close()
    assert complaints == []
