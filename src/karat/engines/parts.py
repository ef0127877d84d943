"""Score a run in parts of whole queries: the facts, the score of one part, and the engines.

Queries do not influence each other, so any set of whole queries can be scored alone. Facts about
the whole run are collected in `RunFacts`: before scoring if there is only one part or if parts need
them (`LocalSession.needs_facts`), otherwise while scoring. `PartScorer` is a pure function of one
part and these facts. Its result holds counts and examples instead of notes, warnings and errors;
`LocalSession.score` merges them, so that a run in parts has the same scores, notes, warnings and
errors as a run in one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol, TypeVar

import polars as pl

from karat.data.corpus import Corpus
from karat.data.list_cut import ListCut
from karat.data.run import NO_RESULTS, Run
from karat.errors import KaratError, without_warnings
from karat.live.failures import FailedQueries
from karat.match.align import collapse_to_documents
from karat.match.gold_index import PreparedGold
from karat.match.hashed_ids import HashedIds
from karat.match.id_overlap import PartOverlap, document_ids, overlap, with_renamed_documents
from karat.measures import Plan, ScoreTable
from karat.measures.families import FamilyInput, FamilyName, inputs_by_family
from karat.measures.plan import UsageNames
from karat.measures.scoring import UnmatchedQueries, score_inputs, unmatched_queries

Result = TypeVar("Result", covariant=True)


@dataclass(frozen=True, eq=False)
class Part:
    """Whole queries: their gold and their results.

    A part may also contain queries that only gold has, or only the run.
    """

    gold: PreparedGold
    run: Run


class Engine(Protocol):
    """Splits one run into parts and maps a function over them, in this process or elsewhere.

    Every query of gold and of the run is in exactly one part, and every call of `map` uses the same
    parts. The order of the parts, and of the results, does not matter. An engine that uses other
    processes pickles functions and results.
    """

    def map(self, function: Callable[[Part], Result]) -> Iterator[Result]:
        """Yield the result of a function for each part."""


@dataclass(frozen=True, eq=False)
class OnePart:
    """The engine of a run that is in memory."""

    part: Part

    def map(self, function: Callable[[Part], Result]) -> Iterator[Result]:
        """Yield the result for the whole run."""
        yield function(self.part)


@dataclass(frozen=True, eq=False)
class RunFacts:
    """Facts about a run or a part of it, without its lists."""

    header: Run
    """A run without queries that has the name, the settings and the unit of offsets."""
    n_queries: int
    n_results: int
    schema: Mapping[str, pl.DataType]
    """The columns of the results; empty without results, and for dicts and lists of ids."""
    incomplete: frozenset[str]
    """The columns that have null values, or that some parts with results do not have."""
    has_dicts: bool
    usage: UsageNames
    failed: FailedQueries
    first_ids: tuple[str, ...]
    """The first three query ids in byte order."""
    documents: frozenset[str] = frozenset()
    """The values of the column doc_id; only if gold has spans."""
    candidates: RunFacts | None = None
    """The facts about the lists before reranking; None if there are none."""

    @classmethod
    def of(cls, run: Run, *, with_documents: bool = False) -> RunFacts:
        """Return the facts about a run, or about a part of it."""
        has_dicts = run.lists is not None
        # A part without results has the columns of `NO_RESULTS`, which the whole run may lack.
        schema = {} if has_dicts or not run.results.height else dict(run.results.schema)
        query_ids, candidates = run.query_ids, run.candidates
        header = Run(NO_RESULTS, name=run.name, settings=run.settings, offsets=run.offsets)
        return cls(
            header,
            query_ids.len(),
            int(run.lists.lengths.sum()) if run.lists is not None else run.results.height,
            schema,
            frozenset(name for name in schema if run.results[name].null_count()),
            has_dicts,
            UsageNames.of(run),
            FailedQueries.of(run),
            tuple(query_ids.bottom_k(3).sort()),
            frozenset(document_ids(run)) if with_documents else frozenset(),
            None if candidates is None else cls.of(candidates, with_documents=with_documents),
        )

    def merge(self, other: RunFacts) -> RunFacts:
        """Return the facts about both parts."""
        lacking = {
            name
            for one, two in ((self, other), (other, self))
            if one.n_results
            for name in two.schema.keys() - one.schema.keys()
        }
        first, second = (self, other) if self.n_queries else (other, self)
        return RunFacts(
            first.header,
            self.n_queries + other.n_queries,
            self.n_results + other.n_results,
            {**first.schema, **second.schema},
            self.incomplete | other.incomplete | lacking,
            first.has_dicts,
            self.usage.merge(other.usage),
            self.failed.merge(other.failed),
            tuple(sorted({*self.first_ids, *other.first_ids})[:3]),
            self.documents | other.documents,
            _merged_candidates(self.candidates, other.candidates),
        )

    @property
    def document_ids(self) -> frozenset[str]:
        """The ids of the documents of the results; only if gold and the run have offsets."""
        # A part may lack the column although the run has it.
        return self.documents if "start" in self.schema else frozenset()

    def has_complete(self, name: str) -> bool:
        """Return whether the results have a value in every row of a column."""
        if self.has_dicts:
            return name == "item_id"
        return name in self.schema and name not in self.incomplete

    def complete(self, run: Run) -> Run:
        """Return a part of the run with the columns and tables that only other parts have."""
        empty = self.usage.empty
        timings = empty.get("timings") if run.timings is None else run.timings
        calls = empty.get("calls") if run.calls is None else run.calls
        if timings is not run.timings or calls is not run.calls:
            run = run.with_usage(timings=timings, calls=calls)
        if run.lists is not None:
            return run
        missing = [name for name in self.schema if name not in run.results.columns]
        if not missing:
            return run
        columns = [pl.lit(None, self.schema[name]).alias(name) for name in missing]
        return run.with_results(run.results.with_columns(columns))


def _merged_candidates(one: RunFacts | None, other: RunFacts | None) -> RunFacts | None:
    if one is None or other is None:
        return one or other
    return one.merge(other)


def merged_facts(parts: Iterable[RunFacts]) -> RunFacts:
    """Return the facts about all parts."""
    return reduce(RunFacts.merge, parts)


@dataclass(frozen=True)
class FactFinder:
    """A function that returns the facts about a part."""

    with_documents: bool

    def __call__(self, part: Part) -> RunFacts:
        """Return the facts."""
        return RunFacts.of(part.run, with_documents=self.with_documents)


@dataclass(frozen=True)
class PartError:
    """An error in a part."""

    error: KaratError
    step: int
    """The step of scoring in which it occurred."""

    @property
    def order(self) -> tuple[int, str]:
        """The sort key of errors.

        The smallest belongs to the error that scoring the whole run in one part would raise: of the
        earliest step, and within it of the first query.
        """
        return self.step, getattr(self.error, "query", None) or ""


@dataclass(frozen=True)
class CutCounts:
    """How many results of gold's queries remain after the lists were cut."""

    n_queries: int = 0
    before: int = 0
    after: int = 0
    n_emptied: int = 0

    @classmethod
    def of(cls, whole: Run, cut: Run, query_ids: pl.Series) -> CutCounts:
        """Count the results before and after the cut."""
        before, after = (
            run.results.filter(pl.col("query_id").is_in(query_ids.implode()))
            for run in (whole, cut)
        )
        return cls(
            int(query_ids.is_in(whole.query_ids.implode()).sum()),
            before.height,
            after.height,
            before["query_id"].n_unique() - after["query_id"].n_unique(),
        )

    def merge(self, other: CutCounts) -> CutCounts:
        """Return the counts of both parts."""
        return CutCounts(
            self.n_queries + other.n_queries,
            self.before + other.before,
            self.after + other.after,
            self.n_emptied + other.n_emptied,
        )


@dataclass(frozen=True, eq=False)
class PartResult:
    """The scores of a part, and the facts from which notes, warnings and errors are made."""

    facts: RunFacts
    failure: PartError | None = None
    missing_items: pl.DataFrame | None = None
    """Items that are missing in the table of chunks; if there are any, the part is not scored."""
    table: ScoreTable | None = None
    batch: int | None = None
    """The number of the batch in a `TableStore`, if the table was moved there."""
    unmatched: UnmatchedQueries = field(default_factory=UnmatchedQueries)
    cut: CutCounts = field(default_factory=CutCounts)
    characters: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For each measure of spans or evidence with a cutoff k: the total number of characters up to
    rank k, and the number of queries.
    """
    readings: Mapping[FamilyName, FamilyInput] = field(default_factory=dict)
    """The inputs of the kernels; empty unless `PartScorer.keeps_readings`."""


@dataclass(frozen=True, eq=False)
class ListPreparation:
    """How the lists of a run are prepared before they are scored."""

    cut: ListCut
    corpus: Corpus | None = None
    hashes_texts: bool = False
    """Whether items have no ids, so that hashes of their texts are used."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Document ids that gold spells differently: {id in the run: id in gold}."""

    def with_ids(self, run: Run) -> Run:
        """Return the run with hashes as item ids if needed, and document ids spelled as in gold."""
        if self.hashes_texts:
            run = run.with_item_ids()
        if not self.renamed or run.lists is not None:
            return run
        return run.with_results(with_renamed_documents(run.results, self.renamed))

    def shortened(self, run: Run) -> Run:
        """Return a run with the part of each list that is scored."""
        return self.with_ids(run).shaped(self.cut.top_k, self.cut.score_threshold)

    def in_code_points(self, run: Run) -> Run:
        """Return a run with offsets in code points, if the documents are known."""
        return run if self.corpus is None else run.in_code_points(self.corpus)

    def as_scored(self, run: Run) -> Run:
        """Return a run with the lists as they are scored."""
        return self.in_code_points(self.shortened(run))


@dataclass(frozen=True, eq=False)
class PartScorer:
    """Scores a part of a run: a pure function of one part and the facts about the run."""

    plan: Plan
    lists: ListPreparation
    facts: RunFacts | None = None
    """The facts about the whole run; None if parts are scored while the run is read."""
    keeps_readings: bool = False

    def __call__(self, part: Part) -> PartResult:
        """Return the scores of a part, or why it cannot be scored."""
        run = part.run if self.facts is None else self.facts.complete(part.run)
        result = PartResult(self.facts or RunFacts.of(part.run))
        missing_items = self._missing_items(run)
        if missing_items is not None and missing_items.height:
            return replace(result, missing_items=missing_items)
        steps: list[str] = []
        try:
            # Warnings were shown when gold and the run were read, or are created later from the
            # facts.
            with without_warnings():
                scored, readings = self._match(part.gold, run, steps)
                result = replace(result, unmatched=unmatched_queries(part.gold, scored, readings))
                steps.append("conventions")
                return self._score(replace(part, run=run), scored, readings, result)
        except KaratError as error:
            return replace(result, failure=PartError(error, len(steps)))

    def _match(
        self, gold: PreparedGold, run: Run, steps: list[str]
    ) -> tuple[Run, dict[FamilyName, FamilyInput]]:
        """Return the run as it is scored and the inputs of the kernels.

        Append the name of each finished step to `steps`; their number is the step of an error.
        """
        scored = self.lists.shortened(run)
        steps.append("lists")
        scored = self.lists.in_code_points(scored)
        steps.append("offsets")
        readings = {}
        for family, reading in inputs_by_family(gold, scored, self.plan):
            readings[family] = reading
            steps.append(family)
        return scored, readings

    def _score(
        self,
        part: Part,
        scored: Run,
        readings: dict[FamilyName, FamilyInput],
        result: PartResult,
    ) -> PartResult:
        # The convention "error" needs the counts of all parts, so `LocalSession` applies it.
        missing = self.plan.conventions.missing
        conventions = replace(
            self.plan.conventions,
            missing="zero" if missing == "error" else missing,
            unknown="ignore",
        )
        plan = replace(self.plan, conventions=conventions)
        return replace(
            result,
            table=score_inputs(part.gold, scored, plan, readings),
            cut=CutCounts.of(part.run, scored, part.gold.query_ids)
            if self.lists.cut
            else CutCounts(),
            characters=dict(_characters(plan, readings)),
            readings=readings if self.keeps_readings else {},
        )

    def _missing_items(self, run: Run) -> pl.DataFrame | None:
        """Return the items of a part that are not in the table of chunks."""
        if self.plan.chunks is None or self.facts is None:
            return None
        key = ["item_id"] if self.facts.has_complete("item_id") else ["doc_id", "start", "end"]
        results = self.lists.with_ids(run).results
        if not set(key) <= set(results.columns):
            return None
        return results.select(key).unique().join(self.plan.chunks.frame, on=key, how="anti")


def _characters(
    plan: Plan, readings: Mapping[FamilyName, FamilyInput]
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield, for each measure with a cutoff, the characters up to it and the number of queries."""
    for measure in plan.measures:
        reading, k = readings[measure.declaration.family], measure.cutoff
        if reading.characters is not None and isinstance(k, int) and reading.has_gold.any():
            counted = reading.characters(k)[reading.has_gold]
            yield measure.name, (int(counted.sum()), counted.size)


@dataclass(frozen=True, eq=False)
class OverlapFinder:
    """A function that searches the lists of a part for each relevant id of the whole gold."""

    relevant_ids: pl.Series | HashedIds
    level: str
    lists: ListPreparation

    def __call__(self, part: Part) -> PartOverlap:
        """Return which ids occur in the part."""
        # Search the whole lists: an id that is missing only because of top_k is not misspelled.
        run = self.lists.with_ids(part.run)
        return overlap(
            self.relevant_ids, collapse_to_documents(run) if self.level == "doc" else run
        )


def mean_characters(results: Sequence[PartResult]) -> dict[str, float]:
    """Return the mean number of characters that a run returns up to the cutoff of each measure."""
    names = dict.fromkeys(name for result in results for name in result.characters)
    means = {}
    for name in names:
        counts = [result.characters[name] for result in results if name in result.characters]
        means[name] = sum(total for total, _ in counts) / sum(size for _, size in counts)
    return means
