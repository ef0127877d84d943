"""Scores together with the choice of what to show, independent of the output format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from karat.evaluation.remarks import few_query_notes, unequal_text_notes
from karat.evaluation.remarks import remarks as remarks_on
from karat.evaluation.scores import Scores
from karat.evaluation.scores_json import group_fields, group_parts
from karat.format import DIGITS
from karat.stats.groups import Field
from karat.stats.intervals import describe_method


@dataclass(frozen=True, eq=False)
class Sheet:
    """The scores of one run, and which parts of them are shown."""

    scores: Scores
    by: tuple[Field, ...] = ()
    """The fields to group by; if empty, no groups are shown."""
    show_queries: bool = False
    intervals: bool = True
    show_medians: bool = False
    digits: int = DIGITS
    """How many decimals are shown."""
    caption: str | None = None
    """The caption of a LaTeX table; None for the default."""
    tex_label: str = ""
    """The label of a LaTeX table."""

    def __post_init__(self) -> None:
        _ = self.groups  # raises for an unknown field before anything is shown

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.scores.name

    @cached_property
    def summary(self) -> pl.DataFrame:
        """One row per measure."""
        return self.scores.summary(intervals=self.intervals)

    def row(self, measure: str) -> dict[str, Any]:
        """Return the row of a measure in the summary."""
        return self.summary.row(by_predicate=pl.col("measure") == measure, named=True)

    @cached_property
    def groups(self) -> pl.DataFrame | None:
        """One row per group and measure, if there are groups."""
        return self.scores.by(*self.by, intervals=self.intervals) if self.by else None

    @property
    def group_fields(self) -> list[str]:
        """The columns that name the groups."""
        assert self.groups is not None
        return group_fields(self.groups)

    @property
    def group_parts(self) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
        """The labels of each group, and its rows, one per measure."""
        assert self.groups is not None
        return group_parts(self.groups)

    def label(self, measure: str) -> str:
        """Return the printed name of a measure; presets may define their own."""
        return self.scores.label(measure)

    def remarks(self) -> list[str]:
        """Return sentences about excluded and counted queries and items."""
        return remarks_on(self.scores, self.groups)


def remarks(sheets: Sequence[Sheet]) -> list[str]:
    """Return the remarks on each run; a remark that applies to all runs appears once."""
    sentences = _named_by_run({sheet.name: sheet.remarks() for sheet in sheets})
    return [*sentences, *unequal_text_notes([sheet.scores for sheet in sheets])]


def warnings(sheets: Sequence[Sheet]) -> list[str]:
    """Return those remarks that say that values are unreliable or not comparable."""
    sentences = _named_by_run(
        {sheet.name: list(few_query_notes(sheet.scores, None)) for sheet in sheets}
    )
    return [*sentences, *unequal_text_notes([sheet.scores for sheet in sheets])]


def _named_by_run(remarks_by_run: dict[str, list[str]]) -> list[str]:
    """Return remarks with the names of their runs; a remark on all runs appears once."""
    runs_of: dict[str, list[str]] = {}
    for run, remarks in remarks_by_run.items():
        for remark in remarks:
            runs_of.setdefault(remark, []).append(run)
    return [
        f"{name}: {remark}"
        for remark, names in runs_of.items()
        for name in (["every run"] if 1 < len(remarks_by_run) == len(names) else names)
    ]


def interval_methods(sheets: Sequence[Sheet]) -> list[str]:
    """Return how the intervals were computed: one sentence, or one per method.

    Runs are named if their method differs from that of the majority of runs.
    """
    if "method" not in sheets[0].summary.columns:
        return []
    clustered = sheets[0].scores.cluster is not None
    measures_of: dict[str, list[str]] = {}
    for measure in sheets[0].summary["measure"]:
        runs_of: dict[str, list[str]] = {}
        for sheet in sheets:
            if method := _methods(sheet)[measure]:
                runs_of.setdefault(method, []).append(sheet.name)
        for method, runs in runs_of.items():
            is_majority = 2 * len(runs) > sum(map(len, runs_of.values()))
            label = sheets[0].label(measure)
            if not is_majority:
                label += f" ({', '.join(runs)})"
            measures_of.setdefault(method, []).append(label)
    if len(measures_of) == 1:
        sentences = [
            f"95% intervals: {describe_method(method, clustered=clustered)}"
            for method in measures_of
        ]
    else:
        sentences = [
            f"95% intervals of {', '.join(measures)}: "
            f"{describe_method(method, clustered=clustered)}"
            for method, measures in measures_of.items()
        ]
    others = dict.fromkeys(method for sheet in sheets for method in _group_methods(sheet))
    if others:
        words = ", ".join(describe_method(method, clustered=clustered) for method in others)
        sentences.append(f"95% intervals of some groups: {words}")
    return sentences


def _group_methods(sheet: Sheet) -> Iterator[str]:
    """Yield the interval methods of groups that differ from the method for all queries."""
    if sheet.groups is None:
        return
    overall = _methods(sheet)
    used = sheet.groups.select("measure", "method").unique(maintain_order=True).drop_nulls()
    for measure, method in used.iter_rows():
        if method != overall[measure]:
            yield method


def _methods(sheet: Sheet) -> dict[str, str | None]:
    return dict(sheet.summary.select("measure", "method").iter_rows())
