"""Statistics: options of a comparison, and groups of queries."""

import polars as pl

from karat import compare, evaluate
from karat.stats.clusters import cluster_labels
from karat.stats.pairwise import ComparisonOptions, compare_groups
from messages.cases import Section

SECTION = Section("stats")
case = SECTION.case

GOLD = [
    {"query_id": "q1", "relevant": ["a"], "kind": "x", "p": 1, "tags": ["x"]},
    {"query_id": "q2", "relevant": ["a"], "kind": "y", "p": 2, "tags": ["y"]},
]
RUNS = {"old": {"q1": ["x", "a"], "q2": ["a"]}, "new": {"q1": ["a"], "q2": ["a"]}}

case("a significance test is unknown", lambda: ComparisonOptions(test="sign"))
case("a correction is unknown", lambda: ComparisonOptions(correction="sidak"))
case("a confidence is above 1", lambda: ComparisonOptions(confidence=95))


def group_case(name: str, *fields, **how) -> None:
    case(name, lambda: compare(GOLD, RUNS, "RR", by=list(fields), **how))


group_case("groups are corrected by Tukey's test", "kind", correction="tukey")
group_case("a field of queries is unknown", "topic")
group_case("a field of queries is misspelled", "kinds")
group_case("queries are grouped by a column of the result", "p")
group_case("queries are grouped by lists", "tags")
group_case("a function returns lists as labels", lambda query: [query["kind"]])
case("a field of clusters is misspelled", lambda: evaluate(GOLD, RUNS["old"], "RR", cluster="kin"))
case("queries are clustered by lists", lambda: evaluate(GOLD, RUNS["old"], "RR", cluster="tags"))
case(
    "no query has a value of the field of clusters",
    lambda: cluster_labels(pl.DataFrame({"query_id": ["q"], "user": [None]}), "user"),
)
case("no field is named", lambda: evaluate(GOLD, RUNS["old"], "RR").by())
case(
    "there are no queries to group",
    lambda: compare_groups({}, pl.DataFrame({"query_id": [], "kind": []}), ["kind"]),
)


def compare_different_gold():
    run = [{"query_id": "q1", "results": [{"id": "a", "text": "one text"}]}]
    old, new = (
        evaluate([{"query_id": "q1", "evidence": texts}], run, "evidence.recall@5")
        for texts in (["one text"], ["one text", "another text"])
    )
    compare(None, {"old": old, "new": new})


case("two runs were scored with different gold", compare_different_gold)


case("an engine is unknown", lambda: evaluate(GOLD, RUNS["old"], "RR", engine="dask"))
