"""The section on reranking: the values before and after, and which stage lost each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from karat.evaluation.candidate_comparer import NONE, STAGES
from karat.evaluation.reranking import Reranking
from karat.format import probability
from karat.report.cells import (
    BETTER,
    DASH,
    format_difference,
    format_value,
    interval_text,
    significance_mark,
)
from karat.report.documents.reranking import (
    reranking_notes,
    stage_legend,
    targets,
    value_legend,
)
from karat.report.page.model import Json, Page


@dataclass(frozen=True)
class StageCell:
    """How many queries a stage lost, and the filter that shows them."""

    text: str
    label: str
    show: Json | None


@dataclass(frozen=True)
class RerankedRun:
    """A run with candidates."""

    name: str
    colour: str
    before: str
    after: str
    difference: str
    interval: str
    mark: str
    is_better: bool
    p: str
    best: str | None
    recall: str
    queries: str
    stages: list[StageCell]


@dataclass(frozen=True)
class DepthRow:
    """The values of all runs if their rerankers got only the first candidates."""

    depth: str
    cells: list[tuple[str, str | None]]
    """Per run: recall, and the value of the best order, None if it is not computed."""


@dataclass(frozen=True)
class RerankingView:
    """What the section shows."""

    measure: str
    noun: str
    cutoff: int
    stages: tuple[str, ...]
    has_best: bool
    runs: list[RerankedRun]
    depths: list[DepthRow]
    value_legend: list[str]
    stage_legend: list[str]
    notes: list[str]


def reranking_view(page: Page) -> RerankingView | None:
    """Return what the section shows; None if no run has candidates."""
    rerankings = page.rerankings
    if not rerankings:
        return None
    colours = dict(zip((sheet.name for sheet in page.sheets), page.run_colours, strict=True))
    first = rerankings[0]
    return RerankingView(
        measure=first.measure.name,
        noun=targets(first),
        cutoff=first.cutoff,
        stages=(*STAGES, NONE),
        has_best=any(one.best is not None for one in rerankings),
        runs=[_run(one, colours[one.run], page) for one in rerankings],
        depths=_depths(rerankings),
        value_legend=value_legend(rerankings),
        stage_legend=stage_legend(rerankings),
        notes=[
            f"{one.run}: {note}" if len(page.sheets) > 1 else note
            for one in rerankings
            for note in reranking_notes(one)
        ]
        + list(page.reranking_problems),
    )


def stage_field(reranking: Reranking, n_runs: int) -> str:
    """Return the name of the field by which the list of queries is filtered."""
    return "lost by" if n_runs == 1 else f"lost by ({reranking.run})"


def with_stage_fields(
    fields: pl.DataFrame, ids: pl.Series, rerankings: Sequence[Reranking], n_runs: int
) -> pl.DataFrame:
    """Add one field per run: the stage that lost each query."""
    columns = fields.get_columns()
    for one in rerankings:
        stages = ids.to_frame("query_id").join(
            one.per_query.select("query_id", "stage"),
            on="query_id",
            how="left",
            maintain_order="left",
        )
        columns.append(stages["stage"].alias(stage_field(one, n_runs)))
    return pl.DataFrame(columns)


def _run(one: Reranking, colour: str, page: Page) -> RerankedRun:
    change, name = one.change, one.measure.name
    field = stage_field(one, len(page.sheets))
    listed = set(page.queries.fields[field])  # those of a sample, if there are very many queries
    mark = significance_mark(change)
    return RerankedRun(
        name=one.run,
        colour=colour,
        before=format_value(change["value_a"], name),
        after=format_value(change["value_b"], name),
        difference=format_difference(change["difference"], name),
        interval=interval_text(change["low"], change["high"], name, sign=True),
        mark=mark,
        is_better=mark == BETTER,
        p=probability(change["p"]),
        best=None if one.best is None else format_value(one.best),
        recall=format_value(one.recall),
        queries=f"{one.per_query.height:,}",
        stages=[
            StageCell(
                f"{n:,}",
                f"Show the queries of {one.run} that lost nothing"
                if stage == NONE
                else f"Show the queries of {one.run} lost by {stage}",
                {"run": one.run, "field": field, "value": stage} if stage in listed else None,
            )
            for stage, n in one.stages.select("stage", "queries").iter_rows()
        ],
    )


def _depths(rerankings: Sequence[Reranking]) -> list[DepthRow]:
    by_run = [
        {depth: (recall, best) for depth, recall, best in one.depths.iter_rows()}
        for one in rerankings
    ]
    return [
        DepthRow(f"{depth:,}", [_depth_cell(values.get(depth)) for values in by_run])
        for depth in sorted({depth for values in by_run for depth in values})
    ]


def _depth_cell(values: tuple[float, float | None] | None) -> tuple[str, str | None]:
    if values is None:
        return DASH, None
    recall, best = values
    return format_value(recall), None if best is None else format_value(best)
