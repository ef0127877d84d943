"""Prepare gold once, then score any number of runs against it.

An `Engine` splits a run into parts; here is what is known about the whole gold and the whole run,
and how the results of the parts are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import polars as pl

from karat.data import frames
from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from karat.data.data_file import path_of
from karat.data.gold import Gold
from karat.data.gold_source import PartitionedGold, open_gold
from karat.data.list_cut import ListCut
from karat.data.run import Run
from karat.data.run_source import RunSource
from karat.data.spill import remove_leftovers
from karat.engines.batches import Batches, PartitionedBatches
from karat.engines.parts import (
    CutCounts,
    Engine,
    FactFinder,
    ListPreparation,
    OnePart,
    OverlapFinder,
    PartError,
    PartResult,
    PartScorer,
    RunFacts,
    mean_characters,
    merged_facts,
)
from karat.engines.scoring_options import ScoringOptions
from karat.engines.spark import SparkRun
from karat.engines.table_store import TableStore
from karat.errors import InputError, RetrieverError, counted, for_example, warn
from karat.live.failures import checked_share, too_many_failed
from karat.match.gold_index import PreparedGold, PreparedParts, warn_of_repeats
from karat.match.id_overlap import (
    DocumentIds,
    Overlap,
    document_ids_note,
    document_overlap,
    with_renamed_documents,
)
from karat.match.spans import require_code_points
from karat.match.text import Matching
from karat.measures import DEFAULT_MEASURES, Measure, Plan, ScoreTable
from karat.measures.families import (
    BY_GOLD,
    EVIDENCE,
    FAMILIES,
    RANK,
    UNANSWERABLE,
    UNKNOWN,
    FamilyInput,
    FamilyName,
)
from karat.measures.name_parser import AnyMeasure, parse_all, resolve_measure
from karat.measures.plan import check_usage, usage_measures, usage_notes
from karat.measures.presets import preset_named
from karat.measures.scoring import (
    UNANSWERABLE_IN_RUN,
    UNANSWERABLE_RETURNED,
    UnmatchedQueries,
    check_conventions,
)


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """A scored run: its source, the session that scored it, and the score table."""

    session: LocalSession
    """The session that scored the run."""
    source: RunSource
    """The source of the run, from which its lists can be read again."""
    table: ScoreTable
    facts: RunFacts
    """The facts about the whole run."""
    readings: dict[FamilyName, FamilyInput]
    """The input of the kernels by family; only evidence if the run is not kept in memory."""
    overlaps: dict[str, Overlap]
    """Which ids of gold occur in the run, by kind of id; only if suspiciously few occur."""
    delivered: dict[str, float]
    """For measures at rank k: the mean number of characters that the run returns up to k."""
    notes: tuple[str, ...] = ()
    """Notes to print with the scores."""
    make_frame: Callable[[], Any] | None = None
    """Makes the scores per query in the engine's own type; None if that is the table of Polars."""

    @property
    def name(self) -> str | None:
        """The name in the header of the run."""
        return self.facts.header.name

    @property
    def too_large(self) -> str | None:
        """Whether gold or the run is larger than the memory limit, so that lists are not kept."""
        if not self.session.has_whole_gold:
            return "gold"
        return "the run" if self.source.is_large else None

    @property
    def share_in_memory(self) -> float:
        """The approximate share of gold and of the run that fits into the memory limit."""
        return min(self.source.share_in_memory, self.session.prepared.share_in_memory)


class LocalSession:
    """Gold opened and prepared once, then any number of runs scored against it."""

    def __init__(
        self,
        gold: Any,
        measures: AnyMeasure | Iterable[AnyMeasure] | None,
        options: ScoringOptions,
    ) -> None:
        preset, chunks, corpus = preset_named(options.preset), options.chunks, options.corpus
        self.adds_usage = preset.adds_usage and measures is None
        """Whether latency and cost are measured too, if the runs have them."""
        if options.preset is not None:
            measures = preset.parse_all(preset.measures if measures is None else measures)
        conventions = options.effective_conventions()
        self.settings = options.list_settings()
        self.usage_notes: tuple[str, ...] = ()
        self.fail_on_error = checked_share(options.fail_on_error)
        remove_leftovers()
        self.chunks = dict(chunks) if isinstance(chunks, Mapping) else None
        """One table of chunks per run, by the name of the run; None if all runs share one."""
        self.lists = ListPreparation(self.settings)
        """How the lists of a run are prepared; complete in the session of a `ScoredRun`."""
        inputs = {"gold": gold, "chunks": chunks, "corpus": corpus}
        if self.chunks is not None:
            del inputs["chunks"]
            inputs |= {f"chunks of {run}": table for run, table in self.chunks.items()}
        self.paths = {
            role: path_of(source) for role, source in inputs.items() if source is not None
        }
        """The files of gold, chunks and corpus; None for data that was passed in memory."""
        self.corpus = None if corpus is None else Corpus.open(corpus)
        opened, self.memory = _opened_gold(gold, options)
        """`memory` is how many bytes each run may take: the limit without what gold takes."""
        with _located_errors(path_of(gold)):
            self.prepared = _prepared(opened, self.corpus)
        self.gold = self.prepared.gold
        """The whole gold, or only its queries unless `has_whole_gold`."""
        _warn_of_contradictions(self.prepared.contradictions)
        warn_of_repeats(self.prepared)
        self.candidates = _gold_kinds(self.prepared) if measures is None else ()
        """The kinds of gold to choose default measures from; empty if measures were given."""
        if measures is None:
            measures = BY_GOLD[self.candidates[0]].defaults if self.candidates else DEFAULT_MEASURES
        plan = Plan.of(
            measures,
            conventions=conventions,
            level=options.level,
            chunks=None if self.chunks is not None else chunks,
            has_chunks=self.chunks is not None,
            matching=options.matching,
        )
        with _located_errors(path_of(gold)):
            _require_gold(self.prepared, plan)
        if plan.compares_documents and self.corpus is None:
            _warn_of_wrong_lengths(self.prepared)
        self.plan = replace(plan, largest_grade=self.prepared.largest_grade)

    @property
    def has_whole_gold(self) -> bool:
        """Whether the rows of gold are in memory, and not only its queries."""
        return not isinstance(self.prepared, PreparedParts)

    @cached_property
    def document_ids(self) -> DocumentIds:
        """The document ids of the spans of gold."""
        require_code_points(self.gold)
        return DocumentIds.of(self.prepared.span_documents)

    def gold_of(self, query_ids: Collection[str]) -> Gold:
        """Return the gold of some queries."""
        return self.prepared.only(query_ids)

    def only(self, measures: Iterable[Measure]) -> LocalSession:
        """Return a copy of this session, restricted to the given measures."""
        other = copy(self)
        other.plan = replace(self.plan, measures=tuple(measures))
        other.candidates, other.adds_usage = (), False
        return other

    def only_queries(self, query_ids: Collection[str]) -> LocalSession:
        """Return a copy of this session, restricted to some queries of gold.

        The plan keeps what depends on the whole gold, such as the largest grade.
        """
        other = copy(self)
        other.gold = self.gold_of(query_ids)
        other.prepared = PreparedGold(other.gold)
        return other

    @property
    def depends_on_runs(self) -> bool:
        """Whether the default measures depend on the runs."""
        return len(self.candidates) > 1 or self.adds_usage

    def with_defaults_for(self, runs: Sequence[RunFacts]) -> LocalSession:
        """Return a session with the default measures that all runs support.

        These are measures of the first kind of gold for which all runs have the needed columns.
        """
        if self.adds_usage and runs:
            other = copy(self)
            usage = [facts.usage for facts in runs]
            measures = (*self.plan.measures, *usage_measures(usage))
            other.plan = replace(self.plan, measures=measures)
            other.usage_notes = tuple(usage_notes(usage))
            return other
        kinds = [
            kind for kind in self.candidates if all(self._supports(kind, facts) for facts in runs)
        ]
        if not kinds or kinds[0] == self.candidates[0]:
            return self
        other = copy(self)
        other.plan = replace(self.plan, measures=parse_all(BY_GOLD[kinds[0]].defaults))
        return other

    def _supports(self, kind: str, facts: RunFacts) -> bool:
        """Return whether a run has the columns that measures of a kind of gold need."""
        has_chunks = self.plan.chunks is not None or self.chunks is not None
        if facts.has_dicts:
            return BY_GOLD[kind].compares_ids or has_chunks or not facts.n_results
        is_complete = all(facts.has_complete(name) for name in BY_GOLD[kind].items)
        return is_complete or has_chunks or not facts.n_results

    def of_run(self, name: str | None) -> LocalSession:
        """Return the session for one run, with the chunks of that run."""
        if self.chunks is None:
            return self
        other = copy(self)
        other.plan = replace(self.plan, chunks=Chunks.open(chunks_of_run(self.chunks, name)))
        return other

    @property
    def needs_facts(self) -> bool:
        """Whether a part can be scored only if the facts about the whole run are known.

        If only ids are compared, they are not, so that a run can be scored while it is read.
        """
        return (
            self.depends_on_runs
            or self.chunks is not None
            or self.plan.chunks is not None
            or self.settings.score_threshold is not None
            or self.plan.families != {RANK.name}
            or self.prepared.has_hashes
        )

    def facts(self, engine: Engine) -> RunFacts:
        """Return the facts about a whole run."""
        return merged_facts(engine.map(FactFinder(self.gold.spans is not None)))

    def score(
        self,
        source: RunSource,
        engine: Engine,
        name: str | None = None,
        facts: RunFacts | None = None,
    ) -> ScoredRun:
        """Score a run that an engine has split into parts.

        `facts` are those of the whole run, if they are known already.
        """
        if facts is None and (self.needs_facts or isinstance(engine, OnePart)):
            facts = self.facts(engine)
        if facts is not None and self._lacks_ids(facts):
            frames.Hashed(items=True).warn("the run")
        if EVIDENCE.name in self.plan.families:
            self.prepared.check_evidence(self.plan.matching or Matching())
        place = source.path or name
        if facts is not None:
            place = place or facts.header.name
            self._refuse_failures(facts, place)
        with _located_errors(place):
            session = self.of_run(name or (facts.header.name if facts is not None else None))
            return session._score(source, engine, facts, name)  # noqa: SLF001

    def _refuse_failures(self, facts: RunFacts, name: str | None) -> None:
        # With several runs, the message must name the run.
        if problem := too_many_failed(facts.failed, self.fail_on_error, name):
            raise RetrieverError(problem)

    def _score(
        self, source: RunSource, engine: Engine, facts: RunFacts | None, name: str | None
    ) -> ScoredRun:
        session = copy(self)
        session.lists = self._list_preparation(facts)
        session.plan = plan = self._with_chunks_renamed()
        if facts is not None:
            check_usage(facts.usage, plan)
        keeps_readings = isinstance(engine, OnePart)
        scorer = PartScorer(plan, session.lists, facts, keeps_readings=keeps_readings)
        with closing(TableStore(self.memory)) as store:
            if isinstance(engine, Batches | PartitionedBatches):  # each table is kept at once
                results = list(engine.map(lambda part: store.store(scorer(part))))
            else:
                results = list(map(store.store, engine.map(scorer)))
            if facts is None:
                facts = merged_facts(result.facts for result in results)
                self._refuse_failures(facts, source.path or name or facts.header.name)
            with _located_errors(source.path or name or facts.header.name):
                table = self._merged_table(store, results, facts)
        readings = results[0].readings if keeps_readings else {}
        return ScoredRun(
            session,
            source,
            table,
            facts,
            _readings_to_keep(readings, source, plan),
            dict(session._overlaps(engine, facts, table.counts)),  # noqa: SLF001
            mean_characters(results),
            tuple(session._notes(results, facts, table.counts)),  # noqa: SLF001
            partial(engine.frame, scorer, table) if isinstance(engine, SparkRun) else None,
        )

    def _list_preparation(self, facts: RunFacts | None) -> ListPreparation:
        lists = ListPreparation(self.settings, self.corpus)
        if facts is None:
            return lists
        renamed: dict[str, str] = {}
        if self.plan.compares_documents and self.gold.spans is not None:
            renamed = self.document_ids.renamed(facts.document_ids)
        return replace(lists, hashes_texts=self._lacks_ids(facts), renamed=renamed)

    def _merged_table(
        self, store: TableStore, results: Sequence[PartResult], facts: RunFacts
    ) -> ScoreTable:
        """Return the table of all parts, or raise the error that one part would have raised."""
        _require_items([r.missing_items for r in results if r.missing_items is not None])
        failures = sorted((r.failure for r in results if r.failure is not None), key=_order)
        n_steps = len(self.plan.families) + 2
        if failures and failures[0].step <= n_steps:
            raise failures[0].error
        check_conventions(
            reduce(UnmatchedQueries.merge, (result.unmatched for result in results)), self.plan
        )
        if failures:
            raise failures[0].error
        table = store.combined(results)
        if table.counts[UNKNOWN.key] == facts.n_queries:
            raise _no_shared_query(self.prepared.query_ids, facts.first_ids)
        return table

    def _notes(
        self, results: Sequence[PartResult], facts: RunFacts, counts: dict[str, int]
    ) -> Iterator[str]:
        """Yield the notes to print with the scores of a run."""
        yield from _grade_scale_notes(self.plan)
        yield from self.usage_notes
        yield from _unanswerable_notes(counts, facts.header, self.settings)
        if self.settings:
            yield _cut_note(reduce(CutCounts.merge, (r.cut for r in results)), self.settings)
        if self.lists.renamed:
            yield document_ids_note(self.lists.renamed)
        if len(self.candidates) > 1:
            yield _default_measures_note(self.plan, self.candidates)

    def _overlaps(
        self, engine: Engine, facts: RunFacts, counts: dict[str, int]
    ) -> Iterator[tuple[str, Overlap]]:
        """Yield which ids of gold are in a run, if they are so few that ids may be misspelled."""
        if self._compares_ids and _ids_are_doubtful(counts):
            finder = OverlapFinder(self.prepared.relevant_ids, self.plan.level, self.lists)
            yield "relevant ids", Overlap.merged(finder.relevant_ids, engine.map(finder))
        if self.plan.compares_documents:
            renamed = self.lists.renamed
            ids = {renamed.get(doc_id, doc_id) for doc_id in facts.document_ids}
            yield "document ids", document_overlap(self.document_ids.gold, ids)

    @property
    def _compares_ids(self) -> bool:
        return any(measure.declaration.reads.compares_ids for measure in self.plan.measures)

    def as_scored(self, run: Run) -> Run:
        """Return a run, or some of its queries, with the lists as they are scored."""
        run = self.lists.as_scored(run)
        return run.distinct("item_id") if self.plan.conventions.duplicates == "set" else run

    def candidate_preparation(self, facts: RunFacts) -> ListPreparation:
        """Return how lists before reranking are prepared: with the ids of gold, but not cut."""
        return replace(self._list_preparation(facts), cut=ListCut())

    def _lacks_ids(self, facts: RunFacts) -> bool:
        """Return whether gold and run have texts but no ids, so that hashes of texts are used."""
        if not self._compares_ids or facts.has_dicts or "item_id" in facts.schema:
            return False
        return facts.has_complete("text") and self.prepared.has_hashes

    def _with_chunks_renamed(self) -> Plan:
        """Return the plan with the document ids of gold in its chunks."""
        chunks = self.plan.chunks
        if chunks is None or not self.plan.compares_documents or self.gold.spans is None:
            return self.plan
        renamed = self.document_ids.renamed(chunks.frame["doc_id"].unique())
        return replace(self.plan, chunks=Chunks(with_renamed_documents(chunks.frame, renamed)))


def _opened_gold(gold: Any, options: ScoringOptions) -> tuple[Gold | PartitionedGold, int]:
    """Return gold, and how many bytes of the memory limit it leaves to runs."""
    if options.engine == "spark":  # needs the whole gold, which it sends to its workers
        return Gold.open(gold), options.data_memory()
    return open_gold(gold, options.data_memory())


def _prepared(gold: Gold | PartitionedGold, corpus: Corpus | None) -> PreparedGold:
    if corpus is not None:
        gold = gold.in_code_points(corpus)
    return PreparedParts(gold) if isinstance(gold, PartitionedGold) else PreparedGold(gold)


def _order(failure: PartError) -> tuple[int, str]:
    return failure.order


def _readings_to_keep(
    readings: Mapping[FamilyName, FamilyInput], source: RunSource, plan: Plan
) -> dict[FamilyName, FamilyInput]:
    """Return the readings that a page or `Scores.matches` uses later.

    Matches of evidence are always kept, since matching again would take too long. Other readings
    are as large as the lists, so they are kept only if the lists are. Those of spans are not kept
    with `duplicates=set`: they have no repeated spans, while a page shows lists without repeated
    ids.
    """
    removes_repeats = plan.conventions.duplicates == "set"
    return {
        family: reading
        for family, reading in readings.items()
        if FAMILIES[family].compares_texts
        or (source.is_in_memory and not (removes_repeats and FAMILIES[family].compares_documents))
    }


_ENOUGH_RETRIEVED = 100
"""A run that retrieves at least this many relevant items does not do so by chance."""


def _ids_are_doubtful(counts: dict[str, int]) -> bool:
    """Return whether so few relevant items were retrieved that ids may be spelled differently.

    Only then are all lists searched for all ids, which takes as long as scoring.
    """
    relevant, retrieved = counts["relevant"], counts["relevant_found"]
    if retrieved >= _ENOUGH_RETRIEVED and 10 * retrieved >= relevant:
        return False
    return not relevant or 2 * retrieved < relevant


def _warn_of_wrong_lengths(gold: PreparedGold) -> None:
    """Warn if spans of gold and their texts differ in length, since offsets must be wrong."""
    wrong = gold.wrong_lengths
    if not wrong.count:
        return
    explanation = gold.explain_offsets()
    cause = "" if explanation is None else f"\n  {explanation}; {explanation.hint}"
    warn(
        f"offsets and text of {counted(wrong.count, 'span')} of gold differ in length, such as "
        f"{_short(wrong.text)!r} of query {wrong.query!r}; `karat validate` lists them{cause}",
        stacklevel=4,
    )


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _cut_note(cut: CutCounts, settings: ListCut) -> str:
    """Return a note on how many results of gold's queries remain after the lists were cut."""
    note = (
        f"{cut.after:,} of {counted(cut.before, 'result')} are left after {settings}, "
        f"{cut.after / cut.n_queries:.1f} per query"
    )
    if not cut.n_emptied:
        return note
    has = "has" if cut.n_emptied == 1 else "have"
    return f"{note}; {counted(cut.n_emptied, 'query')} {has} no results"


def _unanswerable_notes(counts: dict[str, int], run: Run, settings: ListCut) -> Iterator[str]:
    """Yield how often a run returned something although there is no answer."""
    n_queries, n_in_run = counts[UNANSWERABLE.key], counts[UNANSWERABLE_IN_RUN]
    if not n_queries:
        return
    thresholds = [t for t in (run.score_threshold, settings.score_threshold) if t is not None]
    if thresholds:
        what = f"items with a score of at least {max(thresholds):g} (score_threshold)"
    else:
        what = "items (no score_threshold is set)"
    returned = f"{counts[UNANSWERABLE_RETURNED]:,} of {counted(n_queries, 'query')}"
    note = f"returned {what} for {returned} without an answer"
    if n_absent := n_queries - n_in_run:
        note += f"; {n_absent:,} of them {'is' if n_absent == 1 else 'are'} not in the run"
    yield note


def _warn_of_contradictions(contradicting: pl.DataFrame) -> None:
    """Warn of queries that gold marks as unanswerable although it lists something to find."""
    if contradicting.height:
        n_queries, query = contradicting["query_id"].n_unique(), contradicting["query_id"][0]
        warn(
            f"{counted(n_queries, 'query')} of gold {'is' if n_queries == 1 else 'are'} marked "
            "as unanswerable but "
            f"{'has' if n_queries == 1 else 'have'} judgments, spans or evidence"
            f"{for_example(n_queries, repr(query))}; left out of every measure",
            stacklevel=4,
        )


def _require_items(missing_by_part: Sequence[pl.DataFrame]) -> None:
    """Raise an error if the table of chunks does not contain all items of a run."""
    if not missing_by_part:
        return
    missing = pl.concat(missing_by_part).unique()
    missing = missing.sort(missing.columns)
    example = ", ".join(
        f"no {name}" if value is None else f"{name} {value!r}"
        for name, value in missing.row(0, named=True).items()
    )
    raise InputError(
        f"{counted(missing.height, 'item')} of the run "
        f"{'is' if missing.height == 1 else 'are'} not in the table of chunks"
        f"{for_example(missing.height, example)}",
        field="chunks",
        hint="pass the table of all chunks that the run retrieves from; for one table per run, "
        "pass chunks={run: table} or --chunks RUN=FILE",
    )


def _default_measures_note(plan: Plan, kinds: Sequence[str]) -> str:
    """Return a note on which kind of gold the default measures use."""
    families = {measure.declaration.reads for measure in plan.measures}
    used = {family.gold for family in families if family.gold is not None}
    unused = [kind for kind in kinds if kind not in used]
    return (
        f"default measures use {' and '.join(sorted(used))} only; gold also has "
        f"{' and '.join(unused)} (choose with -m)"
    )


def _grade_scale_notes(plan: Plan) -> Iterator[str]:
    """Yield a note on each measure that is scaled by the largest grade of gold."""
    for measure in plan.measures:
        if measure.needs_largest_grade:
            fixed = resolve_measure(
                measure.declaration,
                measure.cutoff,
                measure.params | {"max_grade": plan.largest_grade},
            )
            yield (
                f"{measure} is scaled by the largest grade of gold ({plan.largest_grade}); "
                f"{fixed} fixes the scale"
            )


def _gold_kinds(gold: PreparedGold) -> tuple[str, ...]:
    """Return the kinds of gold that are present: spans, then evidence, then judgments."""
    return tuple(kind for kind, family in BY_GOLD.items() if family.is_in(gold))


def _require_gold(gold: PreparedGold, plan: Plan) -> None:
    """Raise an error if gold lacks the kind that a measure needs; the hint names other kinds."""
    available = [family.gold for family in FAMILIES.values() if family.gold and family.is_in(gold)]
    if plan.compares_documents and gold.gold.spans is not None:
        require_code_points(gold.gold)
    for measure in plan.measures:
        family = measure.declaration.reads
        if family.gold is None or family.gold in available:
            continue
        problem, hint = f"gold has no {family.gold}", f"{measure} needs {family.gold}"
        if available:
            problem += f", only {' and '.join(available)}"
            hint += f"; for {available[0]}, use measures such as {BY_GOLD[available[0]].example}"
        if family.made_from is not None and family.made_from[0] in available:
            hint += f"; {family.made_from[1]}"
        raise InputError(
            problem,
            field=family.gold,
            hint=hint + family.hint,
        )


@contextmanager
def _located_errors(path: str | None) -> Iterator[None]:
    """Add the file to errors that do not name one."""
    try:
        yield
    except InputError as error:
        error.path = error.path or path
        raise


def _no_shared_query(gold_ids: pl.Series, run_ids: Sequence[str]) -> InputError:
    in_gold, in_run = (", ".join(map(repr, ids)) for ids in (gold_ids.head(3), run_ids))
    return InputError(
        f"gold and run have no query in common: gold has {in_gold}, the run has {in_run or 'none'}",
        field="query_id",
        hint="check that gold and run are for the same queries and use the same query ids",
    )


def chunks_of_run(chunks: Any, name: str | None) -> Any:
    """Return the table of chunks for a run. `chunks` is one table, or {run name: table}."""
    if not isinstance(chunks, Mapping):
        return chunks
    if name not in chunks:
        names = ", ".join(map(repr, chunks))
        run = "the run" if name is None else f"run {name!r}"
        raise InputError(
            f"no table of chunks was given for {run}",
            field="chunks",
            hint=f"tables were given for {names}; pass one for every run",
        )
    return chunks[name]
