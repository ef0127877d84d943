"""Every bit of a value is independent of how the data is split, ordered, passed in or threaded."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from functools import cache

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data import Gold, Run
from karat.measures import REGISTRY, Plan, ScoreTable, score
from oracles import rank as oracle
from support.effort import FULL, examples

LARGEST_GRADE = 3
RANKED = {name: declared for name, declared in REGISTRY.items() if declared.family == "rank"}
MEASURES = [
    *(name if declared.cutoff != "share" else f"{name}@0.5" for name, declared in RANKED.items()),
    *("nDCG(gain=exp2)@5", "RBP(p=0.95, gain=linear)", "AP(rel=2)@5", "P(denominator=retrieved)@5"),
]
PLAN = Plan.of(MEASURES, largest_grade=LARGEST_GRADE)

# No white space, so that a TREC file can hold them; quotes, backslashes and signs that a table
# reader might interpret; a no-break space, which TREC does not treat as white space.
QUERIES = ["q1", "q2", "Q2", "301", "0301", '"q', "ж", "😀"]
ITEMS = ["a", "A", '"', "a,b", "\\N", "#1", "NaN", "é", "e\u0301", "a\u00a0b", "😀", "\uffee", "07"]
SCORES = [2.5, 1.0, math.nextafter(1.0, 2.0), 1e-300, 0.0, -0.0, -7.0]

golds = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from(ITEMS), st.integers(-1, LARGEST_GRADE), min_size=1, max_size=9),
    min_size=1,
)
runs = st.dictionaries(
    st.sampled_from(QUERIES),
    st.dictionaries(st.sampled_from(ITEMS), st.sampled_from(SCORES), min_size=1, max_size=9),
    min_size=1,
)
chances = st.randoms(use_true_random=False)
conventions = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["zero", "skip"]),
        "no_gold": st.sampled_from(["family", "one", "recall", "skip"]),
        "duplicates": st.sampled_from(["first", "count", "set"]),
        "unjudged": st.sampled_from(["irrelevant", "skip"]),
    }
)


def bits(table: ScoreTable) -> list[list[str | None]]:
    """Every value and hole of every query, and every value over all queries, to the last bit."""
    rows = [
        [query, *(None if v is None else v.hex() for v in values)]
        for query, *values in table.frame.hstack(table.holes).rows()
    ]
    over_queries = [table.value(measure) for measure in table.measures]
    names = table.frame.columns + table.holes.columns
    return [names, *rows, [None if v is None else v.hex() for v in over_queries]]


def rows_of(by_query):
    return [(q, item, number) for q, items in by_query.items() for item, number in items.items()]


def gold_frame(rows):
    return pl.DataFrame(rows, schema=["query_id", "item_id", "grade"], orient="row")


def run_frame(rows):
    return pl.DataFrame(rows, schema=["query_id", "item_id", "score"], orient="row")


def only(by_query, queries):
    return {query: items for query, items in by_query.items() if query in queries}


@st.composite
def partitions(draw):
    """Every query belongs to one of up to four parts; a part may have gold, results or neither."""
    parts = draw(st.integers(1, 4))
    part_of = {query: draw(st.integers(0, parts - 1)) for query in QUERIES}
    return [{q for q in QUERIES if part_of[q] == part} for part in range(parts)]


@given(
    gold=golds,
    run=runs,
    repeats=st.booleans(),
    parts=partitions(),
    words=conventions,
    chance=chances,
)
@examples(30, 400)
def test_dicts_scored_in_parts_and_joined_are_the_same_table(
    gold, run, repeats, parts, words, chance
):
    if repeats:
        run = {q: chance.choices(list(items), k=len(items) + 2) for q, items in run.items()}
    plan = Plan.of(MEASURES, conventions=words, largest_grade=LARGEST_GRADE)
    whole = score(Gold.of(gold), Run.of(run), plan)
    apart = [score(Gold.of(only(gold, p)), Run.of(only(run, p)), plan) for p in parts]
    chance.shuffle(apart)
    together = ScoreTable.concat(apart)
    assert together.frame.equals(whole.frame)
    assert bits(together) == bits(whole)
    assert together.counts == whole.counts


@given(gold=golds, run=runs, parts=partitions(), words=conventions, chance=chances)
@examples(25, 300)
def test_frames_scored_in_parts_and_joined_are_the_same_table(gold, run, parts, words, chance):
    plan = Plan.of(MEASURES, conventions=words, largest_grade=LARGEST_GRADE)
    gold = Gold.of(gold_frame(rows_of(gold)))
    repeated = rows_of(run) + chance.choices(rows_of(run), k=3)
    run = Run.of(run_frame(repeated))
    whole = score(gold, run, plan)
    apart = [
        score(
            Gold(gold.judgments.filter(pl.col("query_id").is_in(part))),
            Run(run.results.filter(pl.col("query_id").is_in(part))),
            plan,
        )
        for part in parts
    ]
    chance.shuffle(apart)
    together = ScoreTable.concat(apart)
    assert together.frame.equals(whole.frame)
    assert bits(together) == bits(whole)
    assert together.counts == whole.counts


@given(gold=golds, run=runs, chance=chances)
@examples(25, 300)
def test_order_of_rows_in_a_frame_does_not_matter(gold, run, chance):
    judgments, results = rows_of(gold), rows_of(run)
    results += chance.choices(results, k=2)
    table = score(Gold.of(gold_frame(judgments)), Run.of(run_frame(results)), PLAN)
    chance.shuffle(judgments)
    chance.shuffle(results)
    shuffled = score(Gold.of(gold_frame(judgments)), Run.of(run_frame(results)), PLAN)
    assert bits(shuffled) == bits(table)
    assert shuffled.counts == table.counts


def trec_files(folder, judgments, results):
    """Write both files by hand, with ranks in the opposite order of the scores."""
    folder.mkdir(exist_ok=True)
    qrels, run = folder / "qrels.txt", folder / "run.txt"
    qrels.write_text("".join(f"{q} 0 {item} {grade}\n" for q, item, grade in judgments), "utf-8")
    lines = [f"{q} Q0 {item} {n} {points!r} me\n" for n, (q, item, points) in enumerate(results)]
    run.write_text("".join(lines), "utf-8")
    return qrels, run


@given(gold=golds, run=runs, chance=chances)
@examples(25, 300)
def test_order_of_lines_in_trec_files_does_not_matter(gold, run, chance, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "lines"
    judgments, results = rows_of(gold), rows_of(run)
    qrels, run_file = trec_files(folder, judgments, results)
    table = score(Gold.read(qrels), Run.read(run_file), PLAN)
    chance.shuffle(judgments)
    chance.shuffle(results)
    qrels, run_file = trec_files(folder, judgments, results)
    shuffled = score(Gold.read(qrels), Run.read(run_file), PLAN)
    assert bits(shuffled) == bits(table)
    assert shuffled.counts == table.counts


@given(gold=golds, run=runs, shift=st.sampled_from(range(3)))
@examples(30, 400)
def test_dicts_lists_frames_and_trec_files_give_the_same_table(gold, run, shift, tmp_path_factory):
    """Every form of gold and of a run is compared each time, and every pair of them in turn."""
    folder = tmp_path_factory.getbasetemp() / "forms"
    qrels, run_file = trec_files(folder, rows_of(gold), rows_of(run))
    lists = {query: oracle.ranked(list(items.items())) for query, items in run.items()}
    golds_in_forms = [Gold.of(gold), Gold.of(gold_frame(rows_of(gold))), Gold.read(qrels)]
    runs_in_forms = [
        Run.of(run),
        Run.of(lists),
        Run.of(run_frame(rows_of(run))),
        Run.read(run_file),
    ]
    first, *others = [
        score(golds_in_forms[(at + shift) % 3], run_in_form, PLAN)
        for at, run_in_form in enumerate(runs_in_forms)
    ]
    for table in others:
        assert table.frame.equals(first.frame)
        assert bits(table) == bits(first)
        assert table.counts == first.counts


N_PARTS = 6


@given(gold=golds, run=runs, words=conventions, part=st.sampled_from(range(N_PARTS)))
@examples(40, 400)
def test_measure_has_the_same_values_alone_as_with_others_and_again(gold, run, words, part):
    gold, run = Gold.of(gold), Run.of(run)
    plan = Plan.of(MEASURES, conventions=words, largest_grade=LARGEST_GRADE)
    with_others = score(gold, run, plan).frame
    for measure in plan.measures[part::N_PARTS]:
        alone = Plan.of(measure, conventions=words, largest_grade=LARGEST_GRADE)
        assert score(gold, run, alone).frame.equals(with_others.select("query_id", measure.name))


A_FEW_THOUSAND_ROWS = """
import json, random
import polars as pl
from karat.data import Gold, Run
from karat.measures import Plan, score

chance = random.Random(11)
judged = [(f"q{q}", f"d{d}", chance.randint(-1, 3)) for q in range(60) for d in range(40)]
found = [
    (f"q{q}", f"d{d}", chance.randrange(64) / 8)
    for q in range(60)
    for d in chance.choices(range(200), k=100)
]
chance.shuffle(found)
gold = pl.DataFrame(judged, schema=["query_id", "item_id", "grade"], orient="row")
run = pl.DataFrame(found, schema=["query_id", "item_id", "score"], orient="row")
as_dicts = {}
for query, item, points in found:
    as_dicts.setdefault(query, {})[item] = points

plan = Plan.of(MEASURES, largest_grade=3)
for given in (run, as_dicts):
    table = score(Gold.of(gold), Run.of(given), plan)
    print(json.dumps(table.frame["query_id"].to_list()))
    for measure in table.measures:
        print(measure.name, table.value(measure).hex())
        print(*(v if v is None else v.hex() for v in table.frame[measure.name]))
print("threads", pl.thread_pool_size())
"""


@cache
def printed_with(threads: int) -> list[str]:
    script = A_FEW_THOUSAND_ROWS.replace("MEASURES", json.dumps(MEASURES))
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "POLARS_MAX_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == f"threads {threads}"
    return lines


@pytest.mark.parametrize("threads", [2, 5, 16] if FULL else [5])
def test_number_of_threads_does_not_change_a_bit(threads):
    assert printed_with(threads) == printed_with(1)
