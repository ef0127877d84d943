"""The graded and benchmark presets give the values that their users rely on."""

import dataclasses
import math
import statistics
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.presets import benchmark, graded
from karat.presets.benchmark import IRMetrics, MetricsCalculator, ReportAggregator
from karat.presets.graded import MetricsResult, QueryType, RelevanceJudgment, RetrievalMetrics
from karat.report.catalogue import catalogue
from support.errors import refused

MEASURES_PAGE = Path(__file__).parents[2] / "docs" / "measures.md"
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
def test_a_cutoff_below_one_is_an_error(metric, k):
    with refused(field="k") as caught:
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


TWICE = [RelevanceJudgment("a", 2), RelevanceJudgment("a", 0), RelevanceJudgment("b", 1)]


def test_a_chunk_judged_twice_keeps_its_highest_grade_with_a_warning():
    with pytest.warns(karat.KaratWarning) as warned:
        all_six = RetrievalMetrics.compute_all(["a", "b"], TWICE, 2)
    assert all_six.ndcg_at_k == 1.0
    assert [warning.filename for warning in warned] == [__file__]


@pytest.mark.parametrize("metric", [*METRICS, "compute_all"])
def test_graded_needs_a_cutoff(metric):
    with refused(field="k"):
        getattr(RetrievalMetrics, metric)(["a"], judged(a=1), None)


@pytest.mark.parametrize("metric", [*METRICS, "compute_all"])
def test_graded_looks_at_nothing_below_rank_k(metric):
    class CutList(list):
        def __iter__(self):
            raise AssertionError("the whole list is read")

    function = getattr(RetrievalMetrics, metric)
    retrieved = CutList(["a", "x", ["not an id"]])
    assert function(retrieved, judged(a=1), 2) == function(["a", "x"], judged(a=1), 2)


def test_a_text_is_not_a_list_of_chunk_ids():
    with refused(field="retrieved_chunk_ids"):
        RetrievalMetrics.recall_at_k("abc", judged(a=1), 3)


@pytest.mark.parametrize("grade", [1.5, "2", None])
def test_a_judgment_needs_a_whole_number_as_its_grade(grade):
    with refused(field="grade"):
        RelevanceJudgment("a", grade)


@pytest.mark.parametrize("chunk_id", ["", None, 1.5])
def test_a_judgment_needs_a_chunk_id(chunk_id):
    with refused(field="chunk_id"):
        RelevanceJudgment(chunk_id, 1)


def test_gold_takes_judgments():
    gold = karat.Gold.of({"q1": judged(a=2, b=0), "q2": [], "q3": ["c"]})
    assert gold.judgments.rows() == [("q1", "a", 2), ("q1", "b", 0), ("q3", "c", 1)]
    judgments = judged(a=3, b=1)
    scores = karat.evaluate({"q": judgments}, {"q": ["b", "a"]}, preset="graded")
    assert scores["nDCG@10"] == RetrievalMetrics.ndcg_at_k(["b", "a"], judgments, 10)


def test_gold_warns_of_a_chunk_that_is_judged_twice():
    with pytest.warns(karat.KaratWarning):
        gold = karat.Gold.of({"q": TWICE})
    assert gold.judgments.rows() == [("q", "a", 2), ("q", "b", 1)]


def test_gold_takes_no_mix_of_judgments_and_ids():
    with refused(field="item_id"):
        karat.Gold.of({"q": [RelevanceJudgment("a", 1), "b"]})


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


SIX = ["precision@3", "precision@5", "recall@10", "mrr", "median_precision@3", "median_mrr"]


def test_aggregation_of_nothing_has_the_same_keys_without_values():
    assert ReportAggregator.aggregate_metrics([]) == dict.fromkeys(SIX)
    assert list(ReportAggregator.aggregate_metrics([])) == SIX


def test_aggregation_reads_an_iterator_once():
    metrics = [IRMetrics(1.0, 0.6, 0.5, 1.0), IRMetrics(0.0, 0.2, 1.0, 0.5)]
    whole = ReportAggregator.aggregate_metrics(metrics)
    assert ReportAggregator.aggregate_metrics(results=iter(metrics)) == whole
    assert whole["precision@5"] == 0.4


@given(st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.6, 1 / 3, 2 / 3, 1.0]), min_size=1))
def test_aggregation_has_the_digits_of_the_standard_library(values):
    got = ReportAggregator.aggregate_metrics(IRMetrics(v, v, v, v) for v in values)
    assert got["precision@3"] == got["recall@10"] == statistics.mean(values)
    assert got["median_precision@3"] == got["median_mrr"] == statistics.median(values)


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


def spelled_results(spelling):
    """The same two results, with their metrics spelled in one of three ways."""
    metrics = [IRMetrics(1.0, 0.6, 1.0, 1.0), IRMetrics(0.0, 0.2, 0.5, 0.5)]
    spelled = {
        "objects": metrics,
        "underscores": [dataclasses.asdict(one) for one in metrics],
        "signs": [
            {"precision@3": m.precision_at_3, "precision@5": m.precision_at_5, "mrr": m.mrr}
            for m in metrics
        ],
    }
    return [{"category": "a", "difficulty": "easy", "metrics": one} for one in spelled[spelling]]


@pytest.mark.parametrize("spelling", ["objects", "underscores", "signs"])
def test_grouping_reads_metrics_in_every_spelling(spelling):
    results = spelled_results(spelling)
    assert ReportAggregator.group_by_category(results, "precision@3") == {"a": 0.5}
    assert ReportAggregator.group_by_category(iter(results), "precision_at_3") == {"a": 0.5}
    assert ReportAggregator.group_by_difficulty(results) == {
        "easy": {"count": 2, "precision@3": 0.5, "precision@5": 0.4, "mrr": 0.75}
    }


def test_grouping_by_a_metric_that_does_not_exist_names_it():
    with refused(field="precision@7"):
        ReportAggregator.group_by_category(spelled_results("objects"), "precision@7")


def test_a_category_in_which_no_query_has_a_value_has_none():
    results = [{"category": "a", "metrics": {"first_relevant_position": None}}]
    assert ReportAggregator.group_by_category(results, "first_relevant_position") == {"a": None}


def test_hits_are_counted_in_the_whole_list_without_a_cutoff():
    assert MetricsCalculator.count_hits(["A", "B", "A"], ["A"]) == 2
    assert MetricsCalculator.count_hits([*"BCDEFGHIJKLM", "A"], ["A"]) == 1
    assert MetricsCalculator.count_hits(["B", "A"], ["A"], 1) == 0


def test_grades_fill_ndcg():
    retrieved, grades = ["x", "B", "A"], {"A": 3, "B": 1, "x": 0}
    got = MetricsCalculator.calculate_all(retrieved, ["A", "B"], grades=grades)
    assert got.ndcg_at_10 == karat.ndcg_at_k(retrieved, grades, 10)
    without = MetricsCalculator.calculate_all(retrieved, ["A", "B"])
    assert without == dataclasses.replace(got, ndcg_at_10=None)


def test_every_expected_id_needs_a_grade():
    with refused(field="grades"):
        MetricsCalculator.calculate_all(["A"], ["A", "B"], grades={"A": 1})


def test_ids_are_text_whatever_type_they_come_in():
    assert MetricsCalculator.recall_at_k([7, "8"], ["7", 8], 2) == 1.0
    assert RetrievalMetrics.hit_rate([7], [RelevanceJudgment("7", 1)], 1) == 1.0
    with refused(field="retrieved"):
        MetricsCalculator.mrr([7.0], ["7"])


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


def test_an_unknown_preset_names_the_known_ones():
    with refused(field="preset") as caught:
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


@pytest.mark.parametrize(
    ("measures", "publication"),
    [
        (["P", "R", "F1", "AP", "Rprec"], "Manning, Raghavan and Schütze 2008"),
        (["RR", "evidence.RR", "span.RR"], "Voorhees 1999"),
        (["DCG", "nDCG"], "Järvelin and Kekäläinen 2002"),
    ],
)
def test_measures_cite_the_publication_that_defines_them(measures, publication):
    cited = {measure["name"]: measure["cites"] for measure in catalogue()}
    for name in measures:
        assert [reference.startswith(publication) for reference in cited[name]] == [True]
        explanation = karat.explain(name)
        assert explanation.as_dict()["cites"] == cited[name]
        assert publication in str(explanation)
    assert publication in MEASURES_PAGE.read_text(encoding="utf-8")
