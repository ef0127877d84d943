"""Messages of the presets and of the plain functions they use."""

import karat
from karat.presets import benchmark, coverage, graded
from messages.cases import Section

SECTION = Section("presets")
case = SECTION.case

ONE = graded.RelevanceJudgment("a", 1)

case(
    "a chunk is judged twice",
    lambda: graded.RetrievalMetrics.mrr(["a"], [ONE, graded.RelevanceJudgment("a", 0)], 1),
)
case(
    "the retrieved chunk ids are one text",
    lambda: graded.RetrievalMetrics.recall_at_k("abc", [ONE], 3),
)
case(
    "an expected id has no grade",
    lambda: benchmark.MetricsCalculator.calculate_all(["a"], ["a"], grades={"b": 1}),
)
case(
    "a metric is not in the results",
    lambda: benchmark.ReportAggregator.group_by_category(
        [{"category": "c", "metrics": {"mrr": 1.0}}], "precision@3"
    ),
)
case(
    "matching and fuzzy_threshold are both given",
    lambda: coverage.evaluate_coverage(
        {"q": ["a"]}, {"q": ["a"]}, fuzzy_threshold=0.5, matching=karat.Matching()
    ),
)
case("the retrieved ids are not a list", lambda: karat.mrr(7, ["a"]))
case("an offset is not a whole number", lambda: karat.merge_overlapping_spans([(0.5, 3)]))
case(
    "some spans have a document and some do not",
    lambda: karat.merge_overlapping_spans([(0, 3), ("d", 0, 3)]),
)
case(
    "a span does not name its document",
    lambda: karat.merge_overlapping_spans([{"start": 0, "end": 3}]),
)
