"""Scoring in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from karat.conventions import Conventions
from karat.data.corpus import Corpus
from karat.data.files import path_of
from karat.data.gold import Gold
from karat.data.run import Run
from karat.data.shaping import Settings
from karat.errors import InputError, RetrieverError
from karat.live.failures import MAX_FAILED, checked_share, too_many_failed
from karat.match.evidence import Found
from karat.match.level import documents
from karat.match.overlap import Overlap, overlap
from karat.match.prepared import PreparedGold, prepare
from karat.match.spans import need_code_points
from karat.match.texts import Matching
from karat.measures import (
    DEFAULT_EVIDENCE_MEASURES,
    DEFAULT_MEASURES,
    DEFAULT_SPAN_MEASURES,
    Measure,
    Plan,
    ScoreTable,
)
from karat.measures.declare import Family
from karat.measures.names import settle
from karat.measures.reading import read
from karat.measures.run.known import check_run
from karat.measures.scoring import scored


@dataclass(frozen=True, eq=False)
class Outcome:
    """What scoring a run gives."""

    table: ScoreTable
    name: str | None
    settings: dict[str, Any]
    """How the run says it was made."""
    found: Found | None
    """Which texts cover which evidence, where that was asked."""
    overlap: Overlap | None
    """Only where so few relevant items were found that the ids themselves are in doubt."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know about how they were made, in sentences."""


class LocalSession:
    """Gold opened and prepared once, then any number of runs scored against it."""

    def __init__(
        self,
        gold: Any,
        measures: str | Measure | Iterable[str | Measure] | None,
        conventions: Conventions,
        level: str,
        chunks: Any = None,
        corpus: Any = None,
        matching: Matching | None = None,
        settings: Settings | None = None,
        fail_on_error: float = MAX_FAILED,
    ) -> None:
        self.settings = settings or Settings()
        self.fail_on_error = checked_share(fail_on_error)
        given = {"gold": gold, "chunks": chunks, "corpus": corpus}
        self.paths = {role: path_of(each) for role, each in given.items() if each is not None}
        """Where each thing beside the run was read from; None for what was given in memory."""
        self.corpus = None if corpus is None else Corpus.open(corpus)
        self.gold = Gold.open(gold)
        if self.corpus is not None:
            with _naming(path_of(gold)):
                self.gold = self.gold.in_code_points(self.corpus)
        self.prepared = prepare(self.gold)
        if measures is None:
            measures = _usual(self.prepared)
        plan = Plan.of(
            measures, conventions=conventions, level=level, chunks=chunks, matching=matching
        )
        with _naming(path_of(gold)):
            _need(self.prepared, plan)
        self.plan = replace(plan, largest_grade=self.prepared.largest_grade)

    def only(self, measures: Iterable[Measure]) -> LocalSession:
        """Return the same session for some of its measures."""
        other = copy(self)
        other.plan = replace(self.plan, measures=tuple(measures))
        return other

    def score(self, source: Any) -> Outcome:
        """Open a run and score it."""
        whole = run = Run.open(source)
        if problem := too_many_failed(run, self.fail_on_error, path_of(source) or run.name):
            raise RetrieverError(problem)
        with _naming(path_of(source) or run.name):  # of several, a person must know which
            run = self._shaped(whole)
            check_run(run, self.plan)
            readings = read(self.prepared, run, self.plan)
            table = scored(self.prepared, run, self.plan, readings)
            counts = table.counts
            if counts["unknown"] == run.query_ids.len():
                raise _nothing_in_common(self.prepared.query_ids, run.query_ids)
        half_found = counts["relevant"] and 2 * counts["relevant_found"] >= counts["relevant"]
        found = readings["evidence"].data if "evidence" in readings else None
        overlapping = None
        if "rank" in self.plan.families and not half_found:
            # An id that was cut away is not one that is spelled differently.
            listed = documents(whole) if self.plan.level == "doc" else whole
            overlapping = overlap(self.prepared, listed)
        notes = tuple(_grade_scale(self.plan))
        return Outcome(table, run.name, run.settings, found, overlapping, notes)

    def opened(self, source: Any, query_ids: Iterable[str] | None = None) -> Run:
        """Open a run and return its lists, or those of some queries, as they are scored."""
        run = Run.open(source)
        run = self._shaped(run if query_ids is None else run.only(query_ids))
        return run.distinct("item_id") if self.plan.conventions.duplicates == "set" else run

    def _shaped(self, run: Run) -> Run:
        run = run.shaped(self.settings.top_k, self.settings.score_threshold)
        return run if self.corpus is None else run.in_code_points(self.corpus)


def _grade_scale(plan: Plan) -> Iterator[str]:
    """State the grade that scales a measure where the gold decides it."""
    for measure in plan.measures:
        if measure.needs_largest_grade:
            fixed = settle(
                measure.declaration,
                measure.cutoff,
                measure.params | {"max_grade": plan.largest_grade},
            )
            yield (
                f"{measure} uses {plan.largest_grade}, the largest grade in this gold, as the top "
                f"of the scale; write {fixed} to keep it fixed"
            )


def _usual(gold: PreparedGold) -> tuple[str, ...]:
    """Return what is measured if nobody says: of every kind of gold there is, the usual."""
    usual = {
        DEFAULT_MEASURES: bool(gold.judged.any()),
        DEFAULT_SPAN_MEASURES: gold.gold.spans is not None,
        DEFAULT_EVIDENCE_MEASURES: gold.gold.evidence is not None,
    }
    names = [name for names, held in usual.items() if held for name in names]
    return tuple(names) or DEFAULT_MEASURES


_KIND: dict[Family, str] = {"rank": "judgments", "span": "spans", "evidence": "evidence"}
_CALLED = {"judgments": "R@10", "spans": "span.recall@5", "evidence": "evidence.recall@10"}


def _need(gold: PreparedGold, plan: Plan) -> None:
    """Refuse measures of a kind of gold that is not there, and name the kinds that are."""
    kinds = {
        "judgments": bool(gold.judged.any()),
        "spans": gold.gold.spans is not None,
        "evidence": gold.gold.evidence is not None,
    }
    held = [kind for kind, there in kinds.items() if there]
    if "span" in plan.families and kinds["spans"]:
        need_code_points(gold.gold)
    for measure in plan.measures:
        kind = _KIND.get(measure.declaration.family)
        if kind is not None and not kinds[kind]:
            hint = f"{measure} needs {kind}" + (
                f"; measures of {held[0]} are called {_CALLED[held[0]]}, …" if held else ""
            )
            if kind == "spans" and kinds["evidence"]:
                hint += "; karat locate makes spans of evidence"
            if kind == "evidence":
                hint += '; texts are given as "evidence": ["…"] in each record of gold, or as '
                hint += "Gold.of(evidence={query: [text, …]})"
            raise InputError(
                f"gold holds no {kind}" + (f", only {' and '.join(held)}" if held else ""),
                field=kind,
                hint=hint,
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
