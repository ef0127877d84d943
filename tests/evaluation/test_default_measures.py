"""Default measures: the most specific kind of gold that the runs can answer."""

import json

import pytest

import karat
from karat.evaluation.next_query import NextQuery, most_moved_query
from karat.evaluation.remarks import main_measure
from karat.measures.plan import (
    DEFAULT_EVIDENCE_MEASURES,
    DEFAULT_MEASURES,
    DEFAULT_SPAN_MEASURES,
)
from karat.measures.presets import PRESETS
from karat.report.conclusion import scores_conclusion
from karat.report.sheet import Sheet

SPANS = {"spans": [{"doc_id": "d", "start": 0, "end": 5}]}
EVIDENCE = {"evidence": ["hello"]}
JUDGMENTS = {"relevant": ["a"]}
IDS = {"q": ["a"]}
TEXTS = [{"query_id": "q", "results": [{"id": "a", "text": "hello"}]}]
PLACES = [{"query_id": "q", "results": [{"id": "a", "doc_id": "d", "start": 0, "end": 5}]}]


@pytest.mark.parametrize(
    ("kinds", "run", "wanted"),
    [
        (SPANS, PLACES, DEFAULT_SPAN_MEASURES),
        (EVIDENCE, TEXTS, DEFAULT_EVIDENCE_MEASURES),
        (JUDGMENTS, IDS, DEFAULT_MEASURES),
        (SPANS | EVIDENCE | JUDGMENTS, PLACES, DEFAULT_SPAN_MEASURES),
        (SPANS | EVIDENCE | JUDGMENTS, TEXTS, DEFAULT_EVIDENCE_MEASURES),
        (SPANS | EVIDENCE | JUDGMENTS, IDS, DEFAULT_MEASURES),
        (EVIDENCE | JUDGMENTS, PLACES, DEFAULT_MEASURES),
    ],
)
def test_the_most_specific_kind_that_the_run_can_answer_is_measured(kinds, run, wanted):
    scores = karat.evaluate([{"query_id": "q", "query": "?"} | kinds], run)
    assert scores.keys() == list(wanted)
    assert bool(scores.notes) == (len(kinds) > 1)


def test_several_runs_are_measured_by_what_all_of_them_can_answer():
    gold = [{"query_id": "q", "query": "?"} | SPANS | JUDGMENTS]
    both = karat.Evaluator(gold).all({"places": PLACES, "ids": IDS})
    assert [scores.keys() for scores in both] == [list(DEFAULT_MEASURES)] * 2


def test_ragas_rows_without_ids_are_measured_by_evidence():
    row = {"user_input": "?", "retrieved_contexts": ["hello"], "reference_contexts": ["hello"]}
    with pytest.warns(karat.KaratWarning):
        scores = karat.evaluate([row], [row])
    assert scores.keys() == list(DEFAULT_EVIDENCE_MEASURES)


def test_headlines_are_about_equal_budgets_and_coverage():
    assert DEFAULT_SPAN_MEASURES[0] == "span.recall@2000c"
    assert DEFAULT_EVIDENCE_MEASURES[0] == "evidence.coverage@10"
    assert sorted(DEFAULT_EVIDENCE_MEASURES) == sorted(PRESETS["coverage"].measures)


def chunks(size):
    results = [
        {"id": "abcd"[n], "doc_id": "d", "start": n * size, "end": (n + 1) * size} for n in range(4)
    ]
    return [{"query_id": "q", "results": results}]


GOLD = [{"query_id": "q", "query": "?"} | SPANS]


def test_runs_that_return_unequal_amounts_of_text_are_pointed_out():
    comparison = karat.compare(GOLD, {"small": chunks(100), "big": chunks(160)}, "span.recall@2")
    text = " ".join(str(comparison).split())
    assert "big 320 characters per query, small 200" in text
    big, small = (karat.evaluate(GOLD, chunks(n), "span.recall@2") for n in (160, 100))
    assert (big.delivered, small.delivered) == ({"span.recall@2": 320.0}, {"span.recall@2": 200.0})


def test_verdict_notes_that_the_best_run_returns_more_text():
    gold = [{"query_id": "q", "query": "?", "spans": [{"doc_id": "d", "start": 0, "end": 900}]}]
    comparison = karat.compare(gold, {"small": chunks(100), "big": chunks(300)}, "span.recall@2")
    verdict = " ".join(str(comparison).split()).rpartition("big leads small")[2]
    assert "3.0 times as much text" in verdict


WIDE = [{"query_id": "q", "query": "?", "spans": [{"doc_id": "d", "start": 0, "end": 900}]}]
"""Gold of 900 characters, of which two large chunks contain more than two small ones."""


def of_sizes(measures, gold=WIDE, **sizes):
    return karat.compare(gold, {name: chunks(size) for name, size in sizes.items()}, measures)


@pytest.mark.parametrize(
    ("measures", "main"),
    [
        ("span.recall@2", "span.recall@2"),
        ("span.recall@2 RR span.recall@150c", "span.recall@150c"),
        ("span.recall@2 span.iou@150c span.recall@150c", "span.recall@150c"),
        ("span.recall@2 span.iou@150c span.iou@300c", "span.iou@150c"),
        ("span.iou@150c span.recall@2", "span.iou@150c"),
        ("RR span.recall@2 span.recall@150c", "RR"),
    ],
)
def test_runs_with_unequal_amounts_of_text_are_ranked_at_equal_budgets(measures, main):
    gold = [WIDE[0] | JUDGMENTS]
    assert main_measure(of_sizes(measures, gold, small=100, big=300).scores).name == main
    first = measures.split()[0]
    assert main_measure(of_sizes(measures, gold, small=100, big=140).scores).name == first
    assert main_measure([karat.evaluate(gold, chunks(300), measures)]).name == first


def test_headline_changes_and_next_query_are_about_the_main_measure():
    """At equal k the large chunks win, in the first 150 characters the small ones."""
    gold = [
        {"query_id": q, "query": "?", "spans": [{"doc_id": "d", "start": 0, "end": 900}]}
        for q in ("q1", "q2")
    ]
    found = {"doc_id": "d", "start": 0, "end": 300}
    small = [found | {"start": 50 * n, "end": 50 * (n + 1)} for n in range(3)]
    other = {"doc_id": "other", "start": 0, "end": 100}
    runs = {
        "small": [{"query_id": q, "results": small} for q in ("q1", "q2")],
        "big": [
            {"query_id": "q1", "results": [other, found, found | {"start": 300, "end": 600}]},
            {"query_id": "q2", "results": [found, found | {"start": 300, "end": 600}]},
        ],
        "huge": [{"query_id": q, "results": [other, found | {"end": 900}]} for q in ("q1", "q2")],
    }
    measures = ["span.recall@3", "span.recall@150c"]
    two = karat.compare(gold, {name: runs[name] for name in ("small", "big")}, measures)
    text = " ".join(str(two).split())
    assert text.startswith("small leads big by 0.056 span.recall@150c")
    assert "as much text" not in text
    assert "largest changes of span.recall@150c, small → big" in text
    assert "compare by span.recall@150c instead" in text
    assert {moved.measure for moved in two.moved_queries(3)} == {"span.recall@150c"}
    assert most_moved_query(two) == NextQuery("span.recall@150c", "q1", ("small", "big"))
    three = str(karat.compare(gold, runs, measures, by=lambda query: "all"))
    rows = [line.split()[:2] for line in three.splitlines() if "0." in line]
    assert rows[:3] == [["a", "small"], ["b", "big"], ["c", "huge"]]
    assert "small against the others, span.recall@150c" in three
    assert "groups of span.recall@150c; --wide shows the other measures" in three
    scores = karat.Evaluator(gold, measures).all(runs)
    assert scores_conclusion([Sheet(score) for score in scores]).text.startswith(
        "small has the best span.recall@150c: 0.167"
    )


@pytest.mark.parametrize("measure", ["span.recall@2000c", "span.recall"])
def test_a_character_budget_or_the_whole_list_has_no_text_note(measure):
    comparison = karat.compare(GOLD, {"small": chunks(100), "big": chunks(300)}, measure)
    assert "characters per query" not in " ".join(str(comparison).split())


def test_the_amount_of_text_is_in_the_json_and_survives_saving(tmp_path):
    scores = karat.evaluate(GOLD, chunks(100), "span.recall@2")
    for ending in ("json", "parquet"):
        scores.write(tmp_path / f"s.{ending}")
        assert karat.Scores.read(tmp_path / f"s.{ending}").delivered == {"span.recall@2": 200.0}
    document = json.loads((tmp_path / "s.json").read_text())
    assert document["runs"][0]["delivered"] == {"span.recall@2": 200.0}
