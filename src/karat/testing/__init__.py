"""Gates in a test suite: `from karat.testing import assert_gate`.

Other modules are imported only when needed, since pytest loads this package in every test run.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.evaluation.verdict import GateEntry, Verdict

__all__ = ["assert_gate"]

_recorded: list[GateEntry] | None = None
"""The gates that were asserted, for a report; None if no report is written."""


def assert_gate(gold: Any, run: Any, thresholds: Any = None, **options: Any) -> Verdict:
    """Fail a test unless a run meets its thresholds.

    The message of the failure is the verdict, with the worst queries. An error is raised if a
    threshold cannot be checked.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        What should be found.
    run : path, table, dict, records, Run or retriever
        What was found.
    thresholds : str, list of str or mapping, default None
        Texts such as "nDCG@10 >= 0.6", or a mapping as in karat.toml. None uses the thresholds of
        the nearest karat.toml or pyproject.toml.
    **options
        All other options of `karat.gate`, such as `baseline` or `conventions`.

    Returns
    -------
    Verdict
        The verdict of a run that meets all thresholds.

    Raises
    ------
    AssertionError
        If the run misses a threshold.

    Examples
    --------
    >>> assert_gate({"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["b"]}, "RR >= 0.9").summary
    'run passed 1 threshold'
    """
    __tracebackhide__ = True
    from karat.errors import KaratError
    from karat.evaluation.verdict import gate

    try:
        verdict = gate(gold, run, thresholds, **options)
    except KaratError as error:
        _record(None, str(error))
        raise error.with_traceback(None) from None  # the traceback inside karat does not help
    _record(verdict)
    if not verdict.passed:
        # The first line is the summary, which pytest shows in its list of failures.
        raise AssertionError(str(verdict))
    return verdict


def start_recording() -> list[GateEntry]:
    """Record all gates from now on, in the list that is returned."""
    global _recorded
    _recorded = []
    return _recorded


def _record(verdict: Verdict | None, error: str | None = None) -> None:
    if _recorded is None:
        return
    from karat.evaluation.verdict import GateEntry

    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if verdict is not None:  # drop the scores, which would stay in memory until the last test
        verdict = replace(verdict, scores=None, baseline_scores=None)
    _recorded.append(GateEntry(test or "gate", verdict, error))
