"""Unjudged items: Judged@k, and how much higher a value could be if they were judged."""

from __future__ import annotations

import math
from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.measures import REGISTRY, Measure, Plan, ScoreTable, parse, score
from oracles import rank as oracle
from oracles import unjudged as hole_oracle
from support.effort import examples

CHOICES = {
    "rel": [1, 2],
    "denominator": ["k", "retrieved"],
    "p": [0.5, 0.8],
    "gain": ["binary", "linear", "query"],
    "max_grade": [None, 3, 5],
}
CUTOFFS = [None, 1, 3, 200]


def variants(name: str) -> list[tuple[Measure, str, int | None, dict]]:
    """A bounded measure with every cutoff and parameter, as karat and as the oracle takes it."""
    names = [param.name for param in REGISTRY[name].params]
    measures = []
    for k, values in product(CUTOFFS, product(*(CHOICES[param] for param in names))):
        params = dict(zip(names, values, strict=True))
        given = ", ".join(
            f"{param}={value}" for param, value in params.items() if value is not None
        )
        cutoff = "" if k is None else f"@{k}"
        measures.append((parse(f"{name}({given}){cutoff}"), name, k, params))
    return measures


VARIANTS = [variant for name in sorted(hole_oracle.BOUNDED) for variant in variants(name)]
MEASURES = [measure for measure, *_ in VARIANTS]
LARGEST_GRADE = 3

# Few items, so that most lists contain repeats; an item with a negative grade is unjudged.
QUERIES = ["q1", "q2", "q3"]
ITEMS = ["a", "b", "c", "d", "e", "f"]
grades = st.dictionaries(st.sampled_from(ITEMS), st.sampled_from([-1, 0, 0, 1, 2, 3]))
lists = st.lists(st.sampled_from([*ITEMS, "x", "y"]), max_size=8)
golds = st.dictionaries(st.sampled_from(QUERIES), grades, min_size=1)
runs = st.dictionaries(st.sampled_from(QUERIES), lists)
conventions = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["zero", "skip"]),
        "no_gold": st.sampled_from(["family", "zero", "one", "recall", "skip"]),
        "duplicates": st.sampled_from(["first", "count", "set"]),
        "unjudged": st.sampled_from(["irrelevant", "skip"]),
    }
)


def gold_frame(gold) -> Gold:
    rows = [(q, item, grade) for q, judged in gold.items() for item, grade in judged.items()]
    return Gold.of(pl.DataFrame(rows, schema=["query_id", "item_id", "grade"], orient="row"))


def run_frame(run) -> Run:
    rows = [(q, item, rank) for q, items in run.items() for rank, item in enumerate(items)]
    return Run.of(pl.DataFrame(rows, schema=["query_id", "item_id", "rank"], orient="row"))


def assert_equal_to_oracle(table: ScoreTable, gold, run, words) -> None:
    queries = sorted(gold)
    assert table.frame["query_id"].to_list() == queries
    for measure, name, k, params in VARIANTS:
        values = table.frame[measure.name].to_list()
        bounds = table.holes[f"bound:{measure.name}"].to_list()
        for query, value, bound in zip(queries, values, bounds, strict=True):
            expected = hole_oracle.most(
                name, run.get(query), gold[query], k, params, LARGEST_GRADE, words
            )
            if value is None or expected is None:
                assert bound is value is expected
                continue
            assert value <= bound, f"{measure} of {query} is {value}, its bound {bound}"
            assert agrees(name, bound, expected), (
                f"the bound of {measure} of {query} is {bound}, the oracle has {expected}"
            )
        assert table.bound(measure) == mean(bounds)
        if k is None:
            assert table.judged(measure) is None
            continue
        shares = [hole_oracle.judged_share(run.get(q), gold[q], k, words) for q in queries]
        assert table.holes[f"Judged@{k}"].to_list() == shares
        counted = [s for s, v in zip(shares, values, strict=True) if v is not None]
        assert table.judged(measure) == mean(counted)


def agrees(name: str, bound: float, expected: float) -> bool:
    """Every bound is exact except that of RBP, which multiplies in another order."""
    return bound == expected or (name == "RBP" and math.isclose(bound, expected, rel_tol=1e-12))


def mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


@given(gold=golds, run=runs, words=conventions, as_frames=st.booleans())
@examples(40, 500)
def test_holes_match_the_oracle(gold, run, words, as_frames):
    plan = Plan.of(MEASURES, conventions=words, largest_grade=LARGEST_GRADE)
    if as_frames and any(gold.values()) and any(run.values()):
        gold, run = ({q: rows for q, rows in by.items() if rows} for by in (gold, run))
        table = score(gold_frame(gold), run_frame(run), plan)
    else:
        table = score(Gold.of(gold), Run.of(run), plan)
    assert_equal_to_oracle(table, gold, run, words)


@given(
    judged=grades,
    retrieved=st.lists(st.sampled_from(ITEMS[:4]), max_size=6),
    no_gold=st.sampled_from(["family", "zero", "one", "recall"]),
    duplicates=st.sampled_from(["first", "count", "set"]),
)
@examples(50, 600)
def test_some_judgments_attain_the_bound_and_none_exceed_it(judged, retrieved, no_gold, duplicates):
    words = oracle.DEFAULTS | {"no_gold": no_gold, "duplicates": duplicates}
    plan = Plan.of(MEASURES, conventions=words, largest_grade=LARGEST_GRADE)
    table = score(Gold.of({"q": judged}), Run.of({"q": retrieved}), plan)
    for measure, name, k, params in VARIANTS:
        best = hole_oracle.attained(name, retrieved, judged, k, params, LARGEST_GRADE, words)
        assert agrees(name, table.bound(measure), best), measure


def test_bounds_of_a_list_by_hand():
    gold, run = {"q": {"a": 1, "b": 0}}, {"q": ["b", "x", "b", "a", "y"]}
    measures = ["P@4", "P@10", "RR", "Success@1", "Success@2", "RBP(p=0.5)@3", "nDCG@4"]
    table = score(gold, run, Plan.of(measures))
    bounds = [table.bound(measure) for measure in table.measures]
    # RBP: x adds 0.5 · 0.5, and everything below the third place can add 0.5³.
    assert bounds == [2 / 4, 3 / 10, 1 / 2, 0.0, 1.0, 0.375, None]
    assert table.judged(parse("P@4")) == table.judged(parse("nDCG@4")) == 2 / 3
    assert table.judged(parse("P@10")) == 2 / 4
    assert table.judged(parse("RR")) is None


@pytest.mark.parametrize("p", [0.5, 0.8, 0.99])
def test_bound_of_a_long_list_is_never_below_its_value_or_above_1(p):
    gold = {f"{n}": {f"d{i}": 1 for i in range(max(n, 1))} for n in range(0, 2000, 37)}
    run = {query: list(judged)[: int(query)] for query, judged in gold.items()}
    run["0"] = [f"x{i}" for i in range(1000)]
    measure = parse(f"RBP(p={p})")
    table = score(gold, run, Plan.of(measure))
    low, high = table.frame[measure.name], table.holes[f"bound:{measure.name}"]
    assert (low <= high).all()
    assert high.to_list() == pytest.approx([1.0] * len(gold), rel=1e-12)
    assert high[0] == 1.0


def test_only_measures_with_a_fixed_denominator_have_bounds():
    bounded = {name: d for name, d in REGISTRY.items() if d.bound is not None}
    assert bounded.keys() == hole_oracle.BOUNDED
    assert {(d.family, d.combine) for d in bounded.values()} == {("rank", "mean")}


def test_measures_without_judgments_or_cutoff_have_no_holes():
    gold = [
        {
            "query_id": "q",
            "relevant": {"a": 1},
            "spans": [{"doc_id": "d", "start": 0, "end": 3}],
            "evidence": ["one"],
        }
    ]
    result = {"id": "a", "doc_id": "d", "start": 0, "end": 3, "text": "one"}
    run = [{"query_id": "q", "results": [result], "latency_ms": {"total": 3.0}}]
    measures = ["span.recall@5", "evidence.RR@3", "evidence.P@3", "latency.p90", "IPrec@1", "AP"]
    table = score(gold, run, Plan.of(measures))
    assert table.holes.width == 0
    assert all(table.judged(m) is table.bound(m) is None for m in table.measures)


def test_queries_without_judgments_and_empty_lists_have_no_judged_share():
    gold = Gold.of(
        [
            {"query_id": "empty", "relevant": {"a": 1}},
            {"query_id": "found", "relevant": {"a": 1}},
            {"query_id": "unjudged", "spans": [{"doc_id": "d", "start": 0, "end": 3}]},
        ]
    )
    run = {"empty": [], "found": ["x", "a"], "unjudged": ["a"]}
    table = score(gold, run, Plan.of(["Success@2", "RBP(p=0.5)"]))
    assert table.holes.to_dict(as_series=False) == {
        "bound:Success@2": [0.0, 1.0, None],
        "bound:RBP(p=0.5)": [1.0, 1.0, None],
        "Judged@2": [None, 0.5, None],
    }
    assert table.judged(parse("Success@2")) == 0.5


def test_judged_averages_the_queries_that_its_measure_counts():
    gold, run = {"q": {"a": 1}, "r": {"a": 1}}, {"q": ["a", "x"], "r": ["x", "y"]}
    table = score(gold, run, Plan.of(["FirstRelevant@2", "R@2"]))
    assert table.judged(parse("FirstRelevant@2")) == 0.5
    assert table.judged(parse("R@2")) == 0.25


@given(gold=golds, run=runs, words=conventions, some=st.sets(st.sampled_from(QUERIES)))
@examples(40, 400)
def test_selected_rows_keep_their_holes(gold, run, words, some):
    part = {query: judged for query, judged in gold.items() if query in some}
    if not part:
        return
    plan = Plan.of(["P@3", "RR", "nDCG@5"], conventions=words)
    whole = score(Gold.of(gold), Run.of(run), plan)
    at = whole.frame["query_id"].is_in(list(part)).arg_true()
    assert whole.rows(at).holes.equals(score(Gold.of(part), Run.of(run), plan).holes)


@pytest.mark.parametrize("ending", ["json", "parquet"])
@pytest.mark.parametrize("run", [{"q": ["x", "a"], "r": []}, {"q": [], "r": []}])
def test_written_holes_are_read_back(tmp_path, ending, run):
    scores = karat.evaluate({"q": {"a": 1}, "r": {"b": 1}}, run, ["P@3", "RR", "AP"])
    scores.write(tmp_path / f"scores.{ending}")
    again = karat.Scores.read(tmp_path / f"scores.{ending}").table
    assert again.holes.columns == ["bound:P@3", "bound:RR", "Judged@3"]
    assert again.holes.schema == scores.table.holes.schema
    assert again.holes.equals(scores.table.holes)
    assert again.bound(parse("P@3")) == scores.table.bound(parse("P@3"))


def test_explanation_has_no_holes():
    explained = karat.explain(
        "P@2", gold={"q": {"a": 1}}, run={"q": ["x", "a"]}, query="q"
    ).calculations[0]
    assert explained.numbers.keys() == {"relevant in the top", "places"}
    assert explained.counted == [2]
