"""Everything that is known of single queries: texts, calculations, matches, highlights."""

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
from karat.match.highlights import DocumentMarks, DocumentPiece, limited, pieces
from karat.match.spans import GOLD_SPANS
from karat.match.usage_table import UsageTable, prices_of
from karat.measures.families import EVIDENCE
from karat.report.page.model import Json
from karat.report.page.ranked_lists import LABEL_LENGTH, ScoredLists

MAX_LISTED = 50
"""How many items are kept of an ideal list, and of what a list misses."""


def details(
    scores: Sequence[Scores],
    runs: Sequence[ScoredLists | None],
    queries: pl.DataFrame,
    numbers: Sequence[int],
) -> dict[int, Json]:
    """Return what is known of some queries, by their numbers.

    `queries` has one row per query: its id, its text if it has one, its fields as text.
    """
    shown = next(run for run in runs if run is not None)
    texts, spans = DocumentTexts.of(shown.opened), _gold_spans(shown, numbers)
    evidence = evidence_texts(shown.opened, numbers)
    results = [{} if run is None else results_of(run, numbers, texts) for run in runs]
    of_runs = [
        {} if run is None else _run_details(score, run, queries["query_id"], numbers)
        for score, run in zip(scores, runs, strict=True)
    ]
    by_number = {}
    for number, row in zip(numbers, queries[numbers].iter_rows(named=True), strict=True):
        known = {name: value for name, value in row.items() if value is not None}
        wanted = spans.get(number, [])
        listed = [each.get(number, []) for each in results]
        by_number[number] = {
            "text": known.get("text"),
            "fields": {n: v for n, v in known.items() if n not in ("query_id", "text")},
            "spans": [_with_length(span | {"text": texts.text(span)}) for span in wanted],
            "evidence": evidence[number],
            "runs": [
                _EMPTY_RUN_DETAIL
                | each.get(number, {})
                | {"results": list(map(_with_length, items))}
                for each, items in zip(of_runs, listed, strict=True)
            ],
            "documents": documents(wanted, listed, texts),
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


def _with_length(placed: Row) -> Json:
    """Keep the beginning of a long text, and how long it is."""
    text = placed["text"]
    if text is None:
        return placed | {"length": None}
    return placed | {"text": text[:MAX_TEXT], "length": len(text)}


def _gold_spans(shown: ScoredLists, numbers: Sequence[int]) -> dict[int, list[Row]]:
    """Return the spans that should be found, if they and the run are counted in one way."""
    gold, run = shown.opened.gold, shown.opened.run
    wanted: dict[int, list[Row]] = {}
    if gold.spans is None or {gold.offsets, run.offsets} != {"codepoint"}:
        return wanted
    whose = query_numbers(gold.query_ids, gold.spans["query_id"])
    spans = gold.spans.with_columns(query=whose).filter(GOLD_SPANS, pl.col("query").is_in(numbers))
    columns = ("query", "doc_id", "start", "end", "text")
    for row in spans.select(columns).sort(columns).iter_rows(named=True):
        wanted.setdefault(row.pop("query"), []).append(row)
    return wanted


def _run_details(
    score: Scores, shown: ScoredLists, query_ids: pl.Series, numbers: Sequence[int]
) -> dict[int, Json]:
    """Return what a run says of some queries, and how their values are calculated."""
    ids = query_ids[numbers]
    run = shown.opened.run.only(ids)
    number_of = dict(zip(ids, numbers, strict=True))
    details: dict[int, Json] = {number: {"calculations": {}} for number in numbers}
    if run.errors is not None:
        for error in run.errors.iter_rows(named=True):
            details[number_of[error.pop("query_id")]]["error"] = error
    if run.timings is not None:
        for query, stage, ms in run.timings.iter_rows():
            spent = details[number_of[query]].setdefault("timings", {})
            spent[stage] = spent.get(stage, 0.0) + ms
    if run.calls is not None:
        calls = UsageTable.of(ids, run, run.calls)
        priced = calls.table.with_columns(usd=pl.Series(prices_of(calls), nan_to_null=True))
        columns = ("stage", "model", "prompt_tokens", "completion_tokens", "usd")
        for at, call in zip(calls.places.query, priced.select(columns).to_dicts(), strict=True):
            details[numbers[at]].setdefault("calls", []).append(call)
    readings = shown.opened.readings
    for (query, measure), calculation in trace(score, run, ids, score.table.measures):
        number = number_of[query]
        plain = details[number]["calculations"][measure.name] = _calculation_json(calculation)
        if not measure.declaration.reads.compares_texts:
            continue
        found = readings[EVIDENCE.name].data_as(EvidenceMatches)
        if found.ids is None:
            for row in plain["rows"]:
                row["item"] = row["item"][:LABEL_LENGTH]
        if "matches" not in details[number]:
            matches = [match_detail(match, found, number) for match in calculation.matches]
            details[number]["matches"] = matches
    return details


def _calculation_json(calculation: Calculation) -> Json:
    """Return a calculation as data, of a long list only what is shown."""
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
    """What documents say, as far as that is known beside the run itself."""

    corpus: Corpus | None
    chunks: Chunks | None
    _by_document: dict[str, DocumentMarks] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, opened: LoadedRun) -> DocumentTexts:
        """Take the documents and the chunks that a run was scored with."""
        return cls(opened.session.corpus, opened.plan.chunks)

    def length(self, document: str) -> int | None:
        """Return how long a document is, where all of it is known."""
        if self.corpus is None or document not in self.corpus:
            return None
        return len(self.corpus[document])

    def known(self, document: str) -> DocumentMarks:
        """Return what is known of the text of a document."""
        if document not in self._by_document:
            self._by_document[document] = DocumentMarks().joined(self._parts(document))
        return self._by_document[document]

    def _parts(self, document: str) -> list[tuple[int, str]]:
        if self.corpus is not None and document in self.corpus:
            return [(0, self.corpus[document])]
        if self.chunks is None or "text" not in self.chunks.frame.columns:
            return []
        begin, end = (self._sorted["doc_id"].search_sorted(document, side) for side in _SIDES)
        return text_parts(self._sorted[begin:end].iter_rows(named=True))

    @cached_property
    def _sorted(self) -> pl.DataFrame:
        """All chunks in the order of their documents: none is looked for among all of them."""
        assert self.chunks is not None
        return self.chunks.frame.drop_nulls("doc_id").sort("doc_id", maintain_order=True)

    def text(self, placed: Row) -> str | None:
        """Return the text of an item or a span: its own, what stands in its place, or all."""
        if placed["text"] is not None:
            own: str = placed["text"]
            return own
        if placed["start"] is not None:
            return self.known(placed["doc_id"]).text(placed["start"], placed["end"])
        whole = placed["doc_id"] or placed["item"]
        return self.corpus[whole] if self.corpus is not None and whole in self.corpus else None


def text_parts(placed: Iterable[Row]) -> list[tuple[int, str]]:
    """Return the start and the text of what is placed, where its text fills its place."""
    return [
        (each["start"], each["text"])
        for each in placed
        if each["text"]
        and each["start"] is not None
        and len(each["text"]) == each["end"] - each["start"]
    ]


def results_of(
    run: ScoredLists, numbers: Sequence[int], texts: DocumentTexts
) -> dict[int, list[Row]]:
    """Return the items of some queries that are shown: rank, item, score, place and text."""
    places = run.places.filter(pl.col("query").is_in(numbers))
    items = run.opened.run.results[places["row"].to_numpy()]
    items = fill_from_chunks(items, texts.chunks, "doc_id", "start", "end", "text")
    lacking = [
        pl.lit(None, kind).alias(name) for name, kind in _COLUMNS.items() if name not in items
    ]
    items = items.with_columns(lacking).select(*_COLUMNS)
    listed: dict[int, list[Row]] = {}
    rows = zip(
        places.select("query", "rank", "label").iter_rows(),
        items.iter_rows(named=True),
        strict=True,
    )
    for (query, rank, label), known in rows:
        item = {"rank": rank, "item": label} | known
        listed.setdefault(query, []).append(item | {"text": texts.text(item)})
    return listed


CONTEXT_LENGTH = 300
"""How many characters are shown before and after what matches."""
MAX_TEXT = 2000
"""How many characters are kept of a text: an item, a span, what matches or comes nearest."""


def evidence_texts(opened: LoadedRun, numbers: Sequence[int]) -> dict[int, list[str]]:
    """Return the evidence of some queries, in the order in which it is numbered."""
    texts: dict[int, list[str]] = {number: [] for number in numbers}
    if EVIDENCE.name in opened.readings:
        found = opened.readings[EVIDENCE.name].data_as(EvidenceMatches)
        counted = found.covering.counted
        whose = found.evidence.query[counted]
        for at in np.flatnonzero(np.isin(whose, numbers)).tolist():
            texts[int(whose[at])].append(found.evidence.text[counted[at]])
    return texts


def match_detail(match: Row, found: EvidenceMatches, query: int) -> Json:
    """Return what covers an evidence, with what stands around it, or what comes nearest."""
    shown = {name: match[name] for name in ("evidence", "rank", "how", "ratio")}
    nearest = {"nearest_rank": match["nearest_rank"], "nearest_ratio": match["nearest_ratio"]}
    none = dict.fromkeys(("item", "before", "stretch", "after", "nearest_item", "nearest_text"))
    if match["rank"] is not None:
        text = _item_text(found, query, match["rank"])
        whole = (0, len(text))  # where a function decides, nobody knows what it went by
        start, end = whole if match["start"] is None else (match["start"], match["end"])
        around = {
            "item": _item_name(match["item_id"], text),
            "before": text[max(0, start - CONTEXT_LENGTH) : start],
            "stretch": text[start:end][:MAX_TEXT],
            "after": text[end : end + CONTEXT_LENGTH],
        }
    elif match["nearest_rank"] is not None:
        text = _item_text(found, query, match["nearest_rank"])
        named = _item_name(match["nearest_item_id"], text)
        around = {"nearest_item": named, "nearest_text": text[:MAX_TEXT]}
    else:
        around = {}
    return shown | nearest | none | around


def _item_text(found: EvidenceMatches, query: int, rank: int) -> str:
    """Return the text that a query has at a rank; all its items stand in a row."""
    return found.items.text[int(np.searchsorted(found.items.query, query)) + rank - 1]


def _item_name(item_id: str | None, text: str) -> str:
    return " ".join(text.split())[:LABEL_LENGTH] if item_id is None else item_id


MAX_DOCUMENTS = 10
MAX_WITHOUT_GOLD = 5


def documents(
    spans: Sequence[Row], runs: Sequence[Sequence[Row]], texts: DocumentTexts
) -> list[Json]:
    """Cut the documents of a query into pieces; there are none where gold has no spans.

    `spans` and the items of each run hold doc_id, start, end and perhaps text. Documents with gold
    come first, then those that rank highest in any run.
    """
    if not spans:
        return []
    placed = [[item for item in items if item["start"] is not None] for items in runs]
    chosen = _choose_documents(spans, placed)
    cut = limited([_document_pieces(document, spans, placed, texts) for document in chosen])
    return [
        {
            "doc_id": document,
            "length": texts.length(document),
            "pieces": [dict(vars(piece)) for piece in shown],
        }
        for document, shown in zip(chosen, cut, strict=True)
    ]


def _choose_documents(spans: Sequence[Row], placed: Sequence[Sequence[Row]]) -> list[str]:
    wanted = list(dict.fromkeys(span["doc_id"] for span in spans))[:MAX_DOCUMENTS]
    best: dict[str, int] = {}
    for items in placed:
        for item in items:
            best[item["doc_id"]] = min(item["rank"], best.get(item["doc_id"], item["rank"]))
    others = sorted(best.keys() - set(wanted), key=lambda document: (best[document], document))
    return [*wanted, *others[:MAX_WITHOUT_GOLD]][:MAX_DOCUMENTS]


def _document_pieces(
    document: str, spans: Sequence[Row], placed: Sequence[Sequence[Row]], texts: DocumentTexts
) -> list[DocumentPiece]:
    own = [span for span in spans if span["doc_id"] == document]
    items = [[item for item in run if item["doc_id"] == document] for run in placed]
    known = texts.known(document).joined(
        text_parts([*own, *(item for run in items for item in run)])
    )
    return pieces(
        [(span["start"], span["end"]) for span in own],
        [[(item["rank"], item["start"], item["end"]) for item in run] for run in items],
        known,
        texts.length(document),
    )
