"""Files of comparisons: JSON, CSV, Markdown, LaTeX."""

from __future__ import annotations

from typing import IO

import polars as pl

from karat.format import to_json
from karat.report.comparison import ComparisonSheet
from karat.report.documents.comparison import comparison_document
from karat.report.documents.paper import comparison_table
from karat.report.renderers.latex import latex
from karat.report.renderers.markdown import markdown
from karat.report.writers import REPORT_HINT, Writers

_OF_B = "\0b"  # no name of a measure ends like this


def _write_csv(sheet: ComparisonSheet, file: IO[bytes]) -> None:
    """Write one row per pair and measure, or per group of these if there are groups."""
    frame = sheet.pairs if sheet.groups is None else sheet.groups
    labels = {name: sheet.label(name) for name in sheet.measures}
    frame.with_columns(pl.col("measure").replace(labels)).write_csv(file)


def _write_queries(sheet: ComparisonSheet, file: IO[bytes]) -> None:
    """Write one row per pair, measure and query; only one pair is in memory at a time."""
    values = {run.name: run.scores.per_query for run in sheet.runs}
    for at, (a, b) in enumerate(sheet.names):
        both = values[a].join(values[b], on="query_id", how="full", coalesce=True, suffix=_OF_B)
        both = both.sort("query_id")
        for n, measure in enumerate(sheet.measures):
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
            rows.write_csv(file, include_header=at == n == 0)


_WRITERS: Writers[ComparisonSheet] = Writers(
    "a comparison",
    {
        ".json": lambda sheet, file: file.write(f"{to_json(sheet.as_dict())}\n".encode()),
        ".csv": _write_csv,
        ".md": lambda sheet, file: file.write(markdown(comparison_document(sheet)).encode()),
        ".tex": lambda sheet, file: file.write(latex(comparison_table(sheet)).encode()),
    },
    queries={".csv": _write_queries},
    hint=REPORT_HINT,
)
write, check = _WRITERS.write, _WRITERS.check
