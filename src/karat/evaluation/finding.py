"""From rows that are at fault to a finding with its examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from karat.report.validation import Example, Finding

EXAMPLES = 3
_PLACE = ("query_id", "item_id", "doc_id", "start", "end")

Row = dict[str, Any]
Said = str | tuple[str, str | None]
"""What is wrong with a row, and perhaps a hint."""


@dataclass(frozen=True)
class Finder:
    """Makes the findings of one source; `line` tells on which line of which file a query stands."""

    source: str
    line: Callable[[str], tuple[str, int] | None] = lambda _: None

    def found(
        self, kind: str, rows: pl.DataFrame, say: Callable[[Row], Said], hint: str | None = None
    ) -> Iterator[Finding]:
        """Yield one finding where there are such rows; its examples do not hang on their order."""
        if not rows.height:
            return
        place = [name for name in _PLACE if name in rows.columns]
        rest = [name for name in rows.columns if name not in place]
        first = rows.sort([*place, *rest], nulls_last=True).head(EXAMPLES)
        examples = [self._example(row, say(row)) for row in first.iter_rows(named=True)]
        yield Finding(kind, self.source, rows.height, tuple(examples), hint)

    def _example(self, row: Row, said: Said) -> Example:
        problem, hint = (said, None) if isinstance(said, str) else said
        query = row.get("query_id")
        path, line = (None if query is None else self.line(query)) or (None, None)
        place = {name: row.get(name) for name in _PLACE}
        return Example(problem, hint, path, line, **place)


def a_few(names: pl.Series) -> list[str]:
    """Return some of the ids there are."""
    return names.drop_nulls().unique().sort().head(EXAMPLES).to_list()
