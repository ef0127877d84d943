"""What a kernel did on the way to its value: noted by the kernels, read by `karat explain`.

A kernel notes the very arrays it computes with, so the explanation cannot drift from the number.
While nobody listens, a note costs next to nothing.
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
    """Columns beside some ranked places: of the list, or of the ideal list."""

    places: RankedRows
    columns: dict[str, Any]
    ideal: bool = False


@dataclass(frozen=True)
class TracedOthers:
    """What every item brings up to a cutoff that does not stand at these places: by its rank."""

    places: RankedRows
    cutoff: int | None
    columns: dict[str, Callable[[int], float]]


@dataclass
class Trace:
    """Everything a kernel noted, in its order."""

    tables: list[TracedRows | TracedOthers] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)


_listening: ContextVar[Trace | None] = ContextVar("_listening", default=None)


@contextmanager
def tracing(workings: Trace) -> Iterator[None]:
    """Collect what kernels note."""
    token = _listening.set(workings)
    try:
        yield
    finally:
        _listening.reset(token)


def is_tracing() -> bool:
    """Tell whether anybody listens, for notes that cost something to make."""
    return _listening.get() is not None


def trace_rows(places: RankedRows, /, *, ideal: bool = False, **columns: Any) -> None:
    """Note a value for each of some places; underscores in names stand for spaces."""
    if (workings := _listening.get()) is not None:
        workings.tables.append(TracedRows(places, columns, ideal))


def trace_others(
    places: RankedRows, cutoff: int | None, /, **columns: Callable[[int], float]
) -> None:
    """Note that the items at all other places are what counts."""
    if (workings := _listening.get()) is not None:
        workings.tables.append(TracedOthers(places, cutoff, columns))


def trace_numbers(**numbers: Any) -> None:
    """Note a value for each query."""
    if (workings := _listening.get()) is not None:
        workings.numbers.update(numbers)
