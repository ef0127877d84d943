"""History: values of saved scores in order, with changes that agree with `compare`."""

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.evaluation.provenance import Provenance
from karat.stats.corrections import correct
from support.errors import refused

QUERIES = [f"q{n:02}" for n in range(30)]
GOLD = {query: ["a"] for query in QUERIES}
START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def run(n_good):
    """Return a run that has the relevant item first for so many queries, else second."""
    return {query: ["a"] if at < n_good else ["x", "a"] for at, query in enumerate(QUERIES)}


def scored(n_good, day, *, commit=None, commit_day=0, modified=False, gold=GOLD, **options):
    """Return the scores of a run as if they had been read from a file."""
    scores = karat.evaluate(gold, run(n_good), options.pop("measures", "RR,P@1"), **options)
    committed = None if commit is None else START + timedelta(days=commit_day)
    saved = Provenance(START + timedelta(days=day), commit, committed, modified)
    return replace(scores, saved=saved)


def test_values_are_in_the_order_of_saving_with_changes_as_compare_tests_them(tmp_path):
    for day, n_good in ((3, 25), (1, 10), (2, 12)):
        scored(n_good, day).write(tmp_path / f"{day}.parquet")
    result = karat.history(tmp_path, ["RR", "P@1"])
    table = result.table.filter(measure="RR")
    assert table["saved"].dt.day().to_list() == [2, 3, 4]
    expected = [scored(n, 0)["RR"] for n in (10, 12, 25)]
    assert table["value"].to_list() == pytest.approx(expected)
    # The oracle: one comparison per change, corrected together.
    pairs = [(10, 12), (12, 25), (10, 25)]
    rows = [
        karat.compare(GOLD, {"a": run(a), "b": run(b)}, "RR").pairs.row(0, named=True)
        for a, b in pairs
    ]
    corrected = correct(np.array([row["p"] for row in rows]), "holm")
    changes = [*table.rows(named=True)[1:], *result.overall.filter(measure="RR").rows(named=True)]
    for change, row, p in zip(changes, rows, corrected, strict=True):
        assert change["difference"] == row["difference"]
        assert (change["difference_low"], change["difference_high"]) == (row["low"], row["high"])
        assert change["p"] == p
        assert change["n_compared"] == 30
    assert table.row(0, named=True)["difference"] is None


def test_the_main_measure_of_the_newest_scores_is_the_default():
    old, new = scored(3, 1), scored(4, 2, measures="P@1,RR")
    assert karat.history([new, old]).table["measure"].unique().to_list() == ["P@1"]


def test_the_same_scores_in_two_formats_are_one_entry(tmp_path):
    scores = scored(5, 1)
    scores.write(tmp_path / "a.json")
    scores.write(tmp_path / "a.parquet")
    assert karat.history(tmp_path).table.height == 1


def test_by_commit_keeps_the_newest_scores_of_each_commit_in_the_order_of_the_commits():
    entries = [
        scored(1, 9, commit="a" * 40, commit_day=1),  # the first commit was scored again later
        scored(2, 1, commit="a" * 40, commit_day=1),
        scored(3, 5, commit="b" * 40, commit_day=2),
        scored(4, 6, commit="b" * 40, commit_day=2, modified=True),
        scored(5, 7),
    ]
    result = karat.history(entries, by="commit")
    assert result.table["commit"].str.head(1).to_list() == ["a", "b"]
    assert result.table["value"].to_list() == [scored(1, 0)["RR"], scored(3, 0)["RR"]]
    assert any("2 saved scores" in note for note in result.notes)
    assert any("1 earlier save" in note for note in result.notes)
    with refused(field="by"):
        karat.history(entries[3:], by="commit")


def test_only_the_last_scores_of_each_run_are_shown():
    entries = [scored(n, n) for n in range(6)]
    result = karat.history(entries, last=2)
    assert result.table["value"].to_list() == [scored(n, 0)["RR"] for n in (4, 5)]
    assert result.overall.is_empty()
    assert any("4 older" in note for note in result.notes)


def test_a_change_of_settings_has_no_difference_and_is_reported():
    before, after = scored(5, 1), scored(9, 2, conventions={"missing": "skip"})
    result = karat.history([before, after])
    assert result.table["difference"].to_list() == [None, None]
    assert any("missing=zero" in note for note in result.notes)


def test_added_and_removed_queries_are_reported_and_the_rest_is_compared():
    smaller = {query: GOLD[query] for query in QUERIES[:20]} | {"new": ["a"]}
    result = karat.history([scored(5, 1), scored(9, 2, gold=smaller)])
    last = result.table.row(-1, named=True)
    assert last["n_compared"] == 20
    assert last["difference"] == pytest.approx(4 * 0.5 / 20)
    (note,) = result.notes
    assert "1 query added" in note
    assert "10 queries removed" in note


def test_micro_averages_with_other_denominators_are_not_compared():
    results = {"q1": [{"text": "one two"}]}
    entries = []
    for day, evidence in enumerate((["one"], ["one", "three"])):
        scores = karat.evaluate(
            [{"query_id": "q1", "evidence": evidence}], results, "evidence.recall@5"
        )
        entries.append(replace(scores, saved=Provenance(START + timedelta(days=day))))
    result = karat.history(entries)
    assert result.table["value"].to_list() == [1.0, 0.5]
    assert result.table["difference"].to_list() == [None, None]
    assert any("different gold" in note for note in result.notes)


def test_scores_without_the_measure_are_counted():
    result = karat.history([scored(5, 1, measures="RR"), scored(6, 2)], "P@1")
    assert result.table.height == 1
    assert any("1 of 2" in note for note in result.notes)


def test_wrong_input_is_refused(tmp_path):
    with refused(field="sources"):
        karat.history(tmp_path)
    with refused(field="measures"):
        karat.history(scored(1, 1), "AP")
    with refused(field="runs"):
        karat.history(scored(1, 1), runs="nope")
    with refused(field="by"):
        karat.history(scored(1, 1), by="day")
    with refused(field="last"):
        karat.history(scored(1, 1), last=0)
    path = tmp_path / "run.jsonl"
    karat.Run.of(run(3)).write(path)
    with refused(path=path):
        karat.history(path)


def test_files_without_scores_in_a_folder_are_counted(tmp_path):
    scored(5, 1).write(tmp_path / "a.parquet")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "report.html").write_text("")
    (note,) = karat.history(tmp_path).notes
    assert "1 file" in note


def git(*words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def test_eval_saves_scores_with_their_commit_and_history_shows_them(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(run(5)).write("run.jsonl")
    git("init", "-q", ".")
    git("add", ".")
    git("commit", "-qm", "first")
    words = ("eval", "gold.jsonl", "run.jsonl", "-m", "RR", "--history", "saved/scores")
    assert command(*words)[0] == 0
    (file,) = Path("saved/scores").iterdir()
    provenance = karat.Scores.read(file).provenance
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert provenance.commit == head.stdout.strip()
    assert not provenance.is_modified
    assert file.name.endswith(f"-{provenance.commit[:9]}.parquet")
    karat.Run.of(run(20)).write("run.jsonl")
    assert command(*words)[0] == 0
    code, out, _ = command("history", "saved/scores")
    assert code == 0
    assert f"{provenance.commit[:9]}+" in out
    assert "+0.250" in out


def test_project_setting_is_the_folder_of_eval_and_of_history(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(run(5)).write("run.jsonl")
    Path("karat.toml").write_text('gold = "gold.jsonl"\nruns = ["run.jsonl"]\nhistory = "kept"\n')
    assert command("eval", "-m", "RR")[0] == 0
    assert len(list(Path("kept").iterdir())) == 1
    assert command("history")[0] == 0


def test_folder_that_is_a_file_is_refused_before_scoring(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("x")
    code, out, err = command("eval", "missing.jsonl", "missing.run", "--history", "taken")
    assert (code, out) == (2, "")
    assert "taken" in err


def test_report_shows_the_earlier_values_as_a_chart(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(run(5), name="run").write("run.jsonl")
    replace(scored(4, -30), name="run").write("old.parquet")
    Path("kept").mkdir()
    Path("old.parquet").rename("kept/old.parquet")
    words = ("eval", "gold.jsonl", "run.jsonl", "-m", "RR", "--history", "kept")
    assert command(*words, "-o", "report.html")[0] == 0
    page = Path("report.html").read_text()
    assert 'id="history"' in page
    assert "run went from 0.567 to 0.583" in page


def test_chart_has_one_line_per_run_and_an_interval_per_value():
    other = replace(scored(9, 1), name="other")
    chart = karat.history([scored(5, 1), scored(6, 2), other], ["RR", "P@1"]).plot(measure="RR")
    spec = chart.to_dict()
    (data,) = spec["datasets"].values()
    assert {(row["run"], row["value"]) for row in data} == {
        ("run", scored(5, 0)["RR"]),
        ("run", scored(6, 0)["RR"]),
        ("other", scored(9, 0)["RR"]),
    }
    assert all(row["low"] <= row["value"] <= row["high"] for row in data)


def test_chart_by_commit_has_the_commits_in_order():
    entries = [
        scored(5, 9, commit="b" * 40, commit_day=1),
        scored(6, 2, commit="a" * 40, commit_day=2),
    ]
    spec = karat.history(entries, by="commit").plot().to_dict()
    assert spec["layer"][0]["encoding"]["x"]["sort"] == ["b" * 9, "a" * 9]
