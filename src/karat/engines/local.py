"""Scoring in this process."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from karat.data import frames
from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from karat.data.data_file import path_of
from karat.data.gold import Gold
from karat.data.list_cut import ListCut
from karat.data.run import Run
from karat.data.run_source import RunSource
from karat.data.span_checks import explain_offsets, text_lengths
from karat.engines.scoring_options import ScoringOptions
from karat.errors import InputError, KaratWarning, RetrieverError, counted
from karat.live.failures import checked_share, too_many_failed
from karat.match.align import collapse_to_documents
from karat.match.gold_index import PreparedGold, prepare
from karat.match.id_overlap import (
    DocumentIds,
    Overlap,
    document_ids,
    document_overlap,
    overlap,
    with_renamed_documents,
)
from karat.match.id_overlap import document_ids_note as renamed_note
from karat.match.spans import distinct_gold_spans, require_code_points
from karat.measures import DEFAULT_MEASURES, Measure, Plan, ScoreTable
from karat.measures.families import BY_GOLD, FAMILIES, UNKNOWN, FamilyInput, FamilyName, read_inputs
from karat.measures.name_parser import AnyMeasure, parse_all, resolve_measure
from karat.measures.plan import check_run, usage_measures, usage_notes
from karat.measures.presets import preset_named
from karat.measures.scoring import score_inputs


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """A run that was scored: where it comes from, what it was scored with, and the result."""

    session: LocalSession
    """What the run was scored with."""
    source: RunSource
    """Where the run can be read again, to show its lists."""
    table: ScoreTable
    name: str | None
    settings: dict[str, Any]
    """How the run says it was made."""
    readings: dict[FamilyName, FamilyInput]
    """What the kernels read and a page shows; only evidence if the run is not kept in memory."""
    overlaps: dict[str, Overlap]
    """Which ids of gold occur in the run, by kind, where they are in doubt."""
    delivered: dict[str, float]
    """For measures at rank k: the mean number of characters that the run returns up to k."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know about how they were made, in sentences."""


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
        """Whether latency and cost are measured too, where the runs have them."""
        if options.preset is not None:
            measures = preset.parse_all(preset.measures if measures is None else measures)
        conventions = options.effective_conventions()
        self.settings = options.list_settings()
        self.usage_notes: tuple[str, ...] = ()
        self.fail_on_error = checked_share(options.fail_on_error)
        self.chunks = dict(chunks) if isinstance(chunks, Mapping) else None
        """A table of chunks for each run by name, where each has its own."""
        self.renamed: dict[str, str] | None = None
        """Document ids of the run that gold spells otherwise, once they are known."""
        given = {"gold": gold, "chunks": chunks, "corpus": corpus}
        self.paths = {role: path_of(each) for role, each in given.items() if each is not None}
        if self.chunks is not None:
            self.paths.pop("chunks")
            self.paths |= {f"chunks of {run}": path_of(each) for run, each in self.chunks.items()}
        """Where each thing beside the run was read from; None for what was given in memory."""
        self.corpus = None if corpus is None else Corpus.open(corpus)
        self.gold = Gold.open(gold)
        if self.corpus is not None:
            with _naming(path_of(gold)):
                self.gold = self.gold.in_code_points(self.corpus)
        self.prepared = prepare(self.gold)
        self.candidates = _kinds(self.prepared) if measures is None else ()
        """The kinds of gold to choose default measures from, where no measure was asked for."""
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
        with _naming(path_of(gold)):
            _need(self.prepared, plan)
        if plan.compares_documents and self.corpus is None:
            _warn_of_lengths(self.gold)
        self.plan = replace(plan, largest_grade=self.prepared.largest_grade)

    @cached_property
    def document_ids(self) -> DocumentIds:
        """The documents of gold's spans."""
        return DocumentIds.of(distinct_gold_spans(self.gold)["doc_id"])

    def only(self, measures: Iterable[Measure]) -> LocalSession:
        """Return the same session for some of its measures."""
        other = copy(self)
        other.plan = replace(self.plan, measures=tuple(measures))
        other.candidates, other.adds_usage = (), False
        return other

    @property
    def depends_on_runs(self) -> bool:
        """Whether the runs decide what is measured."""
        return len(self.candidates) > 1 or self.adds_usage

    def with_defaults_for(self, runs: Sequence[Run]) -> LocalSession:
        """Return a session with the default measures of the most specific kind runs can answer."""
        if self.adds_usage and runs:
            other = copy(self)
            added = usage_measures(runs)
            other.plan = replace(self.plan, measures=(*self.plan.measures, *added))
            other.usage_notes = tuple(usage_notes(runs))
            return other
        kinds = [kind for kind in self.candidates if all(self._answers(kind, r) for r in runs)]
        if not kinds or kinds[0] == self.candidates[0]:
            return self
        other = copy(self)
        other.plan = replace(self.plan, measures=parse_all(BY_GOLD[kinds[0]].defaults))
        return other

    def _answers(self, kind: str, run: Run) -> bool:
        """Return whether the items of a run have what the measures of a kind of gold read."""
        has_chunks = self.plan.chunks is not None or self.chunks is not None
        if run.lists is not None:
            return BY_GOLD[kind].compares_ids or has_chunks or not run.results.height
        needed = BY_GOLD[kind].items
        complete = all(
            name in run.results.columns and not run.results[name].null_count() for name in needed
        )
        return complete or has_chunks or not run.results.height

    def of_run(self, name: str | None) -> LocalSession:
        """Return the session for one run, with the chunks that the run was made with."""
        if self.chunks is None:
            return self
        other = copy(self)
        other.plan = replace(self.plan, chunks=Chunks.open(chunks_of_run(self.chunks, name)))
        return other

    def score(self, source: RunSource, whole: Run, name: str | None = None) -> ScoredRun:
        """Score a run that was read from its source."""
        if self._lacks_ids(whole):
            frames.Hashed(items=True).warn("the run")
            whole = whole.with_item_ids()
        # Of several runs, a person must know which.
        place = source.path or name or whole.name
        if problem := too_many_failed(whole, self.fail_on_error, place):
            raise RetrieverError(problem)
        with _naming(place):
            return self.of_run(name or whole.name)._score(source, whole)  # noqa: SLF001

    def _score(self, source: RunSource, whole: Run) -> ScoredRun:
        session = copy(self)
        session.renamed = renamed = self._renamed(whole)
        session.plan = plan = self._with_chunks_renamed()
        if plan.chunks is not None:
            _need_items(plan.chunks, self._renamed_in(whole, renamed))
        run = self._shaped(whole, renamed)
        check_run(run, plan)
        readings = read_inputs(self.prepared, run, plan)
        table = score_inputs(self.prepared, run, plan, readings)
        if table.counts[UNKNOWN.key] == run.query_ids.len():
            raise _nothing_in_common(self.prepared.query_ids, run.query_ids)
        notes = [*_grade_scale(plan), *self.usage_notes]
        if self.settings:
            notes.append(_pruned(whole, run, self.prepared.query_ids, self.settings))
        if renamed:
            notes.append(renamed_note(renamed))
        if len(self.candidates) > 1:
            notes.append(_chosen_kind(plan, self.candidates))
        return ScoredRun(
            session,
            source,
            table,
            run.name,
            run.settings,
            _readings_to_keep(readings, source, plan),
            dict(session._overlaps(whole, table.counts)),  # noqa: SLF001
            dict(_delivered(plan, readings)),
            tuple(notes),
        )

    def _overlaps(self, whole: Run, counts: dict[str, int]) -> Iterator[tuple[str, Overlap]]:
        """Yield which ids of gold are in a run, where so few are found that ids may be wrong."""
        if self._compares_ids and _ids_are_doubtful(counts):
            # An id that was cut away is not one that is spelled differently.
            listed = collapse_to_documents(whole) if self.plan.level == "doc" else whole
            yield "relevant ids", overlap(self.prepared, listed)
        if self.plan.compares_documents:
            ids = document_ids(self._renamed_in(whole, self._renamed(whole)))
            yield "document ids", document_overlap(self.document_ids.gold, ids)

    @property
    def _compares_ids(self) -> bool:
        """Whether items are compared by their ids."""
        return any(measure.declaration.reads.compares_ids for measure in self.plan.measures)

    def as_scored(self, run: Run, query_ids: Iterable[str] | None = None) -> Run:
        """Return the lists of a run, or those of some queries, as they are scored."""
        if self._lacks_ids(run):
            run = run.with_item_ids()
        renamed = self._renamed(run)
        run = self._shaped(run if query_ids is None else run.only(query_ids), renamed)
        return run.distinct("item_id") if self.plan.conventions.duplicates == "set" else run

    def _lacks_ids(self, run: Run) -> bool:
        """Whether the items of gold and run have no ids, so that both go by a hash of texts."""
        if not self._compares_ids or run.lists is not None:
            return False
        columns = run.results.columns
        if "item_id" in columns or "text" not in columns or run.results["text"].null_count():
            return False
        ids = self.gold.judgments["item_id"]
        return bool(ids.len()) and bool(ids.str.contains(f"^{frames.GENERATED_ID}$").all())

    def _renamed(self, run: Run) -> dict[str, str]:
        """Return the ids of the run's documents that gold calls otherwise: decided once per run."""
        if self.renamed is not None:
            return self.renamed
        if not self.plan.compares_documents or self.gold.spans is None:
            return {}
        return self.document_ids.renamed(document_ids(run))

    def _with_chunks_renamed(self) -> Plan:
        """Return the plan with the documents of its chunks called as gold calls them."""
        chunks = self.plan.chunks
        if chunks is None or not self.plan.compares_documents or self.gold.spans is None:
            return self.plan
        renamed = self.document_ids.renamed(chunks.frame["doc_id"].unique())
        return replace(self.plan, chunks=Chunks(with_renamed_documents(chunks.frame, renamed)))

    def _renamed_in(self, run: Run, renamed: dict[str, str]) -> Run:
        if not renamed or run.lists is not None:
            return run
        return run.with_results(with_renamed_documents(run.results, renamed))

    def _shaped(self, run: Run, renamed: dict[str, str]) -> Run:
        run = run.shaped(self.settings.top_k, self.settings.score_threshold)
        run = self._renamed_in(run, renamed)
        return run if self.corpus is None else run.in_code_points(self.corpus)


def _readings_to_keep(
    readings: dict[FamilyName, FamilyInput], source: RunSource, plan: Plan
) -> dict[FamilyName, FamilyInput]:
    """Return the readings that a page or `scores.matches` uses later.

    Matching evidence again would take too long. The others are as large as the lists, so they are
    kept only if the lists are. With `duplicates=set`, measures of spans remove repeated spans,
    while a page shows lists without repeated ids: the page reads those lists.
    """
    removes_repeats = plan.conventions.duplicates == "set"
    return {
        family: reading
        for family, reading in readings.items()
        if FAMILIES[family].compares_texts
        or (source.is_kept and not (removes_repeats and FAMILIES[family].compares_documents))
    }


_ENOUGH = 100
"""So many relevant items in the lists of their own queries are not there by chance."""


def _ids_are_doubtful(counts: dict[str, int]) -> bool:
    """Return whether so few relevant items were found that gold and run may spell ids differently.

    Scoring has counted what is in the list of its own query. Only where that is hardly anything
    are all lists searched for all ids, which takes as long as scoring.
    """
    wanted, found = counts["relevant"], counts["relevant_found"]
    if found >= _ENOUGH and 10 * found >= wanted:
        return False
    return not wanted or 2 * found < wanted


def _warn_of_lengths(gold: Gold) -> None:
    """Warn if texts of gold's spans are longer or shorter than their spans: offsets are wrong."""
    spans = gold.spans
    assert spans is not None
    differing = spans.filter(pl.col("end") - pl.col("start") != text_lengths(gold.offsets))
    if not differing.height:
        return
    query, text = differing.select("query_id", "text").row(0)
    explained = explain_offsets(spans, gold.offsets)
    cause = "" if explained is None else f"\n  {explained}; {explained.hint}"
    warnings.warn(
        KaratWarning(
            f"{counted(differing.height, 'span')} of gold and the text differ in length, such as "
            f"{_short(text)!r} of query {query!r}; karat validate lists them{cause}"
        ),
        stacklevel=4,
    )


def _short(text: str, length: int = 60) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _pruned(whole: Run, run: Run, query_ids: pl.Series, settings: ListCut) -> str:
    """State how many results of gold's queries are left of the lists."""
    before, after = (
        each.results.filter(pl.col("query_id").is_in(query_ids.implode())) for each in (whole, run)
    )
    asked = query_ids.is_in(whole.query_ids.implode()).sum()
    emptied = before["query_id"].n_unique() - after["query_id"].n_unique()
    note = (
        f"{after.height:,} of {counted(before.height, 'result')} are left after {settings}, "
        f"{after.height / asked:.1f} per query"
    )
    return f"{note}; {counted(emptied, 'query')} with none left" if emptied else note


def _need_items(chunks: Chunks, run: Run) -> None:
    """Refuse a table of chunks that does not contain the items of a run."""
    results = run.results
    by_id = "item_id" in results.columns and not results["item_id"].null_count()
    key = ["item_id"] if by_id else ["doc_id", "start", "end"]
    if not set(key) <= set(results.columns):
        return
    absent = (
        results.select(key)
        .unique(maintain_order=True)
        .join(chunks.frame, on=key, how="anti", maintain_order="left")
    )
    if absent.height:
        example = ", ".join(
            f"no {name}" if value is None else f"{name} {value!r}"
            for name, value in absent.row(0, named=True).items()
        )
        raise InputError(
            f"{counted(absent.height, 'item')} of the run "
            f"{'is' if absent.height == 1 else 'are'} not in the table of chunks, "
            f"such as {example}",
            field="chunks",
            hint="give the table that the run was made with; for several runs one table each: "
            "chunks={run: table}, --chunks RUN=FILE",
        )


def _delivered(plan: Plan, readings: dict[FamilyName, FamilyInput]) -> Iterator[tuple[str, float]]:
    """Yield the mean number of characters that a run returns up to the rank of each measure."""
    for measure in plan.measures:
        reading, k = readings[measure.declaration.family], measure.cutoff
        if reading.characters is not None and isinstance(k, int) and reading.has_gold.any():
            yield measure.name, float(reading.characters(k)[reading.has_gold].mean())


def _chosen_kind(plan: Plan, kinds: Sequence[str]) -> str:
    """State which kind of gold the default measures use where gold has several."""
    families = {measure.declaration.reads for measure in plan.measures}
    used = {family.gold for family in families if family.gold is not None}
    others = [kind for kind in kinds if kind not in used]
    return (
        f"default measures use {' and '.join(sorted(used))}; gold also has {' and '.join(others)}: "
        "name measures (-m) to use them"
    )


def _grade_scale(plan: Plan) -> Iterator[str]:
    """State the grade that scales a measure where the gold decides it."""
    for measure in plan.measures:
        if measure.needs_largest_grade:
            fixed = resolve_measure(
                measure.declaration,
                measure.cutoff,
                measure.params | {"max_grade": plan.largest_grade},
            )
            yield (
                f"{measure} uses {plan.largest_grade}, the largest grade in this gold, as the top "
                f"of the scale; write {fixed} to keep it fixed"
            )


def _kinds(gold: PreparedGold) -> tuple[str, ...]:
    """Return the kinds of gold that are present, the most specific first."""
    return tuple(kind for kind, family in BY_GOLD.items() if family.is_in(gold))


def _need(gold: PreparedGold, plan: Plan) -> None:
    """Refuse measures of a kind of gold that is not there, and name the kinds that are."""
    held = [family.gold for family in FAMILIES.values() if family.gold and family.is_in(gold)]
    if plan.compares_documents and gold.gold.spans is not None:
        require_code_points(gold.gold)
    for measure in plan.measures:
        family = measure.declaration.reads
        if family.gold is None or family.gold in held:
            continue
        hint = f"{measure} needs {family.gold}"
        if held:
            hint += f"; measures of {held[0]} are called {BY_GOLD[held[0]].example}, …"
        if family.made_from is not None and family.made_from[0] in held:
            hint += f"; {family.made_from[1]}"
        raise InputError(
            f"gold holds no {family.gold}" + (f", only {' and '.join(held)}" if held else ""),
            field=family.gold,
            hint=hint + family.hint,
        )


@contextmanager
def _naming(path: str | None) -> Iterator[None]:
    """Say in which file an error lies that does not say so itself."""
    try:
        yield
    except InputError as error:
        error.path = error.path or path
        raise


def _nothing_in_common(judged: pl.Series, asked: pl.Series) -> InputError:
    ours, theirs = (", ".join(map(repr, ids.head(3))) for ids in (judged, asked))
    return InputError(
        f"gold and run have no query in common: gold has {ours}, the run has {theirs or 'none'}",
        field="query_id",
        hint="check that both belong to the same set of queries and spell ids the same way",
    )


def chunks_of_run(chunks: Any, name: str | None) -> Any:
    """Return the table of chunks of a run, where each run has its own."""
    if not isinstance(chunks, Mapping):
        return chunks
    if name not in chunks:
        known = ", ".join(map(repr, chunks))
        run = "the run" if name is None else f"run {name!r}"
        raise InputError(
            f"there is no table of chunks for {run}",
            field="chunks",
            hint=f"tables were given for {known}; name one for every run",
        )
    return chunks[name]
