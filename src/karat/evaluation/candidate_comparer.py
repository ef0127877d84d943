"""What a reranker did with the candidates of some queries, and which stage lost each query.

The candidates are the lists before reranking, `Run.candidates`. A relevant item that could be in
the top k but is not is counted as lost by one of three stages:

- `candidates`: the reranker never had it.
- `rerank`: the reranker had it, and at least k items are ranked above it.
- `cut`: the reranker had it, but a limit or threshold removed it, and the list has fewer than k
  items.

The top k has room for at most k items, so min(R, k) of R relevant items are expected. A stage is
charged only for items that even perfect later stages could not put into the top k. For gold spans
and evidence texts, the expected number is R, because one item can cover several.

`CandidateComparer` is a function of a part of a run. Its results hold rows, counts and exact sums,
which `karat.evaluation.reranking` merges, so that a run in parts has the numbers of the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import polars as pl

from karat.arrays import Flags, Floats, Ints
from karat.data.run import NO_RESULTS, Run
from karat.engines.parts import ListPreparation, Part, PartError, RunFacts
from karat.errors import KaratError
from karat.evaluation.candidate_ranks import ranks_of_items, ranks_of_targets
from karat.match.align import answered_queries, failed_queries
from karat.match.evidence import EvidenceMatches
from karat.match.gold_index import PreparedGold
from karat.match.hits import Hits, RankedRows, ideal_rows, ranked_rows
from karat.match.spans import Coverage
from karat.measures import Measure, Plan
from karat.measures.aggregate import exact_terms
from karat.measures.array_math import divide
from karat.measures.families import RANK, FamilyInput, FamilyName, read_inputs
from karat.measures.kernels.ndcg import dcg, ideal_dcg
from karat.measures.scoring import score_inputs

T = TypeVar("T")
STAGES = ("candidates", "rerank", "cut")
"""The stages that can lose a relevant item, in the order of a pipeline."""
NONE = "none"
"""The label of queries for which no stage lost anything."""
_DEPTHS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class DepthSums:
    """Sums over the queries of a part, by number of candidates, up to the longest list.

    Each sum consists of the terms that `exact_terms` returns.
    """

    longest: int
    recall: Mapping[int, Sequence[float]]
    best: Mapping[int, Sequence[float]]
    """Empty if the highest nDCG is not defined."""

    def at(self, depth: int) -> tuple[Sequence[float], Sequence[float]]:
        """Return the sums of recall and nDCG if only the first `depth` candidates are used."""
        reached = min(depth, self.longest)
        return self.recall[reached], self.best.get(reached, ())


@dataclass(frozen=True, eq=False)
class ComparedPart:
    """What a reranker did in a part of the queries."""

    per_query: pl.DataFrame
    """The rows of `Reranking.per_query`."""
    depths: DepthSums
    n_without_candidates: int
    """How many queries with gold are in the run and did not fail, but have no candidates."""
    n_failed: int
    n_not_candidates: int
    """How many relevant items are in the results but not among the candidates."""


@dataclass(frozen=True, eq=False)
class CandidateComparer:
    """Compares the candidates of a part with its results, independently of other parts.

    `lists` and `candidate_lists` state how both are prepared before they are matched with gold.
    """

    plan: Plan
    """A plan with one measure: the nDCG by which the lists are compared."""
    rel: int
    rerank_depth: int | None
    facts: RunFacts
    """The facts about the whole run."""
    lists: ListPreparation
    candidate_lists: ListPreparation
    readings: Mapping[FamilyName, FamilyInput]
    """The results already matched with gold, if they were kept and the whole run is one part;
    otherwise empty.
    """

    @property
    def measure(self) -> Measure:
        """The nDCG by which the lists are compared."""
        return self.plan.measures[0]

    @property
    def k(self) -> int:
        """The cutoff of the measure."""
        assert isinstance(self.measure.cutoff, int)
        return self.measure.cutoff

    @property
    def is_rank(self) -> bool:
        """Whether gold judges items, rather than spans or evidence texts."""
        return self.measure.declaration.family == RANK.name

    def depths(self, longest: int) -> list[int]:
        """Return the depths to report if the longest list has this length."""
        depths = {*_DEPTHS, self.k, self.rerank_depth or 1}
        return [*sorted(depth for depth in depths if depth < longest), longest]

    def __call__(self, part: Part) -> ComparedPart | PartError:
        """Return the comparison of a part, or why it is not possible."""
        return self._compared(part, _Comparison.result)

    def items(self, part: Part) -> pl.DataFrame | PartError:
        """Return the rows of `Reranking.items` for a part."""
        return self._compared(part, _Comparison.items)

    def _compared(self, part: Part, result: Callable[[_Comparison], T]) -> T | PartError:
        readings: list[FamilyInput] = []
        try:
            run, candidates = self._results(part.run), self._candidates(part.run.candidates)
            readings.append(self._known_reading or self._read(part.gold, run))
            readings.append(self._read(part.gold, candidates))
            return result(_Comparison(self, part.gold, run, candidates, *readings))
        except KaratError as error:
            return PartError(error, len(readings))

    def _results(self, run: Run) -> Run:
        return self.lists.as_scored(self.facts.complete(replace(run, candidates=None)))

    def _candidates(self, candidates: Run | None) -> Run:
        assert self.facts.candidates is not None, "the run has candidates"
        if candidates is None:  # only other parts have them
            candidates = Run(NO_RESULTS)
        return self.candidate_lists.as_scored(self.facts.candidates.complete(candidates))

    @property
    def _known_reading(self) -> FamilyInput | None:
        return self.readings.get(self.measure.declaration.family)

    def _read(self, gold: PreparedGold, run: Run) -> FamilyInput:
        return read_inputs(gold, run, self.plan)[self.measure.declaration.family]


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Candidates and results of the same queries, matched with gold."""

    comparer: CandidateComparer
    gold: PreparedGold
    run: Run
    candidates: Run
    after: FamilyInput
    before: FamilyInput

    def result(self) -> ComparedPart:
        """Return the comparison."""
        not_candidates = self.relevant.filter(pl.col("position") == 0, pl.col("rank") > 0)
        is_answered = answered_queries(self.gold.query_ids, self.run)[0]
        is_answered &= ~failed_queries(self.gold.query_ids, self.run)
        return ComparedPart(
            self._per_query(),
            self._depths(),
            int(np.count_nonzero(is_answered & self.after.has_gold & ~self.has_candidates)),
            self.run.failed,
            not_candidates.height,
        )

    @property
    def measure(self) -> Measure:
        return self.comparer.measure

    @property
    def n_queries(self) -> int:
        return self.gold.query_ids.len()

    @cached_property
    def found(self) -> pl.DataFrame:
        """The ranks of judged items, or of gold spans or evidence texts, in both lists."""
        if self.comparer.is_rank:
            return ranks_of_items(self.gold, self.candidates, self.run, self.comparer.plan)
        return ranks_of_targets(self.gold, self.before, self.after, self.measure)

    @cached_property
    def relevant(self) -> pl.DataFrame:
        """The rows of `found` that are relevant, of queries with candidates."""
        relevant = self.found
        if self.comparer.is_rank:
            relevant = relevant.filter(pl.col("grade") >= self.comparer.rel)
        return relevant.filter(pl.Series(self.has_candidates)[relevant["query"]])

    @cached_property
    def has_candidates(self) -> Flags:
        """Which queries have gold and a list of candidates, even an empty one."""
        has_list, _ = answered_queries(self.gold.query_ids, self.candidates)
        return has_list & self.before.has_gold

    @cached_property
    def n_relevant(self) -> Ints:
        return self._count(np.ones(self.relevant.height, np.bool_))

    @cached_property
    def queries(self) -> Ints:
        """The numbers of the queries that are compared: those with something to find."""
        return np.flatnonzero(self.n_relevant)

    def _count(self, keep: Flags) -> Ints:
        return np.bincount(self.relevant["query"].to_numpy()[keep], minlength=self.n_queries)

    def _per_query(self) -> pl.DataFrame:
        lost = self._lost()[:, self.queries]
        stage = np.where(lost.any(axis=0), lost.argmax(axis=0), len(STAGES))
        best = self._best(self.comparer.rerank_depth)
        return pl.DataFrame(
            {
                "query_id": self.gold.query_ids[self.queries],
                "stage": pl.Series([*STAGES, NONE])[stage],
                "relevant": self.n_relevant[self.queries],
                **{f"lost_{name}": lost[at] for at, name in enumerate(STAGES)},
                "before": self._values(self.candidates, self.before),
                "after": self._values(self.run, self.after),
                "best": pl.Series(best[self.queries], dtype=pl.Float64, nan_to_null=True),
            }
        )

    def _values(self, run: Run, reading: FamilyInput) -> pl.Series:
        readings = {self.measure.declaration.family: reading}
        table = score_inputs(self.gold, run, self.comparer.plan, readings)
        return table.frame[self.measure.name][self.queries]

    def _lost(self) -> Ints:
        """Return how many relevant items each stage lost, one row per stage of `STAGES`."""
        position, rank = (self.relevant[name].to_numpy() for name in ("position", "rank"))
        k = self.comparer.k
        in_top = (rank > 0) & (rank <= k)
        reached = self._count(in_top)
        is_candidate = self._is_within(position, self.comparer.rerank_depth)
        available = self._count(in_top | is_candidate)
        expected = self.n_relevant
        if self.comparer.is_rank:
            expected, available = np.minimum(expected, k), np.minimum(available, k)
        is_short = self._list_lengths() < k
        lost_later = available - reached
        return np.stack(
            (
                expected - available,
                np.where(is_short, 0, lost_later),
                np.where(is_short, lost_later, 0),
            )
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
        """Return the highest nDCG that reordering the first `depth` candidates can reach.

        The other candidates keep their order after them. NaN if undefined.
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
        reached = ideal_dcg(_hits(ordered, ordered), self.comparer.k, gain)
        reached = reached + dcg(_hits(others, others), self.comparer.k, gain)
        return divide(reached, ideal_dcg(data, self.comparer.k, gain))

    def _depths(self) -> DepthSums:
        """Return the sums of recall and of the highest nDCG by the number of candidates."""
        segments = self.candidates.segments
        is_compared = segments.query_ids.is_in(self.gold.query_ids[self.queries].implode())
        longest = int(segments.lengths[is_compared.to_numpy()].max(initial=0))
        depths = self.comparer.depths(longest)
        recall = {depth: exact_terms(self._recall(depth).tolist()) for depth in depths}
        best = {}
        if self.comparer.is_rank:
            best = {
                depth: exact_terms(self._best(depth)[self.queries].tolist()) for depth in depths
            }
        return DepthSums(longest, recall, best)

    def _recall(self, depth: int) -> Floats:
        """Return the recall of each query in its first `depth` candidates."""
        found = self._count(self._is_within(self.relevant["position"].to_numpy(), depth))
        shares: Floats = found[self.queries] / self.n_relevant[self.queries]
        return shares

    def items(self) -> pl.DataFrame:
        """Return one row per relevant item of the queries with candidates."""
        ids = self.gold.query_ids[self.relevant["query"].to_numpy()]
        ranks = pl.col("position", "rank").replace(0, None)
        return self.relevant.select(ids.alias("query_id"), "item", ranks).rename(
            {"position": "candidate_rank"}
        )


def _hits(found: RankedRows, gold: RankedRows) -> Hits:
    none = found.where(np.zeros(found.query.size, np.bool_))
    return Hits(found, none, gold, found.count)
