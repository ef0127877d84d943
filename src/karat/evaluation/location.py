"""`locate`: find the spans of the documents that evidence texts are quoted from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from karat.data import Corpus, Gold
from karat.data.gold_tables import NO_SPANS, SPANS
from karat.data.offsets import DenseText, dense
from karat.errors import InputError, counted, warn
from karat.evaluation.result import Result
from karat.match.occurrences import SimilarTexts, occurrences
from karat.steps import tracked

FOUND = ("exact", "white space", "fuzzy")
AMBIGUOUS, NOT_FOUND = "ambiguous", "not found"
OUTCOMES = (*FOUND, AMBIGUOUS, NOT_FOUND)

_POSITIONS = {
    "evidence": pl.String,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "ratio": pl.Float64,
}
_SHORT_LENGTH = 60
_MAX_SIMILAR_WORK = 1 << 27
"""Up to this number of missing texts × characters of all documents, a search takes seconds."""


@dataclass(frozen=True)
class Location(Result):
    """The result of `locate`: gold with spans, and the outcome for each evidence text.

    Parameters
    ----------
    gold : Gold
        Gold with a span for each evidence text that was found at exactly one position.
    report : DataFrame
        One row per query and evidence text: query_id, evidence, outcome ("exact", "white space",
        "fuzzy", "ambiguous" or "not found"), ratio (similarity), places (number of positions), and
        doc_id, start and end if there is exactly one position.
    places : DataFrame
        The positions of ambiguous texts: query_id, evidence, doc_id, start, end, ratio.

    Examples
    --------
    >>> gold = [{"query_id": "q", "evidence": ["paid in 14 days"]}]
    >>> location = locate(gold, {"faq": "It is paid in 14 days."})
    >>> location.counts["exact"], location.incomplete
    (1, [])
    >>> location.gold.spans.select("doc_id", "start", "end").rows()
    [('faq', 6, 21)]
    """

    gold: Gold
    report: pl.DataFrame
    places: pl.DataFrame

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of evidence texts by outcome."""
        counts = dict(self.report["outcome"].value_counts().iter_rows())
        return {outcome: counts.get(outcome, 0) for outcome in OUTCOMES}

    @cached_property
    def incomplete(self) -> list[str]:
        """The ids of the queries with an evidence text that got no span."""
        missing = self.report.filter(pl.col("doc_id").is_null())
        return missing["query_id"].unique().sort().to_list()

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and the evidence texts without a span as plain data."""
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
    r"""Find the evidence texts of gold in the documents and add their spans to gold.

    Each text is searched for in three ways; the first that finds it is used. All three searches
    are exhaustive.

    1. "exact": character by character.
    2. "white space": ignoring all white space.
    3. "fuzzy": by similarity, in lower case and with white space collapsed. The similarity is
       2 × the length of the longest common subsequence / the sum of both lengths.

    A text that is found at several positions is ambiguous. It gets no span, since nothing shows
    which position is meant. A warning is shown if texts are ambiguous or not found.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        Gold with evidence texts.
    corpus : path, table or dict
        The documents, such as a folder of texts or {doc_id: text}.
    threshold : float, default 0.9
        The minimum similarity of the fuzzy search, above 0 and at most 1.

    Returns
    -------
    Location
        Gold with the spans, and the outcome for each evidence text.

    Examples
    --------
    >>> gold = [{"query_id": "q", "evidence": ["paid in 14 days"]}]
    >>> locate(gold, {"faq": "It is paid in\n14 days."}).report.row(0)[2:]
    ('white space', 1.0, 1, 'faq', 6, 21)
    """
    gold, corpus = Gold.open(gold), Corpus.open(corpus)
    _check_input(gold, threshold)
    if gold.offsets != "codepoint":  # the search returns code points
        gold = gold.in_code_points(corpus)
    assert gold.evidence is not None
    texts = gold.evidence.select("query_id", evidence="text").unique().sort("query_id", "evidence")
    positions = _find_positions(texts["evidence"].unique().sort(), corpus, threshold)
    report = _report(texts, positions)
    ambiguous = report.filter(outcome=AMBIGUOUS).select("query_id", "evidence")
    places = ambiguous.join(positions.drop("outcome"), on="evidence", maintain_order="left_right")
    location = Location(_with_spans(gold, report, corpus), report, places)
    _warn_of_missing_spans(location)
    return location


@dataclass(frozen=True)
class MissingTexts:
    """Texts that were not found in the documents.

    `similar` is whether similar texts were searched for as well. If not, a missing text may differ
    from a text of the documents in a few characters.
    """

    texts: pl.Series
    similar: bool


def missing_texts(texts: pl.Series, corpus: Corpus, threshold: float = 0.9) -> MissingTexts:
    """Return the texts that `locate` does not find; blank texts are left out.

    The search for similar texts is skipped if it would take long.
    """
    missing = texts.filter(pl.Series([bool(dense(text)) for text in texts], dtype=pl.Boolean))
    missing = missing.unique().sort()
    for search in (_find_exact, _find_without_white_space, _find_similar):
        if search is _find_similar and _similar_work(missing, corpus) > _MAX_SIMILAR_WORK:
            return MissingTexts(missing, similar=False)
        if not missing.is_empty():
            found = search(missing, corpus, threshold)["evidence"]
            missing = missing.filter(~missing.is_in(found.implode()))
    return MissingTexts(missing, similar=True)


def _similar_work(texts: pl.Series, corpus: Corpus) -> int:
    return texts.len() * int(corpus.documents["text"].str.len_chars().sum())


def _check_input(gold: Gold, threshold: float) -> None:
    if not (isinstance(threshold, (int, float)) and 0 < threshold <= 1):
        raise InputError(
            f"the threshold must be a number above 0 and at most 1, got {threshold!r}",
            field="threshold",
            hint="pass a similarity such as 0.9",
        )
    if gold.evidence is None or not gold.evidence.height:
        raise InputError(
            "gold has no evidence texts to locate",
            field="evidence",
            hint='add the texts that should be found: {"query_id": "q1", "evidence": ["…"]}',
        )


def _find_positions(texts: pl.Series, corpus: Corpus, threshold: float) -> pl.DataFrame:
    """Return all positions of each text, from the first search that finds it."""
    left = texts.filter(pl.Series([bool(dense(text)) for text in texts], dtype=pl.Boolean))
    searches = (_find_exact, _find_without_white_space, _find_similar)
    parts = [pl.DataFrame(schema={**_POSITIONS, "outcome": pl.String})]
    for outcome, search in zip(FOUND, searches, strict=True):
        if left.is_empty():
            break
        positions = search(left, corpus, threshold).with_columns(outcome=pl.lit(outcome))
        left = left.filter(~left.is_in(positions["evidence"].implode()))
        parts.append(positions)
    return pl.concat(parts).sort("evidence", "doc_id", "start", "end")


def _find_exact(texts: pl.Series, corpus: Corpus, _: float) -> pl.DataFrame:
    positions = occurrences(texts, corpus.documents["text"])
    return positions.select(
        evidence="text",
        doc_id=corpus.doc_ids.gather(positions["document"]),
        start="start",
        end="end",
        ratio=pl.lit(1.0),
    )


def _find_without_white_space(texts: pl.Series, corpus: Corpus, _: float) -> pl.DataFrame:
    dense_texts = pl.DataFrame({"evidence": texts, "text": [dense(text) for text in texts]})
    documents = [DenseText(text) for text in corpus.documents["text"]]
    dense_documents = pl.Series([document.dense for document in documents], dtype=pl.String)
    positions = occurrences(dense_texts["text"].unique(), dense_documents)
    positions = positions.join(dense_texts, on="text")
    rows = [
        (evidence, corpus.doc_ids[document], *documents[document].original_span(start, end), 1.0)
        for evidence, document, start, end in positions.select(
            "evidence", "document", "start", "end"
        ).iter_rows()
    ]
    return pl.DataFrame(rows, _POSITIONS, orient="row")


def _find_similar(texts: pl.Series, corpus: Corpus, threshold: float) -> pl.DataFrame:
    documents = SimilarTexts(corpus.documents["text"])
    rows = [
        (text, corpus.doc_ids[place.document], place.start, place.end, place.ratio)
        for text in tracked(texts, "searching for similar texts", texts.len())
        for place in documents.find(text, threshold)
    ]
    return pl.DataFrame(rows, _POSITIONS, orient="row")


def _report(texts: pl.DataFrame, positions: pl.DataFrame) -> pl.DataFrame:
    is_unique = pl.len() == 1
    outcomes = positions.group_by("evidence").agg(
        outcome=pl.when(is_unique).then(pl.col("outcome").first()).otherwise(pl.lit(AMBIGUOUS)),
        ratio=pl.col("ratio").max(),
        places=pl.len().cast(pl.Int64),
        **{
            name: pl.when(is_unique).then(pl.col(name).first()).otherwise(None)
            for name in ("doc_id", "start", "end")
        },
    )
    return texts.join(outcomes, on="evidence", how="left", maintain_order="left").with_columns(
        pl.col("outcome").fill_null(NOT_FOUND), pl.col("places").fill_null(0)
    )


def _with_spans(gold: Gold, report: pl.DataFrame, corpus: Corpus) -> Gold:
    """Return gold with the new spans added to its existing spans."""
    existing = NO_SPANS if gold.spans is None else gold.spans
    columns = ["query_id", "doc_id", "start", "end"]
    found = report.drop_nulls("doc_id").select(columns).unique(maintain_order=True)
    new = found.join(existing, on=columns, how="anti", maintain_order="left")
    texts = [corpus[doc_id][start:end] for _, doc_id, start, end in new.iter_rows()]
    new = new.with_columns(pl.Series("text", texts, pl.String), grade=pl.lit(1, pl.Int64))
    return replace(
        gold,
        query_data=gold.queries,
        spans=pl.concat([existing, new.select(list(SPANS))]),
        empty_spans=sorted(set(gold.empty_spans) - set(found["query_id"])),
        offsets="codepoint",
        recognised={},
    )


def _warn_of_missing_spans(location: Location) -> None:
    if not location.incomplete:
        return
    parts = []
    for outcome, words in ((AMBIGUOUS, "found at several positions"), (NOT_FOUND, "not found")):
        rows = location.report.filter(outcome=outcome)
        if rows.height:
            query, text = rows.row(0)[:2]
            share = f"{rows.height:,} of {counted(location.report.height, 'evidence text')}"
            example = f"for example {_short(text)!r} of query {query!r}"
            parts.append(f"{share} {'was' if rows.height == 1 else 'were'} {words}, {example}")
    warn(
        f"{'; '.join(parts)}. The spans of {counted(len(location.incomplete), 'query')} are "
        "incomplete, so recall would be based on only some of the evidence: add the missing "
        "spans, or remove these queries",
        stacklevel=3,
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHORT_LENGTH else f"{text[:_SHORT_LENGTH]}…"
