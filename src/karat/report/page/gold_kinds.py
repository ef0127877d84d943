"""How a page shows each kind of gold, and what runs found of it: one entry per family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.arrays import Ints
from karat.evaluation.loaded_run import LoadedRun
from karat.match.align import collapse_to_documents
from karat.match.evidence import EvidenceMatches
from karat.match.hits import Hits, merge_rows
from karat.match.span_intervals import overlaps
from karat.match.spans import Coverage, MinOverlap, distinct_gold_spans
from karat.match.targets import Targets
from karat.measures import Measure
from karat.measures.families import EVIDENCE, RANK, SPAN, FamilyInput, FamilyName


@dataclass(frozen=True, eq=False)
class GoldFound:
    """Per query: how much gold wants, how much of it a run found, and the first rank that did."""

    wanted: Ints
    found: Ints
    first: Ints


@dataclass(frozen=True)
class MissedGold:
    """Pieces of gold of one kind, and which of them no run found."""

    what: str
    wanted: int
    left: pl.DataFrame
    """(query_id, piece): what each is called, sorted."""


@dataclass(frozen=True, eq=False)
class GoldKind:
    """What a page shows of gold of one kind."""

    name: str
    """What is to be found, as the data of the page calls it."""
    column: str
    """The column of hits that states what a rank found of it."""
    dtype: pl.DataType
    """The type of that column."""
    hits: Callable[[LoadedRun], pl.DataFrame]
    """Returns query, rank and that column, for each rank that has something to state."""
    counts: Callable[[Measure | None], pl.Expr]
    """Returns which of those ranks count as found; the measure sets what is relevant."""
    found: Callable[[FamilyInput, Measure | None], GoldFound]
    """Returns what a run found over its whole lists; the measure sets what counts, if it does."""
    unfound: Callable[[Sequence[LoadedRun]], MissedGold]
    """Returns what every run missed; all were scored against one gold."""
    by_depth: tuple[str, ...]
    """The measures that are drawn by k."""
    by_recall: str | None = None
    """The measure that is drawn by points of recall."""
    repeated: Callable[[FamilyInput], float] | None = None
    """Returns the share of the returned characters that an item above already has."""


def min_relevant_grade(measure: Measure | None) -> int:
    """Return the lowest grade that counts as relevant."""
    rel: int = 1 if measure is None else measure.params.get("rel", 1)
    return rel


def first_gold_measure(measures: Iterable[Measure]) -> Measure | None:
    """Return the first measure that reads gold: by its kind of gold, queries are told apart."""
    return next((measure for measure in measures if measure.declaration.reads_gold), None)


_KEY = ["query_id", "item_id"]


def _graded_items(opened: LoadedRun) -> pl.DataFrame:
    """Return the grade of each item that is judged."""
    hits = opened.readings[RANK.name].data_as(Hits)
    found = hits.found
    if opened.plan.conventions.duplicates == "count":
        found = merge_rows(found, hits.repeats.where(hits.repeats.grade >= 0))
    return pl.DataFrame({"query": found.query, "rank": found.rank, "grade": found.grade})


def _found_items(reading: FamilyInput, measure: Measure | None) -> GoldFound:
    hits, rel = reading.data_as(Hits), min_relevant_grade(measure)
    relevant = hits.relevant(rel)
    return GoldFound(hits.n_relevant(rel), relevant.count, relevant.first_rank)


def _missed_items(opened: Sequence[LoadedRun]) -> MissedGold:
    plan, gold = opened[0].plan, opened[0].gold
    least = min_relevant_grade(first_gold_measure(plan.measures))
    left = wanted = gold.judgments.filter(pl.col("grade") >= least).select(_KEY).unique()
    for each in opened:
        run = collapse_to_documents(each.run) if plan.level == "doc" else each.run
        if run.results.height:  # a run that retrieved nothing has no columns to join by
            # The many results are looked up in the few judgments, not vice versa.
            found = run.results.select(_KEY).join(left, on=_KEY, how="semi")
            left = left.join(found, on=_KEY, how="anti")
    named = left.select("query_id", piece="item_id").sort("query_id", "piece")
    return MissedGold("relevant item", wanted.height, named)


def _new_characters(opened: LoadedRun) -> pl.DataFrame:
    """Return how many characters of gold each rank has that no rank above has."""
    coverage = opened.readings[SPAN.name].data_as(Coverage)
    brought = coverage.parts(None)[2]
    places = coverage.places.where(brought > 0)
    held = {"query": places.query, "rank": places.rank, "characters": brought[brought > 0]}
    return pl.DataFrame(held)


def _found_spans(reading: FamilyInput, measure: Measure | None) -> GoldFound:
    params = {} if measure is None else measure.params
    return _found_targets(reading.data_as(Coverage).pieces(params.get("min_overlap", MinOverlap())))


def _missed_spans(opened: Sequence[LoadedRun]) -> MissedGold:
    spans = distinct_gold_spans(opened[0].gold)
    touched = np.zeros(spans.height, np.bool_)
    for each in opened:
        coverage = each.readings[SPAN.name].data_as(Coverage)
        # Its spans are the rows of gold, in order.
        touched[overlaps(coverage.items, coverage.spans)[1]] = True
    name = pl.format("{}[{}:{}]", "doc_id", "start", "end")
    held = spans.select("query_id", piece=name, empty=pl.col("start") == pl.col("end"))
    pieces = held.with_columns(pl.Series("touched", touched)).filter(~pl.col("empty"))
    distinct = pieces.unique(["query_id", "piece"])
    left = distinct.filter(~pl.col("touched")).select("query_id", "piece")
    return MissedGold("span", distinct.height, left.sort("query_id", "piece"))


def _repeated_characters(reading: FamilyInput) -> float:
    whole = reading.data_as(Coverage).within(None)
    raw, merged_once = int(whole.raw.sum()), int(whole.merged.sum())
    return 1 - merged_once / raw if raw else 0.0


def _covered_texts(opened: LoadedRun) -> pl.DataFrame:
    """Return the numbers of the evidence texts that each rank covers."""
    pieces = opened.readings[EVIDENCE.name].data_as(EvidenceMatches).pieces
    first = np.cumsum(pieces.count) - pieces.count
    pairs = {"query": pieces.query, "rank": pieces.rank}
    pairs["evidence"] = pieces.piece - first[pieces.query]
    return pl.DataFrame(pairs).group_by("query", "rank").agg(pl.col("evidence").sort())


def _found_texts(reading: FamilyInput, _: Measure | None) -> GoldFound:
    return _found_targets(reading.data_as(EvidenceMatches).pieces)


def _missed_texts(opened: Sequence[LoadedRun]) -> MissedGold:
    founds = [each.readings[EVIDENCE.name].data_as(EvidenceMatches) for each in opened]
    first, query_ids = founds[0], opened[0].query_ids
    covered = np.concatenate([found.covering.evidence for found in founds])
    left = np.setdiff1d(first.covering.counted, covered).tolist()
    rows = [(query_ids[int(first.evidence.query[at])], first.evidence.text[at]) for at in left]
    frame = pl.DataFrame(rows, schema={"query_id": pl.String, "piece": pl.String}, orient="row")
    return MissedGold("evidence", first.covering.counted.size, frame.sort("query_id", "piece"))


def _found_targets(pieces: Targets) -> GoldFound:
    new = pieces.new
    found = np.bincount(new.query, new.grade, new.n_queries).astype(np.int64)
    return GoldFound(pieces.count, found, pieces.covering.first_rank)


GOLD_KINDS: dict[FamilyName, GoldKind] = {
    RANK.name: GoldKind(
        name="items",
        column="grade",
        dtype=pl.Int64(),
        hits=_graded_items,
        counts=lambda measure: pl.col("grade") >= min_relevant_grade(measure),
        found=_found_items,
        unfound=_missed_items,
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
        unfound=_missed_spans,
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
        unfound=_missed_texts,
        by_depth=("evidence.recall", "evidence.P", "evidence.nDCG"),
    ),
}
