"""Gates in a test suite: `from karat.testing import assert_gate, per_query`.

Other modules are imported only when needed, since pytest loads this package in every test run.
"""

from __future__ import annotations

import os
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from karat.testing.queries import per_query

if TYPE_CHECKING:
    from karat.evaluation.verdict import GateEntry, Verdict

__all__ = ["assert_gate", "per_query"]

_recorded: list[GateEntry] | None = None
"""The gates that were asserted, for a report; None if no report is written."""
_builds_pages = False


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

    start = perf_counter()
    try:
        verdict = gate(gold, run, thresholds, **options)
    except KaratError as error:
        _record(None, str(error), seconds=perf_counter() - start)
        raise error.with_traceback(None) from None  # the traceback inside karat does not help
    _record(verdict, seconds=perf_counter() - start)
    if not verdict.passed:
        # The first line is the summary, which pytest shows in its list of failures.
        raise AssertionError(str(verdict))
    return verdict


def start_recording(*, pages: bool = False) -> list[GateEntry]:
    """Record all gates from now on, in the list that is returned.

    With `pages`, the HTML report of each gate is built immediately: the scores that it shows would
    otherwise stay in memory until the last test, and workers of pytest-xdist could not send them.
    """
    global _recorded, _builds_pages
    _recorded, _builds_pages = [], pages
    return _recorded


def _record(verdict: Verdict | None, error: str | None = None, *, seconds: float) -> None:
    if _recorded is None:
        return
    from karat.evaluation.verdict import GateEntry

    title = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0] or "gate"
    entry = GateEntry(title, verdict, error, seconds)
    if _builds_pages:
        from karat.report import gate_pages

        entry = replace(entry, page=gate_pages.page_of(entry))
    if verdict is not None:
        entry = replace(entry, verdict=replace(verdict, scores=None, baseline_scores=None))
    _recorded.append(entry)
