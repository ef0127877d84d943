"""Reports state how many random draws a test has, and tiny differences are not shown as zero."""

import json
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.evaluation.verdict import gate
from karat.report.cells import format_difference, interval_text
from karat.report.options import ReportOptions
from karat.report.page.build import build_page, verdict_page
from karat.report.page.sections.method import method_view
from karat.stats import corrections, paired_tests
from karat.stats.resampling import SEED

GOLD = {f"q{at:03}": ["a"] for at in range(60)}
OLD = {query: ["x", "a"] if at % 3 else ["a"] for at, query in enumerate(GOLD)}
NEW = {query: ["x", "a"] if at % 2 else ["a"] for at, query in enumerate(GOLD)}
RUNS = {"old": OLD, "new": NEW}


def write_inputs(folder):
    karat.Gold.of(GOLD).write(folder / "gold.jsonl")
    for name, run in RUNS.items():
        karat.Run.of(run).write(folder / f"{name}.run")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)


def test_number_of_draws_is_stated_with_the_test(command, files):
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR")
    assert "p: two-sided sign-flip randomization test (100,000 random draws) over 60" in out


def test_fewer_draws_of_many_queries_are_stated_with_their_reason(command, files, monkeypatch):
    monkeypatch.setattr(paired_tests, "MANY_QUERIES", 50)
    stated = "(10,000 random draws; 100,000 up to 50 queries)"
    words = ("gold.jsonl", "old.run", "new.run", "-m", "RR")
    _, out, _ = command("compare", *words, "-o", "pairs.md")
    assert stated in " ".join(out.split())
    assert stated in Path("pairs.md").read_text()


def test_json_has_the_number_of_draws_of_each_pair(command, files, monkeypatch):
    monkeypatch.setattr(paired_tests, "MANY_QUERIES", 50)
    words = ("gold.jsonl", "old.run", "new.run", "-m", "RR", "-o", "pairs.json")
    command("compare", *words)
    (pair,) = json.loads(Path("pairs.json").read_text())["pairs"]
    assert pair["draws"] == 10_000


def test_exact_tests_have_no_number_of_draws():
    few = {query: GOLD[query] for query in list(GOLD)[:12]}
    comparison = karat.compare(few, RUNS, "RR")
    assert comparison.pairs["draws"].to_list() == [None]
    assert "random draws" not in str(comparison)


def test_draws_of_tukey_are_stated(command, files, monkeypatch):
    monkeypatch.setattr(corrections, "MANY_QUERIES", 50)
    karat.Run.of(OLD).write("same.run")
    words = ("gold.jsonl", "old.run", "new.run", "same.run", "-m", "RR", "--correction", "tukey")
    _, out, _ = command("compare", *words)
    stated = "corrected by randomized Tukey HSD over 3 pairs (500 random draws)"
    assert stated in " ".join(out.split())


def test_gate_states_the_number_of_draws(command, files):
    rule = ("--require", "RR max_drop 0.5", "--baseline", "old.run")
    _, out, _ = command("gate", "gold.jsonl", "new.run", *rule)
    assert "p: of the same test, with 100,000 random draws" in " ".join(out.split())
    command("gate", "gold.jsonl", "new.run", *rule, "-o", "gate.json")
    (check,) = json.loads(Path("gate.json").read_text())["gates"][0]["checks"]
    assert check["draws"] == 100_000


def test_page_states_the_draws_that_were_used():
    comparison = karat.compare(GOLD, RUNS, "RR")
    page = build_page(comparison.scores, comparison=comparison)
    assert method_view(page).facts["seed"] == f"{SEED}, 100,000 draws for tests"
    verdict = gate(GOLD, NEW, "RR max_drop 0.5", baseline=OLD)
    facts = method_view(verdict_page(verdict, ReportOptions())).facts
    assert facts["seed"] == f"{SEED}, 100,000 draws for tests"


def test_page_without_random_draws_states_none():
    page = build_page([karat.evaluate(GOLD, NEW, "RR")])
    assert method_view(page).facts["seed"] == str(SEED)


@pytest.mark.parametrize(
    ("value", "shown"), [(4.2e-4, "+0.0004"), (-3e-7, "-3e-07"), (1e-17, "+0.000"), (0.0, "0.000")]
)
def test_tiny_difference_is_not_shown_as_zero(value, shown):
    assert format_difference(value, "RR") == shown


def test_tiny_ends_of_an_interval_are_not_shown_as_zero():
    assert interval_text(-4.2e-4, -1.1e-5, "RR", sign=True) == "[-0.0004, -1e-05]"


def test_conclusion_shows_a_tiny_lead():
    rng = np.random.default_rng(1)
    queries = [f"q{at:05}" for at in range(3_000)]
    gold = {query: {"a": 1} for query in queries}
    # The second run is ahead on a few of many queries.
    late = {query: ["x", "a"] for query in queries}
    early = dict(late)
    for query in rng.choice(queries, 2, replace=False):
        early[query] = ["a"]
    comparison = karat.compare(gold, {"late": late, "early": early}, "RR")
    assert "0.0003 RR" in str(comparison)
