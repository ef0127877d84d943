"""The presets for spans and chunk ids, and the plain functions they use."""

from __future__ import annotations

import dataclasses
import importlib
import re
from itertools import pairwise

import numpy as np
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


def numbers_in(error):
    return {int(number) for number in re.findall(r"-?\d+", error.problem)}


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


@pytest.mark.parametrize("wrong", [("d", -1, 3), ("d", 5, 3)])
def test_offsets_that_mark_no_stretch_are_refused(wrong):
    for call in calls_with(wrong):
        with refused(field="start"):
            call()


def calls_with(span):
    """Every function that takes spans, called with this one."""
    right = [("d", 0, 1)]
    yield lambda: karat.merge_overlapping_spans([span])
    yield lambda: karat.calculate_overlap(right, [span])
    yield lambda: karat.calculate_overlap([span], right)
    for metric in (spans.recall, spans.precision, spans.iou, spans.f1):
        yield lambda metric=metric: metric.calculate([span], right)
        yield lambda metric=metric: metric.calculate(right, [span])


@pytest.mark.parametrize("offset", [0.5, 2.0, True, "2", None])
def test_offsets_are_whole_numbers(offset):
    for make in (CharacterSpan, SpanRange):
        with refused(field="start"):
            make("d", offset, 9)
        with refused(field="end"):
            make("d", 0, offset)
    for wrong in (("d", 0, offset), {"doc_id": "d", "start": 0, "end": offset}):
        for call in calls_with(wrong):
            with refused(field="end"):
                call()


def test_offsets_may_be_of_numpy():
    start, end = np.int64(2), np.int32(5)
    assert SpanRange("d", start, end).length == 3
    assert karat.merge_overlapping_spans([("d", start, end)]) == [("d", 2, 5)]


@pytest.mark.parametrize("document", [None, 1.5, ["d"], True])
def test_a_document_is_an_id(document):
    for make in (CharacterSpan, SpanRange):
        with refused(field="doc_id"):
            make(document, 0, 9)
    for call in calls_with((document, 0, 9)):
        with refused(field="doc_id"):
            call()


class OtherName:
    """A span whose document goes by another name."""

    def __init__(self, document, start, end):
        self.docId, self.start, self.end = document, start, end


def test_a_span_that_does_not_name_its_document_is_refused():
    for wrong in (OtherName("d", 0, 5), {"docId": "d", "start": 0, "end": 5}):
        for call in calls_with(wrong):
            with refused(field="doc_id"):
                call()


def test_spans_with_and_without_a_document_do_not_mix():
    with refused(field="doc_id"):
        karat.merge_overlapping_spans([(0, 50), CharacterSpan("d", 30, 80)])
    merge_alone, *with_others = calls_with((0, 1))
    assert merge_alone() == [(0, 1)]
    for call in with_others:
        with refused(field="doc_id"):
            call()
    assert spans.recall.calculate([(0, 50)], [(0, 100)]) == 0.5
    assert spans.iou.calculate([], [(0, 100)]) == 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda *place: place,
        lambda *place: dict(zip(("doc_id", "start", "end"), place, strict=True)),
        SpanRange,
        CharacterSpan,
    ],
)
@given(some_spans, some_spans)
def test_the_metrics_take_every_form_of_span(make, retrieved, wanted):
    given_forms = [
        [make(span.doc_id, span.start, span.end) for span in held] for held in (retrieved, wanted)
    ]
    for metric in (spans.recall, spans.precision, spans.iou, spans.f1):
        assert metric.calculate(*given_forms) == metric.calculate(retrieved, wanted)
    assert karat.calculate_overlap(*given_forms) == karat.calculate_overlap(retrieved, wanted)


@pytest.mark.parametrize("text", ["", "ab", b"ab"])
def test_a_text_is_not_a_list_of_spans(text):
    with refused():
        karat.merge_overlapping_spans(text)
    with refused():
        spans.recall.calculate([], text)


def test_documents_never_mix_and_numbers_are_text():
    assert karat.calculate_overlap([SpanRange("a", 0, 50)], [SpanRange("b", 0, 50)]) == 0
    assert karat.calculate_overlap([(7, 0, 50)], [("7", 0, 50)]) == 50


@pytest.mark.parametrize(
    ("given_spans", "merged"),
    [
        ([(0, 5, "hello")], [(0, 5, "hello")]),
        ([(0, 5, "hello"), (0, 5, "hello")], [(0, 5, "hello")]),
        ([(0, 5, "hello"), (5, 11, " world")], [(0, 11, "hello world")]),
        ([(0, 5, "hello"), (3, 8, "lo wo"), (9, 9, "")], [(0, 8, "hello wo")]),
        ([(0, 5, "hello"), (1, 3, None)], [(0, 5, "hello")]),
        ([(0, 5, "hello"), (2, 8, None)], [(0, 8, None)]),
        ([(0, 5, "hello"), (0, 5, "jello")], [(0, 5, None)]),
        ([(0, 5, "hello"), (3, 8, "no wo")], [(0, 8, None)]),
        ([(0, 5, "hello"), (4, 8, None), (8, 9, "x")], [(0, 9, None)]),
        ([(0, 5, "too long")], [(0, 5, "too long")]),
        ([(0, 5, "too long"), (3, 8, "lo wo")], [(0, 8, None)]),
    ],
)
def test_merging_keeps_the_text_where_it_is_certain(given_spans, merged):
    def objects(rows):
        return [CharacterSpan("d", *row) for row in rows]

    def dicts(rows):
        held = [dict(zip(("start", "end", "text"), row, strict=True)) for row in rows]
        return [
            {"doc_id": "d"} | {name: value for name, value in row.items() if value is not None}
            for row in held
        ]

    for form in (objects, dicts):
        assert karat.merge_overlapping_spans(form(given_spans)) == form(merged)
        assert karat.merge_overlapping_spans(form(given_spans[::-1])) == form(merged)
        assert karat.merge_overlapping_spans(iter(form(given_spans))) == form(merged)


def test_spans_of_several_kinds_are_merged_into_tuples():
    held = [CharacterSpan("d", 0, 5, "hello"), ("d", 4, 9)]
    assert karat.merge_overlapping_spans(held) == [("d", 0, 9)]


def test_the_metrics_are_metrics():
    for metric in (spans.recall, spans.precision, spans.iou, spans.f1):
        assert isinstance(metric, spans.Metric)
    for metric in (chunks.chunk_recall, chunks.chunk_precision, chunks.chunk_f1):
        assert isinstance(metric, chunks.ChunkLevelMetric)
    assert not isinstance("recall", spans.Metric)


def test_spans_are_frozen_and_checked():
    span = CharacterSpan("d", 0, 5, text="hello")
    with pytest.raises(dataclasses.FrozenInstanceError):
        span.start = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        SpanRange("d", 0, 5).end = 1
    assert SpanRange("d", 2, 5).length == 3
    for wrong in (lambda: CharacterSpan("d", 3, 2), lambda: SpanRange("d", -1, 2)):
        with refused(field="start"):
            wrong()


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


@pytest.mark.parametrize("metric", [chunks.chunk_recall, chunks.chunk_precision, chunks.chunk_f1])
def test_chunk_ids_are_lists_of_text(metric):
    for text in ("", "ab", b"ab"):
        with refused(field="retrieved"):
            metric.calculate(text, ["ab"])
        with refused(field="ground_truth"):
            metric.calculate(["ab"], text)
    for wrong in (1.0, None, ["a"], True):
        with refused(field="retrieved"):
            metric.calculate(["a", wrong], ["a"])
    assert metric.calculate([1, "2"], ["1", 2]) == 1.0
    assert metric.calculate([1, "1"], ["1"]) == 1.0


def test_ranges_merge_and_overlap():
    held = [SpanRange("d", 30, 80), SpanRange("d", 0, 50), SpanRange("e", 50, 95)]
    assert karat.merge_overlapping_spans(held) == [SpanRange("d", 0, 80), SpanRange("e", 50, 95)]
    assert karat.calculate_overlap(held, [SpanRange("d", 70, 92)]) == 10


@pytest.mark.parametrize("given", [[3, 4], [[0, 5]], ["ab"], [("d", 0, 5, "text")]])
def test_what_is_no_list_of_spans_is_named(given):
    with refused():
        karat.merge_overlapping_spans(given)


def test_both_presets_work_in_evaluate():
    gold = [{"query_id": "q", "relevant": ["x"], "spans": [{"doc_id": "d", "start": 0, "end": 10}]}]
    run = [
        {"query_id": "q", "results": [{"id": "x", "doc_id": "d", "start": 5, "end": 15}]},
    ]
    assert karat.evaluate(gold, run, preset="spans")["span.iou"] == 5 / 15
    assert karat.evaluate(gold, run, preset="chunks")["R"] == 1.0


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
