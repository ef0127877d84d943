"""`karat.compare`: which runs are paired how, what moved, and what changed in the lists."""

import math
import os
import threading
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import InputError, KaratWarning
from oracles import comparison as compare_oracle

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


def test_all_are_compared_with_all_or_with_the_baseline():
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


def test_queries_are_joined_by_id_and_those_in_only_one_run_are_said():
    shuffled = {query: NEW[query] for query in ("q4", "q2", "q1")}
    runs = {"old": OLD, "new": shuffled}
    (zero,) = karat.compare(GOLD, runs, "RR").pairs.to_dicts()
    assert (zero["n"], zero["left_out"], zero["value_b"]) == (4, 0, 2.5 / 4)
    comparison = karat.compare(GOLD, runs, "RR", conventions={"missing": "skip"})
    (skip,) = comparison.pairs.to_dicts()
    assert (skip["n"], skip["left_out"], skip["value_a"], skip["value_b"]) == (
        *(3, 1, 2.5 / 3, 2.5 / 3),
    )
    said = str(comparison)
    assert "new − old: 1 query with a value in only one of the two left out\n" in said
    assert "new: 1 query of gold not in the run left out" in said
    assert "conventions: missing=skip" in said
    assert comparison.moved()["query_id"].to_list() == ["q1", "q2"]


def test_a_remark_names_the_measures_that_it_is_true_of():
    records = [{"query_id": "q1", "results": ["a"], "latency_ms": {"total": 5.0}}]
    untimed = [*records, {"query_id": "q2", "results": ["c"]}]
    timed = [*records, {"query_id": "q2", "results": ["c"], "latency_ms": {"total": 9.0}}]
    gold = {"q1": ["a"], "q2": ["c"]}
    comparison = karat.compare(gold, {"a": untimed, "b": timed}, ["RR", "latency.mean"])
    said = "b − a: 1 query with a value in only one of the two left out of latency.mean"
    assert said in str(comparison).splitlines()


def test_the_same_bits_whatever_the_order_of_rows():
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
@given(compared())
def test_what_changed_is_what_the_oracle_says(data):
    gold, one, other = data
    comparison = karat.compare(gold, {"one": one, "other": other}, "nDCG@3")
    for query, grades in gold.items():
        frame = comparison.changes(query, "nDCG@3", "one", "other")
        rows = frame.select("item", "grade", "rank_a", "rank_b").iter_rows()
        found = {item: facts for item, *facts in rows}
        assert found == compare_oracle.changes(grades, one[query], other[query], 3)
        moves = (frame["brought_b"] - frame["brought_a"]).abs().to_list()
        assert moves == sorted(moves, reverse=True)


def test_moved_knows_the_texts_of_queries_where_gold_does():
    records = [
        {"query_id": "q1", "query": "refund?", "relevant": ["a"]},
        {"query_id": "q2", "relevant": ["b"]},
    ]
    runs = {"one": {"q1": ["x", "a"], "q2": ["b"]}, "two": {"q1": ["a"], "q2": ["x", "b"]}}
    rows = karat.compare(records, runs, "RR").moved()
    named = ["a", "b", "measure", "query_id", "text", "value_a", "value_b", "difference"]
    assert rows.columns == named
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
    one.table = karat.ScoreTable(one.table.measures, nudged, one.table.counts)
    comparison = karat.compare(None, {"one": one, "other": other})
    assert comparison.moved()["query_id"].to_list() == ["q2"]
    assert comparison.pairs["ties"].item() == 1


@pytest.mark.parametrize("way", ["path", "dict", "frame", "run"])
def test_runs_however_given_are_opened_again_for_what_changed(tmp_path, way):
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


def test_a_run_is_opened_once_for_all_that_is_shown(tmp_path, monkeypatch):
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
    comparison.sheet()
    assert sorted(opened[3:]) == ["new.run", "old.run", "third.run"]


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


def test_a_run_that_has_changed_since_is_refused(tmp_path):
    path = tmp_path / "old.run"
    karat.Run.of(OLD).write(path)
    comparison = karat.compare(GOLD, {"old": path, "new": NEW}, "RR")
    karat.Run.of(NEW).write(path)
    with pytest.raises(InputError, match="'old' has changed since it was scored"):
        comparison.changes("q1", "RR", "old", "new")


def test_lists_are_shaped_for_what_changed_as_they_were_for_the_scores():
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR", top_k=1)
    assert comparison.changes("q1", "RR", "old", "new").rows() == [("a", 2, None, 1, 0.0, 1.0)]


def test_the_largest_grade_is_that_of_all_queries():
    gold = {"q1": {"a": 1}, "q2": {"b": 3}}
    runs = {"one": {"q1": ["x", "a"], "q2": ["b"]}, "two": {"q1": ["a"], "q2": ["b"]}}
    comparison = karat.compare(gold, runs, "ERR")
    assert comparison.changes("q1", "ERR", "one", "two")["item"].to_list() == ["a"]


def test_what_changed_is_known_under_conventions_that_refuse():
    words = {"missing": "error", "unknown": "error", "duplicates": "error"}
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR", conventions=words)
    assert comparison.changes("q1", "RR", "old", "new").height == 1


def test_spans_and_evidence_say_what_changed_too():
    spans = [{"query_id": "q", "spans": [{"doc_id": "d", "start": 0, "end": 10}]}]

    def found(start):
        return [{"query_id": "q", "results": [{"doc_id": "d", "start": start, "end": start + 8}]}]

    comparison = karat.compare(spans, {"one": found(5), "two": found(2)}, "span.recall@5")
    frame = comparison.changes("q", "span.recall@5", "one", "two")
    assert sorted(frame.select("item", "rank_a", "rank_b").rows()) == [
        ("d[2:10]", None, 1),
        ("d[5:13]", 1, None),
    ]
    texts = [{"query_id": "q", "evidence": ["paid within 14 days"]}]

    def told(*texts):
        return [{"query_id": "q", "results": [{"text": text} for text in texts]}]

    runs = {"one": told("No.", "It is paid within 14 days."), "two": told("Paid within 14 days!")}
    comparison = karat.compare(texts, runs, "evidence.RR")
    frame = comparison.changes("q", "evidence.RR", "one", "two")
    assert sorted(frame.select("item", "rank_a", "rank_b").rows()) == [
        ("It is paid within 14 days.", 2, None),
        ("Paid within 14 days!", None, 1),
    ]


def test_what_was_warned_of_when_runs_were_scored_is_not_said_again():
    gold = [{"query_id": "q", "evidence": ["paid within 14 days", " "]}]

    def told(*texts):
        return [{"query_id": "q", "results": [{"text": text} for text in texts]}]

    runs = {"one": told("No.", "It is paid within 14 days."), "two": told("Paid within 14 days!")}
    with pytest.warns(KaratWarning, match="without text"):
        comparison = karat.compare(gold, runs, "evidence.RR")
    assert comparison.changes("q", "evidence.RR", "one", "two").height == 2


def test_speed_moves_and_is_of_no_item():
    def timed(ms):
        return [{"query_id": "q", "results": ["a"], "latency_ms": {"total": ms}}]

    comparison = karat.compare({"q": ["a"]}, {"a": timed(5.0), "b": timed(25.0)}, "latency.mean")
    assert comparison.moved()["difference"].to_list() == [20.0]
    assert comparison.changes("q", "latency.mean", "a", "b").height == 0
    assert "+20.00  5.00 → 25.00  q" in str(comparison)


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


def test_what_changed_is_not_known_of_saved_scores(tmp_path):
    karat.evaluate(GOLD, OLD, ["RR", "nDCG"]).write(tmp_path / "old.json")
    mixed = karat.compare(GOLD, {"old": tmp_path / "old.json", "new": NEW})
    said = "what changed in lists is not known where scores were given for a run"
    assert said in str(mixed).splitlines()
    with pytest.raises(InputError, match="compare runs, not saved scores"):
        mixed.changes("q1", "RR", "old", "new")


def test_fields_of_queries_are_known_from_gold_where_scores_know_none():
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


def test_how_texts_match_matters_only_where_texts_are_measured():
    gold = [{"query_id": "q", "relevant": ["a"], "evidence": ["yes"]}]
    run = [{"query_id": "q", "results": [{"id": "a", "text": "yes"}]}]
    scores = karat.evaluate(gold, run, ["RR", "evidence.RR"])
    comparison = karat.compare(gold, {"old": scores, "new": run}, "RR")
    assert comparison.pairs["difference"].to_list() == [0.0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runs": {"old": OLD}}, "two runs or more"),
        ({"runs": []}, "two runs or more"),
        ({"runs": "old.run"}, "two runs or more"),
        ({"runs": karat.Run.of(OLD)}, "two runs or more"),
        ({"runs": {1: OLD, "1": NEW}}, "two runs are called '1'"),
        ({"baseline": "odl"}, r"no run is called 'odl'\n  hint: did you mean 'old'\?"),
        ({"baseline": "zzz"}, "there are 'old', 'new'"),
        ({"test": "sign"}, "choose one of randomization, t, wilcoxon"),
        ({"correction": "sidak"}, "choose one of holm, bh, bonferroni, tukey, none"),
        ({"confidence": 95}, "95 does not lie between 0 and 1"),
        ({"by": "kind"}, "no field 'kind'"),
        ({"measures": "nDGC"}, "did you mean nDCG"),
        ({"conventions": {"missing": "drop"}}, "choose one of zero, skip, error"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_remedy(options, said):
    given = {"runs": {"old": OLD, "new": NEW}, "measures": "RR"} | options
    with pytest.raises(InputError, match=said):
        karat.compare(GOLD, **given)


def test_a_field_that_is_called_like_a_column_of_pairs_is_refused():
    gold = [{"query_id": query, "p": "x", "relevant": ["a"]} for query in GOLD]
    with pytest.raises(InputError, match="cannot be grouped by 'p'\n  hint: rename the field"):
        karat.compare(gold, {"old": OLD, "new": NEW}, "RR", by="p")


def test_scores_made_otherwise_are_refused():
    old = karat.evaluate(GOLD, OLD, "RR", conventions={"missing": "skip"})
    with pytest.raises(InputError, match="missing=zero there, missing=skip here"):
        karat.compare(GOLD, {"old": old, "new": NEW})
    cut = karat.evaluate(GOLD, OLD, "RR", top_k=1)
    with pytest.raises(InputError, match="top_k=None there, top_k=1 here"):
        karat.compare(GOLD, {"old": cut, "new": NEW})
    with pytest.raises(InputError, match=r"the scores of .* hold no AP\n.*they hold "):
        karat.compare(GOLD, {"old": cut, "new": NEW}, "AP", top_k=1)
    same = karat.evaluate(GOLD, OLD, "RR")
    with pytest.raises(InputError, match="two runs are called 'run'"):
        karat.compare(GOLD, [same, same])


def test_questions_that_have_no_answer_are_refused():
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR")
    for question, said in (
        (lambda: comparison.changes("q9", "RR", "old", "new"), "no query 'q9'"),
        (lambda: comparison.changes("q1", "RR", "odl", "new"), "no run is called 'odl'"),
        (lambda: comparison.changes("q1", "AP", "old", "new"), "AP was not asked for"),
        (lambda: comparison.moved("AP"), "AP was not asked for"),
        (lambda: comparison.moved(n=0), "ask for 1 or more"),
        (lambda: comparison.queries_needed(0), "0 is no difference"),
        (lambda: comparison.queries_needed(math.nan), "such as 0.05"),
    ):
        with pytest.raises(InputError, match=said):
            question()


def test_the_short_form_names_runs_and_measures():
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, ["mrr", "P@1"])
    assert repr(comparison) == "<Comparison of 'old', 'new': RR, P@1>"
