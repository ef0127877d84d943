"""Files that only trec_eval has: preferences, judgment groups, means for z-scores."""

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
    """A level that a judgment group gives an item, to be compared within a subgroup."""

    group: str
    subgroup: str
    item: str
    level: float
    line: int


def read_preferences(path: str, *, from_qrels: bool) -> dict[str, list[Preference]]:
    """Read preferences by topic; from qrels, the second field is the group."""
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
                f"{grade!r} is no grade",
                line=line,
                field="grade",
                hint="grades are small whole numbers such as 0, 1 or 2",
            )
        if item in groups[query, group]:
            raise source.error(
                f"group {group!r} of topic {query!r} judges {item!r} twice",
                line=line,
                field="item",
                hint="drop one of the two lines",
            )
        groups[query, group][item] = int(number)
    return dict(groups)


def read_zscores(path: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Read mean and standard deviation by topic and measure."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    source = Source(path)
    for line, (query, measure, mean, deviation) in _lines(source, ZSCORES):
        if (query, measure) in found:
            raise source.error(
                f"{measure} of topic {query!r} is given twice",
                line=line,
                field="measure",
                hint="drop one of the two lines",
            )
        found[query, measure] = (
            _number(source, line, "mean", mean, finite=False),
            _number(source, line, "deviation", deviation, finite=False),
        )
    return found


def _lines(source: Source, names: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of every line that is neither blank nor a comment."""
    content = source.read()
    refuse_unreadable(content, source)
    held = False
    for number, line in enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        fields = line.split()
        if not fields or fields[0].startswith(b"#"):
            continue
        if len(fields) != len(names):
            raise source.error(
                f"{len(fields)} fields where {len(names)} are needed",
                line=number,
                field=names[len(fields)] if len(fields) < len(names) else None,
                hint=f"a line is: {' '.join(names)}",
            )
        try:
            yield number, [field.decode("utf-8") for field in fields]
        except UnicodeDecodeError as error:
            raise not_utf8(source, number, error) from error
        held = True
    if not held:
        raise source.error("the file holds only comments", hint="check the command that wrote it")


def _number(source: Source, line: int, field: str, text: str, *, finite: bool = True) -> float:
    known = _NUMBER.fullmatch(text) is not None
    number = float(text) if known else math.nan
    if known and (math.isfinite(number) or not finite):
        return number
    problem = f"{text!r} is not {'finite' if known else 'a number'}"
    raise source.error(problem, line=line, field=field, hint="write it as 1 or 0.5")
