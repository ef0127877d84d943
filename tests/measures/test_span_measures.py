"""Character spans: every measure has the value that marking characters one by one gives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data import Gold, Run
from karat.errors import ConventionError, MeasureError
from karat.match.span_intervals import Intervals
from karat.measures import REGISTRY, Plan, ScoreTable, parse, score
from oracles import spans as span_oracle
from support.effort import examples
from support.errors import refused
from support.spans import (
    QUERIES,
    gold_records,
    golds,
    placed,
    run_records,
    runs,
    stretches,
)

NAMES = list(span_oracle.MEASURES)
CUTOFFS = [None, 1, 2, 3, 5, 200, "1c", "5c", "17c", "1000c"]
ASKED = [(name, cutoff) for name in NAMES for cutoff in CUTOFFS]


def spelled(name, cutoff):
    return name if cutoff is None else f"{name}@{cutoff}"


ALL = [spelled(name, cutoff) for name, cutoff in ASKED]
PLAN = Plan.of(ALL)

conventions = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["zero", "skip"]),
        "no_gold": st.sampled_from(["family", "zero", "one", "recall", "skip"]),
        "duplicates": st.sampled_from(["first", "set"]),
    }
)
chances = st.randoms(use_true_random=False)


# Forms of the same data: what karat takes, and what that means.


def gold_as_records(gold):
    return Gold.of(gold_records(gold)), gold


def gold_as_frame(gold):
    """A table has no row for a query without spans, whether they are absent or an empty list."""
    rows = [(query, *span) for query, spans in gold.items() for span in spans or []]
    frame = pl.DataFrame(rows[::-1], schema=["query_id", "doc_id", "start", "end"], orient="row")
    return Gold.of(spans=frame), {query: spans for query, spans in gold.items() if spans}


def run_as_records(run):
    return Run.of(run_records(run)), run


def run_as_records_with_ids(run):
    records = run_records(run)
    for record in records:
        for result in record["results"]:
            result["id"] = "the same"  # items are distinguished by their places, not their ids
    return Run.of(records), run


def rows_of(run):
    return [(q, *item, rank) for q, items in run.items() for rank, item in enumerate(items, 3)]


def frame_of(rows):
    schema = ["query_id", "doc_id", "start", "end", "rank"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def run_as_frame_of_ranks(run):
    return Run.of(frame_of(rows_of(run)[::-1])), {q: items for q, items in run.items() if items}


def run_as_frame_of_scores(run):
    frame = frame_of(rows_of(run)[::-1]).with_columns(score=-pl.col("rank").cast(pl.Float64))
    return Run.of(frame.drop("rank")), {q: items for q, items in run.items() if items}


def run_as_frame_in_row_order(run):
    """Rows of different queries alternate: all first places, then all second places, and so on."""
    frame = frame_of(sorted(rows_of(run), key=lambda row: row[-1]))
    return Run.of(frame.drop("rank")), {q: items for q, items in run.items() if items}


GOLD_FORMS = [gold_as_records, gold_as_frame]
RUN_FORMS = [
    run_as_records,
    run_as_records_with_ids,
    run_as_frame_of_ranks,
    run_as_frame_of_scores,
    run_as_frame_in_row_order,
]


@dataclass(frozen=True)
class Data:
    """Gold or a run: the form it has, what karat gets, and what that means."""

    form: str
    given: Gold | Run
    meant: dict


@st.composite
def in_any_form(draw, source, forms, forms_without_rows):
    """Draw data and a form that can hold it: without a row, only records can."""
    data = draw(source)
    form = draw(st.sampled_from(forms if any(data.values()) else forms_without_rows))
    return Data(form.__name__, *form(data))


any_gold = in_any_form(golds, GOLD_FORMS, [gold_as_records])
any_run = in_any_form(runs, RUN_FORMS, [run_as_records])


def expected(gold, run, name, cutoff, words=None):
    return {
        query: span_oracle.value(name, run.get(query), spans, cutoff, words)
        for query, spans in gold.items()
    }


def test_every_declared_span_measure_has_an_oracle():
    declared = {name: d for name, d in REGISTRY.items() if d.family == "span"}
    other = {*span_oracle.PIECEWISE, "span.precision_omega"}
    assert set(declared) == {*NAMES, *other}
    assert {d.combine for d in declared.values()} == {"mean"}
    assert {n for n, d in declared.items() if not d.no_gold} == span_oracle.NO_GOLD_DOES_NOT_APPLY
    assert {n for n, d in declared.items() if not d.higher_is_better} == {"span.redundancy"}


@given(gold=any_gold, run=any_run, words=conventions)
@examples(60, 600)
def test_span_measures_match_the_oracle_to_the_bit(gold, run, words):
    table = score(gold.given, run.given, Plan.of(ALL, conventions=words))
    queries = sorted(gold.meant, key=str.encode)
    assert table.frame["query_id"].to_list() == queries
    for name, cutoff in ASKED:
        by_query = expected(gold.meant, run.meant, name, cutoff, words)
        measure = parse(spelled(name, cutoff))
        values = dict(zip(queries, table.frame[measure.name].to_list(), strict=True))
        assert values == by_query, f"{measure} of gold as {gold.form} and run as {run.form}"
        assert table.value(measure) == span_oracle.over_queries(list(by_query.values()))


@given(gold=any_gold, run=any_run)
@examples(30, 400)
def test_counts_report_missing_unknown_and_empty(gold, run):
    counts = score(gold.given, run.given, Plan.of("span.recall@3")).counts
    gold, run = gold.meant, run.meant
    asked = {query for query, spans in gold.items() if spans is not None}
    assert counts["queries"] == len(gold)
    assert counts["no_spans"] == len(gold.keys() - asked)
    assert counts["no_characters"] == sum(not span_oracle.characters(gold[q]) for q in asked)
    assert counts["in_common"] == len(asked & run.keys())
    assert counts["missing"] == len(asked - run.keys())
    assert counts["unknown"] == len(run.keys() - gold.keys())


def test_long_lists_and_long_documents_match_the_oracle():
    chance = np.random.default_rng(5)
    gold, run = {}, {}
    for query, depth in enumerate([0, 1, 60, 300]):
        starts = chance.integers(0, 4000, 8).tolist()
        gold[f"q{query}"] = [(f"d{i % 3}", s, s + 40 * i) for i, s in enumerate(starts)]
        starts = chance.integers(0, 4000, depth).tolist()
        run[f"q{query}"] = [(f"d{i % 4}", s, s + i % 97) for i, s in enumerate(starts)]
    asked = [(name, cutoff) for name in NAMES for cutoff in (None, 10, 250, "2000c", "9999c")]
    table = score(gold_records(gold), run_records(run), Plan.of([spelled(*a) for a in asked]))
    for name, cutoff in asked:
        got = dict(zip(gold, table.frame[spelled(name, cutoff)].to_list(), strict=True))
        assert got == expected(gold, run, name, cutoff)


@pytest.mark.parametrize("n_queries", [3, 3000])
def test_large_offsets_do_not_overflow(n_queries):
    far = 2**32
    gold = {f"q{i}": [("d", far - 100, far)] for i in range(n_queries)}
    run = {f"q{i}": [("d", far - 50, far), ("d", 0, 7)] for i in range(n_queries)}
    table = score(gold_records(gold), run_records(run), Plan.of(["span.recall", "span.iou@1"]))
    assert set(table.frame.drop("query_id").rows()) == {(0.5, 0.5)}


def test_offsets_beyond_any_document_are_refused():
    spans = [("d", 0, 2**32 + 1)]
    with refused(path=None, line=None, field="spans[0]") as error:
        Gold.of(gold_records({"q": spans}))
    assert "4,294,967,296" in str(error.value)
    with refused(path=None, line=None, field="results[0].end") as error:
        Run.of(run_records({"q": spans}))
    assert "4,294,967,296" in str(error.value)
    table = pl.DataFrame({"query_id": "q", "doc_id": "d", "start": 0, "end": [2**32 + 1]})
    for convert in (Run.of, lambda spans: Gold.of(spans=spans)):
        with refused(path=None, line=None, field="start") as error:
            convert(table)
        assert "row 1" in str(error.value)
        assert "4,294,967,296" in str(error.value)


def test_large_offsets_in_many_documents_stay_with_their_query():
    far, n = 2**32, 24_000  # so many that query, document and place do not fit in one number
    documents = {f"q{i:05}": [f"d{i}"] for i in range(n)} | {"q00007": ["d7", "d23999"]}
    gold = {q: [(document, far - 100, far) for document in d] for q, d in documents.items()}
    run = {q: [(document, far - 50, far) for document in d] for q, d in documents.items()}
    plan = Plan.of(["span.recall", "span.precision", "span.full"])
    table = score(gold_records(gold), run_records(run), plan)
    assert table.frame.rows() == [(query, 0.5, 1.0, 0.0) for query in documents]


def values(gold, run, names=NAMES):
    """Score one query whose spans are all in one document."""
    spans, items = ([("d", *place) for place in places] for places in (gold, run))
    table = score(gold_records({"q": spans}), run_records({"q": items}), Plan.of(names))
    return dict(zip(names, table.frame.row(0)[1:], strict=True))


@pytest.mark.parametrize(
    ("gold", "run", "name", "value"),
    [
        ([(0, 100)], [(50, 150)], "span.iou", 50 / 150),
        ([(0, 50)], [(0, 100)], "span.precision", 0.5),
        ([(0, 100)], [(0, 50)], "span.recall", 0.5),
        ([(0, 50), (30, 80)], [(0, 80)], "span.iou", 1.0),
        ([(0, 50), (50, 100)], [(0, 100)], "span.iou", 1.0),
        ([(0, 100)], [(0, 50), (30, 80)], "span.recall@1", 0.5),
        ([(0, 100)], [(0, 50), (30, 80)], "span.recall@2", 0.8),
        ([(0, 100)], [(0, 50), (30, 80)], "span.precision@2", 1.0),
        ([(0, 100)], [(0, 50), (30, 80)], "span.redundancy@1", 0.0),
        ([(0, 100)], [(0, 50), (30, 80)], "span.redundancy@2", 1 - 80 / 100),
        ([(0, 100)], [(0, 50), (0, 50)], "span.redundancy", 0.5),
        ([(0, 100)], [(0, 60), (40, 100)], "span.full@1", 0.0),
        ([(0, 100)], [(0, 60), (40, 100)], "span.full@2", 1.0),
        ([(0, 100)], [(50, 150)], "span.f1", 0.5),
        ([(0, 100)], [(200, 300)], "span.f1", 0.0),
        # A budget counts every character read, repeats included, and cuts an item at its end.
        ([(0, 100)], [(0, 50), (0, 50), (50, 100)], "span.recall@100c", 0.5),
        ([(0, 100)], [(0, 50), (0, 50), (50, 100)], "span.recall@120c", 0.7),
        ([(0, 100)], [(80, 120), (0, 50)], "span.recall@20c", 0.2),
        ([(0, 100)], [(80, 120), (0, 50)], "span.precision@30c", 20 / 30),
        ([(0, 100)], [(0, 50)], "span.recall@1000c", 0.5),
    ],
)
def test_worked_examples(gold, run, name, value):
    assert values(gold, run, [name])[name] == value


@pytest.mark.parametrize(
    ("gold", "run", "wanted"),
    [
        ([], [], (1.0, 0.0, 1.0, 0.0, 1.0, 0.0)),
        ([(5, 5)], [(9, 9)], (1.0, 0.0, 1.0, 0.0, 1.0, 0.0)),
        ([], [(0, 10)], (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)),
        ([(5, 5)], [(0, 10)], (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)),
        ([(0, 10)], [], (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        ([(0, 10)], [(5, 5)], (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        ([(0, 10)], [(0, 10)], (1.0, 1.0, 1.0, 1.0, 1.0, 0.0)),
    ],
)
def test_empty_gold_and_empty_results(gold, run, wanted):
    assert tuple(values(gold, run).values()) == wanted


def test_documents_and_queries_never_mix():
    gold = {"q1": [("a", 0, 10)], "q2": [("b", 0, 10)]}
    run = {"q1": [("b", 0, 10), ("A", 0, 10)], "q2": [("a", 0, 10)]}
    table = score(gold_records(gold), run_records(run), Plan.of(["span.recall", "span.redundancy"]))
    assert table.frame.rows() == [("q1", 0.0, 0.0), ("q2", 0.0, 0.0)]


def test_query_without_spans_is_left_out_but_an_empty_list_of_spans_counts():
    gold = {"given": [("d", 0, 10)], "empty": [], "absent": None}
    run = {"given": [("d", 0, 5)], "empty": [("d", 0, 5)], "absent": [("d", 0, 5)]}
    table = score(gold_records(gold), run_records(run), Plan.of("span.recall"))
    assert dict(table.frame.rows()) == {"absent": None, "empty": 1.0, "given": 0.5}
    assert table.value(parse("span.recall")) == 0.75


@pytest.mark.parametrize(
    ("word", "value", "redundancy"),
    [
        ("zero", 0.0, 0.5),
        ("one", 1.0, 0.5),
        ("recall", 0.0, 0.5),
        ("skip", None, 0.5),
        ("family", 0.0, 0.5),
    ],
)
def test_no_gold_convention_applies_to_all_but_redundancy(word, value, redundancy):
    gold, run = {"q": [("d", 3, 3)]}, {"q": [("d", 0, 5), ("d", 0, 5)]}
    plan = Plan.of(["span.precision", "span.redundancy"], conventions={"no_gold": word})
    table = score(gold_records(gold), run_records(run), plan)
    assert table.frame.rows() == [("q", value, redundancy)]


def test_missing_and_unknown_queries_are_refused_if_the_convention_is_error():
    gold = gold_records({"q1": [("d", 0, 5)], "q2": [("d", 0, 5)]})
    run = run_records({"q1": [("d", 0, 5)], "q3": [("d", 0, 5)]})
    for convention in ("missing", "unknown"):
        with refused(ConventionError, field=convention):
            score(gold, run, Plan.of("span.iou", conventions={convention: "error"}))


def test_failed_query_is_scored_as_an_empty_list():
    gold = gold_records({"q": [("d", 0, 5)], "r": [("d", 0, 5)]})
    failed = {"query_id": "r", "error": {"type": "Timeout"}, "results": [placed(("d", 0, 5))]}
    run = [*run_records({"q": [("d", 0, 5)]}), failed]
    scores = karat.evaluate(gold, run, "span.recall", fail_on_error=1)
    assert scores.per_query.rows() == [("q", 1.0), ("r", 0.0)]


# Properties that hold for any data.


def merged(rows):
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    return Intervals(*columns).merged


def places_of(stretches_):
    return list(
        zip(*(a.tolist() for a in (stretches_.text, stretches_.start, stretches_.end)), strict=True)
    )


numbered = st.lists(stretches([0, 1, 2, 5]), max_size=12)


@given(rows=numbered, chance=chances)
@examples(60, 600)
def test_merging_keeps_every_character_once_in_any_order_and_is_idempotent(rows, chance):
    once = places_of(merged(rows))
    assert span_oracle.characters(once) == span_oracle.characters(rows)
    assert span_oracle.raw_characters(once) == len(span_oracle.characters(rows))
    for (text, _, end), (next_text, start, _) in pairwise(once):
        assert (text, end) < (next_text, start)  # sorted, and those that touch are one
    chance.shuffle(rows)
    assert places_of(merged(rows)) == once
    assert places_of(merged(once)) == once


@pytest.mark.parametrize(
    ("rows", "expected_places"),
    [
        ([(0, 0, 50), (0, 30, 80)], [(0, 0, 80)]),
        ([(0, 0, 50), (0, 50, 100)], [(0, 0, 100)]),
        ([(0, 0, 50), (0, 51, 100)], [(0, 0, 50), (0, 51, 100)]),
        ([(0, 0, 100), (0, 20, 30), (0, 40, 50)], [(0, 0, 100)]),
        ([(0, 0, 50), (1, 0, 50)], [(0, 0, 50), (1, 0, 50)]),
        ([(0, 0, 50), (1, 50, 60)], [(0, 0, 50), (1, 50, 60)]),
        ([(0, 5, 5)], []),
        ([], []),
    ],
)
def test_overlapping_and_touching_stretches_of_one_text_become_one(rows, expected_places):
    assert places_of(merged(rows)) == expected_places


@given(gold=any_gold, run=any_run)
@examples(30, 400)
def test_iou_is_never_above_precision_or_recall_unless_both_are_empty(gold, run):
    table = score(gold.given, run.given, PLAN).frame
    for cutoff in CUTOFFS:
        names = [spelled(f"span.{name}", cutoff) for name in ("recall", "precision", "iou")]
        for query, recall, precision, iou in table.select("query_id", *names).rows():
            if recall is None:
                continue
            retrieved = span_oracle.top(run.meant.get(query, []), cutoff)
            both_empty = not span_oracle.characters([*gold.meant[query], *retrieved])
            assert iou <= min(precision, recall) or (both_empty and iou == 1.0)


RANKS = [*range(1, 11), None]
BUDGETS = [f"{budget}c" for budget in (*range(1, 12), 15, 20, 30, 40, 999)]
GROWING = [
    [spelled(name, cutoff) for cutoff in cutoffs]
    for name in ("span.recall", "span.full")
    for cutoffs in (RANKS, BUDGETS)
]
PLAN_OF_GROWING = Plan.of([name for names in GROWING for name in names])


@given(gold=any_gold, run=any_run)
@examples(30, 400)
def test_recall_and_full_never_fall_with_a_larger_cutoff(gold, run):
    table = score(gold.given, run.given, PLAN_OF_GROWING).frame
    for names in GROWING:
        for values in table.select(names).rows():
            assert None in values or list(values) == sorted(values)


PLANS_OF_ONE = [Plan.of(name) for name in ALL]
N_PARTS = 12


@given(gold=any_gold, run=any_run, part=st.sampled_from(range(N_PARTS)))
@examples(30, 400)
def test_measure_has_the_same_values_alone_as_with_others(gold, run, part):
    with_others = score(gold.given, run.given, PLAN).frame
    for plan in PLANS_OF_ONE[part::N_PARTS]:
        (measure,) = plan.measures
        alone = score(gold.given, run.given, plan).frame
        assert alone.equals(with_others.select("query_id", measure.name))


# Values do not depend, to the bit, on how the data is split or ordered.


def bits(table):
    rows = [
        [v if v is None or isinstance(v, str) else v.hex() for v in r] for r in table.frame.rows()
    ]
    return [table.frame.columns, rows, [table.value(measure) for measure in table.measures]]


@st.composite
def partitions(draw):
    """Every query belongs to one of up to four parts; a part may have gold, results or neither."""
    parts = draw(st.integers(1, 4))
    part_of = {query: draw(st.integers(0, parts - 1)) for query in QUERIES}
    return [{q for q in QUERIES if part_of[q] == part} for part in range(parts)]


def only(by_query, queries):
    return {query: rows for query, rows in by_query.items() if query in queries}


@given(gold=golds, run=runs, parts=partitions(), words=conventions, chance=chances)
@examples(25, 300)
def test_records_scored_in_parts_and_joined_are_the_same_table(gold, run, parts, words, chance):
    """A part may have no query with spans, or no result with a place."""
    plan = Plan.of(ALL, conventions=words)
    whole = score(gold_records(gold), run_records(run), plan)
    apart = [score(gold_records(only(gold, p)), run_records(only(run, p)), plan) for p in parts]
    chance.shuffle(apart)
    together = ScoreTable.concat(apart)
    assert together.frame.equals(whole.frame)
    assert bits(together) == bits(whole)
    assert together.counts == whole.counts


@given(gold=golds, run=runs.filter(lambda run: any(run.values())), parts=partitions())
@examples(25, 300)
def test_frames_scored_in_parts_and_joined_are_the_same_table(gold, run, parts):
    gold, run = Gold.of(gold_records(gold)), Run.of(frame_of(rows_of(run)))
    whole = score(gold, run, PLAN)

    def part(table, queries):
        return table if table is None else table.filter(pl.col("query_id").is_in(queries))

    apart = [
        score(
            Gold(
                part(gold.judgments, queries),
                spans=part(gold.spans, queries),
                empty_spans=[query for query in gold.empty_spans if query in queries],
            ),
            Run(part(run.results, queries)),
            PLAN,
        )
        for queries in parts
    ]
    together = ScoreTable.concat(apart)
    assert together.frame.equals(whole.frame)
    assert bits(together) == bits(whole)
    assert together.counts == whole.counts


@given(gold=golds, run=runs, chance=chances)
@examples(25, 300)
def test_order_of_spans_and_queries_does_not_matter(gold, run, chance):
    whole = score(gold_records(gold), run_records(run), PLAN)
    for spans in gold.values():
        chance.shuffle(spans or [])
    shuffled_gold, shuffled_run = gold_records(gold), run_records(run)
    chance.shuffle(shuffled_gold)
    chance.shuffle(shuffled_run)
    shuffled = score(shuffled_gold, shuffled_run, PLAN)
    assert bits(shuffled) == bits(whole)
    assert shuffled.counts == whole.counts


@given(gold=golds, run=runs)
@examples(25, 300)
def test_repeated_or_halved_gold_span_changes_nothing(gold, run):
    halves = {
        query: spans
        and [
            half
            for document, start, end in spans
            for half in (
                (document, start, (start + end) // 2),
                (document, (start + end) // 2, end),
                (document, start, end),
            )
        ]
        for query, spans in gold.items()
    }
    whole = score(gold_records(gold), run_records(run), PLAN)
    halved = score(gold_records(halves), run_records(run), PLAN)
    assert bits(halved) == bits(whole)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_runs_in_table_files_are_read_with_their_places(ending, tmp_path):
    run = {"q1": [("d", 0, 30), ("e", 5, 9)], "q2": [("07", 20, 40)]}
    gold = {"q1": [("d", 10, 40)], "q2": [("07", 20, 60)]}
    frame = frame_of(rows_of(run))
    path = tmp_path / f"run.{ending}"
    getattr(frame, f"write_{ending}")(path)
    scores = karat.evaluate(gold_records(gold), path, ["span.recall", "span.precision@1"])
    assert scores.per_query.rows() == [("q1", 20 / 30, 20 / 30), ("q2", 0.5, 1.0)]


def test_native_files_are_read_with_their_places(tmp_path):
    gold, run = tmp_path / "gold.jsonl", tmp_path / "run.jsonl"
    records = gold_records({"q": [("d", 0, 100)], "empty": []})
    gold.write_text("".join(json.dumps(record) + "\n" for record in records))
    records = run_records({"q": [("d", 50, 150)], "empty": []})
    run.write_text("".join(json.dumps(record) + "\n" for record in records))
    scores = karat.evaluate(gold, run, ["span.iou", "span.recall@10c"])
    assert scores.per_query.rows() == [("empty", 1.0, 1.0), ("q", 50 / 150, 0.1)]
    again = tmp_path / "again.jsonl"
    Gold.read(gold).write(again)
    assert karat.evaluate(again, run, "span.iou").per_query.rows() == [
        ("empty", 1.0),
        ("q", 50 / 150),
    ]


# Default measures, and measures that the data does not support.


def defaults(gold, run):
    return karat.evaluate(gold, run).per_query.columns[1:]


ONE = {"query_id": "q", "spans": [placed(("d", 0, 10))]}
RUN = [{"query_id": "q", "results": [{"id": "a", **placed(("d", 0, 5))}]}]
SPAN_DEFAULTS = ["span.recall@2000c", "span.precision@2000c", "span.iou@2000c"]
RANK_DEFAULTS = ["nDCG@10", "R@10", "R@100", "RR@10", "Success@10"]


def test_default_measures_are_of_the_most_specific_kind_that_the_run_answers():
    assert defaults([ONE], RUN) == SPAN_DEFAULTS
    assert defaults([ONE], run_records({"q": [("d", 0, 5)]})) == SPAN_DEFAULTS
    assert defaults([{"query_id": "q", "spans": []}], RUN) == SPAN_DEFAULTS
    assert defaults([ONE | {"relevant": ["a"]}], RUN) == SPAN_DEFAULTS
    assert defaults([ONE | {"relevant": ["a"]}], {"q": ["a"]}) == RANK_DEFAULTS
    other = {"query_id": "r", "relevant": ["a"]}
    assert defaults([ONE, other], RUN) == SPAN_DEFAULTS
    assert defaults([{"query_id": "q", "relevant": ["a"]}], RUN) == RANK_DEFAULTS


def test_rank_and_span_measures_keep_the_requested_order():
    gold = [ONE | {"relevant": ["a"]}, {"query_id": "r", "relevant": ["a"]}]
    run = [*RUN, {"query_id": "r", "results": [{"id": "x", **placed(("d", 0, 5))}]}]
    scores = karat.evaluate(gold, run, ["span.recall", "P@1", "span.iou@1"])
    assert scores.per_query.rows() == [("q", 0.5, 1.0, 0.5), ("r", None, 0.0, None)]


def test_spans_may_have_queries_that_the_judgments_lack():
    schema = ["query_id", "doc_id", "start", "end"]
    spans = pl.DataFrame([("q1", "d", 0, 10), ("q2", "d", 0, 10)], schema=schema, orient="row")
    gold = Gold.of({"q1": ["a"], "q3": ["a"]}, spans=spans)
    run = run_records({"q1": [("d", 0, 5)], "q2": [("d", 0, 2)]})
    table = score(gold, run, Plan.of("span.recall"))
    assert table.frame.rows() == [("q1", 0.5), ("q2", 0.2), ("q3", None)]


@pytest.mark.parametrize(
    ("run", "field"),
    [
        ({"q": ["a"]}, "doc_id"),
        ({"q": {"a": 1.0}}, "doc_id"),
        ([{"query_id": "q", "results": [{"id": "a"}]}], "doc_id"),
        ([{"query_id": "q", "results": [{"id": "a", "doc_id": "d"}]}], "start"),
        (
            [{"query_id": "q", "results": [{"id": "a"}, {"id": "b", **placed(("d", 0, 5))}]}],
            "doc_id",
        ),
        ([{"query_id": "q", "results": [{"start": 0, "end": 5}]}], "doc_id"),
        (pl.DataFrame({"query_id": ["q"], "item_id": ["a"]}), "doc_id"),
    ],
)
def test_run_without_places_is_refused(run, field):
    with refused(field=field) as error:
        karat.evaluate([ONE], run, "span.recall")
    assert "--chunks" in error.value.hint


@pytest.mark.parametrize("run", [{"q": []}, [{"query_id": "q", "results": []}]])
def test_run_without_results_needs_no_places(run):
    scores = karat.evaluate([ONE], run, NAMES)
    assert scores.per_query.rows() == [("q", *[0.0] * len(NAMES))]


def test_measures_of_a_missing_kind_of_gold_are_refused():
    with refused(field="judgments") as error:
        karat.evaluate([ONE], RUN, ["span.recall", "nDCG@10"])
    assert "nDCG@10" in error.value.hint
    with refused(field="spans") as error:
        karat.evaluate({"q": ["a"]}, RUN, "span.iou@5")
    assert "span.iou@5" in error.value.hint


@pytest.mark.parametrize(
    ("start", "end", "gold_field", "run_field"),
    [
        (-1, 5, "spans[0]", "results[0].start"),
        (5, 4, "spans[0]", "results[0]"),
        ("a", 5, "spans[0].start", "results[0].start"),
        (0.5, 5, "spans[0].start", "results[0].start"),
        (None, 5, "spans[0].start", "start"),
        (2**70, 2**71, "spans[0]", "results[0].start"),
    ],
)
def test_record_with_an_invalid_place_is_refused(start, end, gold_field, run_field):
    place = {"doc_id": "d", "start": start, "end": end}
    with refused(field=gold_field):
        Gold.of([{"query_id": "q", "spans": [place]}])
    with refused(field=run_field):
        karat.evaluate([ONE], [{"query_id": "q", "results": [place]}], "span.recall")


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (5, 4)])
def test_table_row_with_an_invalid_place_is_refused(start, end):
    table = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "start": [start], "end": [end]})
    for convert in (Run.of, lambda spans: Gold.of(spans=spans)):
        with refused(field="start") as error:
            convert(table)
        assert "row 1" in str(error.value)
        assert f"[{start}, {end})" in str(error.value)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("span.recall@0", "@10"),
        ("span.recall@5x", "@10"),
        ("span.recall@-5", "@10"),
        ("span.recall@0c", "@2000c"),
        ("span.recall@-5c", "@10"),
        ("span.recall@1.5c", "@10"),
        ("span.recall@c", "@10"),
        ("nDCG@5c", "@10"),
        ("span.recal", "span.recall"),
    ],
)
def test_mistake_in_a_name_is_refused_with_a_hint(name, suggestion):
    with refused(MeasureError, field=None) as error:
        parse(name)
    assert suggestion in error.value.hint


def test_span_measure_has_no_relevance_level():
    with refused(MeasureError, field=None) as error:
        parse("span.recall(rel=2)")
    assert "'rel'" in error.value.problem
    assert error.value.hint


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("span.recall@5", "span.recall@5"),
        ("SPAN.Recall@5", "span.recall@5"),
        ("span.iou@2000c", "span.iou@2000c"),
        ("span.iou@02000c", "span.iou@2000c"),
        ("span.F1", "span.f1"),
    ],
)
def test_spelling_is_parsed_as_the_canonical_measure(spelling, canonical):
    assert parse(spelling).name == canonical
    assert parse(spelling) == parse(canonical)
    assert parse(spelling).cutoff == parse(canonical).cutoff


def test_ranks_and_characters_are_different_cutoffs():
    assert parse("span.recall@5") != parse("span.recall@5c")


def test_offsets_in_other_units_are_refused(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text(
        '{"karat": 1, "kind": "gold", "offsets": "utf16"}\n'
        '{"query_id": "q", "spans": [{"doc_id": "d", "start": 0, "end": 9}]}\n'
    )
    with refused(path=path, field="offsets") as error:
        karat.evaluate(path, run_records({"q": [("d", 0, 9)]}), "span.recall")
    assert "utf16" in str(error.value)
