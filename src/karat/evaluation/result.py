"""The base class of all results: text, files, pages and charts come from `karat.report`.

This is the only module that imports from a higher layer, and only when something is rendered.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from karat.measures.name_parser import AnyMeasure
from karat.stats.groups import Field


class Result:
    """What a verb returns; print it to read it."""

    def __str__(self) -> str:
        from karat import report

        return report.text(self)

    def _repr_html_(self) -> str | None:
        from karat import report

        return report.html(self)

    def _write(self, path: str | os.PathLike[str]) -> None:
        """Write a file in the format that its extension names."""
        from karat import report

        report.write(self, path)

    def _write_page(
        self, path: str | os.PathLike[str], *, by: Sequence[Field] = (), texts: int
    ) -> None:
        """Write an HTML page with texts and calculations of some queries."""
        from karat import report

        report.write_page(self, path, by=by, texts=texts)

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
