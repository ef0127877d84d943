"""Lists are shaped before they are scored: by a score threshold, then by a length."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from support.effort import examples
from support.errors import refused

GOLD = {"q1": {"a": 1, "c": 1}, "q2": {"b": 1}}
RUN = {"q1": {"a": 0.9, "b": 0.5, "c": 0.4}, "q2": {"a": 0.3, "b": 0.2}}


def shaped_by_hand(lists, top_k, threshold):
    """Walk down each list of (item, score) pairs."""
    kept = {}
    for query, items in lists.items():
        kept[query] = []
        for item, score in items:
            room = top_k is None or len(kept[query]) < top_k
            if room and (threshold is None or not score < threshold):
                kept[query].append(item)
    return kept


scores = st.sampled_from([-1.0, -0.0, 0.0, 0.1, 0.25, 0.4, 0.4000000000000001, 1.0, 7.0])
some_lists = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "é"]),
    st.dictionaries(st.sampled_from(list("abcdefg")), scores, max_size=6),
    min_size=1,
)
top_ks = st.none() | st.integers(1, 8)
thresholds = st.none() | scores


def lists_of(run):
    found = {query: [] for query in run.query_ids}
    for query, item in run.results.select("query_id", "item_id").iter_rows():
        found[query].append(item)
    return found


@examples(50, 500)
@given(some_lists, top_ks, thresholds)
def test_low_scores_are_removed_first_then_items_beyond_the_top_k(lists, top_k, threshold):
    ranked = {
        query: sorted(items.items(), key=lambda pair: (pair[1] + 0.0, pair[0]), reverse=True)
        for query, items in lists.items()
    }
    expected = shaped_by_hand(ranked, top_k, threshold)
    run = karat.Run.of(lists).shaped(top_k, threshold)
    assert lists_of(run) == expected
    assert set(run.empty) == {query for query, items in expected.items() if not items}


@examples(50, 500)
@given(some_lists, top_ks, thresholds, st.randoms(use_true_random=False))
def test_the_listed_order_is_kept_whatever_the_scores(lists, top_k, threshold, random):
    listed = {query: random.sample(sorted(d.items()), len(d)) for query, d in lists.items()}
    rows = [
        {"query_id": query, "rank": rank, "item_id": item, "score": score}
        for query, items in listed.items()
        for rank, (item, score) in enumerate(items, 1)
    ]
    if not rows:
        return
    table = pl.DataFrame(random.sample(rows, len(rows)))
    run = karat.Run.of(table).shaped(top_k, threshold)
    not_empty = {query: items for query, items in listed.items() if items}
    assert lists_of(run) == shaped_by_hand(not_empty, top_k, threshold)


@examples(50, 500)
@given(some_lists, top_ks)
def test_lists_of_ids_are_cut_without_scores(lists, top_k):
    listed = {query: list(items) for query, items in lists.items()}
    run = karat.Run.of(listed).shaped(top_k=top_k)
    assert lists_of(run) == {query: items[:top_k] for query, items in listed.items()}


def test_denominators_stay_k_and_each_measure_keeps_its_own_prefix():
    found = karat.evaluate(GOLD, RUN, ["P@1", "P@3", "R@3"], top_k=2, score_threshold=0.3)
    # q1: a, b of a, b, c; q2: a of a, b.
    assert found.per_query.rows() == [("q1", 1.0, 1 / 3, 0.5), ("q2", 0.0, 0.0, 0.0)]


def test_a_score_equal_to_the_threshold_is_kept():
    assert karat.evaluate(GOLD, RUN, "R@3", score_threshold=0.4).per_query["R@3"][0] == 1.0
    above = float(np.nextafter(0.4, 1))
    assert karat.evaluate(GOLD, RUN, "R@3", score_threshold=above).per_query["R@3"][0] == 0.5


def test_a_list_that_becomes_empty_counts_as_retrieved_nothing():
    words = {"missing": "error"}
    found = karat.evaluate(GOLD, RUN, ["RR"], score_threshold=0.35, conventions=words)
    assert found.per_query["RR"].to_list() == [1.0, 0.0]
    assert (found.left_out, found.noted) == ({}, {})


@pytest.mark.parametrize(
    ("measure", "value"), [("R@3", 0.0), ("span.recall@3", 0.0), ("evidence.recall@3", 0.0)]
)
def test_every_list_may_become_empty(measure, value):
    gold = [
        {
            "query_id": "q",
            "relevant": ["a"],
            "spans": [{"doc_id": "d", "start": 0, "end": 5}],
            "evidence": ["hello"],
        }
    ]
    place = {"id": "a", "doc_id": "d", "start": 0, "end": 5, "text": "hello", "score": 0.5}
    run = [{"query_id": "q", "results": [place]}]
    assert karat.evaluate(gold, run, measure)[measure] == 1.0
    assert karat.evaluate(gold, run, measure, score_threshold=0.6)[measure] == value


def test_documents_are_derived_from_the_shaped_list():
    run = [
        {
            "query_id": "q",
            "results": [{"id": f"{d}{n}", "doc_id": d} for n, d in enumerate("xxb")],
        }
    ]
    for top_k, value in ((2, 0.0), (3, 1.0)):
        found = karat.evaluate({"q": ["b"], "r": ["x"]}, run, "R@2", level="doc", top_k=top_k)
        assert found.per_query["R@2"][0] == value


def test_removed_items_do_not_cause_a_warning_about_ids():
    """A warning would be an error here."""
    found = karat.evaluate(GOLD, RUN, ["R@3"], score_threshold=0.9)
    assert found["R@3"] == 0.25


def test_timings_calls_and_errors_are_kept():
    run = karat.Run.of(
        [
            {
                "query_id": "q1",
                "results": [{"id": "a", "score": 0.1}],
                "latency_ms": {"total": 5.0},
                "calls": [{"model": "m"}],
            },
            {"query_id": "q2", "error": {"type": "Timeout"}},
        ],
        name="mine",
    )
    shaped = run.shaped(score_threshold=0.5)
    assert shaped.timings.equals(run.timings)
    assert shaped.calls.equals(run.calls)
    assert (shaped.failed, shaped.name) == (1, "mine")
    assert set(shaped.empty) == {"q1", "q2"}


def test_without_settings_the_run_is_unchanged():
    run = karat.Run.of(RUN)
    assert run.shaped() is run


@pytest.mark.parametrize("top_k", [0, -1, 2.0, True, "5", 2**63, float("nan")])
def test_a_length_that_is_not_a_positive_integer_is_refused(top_k):
    with refused(field="top_k") as caught:
        karat.evaluate(GOLD, RUN, top_k=top_k)
    assert repr(top_k) in caught.value.problem


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), "0.4", True, 10**400])
def test_a_threshold_that_is_not_a_finite_number_is_refused(threshold):
    with refused(field="score_threshold"):
        karat.evaluate(GOLD, RUN, score_threshold=threshold)


def test_a_threshold_needs_the_score_of_every_item():
    with refused(path=None, field="score") as caught:
        karat.Run.of({"q1": ["a"]}).shaped(score_threshold=0.5)
    assert "score_threshold" in caught.value.hint
    some = [{"query_id": "q7", "results": [{"id": "a", "score": 0.5}, {"id": "b"}]}]
    with refused(path="mine", field="score") as caught:
        karat.evaluate({"q7": ["a"]}, karat.Run.of(some, name="mine"), score_threshold=0.1)
    assert "'q7'" in caught.value.problem
    assert karat.Run.of(some).shaped(top_k=1).results.height == 1
    assert karat.Run.of({"q1": []}).shaped(score_threshold=0.5).empty == ("q1",)


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_settings_are_saved_with_the_scores(tmp_path, ending):
    path = tmp_path / f"scores.{ending}"
    found = karat.evaluate(GOLD, RUN, "RR", top_k=np.int64(5), score_threshold=np.float32(0.25))
    assert str(found.settings) == "top_k=5, score_threshold=0.25"
    found.write(path)
    assert karat.Scores.read(path).settings == found.settings
    whole = karat.evaluate(GOLD, RUN, "RR")
    whole.write(path)
    assert not karat.Scores.read(path).settings


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    """Run karat on gold.json and run.json; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name, content in {"gold.json": GOLD, "run.json": RUN}.items():
        (tmp_path / name).write_text(json.dumps(content))
    return command


def test_the_command_line_shapes_lists_and_prints_the_settings(command):
    words = ("eval", "gold.json", "run.json", "-m", "R@3", "--no-intervals")
    flags = ("--top-k", "2", "--score-threshold", "0.3")
    assert command(*words, *flags) == (
        0,
        "run: R@3 0.250 over 2 queries\n\n"
        "measure     run  0 … 1                 queries\n"
        "R@3       0.250       ●                      2\n"
        "Judged@3  0.250\n\n"
        "run: 3 of 5 results are left after top_k=2, score_threshold=0.3, 1.5 per query\n"
        "list: top_k=2, score_threshold=0.3\n",
        "next: karat explain R@3 --gold gold.json --run run.json --query q2 --top-k 2 "
        "--score-threshold 0.3\n",
    )
    output = json.loads(command(*words, *flags, "--json")[1])
    assert output["settings"] == {"top_k": 2, "score_threshold": 0.3}
    assert "settings" not in json.loads(command(*words, "--json")[1])
    code, out, err = command(*words, "--top-k", "0")
    assert (code, out) == (2, "")
    assert err.startswith("error: top_k: ")


def test_explain_calculates_on_the_list_that_eval_scores(command):
    words = ("explain", "R@3", "--gold", "gold.json", "--run", "run.json", "--query", "q1")
    for flags, settings in {
        ("--top-k", "2"): "list: top_k=2\n",
        ("--score-threshold", "0.45"): "list: score_threshold=0.45\n",
    }.items():
        code, out, _ = command(*words, *flags)
        assert (code, "R@3 = 0.5" in out, settings in out) == (0, True, True)
    assert "R@3 = 1.0" in command(*words)[1]
    code, out, err = command("explain", "R@3", "--top-k", "2")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")


def test_only_the_preset_reads_the_environment(command, monkeypatch):
    monkeypatch.setenv("RAG_TOP_K", "no number")
    assert command("eval", "gold.json", "run.json", "-m", "R@3")[0] == 0
    assert command("eval", "gold.json", "run.json", "--preset", "graded")[0] == 0
