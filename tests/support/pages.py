"""Pages made by hand: small enough to know every value, with hostile texts."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import polars as pl
from msgspec.structs import replace

import karat
from karat.report.comparison import ComparisonSheet
from karat.report.page.data import (
    DocumentPiece,
    EvidenceMatch,
    HighlightedDocument,
    ListedResult,
    ModelCall,
    QueryDetail,
    QueryFailure,
    QueryLists,
    RunDetail,
    ShownCalculation,
    Stretch,
)
from karat.report.page.model import ChartData, Outcomes, Page, Queries
from karat.report.sheet import Sheet

HOSTILE = {
    "<script>window.harm = 1</script>": "a script",
    "</script><img src=x onerror='window.harm = 1'>": "the end of a script",
    '" onmouseover="window.harm = 1': "an attribute",
    "javascript:window.harm = 1": "a link",
    "a\u202eb\u0000c\u2066d\u2028e": "invisible characters",
    "👩‍🚀 &lt; naïve 漢字 ﷺ": "emoji and other scripts",
}
LONG = "x" * 1_000_000
TEXTS = [*HOSTILE, LONG, "How do I get a refund?", "Where is my parcel?", "Is there a phone?"]
IDS = [f"q{number}" for number in range(len(TEXTS) - 1)] + ["z</script>&amp;"]
CATEGORIES = ["billing", "billing", "delivery", "<b>", None] * 2
DOCUMENT = "The refund is paid within 14 days. <i>Shipping</i> takes a week.\r\nCall us \u202enow!"


def a_page(queries: Queries | None = None, measures: tuple[str, ...] = ("nDCG@10", "RR")) -> Page:
    """Return a page of two runs over ten queries: b has last what a has first."""
    sheets = list(_sheets(measures))
    return Page(
        title="made by hand",
        created="2026-01-01T00:00:00Z",
        command=None,
        sheets=sheets,
        groups=[sheet for sheet in sheets if sheet.groups is not None],
        comparison=None,
        verdict=None,
        inputs=[],
        run_settings={},
        findings=[],
        chart_data=ChartData(),
        queries=queries or some_queries(),
    )


@cache
def _sheets(measures: tuple[str, ...]) -> tuple[Sheet, ...]:
    gold = karat.Gold.of({query: {"d1": 2, "d2": 1, "d3": 0} for query in IDS})
    lists = {"a": ["d1", "d9", "d2"], "<b>": ["d9", "d8", "d1"]}
    runs = {
        name: dict.fromkeys(IDS if name == "a" else IDS[:-1], items)
        for name, items in lists.items()
    }
    runs["a"][IDS[0]] = ["d8", "d9"]
    evaluator = karat.Evaluator(gold, list(measures))
    return tuple(Sheet(evaluator(karat.Run.of(run, name=name))) for name, run in runs.items())


def some_queries() -> Queries:
    """Return the data of the ten queries; texts and highlights of the first nine."""
    n = len(IDS)
    return Queries(
        ids=pl.Series("query_id", IDS),
        texts=pl.Series("text", [text[:200] for text in TEXTS]),
        fields=pl.DataFrame({"category": CATEGORIES, "<u>": [f"v{i % 2}" for i in range(n)]}),
        n_relevant=pl.Series([2] * n, dtype=pl.Int32),
        outcomes=[
            Outcomes(
                pl.Series([0] * n, dtype=pl.UInt8),
                pl.Series([0] + [2] * (n - 1), dtype=pl.Int32),
                pl.Series([0] + [1] * (n - 1), dtype=pl.Int32),
            ),
            Outcomes(
                pl.Series([0] * (n - 2) + [2, 1], dtype=pl.UInt8),
                pl.Series([1] * (n - 2) + [0, 0], dtype=pl.Int32),
                pl.Series([3] * (n - 2) + [0, 0], dtype=pl.Int32),
            ),
        ],
        lists=[a_list(row) for row in range(n)],
        details={row: a_detail(row) for row in range(n - 1)},
        chunks=chunks(),
    )


def a_list(row: int) -> QueryLists:
    return QueryLists(
        items=["d1", "d9", "d2", "d8", TEXTS[row][:60]],
        lists=[[0, 1, 2, 4], [1, 3, 0]],
        below=[[(37, 3)], []],
        n=[100, 3],
        hits=[[(1, 2, 30, [0]), (3, 1, None, None), (37, 0, None, None)], [(3, 2, None, None)]],
        wanted=[("d1", 2), ("d2", 1)],
        n_wanted={"items": 2, "spans": 1, "evidence": 1},
    )


def chunks() -> list[str]:
    """Return the texts of retrieved items: two per query, then that of the document."""
    texts = [chunk for text in TEXTS for chunk in (text[:2000], f"The refund is paid{text[:50]}.")]
    return [*texts, DOCUMENT]


def a_detail(row: int) -> QueryDetail:
    text = TEXTS[row]
    calculation = ShownCalculation(
        value=0.8772153153380493,
        columns=["gain", "gain / discount"],
        rows=[
            {"rank": 1, "item": "d1", "grade": 2, "gain": 2.0, "gain / discount": 2.0},
            {"rank": 2, "item": text[:100], "grade": None},
            {"rank": 3, "item": "d2", "grade": 1, "gain": 1.0, "gain / discount": 0.5},
        ],
        counted=[1, 3],
        ideal=[{"rank": 1, "grade": 2, "gain": 2.0}, {"rank": 2, "grade": 1, "gain": 1.0}],
        missed=[{"item": text[:80], "grade": 1, "rank": None}],
        n_ideal=2,
        n_missed=1234,
        numbers={"DCG": 2.5, "ideal DCG": 2.63},
        remarks=["a remark"],
    )
    results = [
        ListedResult(
            rank=rank,
            score=1 / rank,
            doc_id="doc",
            start=10 * rank,
            end=10 * rank + 20,
            text=2 * row,
            length=len(text),
            gold=[(4, 10)] if rank == 1 else [],
        )
        for rank in (1, 2, 3)
    ]
    end = len("The refund is paid" + text[:50])
    covered = EvidenceMatch(
        evidence=0,
        covered=True,
        how="substring",
        rank=1,
        item="d1",
        ratio=None,
        stretch=Stretch(2 * row + 1, 4, end),
    )
    missed = EvidenceMatch(
        evidence=0,
        covered=False,
        how="missed",
        rank=2,
        item="d9",
        ratio=0.41,
        stretch=Stretch(2 * row, 0, 0),
    )
    known = {
        "response": f"An answer: {text[:60]}",
        "timings": {"total": 12.5, "<i>": 1234.5},
        "calls": [ModelCall("generation", text[:20], 812, 64, 0.0012)],
        "results": results,
        "calculations": {"nDCG@10": calculation, "RR": replace(calculation, value=1.0)},
    }
    failed = QueryFailure("Timeout", text[:2000], 3) if row == len(TEXTS) - 2 else None
    return QueryDetail(
        text=text,
        fields={"category": "billing", "<u>": "v0"},
        answers={"reference": f"<b>14 days</b> {text[:60]}", "Answer": "two weeks"},
        evidence=["the refund is paid"],
        runs=[
            RunDetail(**known, matches=[covered]),
            RunDetail(**known, matches=[missed], error=failed),
        ],
        documents=[HighlightedDocument(f"<doc {row}>", 5000, pieces())],
    )


def pieces() -> list[DocumentPiece]:
    """Cut the document: a has part of gold, b is next to it; ranks beyond 10 are not shown."""
    ends = [0, 4, 17, 33, 35, 60, len(DOCUMENT)]
    gold = [False, True, True, False, False, False]
    ranks = [[[], []], [[1, 2], []], [[], [12]], [[3], [1]], [[], [1]], [[], []]]
    texts = [DOCUMENT[start:end] for start, end in pairwise(ends)]
    cut = [
        DocumentPiece(start, start + len(text), is_gold, ranked, text)
        for start, text, is_gold, ranked in zip(ends, texts, gold, ranks, strict=False)
    ]
    # One text is that of a retrieved item.
    cut[2] = replace(cut[2], text=(len(chunks()) - 1, ends[2]))
    return [*cut, DocumentPiece(3000, 3100, True, [[], [2]], None)]


GOLD = {f"q{n}": {"a": 2, "b": 1} for n in range(12)}
GOOD = {query: ["a", "b", "c"] for query in GOLD}
FAIR = {query: ["c", "a", "b"] for query in GOLD}
POOR = {query: ["c", "d", "b"] for query in GOLD}
MEASURES = ["nDCG@10", "RR", "P@2"]
FIELDS = [{"query_id": query, "kind": f"k{n % 3}"} for n, query in enumerate(GOLD)]


def of_sheets(sheets: list[Sheet], comparison: ComparisonSheet | None = None) -> Page:
    ids = sheets[0].scores.per_query["query_id"]
    return Page(
        title="a report",
        created="2026-01-01T00:00:00Z",
        command=None,
        sheets=sheets,
        groups=[sheet for sheet in sheets if sheet.groups is not None],
        comparison=comparison,
        verdict=None,
        inputs=[],
        run_settings={},
        findings=[],
        chart_data=ChartData(),
        queries=Queries(
            ids=ids,
            texts=None,
            fields=pl.DataFrame(),
            n_relevant=pl.Series([2] * len(ids), dtype=pl.Int32),
            outcomes=[],
            lists=[],
        ),
    )


def scored() -> Page:
    return of_sheets([Sheet(karat.evaluate(GOLD, FAIR, MEASURES))])


def compared(runs: dict[str, dict[str, list[str]]], **choices: str) -> Page:
    gold = karat.Gold.of(judgments=GOLD, queries=FIELDS)
    comparison = karat.compare(gold, runs, MEASURES, **choices)
    sheets = [Sheet(scores, by=("kind",)) for scores in comparison.scores]
    return of_sheets(sheets, ComparisonSheet(comparison))
