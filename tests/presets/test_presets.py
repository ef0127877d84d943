"""The graded and benchmark presets give the values that their users rely on."""

import math
import time

import pytest

import karat
from karat.presets import benchmark, graded
from karat.presets.benchmark import IRMetrics, MetricsCalculator, ReportAggregator
from karat.presets.graded import MetricsResult, QueryType, RelevanceJudgment, RetrievalMetrics
from support.errors import refused

METRICS = (
    "recall_at_k",
    "precision_at_k",
    "mrr",
    "ndcg_at_k",
    "average_precision",
    "hit_rate",
)


def judged(**grades):
    return [RelevanceJudgment(chunk_id, grade) for chunk_id, grade in grades.items()]


@pytest.mark.parametrize(
    ("metric", "retrieved", "judgments", "k", "expected"),
    [
        ("recall_at_k", "abc", judged(a=2, b=1, d=2), 3, 2 / 3),
        ("recall_at_k", "xy", judged(a=2), 2, 0.0),
        ("recall_at_k", "", judged(a=2), 3, 0.0),
        ("recall_at_k", "ab", [], 2, 0.0),
        ("recall_at_k", "ab", judged(a=0), 2, 0.0),
        ("recall_at_k", "ab", judged(a=1, b=1), 2, 1.0),
        ("recall_at_k", "ab", judged(a=1, b=1), 99, 1.0),
        ("precision_at_k", "abc", judged(a=2, b=1), 3, 2 / 3),
        ("precision_at_k", "abc", judged(a=2, b=1), 2, 1.0),
        ("precision_at_k", "", judged(a=2), 3, 0.0),
        ("precision_at_k", "ab", [], 2, 0.0),
        ("precision_at_k", "ab", judged(a=1, b=3), 2, 1.0),
        ("precision_at_k", "ax", judged(a=1), 99, 0.5),
        ("mrr", "xab", judged(a=2, b=1), 3, 0.5),
        ("mrr", "ab", judged(a=1), 2, 1.0),
        ("mrr", "xy", judged(a=1), 2, 0.0),
        ("mrr", "xya", judged(a=1), 2, 0.0),
        ("mrr", "", judged(a=1), 2, 0.0),
        ("mrr", "ab", [], 2, 0.0),
        ("mrr", "xa", judged(a=1), 99, 0.5),
        ("ndcg_at_k", "acb", judged(a=2, b=1, c=0), 3, 2.5 / (2 + 1 / math.log2(3))),
        ("ndcg_at_k", "", judged(a=2), 3, 0.0),
        ("ndcg_at_k", "ab", [], 3, 0.0),
        ("ndcg_at_k", "ab", judged(a=0), 3, 0.0),
        ("ndcg_at_k", "ab", judged(a=3, b=1), 2, 1.0),
        ("ndcg_at_k", "ab", judged(a=3, b=1), 99, 1.0),
        ("average_precision", "axby", judged(a=2, b=1), 4, (1 + 2 / 3) / 2),
        ("average_precision", "xy", judged(a=1), 2, 0.0),
        ("average_precision", "", judged(a=1), 2, 0.0),
        ("average_precision", "ab", [], 2, 0.0),
        ("average_precision", "ab", judged(a=1, b=1), 2, 1.0),
        ("average_precision", "ax", judged(a=1, b=1), 99, 0.5),
        ("hit_rate", "xa", judged(a=1), 2, 1.0),
        ("hit_rate", "xa", judged(a=1), 1, 0.0),
        ("hit_rate", "xy", judged(a=1), 2, 0.0),
        ("hit_rate", "", judged(a=1), 2, 0.0),
        ("hit_rate", "ab", [], 2, 0.0),
        ("hit_rate", "ab", judged(a=1, b=1), 2, 1.0),
        ("hit_rate", "xa", judged(a=1), 99, 1.0),
    ],
)
def test_graded_metric_has_the_value_of_its_definition(metric, retrieved, judgments, k, expected):
    ids = list(retrieved)
    assert getattr(RetrievalMetrics, metric)(ids, judgments, k) == pytest.approx(expected, 1e-12)
    assert getattr(RetrievalMetrics.compute_all(ids, judgments, k), metric) == pytest.approx(
        expected, 1e-12
    )


def test_graded_ndcg_of_the_example_in_the_issue():
    value = RetrievalMetrics.ndcg_at_k(["a", "c", "b"], judged(a=2, b=1, c=0), 3)
    assert round(value, 3) == 0.950


@pytest.mark.parametrize("metric", [*METRICS, "compute_all"])
@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_graded_metric_refuses_a_cutoff_that_is_not_a_positive_integer(metric, k):
    with refused(path=None, field="k") as caught:
        getattr(RetrievalMetrics, metric)(["a"], judged(a=1), k)
    assert str(k) in caught.value.problem


def test_graded_metrics_are_static_and_judgments_are_frozen():
    with pytest.raises(TypeError):
        RetrievalMetrics()
    with pytest.raises(AttributeError):
        RelevanceJudgment("a", 1).grade = 2
    assert [kind.name for kind in QueryType] == [
        "FACTUAL",
        "CONCEPTUAL",
        "CODE_LOOKUP",
        "TROUBLESHOOTING",
    ]
    assert tuple(MetricsResult.__dataclass_fields__) == METRICS


def test_chunk_judged_twice_keeps_its_highest_grade():
    twice = [RelevanceJudgment("a", 2), RelevanceJudgment("a", 0), RelevanceJudgment("b", 1)]
    assert RetrievalMetrics.ndcg_at_k(["a", "b"], twice, 2) == 1.0


def test_benchmark_values_of_the_example_in_the_issue():
    got = MetricsCalculator.calculate_all(list("ABCDEFGHIJ"), ["A", "C", "F", "K"])
    assert got.precision_at_3 == 2 / 3
    assert got.precision_at_5 == 2 / 5
    assert got.recall_at_10 == 3 / 4
    assert got.mrr == 1.0
    assert (got.hits_in_top_3, got.hits_in_top_5, got.first_relevant_position) == (2, 2, 1)
    assert got == IRMetrics(2 / 3, 2 / 5, 3 / 4, 1.0, None, 2, 2, 1)


def test_benchmark_precision_always_divides_by_k():
    assert MetricsCalculator.precision_at_k(["A", "B"], ["A"], 5) == 1 / 5


def test_duplicate_counts_every_time_for_precision_and_hits_but_once_for_recall():
    assert MetricsCalculator.precision_at_k(["A", "A", "B"], ["A"], 3) == 2 / 3
    assert MetricsCalculator.count_hits(["A", "A", "B"], ["A"], 3) == 2
    assert MetricsCalculator.recall_at_k(["A", "A", "B"], ["A"], 3) == 1.0
    assert MetricsCalculator.calculate_all(["A", "A", "B"], ["A", "A"]).recall_at_10 == 1.0


def test_string_is_not_a_list_of_expected_ids():
    with refused(path=None, field="relevant"):
        MetricsCalculator.calculate_all(["doc1"], "doc1")


def test_mean_position_ignores_none():
    results = [
        {"category": "a", "metrics": {"first_relevant_position": position}}
        for position in (1, None, 3)
    ]
    assert ReportAggregator.group_by_category(results, "first_relevant_position") == {"a": 2.0}


def test_benchmark_ids_are_case_sensitive():
    assert MetricsCalculator.count_hits(["a"], ["A"], 1) == 0


def test_nothing_expected_gives_zero_recall_and_no_position():
    assert MetricsCalculator.recall_at_k(["A"], [], 10) == 0.0
    assert MetricsCalculator.mrr(["A"], []) == 0.0
    assert MetricsCalculator.first_relevant_position(["A"], []) is None


def test_benchmark_mrr_has_no_cutoff_and_positions_count_from_one():
    retrieved = [*map(str, range(500)), "A"]
    assert MetricsCalculator.mrr(retrieved, ["A"]) == 1 / 501
    assert MetricsCalculator.first_relevant_position(retrieved, ["A"]) == 501


@pytest.mark.parametrize("name", ["precision_at_k", "recall_at_k", "count_hits"])
def test_benchmark_refuses_a_cutoff_below_one(name):
    with refused(path=None, field="k"):
        getattr(MetricsCalculator, name)(["A"], ["A"], 0)


def test_defaults_of_ir_metrics():
    assert IRMetrics(0.1, 0.2, 0.3, 0.4) == IRMetrics(
        precision_at_3=0.1,
        precision_at_5=0.2,
        recall_at_10=0.3,
        mrr=0.4,
        ndcg_at_10=None,
        hits_in_top_3=0,
        hits_in_top_5=0,
        first_relevant_position=None,
    )


def test_aggregation_gives_means_and_medians():
    metrics = [IRMetrics(0.0, 0.2, 0.5, 1.0), IRMetrics(1.0, 0.4, 1.0, 0.5)]
    metrics.append(IRMetrics(0.2, 0.0, 0.0, 0.0))
    assert ReportAggregator.aggregate_metrics(metrics) == {
        "precision@3": pytest.approx(0.4),
        "precision@5": pytest.approx(0.2),
        "recall@10": 0.5,
        "mrr": 0.5,
        "median_precision@3": 0.2,
        "median_mrr": 0.5,
    }
    assert set(ReportAggregator.aggregate_metrics([]).values()) == {0.0}


def test_grouping_is_by_category_and_difficulty():
    def result(category, difficulty, p3):
        metrics = {"precision_at_3": p3, "precision_at_5": 0.2, "mrr": 1.0}
        return {"category": category, "difficulty": difficulty, "metrics": metrics}

    results = [result("a", "easy", 0.0), result("a", "hard", 1.0), result("b", "easy", 0.5)]
    assert ReportAggregator.group_by_category(results, "precision_at_3") == {"a": 0.5, "b": 0.5}
    assert ReportAggregator.group_by_difficulty(results) == {
        "easy": {"count": 2, "precision@3": 0.25, "precision@5": 0.2, "mrr": 1.0},
        "hard": {"count": 1, "precision@3": 1.0, "precision@5": 0.2, "mrr": 1.0},
    }


def test_presets_drive_evaluate_with_the_same_values():
    gold, run = {"q": ["A"]}, {"q": ["A", "A", "B"]}
    scores = karat.evaluate(gold, run, preset="benchmark")
    assert scores["P@3"] == 2 / 3
    assert scores["Hits@3"] == 2
    assert scores.conventions == benchmark.CONVENTIONS
    own = karat.evaluate(gold, run, preset="benchmark", conventions={"missing": "skip"})
    assert own["P@3"] == 2 / 3
    scores = karat.evaluate({"q": {"a": 2, "b": 1}}, {"q": ["a", "x"]}, preset="graded")
    assert [m.name for m in scores.table.measures] == list(graded.MEASURES)
    assert scores["P(denominator=retrieved)@10"] == 0.5


def test_unknown_preset_is_refused_and_the_hint_lists_all_presets():
    with refused(path=None, field="preset") as caught:
        karat.evaluate({"q": ["a"]}, {"q": ["a"]}, preset="grades")
    assert "grades" in caught.value.problem
    for name in ("benchmark", "chunks", "coverage", "graded", "spans"):
        assert name in caught.value.hint


def test_one_query_is_scored_without_building_tables():
    """A generous limit, which a data frame would exceed; the actual cost is about 50 µs."""
    retrieved, expected = [f"d{i}" for i in range(10)], ["d3", "d7"]
    MetricsCalculator.calculate_all(retrieved, expected)
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        MetricsCalculator.calculate_all(retrieved, expected)
        times.append(time.perf_counter() - begin)
    assert min(times) < 0.001
