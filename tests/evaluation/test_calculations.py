"""Calculations of values: the same for many queries at once as for each query alone."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.conventions import Conventions
from karat.data.gold import Gold
from karat.data.run import Run
from karat.evaluation.calculation import calculation, calculations
from karat.match.gold_index import PreparedGold
from karat.measures import REGISTRY, Plan
from support.effort import examples

NAMES = [f"{name}@0.5" if d.cutoff == "share" else name for name, d in REGISTRY.items()]
NAMES += [f"{name}@2" for name, d in REGISTRY.items() if d.cutoff in ("optional", "budget")]
NAMES += [f"{name}@15c" for name, d in REGISTRY.items() if d.cutoff == "budget"]
QUERIES = ["q1", "q2", "q3", "q4", "é"]
ITEMS = ["a", "b", "c", "d"]
PHRASES = ["paid in 14 days", "paid in 41 days", "by post", "to the card", " "]
CHUNKS = pl.DataFrame({"id": ["a", "b"], "doc_id": ["d1", "d2"], "start": [0, 5], "end": [9, 30]})

phrases = st.lists(st.sampled_from(PHRASES), min_size=1, max_size=3).map(", ".join)
places = st.builds(
    lambda document, start, length: {"doc_id": document, "start": start, "end": start + length},
    st.sampled_from(["d1", "d2"]),
    st.integers(0, 20),
    st.sampled_from([0, 4, 12]),
)
gold_records = st.fixed_dictionaries(
    {},
    optional={
        "relevant": st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 3)),
        "spans": st.lists(places, max_size=3),
        "evidence": st.lists(phrases, max_size=3),
    },
)
results = st.lists(
    st.builds(
        lambda item, text, place, tokens: {"id": item, "text": text, "tokens": tokens} | place,
        st.sampled_from([*ITEMS, "x", "y"]),
        phrases,
        places,
        st.none() | st.integers(0, 9),
    ),
    max_size=6,
)
run_records = st.fixed_dictionaries(
    {
        "results": results,
        "latency_ms": st.dictionaries(st.sampled_from(["total", "rerank"]), st.floats(0, 9)),
        "calls": st.lists(
            st.fixed_dictionaries(
                {"model": st.just("m"), "prompt_tokens": st.integers(0, 9)},
                optional={"price_in": st.just(0.5)},
            ),
            max_size=2,
        ),
    }
)
TIMED = {"latency_ms": {"total": 1.0}, "calls": [{"model": "m", "price_per_call": 0.1}]}
# Every kind of gold, and below it everything that a measure reads, occurs at least once.
FULL_GOLD = {
    "query_id": "q0",
    "relevant": {"a": 3, "b": 0},
    "spans": [{"doc_id": "d1", "start": 1, "end": 9}],
    "evidence": ["paid in 14 days"],
}
RESULT = {"id": "b", "doc_id": "d1", "start": 0, "end": 5, "text": "by post", "tokens": 2}


def plan_of(names, gold, **options):
    return Plan.of(names, largest_grade=PreparedGold(gold).largest_grade, chunks=CHUNKS, **options)


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
@examples(20, 200)
@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True),
    st.dictionaries(st.sampled_from(QUERIES), gold_records),
    st.dictionaries(st.sampled_from(QUERIES), run_records),
    st.sampled_from([{}, {"unjudged": "skip"}, {"duplicates": "count", "no_gold": "one"}]),
    st.sampled_from(["item", "doc"]),
)
def test_queries_together_are_calculated_as_each_query_alone(names, gold_of, run_of, words, level):
    gold = Gold.of([FULL_GOLD, *({"query_id": q} | record for q, record in gold_of.items())])
    records = [{"query_id": q} | record for q, record in run_of.items()]
    run = Run.of([{"query_id": "q0", "results": [RESULT], **TIMED}, *records])
    plan = plan_of(names, gold, conventions=Conventions.of(words), level=level)
    together = dict(calculations(PreparedGold(gold), run, plan))
    assert len(together) == len(plan.measures) * gold.query_ids.len()
    for (query, measure), of_many in together.items():
        one_query = PreparedGold(gold.only(query))
        assert of_many == calculation(one_query, run, replace(plan, measures=(measure,)))


def test_every_measure_is_calculated_the_same_alone_and_for_one_query():
    other = {"id": "a", "doc_id": "d2", "start": 3, "end": 20, "text": "paid in 41 days, by post"}
    gold = [FULL_GOLD, FULL_GOLD | {"query_id": "q1"}]
    gold += [FULL_GOLD | {"query_id": "q2", "relevant": {}}, FULL_GOLD | {"query_id": "q3"}]
    gold = Gold.of([*gold, {"query_id": "q4", "relevant": {"x": 1}}])
    lists = {"q0": [RESULT, other], "q2": [other, RESULT, other], "q3": [other], "q4": [RESULT]}
    run = Run.of([{"query_id": query, "results": items, **TIMED} for query, items in lists.items()])
    plan = plan_of(NAMES, gold)
    together = dict(calculations(PreparedGold(gold), run, plan))
    assert len(together) == len(NAMES) * 5
    one_query_each, one_measure_each = {}, {}
    for query in gold.query_ids:
        one_query_each |= calculations(PreparedGold(gold.only(query)), run, plan)
    for measure in plan.measures:
        alone = replace(plan, measures=(measure,))
        one_measure_each |= calculations(PreparedGold(gold), run, alone)
    for key, of_all in together.items():
        assert of_all == one_query_each[key] == one_measure_each[key], key


def calculated(gold, run, *names, **words):
    plan = Plan.of(names, conventions=Conventions(**words))
    by_key = calculations(PreparedGold(Gold.of(gold)), Run.of(run), plan)
    return {measure.name: calculation for (_, measure), calculation in by_key}


def test_item_below_the_cutoff_is_missed_and_item_at_the_cutoff_is_not():
    by_name = calculated({"q": ["a", "b"]}, {"q": ["x", "a", "b"]}, "P@2")
    assert by_name["P@2"].missed == [{"item": "b", "grade": 1, "rank": 3}]


def test_only_judged_items_have_a_row_where_unjudged_ones_are_skipped():
    by_name = calculated({"q": {"a": 1, "b": 0}}, {"q": ["x", "b", "a"]}, "RR", unjudged="skip")
    assert [row["item"] for row in by_name["RR"].rows] == ["b", "a"]


def test_missing_timing_is_remarked_for_its_stage_only():
    run = [{"query_id": "q", "results": [], "latency_ms": {"total": 2.0}}]
    by_name = calculated({"q": ["a"]}, run, "latency.mean", "latency.mean(stage=rerank)")
    assert [bool(calculation.remarks) for calculation in by_name.values()] == [False, True]


def test_judged_items_are_not_counted_by_unjudged():
    by_name = calculated({"q": {"a": 1}}, {"q": ["x", "a", "y"]}, "Unjudged@3")
    assert by_name["Unjudged@3"].counted == [1, 3]
