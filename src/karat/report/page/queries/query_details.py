"""The details of single queries: texts, calculations, evidence matches, highlighted documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from karat.data.frames import ANSWERS
from karat.data.run import Run
from karat.evaluation.calculation import TOP, trace
from karat.evaluation.calculation import Calculation as Traced
from karat.evaluation.list_rows import Row
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.scores import Scores
from karat.match.align import fill_from_chunks, query_numbers
from karat.match.evidence import EvidenceMatches
from karat.match.gold_index import GOLD_SPANS
from karat.match.highlights import DocumentPart, limit_text, mark_document
from karat.match.usage_table import UsageTable, prices_of
from karat.measures.families import EVIDENCE
from karat.report.page.data import (
    DocumentPiece,
    EvidenceMatch,
    HighlightedDocument,
    ListedResult,
    ModelCall,
    QueryDetail,
    QueryFailure,
    RunDetail,
    ShownCalculation,
    Stretch,
)
from karat.report.page.queries.document_texts import ChunkTexts, DocumentTexts, text_parts
from karat.report.page.queries.ranked_lists import LABEL_LENGTH, ScoredLists

MAX_LISTED = 50
"""How many items are kept of an ideal list, and of the missed items."""
MAX_TEXT = 2000
"""How many characters are kept of the text of an item."""
CONTEXT_LENGTH = 300
"""How many characters are shown before and after a match."""
MAX_DOCUMENTS = 10
MIN_SHARED = 16
"""Shorter pieces of a document are stored as text: that is smaller than where to find it."""


def details(
    scores: Sequence[Scores],
    runs: Sequence[ScoredLists | None],
    queries: pl.DataFrame,
    numbers: Sequence[int],
) -> tuple[dict[int, QueryDetail], list[str]]:
    """Return the details of some queries by row number, and the texts that they refer to.

    `queries` has one row per query: its id, its text if it has one, its fields as text.
    """
    first_run = next(run for run in runs if run is not None)
    texts, spans = DocumentTexts.of(first_run.opened), _gold_spans(first_run, numbers)
    evidence = evidence_texts(first_run.opened, numbers)
    results = [{} if run is None else results_of(run, numbers, texts) for run in runs]
    used = [
        {} if run is None else _run_details(score, run, queries["query_id"], numbers)
        for score, run in zip(scores, runs, strict=True)
    ]
    chunks = ChunkTexts()
    by_number = {}
    for number, row in zip(numbers, queries[numbers].iter_rows(named=True), strict=True):
        fields = {name: value for name, value in row.items() if value is not None}
        answers = {name: fields.pop(name) for name in list(fields) if name.lower() in ANSWERS}
        gold_spans = spans.get(number, [])
        lists = [run_results.get(number, []) for run_results in results]
        by_number[number] = QueryDetail(
            text=fields.pop("text", None),
            fields={name: value for name, value in fields.items() if name != "query_id"},
            answers=answers,
            evidence=evidence[number],
            runs=[
                _run_detail(
                    run_details.get(number, {}), items, gold_spans, evidence[number], chunks
                )
                for run_details, items in zip(used, lists, strict=True)
            ],
            documents=documents(gold_spans, lists, texts, chunks),
        )
    return by_number, chunks.all


def _run_detail(
    known: dict[str, Any],
    items: Sequence[Row],
    spans: Sequence[Row],
    evidence: Sequence[str],
    chunks: ChunkTexts,
) -> RunDetail:
    """Return what a run did with a query, with its texts replaced by their numbers."""
    matches = [match_detail(match, evidence, chunks) for match in known.pop("matches", [])]
    found = [match.stretch for match in matches if match.covered and match.stretch is not None]
    return RunDetail(
        **known,
        results=[_result(item, spans, found, chunks) for item in items],
        matches=matches,
    )


def _result(
    item: Row, spans: Sequence[Row], found: Sequence[Stretch], chunks: ChunkTexts
) -> ListedResult:
    """Return an item with its text cut, and with the gold in it."""
    text = item["text"]
    number = None if text is None else chunks.number(text[:MAX_TEXT])
    gold = [(stretch.start, stretch.end) for stretch in found if stretch.text == number]
    if text is not None and item["start"] is not None and text_parts([item]):
        gold += [
            (span["start"] - item["start"], span["end"] - item["start"])
            for span in spans
            if span["doc_id"] == item["doc_id"]
        ]
    return ListedResult(
        rank=item["rank"],
        score=item["score"],
        doc_id=item["doc_id"],
        start=item["start"],
        end=item["end"],
        text=number,
        length=None if text is None else len(text),
        gold=_joined(gold, 0 if text is None else min(len(text), MAX_TEXT)),
    )


def _joined(stretches: Sequence[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return the union of stretches, as far as it is inside a text of this length."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start), min(end, length)) for start, end in stretches):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


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
) -> dict[int, dict[str, Any]]:
    """Return by query what a `RunDetail` holds, except its results; matches are rows."""
    ids = query_ids[numbers]
    run = lists.opened.run.only(ids)
    number_of = dict(zip(ids, numbers, strict=True))
    recorded = _recorded(run, ids)
    details = {number_of[query]: recorded[query] for query in ids}
    readings = lists.opened.readings
    for (query, measure), traced in trace(score, run, ids, score.table.measures):
        number = number_of[query]
        calculation = _calculation(traced)
        details[number]["calculations"][measure.name] = calculation
        if not measure.declaration.reads.compares_texts:
            continue
        evidence = readings[EVIDENCE.name].data_as(EvidenceMatches)
        if evidence.ids is None:
            for row in calculation.rows:
                row["item"] = row["item"][:LABEL_LENGTH]
        if "matches" not in details[number]:
            details[number]["matches"] = [
                match | {"text": _matched_text(match, evidence, number)} for match in traced.matches
            ]
    return details


def _recorded(run: Run, ids: pl.Series) -> dict[str, dict[str, Any]]:
    """Return by query what a run recorded besides its results."""
    details: dict[str, dict[str, Any]] = {query: {"calculations": {}} for query in ids}
    if run.errors is not None:
        for error in run.errors.iter_rows(named=True):
            failure = QueryFailure(*(error.get(name) for name in ("type", "message", "attempts")))
            details[error["query_id"]]["error"] = failure
    if run.responses is not None:
        for query, response in run.responses.iter_rows():
            details[query]["response"] = response
    if run.timings is not None:
        for query, stage, ms in run.timings.iter_rows():
            timings = details[query].setdefault("timings", {})
            timings[stage] = timings.get(stage, 0.0) + ms
    if run.calls is not None:
        calls = UsageTable.of(ids, run, run.calls)
        priced = calls.table.with_columns(usd=pl.Series(prices_of(calls), nan_to_null=True))
        columns = ("stage", "model", "prompt_tokens", "completion_tokens", "usd")
        for at, call in zip(calls.rows.query, priced.select(columns).iter_rows(), strict=True):
            details[ids[int(at)]].setdefault("calls", []).append(ModelCall(*call))
    return details


def _calculation(traced: Traced) -> ShownCalculation:
    """Return a calculation; of a long list, only the rows that are shown."""
    top = [rank for rank in traced.counted if rank <= TOP]
    return ShownCalculation(
        value=traced.value,
        columns=traced.columns,
        rows=traced.picked,
        counted=[*top, *traced.counted_below],
        ideal=traced.ideal[:MAX_LISTED],
        missed=traced.missed[:MAX_LISTED],
        n_ideal=len(traced.ideal),
        n_missed=len(traced.missed),
        numbers=traced.numbers,
        remarks=traced.remarks,
    )


_COLUMNS = {
    "score": pl.Float64,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
}


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


def _matched_text(match: Row, evidence: EvidenceMatches, query: int) -> str | None:
    """Return the text of the item that covers an evidence text or comes nearest to it."""
    rank = match["nearest_rank"] if match["rank"] is None else match["rank"]
    if rank is None:
        return None
    # The items of a query are consecutive, in rank order.
    first = int(np.searchsorted(evidence.items.query, query))
    text: str = evidence.items.text[first + rank - 1]
    return text


def match_detail(match: Row, evidence: Sequence[str], chunks: ChunkTexts) -> EvidenceMatch:
    """Return what covers an evidence text, or else the nearest item.

    `match` is a row of the table of matches with the text of that item.
    """
    covered = match["rank"] is not None
    prefix = "" if covered else "nearest_"
    text: str | None = match["text"]
    item = match[f"{prefix}item_id"]
    if text is not None and item is None:
        item = " ".join(text.split())[:LABEL_LENGTH]
    return EvidenceMatch(
        evidence=evidence.index(match["evidence"]),
        covered=covered,
        how=match["how"],
        rank=match[f"{prefix}rank"],
        item=item,
        ratio=match[f"{prefix}ratio"],
        stretch=None if text is None else _stretch(match, text, chunks, covered=covered),
    )


def _stretch(match: Row, text: str, chunks: ChunkTexts, *, covered: bool) -> Stretch:
    """Return the part of a text that matches; if the text is cut before it, a part around it."""
    start, end = (match["start"], match["end"]) if covered else (0, 0)
    if start is None:  # a user-defined matcher does not say where in the text it matched
        start, end = 0, len(text)
    first = 0
    if len(text) > MAX_TEXT and end > MAX_TEXT:
        first = max(0, start - CONTEXT_LENGTH)
    part = text[first : first + MAX_TEXT]
    return Stretch(chunks.number(part), start - first, min(end - first, len(part)))


def documents(
    spans: Sequence[Row], runs: Sequence[Sequence[Row]], texts: DocumentTexts, chunks: ChunkTexts
) -> list[HighlightedDocument]:
    """Return the documents with gold in pieces, for highlighting.

    `spans` and the items of each run have doc_id, start, end and possibly text.
    """
    lists = [[item for item in items if item["start"] is not None] for items in runs]
    doc_ids = list(dict.fromkeys(span["doc_id"] for span in spans))[:MAX_DOCUMENTS]
    cut = limit_text([_document_pieces(document, spans, lists, texts) for document in doc_ids])
    return [
        HighlightedDocument(
            document,
            texts.length(document),
            [_piece(part, _known_items(document, lists), chunks) for part in parts],
        )
        for document, parts in zip(doc_ids, cut, strict=True)
    ]


def _known_items(document: str, lists: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the retrieved items of a document whose text and offsets agree."""
    items = [item for items in lists for item in items if item["doc_id"] == document]
    return [item for item in items if text_parts([item])]


def _piece(part: DocumentPart, items: Sequence[Row], chunks: ChunkTexts) -> DocumentPiece:
    """Return a piece; its text is taken from a retrieved item if one has it."""
    text: str | tuple[int, int] | None = part.text
    if part.text is not None and len(part.text) >= MIN_SHARED:
        for item in items:
            offset = part.start - item["start"]
            shown = item["text"][:MAX_TEXT]
            if offset >= 0 and shown[offset : offset + len(part.text)] == part.text:
                text = (chunks.number(shown), offset)
                break
    return DocumentPiece(part.start, part.end, part.gold, list(map(list, part.ranks)), text)


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
