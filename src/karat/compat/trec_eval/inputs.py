"""Files that only trec_eval has: preferences, judgment groups, and means for z-scores."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from karat.data.frames import LARGEST_GRADE
from karat.files import BYTE_ORDER_MARK, Source, not_utf8, refuse_unreadable

PREFERENCES = ("query", "group", "subgroup", "item", "level")
JUDGMENTS = ("query", "group", "item", "grade")
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|inf(?:inity)?)", re.IGNORECASE
)
ZSCORES = ("query", "measure", "mean", "deviation")


class Preference(NamedTuple):
    """The level of an item in a judgment group; levels are compared within a subgroup."""

    group: str
    subgroup: str
    item: str
    level: float
    line: int


def read_preferences(path: str, *, from_qrels: bool) -> dict[str, list[Preference]]:
    """Read the preferences of each topic; in qrels, the second field is the group."""
    topics: dict[str, list[Preference]] = defaultdict(list)
    source = Source(path)
    for line, fields in _lines(source, JUDGMENTS if from_qrels else PREFERENCES):
        query, *middle, item, level = fields
        group, subgroup = middle if len(middle) == 2 else (middle[0], "0")
        number = _number(source, line, "grade" if from_qrels else "level", level)
        topics[query].append(Preference(group, subgroup, item, number, line))
    return dict(topics)


def read_groups(path: str) -> dict[tuple[str, str], dict[str, int]]:
    """Read the judgments of each topic and judgment group."""
    groups: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    source = Source(path)
    for line, (query, group, item, grade) in _lines(source, JUDGMENTS):
        number = _number(source, line, "grade", grade)
        if not number.is_integer() or abs(number) >= LARGEST_GRADE:
            raise source.error(
                f"must be a small integer, got {grade!r}",
                line=line,
                field="grade",
                hint="write a grade such as 0, 1 or 2",
            )
        if item in groups[query, group]:
            raise source.error(
                f"{item!r} is judged twice in group {group!r} of topic {query!r}",
                line=line,
                field="item",
                hint="remove one of the two lines",
            )
        groups[query, group][item] = int(number)
    return dict(groups)


def read_zscores(path: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Read the mean and standard deviation of each topic and measure."""
    zscores: dict[tuple[str, str], tuple[float, float]] = {}
    source = Source(path)
    for line, (query, measure, mean, deviation) in _lines(source, ZSCORES):
        if (query, measure) in zscores:
            raise source.error(
                f"{measure} of topic {query!r} is listed twice",
                line=line,
                field="measure",
                hint="remove one of the two lines",
            )
        zscores[query, measure] = (
            _number(source, line, "mean", mean, finite=False),
            _number(source, line, "deviation", deviation, finite=False),
        )
    return zscores


def _lines(source: Source, names: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each line that is not blank or a comment."""
    content = source.read()
    refuse_unreadable(content, source)
    has_lines = False
    for number, line in enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        fields = line.split()
        if not fields or fields[0].startswith(b"#"):
            continue
        if len(fields) != len(names):
            raise source.error(
                f"expected {len(names)} fields, got {len(fields)}",
                line=number,
                field=names[len(fields)] if len(fields) < len(names) else None,
                hint=f"the fields are: {' '.join(names)}",
            )
        try:
            yield number, [field.decode("utf-8") for field in fields]
        except UnicodeDecodeError as error:
            raise not_utf8(source, number, error) from error
        has_lines = True
    if not has_lines:
        raise source.error(
            "the file contains only comments and blank lines",
            hint="check the command that wrote the file",
        )


def _number(source: Source, line: int, field: str, text: str, *, finite: bool = True) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise source.error(
            f"must be a number, got {text!r}",
            line=line,
            field=field,
            hint="write a number such as 0, 1 or 2",
        )
    number = float(text)
    if finite and not math.isfinite(number):
        raise source.error(
            f"must be a finite number, got {text!r}",
            line=line,
            field=field,
            hint="write a number such as 0, 1 or 2",
        )
    return number
