"""How values come about: the same for many queries at once as for each by itself."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.conventions import Conventions
from karat.data.gold import Gold
from karat.data.run import Run
from karat.evaluation.calculating import calculation, calculations
from karat.match.prepared import PreparedGold
from karat.measures import REGISTRY, Plan

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
# Every kind of gold stands there once, and everything that a measure reads.
GIVEN = {
    "query_id": "q0",
    "relevant": {"a": 3, "b": 0},
    "spans": [{"doc_id": "d1", "start": 1, "end": 9}],
    "evidence": ["paid in 14 days"],
}
FOUND = {"id": "b", "doc_id": "d1", "start": 0, "end": 5, "text": "by post", "tokens": 2}


def assert_calculated_together_as_alone(names, gold, run, words, level):
    plan = Plan.of(
        names,
        conventions=Conventions.of(words),
        level=level,
        largest_grade=PreparedGold(gold).largest_grade,
        chunks=CHUNKS,
    )
    together = dict(calculations(PreparedGold(gold), run, plan))
    assert len(together) == len(plan.measures) * gold.query_ids.len()
    for (query, measure), found in together.items():
        alone = PreparedGold(gold.only(query))
        assert found == calculation(alone, run, replace(plan, measures=(measure,)))


@pytest.mark.filterwarnings("ignore:.* without text")
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True),
    st.dictionaries(st.sampled_from(QUERIES), gold_records),
    st.dictionaries(st.sampled_from(QUERIES), run_records),
    st.sampled_from([{}, {"unjudged": "skip"}, {"duplicates": "count", "no_gold": "one"}]),
    st.sampled_from(["item", "doc"]),
)
def test_many_queries_at_once_are_calculated_as_each_by_itself(
    names, gold_of, run_of, words, level
):
    gold = Gold.of([GIVEN, *({"query_id": q} | record for q, record in gold_of.items())])
    listed = [{"query_id": q} | record for q, record in run_of.items()]
    run = Run.of([{"query_id": "q0", "results": [FOUND], **TIMED}, *listed])
    assert_calculated_together_as_alone(names, gold, run, words, level)


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_is_calculated_for_many_queries_as_for_each(name):
    again = {"id": "a", "doc_id": "d2", "start": 3, "end": 20, "text": "paid in 41 days, by post"}
    gold = [GIVEN, GIVEN | {"query_id": "q1"}, GIVEN | {"query_id": "q2", "relevant": {}}]
    gold += [GIVEN | {"query_id": "q3"}, {"query_id": "q4", "relevant": {"x": 1}}]
    lists = {"q0": [FOUND, again], "q2": [again, FOUND, again], "q3": [again], "q4": [FOUND]}
    run = [{"query_id": query, "results": items, **TIMED} for query, items in lists.items()]
    assert_calculated_together_as_alone([name], Gold.of(gold), Run.of(run), {}, "item")


def calculated(gold, run, *names, **words):
    plan = Plan.of(names, conventions=Conventions(**words))
    found = calculations(PreparedGold(Gold.of(gold)), Run.of(run), plan)
    return {measure.name: calculation for (_, measure), calculation in found}


def test_what_stands_at_the_last_rank_that_counts_is_not_missed():
    found = calculated({"q": ["a", "b"]}, {"q": ["x", "a", "b"]}, "P@2")
    assert found["P@2"].missed == [{"item": "b", "grade": 1, "rank": 3}]


def test_where_unjudged_items_are_skipped_only_judged_ones_have_a_row():
    found = calculated({"q": {"a": 1, "b": 0}}, {"q": ["x", "b", "a"]}, "RR", unjudged="skip")
    assert [row["item"] for row in found["RR"].rows] == ["b", "a"]


def test_a_timing_that_lacks_is_told_of_the_stage_that_lacks_it():
    run = [{"query_id": "q", "results": [], "latency_ms": {"total": 2.0}}]
    found = calculated({"q": ["a"]}, run, "latency.mean", "latency.mean(stage=rerank)")
    assert [bool(each.remarks) for each in found.values()] == [False, True]


def test_what_is_noted_of_unjudged_items_is_noted_of_no_other():
    found = calculated({"q": {"a": 1}}, {"q": ["x", "a", "y"]}, "Unjudged@3")
    assert found["Unjudged@3"].counted == [1, 3]
