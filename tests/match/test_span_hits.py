"""Gold spans as pieces to find, precision at full recall, and judgments of any chunking."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.cli.main import main
from karat.data import Gold
from karat.errors import InputError, KaratWarning, MeasureError
from karat.match import stretches as match_stretches
from karat.match.stretches import Stretches
from karat.measures import Plan, parse, score
from oracles import spans as span_oracle
from support.effort import FULL
from support.spans import gold_records, golds, placed, run_records, runs, stretches

examples = settings(max_examples=1000 if FULL else 100, deadline=None)
LEASTS = {"": 1, "(min_overlap=3)": 3, "(min_overlap=0.5)": 0.5, "(min_overlap=1.0)": 1.0}
ASKED = [
    (name, least, k) for name in span_oracle.PIECEWISE for least in LEASTS for k in (None, 1, 2, 5)
]


def spelled(name, least, k):
    return f"{name}{least}" if k is None else f"{name}{least}@{k}"


@given(gold=golds, run=runs)
@examples
def test_a_measure_of_pieces_is_what_looking_at_each_item_says_to_the_bit(gold, run):
    table = score(gold_records(gold), run_records(run), Plan.of([spelled(*a) for a in ASKED]))
    queries = sorted(gold, key=str.encode)
    for name, least, k in ASKED:
        got = table.frame[parse(spelled(name, least, k)).name].to_list()
        wanted = [
            span_oracle.piecewise(name, run.get(query), gold[query], LEASTS[least], k)
            for query in queries
        ]
        assert got == wanted, spelled(name, least, k)


def test_the_greedy_order_takes_the_first_of_equal_items():
    """Which of two equal items comes first decides what the next one can add."""
    gold = {"q": [("d", at, at + 1) for at in range(0, 12, 2)]}
    run = {"q": [("d", 0, 4), ("d", 2, 9), ("d", 4, 12), ("d", 8, 12), ("d", 0, 1)]}
    wanted = span_oracle.piecewise("span.nDCG", run["q"], gold["q"])
    table = score(gold_records(gold), run_records(run), Plan.of("span.nDCG"))
    assert table.frame["span.nDCG"].to_list() == [wanted]
    assert 0 < wanted < 1


def test_a_list_that_beats_the_greedy_order_is_as_good_as_can_be():
    """Greedy takes the item in the middle, which leaves one span to each of the other two."""
    gold = {"q": [("d", at, at + 1) for at in range(6)]}
    run = {"q": [("d", 0, 3), ("d", 3, 6), ("d", 1, 5)]}
    table = score(gold_records(gold), run_records(run), Plan.of("span.nDCG@2"))
    assert table.frame["span.nDCG@2"].to_list() == [1.0]


def test_average_precision_is_the_usual_one_where_an_item_finds_one_span():
    gold = {"q": [("d", at, at + 5) for at in (0, 100, 200)]}
    run = {"q": [("d", 100, 105), ("x", 0, 9), ("d", 0, 50), ("x", 0, 9), ("x", 5, 9)]}
    found = score(gold_records(gold), run_records(run), Plan.of("span.AP")).frame["span.AP"][0]
    assert found == karat.average_precision(["b", "x", "a", "y", "z"], {"a", "b", "c"})


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("span.rr(min_overlap=1)", "span.RR"),
        ("span.mrr(min_overlap=1.0)@5", "span.RR(min_overlap=1.0)@5"),
        ("span.hit_rate(min_overlap=.50)@5", "span.Success(min_overlap=0.5)@5"),
        ("span.map(min_overlap=20)", "span.AP(min_overlap=20)"),
    ],
)
def test_a_share_and_a_number_of_characters_are_told_apart(given, name):
    assert parse(given).name == name
    assert parse(name) == parse(given)


@pytest.mark.parametrize("amount", ["0", "-1", "1.5", "0.0", "x", "2.0", "nan", ""])
def test_a_least_overlap_that_is_none_is_refused(amount):
    with pytest.raises(MeasureError, match="is no least overlap") as caught:
        parse(f"span.RR(min_overlap={amount})")
    assert "characters (20), or a share of the span (0.5, 1.0)" in str(caught.value)


@pytest.mark.parametrize("name", [*span_oracle.PIECEWISE, "span.precision_omega"])
def test_a_budget_of_characters_is_for_measures_of_characters(name):
    with pytest.raises(MeasureError):
        parse(f"{name}@2000c")
    assert parse("span.recall@2000C").name == "span.recall@2000c"


# Precision at full recall.

chunk_lists = st.lists(stretches(), max_size=9)


def chunk_table(chunks):
    rows = [(f"c{number}", *chunk) for number, chunk in enumerate(chunks)]
    columns = {"item_id": pl.String, "doc_id": pl.String, "start": pl.Int64, "end": pl.Int64}
    return pl.DataFrame(rows, schema=columns, orient="row")


@given(gold=golds, run=runs, chunks=chunk_lists)
@examples
def test_precision_at_full_recall_reads_every_chunk_that_touches_gold(gold, run, chunks):
    plan = Plan.of(["span.precision_omega", "span.recall"], chunks=chunk_table(chunks))
    table = score(gold_records(gold), run_records(run), plan)
    for query, value in table.frame.select("query_id", "span.precision_omega").iter_rows():
        spans = gold[query]
        assert value == (None if spans is None else span_oracle.precision_omega(spans, chunks))


def test_precision_at_full_recall_needs_the_chunks(tmp_path, capsys, monkeypatch):
    gold, run = gold_records({"q": [("d", 10, 20)]}), run_records({"q": [("d", 0, 9)]})
    chunks = chunk_table([("d", 0, 15), ("d", 15, 30), ("d", 30, 99)])
    scores = karat.evaluate(gold, run, "span.precision_omega", chunks=chunks)
    assert scores["span.precision_omega"] == 10 / 30
    with pytest.raises(InputError, match="needs the table of all chunks"):
        karat.evaluate(gold, run, "span.precision_omega")
    for name, records in (("gold", gold), ("run", run)):
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    chunks.write_csv(tmp_path / "chunks.csv")
    monkeypatch.chdir(tmp_path)
    command = ["karat", "eval", "gold.jsonl", "run.jsonl", "-m", "span.precision_omega", "--json"]
    assert answer(monkeypatch, capsys, *command, "--chunks", "chunks.csv")[0] == 0
    code, _, errors = answer(monkeypatch, capsys, *command)
    assert code == 2
    assert "--chunks FILE" in errors
    explained = ["karat", "explain", "span.precision_omega", "--gold", "gold.jsonl", "--run"]
    words = [*explained, "run.jsonl", "--query", "q", "--chunks", "chunks.csv"]
    assert "= 0.3333333333333333" in answer(monkeypatch, capsys, *words)[1]


def answer(monkeypatch, capsys, *command):
    monkeypatch.setattr(sys, "argv", list(command))
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


def test_a_run_of_ids_stands_where_the_table_of_all_chunks_says():
    gold = gold_records({"q": [("d", 10, 20)], "p": [("e", 0, 5)]})
    chunks = chunk_table([("d", 0, 15), ("d", 15, 30), ("e", 0, 5)])
    names = ["span.recall@1", "span.recall", "span.RR"]
    scores = karat.evaluate(gold, {"q": ["c1", "c0"], "p": ["c1", "c2"]}, names, chunks=chunks)
    assert scores.per_query.rows() == [("p", 0.0, 1.0, 0.5), ("q", 0.5, 1.0, 1.0)]
    run = {"q": ["c1", "c0"]}
    explained = karat.explain("span.RR", gold=gold, run=run, query="q", chunks=chunks)
    assert [row["item"] for row in explained.calculations[0].rows] == ["d[15:30]", "d[0:15]"]
    with pytest.raises(InputError, match="doc_id of 'new', and the table of all chunks"):
        karat.evaluate(gold, {"q": ["c1", "new"]}, names, chunks=chunks)
    with pytest.raises(InputError, match="--chunks FILE"):
        karat.evaluate(gold, {"q": ["c1"]}, names)


def test_what_a_run_says_itself_counts_before_the_table_of_all_chunks():
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
@examples
@pytest.mark.filterwarnings("ignore:of .* with spans")
def test_chunks_are_judged_by_what_they_hold(gold, chunks, least, shares):
    table = chunk_table(chunks)
    made = karat.to_judgments(graded_gold(gold), table, min_overlap=least, shares=shares)
    named = {f"c{number}": chunk for number, chunk in enumerate(chunks)}
    wanted = {q: span_oracle.judged(spans, named, least, shares) for q, spans in gold.items()}
    rows = [(q, c, g) for q, grades in wanted.items() for c, g in grades.items()]
    assert made.judgments.rows() == sorted(rows, key=lambda row: (row[0].encode(), row[1]))
    assert set(made.empty_judgments) == {query for query, grades in wanted.items() if not grades}
    assert made.query_ids.to_list() == sorted(gold, key=str.encode)


def test_a_chunk_has_the_highest_grade_of_what_it_holds():
    gold = graded_gold({"q": [(("d", 0, 9), 1), (("d", 5, 20), 3), (("d", 8, 9), 2)]})
    table = chunk_table([("d", 0, 10), ("d", 0, 2)])
    assert karat.to_judgments(gold, table).judgments.rows() == [("q", "c0", 3), ("q", "c1", 1)]
    by_share = karat.to_judgments(gold, table, shares=[1.0]).judgments.rows()
    assert by_share == [("q", "c0", 2), ("q", "c1", 1)]


def test_a_golden_set_survives_a_new_chunker():
    text = "Refunds are paid within 14 days. Shipping takes 3 days. " * 20
    gold = Gold.of([{"query_id": "q", "spans": [placed(("d", 33, 55))], "topic": "post"}])
    for size in (40, 100, 333):
        chunks = karat.chunk.fixed({"d": text}, size=size)
        judged = karat.to_judgments(gold, chunks)
        first = chunks.frame["item_id"][33 // size]
        assert karat.evaluate(judged, {"q": [first]}, "Success@1")["Success@1"] == 1.0
        assert judged.fields == ["topic"]
        assert judged.spans is gold.spans


def test_a_query_that_no_chunk_holds_is_said_and_scores_nothing():
    gold = Gold.of(gold_records({"q": [("d", 0, 9)], "p": [("lost", 0, 9)], "o": []}))
    with pytest.warns(KaratWarning, match="of 2 queries with spans, 1 such as 'p' have no chunk"):
        judged = karat.to_judgments(gold, chunk_table([("d", 0, 5)]))
    scores = karat.evaluate(judged, {"q": ["c0"], "p": ["c0"]}, "Success@1")
    assert scores.per_query.rows() == [("o", 0.0), ("p", 0.0), ("q", 1.0)]


def test_judgments_cannot_be_made_of_what_is_not_there():
    table = chunk_table([("d", 0, 5)])
    with pytest.raises(InputError, match="gold holds no spans"):
        karat.to_judgments({"q": ["a"]}, table)
    gold = Gold.of(gold_records({"q": [("d", 0, 9)]}))
    with pytest.raises(InputError, match=r"shares: 1\.5 is no share"):
        karat.to_judgments(gold, table, shares=[0.5, 1.5])
    with pytest.raises(InputError, match="shares: None is no share"):
        karat.to_judgments(gold, table, shares=[None])
    with pytest.raises(InputError, match=r"shares: 0\.5 is no list of shares"):
        karat.to_judgments(gold, table, shares=0.5)
    for amount in (True, math.inf, math.nan, 2.0, None, "much"):
        with pytest.raises(InputError, match=f"min_overlap: {amount!r} is no least overlap"):
            karat.to_judgments(gold, table, min_overlap=amount)


def test_a_small_share_is_a_share_however_it_is_written():
    gold = Gold.of(gold_records({"q": [("d", 0, 200_000)]}))
    table = chunk_table([("d", 0, 1), ("d", 1, 3)])
    assert karat.to_judgments(gold, table, min_overlap=1e-5).judgments.rows() == [("q", "c1", 1)]


def test_judgments_are_made_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.jsonl").write_text(
        json.dumps(gold_records({"q": [("d", 90, 130)]})[0]) + "\n"
    )
    chunk_table([("d", 0, 100), ("d", 100, 200)]).write_csv("chunks.csv")
    convert = ["karat", "convert", "gold.jsonl", "out.qrels", "--chunks", "chunks.csv"]
    code, _, errors = answer(monkeypatch, capsys, *convert, "--shares", "0.5,1.0")
    assert code == 0
    assert "wrote out.qrels: gold as trec, 1 query, 2 judgments" in errors
    assert (tmp_path / "out.qrels").read_text() == "q 0 c0 1\nq 0 c1 2\n"
    assert answer(monkeypatch, capsys, *convert, "--min-overlap", "0.5")[0] == 0
    assert (tmp_path / "out.qrels").read_text() == "q 0 c1 1\n"
    code, _, errors = answer(monkeypatch, capsys, *convert, "--min-overlap", "1.5")
    assert code == 2
    assert "'1.5' is no least overlap" in errors
    code, _, errors = answer(monkeypatch, capsys, *convert, "--shares", "0.5,")
    assert code == 2
    assert "shares: '' is no share" in errors
    for flag, amount in (("--min-overlap", "0.5"), ("--shares", "0.5")):
        code, _, errors = answer(monkeypatch, capsys, *convert[:4], flag, amount)
        assert code == 2
        assert f"{flag} says how chunks are judged, and there are none" in errors
    (tmp_path / "run.jsonl").write_text('{"query_id": "q", "results": [{"id": "a"}]}\n')
    convert[2] = "run.jsonl"
    code, _, errors = answer(monkeypatch, capsys, *convert)
    assert code == 2
    assert "only gold has spans" in errors


# Which stretches overlap.

flat = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.sampled_from([0, 1, 2, 3, 9, 30])),
    max_size=12,
)


def held(rows):
    text, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    return Stretches(text, start, start + length)


@given(one=flat, other=flat, many=st.sampled_from([0, 8]))
@examples
def test_every_pair_that_shares_characters_is_found_whatever_the_sizes(one, other, many):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match_stretches, "_MANY", many)
        found = match_stretches.overlapping(held(one), held(other))
    pairs = [
        (left, right, min(a + n, b + m) - max(a, b))
        for left, (text, a, n) in enumerate(one)
        for right, (other_text, b, m) in enumerate(other)
        if text == other_text and min(a + n, b + m) > max(a, b)
    ]
    assert sorted(zip(*(column.tolist() for column in found), strict=True)) == pairs
    assert found[0].tolist() == sorted(found[0].tolist())


def test_a_document_among_its_chunks_does_not_bring_all_of_them_up(monkeypatch):
    """Parents and children in one table are common, and a long document has many children."""
    looked_at = []
    pieces = match_stretches._pieces

    def counting(first, stop):
        looked_at.append(int((stop - first).sum()))
        return pieces(first, stop)

    monkeypatch.setattr(match_stretches, "_pieces", counting)
    chunks = [(0, at * 10, 10) for at in range(1000)]
    spans = held([(0, at * 10 + 2, 5) for at in range(1000)])
    found = match_stretches.overlapping(spans, held([(0, 0, 10_000), *chunks]))
    assert found[0].size == 2000
    assert sum(looked_at) == 2000
