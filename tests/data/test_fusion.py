"""Fused runs, compared with plain loops, and the properties of a fusion."""

from __future__ import annotations

import itertools
import random
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat import Run
from karat.data.fusion import METHODS, NORMALIZATIONS
from karat.data.fusion.methods import PARAMETERS
from karat.errors import InputError, KaratWarning
from oracles import fusion as oracle
from support.effort import examples
from support.errors import refused

ITEMS = ["a", "b", "c", "d", "B", "é", "z", "10", "9"]
SCORES = st.integers(-8, 8).map(lambda score: score / 4)
LISTS = st.dictionaries(st.sampled_from(ITEMS), SCORES, max_size=8)
RUNS = st.lists(
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), LISTS, min_size=1, max_size=3),
    min_size=2,
    max_size=4,
)
WEIGHTS = st.lists(st.integers(0, 4), min_size=4, max_size=4).filter(lambda w: min(w[:2]) > 0)


def ranked(run):
    """Return {query: [(item, score), …]}, as the oracle takes it."""
    return {
        query: [(item, items[item]) for item in oracle.ordered(items)]
        for query, items in run.items()
    }


def lists_of(run: Run):
    return {
        query: list(zip(rows["item_id"], rows["score"], strict=True))
        for (query,), rows in run.results.partition_by(
            "query_id", as_dict=True, maintain_order=True
        ).items()
    }


def quietly(runs, *arguments, **options) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KaratWarning)
        return karat.fuse(runs, *arguments, **options)


def check(runs, method, **options):
    fused = quietly(runs, method, **options)
    expected = oracle.fused([ranked(run) for run in runs], method, **options)
    lists = lists_of(fused)
    assert list(lists) == sorted(expected)
    for query, items in lists.items():
        assert dict(items) == pytest.approx(expected[query], rel=1e-9, abs=1e-9)
        assert [item for item, _ in items] == oracle.ordered(dict(items))
    queries = {query for run in runs for query in run}
    assert set(fused.query_ids) == queries
    assert set(fused.empty) == queries - expected.keys()


# Against plain loops


@pytest.mark.parametrize("method", oracle.BY_RANK)
@examples(25, 300)
@given(runs=RUNS, weights=st.none() | WEIGHTS)
def test_method_of_ranks_gives_what_plain_loops_give(method, runs, weights):
    options = {}
    if weights is not None and METHODS[method].weights != "none":
        options["weights"] = [float(w) for w in weights[: len(runs)]]
    check(runs, method, **options)


@pytest.mark.parametrize("method", [*oracle.BY_SCORE, *oracle.WEIGHTED])
@examples(30, 300)
@given(runs=RUNS, normalization=st.sampled_from(oracle.NORMALIZATIONS), weights=WEIGHTS)
def test_method_of_scores_gives_what_plain_loops_give(method, runs, normalization, weights):
    options = {"normalization": normalization}
    if method in oracle.WEIGHTED:
        options["weights"] = [w / 4 for w in weights[: len(runs)]]
    try:
        oracle.fused([ranked(run) for run in runs], method, **options)
    except ValueError:
        with pytest.raises(InputError, match="divides by it"):
            quietly(runs, method, **options)
        return
    check(runs, method, **options)


@examples(15, 200)
@given(runs=RUNS, k=st.floats(0, 200), sigma=st.floats(0, 3), phi=st.floats(0.01, 0.99))
def test_parameters_are_used(runs, k, sigma, phi):
    check(runs, "rrf", k=k)
    check(runs, "logn_isr", sigma=sigma)
    check(runs, "rbc", phi=phi)
    check(runs, "combgmnz", gamma=sigma)


def test_oracle_covers_every_method_and_normalization():
    assert {*oracle.BY_RANK, *oracle.BY_SCORE, *oracle.WEIGHTED} == set(METHODS)
    assert set(oracle.NORMALIZATIONS) == set(NORMALIZATIONS)


def test_defaults_of_fuse_are_those_of_the_declarations():
    assert {name: karat.fuse.__kwdefaults__[name] for name in PARAMETERS} == {
        name: parameter.default for name, parameter in PARAMETERS.items()
    }


@pytest.mark.parametrize("method", METHODS)
def test_method_is_documented_with_its_reference(method):
    declared = METHODS[method]
    author = declared.reference.split()[0].rstrip(",")
    rows = [line for line in karat.fuse.__doc__.splitlines() if f'"{method}"  ' in line]
    assert len(rows) == 1
    assert author in rows[0]


# Properties


def large_runs(seed=1, n_queries=40, n_items=60):
    """Draw three runs with ties and with lists of different lengths."""
    draw = random.Random(seed)
    runs = []
    for _ in range(3):
        run = {}
        for query in range(n_queries):
            items = draw.sample(range(n_items), draw.randint(1, n_items - 5))
            run[f"q{query}"] = {f"d{item}": draw.randint(1, 30) / 8 for item in items}
        runs.append(run)
    return runs


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].weights == "none"])
def test_order_of_the_runs_does_not_matter(method):
    runs = large_runs()
    fused = [lists_of(karat.fuse(order, method)) for order in itertools.permutations(runs)]
    assert all(other == fused[0] for other in fused)


def test_equal_sums_are_ties_whatever_the_order_of_the_runs():
    runs = [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    fused = karat.fuse([{"q": items} for items in runs])
    assert fused.results["score"].n_unique() == 1
    assert fused.results["item_id"].to_list() == ["c", "b", "a"]


@pytest.mark.parametrize("method", METHODS)
def test_shuffled_rows_give_the_same_bytes(method, tmp_path):
    runs = large_runs()
    options = {"weights": [0.5, 0.3, 0.2]} if METHODS[method].weights == "required" else {}
    contents = []
    for seed in (None, 1, 2):
        paths = []
        for number, run in enumerate(runs):
            rows = [
                f"{query} Q0 {item} 0 {score} tag\n"
                for query, items in run.items()
                for item, score in items.items()
            ]
            if seed is not None:
                random.Random(seed).shuffle(rows)
            paths.append(tmp_path / f"run{number}.run")
            paths[-1].write_text("".join(rows))
        target = tmp_path / "fused.jsonl"
        karat.fuse(paths, method, **options).write(target)
        contents.append(target.read_bytes())
    assert contents[0] == contents[1] == contents[2]


def test_condorcet_of_many_candidates_is_a_path_of_majorities():
    runs = large_runs(seed=3)
    fused = lists_of(karat.fuse(runs, "condorcet"))
    positions = [
        {query: {item: at for at, (item, _) in enumerate(items)} for query, items in run.items()}
        for run in map(ranked, runs)
    ]
    for query, items in fused.items():
        for (one, _), (other, _) in itertools.pairwise(items):
            lead = 0
            for run in positions:
                first = run[query].get(one, np.inf)
                second = run[query].get(other, np.inf)
                lead += int(first < second) - int(second < first)
            assert lead >= 0


def test_condorcet_winner_is_first():
    runs = [["w", "a", "b"], ["w", "b", "a"], ["a", "b", "w"]]
    fused = karat.fuse([{"q": items} for items in runs], "condorcet")
    assert fused.results["item_id"][0] == "w"


def test_weights_that_add_up_to_the_same_are_a_tie_of_the_majority():
    runs = [{"q": ["a", "b"]}, {"q": ["a", "b"]}, {"q": ["b", "a"]}]
    fused = karat.fuse(runs, "condorcet", weights=[0.1, 0.2, 0.3])
    borda = karat.fuse(runs, "borda", weights=[0.1, 0.2, 0.3])
    assert fused.results["item_id"].to_list() == borda.results["item_id"].to_list()


# The fused run


def test_depth_cuts_each_list():
    fused = karat.fuse([{"q": ["a", "b", "c"]}, {"q": ["c", "d"]}], depth=2)
    assert fused.results["item_id"].to_list() == ["c", "a"]
    assert fused.settings["depth"] == 2


def test_settings_and_name_survive_a_file(tmp_path):
    runs = {"bm25": {"q": {"a": 1.0}}, "dense": {"q": {"b": 2.0, "a": 0.0}}}
    fused = karat.fuse(runs, "weighted", weights=[1, 3], normalization="none")
    fused.write(tmp_path / "fused.jsonl")
    read = Run.read(tmp_path / "fused.jsonl")
    assert read.name == "weighted(bm25,dense)"
    assert read.settings == {
        "method": "weighted",
        "normalization": "none",
        "weights": [1.0, 3.0],
        "runs": ["bm25", "dense"],
    }
    assert read.results["score"].to_list() == [6.0, 1.0]


def test_integer_and_float_parameters_are_the_same_setting():
    runs = [{"q": ["a"]}, {"q": ["b", "a"]}]
    assert str(karat.fuse(runs, k=60.0).settings) == str(karat.fuse(runs, k=60).settings)


def test_name_of_many_runs_is_short_and_can_be_set():
    runs = [{"q": ["a"]}] * 4
    assert karat.fuse(runs).name == "rrf(4 runs)"
    assert karat.fuse(runs).settings["runs"] == ["run 1", "run 2", "run 3", "run 4"]
    assert karat.fuse(runs, name="mine").name == "mine"


def test_files_with_the_same_name_are_told_apart_by_their_paths(tmp_path):
    paths = [tmp_path / folder / "bm25.run" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("q Q0 d 1 1.0 t\n")
    assert karat.fuse(paths).settings["runs"] == [str(path) for path in paths]


def test_offsets_and_texts_come_from_the_first_run_that_has_them():
    one = [{"query_id": "q", "results": [{"id": "a", "score": 1.0}, {"id": "b", "score": 0.5}]}]
    two = [
        {
            "query_id": "q",
            "results": [
                {"id": "b", "doc_id": "d", "start": 0, "end": 4, "text": "two b"},
                {"id": "a", "doc_id": "d", "start": 5, "end": 9},
            ],
        }
    ]
    three = [
        {
            "query_id": "q",
            "results": [{"id": "a", "doc_id": "e", "start": 7, "end": 8, "text": "three a"}],
        }
    ]
    results = karat.fuse([Run.of(one), Run.of(two), Run.of(three)]).results
    assert results.drop("score").rows() == [
        ("q", "a", "d", 5, 9, "three a"),
        ("q", "b", "d", 0, 4, "two b"),
    ]


def test_items_without_contents_have_nulls():
    one = Run.of(pl.DataFrame({"query_id": ["q"], "item_id": ["a"], "text": ["A"]}))
    results = karat.fuse([one, {"q": ["b", "a"]}]).results
    assert dict(results.select("item_id", "text").rows()) == {"a": "A", "b": None}


def test_unit_of_offsets_is_kept():
    rows = pl.DataFrame(
        {"query_id": ["q"], "item_id": ["a"], "doc_id": ["d"], "start": 0, "end": 1}
    )
    one = Run.of(rows, offsets="utf16")
    assert karat.fuse([one, {"q": ["b", "a"]}]).offsets == "utf16"
    with refused(field="offsets"):
        karat.fuse([one, Run.of(rows)])


def test_repeated_items_count_once_and_later_items_move_up():
    with pytest.warns(KaratWarning, match="repeats an earlier item"):
        fused = karat.fuse([{"q": ["a", "a", "b"]}, {"q": ["c", "b"]}], k=0)
    assert lists_of(fused)["q"] == [("c", 1.0), ("b", 1.0), ("a", 1.0)]


def warning_of(runs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        karat.fuse(runs)
    assert len(caught) < 2
    return str(caught[0].message) if caught else None


def test_runs_with_other_ids_are_reported_with_examples():
    runs = {"chunks": {"q": ["d1#0", "d1#1"]}, "documents": {"q": ["d1", "d2", "d3", "d4"]}}
    assert warning_of(runs).splitlines()[1:] == [
        "  in 'chunks': 'd1#0', 'd1#1'",
        "  in 'documents': 'd1', 'd2', 'd3'",
    ]


def test_the_run_with_other_ids_is_named_if_the_others_agree():
    runs = {"one": {"q": ["a", "b"]}, "two": {"q": ["b"]}, "other": {"q": ["B"]}}
    first, *examples = warning_of(runs).splitlines()
    assert "'other'" in first
    assert "'one'" not in first
    assert examples == ["  in 'other': 'B'", "  in 'one': 'a', 'b'", "  in 'two': 'b'"]


def test_an_item_in_common_for_another_query_is_not_in_common():
    assert warning_of([{"q": ["a"], "r": ["b"]}, {"q": ["b"], "r": ["a"]}]) is not None
    assert warning_of([{"q": ["a"], "r": ["b"]}, {"q": ["a"], "r": ["c"]}]) is None


@pytest.mark.parametrize("other", [{"q": [], "r": ["a"]}, {"q": [], "r": []}])
def test_lists_without_another_list_are_not_compared(other):
    assert warning_of([{"q": ["a"], "r": []}, other]) is None


def test_the_same_file_twice_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bm25.run"
    path.write_text("q Q0 d 1 1.0 t\n")
    for runs in ([path, "bm25.run"], {"one": path, "two": path}):
        with refused(field="runs"):
            karat.fuse(runs)


def test_query_of_one_run_is_fused_from_that_run():
    with pytest.warns(KaratWarning, match="lacks 1 of 2 queries"):
        fused = karat.fuse([{"q1": ["a"], "q2": ["b", "c"]}, {"q1": ["a"]}])
    assert [item for item, _ in lists_of(fused)["q2"]] == ["b", "c"]


def test_failed_query_keeps_its_error_only_if_no_run_has_results():
    error = {"type": "Timeout", "message": "slow"}
    failed = [
        {"query_id": "q1", "results": [], "error": error},
        {"query_id": "q2", "results": [], "error": error},
    ]
    other = [{"query_id": "q1", "results": ["a"]}, {"query_id": "q2", "results": []}]
    with pytest.warns(KaratWarning, match="2 queries failed"):
        fused = karat.fuse([Run.of(failed), Run.of(other)])
    assert fused.errors["query_id"].to_list() == ["q2"]
    assert fused.empty == ("q2",)


def test_runs_without_any_results_give_a_run_without_results():
    fused = karat.fuse([{"q": []}, {"q": []}], "combsum")
    assert fused.results.height == 0
    assert fused.empty == ("q",)


# What is refused

SCORED = {"q": {"a": 2.0, "b": 1.0}}


@pytest.mark.parametrize("runs", [[SCORED], {"one": SCORED}, [], "bm25.run", Run.of(SCORED)])
def test_fewer_than_two_runs_are_refused(runs):
    with refused(field="runs"):
        karat.fuse(runs)


@pytest.mark.parametrize("method", ["combsum", "weighted", "combmed"])
def test_run_without_scores_is_named(method):
    options = {"weights": [1, 1]} if method == "weighted" else {}
    with refused(field="score") as caught:
        karat.fuse({"good": SCORED, "listed": {"q": ["a"]}}, method, **options)
    assert "'listed'" in caught.value.problem
    assert "rrf" in caught.value.hint
    assert karat.fuse([SCORED, {"q": ["a"]}], method, normalization="rank", **options)


def test_infinite_score_is_refused_by_methods_that_read_scores():
    runs = {"one": SCORED, "two": {"q": {"a": float("inf")}}}
    with refused(field="score"):
        karat.fuse(runs, "combsum")
    assert karat.fuse(runs).results.height == 2


def test_sum_that_overflows_is_refused():
    with refused(field="score"):
        karat.fuse([{"q": {"a": 1e308}}] * 2, "combsum", normalization="none")


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("method", {"method": "rff"}),
        ("normalization", {"method": "combsum", "normalization": "minmax"}),
        ("normalization", {"method": "rrf", "normalization": "min-max"}),
        ("weights", {"method": "weighted"}),
        ("weights", {"method": "weighted", "weights": [1]}),
        ("weights", {"method": "weighted", "weights": [1, -1]}),
        ("weights", {"method": "weighted", "weights": [0, 0]}),
        ("weights", {"method": "weighted", "weights": [1, float("nan")]}),
        ("weights", {"method": "combsum", "weights": [1, 1]}),
        ("k", {"k": -1}),
        ("k", {"method": "borda", "k": 10}),
        ("phi", {"method": "rbc", "phi": 1}),
        ("sigma", {"method": "logn_isr", "sigma": "x"}),
        ("depth", {"depth": 0}),
    ],
)
def test_invalid_setting_is_refused(field, options):
    with refused(field=field):
        karat.fuse([SCORED, SCORED], **options)


def test_rank_methods_accept_the_normalization_none():
    assert karat.fuse([SCORED, SCORED], normalization="none").results.height == 2
