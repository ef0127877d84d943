"""Comparisons in files; the ending says how they are written."""

from __future__ import annotations

from typing import IO

import polars as pl

from karat.format import to_json
from karat.report.comparison import ComparisonSheet, comparison_document
from karat.report.comparison_text import markdown
from karat.report.endings import REPORT, Endings
from karat.report.latex import latex

_OF_B = "\0b"  # no measure ends so


def _write_csv(sheet: ComparisonSheet, file: IO[bytes]) -> None:
    """Write a row a pair and measure, or a row for each group of these where groups are asked."""
    frame = sheet.pairs if sheet.groups is None else sheet.groups
    labels = {name: sheet.label(name) for name in sheet.measures}
    frame.with_columns(pl.col("measure").replace(labels)).write_csv(file)


def _write_queries(sheet: ComparisonSheet, file: IO[bytes]) -> None:
    """Write a row a pair, measure and query, pair by pair: of many, only one is in memory."""
    values = {run.name: run.per_query for run in sheet.runs}
    for at, (a, b) in enumerate(sheet.names):
        both = values[a].join(values[b], on="query_id", how="full", coalesce=True, suffix=_OF_B)
        both = both.sort("query_id")
        for number, measure in enumerate(sheet.measures):
            one, other = pl.col(measure), pl.col(measure + _OF_B)
            rows = both.select(
                pl.lit(a).alias("a"),
                pl.lit(b).alias("b"),
                pl.lit(sheet.label(measure)).alias("measure"),
                "query_id",
                one.alias("value_a"),
                other.alias("value_b"),
                (other - one).alias("difference"),
            )
            rows.write_csv(file, include_header=at == number == 0)


def _json(sheet: ComparisonSheet) -> bytes:
    return f"{to_json(comparison_document(sheet))}\n".encode()


_ENDINGS: Endings[ComparisonSheet] = Endings(
    "a comparison",
    {
        ".json": lambda sheet, file: file.write(
            f"{to_json(comparison_document(sheet))}\n".encode()
        ),
        ".csv": _write_csv,
        ".md": lambda sheet, file: file.write(markdown(sheet).encode()),
        ".tex": lambda sheet, file: file.write(latex(sheet).encode()),
    },
    queries={".csv": _write_queries},
    hint=REPORT,
)
write, check = _ENDINGS.write, _ENDINGS.check
