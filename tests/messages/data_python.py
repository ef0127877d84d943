"""Gold and runs given as Python objects and tables."""

import functools
import sys
import warnings
from types import SimpleNamespace
from unittest.mock import patch

import polars as pl

from karat import Corpus, Gold, Run
from karat.data.list_cut import ListCut
from karat.data.queries import read_queries
from messages.cases import Section

SECTION = Section("data: Python objects")
case = SECTION.case


def gold(name: str, *given, **parts) -> None:
    case(name, lambda: Gold.of(*given, **parts))


def run(name: str, given) -> None:
    case(name, lambda: Run.of(given))


def table(**columns) -> pl.DataFrame:
    return pl.DataFrame(columns)


# Dicts and records

gold("gold is not gold", 7)
gold("judgments are given twice", {"q1": ["a"]}, judgments={"q1": ["a"]})
gold("the judgments of a query are not a dict or a list", {"q1": "a"})
gold("a grade is not an integer", {"q1": {"a": 0.5}})
gold("a grade is too large", {"q1": {"a": 1 << 40}})
gold("an id of a query is not an id", {None: ["a"]})
gold("two ids are the same as text", {1: ["a"], "1": ["a"]})
gold("an id has a lone surrogate", {"q\ud800": ["a"]})
gold("an id has a NUL character", {"q1": ["a\0"]})
gold("an id of a record has a NUL character", [{"query_id": "q\0", "relevant": ["a"]}])
gold("an item of a record has a NUL character", [{"query_id": "q1", "relevant": ["a\0"]}])
gold("a record is not complete", [{"query_id": "q1", "relevant": {"a": "yes"}}])
gold("a record has a lone surrogate", [{"query_id": "\ud800", "relevant": ["a"]}])
gold("a key of a record has a lone surrogate", [{"query_id": "q1", "\ud800": 1}])
gold("a name in a record has a lone surrogate", [{"query_id": "q1", "relevant": {"\ud800": 1}}])
gold("a record of a run is given as gold", [{"query_id": "q1", "results": ["a"]}])
gold("an evidence text is not in a list", evidence={"q1": "text"})
gold("the id of a query with evidence is a float", evidence={0.5: ["text"]})
gold("an evidence text is missing", evidence=table(query_id=["q1"], text=[None]))
gold("a record is neither answerable nor not", [{"query_id": "q1", "answerable": "no"}])
gold(
    "a query is answerable in one row but not in another",
    table(query_id=["q1", "q1"], item_id=["a", None], grade=[1, None], answerable=[None, False]),
)
gold(
    "a field of a table of queries is neither true nor false",
    {"q1": ["a"]},
    queries=table(query_id=["q1"], answerable=[2]),
)
gold("a unit of offsets is unknown", {"q1": ["a"]}, offsets="bytes")
run("a run is not a run", 7)
run("the results of a query are not a dict or a list", {"q1": "a"})
run("some results are dicts and some are lists", {"q1": {"a": 1.0}, "q2": ["a"]})
run("a score is not a number", {"q1": {"a": "high"}})
run("an item is not an id", {"q1": [None]})
run("an item is nested too deep", {"q1": functools.reduce(lambda a, _: [a], range(2000), "a")})

# Tables

JUDGED = {"query_id": ["q1"], "item_id": ["a"], "grade": [1]}

gold("a table has no column for the item", table(query_id=["q1"], grade=[1]))
gold("a table has no rows", table(query_id=[], item_id=[], grade=[]))
gold("a table of spans has no rows", table(query_id=[], doc_id=[], start=[], end=[]))
gold("a table of evidence has no rows", table(query_id=[], evidence=[]))
gold("a table with ranks is given as gold", table(query_id=["q1"], item_id=["a"], rank=[1]))
gold(
    "a table with scores is given as gold",
    table(query_id=["q1"], doc_id=["d"], start=[0], end=[1], score=[0.5]),
)
gold("an id in a table is a float", table(**JUDGED | {"item_id": [0.5]}))
gold("an id in a table is a list", table(**JUDGED | {"item_id": [["a"]]}))
gold("an id in a table is missing", table(**JUDGED | {"item_id": [None]}))
gold("a grade in a table is not an integer", table(**JUDGED | {"grade": [0.5]}))
gold("a grade in a table is a list", table(**JUDGED | {"grade": [[1]]}))
gold(
    "a span in a table is negative", spans=table(query_id=["q"], doc_id=["d"], start=[-1], end=[1])
)
gold("a column holds Python objects", table(**JUDGED | {"grade": pl.Series([object()])}))


class Unreadable:
    """Says that it is a table, and is none."""

    def __dataframe__(self, **_):
        raise TypeError

    def __arrow_c_stream__(self, requested_schema=None):
        raise ValueError("no")


case("a table cannot be read", lambda: Gold.of(Unreadable()), volatile=r"\(.*\)")
run("a table of a run has no rows", table(query_id=[], item_id=[], score=[]))
run("a table of gold is given as a run", table(**JUDGED))
run("a score in a table is a list", table(query_id=["q1"], item_id=["a"], score=[[1]]))

# Hugging Face


def datasets(given: str):
    """Have the package `datasets` as far as karat looks at it."""
    kinds = {name: type(name, (dict,), {}) for name in ("DatasetDict", "IterableDataset")}
    with patch.dict(sys.modules, datasets=SimpleNamespace(**kinds)):
        Gold.of(kinds[given](test=1, train=2))


case("a dataset of Hugging Face has splits", lambda: datasets("DatasetDict"))
case("a dataset of Hugging Face streams", lambda: datasets("IterableDataset"))

# Offsets

DOCUMENTS = {"d1": "Grüße an 😀 alle\r\nund mehr", "d2": "plain"}


def span(name: str, start: int, end: int, text: str | None = None, doc_id="d1", unit="codepoint"):
    spans = pl.DataFrame({"query_id": "q1", "doc_id": doc_id, "start": [start], "end": [end]})
    if text is not None:
        spans = spans.with_columns(text=pl.lit(text))
    case(name, lambda: Gold.of(spans=spans, offsets=unit).in_code_points(Corpus.of(DOCUMENTS)))


span("the document of a span is unknown", 0, 1, doc_id="d3")
span("a span reaches past the end of its document", 0, 99)
span("a span begins inside a character", 10, 12, unit="utf16")
span("a span has another text than its document", 0, 5, "Gruss")
span("a span is counted in another unit", 0, 7, "Grüße")
span("a span counts line ends as one character", 16, 19, "und")
span("a span is elsewhere in its document", 3, 8, "Grüße")
span("a span is past the end in another unit", 20, 30, "mehr", unit="utf8")
case(
    "a result with a place names no document",
    lambda: Run.of(
        [{"query_id": "q1", "results": [{"id": "a", "start": 0, "end": 1}]}]
    ).in_code_points(Corpus.of(DOCUMENTS)),
)

# Lists cut short

SCORES = {"q1": {"a": 1.0}}

case("top_k is 0", lambda: Run.of(SCORES).shaped(top_k=0))
case("score_threshold is not finite", lambda: Run.of(SCORES).shaped(score_threshold=float("inf")))
case("top_k from the environment is 0", lambda: ListCut(0, origin={"top_k": "RAG_TOP_K"}))
case("a run without scores has a threshold", lambda: Run.of({"q1": ["a"]}).shaped(None, 0.5))
case(
    "an item without a score has a threshold",
    lambda: Run.of([{"query_id": "q1", "results": [{"id": "a", "score": 1}, "b"]}]).shaped(None, 0),
)

# Keys and columns of gold

case(
    "two keys of gold mean the same",
    lambda: Gold.of([{"query_id": "q", "relevant": ["a"], "expected": ["a"]}]),
)
case(
    "a key of gold looks misspelled",
    lambda: Gold.of([{"query_id": "q", "relevant": ["a"], "evidences": "x"}]),
)
case(
    "one id has two questions",
    lambda: Gold.of(pl.DataFrame({"qid": "t", "question": ["a", "b"], "evidence": ["c", "d"]})),
)


def repeated_question():
    with warnings.catch_warnings(action="ignore"):  # that a hash is used as the id
        read_queries(pl.DataFrame({"question": ["a", "a"], "topic": ["x", "y"]}))


case("a query without an id has its text twice", repeated_question)
case(
    "an interchangeable item is not judged",
    lambda: Gold.of([{"query_id": "q", "relevant": ["a"], "any_of": [["a", "b"]]}]),
)
case(
    "a group of interchangeable items is empty",
    lambda: Gold.of([{"query_id": "q", "relevant": ["a"], "any_of": [[]]}]),
)
case("gold without spans is shifted", lambda: Gold.of({"q": ["a"]}).shifted(end=1))
case("a pair is not a question and an id", lambda: Gold.of([("how?", "a"), (2, "b")]))
case(
    "a judgment has neither an id nor a text",
    lambda: Gold.of([{"query_id": "q", "relevant": [{"grade": 1}]}]),
)
gold("a question has a lone surrogate", [{"query_id": "q", "query": "\ud800", "relevant": ["a"]}])
run("what a retriever returned for a query is not a result", {"q1": [{"place": 3}]})
