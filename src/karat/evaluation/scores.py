"""Scores: a run's score table, with everything a person asks of it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import polars as pl

from karat.conventions import Conventions
from karat.data.shaping import Settings
from karat.errors import InputError
from karat.evaluation.opened import Origin
from karat.match.evidence import Found
from karat.match.matches import matches
from karat.measures import Measure, ScoreTable
from karat.measures.presets import preset_named
from karat.report import files, saved_scores
from karat.report.making import TEXTS, Making
from karat.report.sheet import Sheet, left_out, noted
from karat.report.tables import number
from karat.stats import groups
from karat.stats.groups import Field
from karat.stats.summary import summary


class Scores:
    """What a run scored, query by query and over all."""

    def __init__(
        self,
        table: ScoreTable,
        *,
        name: str,
        conventions: Conventions,
        queries: pl.DataFrame,
        level: str = "item",
        matching: str | None = None,
        settings: Settings | None = None,
        load: str | None = None,
        notes: tuple[str, ...] = (),
        delivered: dict[str, float] | None = None,
        origin: Origin | None = None,
        path: str | None = None,
        preset: str | None = None,
    ) -> None:
        self.table = table
        self.name = name
        self.conventions = conventions
        self.level = level
        self.matching = matching
        """When a text covers an evidence, in words, where evidence was measured."""
        self.settings = settings or Settings()
        """Which part of each list was scored."""
        self.load = load
        """How many questions shared the retriever, in words; None where it had one at a time."""
        self.notes = notes
        """What a reader of the numbers must know about how they were made, in sentences."""
        self.delivered = delivered or {}
        """The mean number of characters up to rank k, by measure of spans or evidence at k."""
        self.origin = origin
        """What was scored, to be opened again; None for scores that were read from a file."""
        self.path = path
        """The file that they were read from, if they were."""
        self.queries = queries
        self.preset = preset
        """The preset they were made with; reports use its names for measures."""

    def summary(self, *, intervals: bool = True) -> pl.DataFrame:
        """Return one row a measure: its value, a 95% interval, spread, and what was left out.

        Without intervals, `low`, `high` and `method` are absent.
        """
        return self._summary if intervals else summary(self.table, intervals=False)

    @cached_property
    def _summary(self) -> pl.DataFrame:
        return summary(self.table)

    @property
    def per_query(self) -> pl.DataFrame:
        """A row a query: query_id, then one column a measure; null where it is left out."""
        return self.table.frame

    @cached_property
    def matches(self) -> pl.DataFrame:
        """A row an evidence: by which rank it is covered, how and where; or what comes nearest.

        Scores that were read from a file do not hold them.
        """
        return matches(self._evidence, self.table.frame["query_id"])

    def matches_of(self, query: str | int) -> pl.DataFrame:
        """Return the rows of one query, and the exact ratio of what comes nearest."""
        found, query_ids = self._evidence, self.table.frame["query_id"]
        number = query_ids.index_of(str(query))
        if number is None:
            first = ", ".join(map(repr, query_ids.head(3)))
            raise InputError(
                f"gold has no query {query!r}", field="query", hint=f"it has {first}, …"
            )
        return matches(found, query_ids, number, exactly=math.inf)

    @property
    def _evidence(self) -> Found:
        if self.origin is None or self.origin.found is None:
            raise InputError(
                "these scores do not hold which evidence was matched by what",
                field="matches",
                hint="evaluate with a measure of evidence, such as evidence.recall@10",
            )
        return self.origin.found

    def by(self, *fields: Field, intervals: bool = True) -> pl.DataFrame:
        """Return the summary for each value of a field of the queries, or of several.

        In place of a field may stand a function that gets the fields of a query, `query_id` and
        `text` among them, and returns its group. `small` marks groups of fewer than 5 queries.
        """
        return groups.by(self.table, self.queries, fields, intervals=intervals)

    def __getitem__(self, measure: str) -> float | None:
        """Return the value of a measure, in any of its spellings."""
        return self.table.value(self.table.measure(self.parse(measure)))

    def parse(self, measure: str | Measure) -> Measure:
        """Return the measure that a name means here: a preset may have names of its own."""
        return preset_named(self.preset).parse(measure)

    def keys(self) -> list[str]:
        """Return the names of the measures; with them, scores turn into a dict."""
        return [measure.name for measure in self.table.measures]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, measure: str) -> bool:
        return self.parse(measure) in self.table.measures

    @property
    def left_out(self) -> dict[str, int]:
        """How many queries count nowhere, by reason."""
        return left_out(self.table.counts, self.conventions)

    @property
    def noted(self) -> dict[str, int]:
        """What was scored and should be known of, by reason."""
        return noted(self.table.counts, self.conventions)

    def sheet(
        self,
        *,
        by: tuple[Field, ...] = (),
        per_query: bool = False,
        intervals: bool = True,
        medians: bool = False,
    ) -> Sheet:
        """Return what is shown and written of these scores."""
        return Sheet(
            name=self.name,
            preset=self.preset,
            conventions=self.conventions,
            level=self.level,
            matching=self.matching,
            settings=self.settings,
            load=self.load,
            notes=self.notes,
            delivered=self.delivered,
            summary=self.summary(intervals=intervals),
            counts=self.table.counts,
            groups=self.by(*by, intervals=intervals) if by else None,
            per_query=self.per_query,
            weights=self.table.weights,
            holes=self.table.holes,
            queries=self.queries,
            show_queries=per_query,
            show_medians=medians,
        )

    def plot(
        self,
        kind: str = "values",
        *,
        by: Field | Sequence[Field] | None = None,
        measure: str | Measure | None = None,
    ) -> Any:
        """Draw an Altair chart: values, distribution, curves, precision_recall, groups and others.

        latency and cost take a run that tells of them, groups takes `by`, a field of the queries
        or several; `measure` draws one measure only.
        """
        from karat.evaluation.plotting import plot

        return plot([self], kind, by=by, measure=measure)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        by: Field | Sequence[Field] | None = None,
        texts: int = TEXTS,
    ) -> None:
        """Write an HTML page that a person opens, down to each query.

        Groups are by the fields of the queries that have few values, or by those named. For `texts`
        queries, the most telling ones, it holds the texts of their lists and their calculations.
        """
        from karat.evaluation import reporting

        page = reporting.page([self], by=groups.fields_of(by), making=Making(texts))
        reporting.write(page, path)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the scores; the ending says how: json, parquet, csv, md, tex.

        With every query, but for md and tex; a csv has them in a second file beside it.
        """
        briefly = os.fspath(path).lower().endswith(".md")
        files.write([self.sheet(per_query=not briefly)], path)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, run: str | None = None) -> Scores:
        """Read scores that were written as .json or .parquet; `run` picks one of several."""
        saved = saved_scores.read(path, run)
        table = ScoreTable(
            saved.measures, saved.per_query, saved.counts, saved.weights, saved.unjudged
        )
        return cls(
            # Whoever sorted the file another way must not change which query is drawn when.
            table.rows(saved.per_query["query_id"].arg_sort()),
            name=saved.name,
            conventions=saved.conventions,
            level=saved.level,
            matching=saved.matching,
            settings=saved.settings,
            load=saved.load,
            notes=saved.notes,
            delivered=saved.delivered,
            queries=saved.queries,
            path=os.fspath(path),
            preset=saved.preset,
        )

    def _repr_html_(self) -> str:
        from karat.report.notebook import scores_html

        return scores_html(self.sheet())

    def __repr__(self) -> str:
        values: dict[str, Any] = {name: self[name] for name in self.keys()}
        label = preset_named(self.preset).label
        shown = ", ".join(f"{label(name)} {number(value, name)}" for name, value in values.items())
        return f"<Scores {self.name!r}: {shown}>"
