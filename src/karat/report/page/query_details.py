"""The details of single queries: texts, calculations, evidence matches, highlighted documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from karat.evaluation.calculation import TOP, Calculation, trace
from karat.evaluation.list_rows import Row
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.scores import Scores
from karat.match.align import fill_from_chunks, query_numbers
from karat.match.evidence import EvidenceMatches
from karat.match.highlights import DocumentPart, KnownText, limit_text, mark_document
from karat.match.spans import GOLD_SPANS
from karat.match.usage_table import UsageTable, prices_of
from karat.measures.families import EVIDENCE
from karat.report.page.model import Json
from karat.report.page.ranked_lists import LABEL_LENGTH, ScoredLists

MAX_LISTED = 50
"""How many items are kept of an ideal list, and of the missed items."""


def details(
    scores: Sequence[Scores],
    runs: Sequence[ScoredLists | None],
    queries: pl.DataFrame,
    numbers: Sequence[int],
) -> dict[int, Json]:
    """Return the details of some queries, by row number.

    `queries` has one row per query: its id, its text if it has one, its fields as text.
    """
    first_run = next(run for run in runs if run is not None)
    texts, spans = DocumentTexts.of(first_run.opened), _gold_spans(first_run, numbers)
    evidence = evidence_texts(first_run.opened, numbers)
    results = [{} if run is None else results_of(run, numbers, texts) for run in runs]
    run_details = [
        {} if run is None else _run_details(score, run, queries["query_id"], numbers)
        for score, run in zip(scores, runs, strict=True)
    ]
    by_number = {}
    for number, row in zip(numbers, queries[numbers].iter_rows(named=True), strict=True):
        fields = {name: value for name, value in row.items() if value is not None}
        gold_spans = spans.get(number, [])
        lists = [run_results.get(number, []) for run_results in results]
        by_number[number] = {
            "text": fields.pop("text", None),
            "fields": {name: value for name, value in fields.items() if name != "query_id"},
            "spans": [_with_length(span | {"text": texts.text(span)}) for span in gold_spans],
            "evidence": evidence[number],
            "runs": [
                _EMPTY_RUN_DETAIL
                | detail.get(number, {})
                | {"results": list(map(_with_length, items))}
                for detail, items in zip(run_details, lists, strict=True)
            ],
            "documents": documents(gold_spans, lists, texts),
        }
    return by_number


_EMPTY_RUN_DETAIL: Json = {
    "error": None,
    "timings": None,
    "calls": None,
    "results": [],
    "calculations": {},
    "matches": [],
}


def _with_length(item: Row) -> Json:
    """Return an item or span with a long text cut, and with the length of the whole text."""
    text = item["text"]
    if text is None:
        return item | {"length": None}
    return item | {"text": text[:MAX_TEXT], "length": len(text)}


def _gold_spans(lists: ScoredLists, numbers: Sequence[int]) -> dict[int, list[Row]]:
    """Return the gold spans by query, if gold and run both count offsets in code points."""
    gold, run = lists.opened.gold, lists.opened.run
    spans_by_query: dict[int, list[Row]] = {}
    if gold.spans is None or {gold.offsets, run.offsets} != {"codepoint"}:
        return spans_by_query
    query = query_numbers(gold.query_ids, gold.spans["query_id"])
    spans = gold.spans.with_columns(query=query).filter(GOLD_SPANS, pl.col("query").is_in(numbers))
    columns = ("query", "doc_id", "start", "end", "text")
    for row in spans.select(columns).sort(columns).iter_rows(named=True):
        spans_by_query.setdefault(row.pop("query"), []).append(row)
    return spans_by_query


def _run_details(
    score: Scores, lists: ScoredLists, query_ids: pl.Series, numbers: Sequence[int]
) -> dict[int, Json]:
    """Return the errors, timings, calls and calculations of some queries in a run."""
    ids = query_ids[numbers]
    run = lists.opened.run.only(ids)
    number_of = dict(zip(ids, numbers, strict=True))
    details: dict[int, Json] = {number: {"calculations": {}} for number in numbers}
    if run.errors is not None:
        for error in run.errors.iter_rows(named=True):
            details[number_of[error.pop("query_id")]]["error"] = error
    if run.timings is not None:
        for query, stage, ms in run.timings.iter_rows():
            timings = details[number_of[query]].setdefault("timings", {})
            timings[stage] = timings.get(stage, 0.0) + ms
    if run.calls is not None:
        calls = UsageTable.of(ids, run, run.calls)
        priced = calls.table.with_columns(usd=pl.Series(prices_of(calls), nan_to_null=True))
        columns = ("stage", "model", "prompt_tokens", "completion_tokens", "usd")
        for at, call in zip(calls.rows.query, priced.select(columns).to_dicts(), strict=True):
            details[numbers[at]].setdefault("calls", []).append(call)
    readings = lists.opened.readings
    for (query, measure), calculation in trace(score, run, ids, score.table.measures):
        number = number_of[query]
        detail = _calculation_json(calculation)
        details[number]["calculations"][measure.name] = detail
        if not measure.declaration.reads.compares_texts:
            continue
        evidence = readings[EVIDENCE.name].data_as(EvidenceMatches)
        if evidence.ids is None:
            for row in detail["rows"]:
                row["item"] = row["item"][:LABEL_LENGTH]
        if "matches" not in details[number]:
            matches = [match_detail(match, evidence, number) for match in calculation.matches]
            details[number]["matches"] = matches
    return details


def _calculation_json(calculation: Calculation) -> Json:
    """Return a calculation as JSON; of a long list, only the rows that are shown."""
    top = [rank for rank in calculation.counted if rank <= TOP]
    return {
        "value": calculation.value,
        "columns": calculation.columns,
        "rows": calculation.picked,
        "counted": [*top, *calculation.counted_below],
        "ideal": calculation.ideal[:MAX_LISTED],
        "missed": calculation.missed[:MAX_LISTED],
        "n_ideal": len(calculation.ideal),
        "n_missed": len(calculation.missed),
        "numbers": calculation.numbers,
        "remarks": calculation.remarks,
    }


_COLUMNS = {
    "score": pl.Float64,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
}

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True)
class DocumentTexts:
    """The texts of documents, as far as a corpus or a chunk table provides them."""

    corpus: Corpus | None
    chunks: Chunks | None
    _by_document: dict[str, KnownText] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, opened: LoadedRun) -> DocumentTexts:
        """Return the texts of the corpus and the chunks that a run was scored with."""
        return cls(opened.session.corpus, opened.plan.chunks)

    def length(self, document: str) -> int | None:
        """Return the length of a document, or None if its whole text is unknown."""
        if self.corpus is None or document not in self.corpus:
            return None
        return len(self.corpus[document])

    def known(self, document: str) -> KnownText:
        """Return the known parts of the text of a document."""
        if document not in self._by_document:
            self._by_document[document] = KnownText().joined(self._parts(document))
        return self._by_document[document]

    def _parts(self, document: str) -> list[tuple[int, str]]:
        if self.corpus is not None and document in self.corpus:
            return [(0, self.corpus[document])]
        if self.chunks is None or "text" not in self.chunks.frame.columns:
            return []
        doc_ids = self._chunks_by_document["doc_id"]
        begin, end = (doc_ids.search_sorted(document, side) for side in _SIDES)
        return text_parts(self._chunks_by_document[begin:end].iter_rows(named=True))

    @cached_property
    def _chunks_by_document(self) -> pl.DataFrame:
        """All chunks, sorted by document for binary search."""
        assert self.chunks is not None
        return self.chunks.frame.drop_nulls("doc_id").sort("doc_id", maintain_order=True)

    def text(self, item: Row) -> str | None:
        """Return the text of an item or span: its own, that of its offsets, or the document."""
        if item["text"] is not None:
            own_text: str = item["text"]
            return own_text
        if item["start"] is not None:
            return self.known(item["doc_id"]).text(item["start"], item["end"])
        document = item["doc_id"] or item["item"]
        if self.corpus is None or document not in self.corpus:
            return None
        return self.corpus[document]


def text_parts(items: Iterable[Row]) -> list[tuple[int, str]]:
    """Return start and text of the items whose text is as long as their offsets say."""
    return [
        (item["start"], item["text"])
        for item in items
        if item["text"]
        and item["start"] is not None
        and len(item["text"]) == item["end"] - item["start"]
    ]


def results_of(
    run: ScoredLists, numbers: Sequence[int], texts: DocumentTexts
) -> dict[int, list[Row]]:
    """Return the shown items of some queries: rank, item, score, offsets and text."""
    places = run.places.filter(pl.col("query").is_in(numbers))
    items = run.opened.run.results[places["row"].to_numpy()]
    items = fill_from_chunks(items, texts.chunks, "doc_id", "start", "end", "text")
    missing_columns = [
        pl.lit(None, dtype).alias(name) for name, dtype in _COLUMNS.items() if name not in items
    ]
    items = items.with_columns(missing_columns).select(*_COLUMNS)
    results: dict[int, list[Row]] = {}
    rows = zip(
        places.select("query", "rank", "label").iter_rows(),
        items.iter_rows(named=True),
        strict=True,
    )
    for (query, rank, label), columns in rows:
        item = {"rank": rank, "item": label} | columns
        results.setdefault(query, []).append(item | {"text": texts.text(item)})
    return results


CONTEXT_LENGTH = 300
"""How many characters are shown before and after a match."""
MAX_TEXT = 2000
"""How many characters are kept of the text of an item, a span or a match."""


def evidence_texts(opened: LoadedRun, numbers: Sequence[int]) -> dict[int, list[str]]:
    """Return the evidence texts of some queries, in the order of their numbers."""
    texts: dict[int, list[str]] = {number: [] for number in numbers}
    if EVIDENCE.name in opened.readings:
        matches = opened.readings[EVIDENCE.name].data_as(EvidenceMatches)
        counted = matches.covering.counted
        query = matches.evidence.query[counted]
        for at in np.flatnonzero(np.isin(query, numbers)).tolist():
            texts[int(query[at])].append(matches.evidence.text[counted[at]])
    return texts


def match_detail(match: Row, evidence: EvidenceMatches, query: int) -> Json:
    """Return the match of an evidence text with its context, or else the nearest item."""
    result = {name: match[name] for name in ("evidence", "rank", "how", "ratio")}
    nearest = {"nearest_rank": match["nearest_rank"], "nearest_ratio": match["nearest_ratio"]}
    none = dict.fromkeys(("item", "before", "stretch", "after", "nearest_item", "nearest_text"))
    if match["rank"] is not None:
        text = _item_text(evidence, query, match["rank"])
        start, end = match["start"], match["end"]
        if start is None:  # a user-defined matcher does not say where in the text it matched
            start, end = 0, len(text)
        context = {
            "item": _item_name(match["item_id"], text),
            "before": text[max(0, start - CONTEXT_LENGTH) : start],
            "stretch": text[start:end][:MAX_TEXT],
            "after": text[end : end + CONTEXT_LENGTH],
        }
    elif match["nearest_rank"] is not None:
        text = _item_text(evidence, query, match["nearest_rank"])
        name = _item_name(match["nearest_item_id"], text)
        context = {"nearest_item": name, "nearest_text": text[:MAX_TEXT]}
    else:
        context = {}
    return result | nearest | none | context


def _item_text(evidence: EvidenceMatches, query: int, rank: int) -> str:
    """Return the text at a rank; the items of a query are consecutive, in rank order."""
    first = int(np.searchsorted(evidence.items.query, query))
    return evidence.items.text[first + rank - 1]


def _item_name(item_id: str | None, text: str) -> str:
    return " ".join(text.split())[:LABEL_LENGTH] if item_id is None else item_id


MAX_DOCUMENTS = 10
MAX_WITHOUT_GOLD = 5


def documents(
    spans: Sequence[Row], runs: Sequence[Sequence[Row]], texts: DocumentTexts
) -> list[Json]:
    """Return the documents of a query in pieces, for highlighting; empty without gold spans.

    `spans` and the items of each run have doc_id, start, end and possibly text. Documents with gold
    come first, then those that rank highest in any run.
    """
    if not spans:
        return []
    lists = [[item for item in items if item["start"] is not None] for items in runs]
    doc_ids = _choose_documents(spans, lists)
    cut = limit_text([_document_pieces(document, spans, lists, texts) for document in doc_ids])
    return [
        {
            "doc_id": document,
            "length": texts.length(document),
            "pieces": [dict(vars(piece)) for piece in document_pieces],
        }
        for document, document_pieces in zip(doc_ids, cut, strict=True)
    ]


def _choose_documents(spans: Sequence[Row], lists: Sequence[Sequence[Row]]) -> list[str]:
    with_gold = list(dict.fromkeys(span["doc_id"] for span in spans))[:MAX_DOCUMENTS]
    best: dict[str, int] = {}
    for items in lists:
        for item in items:
            best[item["doc_id"]] = min(item["rank"], best.get(item["doc_id"], item["rank"]))
    by_rank = sorted(best.keys() - set(with_gold), key=lambda document: (best[document], document))
    return [*with_gold, *by_rank[:MAX_WITHOUT_GOLD]][:MAX_DOCUMENTS]


def _document_pieces(
    document: str, spans: Sequence[Row], lists: Sequence[Sequence[Row]], texts: DocumentTexts
) -> list[DocumentPart]:
    gold_spans = [span for span in spans if span["doc_id"] == document]
    items = [[item for item in run if item["doc_id"] == document] for run in lists]
    known = texts.known(document).joined(
        text_parts([*gold_spans, *(item for run in items for item in run)])
    )
    return mark_document(
        [(span["start"], span["end"]) for span in gold_spans],
        [[(item["rank"], item["start"], item["end"]) for item in run] for run in items],
        known,
        texts.length(document),
    )
