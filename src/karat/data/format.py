"""What a format is; each file beside this one that reads and writes one declares it as data."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

from karat.data.files import DataFile
from karat.data.gold import Gold
from karat.data.losses import Written
from karat.data.run import Run

Kind = Literal["gold", "run"]
KINDS: tuple[Kind, ...] = ("gold", "run")


def one_kind(*, gold: bool, run: bool) -> Kind | None:
    """Return the kind that the signs point to, or None where they point to both or neither."""
    if gold == run:
        return None
    return "gold" if gold else "run"


def kind_of_contexts(names: Collection[str]) -> Kind | None:
    """Tell by the columns of Ragas rows which kind they hold; they may hold both."""
    return one_kind(
        gold=any(name.startswith("reference_context") for name in names),
        run=any(name.startswith("retrieved_context") or name == "contexts" for name in names),
    )


@dataclass(frozen=True)
class Format:
    """One format: how to know it, read it and write it."""

    name: str
    endings: tuple[str, ...]
    sniff: Callable[[DataFile], bool]
    """From the first bytes, the ending and where the file lies."""
    kind: Callable[[DataFile], Kind | None]
    """Whether a file holds gold or a run, or None where it may be either."""
    read_gold: Callable[[DataFile], Gold]
    read_run: Callable[[DataFile], Run]
    write_gold: Callable[[Gold, Any], Written]
    """Into an open file, or into a folder where the format is one."""
    write_run: Callable[[Run, Any], Written]
    folder: bool = False
