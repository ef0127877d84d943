"""The base class of all results. Text, files, pages and charts are made by `karat.report`.

This is the only module that imports from a higher layer, and only when something is rendered.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import polars as pl

from karat.errors import InputError
from karat.measures.name_parser import AnyMeasure
from karat.stats.groups import Field


class Result:
    """The result of a verb such as `evaluate`. Print it to read it."""

    def __str__(self) -> str:
        from karat import report

        return report.text(self)

    def _repr_html_(self) -> str:
        from karat import report

        return report.html(self)

    def _write(self, path: str | os.PathLike[str]) -> None:
        """Write a file; its extension decides the format."""
        from karat import report

        report.write(self, path)

    def _write_page(
        self,
        path: str | os.PathLike[str],
        *,
        by: Sequence[Field] = (),
        texts: int,
        title: str | None,
        full_paths: bool,
    ) -> None:
        """Write an HTML page with the texts and calculations of `texts` queries."""
        from karat import report

        report.write_page(self, path, by=by, texts=texts, title=title, full_paths=full_paths)

    def _plot(
        self,
        kind: str,
        *,
        by: Field | Sequence[Field] | None,
        measure: AnyMeasure | None,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> Any:
        """Return an Altair chart."""
        from karat import report

        return report.plot(self, kind, by=by, measure=measure, pairs=pairs)


def to_pandas(frame: pl.DataFrame) -> Any:
    """Return a table as a pandas DataFrame; unlike Polars, this does not need PyArrow."""
    try:
        import pandas as pd
    except ImportError:
        raise InputError(
            "pandas is not installed", field="to_pandas", hint="pip install pandas"
        ) from None
    return pd.DataFrame(
        {
            column.name: column.to_numpy() if column.dtype.is_numeric() else column.to_list()
            for column in frame.iter_columns()
        }
    )
