"""Print the lines of trec_eval.

Values are added over topics in the byte order of their ids, from left to right, as in trec_eval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from karat.arrays import Floats
from karat.compat.trec_eval.catalogue import ParsedMeasure
from karat.compat.trec_eval.flags import TrecEvalOptions
from karat.compat.trec_eval.topics import Topics

Zscores = dict[tuple[str, str], tuple[float, float]]

WITHOUT_ZSCORE = -1000000.0
"""What trec_eval prints for a value without a z-score."""


def print_table(
    out: IO[str],
    topics: Topics | None,
    measures: list[ParsedMeasure],
    options: TrecEvalOptions,
    zscores: Zscores | None,
    tag: str,
    *,
    summary: bool,
) -> None:
    """Print the values of every topic with -q, then the summary."""
    if topics is None:
        return
    columns = list(_columns(topics, measures, zscores))
    if options.each_query:
        _print_topics(
            out, topics.ids, [column for column in columns if column.measure.entry.each_query]
        )
    if summary:
        mark = "" if zscores is None else "Z"
        for column in columns:
            if options.complete and column.measure.entry.complete is not None:
                column.values = column.measure.entry.complete(topics)
            out.write(column.summed(len(topics.ids), mark, tag))


class _Column:
    """The values of all topics in the lines with one name."""

    def __init__(self, measure: ParsedMeasure, name: str, values: Any, *, as_zscores: bool) -> None:
        self.measure, self.name, self.values = measure, name, values
        self.text = measure.entry.over == "text"
        self.whole = measure.entry.whole and not as_zscores
        self.mark = "Z" if as_zscores and not self.text else ""

    def line(self) -> str:
        """Return the line of one topic, with %-formats for its id and its value."""
        label = f"{self.mark}{self.name:<22}".replace("%", "%%")
        if self.text:
            return f"{label}\t%s\t'%s'\n"
        return f"{label}\t%s\t%d\n" if self.whole else f"{label}\t%s\t%s\n"

    def printed_values(self) -> list[Any]:
        """Return the values as they are filled into the lines."""
        if self.text:
            return list(self.values)
        if self.whole:
            return [int(value) for value in self.values]
        return [_decimal(value) for value in self.values.tolist()]

    def summed(self, n_topics: int, mark: str, tag: str) -> str:
        """Return the summary line. Measures with text values have none, except runid."""
        over = self.measure.entry.over
        if over == "text":
            return f"{self.name:<22}\tall\t{tag}\n" if self.name == "runid" else ""
        total = n_topics if over == "count" else float(np.add.accumulate(self.values)[-1])
        if over == "mean":
            total /= n_topics
        elif over == "geometric":
            total = math.exp(total / n_topics)
        value = str(int(total)) if self.whole else _decimal(total)
        return f"{mark}{self.name:<22}\tall\t{value}\n"


def _columns(
    topics: Topics, measures: list[ParsedMeasure], zscores: Zscores | None
) -> Iterator[_Column]:
    for measure in measures:
        for name, values in zip(measure.names, measure.compute(topics), strict=True):
            if zscores is not None and measure.entry.over != "text":
                values = _as_zscores(topics.ids, name, values, zscores)
            yield _Column(measure, name, values, as_zscores=zscores is not None)


def _print_topics(out: IO[str], ids: list[str], columns: list[_Column]) -> None:
    lines = "".join(column.line() for column in columns)
    for topic, *values in zip(ids, *(column.printed_values() for column in columns), strict=True):
        out.write(lines % tuple(field for value in values for field in (topic, value)))


def _decimal(value: float) -> str:
    """Format a number as %6.4f in C, which shows the sign of NaN."""
    if math.isnan(value):
        return "  -nan" if math.copysign(1, value) < 0 else "   nan"
    return f"{value:6.4f}"


def _as_zscores(ids: list[str], name: str, values: Floats, zscores: Zscores) -> Floats:
    """Return how many standard deviations each value is from the mean of other runs."""
    converted = np.full(len(ids), WITHOUT_ZSCORE)
    for at, (topic, value) in enumerate(zip(ids, values.tolist(), strict=True)):
        mean, deviation = zscores.get((topic, name), (math.nan, 0.0))
        if deviation:
            converted[at] = (value - mean) / deviation
        elif value == mean:
            converted[at] = 0.0
    return converted
