"""The pytest plugin: `--karat-report FILE` writes down every gate that was asserted.

pytest imports this in every test run, so nothing heavy is imported unless the report is asked for.
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
    """Add the option."""
    parser.getgroup("karat").addoption(
        OPTION,
        metavar="FILE",
        help="Write the gates that were asserted as .xml (JUnit), .md or .json.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch assertions, where a report is asked for."""
    path = config.getoption(OPTION)
    if path:
        config.pluginmanager.register(Reporter(path), "karat-report")


class Reporter:
    """What was asserted in this process and in the workers of pytest-xdist, and where it goes."""

    def __init__(self, path: str) -> None:
        from karat.errors import InputError
        from karat.report import verdict
        from karat.testing import start_recording

        try:
            verdict.check([path])
        except InputError as error:
            raise pytest.UsageError(f"{OPTION}: {error}") from None
        self.path = path
        self.entries = start_recording()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of pytest-xdist has recorded."""
        sent = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if sent is not None:
            self.entries += pickle.loads(sent)  # noqa: S301  from a worker of this run

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report; a worker hands its part over instead."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = pickle.dumps(self.entries)
            return
        from karat.report import verdict

        # By test and not by time, so that workers change nothing.
        verdict.write(sorted(self.entries, key=_title), self.path)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the report is."""
        from karat.errors import counted

        gates = counted(len(self.entries), "gate")
        terminalreporter.write_line(f"karat: {gates}, written to {self.path}")


def _title(entry: GateEntry) -> str:
    return entry.title
