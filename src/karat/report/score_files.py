"""Writing scores to files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Any

import polars as pl

from karat.evaluation.saved_scores import write_parquet
from karat.evaluation.scores_json import document
from karat.format import to_json
from karat.report.sheet import Sheet
from karat.report.writers import REPORT_HINT, Writers


def json_document(sheets: Sequence[Sheet]) -> dict[str, Any]:
    """Return the shown scores as JSON-compatible data."""
    return document(
        [sheet.scores for sheet in sheets],
        [sheet.groups for sheet in sheets],
        per_query=sheets[0].show_queries,
        intervals=sheets[0].intervals,
    )


def _write_json(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    provenance = {"provenance": sheets[0].scores.provenance.as_dict()}
    file.write(f"{to_json(json_document(sheets) | provenance)}\n".encode())


def _write_csv(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    """Write one row per run and measure, or per run, measure and group if there are groups."""
    frames = (
        (
            sheet.name,
            (sheet.summary if sheet.groups is None else sheet.groups).with_columns(
                pl.col("measure").replace(_labels(sheet))
            ),
        )
        for sheet in sheets
    )
    _with_run_names(frames).write_csv(file)


def _write_queries(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    """Write one row per run and query."""
    frames = ((sheet.name, sheet.scores.per_query.rename(_labels(sheet))) for sheet in sheets)
    _with_run_names(frames).write_csv(file)


def _labels(sheet: Sheet) -> dict[str, str]:
    return {name: sheet.label(name) for name in sheet.summary["measure"]}


def _with_run_names(frames: Iterable[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Return the rows of all runs, with the name of the run as the first column."""
    return pl.concat(frame.select(pl.lit(name).alias("run"), pl.all()) for name, frame in frames)


def _write_parquet(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    write_parquet([sheet.scores for sheet in sheets], file)


def _write_markdown(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    from karat.report.documents.scores import scores_document
    from karat.report.renderers.markdown import markdown

    file.write(markdown(scores_document(sheets)).encode())


def _write_latex(sheets: Sequence[Sheet], file: IO[bytes]) -> None:
    from karat.report.documents.paper import scores_table
    from karat.report.renderers.latex import latex

    file.write(latex(scores_table(sheets)).encode())


_WRITERS: Writers[Sequence[Sheet]] = Writers(
    "scores",
    {
        ".json": _write_json,
        ".csv": _write_csv,
        ".parquet": _write_parquet,
        ".md": _write_markdown,
        ".tex": _write_latex,
    },
    hint=REPORT_HINT,
    queries={".csv": _write_queries},
)
write, check = _WRITERS.write, _WRITERS.check
