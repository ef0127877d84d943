"""Traces: the intermediate arrays of a kernel, recorded for `karat explain`.

Kernels record the arrays that they compute with, so an explanation always agrees with the value.
Without an active trace, recording costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from karat.match.hits import RankedRows


@dataclass(frozen=True)
class TracedRows:
    """Values for some rows of the ranked list, or of the ideal list, in named columns."""

    places: RankedRows
    columns: dict[str, Any]
    ideal: bool = False


@dataclass(frozen=True)
class TracedOthers:
    """Values for the items up to a cutoff that are not in these rows, as functions of the rank."""

    places: RankedRows
    cutoff: int | None
    columns: dict[str, Callable[[int], float]]


@dataclass
class Trace:
    """Everything that a kernel recorded, in order."""

    tables: list[TracedRows | TracedOthers] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)


_active: ContextVar[Trace | None] = ContextVar("_active", default=None)


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Record the arrays of the kernels that are called in this context."""
    token = _active.set(trace)
    try:
        yield
    finally:
        _active.reset(token)


def is_tracing() -> bool:
    """Return whether a trace is active, for arrays that are expensive to compute."""
    return _active.get() is not None


def trace_rows(rows: RankedRows, /, *, ideal: bool = False, **columns: Any) -> None:
    """Record values for some rows; underscores in the names are shown as spaces."""
    if (trace := _active.get()) is not None:
        trace.tables.append(TracedRows(rows, columns, ideal))


def trace_others(
    rows: RankedRows, cutoff: int | None, /, **columns: Callable[[int], float]
) -> None:
    """Record that the items that are not in these rows are the ones that count."""
    if (trace := _active.get()) is not None:
        trace.tables.append(TracedOthers(rows, cutoff, columns))


def trace_numbers(**numbers: Any) -> None:
    """Record one value per query under each name."""
    if (trace := _active.get()) is not None:
        trace.numbers.update(numbers)
