"""Matching of gold and run: ids, spans, evidence texts, judgments of chunks."""

from functools import partial

import polars as pl

from karat import Chunks, Gold, Matching, Plan, Run, evaluate, locate, score, to_judgments
from karat.match.gold_index import prepare
from karat.match.spans import MinOverlap
from messages.cases import Section

SECTION = Section("match")
case = SECTION.case

SPANS = Gold.of(
    spans=pl.DataFrame({"query_id": ["q1"], "doc_id": ["d"], "start": [0], "end": [10]})
)
TEXTS = Gold.of(evidence={"q1": ["one text"]})
JUDGED = Gold.of({"q1": {"a": 1}})


def chunks(**columns) -> Chunks:
    table = {"item_id": ["c1"], "doc_id": ["d"], "start": [50], "end": [60]}
    return Chunks.of(pl.DataFrame(table | columns))


def results(*items) -> Run:
    return Run.of([{"query_id": "q1", "results": list(items)}])


# Runs that lack something

case(
    "a run has no ids",
    lambda: evaluate(JUDGED, results({"doc_id": "d", "start": 0, "end": 5}), "P@5"),
)
case("a run has no documents", lambda: evaluate(JUDGED, results("a"), "P@5", level="doc"))
case("a run has no offsets", lambda: evaluate(SPANS, results("a"), "span.recall@5"))
case("a run has no texts", lambda: evaluate(TEXTS, results("a"), "evidence.recall@5"))
case(
    "a run has an item that is not in the table of chunks",
    lambda: evaluate(SPANS, results("c1", "c2"), "span.recall@5", chunks=chunks()),
)
case(
    "a run counts offsets in another unit",
    lambda: evaluate(
        SPANS,
        results({"doc_id": "d", "start": 0, "end": 1}).counted_in("utf8"),
        "span.recall@5",
    ),
)
case(
    "gold counts offsets in another unit",
    lambda: evaluate(SPANS.counted_in("utf16"), results("a"), "span.recall@5"),
)

# Gold

LARGE = pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "grade": [1 << 40]})

case("a grade in a table is too large", lambda: evaluate(Gold.of(LARGE), {"q1": ["a"]}, "P@5"))
case(
    "an item is judged twice",
    lambda: prepare(
        Gold.of(pl.DataFrame({"query_id": "q1", "item_id": ["a", "a"], "grade": [1, 2]}))
    ),
)
case(
    "an evidence text is empty",
    lambda: evaluate(
        Gold.of(evidence={"q1": ["one text", " "]}),
        results({"id": "a", "text": "one text"}),
        "evidence.recall@5",
    ),
)

# Judgments of chunks

case("gold has no spans to judge chunks by", lambda: to_judgments(JUDGED, chunks()))
case("a minimum overlap is 0", lambda: MinOverlap.of(0))
case("shares are not a list", lambda: to_judgments(SPANS, chunks(), shares=0.5))
case("a share is above 1", lambda: to_judgments(SPANS, chunks(), shares=[2]))
case("no chunk contains enough of a span", lambda: to_judgments(SPANS, chunks()))

# Location of evidence texts

CORPUS = {"d1": "One text here. Another text there. Another text again."}


def location_case(name: str, *texts: str, **how) -> None:
    case(name, lambda: locate(Gold.of(evidence={"q1": list(texts)}), CORPUS, **how))


location_case("a similarity is 0", "One text", threshold=0)
case("gold has no evidence to locate", lambda: locate(JUDGED, CORPUS))
location_case("an evidence text is not found", "One text here", "Something else altogether")
location_case("an evidence text is found several times", "Another text", "nothing alike")

# How texts are compared


def matching_case(name: str, **how) -> None:
    case(name, partial(Matching, **how))


matching_case("a threshold for similar texts is 0", fuzzy_threshold=0)
matching_case("a matcher is unknown", matcher="levenshtein")
matching_case("a direction is unknown", direction="both")
matching_case("autojunk is set for another matcher", matcher="partial", autojunk=True)
matching_case("a function has a direction", matcher=lambda a, b: True, direction="either")
case(
    "a function that compares texts returns text",
    lambda: evaluate(
        TEXTS,
        results({"id": "a", "text": "x"}),
        "evidence.recall@5",
        matching=Matching(matcher=lambda evidence, chunk: "yes"),
    ),
)

# Documents and chunks of spans


def results_in(*doc_ids):
    items = [{"doc_id": doc_id, "start": 0, "end": 5} for doc_id in doc_ids]
    return [{"query_id": "q", "results": items}]


def spans_in(*doc_ids):
    spans = [{"doc_id": doc_id, "start": 0, "end": 5} for doc_id in doc_ids]
    return [{"query_id": "q", "query": "?", "spans": spans}]


case(
    "a document of the run fits two documents of gold",
    lambda: evaluate(spans_in("a/x", "b/x"), results_in("x"), "span.recall"),
)
case(
    "two documents of the run fit one document of gold",
    lambda: evaluate(spans_in("x"), results_in("a/x", "b/x"), "span.recall"),
)
case(
    "no document of gold is in the run",
    lambda: evaluate(spans_in("x"), results_in("y"), "span.recall"),
)
TABLE = pl.DataFrame({"id": ["a"], "doc_id": ["d"], "start": [0], "end": [5]})
case(
    "the table of chunks lacks an item of the run",
    lambda: evaluate(spans_in("d"), {"q": ["a", "b"]}, "span.recall", chunks=TABLE),
)
case(
    "the table of chunks lacks the offsets of an item",
    lambda: score(spans_in("d"), {"q": ["a", "b"]}, Plan.of("span.recall", chunks=TABLE)),
)
case(
    "a run has no table of chunks",
    lambda: evaluate(spans_in("d"), {"q": ["a"]}, "span.recall", chunks={"other": TABLE}),
)


def spans_shorter_than_texts():
    spans = [{"doc_id": "d", "start": n, "end": n + 4, "text": "hello"} for n in range(3)]
    evaluate([{"query_id": "q", "spans": spans}], results_in("d"), "span.recall")


case("the texts of spans are longer than the spans", spans_shorter_than_texts)
