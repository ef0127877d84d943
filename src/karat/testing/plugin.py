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
        help="Write a report of all asserted gates to FILE: .xml (JUnit), .md or .json.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Record gates if a report is requested."""
    path = config.getoption(OPTION)
    if path:
        config.pluginmanager.register(Reporter(path), "karat-report")


class Reporter:
    """Collects the gates of this process and of the workers of pytest-xdist, and writes them."""

    def __init__(self, path: str) -> None:
        from karat.errors import InputError
        from karat.report import verdict_files
        from karat.testing import start_recording

        try:
            verdict_files.check([path])
        except InputError as error:
            raise pytest.UsageError(f"{OPTION}: {error}") from None
        self.path = path
        self.entries = start_recording()

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
        verdict_files.write(sorted(self.entries, key=_title), self.path)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the path of the report."""
        from karat.errors import counted

        gates = counted(len(self.entries), "gate")
        terminalreporter.write_line(f"karat: {gates}, written to {self.path}")


def _title(entry: GateEntry) -> str:
    return entry.title
