"""Scores in files; the ending says how they are written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import IO, Any

import msgspec
import polars as pl

from karat.data.files import Source, Unopened, path_of
from karat.format import to_json
from karat.report.document import document
from karat.report.endings import REPORT, Endings
from karat.report.latex import latex_of_scores
from karat.report.markdown import markdown
from karat.report.sheet import Sheet

_VERSIONED = re.compile(rb'\s*\{\s*"karat"\s*:\s*"')


def holds_scores(given: Any) -> bool:
    """Tell whether a path leads to scores that karat wrote, rather than to a run.

    Where a format was said, it is a run.
    """
    path = path_of(given)
    said = isinstance(given, Unopened) and given.format is not None
    if path is None or said or not os.path.isfile(path):
        return False
    source = Source(path)
    if source.ending == ".parquet":
        try:
            return "karat" in pl.read_parquet_metadata(source.path)
        except (pl.exceptions.PolarsError, OSError):
            return False
    # Native files begin likewise, but with a number: the version of the format.
    return source.ending == ".json" and _VERSIONED.match(source.head) is not None


def _write_json(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    file.write(f"{to_json(document(sheets))}\n".encode())


def _write_csv(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    """Write a row for each run and measure, or for each group of these where groups are asked."""
    frames = (
        (
            sheet.name,
            (sheet.summary if sheet.groups is None else sheet.groups).with_columns(
                pl.col("measure").replace(_labels(sheet))
            ),
        )
        for sheet in sheets
    )
    _named(frames).write_csv(file)


def _write_queries(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    """Write a row for each run and query."""
    _named((sheet.name, sheet.per_query.rename(_labels(sheet))) for sheet in sheets).write_csv(file)


def _labels(sheet: Sheet) -> dict[str, str]:
    return {name: sheet.label(name) for name in sheet.summary["measure"]}


def _named(frames: Iterable[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Return the rows of all runs, with the name of the run before them."""
    return pl.concat(frame.select(pl.lit(name).alias("run"), pl.all()) for name, frame in frames)


def _write_parquet(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    """Write a row for each run and query, with the fields of the query behind the measures."""
    frames = []
    for sheet in sheets:
        fields = sheet.queries.rename(lambda c: c if c == "query_id" else f"field:{c}")
        rows = sheet.per_query.join(fields, on="query_id", how="left", maintain_order="left")
        rows = rows.hstack(sheet.weights.rename(lambda c: f"weight:{c}"))
        rows = rows.hstack(sheet.holes.rename(lambda c: f"hole:{c}"))
        frames.append((sheet.name, rows))
    told = {
        "conventions": sheets[0].conventions.as_dict(),
        "level": sheets[0].level,
        "matching": sheets[0].matching,
        "settings": sheets[0].settings.as_dict(),
        "preset": sheets[0].preset,
        "measures": sheets[0].summary["measure"].to_list(),
        "counts": {sheet.name: sheet.counts for sheet in sheets},
        "loads": {sheet.name: sheet.load for sheet in sheets},
        "notes": {sheet.name: sheet.notes for sheet in sheets},
        "delivered": {sheet.name: sheet.delivered for sheet in sheets},
    }
    _named(frames).write_parquet(file, metadata={"karat": msgspec.json.encode(told).decode()})


def _write_markdown(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    file.write(markdown(sheets).encode())


def _write_latex(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    file.write(latex_of_scores(sheets).encode())


_ENDINGS: Endings[Sequence[Sheet]] = Endings(
    "scores",
    {
        ".json": _write_json,
        ".csv": _write_csv,
        ".parquet": _write_parquet,
        ".md": _write_markdown,
        ".tex": _write_latex,
    },
    hint=REPORT,
    queries={".csv": _write_queries},
)
write, check = _ENDINGS.write, _ENDINGS.check
