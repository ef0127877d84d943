"""Parse the parameters of measures: `P.5,10`, `utility.2,-1,0,0`, `ndcg.1=3,2=9`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from karat.errors import MeasureError, counted

Number = TypeVar("Number", int, float)

_LARGEST = 1e9  # so that ranks and sums of gains remain exact
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Pairs:
    """Named parameters: the gain of each grade, or the persistence of rank-biased precision."""

    gains: dict[int, float] = field(default_factory=dict)
    persistence: float = 0.9


def ranks(text: str) -> tuple[int, ...]:
    """Parse cutoffs, sorted and truncated to integers as in trec_eval: P.5.7 is P_5."""
    cutoffs = []
    for part in text.split(","):
        if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]*)?", part) or int(float(part)) == 0:
            raise MeasureError(
                f"a cutoff must be an integer of at least 1, got {part!r}", hint="write P.5,10"
            )
        cutoffs.append(int(float(part)))
    return _distinct(tuple(sorted(cutoffs)))


def points(text: str) -> tuple[float, ...]:
    """Parse decimal cutoffs, sorted; trec_eval sorts only those of iprec_at_recall."""
    cutoffs = tuple(sorted(_number(part) for part in text.split(",")))
    if cutoffs[0] < 0:
        raise MeasureError(
            f"a cutoff must be at least 0, got {cutoffs[0]}", hint="write 0.1, for example"
        )
    return _distinct(cutoffs)


def numbers(
    count: int, *, example: str, least: float = -math.inf
) -> Callable[[str], tuple[float, ...]]:
    """Return a parser for `count` numbers that are not below `least`; hints show the example."""

    def read(text: str) -> tuple[float, ...]:
        parsed = tuple(_number(part) for part in text.split(","))
        if len(parsed) != count:
            raise MeasureError(
                f"expected {counted(count, 'number')}, got {len(parsed)}: {text!r}",
                hint=f"write {example}, for example",
            )
        if min(parsed) < least:
            raise MeasureError(
                f"a number must be at least {least:g}, got {min(parsed):g}",
                hint=f"write {example}, for example",
            )
        return parsed

    return read


def pairs(kind: str) -> Callable[[str], Pairs]:
    """Return a parser for gains by grade (`gains`) or for the persistence (`p`)."""

    def read(text: str) -> Pairs:
        gains: dict[int, float] = {}
        persistence = 0.9
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if equals and kind == "gains" and re.fullmatch(r"[0-9]{1,9}", name):
                gains.setdefault(int(name), _number(value))
            elif equals and kind == "p" and name == "p":
                persistence = _number(value)
            else:
                example = "ndcg.1=3,2=9" if kind == "gains" else "rbp.p=0.8"
                raise MeasureError(
                    f"parameter {part!r} is not supported", hint=f"write {example}, for example"
                )
        if not 0 < persistence < 1:
            raise MeasureError(
                f"p must be above 0 and below 1, got {persistence}",
                hint="write rbp.p=0.8, for example",
            )
        return Pairs(gains, persistence)

    return read


def _number(text: str) -> float:
    if _NUMBER.fullmatch(text):
        if abs(float(text)) <= _LARGEST:
            return float(text)
        raise MeasureError(
            f"a number must be at most {_LARGEST:g}, got {text!r}", hint="write 5, 0.2 or .2"
        )
    raise MeasureError(f"expected a number, got {text!r}", hint="write 5, 0.2 or .2")


def _distinct(cutoffs: tuple[Number, ...]) -> tuple[Number, ...]:
    if len(set(cutoffs)) < len(cutoffs):
        raise MeasureError("a cutoff is given twice", hint="give each cutoff once")
    return cutoffs
