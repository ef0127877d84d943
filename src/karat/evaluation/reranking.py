"""What a reranker did with its candidates: what they contain, and which stage lost each query.

`reranking` applies a `CandidateComparer`, which defines the stages, to each part of a run and
merges the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from karat.data.run import Run
from karat.engines.batches import local_engine
from karat.engines.local import LocalSession, ScoredRun
from karat.engines.parts import Part, PartError
from karat.errors import InputError, counted, without_warnings
from karat.evaluation.candidate_comparer import NONE, STAGES, CandidateComparer, ComparedPart
from karat.evaluation.candidate_ranks import require_columns
from karat.evaluation.result import Result
from karat.measures import Measure, Plan, parse
from karat.measures.aggregate import mean
from karat.measures.families import EVIDENCE, FAMILIES, RANK, SPAN
from karat.measures.name_parser import AnyMeasure
from karat.measures.score_table import ScoreTable
from karat.stats.pairwise import compare_pairs

if TYPE_CHECKING:
    from karat.evaluation.scores import Scores

T = TypeVar("T")
_DEFAULT_CUTOFF = 10
_MEASURES = {RANK.name: "nDCG", SPAN.name: "span.nDCG", EVIDENCE.name: "evidence.nDCG"}
_MAX_LISTED_IDS = 10_000
"""The maximum number of lost queries per stage that JSON lists."""


@dataclass(frozen=True, eq=False, repr=False)
class Reranking(Result):
    """What a reranker did with its candidates; `Scores.reranking` returns it.

    Parameters
    ----------
    run : str
        The name of the run.
    measure : Measure
        The nDCG by which the order of the candidates and the results are compared. Its cutoff is
        the k of the stages.
    gold : str
        What should be found: "judgments", "spans" or "evidence".
    rel : int
        The lowest grade that counts as relevant.
    rerank_depth : int or None
        How many candidates of each query the reranker got. None means all of them.
    per_query : DataFrame
        One row per query: query_id, stage, relevant, lost_candidates, lost_rerank, lost_cut,
        before, after and best. `stage` is the stage that lost the largest number of relevant items
        of the query, the earliest one in a tie, or "none" if none was lost. `before` and `after`
        are the nDCG of the candidates and of the results. `best` is the highest nDCG that the
        reranker could reach; it is null for spans and evidence, for which it is not defined.
    depths : DataFrame
        One row per depth: depth, recall and best. `recall` is the mean share of all relevant items
        that are among the first `depth` candidates, `best` the mean of the highest nDCG if the
        reranker received only these candidates.
    change : dict
        The difference of the means of `after` and `before`, with its 95% interval and p-value.
    make_items : function
        Function without arguments that returns `items`.
    notes : tuple of str
        Which queries are left out, and other remarks about the lists.

    Examples
    --------
    >>> from karat import evaluate
    >>> lists = {"results": ["b", "a"], "candidates": ["a", "b", "c"]}
    >>> reranking = evaluate({"q1": ["a", "d"]}, {"q1": lists}, "nDCG@1").reranking()
    >>> reranking
    <Reranking of 'run': nDCG@1 1.000 → 0.000, best 1.000>
    >>> reranking.per_query.select("query_id", "stage").rows()
    [('q1', 'rerank')]
    """

    run: str
    measure: Measure
    gold: str
    rel: int
    rerank_depth: int | None
    per_query: pl.DataFrame
    depths: pl.DataFrame
    change: dict[str, Any]
    make_items: Callable[[], pl.DataFrame]
    notes: tuple[str, ...] = ()

    @property
    def cutoff(self) -> int:
        """The cutoff k of the stages."""
        assert isinstance(self.measure.cutoff, int)
        return self.measure.cutoff

    @property
    def best(self) -> float | None:
        """The mean of the highest nDCG that the reranker could reach; None if it is undefined."""
        values = self.per_query["best"].drop_nulls().to_list()
        return mean(values) if values else None

    @property
    def recall(self) -> float:
        """The mean share of all relevant items that are among the reranker's candidates."""
        reranked = self.depths.filter(pl.col("depth") <= (self.rerank_depth or math.inf))
        return float(reranked["recall"][-1])

    @cached_property
    def items(self) -> pl.DataFrame:
        """One row per relevant item, span or evidence text, sorted by query and item.

        The columns are query_id, item, candidate_rank and rank. A rank is null if the item is not
        in the list. Computed on first access, which reads a large run again.
        """
        return self.make_items()

    @cached_property
    def stages(self) -> pl.DataFrame:
        """One row per stage; `items` is the number of relevant items that it lost."""
        lost = self.per_query["stage"]
        return pl.DataFrame(
            {
                "stage": [*STAGES, NONE],
                "queries": [int((lost == stage).sum()) for stage in (*STAGES, NONE)],
                "items": [*(int(self.per_query[f"lost_{stage}"].sum()) for stage in STAGES), None],
            },
            schema={"stage": pl.String, "queries": pl.Int64, "items": pl.Int64},
        )

    def lost_by(self, stage: str) -> list[str]:
        """Return the ids of the queries that a stage lost.

        Parameters
        ----------
        stage : str
            "candidates", "rerank", "cut", or "none" for the queries that lost nothing.
        """
        if stage not in (*STAGES, NONE):
            raise InputError(
                f"unknown stage {stage!r}",
                field="stage",
                hint=f"use one of {', '.join((*STAGES, NONE))}",
            )
        return self.per_query.filter(stage=stage)["query_id"].to_list()

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON-compatible data."""
        change = self.change
        keys = ("difference", "low", "high", "p", "wins", "ties", "losses")
        return {
            "measure": self.measure.name,
            "gold": self.gold,
            "cutoff": self.cutoff,
            "rel": self.rel,
            "rerank_depth": self.rerank_depth,
            "queries": self.per_query.height,
            "before": change["value_a"],
            "after": change["value_b"],
            "best": self.best,
            **{key: change[key] for key in keys},
            "depths": self.depths.to_dicts(),
            "stages": {
                stage: {"queries": n, "items": items}
                for stage, n, items in self.stages.iter_rows()
                if stage != NONE
            }
            | {NONE: {"queries": len(self.lost_by(NONE))}},
            "lost": {stage: self.lost_by(stage)[:_MAX_LISTED_IDS] for stage in STAGES},
            "notes": [*self.notes, *self._unlisted_notes()],
        }

    def _unlisted_notes(self) -> Iterator[str]:
        """Yield a note for each stage of which `as_dict` lists only some of the lost queries."""
        for stage, n_lost, _ in self.stages.iter_rows():
            if stage != NONE and n_lost > _MAX_LISTED_IDS:
                yield (
                    f"lost: only the first {_MAX_LISTED_IDS:,} of the {n_lost:,} queries that the "
                    f"stage {stage} lost are listed"
                )

    def __repr__(self) -> str:
        before, after = self.change["value_a"], self.change["value_b"]
        best = "" if self.best is None else f", best {self.best:.3f}"
        values = f"{self.measure.format(before)} → {self.measure.format(after)}"
        return f"<Reranking of {self.run!r}: {self.measure.name} {values}{best}>"


def reranking(scores: Scores, measure: AnyMeasure | None = None) -> Reranking:
    """Compare the candidates of a run with its results."""
    scored_run = _run_with_candidates(scores)
    comparer = _comparer(scored_run, _ndcg(scores, measure), _lowest_grade(scores))
    parts = _map_parts(scored_run, comparer)
    per_query = pl.concat([part.per_query for part in parts]).sort("query_id")
    if not per_query.height:
        raise InputError(
            f"no query of {scores.name!r} has both candidates and something to find in gold",
            field="candidates",
            hint="check that gold and run are for the same queries",
        )
    family = FAMILIES[comparer.measure.declaration.family]
    return Reranking(
        scores.name,
        comparer.measure,
        str(family.gold),
        comparer.rel,
        comparer.rerank_depth,
        per_query,
        _depth_table(parts, comparer, per_query.height),
        _change(per_query, comparer.measure),
        partial(_items, scored_run, comparer),
        tuple(_notes(parts, family.target, comparer.k)),
    )


def _run_with_candidates(scores: Scores) -> ScoredRun:
    """Return the run of some scores, or raise an error if its candidates are not available."""
    scored_run = scores.scored_run
    if scored_run is None:
        origin = "scored by Spark" if scores.path is None else "read as saved scores"
        raise InputError(
            f"{scores.name!r} was {origin}, so its lists are not available",
            field="candidates",
            hint="score the run again, with the local engine",
        )
    if scored_run.facts.candidates is None:
        raise InputError(
            f"{scores.name!r} has no candidates",
            field="candidates",
            hint='add the list before reranking to each line of the run, as "candidates": […] next '
            'to "results", or run the reranker with karat run --reranker',
        )
    return scored_run


def _ndcg(scores: Scores, measure: AnyMeasure | None) -> Measure:
    """Return the nDCG to compare by: the one that was scored, or one with the same cutoff."""
    measures = [m for m in scores.table.measures if m.declaration.name in _MEASURES.values()]
    scored = [m for m in scores.table.measures if m.declaration.family in _MEASURES]
    if measure is not None:
        chosen = scores.parse(measure)
    elif scored:
        family = scored[0].declaration.family
        same = [m for m in scored if m.declaration.family == family]
        cutoff = next((m.cutoff for m in same if type(m.cutoff) is int), _DEFAULT_CUTOFF)
        default = parse(f"{_MEASURES[family]}@{cutoff}")
        has_cutoff = [m for m in measures if m in same and type(m.cutoff) is int]
        chosen = next(iter(has_cutoff), default)
    else:
        raise InputError(
            "no measure of these scores compares the results with gold",
            field="measure",
            hint="score the run with a measure such as nDCG@10",
        )
    if chosen.declaration.name not in _MEASURES.values() or type(chosen.cutoff) is not int:
        raise InputError(
            f"candidates are compared by nDCG at a rank, not by {chosen.name}",
            field="measure",
            hint=f"use {', '.join(f'{name}@10' for name in _MEASURES.values())}",
        )
    return chosen


def _lowest_grade(scores: Scores) -> int:
    """Return the lowest relevant grade of the first measure that has one."""
    grades = (measure.params.get("rel") for measure in scores.table.measures)
    return next((grade for grade in grades if isinstance(grade, int)), 1)


def _comparer(scored_run: ScoredRun, measure: Measure, rel: int) -> CandidateComparer:
    session, facts = scored_run.session, scored_run.facts
    assert facts.candidates is not None, "the run has candidates"
    plan, lists = _plan(session, measure), session.candidate_preparation(facts.candidates)
    require_columns(facts.candidates, lists, plan, measure)
    return CandidateComparer(
        plan,
        rel,
        _rerank_depth(facts.header),
        facts,
        session.lists,
        lists,
        scored_run.readings,
    )


def _plan(session: LocalSession, measure: Measure) -> Plan:
    # Whether queries are missing was checked when the run was scored.
    conventions = replace(session.plan.conventions, missing="zero", unknown="ignore")
    if conventions.duplicates == "error":
        conventions = replace(conventions, duplicates="first")
    return replace(session.plan, measures=(measure,), conventions=conventions)


def _map_parts(scored_run: ScoredRun, function: Callable[[Part], T | PartError]) -> list[T]:
    """Apply a function to each part of the run, which is read again, and return the results."""
    session, source = scored_run.session, scored_run.source
    # Warnings about gold and the run were shown when the run was scored.
    with without_warnings():
        try:
            engine = local_engine(session.prepared, source, needs_facts=session.needs_facts)
            results = list(engine.map(function))
        finally:
            source.close()
    failures = [result for result in results if isinstance(result, PartError)]
    if failures:
        raise min(failures, key=_order).error
    return [result for result in results if not isinstance(result, PartError)]


def _order(failure: PartError) -> tuple[int, str]:
    return failure.order


def _items(scored_run: ScoredRun, comparer: CandidateComparer) -> pl.DataFrame:
    return pl.concat(_map_parts(scored_run, comparer.items)).sort(pl.all())


def _depth_table(
    parts: Sequence[ComparedPart], comparer: CandidateComparer, n_queries: int
) -> pl.DataFrame:
    """Return recall and the highest nDCG by the number of candidates."""
    rows = []
    for depth in comparer.depths(max(part.depths.longest for part in parts)):
        sums = [part.depths.at(depth) for part in parts]
        recall, best = (math.fsum(chain.from_iterable(terms)) for terms in zip(*sums, strict=True))
        rows.append((depth, recall / n_queries, best / n_queries if comparer.is_rank else None))
    schema = {"depth": pl.Int64, "recall": pl.Float64, "best": pl.Float64}
    return pl.DataFrame(rows, schema, orient="row")


def _change(per_query: pl.DataFrame, measure: Measure) -> dict[str, Any]:
    """Return the comparison of the values before and after reranking."""
    tables = {}
    for name in ("before", "after"):
        values = per_query.select("query_id", pl.col(name).alias(measure.name))
        tables[name] = ScoreTable((measure,), values, {})
    return compare_pairs(tables).row(0, named=True)


def _notes(parts: Sequence[ComparedPart], target: str, k: int) -> Iterator[str]:
    left_out = "left out of the comparison of candidates and results"
    n_without_candidates = sum(part.n_without_candidates for part in parts)
    if n_without_candidates:
        yield f"{counted(n_without_candidates, 'query')} without candidates: {left_out}"
    n_failed = sum(part.n_failed for part in parts)
    if n_failed:
        yield f"{counted(n_failed, 'query')} failed: {left_out}"
    n_not_candidates = sum(part.n_not_candidates for part in parts)
    if n_not_candidates:
        are, they_are, them = (
            ("is", "it is", "it") if n_not_candidates == 1 else ("are", "they are", "them")
        )
        yield (
            f"{counted(n_not_candidates, target)} {are} found in the results but not among the "
            f"candidates; in the top {k:,}, {they_are} counted as if the reranker had received "
            f"{them}"
        )


def _rerank_depth(run: Run) -> int | None:
    """Return how many candidates the reranker got, if the header of the run states it."""
    is_used = "rerank_top_n" in (run.settings.get("handed") or ())
    depth = run.settings.get("rerank_top_n")
    return depth if is_used and type(depth) is int and depth > 0 else None


def available_rerankings(scores: Sequence[Scores]) -> tuple[list[Reranking], list[str]]:
    """Return the `Reranking` of each run with candidates that was compared with gold.

    The second list states for which runs it is not available, and why.
    """
    found, problems = [], []
    for score in scores:
        families = {measure.declaration.family for measure in score.table.measures}
        if score.has_candidates and not families.isdisjoint(_MEASURES):
            try:
                found.append(score.reranking())
            except InputError as error:
                reason = "; ".join(filter(None, [error.problem, error.hint]))
                problems.append(f"{score.name}: reranking is not shown: {reason}")
    return found, problems
