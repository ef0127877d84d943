"""Default measures: the most specific kind of gold that the runs can answer."""

import json

import pytest

import karat
from karat.measures.plan import (
    DEFAULT_EVIDENCE_MEASURES,
    DEFAULT_MEASURES,
    DEFAULT_SPAN_MEASURES,
)

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


def chunks(size):
    results = [{"doc_id": "d", "start": n * size, "end": (n + 1) * size} for n in range(4)]
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
