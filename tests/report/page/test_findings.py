"""The findings on a page: what to look at first."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.scores import Scores
from karat.report.page.build import build_page
from karat.report.page.model import KeyFinding, Outcomes, Queries, Quote
from karat.report.page.sections.findings import findings, missed_gold
from support.effort import examples

# These tests are about items that are not in the run, which karat warns about.
pytestmark = pytest.mark.filterwarnings("ignore::karat.KaratWarning")

LISTS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]), st.lists(st.sampled_from("abcdef"), unique=True)
)


def opened(scores: list[Scores]) -> list[Any]:
    return [LoadedRun.of(score) for score in scores if score.scored_run is not None]


def queries(scores: list[Scores], found: list[list[int]], **fields: list[str | None]) -> Queries:
    """Return the part of the queries that findings need: each has one relevant item."""
    ids = scores[0].per_query["query_id"]
    return Queries(
        ids=ids,
        texts=None,
        fields=pl.DataFrame(fields),
        n_relevant=pl.Series([1] * ids.len(), dtype=pl.Int32),
        outcomes=[
            Outcomes(pl.Series([0] * ids.len(), dtype=pl.UInt8), pl.Series(own), pl.Series(own))
            for own in found
        ],
        lists=[],
    )


def findings_of(scores: list[Scores], kind: str) -> list[KeyFinding]:
    """Return the findings of one kind that compare two runs."""
    known = queries(scores, [])
    return [one for one in findings(scores, opened(scores), known, (0, 1)) if one.kind == kind]


def kinds(scores: list[Scores], known: Queries, kind: str) -> list[KeyFinding]:
    return [one for one in findings(scores, opened(scores), known) if one.kind == kind]


def texts(scores: list[Scores], known: Queries, kind: str) -> list[str]:
    """Return the texts of the findings of one kind."""
    return [
        notice.text for notice in findings(scores, opened(scores), known) if notice.kind == kind
    ]


@examples(60, 600)
@given(
    st.dictionaries(
        st.sampled_from(["q1", "q2", "q3"]),
        st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([0, 1, 2])),
        min_size=1,
    ),
    LISTS.filter(bool),
    LISTS.filter(bool),
)
def test_items_that_no_run_retrieved_are_unfound(gold, first, second):
    gold["q0"], first["q0"], second["q0"] = {"z": 1}, ["z"], ["z"]
    (kind,) = missed_gold(opened(karat.Evaluator(gold, "R@1").all({"a": first, "b": second})))
    wanted = {(q, item) for q, own in gold.items() for item, grade in own.items() if grade > 0}
    retrieved = {(q, item) for run in (first, second) for q, own in run.items() for item in own}
    assert kind.total == len(wanted)
    assert list(kind.left.iter_rows()) == sorted(wanted - retrieved)


def test_level_of_relevance_comes_from_the_measures():
    scores = karat.evaluate({"q1": {"a": 1, "b": 2}}, {"q1": ["x"]}, "R(rel=2)@5")
    assert missed_gold(opened([scores]))[0].left.rows() == [("q1", "b")]


def test_level_of_relevance_is_1_if_the_first_measure_has_none():
    scores = karat.evaluate({"q1": {"a": 1, "b": 2}}, {"q1": ["x"]}, ["nDCG@5", "R(rel=2)@5"])
    assert missed_gold(opened([scores]))[0].left.rows() == [("q1", "a"), ("q1", "b")]


def test_runs_that_retrieved_nothing_leave_everything_unfound():
    scores = karat.Evaluator({"q1": ["a"]}, "R@5").all({"one": {"q1": []}, "two": {"q1": []}})
    assert missed_gold(opened(scores))[0].left.rows() == [("q1", "a")]


def test_documents_are_found_by_their_chunks():
    run = [{"query_id": "q1", "results": [{"id": "c1", "doc_id": "a"}]}]
    scores = karat.evaluate({"q1": ["a", "b"]}, run, "R@5", level="doc")
    assert missed_gold(opened([scores]))[0].left.rows() == [("q1", "b")]


def test_spans_that_no_run_overlaps_are_unfound():
    spans = [("d1", 0, 10), ("d1", 20, 30), ("d1", 20, 30), ("d2", 5, 5), ("d2", 0, 9)]
    gold = [
        {
            "query_id": "q1",
            "spans": [{"doc_id": d, "start": start, "end": end} for d, start, end in spans],
        }
    ]
    runs = {
        name: [{"query_id": "q1", "results": [{"doc_id": d, "start": start, "end": end}]}]
        for name, (d, start, end) in {"a": ("d1", 9, 15), "b": ("d3", 0, 99)}.items()
    }
    (kind,) = missed_gold(opened(karat.Evaluator(gold).all(runs)))
    assert (kind.what, kind.total) == ("span", 3)
    assert kind.left["name"].to_list() == ["d1[20:30]", "d2[0:9]"]


def test_evidence_that_no_run_covers_is_unfound():
    gold = [{"query_id": "q1", "evidence": ["paid in euros", "within 14 days", "to your card"]}]
    runs = {
        name: [{"query_id": "q1", "results": [{"id": "c", "text": text}]}]
        for name, text in {"a": "It is paid in euros.", "b": "We pay within 14 days."}.items()
    }
    (kind,) = missed_gold(opened(karat.Evaluator(gold, "evidence.recall@5").all(runs)))
    assert (kind.what, kind.total, kind.left.rows()) == (
        "evidence text",
        3,
        [("q1", "to your card")],
    )


def test_failed_and_missing_queries_come_first():
    run = [
        {"query_id": "q1", "error": {"type": "Timeout", "message": "slow"}, "results": []},
        {"query_id": "q2", "results": [{"id": "b"}]},
    ]
    gold = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    scores = [karat.evaluate(gold, run, "R@5", fail_on_error=0.5)]
    first, second, *_ = findings(scores, opened(scores), queries(scores, [[0, 1, 0]]))
    assert first.text == "The retriever failed on 1 of 3 queries (33%) in run."
    assert first.show == {"run": "run", "outcome": "failed"}
    assert second.text == "1 of 3 gold queries (33%) is not in run."


def test_queries_with_nothing_found_are_counted_per_run_and_over_all_runs():
    gold = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    runs = {"one": {q: ["a"] for q in gold}, "two": {q: ["b"] for q in gold}}
    scores = karat.Evaluator(gold, "R@5").all(runs)
    assert texts(scores, queries(scores, [[1, 0, 0], [0, 1, 0]]), "nothing") == [
        "No run retrieved anything relevant for 1 of 3 queries (33%), at any rank.",
        "one retrieved nothing relevant for 2 of 3 queries (67%), at any rank.",
        "two retrieved nothing relevant for 2 of 3 queries (67%), at any rank.",
    ]
    assert texts(scores, queries(scores, []), "nothing") == []


def test_failed_query_counts_among_queries_with_nothing_found():
    scores = karat.Evaluator({"q1": ["a"]}, "R@5").all({"one": {"q1": []}, "two": {"q1": []}})
    known = queries(scores, [[0], [0]])
    failed = replace(known.outcomes[1], status=pl.Series([2], dtype=pl.UInt8))
    known = replace(known, outcomes=[known.outcomes[0], failed])
    assert texts(scores, known, "nothing") == [
        "No run retrieved anything relevant for 1 of 1 query (100%), at any rank."
    ]


def test_nothing_is_reported_about_all_runs_if_a_list_is_missing():
    scores = karat.Evaluator({"q1": ["a"]}, "R@5").all({"one": {"q1": []}, "two": {"q1": []}})
    known = queries(scores, [[0], [0]])
    saved = replace(known.outcomes[1], status=pl.Series([3], dtype=pl.UInt8))
    known = replace(known, outcomes=[known.outcomes[0], saved])
    shown = findings(scores, [*opened(scores[:1]), None], known)
    assert [notice.text for notice in shown] == [
        "one retrieved nothing relevant for 1 of 1 query (100%), at any rank."
    ]


def test_run_without_further_failures_is_not_reported_again():
    gold = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    scores = karat.Evaluator(gold, "R@5").all({name: {q: ["a"] for q in gold} for name in "xy"})
    assert texts(scores, queries(scores, [[1, 0, 0], [1, 1, 0]]), "nothing") == [
        "No run retrieved anything relevant for 1 of 3 queries (33%), at any rank.",
        "x retrieved nothing relevant for 2 of 3 queries (67%), at any rank.",
    ]


def test_evidence_that_no_run_found_is_quoted_in_one_line():
    gold = [{"query_id": "q1", "evidence": ["paid in\n\n euros", "to your card"]}]
    run = [{"query_id": "q1", "results": [{"id": "c", "text": "nothing"}]}]
    scores = [karat.evaluate(gold, run, "evidence.recall@5")]
    (finding,) = kinds(scores, queries(scores, []), "unfound")
    assert finding.text == "run did not retrieve 2 of 2 evidence texts (100%)."
    assert finding.number == "2 of 2"
    assert finding.quote == Quote("q1", None, "paid in euros")


def test_span_that_no_run_found_is_quoted_from_the_corpus():
    gold = [{"query_id": "q1", "spans": [{"doc_id": "d", "start": 4, "end": 11}]}]
    run = [{"query_id": "q1", "results": [{"id": "c", "doc_id": "d", "start": 20, "end": 30}]}]
    corpus = {"d": "the missing text of a document, which is long"}
    scores = [karat.evaluate(gold, run, "span.recall@5", corpus=corpus)]
    (finding,) = kinds(scores, queries(scores, []), "unfound")
    assert finding.quote == Quote("q1", None, "missing")


def test_item_that_no_run_found_is_named_if_its_text_is_unknown():
    scores = [karat.evaluate({"q1": ["a"]}, {"q1": ["x"]}, "R@5")]
    (finding,) = kinds(scores, queries(scores, []), "unfound")
    assert finding.quote == Quote("q1", None, "a")


def test_page_that_no_run_found_is_quoted_by_its_span():
    page = "A long page about payments. " + "It is paid in euros. " * 20
    start = page.index("It is paid")
    gold = [
        {
            "query_id": "q1",
            "relevant": ["d"],
            "spans": [{"doc_id": "d", "start": start, "end": start + 20}],
        }
    ]
    run = [{"query_id": "q1", "results": [{"doc_id": "other", "start": 0, "end": 30}]}]
    options: dict[str, Any] = {"level": "doc", "corpus": {"d": page, "other": "x" * 30}}
    scores = [karat.evaluate(gold, run, "R@5", **options)]
    (finding, *_) = kinds(scores, queries(scores, []), "unfound")
    assert finding.quote == Quote("q1", None, "It is paid in euros.")
    without_spans = [{"query_id": "q1", "relevant": ["d"]}]
    scores = [karat.evaluate(without_spans, run, "R@5", **options)]
    (finding,) = kinds(scores, queries(scores, []), "unfound")
    assert finding.quote is not None
    assert len(finding.quote.missed) == 220
    assert finding.quote.missed.startswith("A long page about payments. It is paid")
    assert finding.quote.missed.endswith("…")


def test_each_kind_of_gold_quotes_another_query():
    gold = [
        {
            "query_id": query,
            "evidence": [f"text {query}"],
            "spans": [{"doc_id": query, "start": 0, "end": 7, "text": f"text {query}"}],
        }
        for query in ("q1", "q2")
    ]
    run = [
        {"query_id": "q1", "results": [{"doc_id": "d", "start": 0, "end": 7, "text": "nothing"}]}
    ]
    scores = [karat.evaluate(gold, run, ["span.recall@5", "evidence.recall@5"])]
    quotes = [finding.quote for finding in kinds(scores, queries(scores, []), "unfound")]
    assert [quote and quote.missed for quote in quotes] == ["text q1", "text q2"]


def decided_by(values: dict[str, tuple[float, float]]) -> int:
    """Return the smallest number of queries without which the better run has no lead: an oracle."""
    gains = [b - a for a, b in values.values()]
    if sum(gains) < 0:
        gains = [-gain for gain in gains]
    return next(
        n
        for n in range(1, len(gains) + 1)
        if any(sum(gains) - sum(removed) <= 1e-9 for removed in itertools.combinations(gains, n))
    )


@examples(40, 400)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=6))
def test_number_of_deciding_queries_is_the_smallest(ranks):
    gold = {f"q{at}": ["z"] for at in range(len(ranks))}
    runs = {
        name: {f"q{at}": [*"abcd"[: pair[side] - 1], "z"] for at, pair in enumerate(ranks)}
        for side, name in enumerate(("first", "second"))
    }
    scores = karat.Evaluator(gold, "RR").all(runs)
    (found,) = findings_of(scores, "decides") or (None,)
    values = {f"q{at}": (1 / a, 1 / b) for at, (a, b) in enumerate(ranks)}
    lead = sum(b - a for a, b in values.values())
    if abs(lead) < 1e-9:
        assert found is None or int(found.number.split()[0]) >= 1
    else:
        assert found is not None
        assert found.number == f"{decided_by(values)} of {len(ranks)}"
        assert f"lead of {'second' if lead > 0 else 'first'} over" in found.text


def test_group_with_the_opposite_order_is_found():
    gold = {f"q{at:02}": ["z"] for at in range(12)}
    first = {query: ["z"] if at < 5 else ["a", "z"] for at, query in enumerate(gold)}
    second = {query: ["z"] if at >= 5 else ["a", "b", "z"] for at, query in enumerate(gold)}
    scores = karat.Evaluator(gold, "RR").all({"first": first, "second": second})
    known = queries(scores, [], part=["x"] * 5 + ["y"] * 7)
    significant = {("second", "first", "RR")}
    (found,) = reversals(scores, known, significant)
    assert found.text == (
        "In part 'x' the order is reversed: first leads second in RR, 1.000 to 0.333 over "
        "5 queries. The significance was not tested."
    )
    assert found.show == {"field": "part", "value": "x"}
    assert not reversals(scores, known, {("first", "second", "RR"), ("second", "first", "P@1")})


@pytest.mark.parametrize(("n_queries", "is_shown"), [(12, False), (40, True)])
def test_report_shows_opposite_orders_only_if_the_lead_is_significant(
    n_queries: int, is_shown: bool
) -> None:
    records = [
        {"query_id": f"q{at:02}", "relevant": ["z"], "part": "x" if at < 5 else "y"}
        for at in range(n_queries)
    ]
    first = {f"q{at:02}": ["z"] if at < 5 else ["a", "z"] for at in range(n_queries)}
    second = {f"q{at:02}": ["a", "z"] if at < 5 else ["z"] for at in range(n_queries)}
    comparison = karat.compare(records, {"first": first, "second": second}, "RR")
    page = build_page(comparison.scores, comparison=comparison)
    assert ("reverses" in [finding.kind for finding in page.findings]) == is_shown


def reversals(scores: list[Scores], known: Queries, significant: set[Any]) -> list[KeyFinding]:
    shown = findings(scores, opened(scores), known, (0, 1), significant)
    return [finding for finding in shown if finding.kind == "reverses"]


UNANSWERABLE = [
    {"query_id": "q1", "relevant": ["a"]},
    {"query_id": "q2", "answerable": False},
    {"query_id": "q3", "answerable": False},
]


def test_queries_without_an_answer_come_before_missed_gold_and_once_if_runs_agree():
    run = {"q1": ["b"], "q2": ["b"], "q3": ["b"]}
    scores = karat.Evaluator(UNANSWERABLE, "R@5").all({"one": run, "two": run})
    shown = findings(scores, opened(scores), queries(scores, [[0], [0]]))
    assert [(finding.kind, finding.number) for finding in shown[:2]] == [
        ("unanswerable", "2 of 2"),
        ("unfound", "1 of 1"),
    ]
    assert (
        shown[0].text == "Every run returned something for 2 of 2 queries (100%) without an answer."
    )
    assert shown[0].show == {"run": "one", "outcome": "left_out"}


def test_queries_without_an_answer_are_counted_per_run_if_runs_differ():
    runs = {"none": {"q1": ["a"]}, "one": {"q1": ["a"], "q2": ["b"]}}
    runs["both"] = {**runs["one"], "q3": ["b"]}
    scores = karat.Evaluator(UNANSWERABLE, "R@5").all(runs)
    assert [finding.number for finding in kinds(scores, queries(scores, []), "unanswerable")] == [
        "1 of 2",
        "2 of 2",
    ]


def test_bound_that_reaches_the_best_run_makes_its_lead_unsafe():
    gold = {"q1": {"a": 1, "x": 0}, "q2": {"b": 1, "x": 0}}
    runs = {"ahead": {"q1": ["a"], "q2": ["b"]}, "behind": {"q1": ["new"], "q2": ["b"]}}
    scores = karat.Evaluator(gold, "Success@1").all(runs)
    assert texts(scores, queries(scores, []), "unjudged") == [
        "ahead is ahead of behind in Success@1, but the unjudged items of behind could "
        "raise its value to 1.000, at least 1.000."
    ]
    runs["behind"]["q1"] = ["x"]
    scores = karat.Evaluator(gold, "Success@1").all(runs)
    assert texts(scores, queries(scores, []), "unjudged") == []


def test_unjudged_shares_are_compared_for_measures_without_a_bound():
    gold = {"q1": {"a": 1}, "q2": {"b": 1}}
    runs = {"ahead": {"q1": ["a"], "q2": ["b"]}, "behind": {"q1": ["new"], "q2": ["b"]}}
    scores = karat.Evaluator(gold, "nDCG@1").all(runs)
    assert texts(scores, queries(scores, []), "unjudged") == [
        "ahead is ahead of behind in nDCG@1, but 50% of the items of behind are unjudged, "
        "compared with 0%."
    ]
    assert texts(scores[1:], queries(scores[1:], []), "unjudged") == [
        "50% of the items that nDCG@1 reads are unjudged; they count as irrelevant."
    ]


def test_similar_unjudged_shares_are_not_reported():
    gold = {f"q{n}": {"a": 1, "b": 0} for n in range(20)}
    runs = {"ahead": {q: ["a"] for q in gold}, "behind": {q: ["b"] for q in gold} | {"q0": ["new"]}}
    scores = karat.Evaluator(gold, "nDCG@1").all(runs)
    assert texts(scores, queries(scores, []), "unjudged") == []


def test_few_repeated_characters_are_not_reported():
    gold = [{"query_id": "q1", "spans": [{"doc_id": "d", "start": 0, "end": 5}]}]
    results = [{"doc_id": "d", "start": start, "end": start + 100} for start in (0, 99)]
    scores = [karat.evaluate(gold, [{"query_id": "q1", "results": results}], "span.recall@5")]
    assert texts(scores, queries(scores, []), "duplicates") == []


def test_groups_are_compared_by_the_first_measure_that_is_a_mean():
    records = [
        {"query_id": f"q{n:02}", "relevant": ["a"], "evidence": ["paid in euros"]}
        for n in range(40)
    ]
    run = [
        {
            "query_id": record["query_id"],
            "results": [{"id": "a", "text": "paid in euros" if n % 4 or n == 8 else "no"}],
        }
        for n, record in enumerate(records)
    ]
    measures = ["evidence.recall@5", "evidence.coverage@5"]
    scores = [karat.evaluate(records, run, measures)]
    kinds = ["billing" if n % 4 == 0 else "shipping" for n in range(40)]
    (text,) = texts(scores, queries(scores, [], category=kinds), "group")
    assert "evidence.coverage@5 is 0.100" in text


def test_missing_queries_are_reported_if_only_latency_is_measured():
    run = [{"query_id": "q1", "results": [], "latency_ms": {"total": 2.0}}]
    scores = [karat.evaluate({"q1": ["a"], "q2": ["a"]}, run, "latency.mean")]
    assert texts(scores, queries(scores, []), "missing") == [
        "1 of 2 gold queries (50%) is not in run."
    ]


def test_group_far_below_the_rest_is_reported():
    gold = {f"q{n:02}": ["a"] for n in range(40)}
    run = {q: ["a"] if n % 4 or n == 8 else ["x"] for n, q in enumerate(gold)}
    scores = [karat.evaluate(gold, run, ["RR"])]
    kinds = ["billing" if n % 4 == 0 else "shipping" for n in range(40)]
    known = queries(scores, [], category=kinds, id=[f"{n}" for n in range(40)])
    (group,) = [
        notice for notice in findings(scores, opened(scores), known) if notice.kind == "group"
    ]
    assert group.text == (
        "run is weaker on queries with category 'billing': RR is 0.100 over 10 queries, 0.900 "
        "below the rest."
    )
    assert group.show == {"field": "category", "value": "billing", "run": "run"}


def test_repeated_items_are_counted():
    scores = [karat.evaluate({"q1": ["a"]}, {"q1": ["a", "a", "b"], "other": ["a"]}, "P@3")]
    assert texts(scores, queries(scores, []), "duplicates") == [
        "1 of 3 results of run repeat an item of a higher rank."
    ]


def test_share_of_repeated_characters_is_reported():
    gold = [{"query_id": "q1", "spans": [{"doc_id": "d", "start": 0, "end": 5}]}]
    places = [(0, 10), (5, 15)]
    results = [{"doc_id": "d", "start": start, "end": end} for start, end in places]
    scores = [karat.evaluate(gold, [{"query_id": "q1", "results": results}], "span.recall@5")]
    assert texts(scores, queries(scores, []), "duplicates") == [
        "25% of the characters that run returned repeat earlier results."
    ]


def test_at_most_three_findings_of_one_kind_are_shown():
    gold = {"q1": ["a"], "q2": ["b"]}
    scores = karat.Evaluator(gold, "R@5").all({f"run{n}": {"q1": ["a"]} for n in range(9)})
    assert len(texts(scores, queries(scores, []), "missing")) == 3


def test_run_that_alone_found_nothing_is_reported():
    gold = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    scores = karat.Evaluator(gold, "R@5").all({name: {q: ["a"] for q in gold} for name in "xy"})
    known = queries(scores, [[0, 0, 0], [1, 0, 0]])
    failed = pl.Series([0, 2, 2], dtype=pl.UInt8)
    known = replace(known, outcomes=[replace(own, status=failed) for own in known.outcomes])
    assert texts(scores, known, "nothing") == [
        "No run retrieved anything relevant for 2 of 3 queries (67%), at any rank.",
        "x retrieved nothing relevant for 1 of 3 queries (33%), at any rank.",
    ]
