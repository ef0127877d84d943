"""Fused runs equal those of ranx, for every method and normalization that both have."""

from __future__ import annotations

import itertools
import random

import polars as pl
import pytest

import karat
from karat.data.fusion import METHODS, NORMALIZATIONS
from support.paths import SHARED_DATA

numba = pytest.importorskip("numba")
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(numba.config, "DISABLE_JIT", 1)
    ranx = pytest.importorskip("ranx")


@pytest.fixture(autouse=True)
def not_compiled(monkeypatch):
    """Run the code of ranx as Python: compiling each method takes two minutes in total."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)


# karat's name: (name in ranx, parameters)
BY_RANK = {
    "rrf": ("rrf", {"k": 60}),
    "isr": ("isr", {}),
    "log_isr": ("log_isr", {}),
    "logn_isr": ("logn_isr", {"sigma": 0.01}),
    "borda": ("bordafuse", {}),
    "rbc": ("rbc", {"phi": 0.9}),
}
BY_SCORE = {
    "combsum": ("sum", {}),
    "combmnz": ("mnz", {}),
    "combanz": ("anz", {}),
    "combmed": ("med", {}),
    "combmin": ("min", {}),
    "combmax": ("max", {}),
    "combgmnz": ("gmnz", {"gamma": 2}),
}
WEIGHTED = {"weighted": "wsum", "wmnz": "wmnz", "mixed": "mixed"}
THEIR_NORMALIZATION = {"z-score": "zmuv", "none": None}
WEIGHTS = [0.5, 0.3, 0.2]


def drawn(n_runs: int = 3, *, complete: bool = False) -> list[dict]:
    """Draw runs without ties within a list, since ranx leaves their order undefined."""
    draw = random.Random(n_runs)
    items = [f"d{number}" for number in range(30)]
    runs = []
    for _ in range(n_runs):
        run = {}
        for query in range(25):
            found = draw.sample(items, len(items) if complete else draw.randint(1, 25))
            scores = draw.sample(range(1, 1000), len(found))
            run[f"q{query:02}"] = {
                item: score / 8 for item, score in zip(found, scores, strict=True)
            }
        runs.append(run)
    return runs


def theirs(runs, method, normalization, **parameters):
    lists = [ranx.Run(run) for run in runs]
    for run in lists:  # ranx takes the order of the dict as the ranking
        run.sort()
    fused = ranx.fuse(lists, norm=normalization, method=method, params=parameters)
    return {query: dict(items) for query, items in fused.to_dict().items()}


def ours(runs, method, **options):
    return dict_of(karat.fuse(runs, method, **options))


def dict_of(run):
    lists: dict = {}
    for query, item, score in run.results.select("query_id", "item_id", "score").iter_rows():
        lists.setdefault(query, {})[item] = score
    return lists


def check_equal(one, other):
    assert one.keys() == other.keys()
    for query, items in one.items():
        assert items == pytest.approx(other[query], rel=1e-9, abs=1e-9)
        # Rounding may break ties; otherwise the order is the same.
        values = [other[query][item] for item in items]
        assert all(b <= a + 1e-9 for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("n_runs", [2, 3, 5])
@pytest.mark.parametrize("method", BY_RANK)
def test_method_of_ranks_equals_ranx(method, n_runs):
    runs = drawn(n_runs)
    name, parameters = BY_RANK[method]
    check_equal(ours(runs, method), theirs(runs, name, None, **parameters))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("method", BY_SCORE)
def test_method_of_scores_equals_ranx(method, normalization):
    runs = drawn()
    name, parameters = BY_SCORE[method]
    their_name = THEIR_NORMALIZATION.get(normalization, normalization)
    check_equal(
        ours(runs, method, normalization=normalization),
        theirs(runs, name, their_name, **parameters),
    )


@pytest.mark.parametrize("method", WEIGHTED)
def test_weighted_method_equals_ranx(method):
    runs = drawn()
    check_equal(
        ours(runs, method, weights=WEIGHTS),
        theirs(runs, WEIGHTED[method], "min-max", weights=WEIGHTS),
    )


def test_weighted_borda_equals_ranx():
    runs = drawn()
    check_equal(
        ours(runs, "borda", weights=WEIGHTS), theirs(runs, "w_bordafuse", None, weights=WEIGHTS)
    )


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_condorcet_equals_ranx_where_the_majority_has_no_cycles(weights):
    """With cycles, the order of ranx depends on the hashes of the ids."""
    runs = _without_cycles(drawn(3, complete=True), weights or [1, 1, 1])
    assert sum(map(len, runs[0].values())) > 100
    if weights is None:
        check_equal(ours(runs, "condorcet"), theirs(runs, "condorcet", None))
    else:
        check_equal(
            ours(runs, "condorcet", weights=weights),
            theirs(runs, "w_condorcet", None, weights=weights),
        )


def _without_cycles(runs, weights):
    """Remove items from each query until the majority of the rest is transitive."""
    kept = [{} for _ in runs]
    for query in runs[0]:
        items: list[str] = []
        for item in sorted(runs[0][query]):
            if _is_transitive([run[query] for run in runs], [*items, item], weights):
                items.append(item)
        for run, smaller in zip(runs, kept, strict=True):
            smaller[query] = {item: run[query][item] for item in items}
    return kept


def _is_transitive(lists, items, weights):
    wins = {
        one: sum(
            sum(w for w, scores in zip(weights, lists, strict=True) if scores[one] > scores[other])
            > sum(weights) / 2 + 1e-9
            for other in items
        )
        for one in items
    }
    return sorted(wins.values()) == list(range(len(items)))


def test_every_method_is_compared():
    assert {*BY_RANK, *BY_SCORE, *WEIGHTED, "condorcet"} == set(METHODS)


@pytest.mark.parametrize("method", ["rrf", "combsum", "borda"])
def test_real_runs_equal_ranx(method):
    folder = SHARED_DATA / "scifact" / "runs"
    if not folder.is_dir():
        pytest.skip("the shared data is absent")
    runs = [karat.Run.read(folder / f"{name}.gz") for name in ("lucene-bm25", "wordllama")]
    if method in BY_RANK:  # ranx orders ties at random, so it gets scores without ties
        rank = pl.int_range(pl.len(), 0, -1).over("query_id").cast(pl.Float64)
        runs = [run.with_results(run.results.with_columns(score=rank)) for run in runs]
    name, parameters = (BY_RANK | BY_SCORE)[method]
    norm = "min-max" if method in BY_SCORE else None
    check_equal(ours(runs, method), theirs(map(dict_of, runs), name, norm, **parameters))
