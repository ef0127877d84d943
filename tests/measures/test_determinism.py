"""The digits do not depend on how the data was cut, ordered, handed over or spread over threads."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.data import Gold, Run
from karat.measures import REGISTRY, Plan, ScoreTable, score
from oracles import rank as oracle
from support.effort import FULL

examples = settings(max_examples=1000 if FULL else 60, deadline=None)

LARGEST_GRADE = 3
RANKED = {name: declared for name, declared in REGISTRY.items() if declared.family == "rank"}
MEASURES = [
    *(name if declared.cutoff != "share" else f"{name}@0.5" for name, declared in RANKED.items()),
    *("nDCG(gain=exp2)@5", "RBP(p=0.95, gain=linear)", "AP(rel=2)@5", "P(denominator=retrieved)@5"),
]
PLAN = Plan.of(MEASURES, largest_grade=LARGEST_GRADE)

# No white space, so that a TREC file can hold them; quotes, backslashes and signs that a reader
# of tables might take for more than text; a no-break space, which is no space to TREC.
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
        "no_gold": st.sampled_from(["family", "one", "skip"]),
        "duplicates": st.sampled_from(["first", "count"]),
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
    """Every query falls into one of up to four parts; a part may hold gold, results or neither."""
    parts = draw(st.integers(1, 4))
    part_of = {query: draw(st.integers(0, parts - 1)) for query in QUERIES}
    return [{q for q in QUERIES if part_of[q] == part} for part in range(parts)]


@given(gold=golds, run=runs, parts=partitions(), words=conventions, chance=chances)
@examples
def test_dicts_scored_in_parts_and_put_together_are_the_same_table(gold, run, parts, words, chance):
    lists = {q: chance.choices(list(items), k=len(items) + 2) for q, items in run.items()}
    plan = Plan.of(MEASURES, conventions=words, largest_grade=LARGEST_GRADE)
    for found in (run, lists):
        whole = score(Gold.of(gold), Run.of(found), plan)
        apart = [score(Gold.of(only(gold, p)), Run.of(only(found, p)), plan) for p in parts]
        chance.shuffle(apart)
        together = ScoreTable.concat(apart)
        assert together.frame.equals(whole.frame)
        assert bits(together) == bits(whole)
        assert together.counts == whole.counts


@given(gold=golds, run=runs, parts=partitions(), words=conventions, chance=chances)
@examples
def test_frames_scored_in_parts_and_put_together_are_the_same_table(
    gold, run, parts, words, chance
):
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
@examples
def test_the_order_of_the_rows_of_a_scored_frame_does_not_matter(gold, run, chance):
    judged, found = rows_of(gold), rows_of(run)
    found += chance.choices(found, k=2)
    table = score(Gold.of(gold_frame(judged)), Run.of(run_frame(found)), PLAN)
    chance.shuffle(judged)
    chance.shuffle(found)
    shuffled = score(Gold.of(gold_frame(judged)), Run.of(run_frame(found)), PLAN)
    assert bits(shuffled) == bits(table)
    assert shuffled.counts == table.counts


def trec_files(folder, judged, found):
    """Write both files by hand, with ranks that say the opposite of the scores."""
    folder.mkdir(exist_ok=True)
    qrels, run = folder / "qrels.txt", folder / "run.txt"
    qrels.write_text("".join(f"{q} 0 {item} {grade}\n" for q, item, grade in judged), "utf-8")
    lines = [f"{q} Q0 {item} {n} {points!r} me\n" for n, (q, item, points) in enumerate(found)]
    run.write_text("".join(lines), "utf-8")
    return qrels, run


@given(gold=golds, run=runs, chance=chances)
@examples
def test_the_order_of_the_lines_of_trec_files_does_not_matter(gold, run, chance, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "lines"
    judged, found = rows_of(gold), rows_of(run)
    qrels, results = trec_files(folder, judged, found)
    table = score(Gold.read(qrels), Run.read(results), PLAN)
    chance.shuffle(judged)
    chance.shuffle(found)
    qrels, results = trec_files(folder, judged, found)
    shuffled = score(Gold.read(qrels), Run.read(results), PLAN)
    assert bits(shuffled) == bits(table)
    assert shuffled.counts == table.counts


@given(gold=golds, run=runs)
@examples
def test_dicts_lists_frames_and_trec_files_give_the_same_table(gold, run, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "ways"
    qrels, results = trec_files(folder, rows_of(gold), rows_of(run))
    lists = {query: oracle.ranked(list(items.items())) for query, items in run.items()}
    golds_given = [Gold.of(gold), Gold.of(gold_frame(rows_of(gold))), Gold.read(qrels)]
    runs_given = [Run.of(run), Run.of(lists), Run.of(run_frame(rows_of(run))), Run.read(results)]
    tables = [score(g, r, PLAN) for g in golds_given for r in runs_given]
    for table in tables[1:]:
        assert table.frame.equals(tables[0].frame)
        assert bits(table) == bits(tables[0])
        assert table.counts == tables[0].counts


@given(gold=golds, run=runs, words=conventions)
@examples
def test_a_measure_has_the_same_values_alone_as_among_others_and_asked_again(gold, run, words):
    judged, found = Gold.of(gold), Run.of(run)
    plan = Plan.of(MEASURES, conventions=words, largest_grade=LARGEST_GRADE)
    among_others = score(judged, found, plan).frame
    for measure in plan.measures:
        alone = Plan.of(measure, conventions=words, largest_grade=LARGEST_GRADE)
        assert score(judged, found, alone).frame.equals(
            among_others.select("query_id", measure.name)
        )


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


def printed_with(threads: int) -> list[str]:
    script = A_FEW_THOUSAND_ROWS.replace("MEASURES", json.dumps(MEASURES))
    here = {"PYTHONPATH": os.pathsep.join(sys.path), "POLARS_MAX_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | here,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == f"threads {threads}"
    return lines


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_does_not_change_a_bit(threads):
    assert printed_with(threads) == printed_with(1)
