"""The presets for spans and chunk ids, and the plain functions they use."""

from __future__ import annotations

import dataclasses
import importlib
import re
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data.convert import convert
from karat.errors import SWAPPED
from karat.presets import chunks, spans
from karat.presets.spans import CharacterSpan, SpanRange
from support.effort import examples
from support.errors import refused

places = st.tuples(st.sampled_from(["a", "b", "é"]), st.integers(0, 20), st.integers(0, 10))
some_spans = st.lists(places.map(lambda p: CharacterSpan(p[0], p[1], p[1] + p[2])), max_size=6)


def characters(of_spans) -> set[tuple[str, int]]:
    return {(span.doc_id, at) for span in of_spans for at in range(span.start, span.end)}


def share(part: float, whole: float, empty: float) -> float:
    return part / whole if whole else empty


@examples(60, 600)
@given(some_spans, some_spans)
def test_four_metrics_count_characters_one_by_one(retrieved, gold):
    before = list(retrieved), list(gold)
    in_run, in_gold = characters(retrieved), characters(gold)
    both = len(in_run & in_gold)
    recall, precision = share(both, len(in_gold), 1.0), share(both, len(in_run), 0.0)
    assert spans.recall.calculate(retrieved, gold) == recall
    assert spans.precision.calculate(retrieved, gold) == precision
    assert spans.iou.calculate(retrieved, gold) == share(both, len(in_run | in_gold), 1.0)
    f1 = share(2 * precision * recall, precision + recall, 0.0)
    assert spans.f1.calculate(retrieved, gold) == f1
    assert (retrieved, gold) == before
    assert karat.calculate_overlap(retrieved, gold) == both


@examples(60, 600)
@given(some_spans, st.randoms(use_true_random=False))
def test_merging_keeps_the_characters_and_does_not_depend_on_order(unmerged, random):
    merged = karat.merge_overlapping_spans(unmerged)
    assert characters(merged) == characters(unmerged)
    assert sum(span.length for span in merged) == len(characters(unmerged))
    assert karat.merge_overlapping_spans(merged) == merged
    shuffled = random.sample(unmerged, len(unmerged))
    assert karat.merge_overlapping_spans(shuffled) == merged
    for one, two in pairwise(merged):
        assert (one.doc_id, one.end) < (two.doc_id, two.start)


@pytest.mark.parametrize(
    ("unmerged", "merged"),
    [
        ([(0, 50), (30, 80)], [(0, 80)]),
        ([(0, 50), (50, 100)], [(0, 100)]),
        ([("b", 0, 5), ("a", 3, 9), ("a", 0, 4)], [("a", 0, 9), ("b", 0, 5)]),
        ([(7, 7)], []),
        ([], []),
    ],
)
def test_merged_spans_have_the_type_of_the_input(unmerged, merged):
    assert karat.merge_overlapping_spans(unmerged) == merged


def numbers_in(error):
    return {int(number) for number in re.findall(r"-?\d+", error.problem)}


@pytest.mark.parametrize("invalid", [(-1, 3), (5, 3), ("a", 5, 3)])
def test_span_with_impossible_ends_is_refused(invalid):
    for function in (
        lambda: karat.merge_overlapping_spans([invalid]),
        lambda: karat.calculate_overlap([(0, 1)], [invalid]),
    ):
        with refused(path=None, field="start") as caught:
            function()
        assert numbers_in(caught.value) == set(invalid[-2:])


def test_spans_are_frozen_and_checked():
    span = CharacterSpan("d", 0, 5, text="hello")
    with pytest.raises(dataclasses.FrozenInstanceError):
        span.start = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        SpanRange(0, 5).end = 1
    assert SpanRange(2, 5).length == 3
    for invalid in (lambda: CharacterSpan("d", 3, 2), lambda: SpanRange(-1, 2)):
        with refused(path=None, field="start"):
            invalid()


def test_metrics_have_names():
    names = [metric.name for metric in (spans.recall, spans.precision, spans.iou, spans.f1)]
    assert names == ["recall", "precision", "iou", "f1"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("span_recall", "recall"),
        ("span_precision", "precision"),
        ("span_iou", "iou"),
        ("span_f1", "f1"),
        ("TokenLevelMetric", "Metric"),
    ],
)
def test_old_name_gives_the_new_one_with_a_warning(old, new):
    module = importlib.import_module("karat.presets.spans")
    with pytest.warns(DeprecationWarning, match=rf"\b{old}\b.*\b{new}\b"):
        assert getattr(module, old) is getattr(module, new)
    with pytest.raises(AttributeError):
        module.span_accuracy  # noqa: B018


@pytest.mark.parametrize(
    ("metric", "retrieved", "gold", "value"),
    [
        ("recall", ["a"], ["a", "b"], 0.5),
        ("recall", [], [], 1.0),
        ("recall", ["a"], [], 1.0),
        ("precision", ["a", "b", "c", "d"], ["a"], 0.25),
        ("precision", ["a", "a", "b"], ["a"], 0.5),
        ("precision", [], ["a"], 0.0),
        ("f1", ["a", "b"], ["a", "c"], 0.5),
        ("f1", [], ["a"], 0.0),
        ("f1", [], [], 0.0),
    ],
)
def test_chunk_metrics_compare_sets(metric, retrieved, gold, value):
    chunk_metric = getattr(chunks, f"chunk_{metric}")
    before = list(retrieved), list(gold)
    assert chunk_metric.calculate(retrieved, gold) == value
    assert chunk_metric.name == f"chunk_{metric}"
    assert (retrieved, gold) == before


def test_ranges_merge_and_overlap_as_spans_of_one_document():
    ranges = [SpanRange(30, 80), SpanRange(0, 50), SpanRange(90, 95)]
    assert karat.merge_overlapping_spans(ranges) == [SpanRange(0, 80), SpanRange(90, 95)]
    assert karat.calculate_overlap(ranges, [SpanRange(70, 92)]) == 12


@pytest.mark.parametrize("values", [[3, 4], [[0, 5]], ["ab"], [("d", 0, 5, "text")]])
def test_value_that_is_not_a_span_is_shown(values):
    with refused(path=None, field=None) as caught:
        karat.merge_overlapping_spans(values)
    assert str(values[0]) in caught.value.problem


def test_both_presets_work_in_evaluate():
    gold = [{"query_id": "q", "relevant": ["x"], "spans": [{"doc_id": "d", "start": 0, "end": 10}]}]
    run = [
        {"query_id": "q", "results": [{"id": "x", "doc_id": "d", "start": 5, "end": 15}]},
    ]
    assert karat.evaluate(gold, run, preset="spans")["span.iou@5"] == 5 / 15
    assert karat.evaluate(gold, run, preset="chunks")["R@10"] == 1.0


def test_gold_accepts_a_table_of_spans():
    table = pl.DataFrame({"qid": ["q"], "doc_id": [7], "start": [0], "end": [10]})
    gold = karat.Gold.of(spans=table, queries=pl.DataFrame({"qid": ["q"], "text": ["why?"]}))
    assert gold.spans.row(0) == ("q", "7", 0, 10, None, 1)
    assert gold.queries["text"].to_list() == ["why?"]
    both = karat.Gold.of({"q": ["x"]}, spans=table)
    assert (both.judgments.height, both.spans.height) == (1, 1)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_row_with_start_and_without_item_id_is_a_span(tmp_path, ending):
    table = pl.DataFrame(
        {
            "qid": ["q", "q", "p"],
            "docno": ["d", "d", "e"],
            "start": [0, 20, 5],
            "end": [10, 30, 9],
            "rel": [1, 2, 1],
            "text": ["one", None, None],
            "query": ["why?", "why?", "how?"],
        }
    )
    getattr(table, f"write_{ending}")(tmp_path / f"gold.{ending}")
    for gold in (karat.Gold.of(table), karat.Gold.read(tmp_path / f"gold.{ending}")):
        assert gold.judgments.height == 0
        assert gold.spans.rows() == [
            ("q", "d", 0, 10, "one", 1),
            ("q", "d", 20, 30, None, 2),
            ("p", "e", 5, 9, None, 1),
        ]
        assert dict(gold.queries.select("query_id", "text").iter_rows()) == {
            "q": "why?",
            "p": "how?",
        }


def test_row_with_an_item_id_is_a_judgment():
    table = {"query_id": ["q"], "id": ["c"], "doc_id": ["d"], "start": [0], "end": [9], "grade": 1}
    gold = karat.Gold.of(pl.DataFrame(table))
    assert gold.judgments.rows() == [("q", "c", 1)]
    assert gold.spans is None


def test_invalid_span_in_a_file_is_refused_with_its_line(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("query_id,doc_id,start,end\nq,d,0,9\nq,d,9,5\n")
    with refused(path=path, line=3, field="start") as caught:
        karat.Gold.read(path)
    assert numbers_in(caught.value) == {9, 5}
    path.write_text("query_id,doc_id,start,end\n")
    with refused(path=path, line=1, field=None):
        karat.Gold.read(path)


def test_table_of_spans_may_be_gold_or_a_run_and_needs_a_kind(tmp_path):
    source, target = tmp_path / "places.csv", tmp_path / "out.jsonl"
    source.write_text("query_id,doc_id,start,end\nq,d,0,9\n")
    with refused(path=source, line=None, field="kind"):
        convert(source, target)
    assert convert(source, target, kind="gold").kind == "gold"
    assert karat.Gold.read(target).spans.height == 1


def test_table_with_scores_is_not_taken_for_spans():
    run = {"query_id": ["q"], "doc_id": ["d"], "start": [0], "end": [9], "score": [0.5]}
    with refused(path=None, field=None) as caught:
        karat.Gold.of(pl.DataFrame(run))
    assert caught.value.hint == SWAPPED


@pytest.mark.parametrize(
    ("column", "value", "field", "numbers"),
    [
        ("start", -1, "start", {1, -1, 10}),  # the first is the row
        ("end", -5, "start", {1, 0, -5}),
        ("start", 0.5, "start", {1, 0, 5}),
        ("doc_id", None, "doc_id", {1}),
        ("grade", "high", "grade", {1}),
        ("grade", 1.5, "grade", {1, 5}),
        ("grade", None, "grade", {1}),
        ("text", 0.5, "text", {1, 0, 5}),
    ],
)
def test_invalid_value_in_a_table_of_spans_is_refused(column, value, field, numbers):
    table = {"query_id": ["q"], "doc_id": ["d"], "start": [0], "end": [10]} | {column: [value]}
    with refused(path=None, field=field) as caught:
        karat.Gold.of(spans=pl.DataFrame(table, strict=False))
    assert numbers_in(caught.value) == numbers
    assert not isinstance(value, str) or value in caught.value.problem


def test_missing_column_of_a_table_of_spans_is_named():
    with refused(path=None, field="end") as caught:
        karat.Gold.of(spans=pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "start": [0]}))
    assert all(name in caught.value.problem for name in ("query_id", "doc_id", "start"))


def test_empty_spans_are_written_and_read_again(tmp_path):
    gold = karat.Gold.of([{"query_id": "q1", "spans": []}, {"query_id": "q2", "relevant": ["a"]}])
    gold.write(tmp_path / "gold.jsonl")
    again = karat.Gold.read(tmp_path / "gold.jsonl")
    assert again.empty_spans == ("q1",)
    assert again.spans.height == 0
