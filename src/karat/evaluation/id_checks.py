"""Whether gold speaks of the queries, items and documents that there are."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from karat.evaluation.findings import Finder, Finding, a_few


class Wanted:
    """The ids that gold names in a column, crossed off where something has them."""

    def __init__(self, rows: pl.DataFrame, column: str) -> None:
        self._column = column
        self._unseen = rows.group_by(column).agg(pl.col("query_id").min())
        self._all = self._unseen.height
        self._there: list[str] = []
        self._complete = False
        self._retrieved = False

    def see(self, ids: pl.Series) -> None:
        """Cross off ids of the corpus or of its chunks: any that are right must be there."""
        self._complete = True
        self._cross_off(ids)

    def see_results(self, results: pl.DataFrame, *columns: str) -> None:
        """Cross off ids that a run returned; it need not have returned all there are."""
        for name in columns:
            if name in results.columns:
                self._retrieved = True
                self._cross_off(results[name])

    def _cross_off(self, ids: pl.Series) -> None:
        seen = ids.alias(self._column).to_frame()
        self._unseen = self._unseen.join(seen, on=self._column, how="anti")
        self._there = self._there or a_few(ids)

    def findings(self, finder: Finder, unknown: str, word: str) -> Iterator[Finding]:
        """Yield the ids that nothing has: an error if they must be there, or if none of them is."""
        if not self._complete and not self._retrieved:
            return
        none = self._unseen.height == self._all
        kind = f"no-{word}-retrieved" if none else f"{word}-not-retrieved"
        yield from finder.found(
            unknown if self._complete else kind,
            self._unseen,
            lambda _: "nothing that was given has this id",
            f"there are {', '.join(map(repr, self._there))}; are ids spelled differently?"
            if self._there
            else None,
        )


def shared_query_findings(finder: Finder, gold: pl.Series, run: pl.Series) -> Iterator[Finding]:
    """Yield the queries that only gold or only the run has."""
    wanted, asked = (ids.alias("query_id").to_frame() for ids in (gold, run))
    missing = wanted.join(asked, on="query_id", how="anti")
    unknown = asked.join(wanted, on="query_id", how="anti")
    if unknown.height and unknown.height == asked.height:
        hint = f"queries of gold are {', '.join(map(repr, a_few(gold)))}"
        yield from finder.found("no-shared-query", unknown, lambda _: "gold does not have it", hint)
        return
    yield from finder.found("missing-query", missing, lambda _: "it scores as nothing retrieved")
    yield from finder.found("unknown-query", unknown, lambda _: "it is left out")
