"""What a reranker did with its candidates: what they contain, and which stage lost each query.

The candidates are the lists before reranking, `Run.candidates`. A relevant item that is not in the
top k is lost by one of three stages:

- `candidates`: the reranker never had it.
- `rerank`: the reranker had it, and at least k items are ranked above it.
- `cut`: the reranker had it, but a limit or a threshold removed it from a list of fewer than k.

No more than k items fit into the top k. So of R relevant items, min(R, k) are expected there, and
a stage loses only what the next stage, working perfectly, could not put into the top k. Gold spans
and evidence texts count without that limit, because one item can cover several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.data.run import Run
from karat.errors import InputError, counted
from karat.evaluation.candidate_ranks import ranks_of_items, ranks_of_targets, require_columns
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.result import Result
from karat.match.align import query_numbers
from karat.match.evidence import EvidenceMatches
from karat.match.gold_index import PreparedGold
from karat.match.hits import Hits, RankedRows, ideal_rows, ranked_rows
from karat.match.spans import Coverage
from karat.measures import Measure, Plan, parse
from karat.measures.array_math import divide
from karat.measures.families import EVIDENCE, FAMILIES, RANK, SPAN, FamilyInput, read_inputs
from karat.measures.kernels.ndcg import dcg, ideal_dcg
from karat.measures.name_parser import AnyMeasure
from karat.measures.score_table import ScoreTable
from karat.measures.scoring import score_inputs
from karat.stats.groups import select_queries
from karat.stats.pairwise import compare_pairs

if TYPE_CHECKING:
    from karat.evaluation.scores import Scores

STAGES = ("candidates", "rerank", "cut")
"""The stages that can lose a relevant item, in the order of a pipeline."""
NONE = "none"
"""The stage of a query that lost nothing."""
_DEPTHS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)
_DEFAULT_CUTOFF = 10
_MEASURES = {RANK.name: "nDCG", SPAN.name: "span.nDCG", EVIDENCE.name: "evidence.nDCG"}
_TABLES = ("candidates", "reranked")


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
        before, after and best. `stage` lost most of the relevant items of the query, the earliest
        of several; it is "none" if nothing was lost. `before` and `after` are the nDCG of the
        candidates and of the results. `best` is the highest nDCG that the reranker could reach; it
        is null for spans and evidence, for which it is not defined.
    items : DataFrame
        One row per relevant item, span or evidence text: query_id, item, candidate_rank and rank.
        A rank is null if the item is not in the list.
    depths : DataFrame
        One row per depth: depth, recall and best. `recall` is the mean share of the relevant items
        among the first candidates, `best` the mean of the highest nDCG if the reranker got only
        these.
    change : dict
        The difference of the means of `after` and `before`, with its 95% interval and p-value.
    notes : tuple of str
        Which queries are left out, and what is special about these lists.

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
    items: pl.DataFrame
    depths: pl.DataFrame
    change: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def cutoff(self) -> int:
        """The k of the stages: a relevant item below rank k is lost."""
        assert isinstance(self.measure.cutoff, int)
        return self.measure.cutoff

    @property
    def best(self) -> float | None:
        """The mean of the highest nDCG that the reranker could reach; None if it is undefined."""
        mean = self.per_query["best"].mean()
        return mean if isinstance(mean, float) else None

    @property
    def recall(self) -> float:
        """The mean share of the relevant items among the candidates that the reranker got."""
        reranked = self.depths.filter(pl.col("depth") <= (self.rerank_depth or math.inf))
        return float(reranked["recall"][-1])

    @cached_property
    def stages(self) -> pl.DataFrame:
        """One row per stage: stage, queries, and items: how many relevant items it lost."""
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
            "lost": {stage: self.lost_by(stage) for stage in STAGES},
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        before, after = self.change["value_a"], self.change["value_b"]
        best = "" if self.best is None else f", best {self.best:.3f}"
        values = f"{self.measure.format(before)} → {self.measure.format(after)}"
        return f"<Reranking of {self.run!r}: {self.measure.name} {values}{best}>"


def reranking(scores: Scores, measure: AnyMeasure | None = None) -> Reranking:
    """Compare the candidates of a run with its results."""
    loaded, lists = _loaded(scores)
    if lists is None:
        raise InputError(
            f"{scores.name!r} has no candidates",
            field="candidates",
            hint='add the list before reranking to each line of the run, as "candidates": […] next '
            'to "results", or run the reranker with karat run --reranker',
        )
    ndcg = _ndcg(scores, measure)
    return _View.of(scores.name, loaded, lists, ndcg, _lowest_grade(scores)).reranking()


def _loaded(scores: Scores) -> tuple[LoadedRun, Run | None]:
    """Return the run of some scores and its candidates, or raise an error if it has no lists."""
    scored_run = scores.scored_run
    if scored_run is None:
        origin = "scored by Spark" if scores.path is None else "read as saved scores"
        raise InputError(
            f"{scores.name!r} was {origin}, so its lists are not available",
            field="candidates",
            hint="score the run again, with the local engine",
        )
    if scored_run.source.is_large:
        raise InputError(
            f"run {scores.name!r} is larger than the memory limit",
            field="candidates",
            hint="raise the limit (--memory, memory=)",
        )
    loaded = LoadedRun.of(scores)
    assert loaded is not None
    return loaded, loaded.session.candidates_as_scored(scored_run.source.read())


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


@dataclass(frozen=True, eq=False)
class _View:
    """Candidates and results of the same queries, matched with gold."""

    name: str
    gold: PreparedGold
    plan: Plan
    measure: Measure
    rel: int
    rerank_depth: int | None
    run: Run
    candidates: Run
    before: FamilyInput
    after: FamilyInput
    n_failed: int

    @classmethod
    def of(cls, name: str, loaded: LoadedRun, candidates: Run, measure: Measure, rel: int) -> _View:
        """Match both lists with gold."""
        session = loaded.session
        family = measure.declaration.family
        # Whether queries are missing was checked when the run was scored.
        conventions = replace(session.plan.conventions, missing="zero", unknown="ignore")
        if conventions.duplicates == "error":
            conventions = replace(conventions, duplicates="first")
        plan = replace(session.plan, measures=(measure,), conventions=conventions)
        require_columns(candidates, plan, measure)
        after = (
            loaded.readings.get(family) or read_inputs(session.prepared, loaded.run, plan)[family]
        )
        return cls(
            name,
            session.prepared,
            plan,
            measure,
            rel,
            _rerank_depth(loaded.run),
            loaded.run,
            candidates,
            read_inputs(session.prepared, candidates, plan)[family],
            after,
            loaded.run.failed,
        )

    @property
    def k(self) -> int:
        assert isinstance(self.measure.cutoff, int)
        return self.measure.cutoff

    @property
    def n_queries(self) -> int:
        return self.gold.query_ids.len()

    @cached_property
    def found(self) -> pl.DataFrame:
        """The ranks of judged items, or of gold spans or evidence texts, in both lists."""
        if self.measure.declaration.family == RANK.name:
            return ranks_of_items(self.gold, self.candidates, self.run, self.plan)
        return ranks_of_targets(self.gold, self.before, self.after, self.measure)

    @cached_property
    def relevant(self) -> pl.DataFrame:
        """The rows of `found` that should be in the top k, of the queries of the view."""
        relevant = self.found
        if self.measure.declaration.family == RANK.name:
            relevant = relevant.filter(pl.col("grade") >= self.rel)
        return relevant.filter(pl.Series(self.with_candidates)[relevant["query"]])

    @cached_property
    def with_candidates(self) -> Flags:
        """Which queries have gold and a list of candidates, even an empty one."""
        numbers = query_numbers(self.gold.query_ids, self.candidates.query_ids)
        flags = np.zeros(self.n_queries, np.bool_)
        flags[numbers[numbers >= 0]] = True
        return flags & self.before.has_gold

    @cached_property
    def n_relevant(self) -> Ints:
        return self._count(np.ones(self.relevant.height, np.bool_))

    @cached_property
    def queries(self) -> Ints:
        """The numbers of the queries of the view: those with something to find."""
        return np.flatnonzero(self.n_relevant)

    def reranking(self) -> Reranking:
        """Return the result."""
        if not self.queries.size:
            raise InputError(
                f"no query of {self.name!r} has both candidates and something to find in gold",
                field="candidates",
                hint="check that gold and run are for the same queries",
            )
        before, after = self._table(self.candidates, self.before), self._table(self.run, self.after)
        change = compare_pairs(dict(zip(_TABLES, (before, after), strict=True))).row(0, named=True)
        name = self.measure.name
        return Reranking(
            self.name,
            self.measure,
            str(FAMILIES[self.measure.declaration.family].gold),
            self.rel,
            self.rerank_depth,
            self._per_query(before.frame[name], after.frame[name]),
            self._items(),
            self._depths(),
            change,
            tuple(self._notes()),
        )

    def _count(self, keep: Flags) -> Ints:
        return np.bincount(self.relevant["query"].to_numpy()[keep], minlength=self.n_queries)

    def _table(self, run: Run, reading: FamilyInput) -> ScoreTable:
        readings = {self.measure.declaration.family: reading}
        table = score_inputs(self.gold, run, self.plan, readings)
        return select_queries(table, self.gold.query_ids[self.queries])

    def _per_query(self, before: pl.Series, after: pl.Series) -> pl.DataFrame:
        lost = self._lost()[:, self.queries]
        stage = np.where(lost.any(axis=0), lost.argmax(axis=0), len(STAGES))
        best = self._best(self.rerank_depth)
        return pl.DataFrame(
            {
                "query_id": self.gold.query_ids[self.queries],
                "stage": pl.Series([*STAGES, NONE])[stage],
                "relevant": self.n_relevant[self.queries],
                **{f"lost_{name}": lost[at] for at, name in enumerate(STAGES)},
                "before": before,
                "after": after,
                "best": pl.Series(best[self.queries], dtype=pl.Float64, nan_to_null=True),
            }
        )

    def _lost(self) -> Ints:
        """Return how many relevant items each stage lost, one row per stage of `STAGES`."""
        position, rank = (self.relevant[name].to_numpy() for name in ("position", "rank"))
        in_top = (rank > 0) & (rank <= self.k)
        reached = self._count(in_top)
        available = self._count(in_top | self._is_within(position, self.rerank_depth))
        expected = self.n_relevant
        if self.measure.declaration.family == RANK.name:
            expected, available = np.minimum(expected, self.k), np.minimum(available, self.k)
        is_short = self._list_lengths() < self.k
        after = available - reached
        return np.stack(
            (expected - available, np.where(is_short, 0, after), np.where(is_short, after, 0))
        )

    def _list_lengths(self) -> Ints:
        data = self.after.data
        if isinstance(data, Coverage):
            return data.rows.count
        assert isinstance(data, Hits | EvidenceMatches)
        return data.length

    @staticmethod
    def _is_within(position: Ints, depth: int | None) -> Flags:
        is_listed: Flags = position > 0
        return is_listed if depth is None else is_listed & (position <= depth)

    def _best(self, depth: int | None) -> Floats:
        """Return the highest nDCG if a reranker orders the first candidates, NaN if undefined.

        The other candidates follow in their order.
        """
        data = self.before.data
        if not isinstance(data, Hits):
            return np.full(self.n_queries, np.nan)
        listed = self.found.filter(pl.col("position") > 0)
        query, grade, position, rank = (
            listed[name].to_numpy() for name in ("query", "grade", "position", "candidate_rank")
        )
        is_reranked = self._is_within(position, depth)
        rest = ~is_reranked
        ordered = ideal_rows(self.n_queries, query[is_reranked], grade[is_reranked])
        others = ranked_rows(self.n_queries, query[rest], rank[rest], grade[rest])
        gain = self.measure.params["gain"]
        reached = ideal_dcg(_hits(ordered, ordered), self.k, gain)
        reached = reached + dcg(_hits(others, others), self.k, gain)
        return divide(reached, ideal_dcg(data, self.k, gain))

    def _depths(self) -> pl.DataFrame:
        """Return recall and the best nDCG by the number of candidates."""
        lengths = self.candidates.segments.lengths
        numbers = query_numbers(self.gold.query_ids, self.candidates.segments.query_ids)
        longest = int(lengths[np.isin(numbers, self.queries)].max(initial=0))
        depths = {depth for depth in (*_DEPTHS, self.k, self.rerank_depth or 1) if depth < longest}
        position = self.relevant["position"].to_numpy()
        rows = []
        for depth in sorted({*depths, longest}):
            found = self._count(self._is_within(position, depth))[self.queries]
            best = self._best(depth)[self.queries].mean()
            recall = (found / self.n_relevant[self.queries]).mean()
            rows.append((depth, recall, None if np.isnan(best) else best))
        schema = {"depth": pl.Int64, "recall": pl.Float64, "best": pl.Float64}
        return pl.DataFrame(rows, schema, orient="row")

    def _items(self) -> pl.DataFrame:
        ids = self.gold.query_ids[self.relevant["query"].to_numpy()]
        ranks = pl.col("position", "rank").replace(0, None)
        return self.relevant.select(ids.alias("query_id"), "item", ranks).rename(
            {"position": "candidate_rank"}
        )

    def _notes(self) -> Iterator[str]:
        is_run = np.zeros(self.n_queries, np.bool_)
        numbers = query_numbers(self.gold.query_ids, self.run.query_ids)
        is_run[numbers[numbers >= 0]] = True
        if self.run.errors is not None:
            failed = query_numbers(self.gold.query_ids, self.run.errors["query_id"])
            is_run[failed[failed >= 0]] = False
        without = int(np.count_nonzero(is_run & self.after.has_gold & ~self.with_candidates))
        if without:
            yield f"{counted(without, 'query')} without candidates: left out of this section"
        if self.n_failed:
            yield f"{counted(self.n_failed, 'query')} failed: left out of this section"
        strangers = self.relevant.filter(pl.col("position") == 0, pl.col("rank") > 0).height
        if strangers:
            noun = FAMILIES[self.measure.declaration.family].noun
            yield (
                f"{strangers:,} relevant in the results but not among the candidates "
                f"(counted as {noun}s that the reranker had)"
            )


def _hits(found: RankedRows, gold: RankedRows) -> Hits:
    none = found.where(np.zeros(found.query.size, np.bool_))
    return Hits(found, none, gold, found.count)


def _rerank_depth(run: Run) -> int | None:
    """Return how many candidates the reranker got, if the header of the run states it."""
    is_used = "rerank_top_n" in (run.settings.get("handed") or ())
    depth = run.settings.get("rerank_top_n")
    return depth if is_used and type(depth) is int and depth > 0 else None


def available_rerankings(scores: Sequence[Scores]) -> tuple[list[Reranking], list[str]]:
    """Return the view of each run with candidates that was compared with gold.

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
