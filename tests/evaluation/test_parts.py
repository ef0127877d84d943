"""A run scored in parts of whole queries has the results of the run in one part, bit for bit.

The parts are random, and every function and result is pickled on its way, as in another process.
"""

from __future__ import annotations

import pickle
import warnings

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.engines.parts import OnePart, Part
from karat.errors import KaratError
from karat.evaluation.evaluator import Evaluator
from karat.match.gold_index import PreparedGold
from support.effort import examples
from support.random_records import (
    ITEMS,
    MEASURES,
    QUERIES,
    by_query,
    described,
    gold_lines,
    options,
    records,
    run_lines,
)


class SplitRun:
    """An engine with these parts of queries, which pickles all that it is given and returns."""

    def __init__(self, gold, run, parts):
        self.parts = [
            Part(PreparedGold(gold.only(*queries)), run.only(queries)) for queries in parts
        ]

    def map(self, function):
        shipped = pickle.dumps(function)
        for part in self.parts:
            yield pickle.loads(pickle.dumps(pickle.loads(shipped)(part)))


class SplitEvaluator(Evaluator):
    def __init__(self, parts, *args, **options):
        super().__init__(*args, **options)
        self.parts = parts

    def _engine(self, source):
        run = source.read()
        if self.parts is None:
            return OnePart(Part(self._session.prepared, run))
        return SplitRun(self._session.gold, run, self.parts)


def outcome(parts, gold, runs, measures, options):
    """Everything that a user sees, with every bit of every value."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            results = SplitEvaluator(parts, gold, measures, **options).all(runs)
            seen = [described(scores) for scores in results]
        except KaratError as error:
            seen = [type(error), str(error)]
    return seen, sorted(str(warning.message) for warning in caught)


@st.composite
def partitions(draw):
    n_parts = draw(st.integers(1, 4))
    part_of = {query: draw(st.integers(0, n_parts - 1)) for query in QUERIES}
    return [{query for query in QUERIES if part_of[query] == part} for part in range(n_parts)]


def assert_equal_in_parts(parts, gold, runs, measures, options):
    whole = outcome(None, gold, runs, measures, options)
    assert outcome(parts, gold, runs, measures, options) == whole


@given(
    gold=by_query(gold_lines),
    run=by_query(run_lines),
    kinds=st.lists(st.sampled_from(sorted(MEASURES)), max_size=2, unique=True),
    options=options,
    parts=partitions(),
)
@examples(120, 3000)
def test_records_in_parts_give_the_same_scores_notes_warnings_and_errors(
    gold, run, kinds, options, parts
):
    measures = [name for kind in kinds for name in MEASURES[kind]] or None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            opened_gold, opened_run = Gold.of(records(gold)), Run.of(records(run))
        except KaratError:
            return
    assert_equal_in_parts(parts, opened_gold, [opened_run], measures, options)


@given(
    gold=by_query(
        st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, 3), min_size=1, max_size=4)
    ),
    runs=st.lists(
        by_query(
            st.dictionaries(
                st.sampled_from([*ITEMS, "x", "y", "z"]),
                st.sampled_from([1.0, 0.5, -0.0]),
                min_size=1,
                max_size=7,
            )
        ),
        min_size=1,
        max_size=2,
    ),
    options=options,
    parts=partitions(),
)
@example(
    gold={"q1": {"a": 1}, "q2": {"b": 1}},
    runs=[{"q1": {"x": 1.0}, "q2": {"y": 1.0}, "301": {"z": 1.0}}],
    options={},
    parts=[{"q2"}, {"q1", "301"}],
)
@examples(60, 1000)
def test_dicts_in_parts_give_the_same_scores_notes_warnings_and_errors(gold, runs, options, parts):
    assert_equal_in_parts(parts, gold, runs, ["nDCG@3", "ERR", "AP"], options)


def test_preset_with_latency_of_a_stage_that_only_one_part_has():
    gold = [{"query_id": q, "evidence": ["pay by card"]} for q in ("q1", "q2")]
    lines = [{"query_id": q, "results": [{"id": "a", "text": "pay by card"}]} for q in ("q1", "q2")]
    lines[1]["latency_ms"] = {"total": 3.5}
    run, parts = Run.of(lines), [{"q1"}, {"q2"}]
    assert_equal_in_parts(parts, Gold.of(gold), [run], None, {"preset": "coverage"})


def test_items_without_chunk_are_counted_over_all_parts():
    chunks = pl.DataFrame({"item_id": ["a"], "doc_id": ["d"], "start": [0], "end": [4]})
    span = {"doc_id": "d", "start": 0, "end": 3}
    gold = Gold.of([{"query_id": query, "spans": [span]} for query in "12"])
    run = Run.of({"1": ["c", "b"], "2": ["a", "b"]})
    (seen, _) = outcome([{"1"}, {"2"}], gold, [run], "span.recall", {"chunks": chunks})
    assert "2 items of the run are not in the table of chunks" in seen[1]
    assert_equal_in_parts([{"1"}, {"2"}], gold, [run], "span.recall", {"chunks": chunks})


def test_query_of_two_parts_is_refused():
    gold = Gold.of({"q1": ["a"], "q2": ["b"]})
    seen, _ = outcome([{"q1"}, {"q1", "q2"}], gold, [{"q1": ["a"], "q2": ["a"]}], "RR", {})
    assert "'q1' is in more than one" in seen[1]


@pytest.mark.parametrize("measure", sorted(karat.measures.REGISTRY))
def test_measures_can_be_pickled(measure):
    declaration = karat.measures.REGISTRY[measure]
    assert pickle.loads(pickle.dumps(declaration)) is declaration


def test_hint_about_missing_texts_does_not_depend_on_the_part():
    gold = Gold.of([{"query_id": query, "evidence": ["pay by card"]} for query in "12"])
    texts = [{"id": "a", "text": "pay by card"}]
    run = Run.of([{"query_id": "1", "results": texts}, {"query_id": "2", "results": ["a"]}])
    assert_equal_in_parts([{"1"}, {"2"}], gold, [run], "evidence.recall@2", {})
