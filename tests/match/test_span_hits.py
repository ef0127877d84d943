"""Gold spans as items to find, precision at full recall, and judgments for any chunking."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data import Gold
from karat.errors import KaratWarning, MeasureError
from karat.match import span_intervals
from karat.match.span_intervals import Intervals
from karat.measures import Plan, parse, score
from oracles import spans as span_oracle
from support.effort import examples
from support.errors import refused
from support.spans import gold_records, golds, placed, run_records, runs, stretches

LEASTS = {"": 1, "(min_overlap=3)": 3, "(min_overlap=0.5)": 0.5, "(min_overlap=1.0)": 1.0}
ASKED = [
    (name, least, k) for name in span_oracle.PIECEWISE for least in LEASTS for k in (None, 1, 2, 5)
]


def spelled(name, least, k):
    return f"{name}{least}" if k is None else f"{name}{least}@{k}"


PLAN = Plan.of([spelled(*asked) for asked in ASKED])


@given(gold=golds, run=runs)
@examples(60, 600)
def test_measures_of_found_spans_match_the_oracle_to_the_bit(gold, run):
    table = score(gold_records(gold), run_records(run), PLAN)
    queries = sorted(gold, key=str.encode)
    for name, least, k in ASKED:
        values = table.frame[parse(spelled(name, least, k)).name].to_list()
        expected = [
            span_oracle.piecewise(name, run.get(query), gold[query], LEASTS[least], k)
            for query in queries
        ]
        assert values == expected, spelled(name, least, k)


def test_greedy_order_takes_the_first_of_equal_items():
    """Which of two equal items comes first decides what the next one can add."""
    gold = {"q": [("d", at, at + 1) for at in range(0, 12, 2)]}
    run = {"q": [("d", 0, 4), ("d", 2, 9), ("d", 4, 12), ("d", 8, 12), ("d", 0, 1)]}
    expected = span_oracle.piecewise("span.nDCG", run["q"], gold["q"])
    table = score(gold_records(gold), run_records(run), Plan.of("span.nDCG"))
    assert table.frame["span.nDCG"].to_list() == [expected]
    assert 0 < expected < 1


def test_list_better_than_the_greedy_order_has_ndcg_1():
    """The greedy order starts with the last item, which leaves one span for each of the others."""
    gold = {"q": [("d", at, at + 1) for at in range(6)]}
    run = {"q": [("d", 0, 3), ("d", 3, 6), ("d", 1, 5)]}
    table = score(gold_records(gold), run_records(run), Plan.of("span.nDCG@2"))
    assert table.frame["span.nDCG@2"].to_list() == [1.0]


def test_average_precision_is_the_textbook_one_if_an_item_finds_one_span():
    gold = {"q": [("d", at, at + 5) for at in (0, 100, 200)]}
    run = {"q": [("d", 100, 105), ("x", 0, 9), ("d", 0, 50), ("x", 0, 9), ("x", 5, 9)]}
    value = score(gold_records(gold), run_records(run), Plan.of("span.AP")).frame["span.AP"][0]
    assert value == karat.average_precision(["b", "x", "a", "y", "z"], {"a", "b", "c"})


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("span.rr(min_overlap=1)", "span.RR"),
        ("span.mrr(min_overlap=1.0)@5", "span.RR(min_overlap=1.0)@5"),
        ("span.hit_rate(min_overlap=.50)@5", "span.Success(min_overlap=0.5)@5"),
        ("span.map(min_overlap=20)", "span.AP(min_overlap=20)"),
    ],
)
def test_share_and_number_of_characters_are_distinguished(given, name):
    assert parse(given).name == name
    assert parse(name) == parse(given)


@pytest.mark.parametrize("amount", ["0", "-1", "1.5", "0.0", "x", "2.0", "nan", ""])
def test_invalid_overlap_in_a_name_is_refused(amount):
    with refused(MeasureError, field="span.RR: min_overlap") as error:
        parse(f"span.RR(min_overlap={amount})")
    assert repr(amount) in error.value.problem
    assert error.value.hint


@pytest.mark.parametrize("name", [*span_oracle.PIECEWISE, "span.precision_omega"])
def test_budget_of_characters_is_only_for_measures_of_characters(name):
    with refused(MeasureError, field=None) as error:
        parse(f"{name}@2000c")
    assert "2000c" in error.value.problem
    assert parse("span.recall@2000C").name == "span.recall@2000c"


# Precision at full recall.

chunk_lists = st.lists(stretches(), max_size=9)


def chunk_table(chunks):
    rows = [(f"c{number}", *chunk) for number, chunk in enumerate(chunks)]
    columns = {"item_id": pl.String, "doc_id": pl.String, "start": pl.Int64, "end": pl.Int64}
    return pl.DataFrame(rows, schema=columns, orient="row")


@given(gold=golds, run=runs, chunks=chunk_lists)
@examples(60, 600)
def test_precision_at_full_recall_reads_every_chunk_that_touches_gold(gold, run, chunks):
    plan = Plan.of(["span.precision_omega", "span.recall"], chunks=chunk_table(chunks))
    table = score(gold_records(gold), run_records(run), plan)
    for query, value in table.frame.select("query_id", "span.precision_omega").iter_rows():
        spans = gold[query]
        assert value == (None if spans is None else span_oracle.precision_omega(spans, chunks))


def test_precision_at_full_recall_needs_the_chunks(tmp_path, command, monkeypatch):
    gold, run = gold_records({"q": [("d", 10, 20)]}), run_records({"q": [("d", 0, 15)]})
    chunks = chunk_table([("d", 0, 15), ("d", 15, 30), ("d", 30, 99)])
    scores = karat.evaluate(gold, run, "span.precision_omega", chunks=chunks)
    assert scores["span.precision_omega"] == 10 / 30
    with refused(field="chunks") as error:
        karat.evaluate(gold, run, "span.precision_omega")
    assert "span.precision_omega" in error.value.problem
    for name, records in (("gold", gold), ("run", run)):
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    chunks.write_csv(tmp_path / "chunks.csv")
    monkeypatch.chdir(tmp_path)
    evaluate = ["eval", "gold.jsonl", "run.jsonl", "-m", "span.precision_omega", "--json"]
    assert command(*evaluate, "--chunks", "chunks.csv")[0] == 0
    code, out, err = command(*evaluate)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "chunks: " in err
    assert "--chunks FILE" in err
    explain = ["explain", "span.precision_omega", "--gold", "gold.jsonl", "--run", "run.jsonl"]
    code, out, _ = command(*explain, "--query", "q", "--chunks", "chunks.csv")
    assert code == 0
    assert "span.precision_omega = 0.3333" in out


def test_places_of_a_run_of_ids_come_from_the_table_of_chunks():
    gold = gold_records({"q": [("d", 10, 20)], "p": [("e", 0, 5)]})
    chunks = chunk_table([("d", 0, 15), ("d", 15, 30), ("e", 0, 5)])
    names = ["span.recall@1", "span.recall", "span.RR"]
    scores = karat.evaluate(gold, {"q": ["c1", "c0"], "p": ["c1", "c2"]}, names, chunks=chunks)
    assert scores.per_query.rows() == [("p", 0.0, 1.0, 0.5), ("q", 0.5, 1.0, 1.0)]
    run = {"q": ["c1", "c0"]}
    explained = karat.explain("span.RR", gold=gold, run=run, query="q", chunks=chunks)
    assert [row["item"] for row in explained.calculations[0].rows] == ["d[15:30]", "d[0:15]"]
    with refused(field="chunks") as error:
        karat.evaluate(gold, {"q": ["c1", "new"]}, names, chunks=chunks)
    assert "'new'" in error.value.problem
    with refused(field="doc_id") as error:
        karat.evaluate(gold, {"q": ["c1"]}, names)
    assert "--chunks FILE" in error.value.hint


def test_places_in_the_run_take_precedence_over_the_table_of_chunks():
    gold = gold_records({"q": [("d", 10, 20)]})
    results = [{"id": "c0", **placed(("d", 10, 20))}, {"id": "c1"}]
    run = [{"query_id": "q", "results": results}]
    chunks = chunk_table([("d", 90, 99), ("d", 0, 1000)])
    names = ["span.precision@1", "span.precision@2"]
    scores = karat.evaluate(gold, run, names, chunks=chunks)
    assert list(dict(scores).values()) == [1.0, 0.01]


# Spans to judgments.


def graded_gold(gold):
    records = gold_records({query: [span for span, _ in spans] for query, spans in gold.items()})
    for record, spans in zip(records, gold.values(), strict=True):
        for span, (_, grade) in zip(record["spans"], spans, strict=True):
            span["grade"] = grade
    return Gold.of(records)


graded = st.dictionaries(
    st.sampled_from(["q1", "Q1", "ж"]),
    st.lists(st.tuples(stretches(), st.integers(-1, 3)), max_size=5),
    min_size=1,
)


@given(
    gold=graded,
    chunks=chunk_lists,
    least=st.sampled_from([1, 4, 0.3, 1.0]),
    shares=st.sampled_from([(), (0.5,), (1.0, 0.25)]),
)
@examples(60, 600)
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_chunks_are_judged_by_the_spans_they_contain(gold, chunks, least, shares):
    table = chunk_table(chunks)
    judged = karat.to_judgments(graded_gold(gold), table, min_overlap=least, shares=shares)
    named = {f"c{number}": chunk for number, chunk in enumerate(chunks)}
    expected = {q: span_oracle.judged(spans, named, least, shares) for q, spans in gold.items()}
    rows = [(q, c, g) for q, grades in expected.items() for c, g in grades.items()]
    assert judged.judgments.rows() == sorted(rows, key=lambda row: (row[0].encode(), row[1]))
    assert set(judged.empty_judgments) == {q for q, grades in expected.items() if not grades}
    assert judged.query_ids.to_list() == sorted(gold, key=str.encode)


def test_chunk_has_the_highest_grade_of_its_spans():
    gold = graded_gold({"q": [(("d", 0, 9), 1), (("d", 5, 20), 3), (("d", 8, 9), 2)]})
    table = chunk_table([("d", 0, 10), ("d", 0, 2)])
    assert karat.to_judgments(gold, table).judgments.rows() == [("q", "c0", 3), ("q", "c1", 1)]
    by_share = karat.to_judgments(gold, table, shares=[1.0]).judgments.rows()
    assert by_share == [("q", "c0", 2), ("q", "c1", 1)]


def test_golden_set_of_spans_works_with_any_chunker():
    text = "Refunds are paid within 14 days. Shipping takes 3 days. " * 20
    gold = Gold.of([{"query_id": "q", "spans": [placed(("d", 33, 55))], "topic": "post"}])
    for size in (40, 100, 333):
        chunks = karat.chunk.fixed({"d": text}, size=size)
        judged = karat.to_judgments(gold, chunks)
        first = chunks.frame["item_id"][33 // size]
        assert karat.evaluate(judged, {"q": [first]}, "Success@1")["Success@1"] == 1.0
        assert judged.fields == ["topic"]
        assert judged.spans is gold.spans


def test_query_without_a_chunk_is_warned_about_and_scores_zero():
    spans = {"q": [("d", 0, 9)], "p": [("lost", 0, 9)], "o": [], "n": [("d", 3, 3)]}
    gold = Gold.of(gold_records(spans))
    with pytest.warns(KaratWarning) as warnings:
        judged = karat.to_judgments(gold, chunk_table([("d", 0, 5)]))
    (warning,) = warnings
    assert re.findall(r"\d+|'\w+'", str(warning.message)) == ["1", "2", "0", "'p'"]
    scores = karat.evaluate(judged, {"q": ["c0"], "p": ["c0"]}, "Success@1")
    assert scores.per_query.rows() == [("n", 0.0), ("o", 0.0), ("p", 0.0), ("q", 1.0)]


def test_judgments_need_spans_and_valid_options():
    table = chunk_table([("d", 0, 5)])
    with refused(field="spans"):
        karat.to_judgments({"q": ["a"]}, table)
    gold = Gold.of(gold_records({"q": [("d", 0, 9)]}))
    for shares, value in (([0.5, 1.5], "1.5"), ([0.0], "0.0"), ([None], "None"), (0.5, "0.5")):
        with refused(field="shares") as error:
            karat.to_judgments(gold, table, shares=shares)
        assert value in error.value.problem
    for amount in (True, math.inf, math.nan, 2.0, None, "much"):
        with refused(field="min_overlap") as error:
            karat.to_judgments(gold, table, min_overlap=amount)
        assert repr(amount) in error.value.problem


def test_small_share_in_scientific_notation_is_a_share():
    gold = Gold.of(gold_records({"q": [("d", 0, 200_000)]}))
    table = chunk_table([("d", 0, 1), ("d", 1, 3)])
    assert karat.to_judgments(gold, table, min_overlap=1e-5).judgments.rows() == [("q", "c1", 1)]


def test_convert_makes_judgments_of_chunks(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.jsonl").write_text(
        json.dumps(gold_records({"q": [("d", 90, 130)]})[0]) + "\n"
    )
    chunk_table([("d", 0, 100), ("d", 100, 200)]).write_csv("chunks.csv")
    convert = ["convert", "gold.jsonl", "out.qrels"]
    chunks = ["--chunks", "chunks.csv"]
    code, _, err = command(*convert, *chunks, "--shares", "0.5,1.0")
    assert code == 0
    assert "wrote out.qrels: gold as trec, 1 query, 2 judgments" in err
    assert (tmp_path / "out.qrels").read_text() == "q 0 c0 1\nq 0 c1 2\n"
    assert command(*convert, *chunks, "--min-overlap", "0.5")[0] == 0
    assert (tmp_path / "out.qrels").read_text() == "q 0 c1 1\n"
    (tmp_path / "run.jsonl").write_text('{"query_id": "q", "results": [{"id": "a"}]}\n')
    for words, values in (
        ([*convert, *chunks, "--min-overlap", "1.5"], ["min_overlap: ", "'1.5'"]),
        ([*convert, *chunks, "--shares", "0.5,"], ["shares: ", "''"]),
        ([*convert, "--min-overlap", "0.5"], ["--min-overlap "]),
        ([*convert, "--shares", "0.5"], ["--shares "]),
        (["convert", "run.jsonl", "out.qrels", *chunks], ["run.jsonl: "]),
    ):
        code, out, err = command(*words)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert all(value in err for value in values)


# Which intervals overlap.

flat = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.sampled_from([0, 1, 2, 3, 9, 30])),
    max_size=12,
)


def intervals_of(rows):
    text, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    return Intervals(text, start, start + length)


@given(one=flat, other=flat, many=st.sampled_from([0, 8]))
@examples(100, 1000)
def test_every_pair_that_shares_characters_is_found(one, other, many):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(span_intervals, "_MAX_CANDIDATES", many)
        overlaps = span_intervals.overlaps(intervals_of(one), intervals_of(other))
    pairs = [
        (left, right, min(a + n, b + m) - max(a, b))
        for left, (text, a, n) in enumerate(one)
        for right, (other_text, b, m) in enumerate(other)
        if text == other_text and min(a + n, b + m) > max(a, b)
    ]
    assert sorted(zip(*(column.tolist() for column in overlaps), strict=True)) == pairs
    assert overlaps[0].tolist() == sorted(overlaps[0].tolist())


def test_document_among_its_chunks_does_not_slow_the_search(monkeypatch):
    """Tables often contain parents and children, and a long document has many children."""
    looked_at = []
    expand_ranges = span_intervals._expand_ranges

    def counting(first, stop):
        looked_at.append(int((stop - first).sum()))
        return expand_ranges(first, stop)

    monkeypatch.setattr(span_intervals, "_expand_ranges", counting)
    chunks = [(0, at * 10, 10) for at in range(1000)]
    spans = intervals_of([(0, at * 10 + 2, 5) for at in range(1000)])
    overlaps = span_intervals.overlaps(spans, intervals_of([(0, 0, 10_000), *chunks]))
    assert overlaps[0].size == 2000
    assert sum(looked_at) == 2000
