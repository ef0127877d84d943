"""How a page shows each kind of gold and what runs found of it: one entry per family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Ints
from karat.evaluation.loaded_run import LoadedRun
from karat.match.align import collapse_to_documents
from karat.match.evidence import EvidenceMatches
from karat.match.hits import Hits, merge_rows
from karat.match.span_intervals import overlaps
from karat.match.spans import Coverage, MinOverlap, relevant_spans
from karat.match.targets import Targets
from karat.measures import Measure
from karat.measures.families import EVIDENCE, RANK, SPAN, FamilyInput, FamilyName


@dataclass(frozen=True, eq=False)
class GoldFound:
    """Per query: the amount of gold, the amount that a run found, and the first rank with gold."""

    total: Ints
    found: Ints
    first: Ints


@dataclass(frozen=True)
class MissedGold:
    """The gold of one kind that no run found."""

    what: str
    """What it is called in a sentence: relevant item, span or evidence text."""
    total: int
    """How much gold of this kind there is."""
    left: pl.DataFrame
    """(query_id, name): the gold that no run found, sorted."""
    text: Callable[[str, str], str | None]
    """Returns the text of one of them by query_id and name; None if it is unknown."""


@dataclass(frozen=True, eq=False)
class GoldKind:
    """How a page shows one kind of gold."""

    name: str
    """The name of this kind in the data of the page."""
    column: str
    """The column of the table of hits that states what a rank found."""
    dtype: pl.DataType
    """The type of that column."""
    hits: Callable[[LoadedRun], pl.DataFrame]
    """Returns query, rank and that column, for each rank with a value."""
    counts: Callable[[Measure | None], pl.Expr]
    """Returns which of those ranks count as hits; the measure defines what is relevant."""
    found: Callable[[FamilyInput, Measure | None], GoldFound]
    """Returns what a run found in its whole lists; the measure may define what counts."""
    missed: Callable[[Sequence[LoadedRun]], MissedGold]
    """Returns what every run missed; all runs share one gold."""
    by_depth: tuple[str, ...]
    """The measures that are plotted over k."""
    by_recall: str | None = None
    """The measure that is plotted over recall levels."""
    repeated: Callable[[FamilyInput], float] | None = None
    """Returns the share of the returned characters that an item of a higher rank already has."""


def min_relevant_grade(measure: Measure | None) -> int:
    """Return the lowest grade that counts as relevant."""
    rel: int = 1 if measure is None else measure.params.get("rel", 1)
    return rel


def first_gold_measure(measures: Iterable[Measure]) -> Measure | None:
    """Return the first measure that reads gold; it decides which queries count as found."""
    return next((measure for measure in measures if measure.declaration.reads_gold), None)


_KEY = ["query_id", "item_id"]


def _graded_items(opened: LoadedRun) -> pl.DataFrame:
    """Return the grade of each judged item."""
    hits = opened.readings[RANK.name].data_as(Hits)
    found = hits.found
    if opened.plan.conventions.duplicates == "count":
        found = merge_rows(found, hits.repeats.where(hits.repeats.grade >= 0))
    return pl.DataFrame({"query": found.query, "rank": found.rank, "grade": found.grade})


def _found_items(reading: FamilyInput, measure: Measure | None) -> GoldFound:
    hits, rel = reading.data_as(Hits), min_relevant_grade(measure)
    relevant = hits.relevant(rel)
    return GoldFound(hits.n_relevant(rel), relevant.count, relevant.first_rank)


def _missed_items(runs: Sequence[LoadedRun]) -> MissedGold:
    plan, gold = runs[0].plan, runs[0].gold
    min_grade = min_relevant_grade(first_gold_measure(plan.measures))
    relevant = gold.judgments.filter(pl.col("grade") >= min_grade).select(_KEY).unique()
    left = relevant
    for loaded in runs:
        run = collapse_to_documents(loaded.run) if plan.level == "doc" else loaded.run
        if run.results.height:  # a run that retrieved nothing has no columns to join by
            # Looking up the many results in the few judgments is faster than vice versa.
            found = run.results.select(_KEY).join(left, on=_KEY, how="semi")
            left = left.join(found, on=_KEY, how="anti")
    names = left.select("query_id", name="item_id").sort("query_id", "name")
    return MissedGold("relevant item", relevant.height, names, partial(_text_of_item, runs[0]))


def _text_of_item(run: LoadedRun, query_id: str, item_id: str) -> str | None:
    """Return what is relevant in an item: its first span, or else its text; None if unknown."""
    if run.gold.spans is not None and run.gold.offsets == "codepoint":
        in_item = relevant_spans(run.gold).filter(query_id=query_id, doc_id=item_id)
        if in_item.height:
            return _text_of_span(run, in_item.sort("start", "end").row(0, named=True))
    corpus = run.session.corpus
    return corpus[item_id] if corpus is not None and item_id in corpus else None


def _text_of_span(run: LoadedRun, span: dict[str, Any]) -> str | None:
    corpus = run.session.corpus
    if span["text"] is None and corpus is not None and span["doc_id"] in corpus:
        return corpus[span["doc_id"]][span["start"] : span["end"]]
    text: str | None = span["text"]
    return text


def _new_characters(opened: LoadedRun) -> pl.DataFrame:
    """Return how many gold characters each rank adds to those of the ranks above."""
    coverage = opened.readings[SPAN.name].data_as(Coverage)
    added = coverage.item_characters(None)[2]
    ranks = coverage.rows.where(added > 0)
    return pl.DataFrame({"query": ranks.query, "rank": ranks.rank, "characters": added[added > 0]})


def _found_spans(reading: FamilyInput, measure: Measure | None) -> GoldFound:
    params = {} if measure is None else measure.params
    min_overlap = params.get("min_overlap", MinOverlap())
    return _found_targets(reading.data_as(Coverage).targets(min_overlap))


def _missed_spans(runs: Sequence[LoadedRun]) -> MissedGold:
    spans = relevant_spans(runs[0].gold)
    is_found = np.zeros(spans.height, np.bool_)
    for loaded in runs:
        coverage = loaded.readings[SPAN.name].data_as(Coverage)
        # The spans of a coverage are the rows of gold, in order.
        is_found[overlaps(coverage.items, coverage.spans)[1]] = True
    name = pl.format("{}[{}:{}]", "doc_id", "start", "end")
    named = spans.with_columns(name=name, empty=pl.col("start") == pl.col("end"))
    named = named.with_columns(pl.Series("is_found", is_found)).filter(~pl.col("empty"))
    distinct = named.unique(["query_id", "name"])
    left = distinct.filter(~pl.col("is_found")).sort("query_id", "name")

    def text(query_id: str, name: str) -> str | None:
        span = left.filter(query_id=query_id, name=name).row(0, named=True)
        return _text_of_span(runs[0], span)

    return MissedGold("span", distinct.height, left.select("query_id", "name"), text)


def _repeated_characters(reading: FamilyInput) -> float:
    whole = reading.data_as(Coverage).within(None)
    raw, merged = int(whole.raw.sum()), int(whole.merged.sum())
    return 1 - merged / raw if raw else 0.0


def _covered_texts(opened: LoadedRun) -> pl.DataFrame:
    """Return the numbers of the evidence texts that each rank covers."""
    targets = opened.readings[EVIDENCE.name].data_as(EvidenceMatches).targets
    first = np.cumsum(targets.count) - targets.count
    pairs = {"query": targets.query, "rank": targets.rank}
    pairs["evidence"] = targets.target - first[targets.query]
    return pl.DataFrame(pairs).group_by("query", "rank").agg(pl.col("evidence").sort())


def _found_texts(reading: FamilyInput, _: Measure | None) -> GoldFound:
    return _found_targets(reading.data_as(EvidenceMatches).targets)


def _missed_texts(runs: Sequence[LoadedRun]) -> MissedGold:
    matches = [run.readings[EVIDENCE.name].data_as(EvidenceMatches) for run in runs]
    first, query_ids = matches[0], runs[0].query_ids
    covered = np.concatenate([match.covering.evidence for match in matches])
    left = np.setdiff1d(first.covering.counted, covered).tolist()
    rows = [(query_ids[int(first.evidence.query[at])], first.evidence.text[at]) for at in left]
    names = pl.DataFrame(rows, schema={"query_id": pl.String, "name": pl.String}, orient="row")
    total = first.covering.counted.size
    names = names.sort("query_id", "name")
    return MissedGold("evidence text", total, names, lambda _, text: text)


def _found_targets(targets: Targets) -> GoldFound:
    new = targets.newly_covered
    found = np.bincount(new.query, new.grade, new.n_queries).astype(np.int64)
    return GoldFound(targets.count, found, targets.covering.first_rank)


GOLD_KINDS: dict[FamilyName, GoldKind] = {
    RANK.name: GoldKind(
        name="items",
        column="grade",
        dtype=pl.Int64(),
        hits=_graded_items,
        counts=lambda measure: pl.col("grade") >= min_relevant_grade(measure),
        found=_found_items,
        missed=_missed_items,
        by_depth=("R", "P", "nDCG"),
        by_recall="IPrec@0.0",
    ),
    SPAN.name: GoldKind(
        name="spans",
        column="characters",
        dtype=pl.Int64(),
        hits=_new_characters,
        counts=lambda _: pl.col("characters").is_not_null(),
        found=_found_spans,
        missed=_missed_spans,
        by_depth=("span.recall", "span.precision", "span.iou"),
        repeated=_repeated_characters,
    ),
    EVIDENCE.name: GoldKind(
        name="evidence",
        column="evidence",
        dtype=pl.List(pl.Int64()),
        hits=_covered_texts,
        counts=lambda _: pl.col("evidence").is_not_null(),
        found=_found_texts,
        missed=_missed_texts,
        by_depth=("evidence.recall", "evidence.P", "evidence.nDCG"),
    ),
}
