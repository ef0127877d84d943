"""A gate that passed can replace its baseline by the scores of the run."""

import json
from pathlib import Path

import pytest

import karat
from support.errors import refused

GOLD = {f"q{n}": ["a"] for n in range(8)}
GOOD = {query: ["a"] for query in GOLD}
BAD = {query: ["x", "a"] for query in GOLD}
DROP = "RR max_drop 0.1"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(GOOD, name="good").write("good.jsonl")
    karat.Run.of(BAD, name="bad").write("bad.jsonl")
    return tmp_path


def update(run, *thresholds, path="main.parquet", **options):
    return karat.gate(GOLD, run, thresholds, baseline=path, update_baseline=True, **options)


@pytest.mark.parametrize("path", ["main.parquet", "main.json"])
def test_first_baseline_is_written_without_the_thresholds_that_compare(path):
    verdict = update(GOOD, "RR >= 0.5", DROP, path=path)
    assert verdict.baseline_updated
    assert [str(check.rule) for check in verdict.checks] == ["RR >= 0.5"]
    assert any(DROP in remark for remark in verdict.remarks)
    assert karat.Scores.read(path)["RR"] == 1.0


def test_run_that_passes_replaces_the_baseline_and_one_that_fails_does_not():
    update(BAD, "RR >= 0.1")
    assert update(GOOD, DROP).baseline_updated
    assert karat.Scores.read("main.parquet")["RR"] == 1.0
    before = Path("main.parquet").read_bytes()
    verdict = update(BAD, DROP)
    assert (verdict.passed, verdict.baseline_updated) == (False, False)
    assert Path("main.parquet").read_bytes() == before
    assert any("main.parquet was not replaced" in remark for remark in verdict.remarks)


def test_summary_does_not_claim_that_thresholds_passed_if_none_was_checked():
    verdict = update(GOOD, DROP)
    assert verdict.summary == "run: no threshold was checked"
    assert "passed" not in str(verdict).splitlines()[0]


def test_baseline_has_the_measures_of_the_gate_and_those_that_eval_shows():
    update(GOOD, "P@1 >= 0.5")
    saved = karat.Scores.read("main.parquet")
    assert saved.keys() == ["P@1", *karat.evaluate(GOLD, GOOD).keys()]
    Path("karat.toml").write_text('measures = ["R@3"]\n[gate]\n"P@1" = ">= 0.5"\n')
    karat.gate(GOLD, GOOD, baseline="other.parquet", update_baseline=True)
    assert karat.Scores.read("other.parquet").keys() == ["P@1", "R@3"]


def test_retriever_runs_only_once():
    calls = []

    def search(query, top_k):
        calls.append(query)
        return ["a"]

    gold = [{"query_id": f"q{n}", "query": f"text {n}", "relevant": ["a"]} for n in range(8)]
    karat.gate(gold, search, "RR >= 0.5", baseline="main.parquet", update_baseline=True)
    assert len(calls) == 8


@pytest.mark.parametrize("baseline", [None, GOOD])
def test_only_a_file_can_be_updated(baseline):
    with refused(path=None, line=None, field="baseline"):
        update(GOOD, "RR >= 0.5", path=baseline)


@pytest.mark.parametrize("path", ["run.jsonl", "main.csv"])
def test_only_saved_scores_can_be_updated(path):
    with refused(path=path, line=None, field="baseline"):
        update(GOOD, "RR >= 0.5", path=path)
    assert not Path(path).exists()


def test_missing_baseline_is_an_error_where_a_threshold_compares_with_it():
    with refused(path="main.parquet", line=None, field="baseline") as error:
        karat.gate(GOLD, GOOD, DROP, baseline="main.parquet")
    assert "--update-baseline" in error.value.hint
    verdict = karat.gate(GOLD, GOOD, "RR >= 0.5", baseline="main.parquet")
    assert verdict.passed


def test_command_updates_the_baseline_of_the_project(command):
    Path("karat.toml").write_text(
        'gold = "gold.jsonl"\nruns = "good.jsonl"\nbaseline = "main.parquet"\n'
        "[gate]\nRR = { min = 0.2, max_drop = 0.1 }\n"
    )
    code, _, err = command("gate")
    assert (code, "--update-baseline" in err) == (2, True)
    code, out, _ = command("gate", "--update-baseline", "--json")
    assert code == 0
    assert json.loads(out)["gates"][0]["baseline_updated"] is True
    assert command("gate")[0] == 0
    saved = Path("main.parquet").read_bytes()
    code, out, _ = command("gate", "bad.jsonl", "--update-baseline")
    assert code == 1
    assert "was not replaced" in out
    assert Path("main.parquet").read_bytes() == saved
    assert command("compare", "bad.jsonl")[0] == 0  # the measures of compare are in the baseline
