"""The pytest plugin: `--karat-report FILE` writes a report of all gates that were asserted.

pytest imports this module in every test run, so heavy modules are imported only for a report.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from karat.evaluation.verdict import GateEntry

OPTION = "--karat-report"
_OUTPUT = "karat_gates"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --karat-report."""
    parser.getgroup("karat").addoption(
        OPTION,
        metavar="FILE",
        action="append",
        default=[],
        help="Write a report of all asserted gates to FILE: .html, .xml (JUnit), .md or .json. "
        "Repeat for more files.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Record gates if a report is requested."""
    paths = config.getoption(OPTION)
    if paths:
        config.pluginmanager.register(Reporter(paths), "karat-report")


class Reporter:
    """Collects the gates of this process and of the workers of pytest-xdist, and writes them."""

    def __init__(self, paths: list[str]) -> None:
        from karat.errors import InputError
        from karat.report import verdict_files
        from karat.report.page_files import PAGES
        from karat.testing import start_recording

        self.pages = [path for path in paths if path.lower().endswith(PAGES)]
        self.files = [path for path in paths if path not in self.pages]
        try:
            verdict_files.check(self.files)
            if self.pages:
                from karat.report.page import build

                build.check(self.pages)
        except InputError as error:
            raise pytest.UsageError(f"{OPTION}: {error}") from None
        self.entries = start_recording(pages=bool(self.pages))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Collect the gates of a worker of pytest-xdist."""
        pickled = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if pickled is not None:
            self.entries += pickle.loads(pickled)  # noqa: S301  from a worker of this run

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report; in a worker, pass the gates to the main process."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = pickle.dumps(self.entries)
            return
        from karat.report import verdict_files

        # Sorted by test, so that the number of workers does not change the report.
        entries = sorted(self.entries, key=_title)
        for path in self.files:
            verdict_files.write(entries, path)
        if self.pages:
            from karat.report import gate_pages

            for path in self.pages:
                gate_pages.write(entries, path)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the path of the report."""
        from karat.errors import counted

        gates = counted(len(self.entries), "gate")
        terminalreporter.write_line(
            f"karat: {gates}, written to {', '.join([*self.files, *self.pages])}"
        )


def _title(entry: GateEntry) -> str:
    return entry.title
