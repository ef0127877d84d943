"""Tuned fusions: the choice of parameters, the folds, and what is refused."""

from __future__ import annotations

import hashlib
import json
import random
from statistics import fmean

import pytest

import karat
from karat.data.fusion.methods import METHODS, PARAMETERS, tuning_grid
from karat.errors import KaratWarning, MeasureError
from support.errors import refused
from support.paths import SHARED_DATA

QUERIES = [f"q{number}" for number in range(23)]


def drawn(seed=1):
    """Draw gold, a run that is good and one that is poor."""
    draw = random.Random(seed)
    gold, good, poor = {}, {}, {}
    for query in QUERIES:
        gold[query] = {f"d{item}": grade for grade, item in enumerate(draw.sample(range(12), 3))}
        relevant = gold[query]
        good[query] = {f"d{i}": draw.random() + 0.6 * (f"d{i}" in relevant) for i in range(12)}
        poor[query] = {f"d{i}": draw.random() + 0.2 * (f"d{i}" in relevant) for i in range(12)}
    return gold, {"good": good, "poor": poor}


def value(gold, run, queries):
    """Return the mean of nDCG@5 over some queries."""
    per_query = dict(karat.evaluate(gold, run, "nDCG@5").per_query.iter_rows())
    return fmean(per_query[query] for query in queries)


def expected_folds(n_folds, seed):
    ordered = sorted(QUERIES, key=lambda q: hashlib.sha256(f"{seed}\0{q}".encode()).digest())
    return [ordered[fold::n_folds] for fold in range(n_folds)]


@pytest.mark.parametrize("method", ["weighted", "rrf", "condorcet"])
def test_values_are_those_of_plain_loops(method):
    gold, runs = drawn()
    tuning = karat.tune_fusion(gold, runs, "nDCG@5", method=method, folds=4, seed=3)
    grid = tuning_grid(method, 2)
    fused = [karat.fuse(runs, method, **point) for point in grid]

    def best(queries):
        values = [value(gold, run, queries) for run in fused]
        return values.index(max(values))

    assert tuning.parameters == grid[best(QUERIES)]
    assert tuning.tuned == pytest.approx(value(gold, fused[best(QUERIES)], QUERIES))
    assert tuning.default == pytest.approx(value(gold, fused[0], QUERIES))
    held_out = []
    for fold, queries in enumerate(expected_folds(4, 3)):
        chosen = best([query for query in QUERIES if query not in queries])
        held_out += [value(gold, fused[chosen], [query]) for query in queries]
        row = tuning.folds.row(fold, named=True)
        assert row["queries"] == len(queries)
        assert row["value"] == pytest.approx(value(gold, fused[chosen], queries))
        assert row["default"] == pytest.approx(value(gold, fused[0], queries))
    assert tuning.cross_validated == pytest.approx(fmean(held_out))
    assert tuning.single == {
        name: pytest.approx(value(gold, run, QUERIES)) for name, run in runs.items()
    }


def test_tuned_value_is_at_least_that_of_the_default_and_of_each_fold():
    gold, runs = drawn(2)
    tuning = karat.tune_fusion(gold, runs, "nDCG@5", method="weighted")
    assert tuning.tuned >= max(tuning.default, tuning.cross_validated)
    assert tuning.tuned == max(tuning.grid["value"])


def test_fused_run_has_the_chosen_parameters():
    gold, runs = drawn()
    tuning = karat.tune_fusion(gold, runs, method="weighted", depth=7, name="best", seed=5)
    expected = karat.fuse(runs, "weighted", **tuning.parameters, depth=7, name="best")
    assert tuning.run.results.equals(expected.results)
    assert tuning.run.settings == expected.settings | {
        "tuned": {"measure": "nDCG@10", "folds": 5, "seed": 5}
    }


def test_order_of_rows_does_not_matter_and_the_seed_does():
    gold, runs = drawn()
    tuning = karat.tune_fusion(gold, runs, method="weighted")
    shuffled = {name: dict(reversed(run.items())) for name, run in runs.items()}
    again = karat.tune_fusion(dict(reversed(gold.items())), shuffled, method="weighted")
    assert json.dumps(again.as_dict()) == json.dumps(tuning.as_dict())
    other = karat.tune_fusion(gold, runs, method="weighted", seed=1)
    assert other.folds["value"].to_list() != tuning.folds["value"].to_list()


def test_default_is_kept_if_nothing_is_better():
    gold = {query: ["a"] for query in QUERIES}
    runs = [{query: ["a"] for query in QUERIES}, {query: ["b", "a"] for query in QUERIES}]
    assert karat.tune_fusion(gold, runs, "R@5").parameters == {"k": 60}


def test_runs_with_other_ids_are_reported():
    gold = {query: ["a"] for query in QUERIES}
    runs = [{query: ["a"] for query in QUERIES}, {query: ["b"] for query in QUERIES}]
    with pytest.warns(karat.KaratWarning, match="no item is in more than one run"):
        karat.tune_fusion(gold, runs, "R@5")


def test_measure_of_the_lowest_values_is_minimized():
    @karat.measure("FirstRank", higher_is_better=False, bounded=False)
    def first_rank(hits):
        lists = (list(grades) for grades in hits.grades(None))
        return [next((at for at, g in enumerate(found, 1) if g > 0), 99) for found in lists]

    gold, runs = drawn()
    tuning = karat.tune_fusion(gold, runs, first_rank, method="weighted")
    assert tuning.tuned == min(tuning.grid["value"])


@pytest.mark.parametrize(("n_runs", "points"), [(2, 21), (3, 67), (4, 57)])
def test_grid_of_weights_covers_the_simplex(n_runs, points):
    grid = [point["weights"] for point in tuning_grid("weighted", n_runs)]
    assert len(grid) == len(set(grid)) == points
    assert all(sum(weights) == pytest.approx(1) for weights in grid)
    assert grid[0] == (1 / n_runs,) * n_runs


@pytest.mark.parametrize("name", PARAMETERS)
def test_grid_starts_with_the_default(name):
    parameter = PARAMETERS[name]
    assert parameter.grid[0] == parameter.default
    assert all(map(parameter.is_valid, parameter.grid))
    assert len(set(parameter.grid)) == len(parameter.grid)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_tuned_or_has_nothing_to_tune(method):
    gold, runs = drawn()
    if METHODS[method].parameters or METHODS[method].weights != "none":
        tuning = karat.tune_fusion(gold, runs, method=method, folds=2)
        assert tuning.n_queries == len(QUERIES)
    else:
        with refused(field="method"):
            karat.tune_fusion(gold, runs, method=method)


def test_result_is_shown_as_text_html_and_json():
    gold, runs = drawn()
    tuning = karat.tune_fusion(gold, runs, method="weighted")
    for text in (str(tuning), tuning._repr_html_()):
        assert "cross-validated" in text
        assert "optimistic" in text
    assert tuning.measure.format(tuning.cross_validated) in repr(tuning)
    document = json.loads(json.dumps(tuning.as_dict()))
    assert document["tuned"]["parameters"] == {"weights": list(tuning.parameters["weights"])}
    assert len(document["cross_validated"]["folds"]) == 5
    assert len(document["grid"]) == 21


def test_fusion_that_is_worse_than_one_run_says_so():
    gold = {query: ["a"] for query in QUERIES}
    runs = {
        "good": {query: ["a", "b", "c"] for query in QUERIES},
        "bad": {query: ["c", "b", "a"] for query in QUERIES},
    }
    assert "not better than good alone" in str(karat.tune_fusion(gold, runs, "RR"))


def test_warnings_are_shown_once():
    gold, runs = drawn()
    gold = {query: {f"other-{item}": 1 for item in items} for query, items in gold.items()}
    with pytest.warns(KaratWarning) as caught:
        karat.tune_fusion(gold, runs)
    assert len(caught) == 1


def test_invalid_input_is_refused():
    gold, runs = drawn()
    with refused(field="folds"):
        karat.tune_fusion(gold, runs, folds=1)
    with refused(field="folds"):
        karat.tune_fusion(gold, runs, folds=24)
    with refused(field="seed"):
        karat.tune_fusion(gold, runs, seed=-1)
    with refused(field="runs"):
        karat.tune_fusion(gold, list(runs.values()) * 3, method="weighted")
    with refused(field="query_id"):
        karat.tune_fusion({"other": ["a"]}, runs)
    with refused(MeasureError):
        karat.tune_fusion(gold, runs, "nDCG@5 RR")
    with refused(MeasureError):
        karat.tune_fusion(gold, runs, "latency.mean")


def test_scifact_has_the_known_values():
    folder = SHARED_DATA / "scifact"
    if not folder.is_dir():
        pytest.skip("the shared data is absent")
    runs = [folder / "runs" / f"{name}.gz" for name in ("lucene-bm25", "wordllama")]
    scores = karat.evaluate(folder / "qrels.txt", karat.fuse(runs), ["nDCG@10", "R@100"])
    assert round(scores["R@100"], 3) == 0.945
    assert round(scores["nDCG@10"], 3) == 0.628
    tuning = karat.tune_fusion(folder / "qrels.txt", runs)
    assert tuning.default == scores["nDCG@10"]
    assert tuning.single["lucene-bm25"] > tuning.cross_validated > tuning.default
