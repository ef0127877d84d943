"""A preset gives the numbers of its functions, in Python and on the command line.

Lists have duplicates and may be empty, gold may be empty, and a run may lack a query.
"""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.presets import benchmark, chunks, coverage, graded, spans
from karat.presets.graded import RelevanceJudgment, RetrievalMetrics

# Random gold and runs often have no id or document in common, which is a warning.
pytestmark = pytest.mark.filterwarnings("ignore::karat.KaratWarning")

IDS = list("abcdefghijklmnop")
QUERIES = ["q1", "q2", "q3"]
WORDS = ["paid", "within", "14", "days", "noon", "Parcels", "leave"]


def benchmark_values(retrieved, expected):
    got = benchmark.MetricsCalculator.calculate_all(retrieved, expected)
    return {
        "P@3": got.precision_at_3,
        "P@5": got.precision_at_5,
        "R@10": got.recall_at_10,
        "RR": got.mrr,
        "Hits@3": got.hits_in_top_3,
        "Hits@5": got.hits_in_top_5,
        "FirstRelevant": got.first_relevant_position,
    }


def chunk_values(retrieved, expected):
    metrics = {"R": chunks.chunk_recall, "P": chunks.chunk_precision, "F1": chunks.chunk_f1}
    return {name: metric.calculate(retrieved, expected) for name, metric in metrics.items()}


def graded_values(retrieved, grades):
    judgments = [RelevanceJudgment(item, grade) for item, grade in grades.items()]
    got = RetrievalMetrics.compute_all(retrieved, judgments, 10)
    values = (
        got.recall_at_k,
        got.precision_at_k,
        got.mrr,
        got.ndcg_at_k,
        got.average_precision,
        got.hit_rate,
    )
    return dict(zip(graded.MEASURES, values, strict=True))


def span_values(retrieved, wanted):
    metrics = (spans.recall, spans.precision, spans.iou, spans.f1)
    return {f"span.{metric.name}": metric.calculate(retrieved, wanted) for metric in metrics}


def by_query(frame):
    return {row.pop("query_id"): row for row in frame.to_dicts()}


def assert_equal(scores, expected):
    assert list(scores) == list(next(iter(expected.values())))
    assert by_query(scores.per_query) == expected


def as_gold(query, expected):
    return {"query_id": query, "relevant": expected}


def as_run(query, retrieved):
    return {"query_id": query, "results": [{"id": item} for item in retrieved]}


def located(span):
    return dict(zip(("doc_id", "start", "end"), span, strict=True))


def as_span_gold(query, wanted):
    return {"query_id": query, "spans": [located(span) for span in wanted]}


def as_span_run(query, retrieved):
    return {"query_id": query, "results": [located(span) for span in retrieved]}


retrieved_ids = st.lists(st.sampled_from(IDS), max_size=18)
expected_ids = st.lists(st.sampled_from(IDS), max_size=5, unique=True)
some_grades = st.dictionaries(st.sampled_from(IDS), st.integers(-1, 3), max_size=5)
places = st.tuples(st.sampled_from("de"), st.integers(0, 30), st.integers(0, 15))
some_spans = st.lists(places.map(lambda p: (p[0], p[1], p[1] + p[2])), max_size=9)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


def of_queries(values):
    return st.fixed_dictionaries(dict.fromkeys(QUERIES, values))


@pytest.mark.parametrize(
    ("preset", "function"), [("benchmark", benchmark_values), ("chunks", chunk_values)]
)
@given(gold=of_queries(expected_ids), run=of_queries(retrieved_ids))
def test_presets_over_ids_equal_their_functions(preset, function, gold, run):
    expected = {query: function(run[query], gold[query]) for query in QUERIES}
    assert_equal(karat.evaluate(gold, run, preset=preset), expected)


@given(gold=of_queries(some_grades), run=of_queries(retrieved_ids))
def test_the_preset_graded_equals_its_functions(gold, run):
    expected = {query: graded_values(run[query], gold[query]) for query in QUERIES}
    assert_equal(karat.evaluate(gold, run, preset="graded"), expected)


@given(gold=of_queries(some_spans), run=of_queries(some_spans))
def test_the_preset_spans_equals_its_functions(gold, run):
    expected = {query: span_values(run[query], gold[query]) for query in QUERIES}
    scores = karat.evaluate(
        [as_span_gold(query, wanted) for query, wanted in gold.items()],
        [as_span_run(query, retrieved) for query, retrieved in run.items()],
        preset="spans",
    )
    assert_equal(scores, expected)


@settings(max_examples=40)
@given(gold=of_queries(st.lists(texts, max_size=3)), run=of_queries(st.lists(texts, max_size=12)))
def test_the_preset_coverage_equals_its_function(gold, run):
    gold = [{"query_id": query, "evidence": evidence} for query, evidence in gold.items()]
    run = [
        {"query_id": query, "results": [{"text": text} for text in listed]}
        for query, listed in run.items()
    ]
    scores = karat.evaluate(gold, run, preset="coverage")
    report = coverage.evaluate_coverage(gold, run)
    assert {name: scores[name] for name in coverage.NAMES} == report.metrics
    renamed = dict(zip(coverage.MEASURES, coverage.NAMES, strict=True))
    assert scores.per_query.rename(renamed).equals(report.per_query)


@pytest.mark.parametrize(
    ("preset", "function"),
    [("benchmark", benchmark_values), ("chunks", chunk_values)],
)
def test_a_query_that_the_run_lacks_retrieved_nothing(preset, function):
    gold, run = {"q1": ["a"], "q2": []}, {"q3": ["a"], "q1": ["a"]}
    scores = karat.evaluate(gold, run, preset=preset)
    assert by_query(scores.per_query)["q2"] == function([], [])


def draws(seed):
    """Random lists of every kind for 40 queries, with duplicates, empty lists and empty gold."""
    chance = random.Random(seed)

    def spans_of_chance():
        starts = [chance.randrange(40) for _ in range(chance.choice([0, 1, 3, 9]))]
        return [(chance.choice("de"), start, start + chance.randrange(20)) for start in starts]

    for number in range(40):
        yield (
            f"q{number}",
            {
                "retrieved": chance.choices(IDS, k=chance.choice([0, 1, 5, 18])),
                "expected": chance.sample(IDS, chance.choice([0, 1, 4])),
                "retrieved spans": spans_of_chance(),
                "expected spans": spans_of_chance(),
                "retrieved texts": [
                    " ".join(chance.choices(WORDS, k=4)) for _ in range(chance.choice([0, 2, 12]))
                ],
                "evidence": [
                    " ".join(chance.choices(WORDS, k=2)) for _ in range(chance.choice([0, 1, 3]))
                ],
            },
        )


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def printed_by_eval(command, folder, preset, gold, run):
    """Return what `karat eval --json --per-query` prints for each query."""
    write_lines(folder / "gold.jsonl", gold)
    write_lines(folder / "run.jsonl", run)
    files = (folder / "gold.jsonl", folder / "run.jsonl")
    flags = ("--preset", preset, "--json", "--per-query", "--no-intervals")
    code, out, _ = command("eval", *files, *flags)
    assert code == 0
    rows = json.loads(out)["runs"][0]["per_query"]
    return {row.pop("query_id"): row for row in rows}


@pytest.mark.parametrize(
    ("preset", "function"), [("benchmark", benchmark_values), ("chunks", chunk_values)]
)
def test_the_command_line_equals_the_functions_over_ids(command, tmp_path, preset, function):
    data = dict(draws(preset))
    gold = [as_gold(query, drawn["expected"]) for query, drawn in data.items()]
    run = [as_run(query, drawn["retrieved"]) for query, drawn in data.items()]
    printed = printed_by_eval(command, tmp_path, preset, gold, run)
    assert printed == {
        query: function(drawn["retrieved"], drawn["expected"]) for query, drawn in data.items()
    }


def test_the_command_line_equals_the_functions_of_graded(command, tmp_path):
    data = dict(draws("graded"))
    grades = {
        query: {item: rank % 4 for rank, item in enumerate(drawn["expected"])}
        for query, drawn in data.items()
    }
    gold = [as_gold(query, grades[query]) for query in data]
    run = [as_run(query, drawn["retrieved"]) for query, drawn in data.items()]
    assert printed_by_eval(command, tmp_path, "graded", gold, run) == {
        query: graded_values(drawn["retrieved"], grades[query]) for query, drawn in data.items()
    }


def test_the_command_line_equals_the_functions_of_spans(command, tmp_path):
    data = dict(draws("spans"))
    gold = [as_span_gold(query, drawn["expected spans"]) for query, drawn in data.items()]
    run = [as_span_run(query, drawn["retrieved spans"]) for query, drawn in data.items()]
    assert printed_by_eval(command, tmp_path, "spans", gold, run) == {
        query: span_values(drawn["retrieved spans"], drawn["expected spans"])
        for query, drawn in data.items()
    }


def test_the_command_line_equals_the_function_of_coverage(command, tmp_path):
    data = dict(draws("coverage"))
    gold = [{"query_id": query, "evidence": drawn["evidence"]} for query, drawn in data.items()]
    run = [
        {"query_id": query, "results": [{"text": text} for text in drawn["retrieved texts"]]}
        for query, drawn in data.items()
    ]
    printed = printed_by_eval(command, tmp_path, "coverage", gold, run)
    assert printed == by_query(coverage.evaluate_coverage(gold, run).per_query)
