"""The section on reranking: what the candidates contain, and which stage lost each query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from karat.errors import counted
from karat.evaluation.candidate_comparer import NONE, STAGES
from karat.evaluation.reranking import Reranking, available_rerankings
from karat.evaluation.scores import Scores
from karat.measures.families import BY_GOLD, RANK
from karat.report.cells import (
    BETTER,
    DASH,
    WORSE,
    difference_cell,
    format_value,
    interval_text,
    p_cell,
    significance_mark,
)
from karat.report.document_model import Block, Cell, Column, Document, Notes, Section, Table

_MOST_RUNS = 3
"""Of more runs than this, only one row each is shown."""
_EXAMPLES = 8


def reranking_document(reranking: Reranking) -> Document:
    """Return the document of one run."""
    return Document("Reranking", sections=[Section(_blocks([reranking]))])


def reranking_sections(scores: Sequence[Scores]) -> list[Section]:
    """Return the section on the runs with candidates; none if no run has any."""
    rerankings, problems = available_rerankings(scores)
    blocks: list[Block] = _blocks(rerankings) if rerankings else []
    if problems:
        blocks.append(Notes(problems))
    return [Section(blocks, "Reranking")] if blocks else []


def _blocks(rerankings: Sequence[Reranking]) -> list[Block]:
    blocks: list[Block] = [_before_and_after(rerankings)]
    if len(rerankings) <= _MOST_RUNS:
        blocks += [_lost_by_stage(rerankings), _depths(rerankings)]
    else:
        blocks.append(_stages_of_runs(rerankings))
    several = len(rerankings) > 1
    notes = [
        f"{one.run}: {note}" if several else note
        for one in rerankings
        for note in reranking_notes(one)
    ]
    return [*blocks, Notes(notes)] if notes else blocks


def _before_and_after(rerankings: Sequence[Reranking]) -> Table:
    measure = rerankings[0].measure
    has_best = any(one.best is not None for one in rerankings)
    columns = [
        Column("run", "left"),
        Column("before"),
        Column("after"),
        Column("difference"),
        Column("95% interval", priority=3),
        Column("p"),
        *([Column("best order")] if has_best else []),
        Column("recall"),
        Column("queries", priority=6),
    ]
    rows = []
    for one in rerankings:
        change, name = one.change, one.measure.name
        rows.append(
            [
                Cell(one.run),
                Cell(format_value(change["value_a"], name)),
                Cell(format_value(change["value_b"], name)),
                difference_cell(change),
                Cell(interval_text(change["low"], change["high"], name, sign=True)),
                p_cell(change["p"]),
                *([Cell(format_value(one.best))] if has_best else []),
                Cell(format_value(one.recall)),
                Cell(f"{one.per_query.height:,}"),
            ]
        )
    return Table(columns, rows, f"{measure} before and after reranking", value_legend(rerankings))


def targets(reranking: Reranking) -> str:
    """Return the plural of what is to be found, such as "relevant items"."""
    return f"{BY_GOLD[reranking.gold].target}s"


def value_legend(rerankings: Sequence[Reranking]) -> list[str]:
    """Return what the columns of the values mean."""
    noun = targets(rerankings[0])
    legend = []
    if any(significance_mark(one.change) for one in rerankings):
        legend.append(f"{BETTER} significantly better, {WORSE} significantly worse than before")
    test = "p: sign-flip randomization test"
    legend.append(f"{test}, not corrected for several runs" if len(rerankings) > 1 else test)
    if any(one.best is not None for one in rerankings):
        legend.append("best order: the value if a perfect reranker ordered its candidates")
        legend.append(f"recall: share of the {noun} that are among its candidates")
    else:
        legend.append(f"recall: share of the {noun} that its candidates cover")
        legend.append(f"the value of the best order is not computed for {noun}")
    return legend


def _lost_by_stage(rerankings: Sequence[Reranking]) -> Table:
    several, noun = len(rerankings) > 1, targets(rerankings[0])
    columns = [
        *([Column("run", "left")] if several else []),
        Column("lost by", "left"),
        Column("queries"),
        Column(noun, priority=5),
        Column("for example", "left", is_flexible=True),
    ]
    rows = [
        [
            *([Cell(one.run)] if several else []),
            Cell(stage),
            Cell(f"{n:,}"),
            Cell("" if items is None else f"{items:,}"),
            Cell("" if stage == NONE else _examples(one.lost_by(stage))),
        ]
        for one in rerankings
        for stage, n, items in one.stages.iter_rows()
    ]
    k = rerankings[0].cutoff
    title = f"which stage lost {noun} before the top {k}"
    return Table(columns, rows, title, stage_legend(rerankings), n_labels=1 + several)


def stage_legend(rerankings: Sequence[Reranking]) -> list[str]:
    """Return what the stages that lost something mean."""
    k = rerankings[0].cutoff
    meanings = {
        "candidates": "not among the candidates that the reranker got",
        "rerank": f"a candidate, but ranked below the top {k:,}",
        "cut": f"a candidate, but removed from a list of fewer than {counted(k, 'result')}",
    }
    per_query = pl.concat(one.per_query.drop("best") for one in rerankings)
    lost = per_query.select(pl.col(f"lost_{stage}").alias(stage) > 0 for stage in STAGES)
    legend = [f"{stage}: {meanings[stage]}" for stage in STAGES if lost[stage].any()]
    if (lost.sum_horizontal() > 1).any():
        legend.append("a query counts for the stage that lost most, the earliest of several")
    if rerankings[0].gold == RANK.gold and (per_query["relevant"] > k).any():
        legend.append(f"relevant items: at most {k:,} per query, as no more fit into the top {k:,}")
    return legend


def _examples(query_ids: Sequence[str]) -> str:
    more = len(query_ids) - _EXAMPLES
    return ", ".join(query_ids[:_EXAMPLES]) + (f" and {more:,} more" if more > 0 else "")


def _stages_of_runs(rerankings: Sequence[Reranking]) -> Table:
    columns = [Column("queries lost by", "left"), *map(Column, (*STAGES, NONE))]
    rows = [[Cell(one.run), *(Cell(f"{n:,}") for n in one.stages["queries"])] for one in rerankings]
    title = f"which stage lost most, before the top {rerankings[0].cutoff}"
    return Table(columns, rows, title, stage_legend(rerankings))


def _depths(rerankings: Sequence[Reranking]) -> Table:
    """Return recall and the best value by depth, with the columns of all runs side by side."""
    several = len(rerankings) > 1
    columns, by_run = [Column("candidates", "left")], []
    for one in rerankings:
        prefix = f"{one.run} " if several else ""
        values = {depth: (recall, best) for depth, recall, best in one.depths.iter_rows()}
        has_best = one.best is not None
        columns += [
            Column(f"{prefix}recall"),
            *([Column(f"{prefix}best order")] if has_best else []),
        ]
        by_run.append((values, has_best))
    rows = []
    for depth in sorted({depth for values, _ in by_run for depth in values}):
        cells = []
        for values, has_best in by_run:
            recall, best = values.get(depth, (None, None))
            cells += [recall, best] if has_best else [recall]
        texts = [DASH if value is None else format_value(value) for value in cells]
        rows.append([Cell(f"first {depth:,}"), *map(Cell, texts)])
    return Table(columns, rows, "if the reranker got only the first candidates")


def reranking_notes(reranking: Reranking) -> Iterator[str]:
    """Yield notes on the queries and lists of one run."""
    depth, longest = reranking.rerank_depth, int(reranking.depths["depth"][-1])
    if depth is not None and depth < longest:
        yield f"reranked: only the first {depth:,} of up to {longest:,} candidates (rerank_top_n)"
    if reranking.rel > 1:
        yield f"relevant: grade {reranking.rel} or higher"
    yield from reranking.notes
