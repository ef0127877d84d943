"""A browser to open pages in; every error in a page fails its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from support.chromium import ARGUMENTS, find_chromium
from support.report_set import available_reports, build_report


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    if (executable := find_chromium()) is None:
        pytest.skip("no chromium found: install it, or set CHROMIUM to its path")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def shared_page(browser) -> object:
    """One tab for all tests that need no special context: a new one costs a new process."""
    return browser.new_page()


@pytest.fixture(scope="session")
def report(tmp_path_factory) -> Callable[[str], Path]:
    """Build a report of the set by its name: small, and once for all tests."""
    folder = tmp_path_factory.mktemp("reports")

    @cache
    def report(name: str) -> Path:
        if name not in available_reports():
            pytest.skip(f"the data of {name} is not in ../shared/data")
        return build_report(name, folder, small=True)

    return report


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
