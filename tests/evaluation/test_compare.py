"""`karat.compare`: pairs of runs, queries that moved, and changes in their lists."""

import math
import os
import re
import threading
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data import run_source
from karat.errors import ConventionError, InputError, KaratWarning, MeasureError
from karat.report.comparison import ComparisonSheet
from oracles import comparison as compare_oracle
from support.effort import examples
from support.errors import refused

ITEMS = ["a", "b", "c", "d"]
golds = st.dictionaries(
    st.sampled_from([f"q{number}" for number in range(6)]),
    st.dictionaries(st.sampled_from(ITEMS), st.integers(0, 3), min_size=1),
    min_size=1,
)
lists = st.lists(st.sampled_from([*ITEMS, "x", "y"]), unique=True, max_size=6)
GOLD = {"q1": {"a": 2, "b": 1}, "q2": ["c"], "q3": ["a"], "q4": ["b"]}
OLD = {"q1": ["x", "a", "b"], "q2": ["c"], "q3": ["x", "a"], "q4": ["b"]}
NEW = {"q1": ["a", "b"], "q2": ["x", "c"], "q3": ["a"], "q4": ["b"]}


@st.composite
def compared(draw):
    gold = draw(golds)
    runs = [{query: draw(lists) for query in gold} for _ in range(2)]
    return gold, *runs


def test_a_pair_is_compared_by_hand():
    pairs = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR").pairs
    (row,) = pairs.to_dicts()
    # RR of old: 1/2 1 1/2 1; of new: 1 1/2 1 1.
    assert (row["value_a"], row["value_b"], row["difference"]) == (0.75, 0.875, 0.125)
    assert row["relative"] == 0.125 / 0.75
    assert (row["wins"], row["ties"], row["losses"], row["n"], row["left_out"]) == (2, 1, 1, 4, 0)
    # Signs of ±1/2 ±1/2 ±1/2: the sum is at least 1/2 away from 0 in every one of 8.
    assert (row["p"], row["p_corrected"], row["p_randomization"]) == (1.0, 1.0, 1.0)
    spread = math.sqrt((0.375**2 + 0.625**2 + 0.375**2 + 0.125**2) / 3)
    assert row["effect"] == pytest.approx(0.125 / spread, rel=1e-12)


def test_runs_are_compared_with_each_other_or_with_the_baseline():
    runs = {"old": OLD, "new": NEW, "none": {q: ["x"] for q in GOLD}}

    def paired(**options):
        pairs = karat.compare(GOLD, runs, ["RR", "P@1"], **options).pairs
        return list(pairs.select("a", "b", "measure").iter_rows())

    every = [("old", "new"), ("old", "none"), ("new", "none")]
    assert paired() == [(a, b, m) for a, b in every for m in ("RR", "P@1")]
    with_new = [("new", "old"), ("new", "none")]
    assert paired(baseline="new") == [(a, b, m) for a, b in with_new for m in ("RR", "P@1")]


def test_the_chosen_test_and_correction_are_used():
    runs = {"old": OLD, "new": NEW, "none": {q: ["x"] for q in GOLD}}
    comparison = karat.compare(GOLD, runs, "RR", test="t", correction="bonferroni")
    assert (comparison.test, comparison.correction) == ("t", "bonferroni")
    assert comparison.pairs["p"].equals(comparison.pairs["p_t"])
    expected = [min(1.0, 3 * p) for p in comparison.pairs["p"]]
    assert comparison.pairs["p_corrected"].to_list() == expected
    assert (comparison.baseline, comparison.confidence) == (None, 0.95)


def test_queries_are_joined_by_id_and_those_in_only_one_run_are_reported():
    shuffled = {query: NEW[query] for query in ("q4", "q2", "q1")}
    runs = {"old": OLD, "new": shuffled}
    (zero,) = karat.compare(GOLD, runs, "RR").pairs.to_dicts()
    assert (zero["n"], zero["left_out"], zero["value_b"]) == (4, 0, 2.5 / 4)
    comparison = karat.compare(GOLD, runs, "RR", conventions={"missing": "skip"})
    (skip,) = comparison.pairs.to_dicts()
    assert (skip["n"], skip["left_out"], skip["value_a"], skip["value_b"]) == (
        *(3, 1, 2.5 / 3, 2.5 / 3),
    )
    text = str(comparison)
    assert "new − old: 1 query left out (value in only one of the two runs)\n" in text
    assert "new: 1 query of gold not in the run: left out" in text
    assert "conventions: missing=skip" in text
    assert comparison.moved()["query_id"].to_list() == ["q1", "q2"]


def test_remark_names_the_measures_it_applies_to():
    records = [{"query_id": "q1", "results": ["a"], "latency_ms": {"total": 5.0}}]
    untimed = [*records, {"query_id": "q2", "results": ["c"]}]
    timed = [*records, {"query_id": "q2", "results": ["c"], "latency_ms": {"total": 9.0}}]
    gold = {"q1": ["a"], "q2": ["c"]}
    comparison = karat.compare(gold, {"a": untimed, "b": timed}, ["RR", "latency.mean"])
    remark = "b − a: 1 query left out of latency.mean (value in only one of the two runs)"
    assert remark in str(comparison).splitlines()


def test_order_of_rows_does_not_change_a_bit():
    queries = [f"q{number:02}" for number in range(30)]
    gold = {q: {"a": 1 + at % 3, "b": 1} for at, q in enumerate(queries)}
    one = {q: ["a", "x", "b"][at % 3 :] for at, q in enumerate(queries)}
    other = {q: ["b", "a", "x"][at % 2 :] for at, q in enumerate(queries)}

    def backwards(table):
        return {query: table[query] for query in reversed(table)}

    measures = ["nDCG", "AP", "Success@1"]
    first = karat.compare(gold, {"a": one, "b": other}, measures)
    second = karat.compare(backwards(gold), {"a": backwards(one), "b": backwards(other)}, measures)
    assert first.pairs.equals(second.pairs)
    assert first.moved().equals(second.moved())
    assert str(first) == str(second)


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@examples(30, 300)
@given(compared(), st.integers(1, 3))
def test_the_queries_that_moved_most_are_those_of_the_oracle(data, n):
    gold, one, other = data
    comparison = karat.compare(gold, {"one": one, "other": other}, ["P@2", "RR"])
    for measure in ("P@2", "RR"):
        tables = [scores.per_query.select("query_id", measure) for scores in comparison.scores]
        values = [dict(table.iter_rows()) for table in tables]
        rows = comparison.moved(measure, n)
        expected = compare_oracle.moved(*values, n)
        assert list(rows.select("query_id", "value_a", "value_b").iter_rows()) == expected
        assert rows["difference"].to_list() == [b - a for _, a, b in expected]
    both = [comparison.moved(measure, n) for measure in ("P@2", "RR")]
    assert comparison.moved(n=n).equals(pl.concat(both))


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@examples(30, 300)
@given(compared())
def test_changes_are_those_of_the_oracle(data):
    gold, one, other = data
    comparison = karat.compare(gold, {"one": one, "other": other}, "nDCG@3")
    for query, grades in gold.items():
        frame = comparison.changes(query, "nDCG@3", "one", "other")
        rows = frame.select("item", "grade", "rank_a", "rank_b").iter_rows()
        changes = {item: grade_and_ranks for item, *grade_and_ranks in rows}
        assert changes == compare_oracle.changes(grades, one[query], other[query], 3)
        moves = (frame["brought_b"] - frame["brought_a"]).abs().to_list()
        assert moves == sorted(moves, reverse=True)


def test_moved_has_query_texts_where_gold_has_them():
    records = [
        {"query_id": "q1", "query": "refund?", "relevant": ["a"]},
        {"query_id": "q2", "relevant": ["b"]},
    ]
    runs = {"one": {"q1": ["x", "a"], "q2": ["b"]}, "two": {"q1": ["a"], "q2": ["x", "b"]}}
    rows = karat.compare(records, runs, "RR").moved()
    names = ["a", "b", "measure", "query_id", "text", "value_a", "value_b", "difference"]
    assert rows.columns == names
    assert list(rows.select("query_id", "text", "difference").iter_rows()) == [
        ("q1", "refund?", 0.5),
        ("q2", None, -0.5),
    ]
    assert "text" not in karat.compare({"q1": ["a"], "q2": ["b"]}, runs, "RR").moved().columns


def test_values_that_differ_by_rounding_alone_have_not_moved():
    gold = {"q1": ["a"], "q2": ["a"]}
    one = karat.evaluate(gold, {"q1": ["a"], "q2": ["x", "a"]}, "RR")
    other = karat.evaluate(gold, {"q1": ["a"], "q2": ["a"]}, "RR")
    nudged = one.table.frame.with_columns(RR=pl.Series([1 - 2**-53, 0.5]))
    one = replace(one, table=karat.ScoreTable(one.table.measures, nudged, one.table.counts))
    comparison = karat.compare(None, {"one": one, "other": other})
    assert comparison.moved()["query_id"].to_list() == ["q2"]
    assert comparison.pairs["ties"].item() == 1


@pytest.mark.parametrize("way", ["path", "dict", "frame", "run"])
def test_runs_of_every_kind_are_opened_again_for_changes(tmp_path, way):
    path = tmp_path / "old.run"
    karat.Run.of(OLD).write(path)
    run = {
        "path": str(path),
        "dict": OLD,
        "frame": karat.Run.of(OLD).results,
        "run": karat.Run.of(OLD),
    }[way]
    comparison = karat.compare(GOLD, {"old": run, "new": NEW}, "RR")
    assert comparison.changes("q1", "RR", "old", "new").rows() == [("a", 2, 2, 1, 0.5, 1.0)]
    assert comparison.changes("q4", "RR", "old", "new").height == 0


@pytest.mark.parametrize(("room", "times"), [(run_source.CACHE_BYTES, 1), (0, 2)])
def test_each_run_is_read_once_and_again_only_if_too_large_to_keep(
    room, times, tmp_path, monkeypatch
):
    monkeypatch.setattr(run_source, "CACHE_BYTES", room)
    for name, run in (("old", OLD), ("new", NEW), ("third", OLD)):
        karat.Run.of(run).write(tmp_path / f"{name}.run")
    opened = []
    read = karat.Run.read.__func__

    def counting(cls, path, **options):
        opened.append(Path(path).name)
        return read(cls, path, **options)

    monkeypatch.setattr(karat.Run, "read", classmethod(counting))
    paths = [tmp_path / f"{name}.run" for name in ("old", "new", "third")]
    comparison = karat.compare(GOLD, paths, "RR")
    assert opened == ["old.run", "new.run", "third.run"]
    ComparisonSheet(comparison)
    assert sorted(opened) == sorted(["old.run", "new.run", "third.run"] * times)


def test_a_run_from_a_pipe_is_kept_since_it_is_read_only_once(tmp_path):
    pipe = tmp_path / "new.run"
    os.mkfifo(pipe)
    lines = "".join(
        f"{query} Q0 {item} 1 {9 - at} t\n" for query in NEW for at, item in enumerate(NEW[query])
    )
    writer = threading.Thread(target=lambda: pipe.write_text(lines))
    writer.start()
    comparison = karat.compare(GOLD, {"old": OLD, "new": str(pipe)}, "RR")
    writer.join()
    assert comparison.changes("q1", "RR", "old", "new").height == 1


def test_a_run_that_has_changed_since_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(run_source, "CACHE_BYTES", 0)  # as if it were too large to keep
    path = tmp_path / "old.run"
    karat.Run.of(OLD).write(path)
    comparison = karat.compare(GOLD, {"old": path, "new": NEW}, "RR")
    karat.Run.of(NEW).write(path)
    with refused(field="runs") as error:
        comparison.changes("q1", "RR", "old", "new")
    assert "'old'" in error.value.problem


def test_changes_use_the_top_k_of_the_scores():
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR", top_k=1)
    assert comparison.changes("q1", "RR", "old", "new").rows() == [("a", 2, None, 1, 0.0, 1.0)]


def test_the_largest_grade_is_that_of_all_queries():
    gold = {"q1": {"a": 1}, "q2": {"b": 3}}
    runs = {"one": {"q1": ["x", "a"], "q2": ["b"]}, "two": {"q1": ["a"], "q2": ["b"]}}
    comparison = karat.compare(gold, runs, "ERR")
    assert comparison.changes("q1", "ERR", "one", "two")["item"].to_list() == ["a"]


def test_changes_are_available_with_conventions_that_raise_errors():
    words = {"missing": "error", "unknown": "error", "duplicates": "error"}
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR", conventions=words)
    assert comparison.changes("q1", "RR", "old", "new").height == 1


def test_changes_cover_spans_and_evidence():
    spans = [{"query_id": "q", "spans": [{"doc_id": "d", "start": 0, "end": 10}]}]

    def run_at(start):
        return [{"query_id": "q", "results": [{"doc_id": "d", "start": start, "end": start + 8}]}]

    comparison = karat.compare(spans, {"one": run_at(5), "two": run_at(2)}, "span.recall@5")
    frame = comparison.changes("q", "span.recall@5", "one", "two")
    assert sorted(frame.select("item", "rank_a", "rank_b").rows()) == [
        ("d[2:10]", None, 1),
        ("d[5:13]", 1, None),
    ]
    texts = [{"query_id": "q", "evidence": ["paid within 14 days"]}]

    def run_with(*texts):
        return [{"query_id": "q", "results": [{"text": text} for text in texts]}]

    runs = {
        "one": run_with("No.", "It is paid within 14 days."),
        "two": run_with("Paid within 14 days!"),
    }
    comparison = karat.compare(texts, runs, "evidence.RR")
    frame = comparison.changes("q", "evidence.RR", "one", "two")
    assert sorted(frame.select("item", "rank_a", "rank_b").rows()) == [
        ("It is paid within 14 days.", 2, None),
        ("Paid within 14 days!", None, 1),
    ]


def test_changes_do_not_repeat_warnings_of_scoring():
    gold = [{"query_id": "q", "evidence": ["paid within 14 days", " "]}]

    def run_with(*texts):
        return [{"query_id": "q", "results": [{"text": text} for text in texts]}]

    runs = {
        "one": run_with("No.", "It is paid within 14 days."),
        "two": run_with("Paid within 14 days!"),
    }
    with pytest.warns(KaratWarning) as warned:
        comparison = karat.compare(gold, runs, "evidence.RR")
    assert len(warned) == 1
    assert comparison.changes("q", "evidence.RR", "one", "two").height == 2


def test_latency_moves_but_changes_no_item():
    def timed(ms):
        return [{"query_id": "q", "results": ["a"], "latency_ms": {"total": ms}}]

    comparison = karat.compare({"q": ["a"]}, {"a": timed(5.0), "b": timed(25.0)}, "latency.mean")
    assert comparison.moved()["difference"].to_list() == [20.0]
    assert comparison.changes("q", "latency.mean", "a", "b").height == 0
    rows = [line.split() for line in str(comparison).splitlines()]
    assert ["q", "5.00", "25.00", "+20.00"] in rows


def test_groups_are_compared_and_corrected_over_all_of_them():
    gold = [
        {"query_id": f"q{at}", "kind": "odd" if at % 2 else "even", "relevant": ["a"]}
        for at in range(12)
    ]
    one = {f"q{at}": ["x", "a"] for at in range(12)}
    two = {f"q{at}": ["a"] if at % 2 else ["x", "a"] for at in range(12)}
    comparison = karat.compare(gold, {"one": one, "two": two}, "RR", by="kind")
    assert comparison.groups.columns == ["kind", *comparison.pairs.columns]
    rows = comparison.groups.select("kind", "difference", "wins", "ties", "n", "p", "p_corrected")
    assert rows.rows() == [
        ("even", 0.0, 0, 6, 6, 1.0, 1.0),
        ("odd", 0.5, 6, 0, 6, 2 / 64, 4 / 64),
    ]
    several = karat.compare(gold, {"one": one, "two": two}, "RR", by=["kind", _first_digit])
    assert several.groups.columns[:2] == ["kind", "_first_digit"]
    assert karat.compare(gold, {"one": one, "two": two}, "RR").groups is None


def _first_digit(query):
    return int(query["query_id"][1])


def test_queries_needed_are_more_for_a_smaller_difference():
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, ["RR", "nDCG"])
    rough, fine = comparison.queries_needed(0.2), comparison.queries_needed(0.05)
    assert rough["measure"].to_list() == ["RR", "nDCG"]
    assert (fine["queries"] > rough["queries"]).all()


def test_scores_are_taken_as_they_are():
    old, new = (karat.evaluate(GOLD, run, ["RR", "nDCG"]) for run in (OLD, NEW))
    fresh = karat.compare(GOLD, {"old": OLD, "new": NEW}, ["nDCG"])
    saved = karat.compare(None, {"old": old, "new": new}, "nDCG")
    assert saved.pairs.equals(fresh.pairs)
    assert saved.scores[0].per_query.columns == ["query_id", "nDCG"]
    mixed = karat.compare(GOLD, {"old": old, "new": NEW})
    assert mixed.pairs["measure"].to_list() == ["RR", "nDCG"]
    assert mixed.pairs.filter(measure="nDCG").equals(fresh.pairs)
    assert mixed.changes("q1", "RR", "old", "new").height == 1
    assert mixed.scores[0].name == "old"
    assert old.name == "run"


def test_changes_are_unknown_for_saved_scores(tmp_path):
    karat.evaluate(GOLD, OLD, ["RR", "nDCG"]).write(tmp_path / "old.json")
    mixed = karat.compare(GOLD, {"old": tmp_path / "old.json", "new": NEW})
    remark = "changes within lists are unknown for runs that were read as saved scores"
    assert remark in str(mixed).splitlines()
    with refused(field="run") as error:
        mixed.changes("q1", "RR", "old", "new")
    assert "'old'" in error.value.problem
    assert "'new'" in error.value.problem


def test_query_fields_are_taken_from_gold_where_scores_have_none():
    gold = [{"query_id": q, "kind": "k", "relevant": GOLD[q]} for q in GOLD]
    old = karat.evaluate(GOLD, OLD, "RR")
    groups = karat.compare(gold, {"old": old, "new": NEW}, by="kind").groups
    assert groups.select("kind", "n").rows() == [("k", 4)]


def test_saved_scores_are_compared_with_a_run(tmp_path):
    karat.evaluate(GOLD, OLD, "RR").write(tmp_path / "old.parquet")
    saved = karat.Scores.read(tmp_path / "old.parquet")
    new = karat.Run.of(NEW, name="new")
    comparison = karat.compare(GOLD, [saved, new])
    assert comparison.pairs.select("a", "b", "difference").row(0) == ("run", "new", 0.125)
    path = str(tmp_path / "old.parquet")
    by_path = karat.compare(GOLD, [new, path], baseline=path)
    assert by_path.pairs.equals(comparison.pairs)


def test_matching_rule_is_compared_only_for_evidence_measures():
    gold = [{"query_id": "q", "relevant": ["a"], "evidence": ["yes"]}]
    run = [{"query_id": "q", "results": [{"id": "a", "text": "yes"}]}]
    scores = karat.evaluate(gold, run, ["RR", "evidence.RR"])
    comparison = karat.compare(gold, {"old": scores, "new": run}, "RR")
    assert comparison.pairs["difference"].to_list() == [0.0]


@pytest.mark.parametrize(
    ("options", "kind", "field", "value", "suggestion"),
    [
        ({"runs": {"old": OLD}}, InputError, "runs", "", ""),
        ({"runs": []}, InputError, "runs", "", ""),
        ({"runs": "old.run"}, InputError, "runs", "", ""),
        ({"runs": karat.Run.of(OLD)}, InputError, "runs", "", ""),
        ({"runs": {1: OLD, "1": NEW}}, InputError, "runs", "'1'", ""),
        ({"baseline": "odl"}, InputError, "baseline", "'odl'", "'old'"),
        ({"baseline": "zzz"}, InputError, "baseline", "'zzz'", "'old', 'new'"),
        ({"test": "sign"}, InputError, "test", "'sign'", "randomization, t, wilcoxon"),
        ({"correction": "sidak"}, InputError, "correction", "'sidak'", "holm, bh, bonferroni"),
        ({"confidence": 95}, InputError, "confidence", "95", ""),
        ({"by": "kind"}, InputError, "by", "'kind'", ""),
        ({"measures": "nDGC"}, MeasureError, None, "'nDGC'", "nDCG"),
        ({"conventions": {"missing": "drop"}}, ConventionError, "missing", "'drop'", "zero, skip"),
    ],
)
def test_impossible_comparison_is_refused_with_a_hint(options, kind, field, value, suggestion):
    arguments = {"runs": {"old": OLD, "new": NEW}, "measures": "RR"} | options
    with refused(kind, field=field) as error:
        karat.compare(GOLD, **arguments)
    assert value in error.value.problem
    assert suggestion in error.value.hint


def test_grouping_by_a_field_named_like_a_column_of_pairs_is_refused():
    gold = [{"query_id": query, "p": "x", "relevant": ["a"]} for query in GOLD]
    with refused(field="by") as error:
        karat.compare(gold, {"old": OLD, "new": NEW}, "RR", by="p")
    assert "'p'" in error.value.problem
    assert error.value.hint


def test_scores_with_other_settings_are_refused():
    skipped = karat.evaluate(GOLD, OLD, "RR", conventions={"missing": "skip"})
    cut = karat.evaluate(GOLD, OLD, "RR", top_k=1)
    for scores, pattern in (
        (skipped, "'new'.*'old'.*missing=zero.*missing=skip"),
        (cut, "'new'.*'old'.*top_k=None.*top_k=1"),
    ):
        with refused(field="runs") as error:
            karat.compare(GOLD, {"old": scores, "new": NEW})
        assert re.search(pattern, error.value.problem)
    with refused(field="runs") as error:
        karat.compare(GOLD, {"old": cut, "new": NEW}, "AP", top_k=1)
    assert "AP" in error.value.problem
    assert "RR" in error.value.hint
    same = karat.evaluate(GOLD, OLD, "RR")
    with refused(field="runs") as error:
        karat.compare(GOLD, [same, same])
    assert "'run'" in error.value.problem


def test_unknown_names_and_invalid_numbers_are_refused():
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR")
    for call, kind, field, value in (
        (lambda: comparison.changes("q9", "RR", "old", "new"), InputError, "query", "'q9'"),
        (lambda: comparison.changes("q1", "RR", "odl", "new"), InputError, "run", "'odl'"),
        (lambda: comparison.changes("q1", "AP", "old", "new"), MeasureError, None, "AP"),
        (lambda: comparison.moved("AP"), MeasureError, None, "AP"),
        (lambda: comparison.moved(n=0), InputError, "n", "0"),
        (lambda: comparison.queries_needed(0), InputError, "difference", "0"),
        (lambda: comparison.queries_needed(math.nan), InputError, "difference", "nan"),
    ):
        with refused(kind, field=field) as error:
            call()
        assert value in error.value.problem
        assert error.value.hint


def test_the_short_form_names_runs_and_measures():
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, ["mrr", "P@1"])
    assert repr(comparison) == "<Comparison of 'old', 'new': RR, P@1>"
