"""Scores: a run's score table, with everything a person asks of it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.config import REPORT_TEXTS
from karat.conventions import Conventions
from karat.data.list_cut import ListCut
from karat.engines.local import ScoredRun
from karat.errors import InputError
from karat.evaluation.remarks import counted_notes, left_out
from karat.evaluation.result import Result
from karat.match.evidence import EvidenceMatches, evidence_table
from karat.measures import Measure, ScoreTable
from karat.measures.families import EVIDENCE
from karat.measures.name_parser import AnyMeasure
from karat.measures.presets import preset_named
from karat.stats import groups
from karat.stats.groups import Field
from karat.stats.summary import summary

if TYPE_CHECKING:
    from karat.evaluation.calculation import Calculation


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Result):
    """What a run scored, query by query and over all."""

    table: ScoreTable
    _: KW_ONLY
    name: str
    conventions: Conventions
    queries: pl.DataFrame
    """The queries of gold with their fields."""
    level: str = "item"
    matching: str | None = None
    """When a text covers an evidence text, in words, if evidence was measured."""
    settings: ListCut = field(default_factory=ListCut)
    """Which part of each list was scored."""
    load: str | None = None
    """How many queries shared the retriever, in words; None if it had one at a time."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know about how they were made, in sentences."""
    delivered: dict[str, float] = field(default_factory=dict)
    """The mean number of characters up to rank k, by measure of spans or evidence at k."""
    scored_run: ScoredRun | None = None
    """The run and what it was scored with; None for scores that were read from a file."""
    path: str | None = None
    """The file that they were read from, if they were."""
    preset: str | None = None
    """The preset they were made with; reports use its names for measures."""
    traced: dict[tuple[str, Measure], Calculation] = field(default_factory=dict, init=False)
    """Calculations of single queries that are shown several times, by query and measure."""

    def summary(self, *, intervals: bool = True) -> pl.DataFrame:
        """Return one row per measure: its value, a 95% interval, spread, and what was left out.

        Without intervals, `low`, `high` and `method` are absent.
        """
        return self._with_intervals if intervals else self._without_intervals

    @cached_property
    def _with_intervals(self) -> pl.DataFrame:
        return summary(self.table)

    @cached_property
    def _without_intervals(self) -> pl.DataFrame:
        return summary(self.table, intervals=False)

    @property
    def per_query(self) -> pl.DataFrame:
        """One row per query: query_id, then one column per measure; null where it is left out."""
        return self.table.frame

    @cached_property
    def matches(self) -> pl.DataFrame:
        """One row per evidence text: the rank that covers it, how and where; or the nearest text.

        Scores that were read from a file do not hold them.
        """
        return evidence_table(self._evidence, self.table.frame["query_id"])

    def matches_of(self, query: str | int) -> pl.DataFrame:
        """Return the rows of one query, and the exact ratio of what comes nearest."""
        found, query_ids = self._evidence, self.table.frame["query_id"]
        number = query_ids.index_of(str(query))
        if number is None:
            first = ", ".join(map(repr, query_ids.head(3)))
            raise InputError(
                f"gold has no query {query!r}", field="query", hint=f"it has {first}, …"
            )
        return evidence_table(found, query_ids, number, exactly=math.inf)

    @property
    def _evidence(self) -> EvidenceMatches:
        readings = {} if self.scored_run is None else self.scored_run.readings
        if EVIDENCE.name not in readings:
            raise InputError(
                "these scores do not hold which evidence was matched by what",
                field="matches",
                hint="evaluate with a measure of evidence, such as evidence.recall@10",
            )
        return readings[EVIDENCE.name].data_as(EvidenceMatches)

    def by(self, *fields: Field, intervals: bool = True) -> pl.DataFrame:
        """Return the summary for each value of a field of the queries, or of several.

        Instead of a field, a function may be given. It gets the fields of a query, with `query_id`
        and `text`, and returns its group. `small` marks groups of fewer than 5 queries.
        """
        return groups.summary_by(self.table, self.queries, fields, intervals=intervals)

    def __getitem__(self, measure: str) -> float | None:
        """Return the value of a measure, in any of its spellings."""
        return self.table.value(self.table.measure(self.parse(measure)))

    def parse(self, measure: AnyMeasure) -> Measure:
        """Return the measure that a name means here: a preset may have names of its own."""
        return preset_named(self.preset).parse(measure)

    def label(self, measure: str) -> str:
        """Return the name that reports print for a measure: a preset may have its own."""
        return preset_named(self.preset).label(measure)

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
        return counted_notes(self.table.counts, self.conventions)

    def plot(
        self,
        kind: str = "values",
        *,
        by: Field | Sequence[Field] | None = None,
        measure: AnyMeasure | None = None,
    ) -> Any:
        """Draw an Altair chart: values, distribution, curves, precision_recall, groups and others.

        latency and cost take a run that tells of them, groups takes `by`, a field of the queries
        or several; `measure` draws one measure only.
        """
        return self._plot(kind, by=by, measure=measure)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        by: Field | Sequence[Field] | None = None,
        texts: int = REPORT_TEXTS,
    ) -> None:
        """Write an HTML page that shows everything down to each query.

        Groups are made by the fields of the queries that have few values, or by `by`. The page
        holds the texts of the lists and the calculations of the `texts` most telling queries.
        """
        self._write_page(path, by=groups.fields_of(by), texts=texts)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the scores in the format of the extension: json, parquet, csv, md, tex.

        With every query, except in md and tex; for csv they are in a second file next to it.
        """
        self._write(path)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, run: str | None = None) -> Scores:
        """Read scores that were written as .json or .parquet; `run` picks one of several."""
        from karat.evaluation.saved_scores import read_scores

        return read_scores(path, run=run)

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        table = self.table
        values = [f"{self.label(m.name)} {m.format(table.value(m))}" for m in table.measures]
        return f"<Scores {self.name!r}: {', '.join(values)}>"
