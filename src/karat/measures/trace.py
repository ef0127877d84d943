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

from karat.match.hits import Places


@dataclass(frozen=True)
class Noted:
    """Columns beside some ranked places: of the list, or of the ideal list."""

    places: Places
    columns: dict[str, Any]
    ideal: bool = False


@dataclass(frozen=True)
class NotedOthers:
    """What every item brings up to a cutoff that does not stand at these places: by its rank."""

    places: Places
    cutoff: int | None
    columns: dict[str, Callable[[int], float]]


@dataclass
class Workings:
    """Everything a kernel noted, in its order."""

    tables: list[Noted | NotedOthers] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)


_listening: ContextVar[Workings | None] = ContextVar("_listening", default=None)


@contextmanager
def listening(workings: Workings) -> Iterator[None]:
    """Collect what kernels note."""
    token = _listening.set(workings)
    try:
        yield
    finally:
        _listening.reset(token)


def is_heard() -> bool:
    """Tell whether anybody listens, for notes that cost something to make."""
    return _listening.get() is not None


def note_places(places: Places, /, *, ideal: bool = False, **columns: Any) -> None:
    """Note a value for each of some places; underscores in names stand for spaces."""
    if (workings := _listening.get()) is not None:
        workings.tables.append(Noted(places, columns, ideal))


def note_others(places: Places, cutoff: int | None, /, **columns: Callable[[int], float]) -> None:
    """Note that the items at all other places are what counts."""
    if (workings := _listening.get()) is not None:
        workings.tables.append(NotedOthers(places, cutoff, columns))


def note(**numbers: Any) -> None:
    """Note a value for each query."""
    if (workings := _listening.get()) is not None:
        workings.numbers.update(numbers)
