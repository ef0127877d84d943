"""Gates in a test suite: `from karat.testing import assert_gate`.

Nothing is imported before it is needed: pytest loads this room in every test run.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.evaluation.verdict import GateEntry, Verdict

__all__ = ["assert_gate"]

_recorded: list[GateEntry] | None = None
"""What was asserted, for a report; None where nobody asked for one."""


def assert_gate(gold: Any, run: Any, thresholds: Any = None, **options: Any) -> Verdict:
    """Fail a test unless a run keeps to its thresholds; takes what `karat.gate` takes.

    The message is the verdict, with the queries to blame. What cannot be judged stays an error.
    """
    __tracebackhide__ = True
    from karat.errors import KaratError
    from karat.evaluation.verdict import gate

    try:
        verdict = gate(gold, run, thresholds, **options)
    except KaratError as error:
        _record(None, str(error))
        raise error.with_traceback(None) from None  # the way into karat explains nothing
    _record(verdict)
    if not verdict.passed:
        # pytest repeats the first line in its list of failures.
        raise AssertionError(f"{verdict.summary}\n\n{verdict}")
    return verdict


def start_recording() -> list[GateEntry]:
    """Keep what is asserted from now on, in the list that is returned."""
    global _recorded
    _recorded = []
    return _recorded


def _record(verdict: Verdict | None, error: str | None = None) -> None:
    if _recorded is None:
        return
    from karat.evaluation.verdict import GateEntry

    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    # The scores behind a verdict would stay in memory until the last test.
    kept = None if verdict is None else replace(verdict, scores=None, baseline_scores=None)
    _recorded.append(GateEntry(test or "gate", kept, error))
