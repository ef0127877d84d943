"""Files of histories: JSON, CSV, Markdown."""

from __future__ import annotations

from typing import IO

import polars as pl

from karat.evaluation.history import History
from karat.format import to_json
from karat.report.documents.history import history_document
from karat.report.renderers.markdown import markdown
from karat.report.writers import Writers


def _write_csv(history: History, file: IO[bytes]) -> None:
    times = pl.col("saved", "committed").dt.to_string("iso:strict")
    history.table.with_columns(times).write_csv(file)


_WRITERS: Writers[History] = Writers(
    "a history",
    {
        ".json": lambda history, file: file.write(f"{to_json(history.as_dict())}\n".encode()),
        ".csv": _write_csv,
        ".md": lambda history, file: file.write(markdown(history_document(history)).encode()),
    },
    hint="; for a chart in an HTML report: karat eval --history FOLDER -o report.html",
)
write, check = _WRITERS.write, _WRITERS.check
