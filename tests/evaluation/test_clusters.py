"""Clusters of queries in evaluate, compare and gate, in files, and on the command line."""

import json

import polars as pl
import pytest

import karat
from karat.errors import InputError
from karat.evaluation.scores import Scores
from karat.report import document

USERS = 25
GOLD = [
    {"query_id": f"q{user:02}-{at}", "relevant": ["a"], "user_id": f"u{user}", "tags": ["x"]}
    | {"kind": "odd" if at % 2 else "even"}
    for user in range(USERS)
    for at in range(1 + user % 4)
] + [{"query_id": "q99-0", "relevant": ["a"], "kind": "even"}]
IDS = [query["query_id"] for query in GOLD]


def run_of(shift):
    """Return a run with equal lists for all queries of a user."""
    return {query: [*"xyz"[: (int(query[1:3]) + shift) % 4], "a"] for query in IDS}


OLD, NEW = run_of(0), run_of(1)


def test_the_value_stays_and_the_interval_is_wider():
    plain = karat.evaluate(GOLD, OLD, "RR")
    scores = karat.evaluate(GOLD, OLD, "RR", cluster="user_id")
    assert scores["RR"] == plain["RR"]
    (a,), (b,) = plain.summary().to_dicts(), scores.summary().to_dicts()
    assert b["high"] - b["low"] > 1.3 * (a["high"] - a["low"])
    assert plain.cluster_counts is None
    counts = scores.cluster_counts
    assert (counts.field, counts.clusters, counts.queries, counts.alone) == (
        "user_id",
        26,
        len(IDS),
        1,
    )
    assert scores.clustered(None).summary().equals(plain.summary())
    assert plain.clustered("user_id").summary().equals(scores.summary())


def test_groups_use_the_clusters_of_their_queries():
    scores = karat.evaluate(GOLD, OLD, "RR", cluster="user_id")
    odd = [query for query in GOLD if query["kind"] == "odd"]
    alone = karat.evaluate(odd, OLD, "RR", cluster="user_id")
    ends = ("low", "high", "n")
    assert scores.by("kind").row(1, named=True)["kind"] == "odd"
    assert scores.by("kind").select(ends).row(1) == alone.summary().select(ends).row(0)


def test_compare_counts_clusters_and_says_so():
    comparison = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR", cluster="user_id", by="kind")
    row = comparison.pairs.row(0, named=True)
    assert (row["n"], row["clusters"]) == (len(IDS), 26)
    assert comparison.groups["clusters"].to_list() == [26, 18]
    plain = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR")
    assert "clusters" not in plain.pairs.columns
    assert row["p"] > plain.pairs["p"][0]
    text = str(comparison)
    assert "in 26 clusters by user_id" in text.replace("\n ", "")


def test_few_clusters_are_reported():
    scores = karat.evaluate(GOLD, OLD, "RR", cluster="kind")
    assert any("only 2 clusters by kind" in note for note in document(scores).notes)
    assert scores.summary()["method"].to_list() == [None]
    many = karat.evaluate(GOLD, OLD, "RR", cluster="user_id")
    assert not any("narrow" in note for note in document(many).notes)


def test_gate_needs_enough_clusters_that_differ():
    fallen = NEW | {query: OLD[query] for query in IDS if query[1:3] not in ("00", "03", "07")}
    verdict = karat.gate(GOLD, OLD, "RR max_drop 0.001", baseline=fallen, cluster="user_id")
    (check,) = verdict.checks
    assert (check.clusters, check.differing_clusters) == (26, 3)
    assert "only 3 of 26 clusters differ" in check.reason
    assert verdict.as_dict()["cluster"]["clusters"] == 26
    with pytest.raises(karat.KaratError, match="2 clusters"):
        karat.gate(GOLD, OLD, "RR max_drop 0.1", baseline=NEW, cluster="kind")


@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_saved_scores_keep_their_clusters(tmp_path, ending):
    scores = karat.evaluate(GOLD, OLD, "RR", cluster="user_id")
    path = tmp_path / f"scores.{ending}"
    scores.write(path)
    read = Scores.read(path)
    assert read.cluster == "user_id"
    assert read.summary().equals(scores.summary())
    both = karat.compare(GOLD, {"old": str(path), "new": NEW}, "RR")
    fresh = karat.compare(GOLD, {"old": OLD, "new": NEW}, "RR", cluster="user_id")
    assert both.pairs.equals(fresh.pairs)
    with_baseline = karat.gate(GOLD, NEW, "RR max_drop 0.1", baseline=str(path))
    assert with_baseline.checks[0].clusters is None
    plain = karat.gate(GOLD, NEW, "RR max_drop 0.1", baseline=OLD)
    assert with_baseline.checks[0].bound == plain.checks[0].bound


def test_a_wrong_field_is_refused_before_the_run_is_read():
    for call in (karat.evaluate, karat.compare):
        runs = "absent.run" if call is karat.evaluate else ["absent.run", "gone.run"]
        with pytest.raises(InputError) as caught:
            call(GOLD, runs, "RR", cluster="users")
        assert caught.value.field == "cluster"
        assert caught.value.hint == "did you mean 'user_id'?"


def test_the_command_line_prints_and_writes_clusters(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    for name, run in (("old", OLD), ("new", NEW)):
        karat.Run.of(run, name=name).write(f"{name}.jsonl")
    code, out, err = command("eval", "gold.jsonl", "old.jsonl", "-m", "RR", "--cluster", "user_id")
    assert (code, "misspelling" in err) == (0, False)
    assert "cluster-robust t on the logit scale" in out
    code, out, _ = command(
        "compare",
        "gold.jsonl",
        "old.jsonl",
        "new.jsonl",
        "-m",
        "RR",
        "--cluster",
        "user_id",
        "--json",
    )
    assert json.loads(out)["pairs"][0]["clusters"] == 26
    code, out, _ = command(
        "gate",
        "gold.jsonl",
        "new.jsonl",
        "--baseline",
        "old.jsonl",
        "--require",
        "RR max_drop 0.5",
        "--cluster",
        "user_id",
        "--json",
    )
    assert (code, json.loads(out)["gates"][0]["cluster"]["alone"]) == (0, 1)


def test_the_report_states_the_clusters(tmp_path):
    karat.evaluate(GOLD, OLD, "RR", cluster="user_id").report(tmp_path / "report.html")
    assert "26 clusters by user_id" in (tmp_path / "report.html").read_text()


def test_numbers_and_bools_make_clusters():
    queries = pl.DataFrame(
        {"query_id": ["a", "b", "c"], "session": [1, 1, 2], "new": [True, False, True]}
    )
    gold = karat.Gold.of({"a": ["x"], "b": ["x"], "c": ["x"]})
    records = [{"relevant": ["x"], **query} for query in queries.to_dicts()]
    assert gold.queries.height == 3
    for field in ("session", "new"):
        scores = karat.evaluate(records, {"a": ["x"]}, "RR", cluster=field)
        assert scores.cluster_counts.clusters == 2
