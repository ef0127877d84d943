"""The lines that trec_eval prints, and its sums: over topics in byte order, left to right."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from karat.arrays import Floats
from karat.compat.trec_eval.catalogue import Asked
from karat.compat.trec_eval.flags import Request
from karat.compat.trec_eval.topics import Topics

Zscores = dict[tuple[str, str], tuple[float, float]]

WITHOUT_ZSCORE = -1000000.0


def print_table(
    out: IO[str],
    topics: Topics | None,
    asked: list[Asked],
    request: Request,
    zscores: Zscores | None,
    tag: str,
    *,
    summary: bool,
) -> None:
    """Print every topic if -q asks for it, then the summary."""
    if topics is None:
        return
    columns = list(_columns(topics, asked, zscores))
    if request.each_query:
        _print_topics(out, topics.ids, [c for c in columns if c.asked.entry.each_query])
    if summary:
        mark = "" if zscores is None else "Z"
        for column in columns:
            if request.complete and column.asked.entry.complete is not None:
                column.values = column.asked.entry.complete(topics)
            out.write(column.summed(len(topics.ids), mark, tag))


class _Column:
    """What one line says of each topic."""

    def __init__(self, asked: Asked, name: str, values: Any, *, as_zscores: bool) -> None:
        self.asked, self.name, self.values = asked, name, values
        self.text = asked.entry.over == "text"
        self.whole = asked.entry.whole and not as_zscores
        self.mark = "Z" if as_zscores and not self.text else ""

    def line(self) -> str:
        """Return the line of one topic, to be filled with its id and its value."""
        label = f"{self.mark}{self.name:<22}".replace("%", "%%")
        return f"{label}\t%s\t" + ("'%s'\n" if self.text else "%d\n" if self.whole else "%s\n")

    def summed(self, n_topics: int, mark: str, tag: str) -> str:
        """Return the line of the summary; text has none but the run's tag."""
        over = self.asked.entry.over
        if over == "text":
            return f"{self.name:<22}\tall\t{tag}\n" if self.name == "runid" else ""
        total = n_topics if over == "count" else float(np.add.accumulate(self.values)[-1])
        if over == "mean":
            total /= n_topics
        elif over == "geometric":
            total = math.exp(total / n_topics)
        value = str(int(total)) if self.whole else _decimal(total)
        return f"{mark}{self.name:<22}\tall\t{value}\n"


def _columns(topics: Topics, asked: list[Asked], zscores: Zscores | None) -> Iterator[_Column]:
    for one in asked:
        for name, values in zip(one.names, one.compute(topics), strict=True):
            if zscores is not None and one.entry.over != "text":
                values = _as_zscores(topics.ids, name, values, zscores)
            yield _Column(one, name, values, as_zscores=zscores is not None)


def _print_topics(out: IO[str], ids: list[str], columns: list[_Column]) -> None:
    lines = "".join(column.line() for column in columns)
    shown = [
        column.values
        if column.text
        else [int(value) for value in column.values]
        if column.whole
        else [_decimal(value) for value in column.values.tolist()]
        for column in columns
    ]
    for topic, *values in zip(ids, *shown, strict=True):
        out.write(lines % tuple(field for value in values for field in (topic, value)))


def _decimal(value: float) -> str:
    """Write a number as C's %6.4f does, which shows the sign of what is not a number."""
    if math.isnan(value):
        return "  -nan" if math.copysign(1, value) < 0 else "   nan"
    return f"{value:6.4f}"


def _as_zscores(ids: list[str], name: str, values: Floats, zscores: Zscores) -> Floats:
    """Say how many standard deviations each value lies from the mean of other runs."""
    found = np.full(len(ids), WITHOUT_ZSCORE)
    for at, (topic, value) in enumerate(zip(ids, values.tolist(), strict=True)):
        mean, deviation = zscores.get((topic, name), (math.nan, 0.0))
        if deviation:
            found[at] = (value - mean) / deviation
        elif value == mean:
            found[at] = 0.0
    return found
