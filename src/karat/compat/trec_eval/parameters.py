"""Parameters behind a measure's name: `P.5,10`, `utility.2,-1,0,0`, `ndcg.1=3,2=9`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from karat.errors import MeasureError

Number = TypeVar("Number", int, float)

_LARGEST = 1e9  # beyond it, ranks and worths would no longer be exact
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Pairs:
    """Named parameters: gains by grade, and for rank-biased precision the persistence."""

    gains: dict[int, float] = field(default_factory=dict)
    persistence: float = 0.9


def ranks(given: str) -> tuple[int, ...]:
    """Read cutoffs, sorted and truncated to integers as trec_eval does it: P.5.7 is P_5."""
    cutoffs = []
    for part in given.split(","):
        if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]*)?", part) or int(float(part)) == 0:
            raise MeasureError(f"{part!r} is not a cutoff", hint="such as P.5,10")
        cutoffs.append(int(float(part)))
    return _distinct(tuple(sorted(cutoffs)))


def points(given: str) -> tuple[float, ...]:
    """Read decimal cutoffs, sorted; trec_eval sorts those of iprec_at_recall only."""
    found = tuple(sorted(_number(part) for part in given.split(",")))
    if found[0] < 0:
        raise MeasureError(f"{found[0]} is below 0", hint="such as iprec_at_recall..1")
    return _distinct(found)


def numbers(count: int, *, least: float = -math.inf) -> Callable[[str], tuple[float, ...]]:
    """Make the reader of so many numbers, none of them less than another."""

    def read(given: str) -> tuple[float, ...]:
        found = tuple(_number(part) for part in given.split(","))
        if len(found) != count:
            raise MeasureError(
                f"{len(found)} numbers where {count} are needed: {given!r}",
                hint="such as utility.2,-1,0,0 or set_F.0.5",
            )
        if min(found) < least:
            raise MeasureError(f"{min(found):g} is below {least:g}", hint="such as set_F.0.5")
        return found

    return read


def pairs(kind: str) -> Callable[[str], Pairs]:
    """Make the reader of gains by grade (`gains`) or of the persistence (`p`)."""

    def read(given: str) -> Pairs:
        gains: dict[int, float] = {}
        persistence = 0.9
        for part in given.split(","):
            name, equals, value = part.partition("=")
            is_grade = re.fullmatch(r"[0-9]{1,9}", name)
            if not equals or not (is_grade if kind == "gains" else name == "p"):
                raise MeasureError(
                    f"{part!r} is no parameter here",
                    hint="such as ndcg.1=3,2=9" if kind == "gains" else "such as rbp.p=0.8",
                )
            if kind == "gains":
                gains.setdefault(int(name), _number(value))
            else:
                persistence = _number(value)
        if not 0 < persistence < 1:
            raise MeasureError(f"p is {persistence}", hint="0 < p < 1")
        return Pairs(gains, persistence)

    return read


def _number(text: str) -> float:
    if _NUMBER.fullmatch(text):
        if abs(float(text)) <= _LARGEST:
            return float(text)
        raise MeasureError(f"{text!r} is too large", hint="such as 5, 0.2 or .2")
    raise MeasureError(f"{text!r} is no number", hint="such as 5, 0.2 or .2")


def _distinct(found: tuple[Number, ...]) -> tuple[Number, ...]:
    if len(set(found)) < len(found):
        raise MeasureError("a cutoff is given twice", hint="give each once")
    return found
