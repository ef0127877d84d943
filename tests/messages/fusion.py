"""Fusion of runs and its tuning."""

import karat
from karat import Run
from karat.data.convert import check_run_targets
from karat.evaluation.fusion_tuning import refuse_fixed_parameters
from messages.cases import Section, written

SECTION = Section("fusion")
case = SECTION.case

SCORED = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0}}
TWO = {"bm25": SCORED, "dense": SCORED}
GOLD = {"q1": ["a"], "q2": ["b"]}


def fusion(name: str, runs, method="rrf", **options) -> None:
    case(name, lambda: karat.fuse(runs, method, **options))


def tuning(name: str, gold=GOLD, runs=TWO, measure="RR", **options) -> None:
    case(name, lambda: karat.tune_fusion(gold, runs, measure, **({"folds": 2} | options)))


# Runs

fusion("a single run is fused", [SCORED])
case("a path is given instead of a list of runs", lambda: karat.fuse("bm25.run"))
case(
    "a run is fused with itself",
    lambda: karat.fuse([written("bm25.run", "q1 Q0 a 1 1.0 t\n"), "./bm25.run"]),
)
fusion("a run has items without ids", [SCORED, Run.of([{"query_id": "q1", "results": [
    {"doc_id": "d", "start": 0, "end": 5}]}, {"query_id": "q2", "results": []}])])  # fmt: skip
fusion("a run has no scores", {"bm25": SCORED, "dense": {"q1": ["a"], "q2": ["b"]}}, "combsum")
fusion(
    "an item has no score",
    {"bm25": SCORED, "dense": Run.of([{"query_id": "q1", "results": [{"id": "a", "score": 1}, "b"]},
                                      {"query_id": "q2", "results": []}])},
    "combmnz",
)  # fmt: skip
fusion(
    "a score is infinite",
    {"bm25": SCORED, "dense": {"q1": {"a": float("inf")}, "q2": {}}},
    "weighted",
    weights=[1, 1],
    normalization="none",
)
fusion(
    "the highest score is negative",
    {"bm25": SCORED, "dense": {"q1": {"a": -1.0, "b": -2.0}, "q2": {}}},
    "combsum",
    normalization="max",
)
HUGE = {"q1": {"a": 1e308}}
fusion("the sum of the scores is infinite", [HUGE, HUGE], "combsum", normalization="none")
SPANS = Run.of(
    [{"query_id": "q1", "results": [{"id": "a", "doc_id": "d", "start": 0, "end": 5}]}], name="x"
)
fusion("two runs count offsets differently", [SPANS, SPANS.counted_in("utf8").renamed("y")])
fusion("a run has an item twice", {"one": {"q1": ["a", "a"]}, "two": {"q1": ["a"]}})
fusion("a run has several items twice", {"one": {"q1": ["a", "a", "a"]}, "two": {"q1": ["a"]}})
fusion("two runs have no item in common", {"one": {"q1": ["a", "b"]}, "two": {"q1": ["A"]}})
THREE = {"one": {"q1": ["a"]}, "two": {"q1": ["a"]}, "three": {"q1": ["A"]}}
fusion("one run has no item in common with two others", THREE)
fusion(
    "two of four runs have no item in common with others",
    THREE | {"two": {"q1": ["x"]}, "four": {"q1": ["a"]}},
)
fusion("two runs have no query in common", {"one": {"q1": ["a"]}, "two": {"q2": ["b"]}})
fusion("a run lacks a query", {"one": {"q1": ["a"], "q2": ["a"]}, "two": {"q2": ["a"]}})
FAILED = Run.of([{"query_id": "q1", "results": [], "error": {"type": "Timeout"}}])
fusion("a query of a run failed", {"one": FAILED, "two": {"q1": ["a"]}})

# Settings

fusion("a method is unknown", TWO, "rff")
fusion("a normalization is unknown", TWO, "combsum", normalization="minmax")
fusion("a normalization is unknown for ranks", TWO, "rrf", normalization="minmax")
fusion("ranks are normalized", TWO, "rrf", normalization="min-max")
fusion("weights are missing", TWO, "weighted")
fusion("weights are not used", TWO, "combsum", weights=[1, 1])
fusion("there are too few weights", TWO, "weighted", weights=[1])
fusion("a weight is negative", TWO, "weighted", weights=[1, -0.5])
fusion("all weights are 0", TWO, "weighted", weights=[0, 0])
fusion("a weight is not a number", TWO, "weighted", weights=[1, "half"])
fusion("a parameter is not used", TWO, "borda", k=10)
fusion("a parameter is out of range", TWO, "rbc", phi=1)
fusion("a parameter of a fusion is not a number", TWO, k="sixty")
fusion("the depth of a fusion is 0", TWO, depth=0)

# Tuning

tuning("a fusion is tuned with one fold", folds=1)
tuning("the seed of the folds is negative", seed=-1)
tuning("there are fewer queries than folds", folds=3)
tuning("a fusion is tuned for two measures", measure="RR AP")
tuning("a fusion is tuned for latency", measure="latency.mean")
tuning("a method has no parameters to tune", method="combsum")
tuning("a method to tune is unknown", method="rff")
tuning("weights of five runs are tuned", runs=[SCORED] * 5, method="weighted")
tuning("gold and the fused run have no query in common", gold={"q9": ["a"]})
case("a parameter is set and tuned", lambda: refuse_fixed_parameters({"k": 10}, None))
case(
    "a fused run would replace one of its runs",
    lambda: check_run_targets(["bm25.run"], None, [written("bm25.run", "q1 Q0 a 1 1.0 t\n")]),
)
