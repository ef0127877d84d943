"""Locations of evidence texts: the spans of the documents that they are quoted from."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from karat.data import Corpus, Gold
from karat.data.gold_tables import NO_SPANS, SPANS
from karat.data.offsets import DenseText, dense
from karat.errors import InputError, KaratWarning, counted
from karat.evaluation.result import Result
from karat.match.occurrences import SimilarTexts, occurrences

PLACED = ("exact", "white space", "fuzzy")
AMBIGUOUS, NOT_FOUND = "ambiguous", "not found"
OUTCOMES = (*PLACED, AMBIGUOUS, NOT_FOUND)

_PLACES = {
    "evidence": pl.String,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "ratio": pl.Float64,
}
_SHOWN = 60


@dataclass(frozen=True)
class Location(Result):
    """Gold with the spans of its evidence texts, and the outcome for each of them."""

    gold: Gold
    """The given gold, with a span for each evidence text that is at exactly one place."""
    report: pl.DataFrame
    """One row per evidence text of a query: query_id, evidence, outcome, ratio, places (how many),
    and doc_id, start, end where it was placed."""
    places: pl.DataFrame
    """The places of what is ambiguous: query_id, evidence, doc_id, start, end, ratio."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many evidence texts had each outcome."""
        found = dict(self.report["outcome"].value_counts().iter_rows())
        return {outcome: found.get(outcome, 0) for outcome in OUTCOMES}

    @cached_property
    def incomplete(self) -> list[str]:
        """The queries that have evidence without a span."""
        missing = self.report.filter(pl.col("doc_id").is_null())
        return missing["query_id"].unique().sort().to_list()

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, and all that was not placed, as plain data."""
        places = self.places.partition_by("query_id", "evidence", as_dict=True)
        ambiguous = [
            {
                "query_id": query,
                "evidence": text,
                "places": places[query, text].drop("query_id", "evidence").to_dicts(),
            }
            for query, text in self.report.filter(outcome=AMBIGUOUS)
            .select("query_id", "evidence")
            .iter_rows()
        ]
        not_found = self.report.filter(outcome=NOT_FOUND).select("query_id", "evidence").to_dicts()
        return {
            "counts": self.counts,
            "ambiguous": ambiguous,
            "not_found": not_found,
            "incomplete": self.incomplete,
        }


def locate(gold: Any, corpus: Any, threshold: float = 0.9) -> Location:
    r"""Find the evidence texts of gold in the documents of a corpus.

    Each text is searched for in three ways, and the first that finds anything decides: letter by
    letter; with all white space left out; and by similarity, in lower case and with white space
    collapsed, where 2 × the longest common subsequence / both lengths reaches the threshold. A text
    that this finds at two or more places is ambiguous and gets no span: nothing tells which of them
    was meant. All three searches are exhaustive.

    >>> gold = [{"query_id": "q", "evidence": ["paid in 14 days"]}]
    >>> locate(gold, {"faq": "It is paid in\n14 days."}).report.row(0)[2:]
    ('white space', 1.0, 1, 'faq', 6, 21)
    """
    gold, corpus = Gold.open(gold), Corpus.open(corpus)
    _check(gold, threshold)
    if gold.offsets != "codepoint":  # those found here are code points
        gold = gold.in_code_points(corpus)
    assert gold.evidence is not None
    asked = gold.evidence.select("query_id", evidence="text").unique().sort("query_id", "evidence")
    found = _found(asked["evidence"].unique().sort(), corpus, threshold)
    report = _report(asked, found)
    unclear = report.filter(outcome=AMBIGUOUS).select("query_id", "evidence")
    places = unclear.join(found.drop("outcome"), on="evidence", maintain_order="left_right")
    located = Location(_with_spans(gold, report, corpus), report, places)
    _warn(located)
    return located


def _check(gold: Gold, threshold: float) -> None:
    if not (isinstance(threshold, (int, float)) and 0 < threshold <= 1):
        raise InputError(
            f"{threshold!r} is no similarity to reach",
            field="threshold",
            hint="give a number above 0 and up to 1, such as 0.9",
        )
    if gold.evidence is None or not gold.evidence.height:
        raise InputError(
            "gold has no evidence, so there is nothing to locate",
            field="evidence",
            hint='give texts that should be found: {"query_id": "q1", "evidence": ["…"]}',
        )


def _found(texts: pl.Series, corpus: Corpus, threshold: float) -> pl.DataFrame:
    """Return all places of each text by the first way that finds it, with its outcome."""
    left = texts.filter(pl.Series([bool(dense(text)) for text in texts], dtype=pl.Boolean))
    ways = (_as_it_is, _without_white_space, _by_similarity)
    parts = [pl.DataFrame(schema={**_PLACES, "outcome": pl.String})]
    for outcome, way in zip(PLACED, ways, strict=True):
        if left.is_empty():
            break
        found = way(left, corpus, threshold).with_columns(outcome=pl.lit(outcome))
        left = left.filter(~left.is_in(found["evidence"].implode()))
        parts.append(found)
    return pl.concat(parts).sort("evidence", "doc_id", "start", "end")


def _as_it_is(texts: pl.Series, corpus: Corpus, _: float) -> pl.DataFrame:
    found = occurrences(texts, corpus.documents["text"])
    return found.select(
        evidence="wanted",
        doc_id=corpus.doc_ids.gather(found["document"]),
        start="start",
        end="end",
        ratio=pl.lit(1.0),
    )


def _without_white_space(texts: pl.Series, corpus: Corpus, _: float) -> pl.DataFrame:
    written = pl.DataFrame({"evidence": texts, "wanted": [dense(text) for text in texts]})
    documents = [DenseText(text) for text in corpus.documents["text"]]
    found = occurrences(
        written["wanted"].unique(), pl.Series([text.dense for text in documents], dtype=pl.String)
    ).join(written, on="wanted")
    rows = [
        (evidence, corpus.doc_ids[document], *documents[document].original_span(start, end), 1.0)
        for evidence, document, start, end in found.select(
            "evidence", "document", "start", "end"
        ).iter_rows()
    ]
    return pl.DataFrame(rows, _PLACES, orient="row")


def _by_similarity(texts: pl.Series, corpus: Corpus, threshold: float) -> pl.DataFrame:
    documents = SimilarTexts(corpus.documents["text"])
    rows = [
        (text, corpus.doc_ids[place.document], place.start, place.end, place.ratio)
        for text in texts
        for place in documents.find(text, threshold)
    ]
    return pl.DataFrame(rows, _PLACES, orient="row")


def _report(asked: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    one = pl.len() == 1
    outcomes = found.group_by("evidence").agg(
        outcome=pl.when(one).then(pl.col("outcome").first()).otherwise(pl.lit(AMBIGUOUS)),
        ratio=pl.col("ratio").max(),
        places=pl.len().cast(pl.Int64),
        **{
            name: pl.when(one).then(pl.col(name).first()).otherwise(None)
            for name in ("doc_id", "start", "end")
        },
    )
    return asked.join(outcomes, on="evidence", how="left", maintain_order="left").with_columns(
        pl.col("outcome").fill_null(NOT_FOUND), pl.col("places").fill_null(0)
    )


def _with_spans(gold: Gold, report: pl.DataFrame, corpus: Corpus) -> Gold:
    """Return gold with spans of what was placed, beside those that it has."""
    own = NO_SPANS if gold.spans is None else gold.spans
    place = ["query_id", "doc_id", "start", "end"]
    placed = report.drop_nulls("doc_id").select(place).unique(maintain_order=True)
    new = placed.join(own, on=place, how="anti", maintain_order="left")
    texts = [corpus[doc_id][start:end] for _, doc_id, start, end in new.iter_rows()]
    new = new.with_columns(pl.Series("text", texts, pl.String), grade=pl.lit(1, pl.Int64))
    return replace(
        gold,
        query_data=gold.queries,
        spans=pl.concat([own, new.select(list(SPANS))]),
        empty_spans=sorted(set(gold.empty_spans) - set(placed["query_id"])),
        offsets="codepoint",
        recognised={},
    )


def _warn(located: Location) -> None:
    if not located.incomplete:
        return
    parts = []
    for outcome, what in ((AMBIGUOUS, "found at several places"), (NOT_FOUND, "not found")):
        rows = located.report.filter(outcome=outcome)
        if rows.height:
            query, text = rows.row(0)[:2]
            parts.append(f"{rows.height:,} {what}, such as {_short(text)!r} of query {query!r}")
    warnings.warn(
        KaratWarning(
            f"of {counted(located.report.height, 'evidence text')}: {'; '.join(parts)}. The spans "
            f"of {counted(len(located.incomplete), 'query')} are incomplete, so recall would be "
            "measured against less than was asked: choose a place or leave them out"
        ),
        stacklevel=3,
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
