"""Evaluation, comparison, explanation, plots."""

from dataclasses import replace
from unittest.mock import patch

from karat import Run, compare, evaluate, explain
from karat.evaluation.estimate import estimate
from karat.evaluation.scores import Scores
from karat.live.run_options import RunOptions
from karat.report.page.queries.query_table import load_queries
from messages.cases import Section

SECTION = Section("evaluation")
case = SECTION.case

GOLD = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
OLD = {"q1": ["x", "a"], "q2": ["x", "a"], "q3": ["a"]}
NEW = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
CHUNKS = [{"query_id": "q1", "results": [{"id": "a#0", "doc_id": "a", "start": 0, "end": 5}]}]
BOTH = {"old": OLD, "new": NEW}


# Evaluation


def saved(path: str = "old.json", run=OLD) -> str:
    evaluate(GOLD, run, "RR").write(path)
    return path


def failing(query: str, top_k: int) -> list[str]:
    if query == "one":
        raise OSError("no connection")
    return ["a"]


def asked() -> None:
    gold = [
        {"query_id": "q1", "query": "one", "relevant": ["a"]},
        {"query_id": "q2", "query": "two", "relevant": ["a"]},
    ]
    with patch("karat.live.runner.retry_delay", lambda *_: 0.0):
        evaluate(gold, failing, "RR")


case(
    "a query without an answer has judgments",
    lambda: evaluate([{"query_id": "q1", "relevant": ["a"], "answerable": False}], NEW, "RR"),
)
case(
    "the threshold in the header of a run is not a number",
    lambda: evaluate(
        [{"query_id": "q1", "relevant": ["a"]}, {"query_id": "q2", "answerable": False}],
        replace(Run.of(NEW), settings={"score_threshold": "high"}),
        "RR",
    ),
)
case("a preset is unknown", lambda: evaluate(GOLD, OLD, preset="nothing"))
case("saved scores are given as a run", lambda: evaluate(GOLD, saved()))
case("a retriever failed on some queries", asked)
case("most relevant ids are not in the run", lambda: evaluate(GOLD, {"q1": ["x"]}, "RR"))
case(
    "most relevant ids are not in several runs",
    lambda: compare(GOLD, {"a": {"q1": ["x"]}, "b": {"q1": ["y"]}}, "RR"),
)
case(
    "relevant ids are document ids of the run",
    lambda: evaluate({"q1": ["a"]}, CHUNKS, "RR"),
)
case(
    "relevant ids are document ids of one of two runs",
    lambda: compare({"q1": ["a"]}, {"chunks": CHUNKS, "documents": {"q1": ["a"]}}, "RR"),
)
case("scores have no matches of evidence", lambda: evaluate(GOLD, OLD, "RR").matches)
case(
    "scores of a cluster have no matches of evidence",
    lambda: replace(evaluate(GOLD, OLD, "RR"), make_frame=dict).matches,
)


def matches_of(query: str):
    text = [{"id": "a", "text": "one text"}]
    gold = [{"query_id": "q1", "evidence": ["one text"]}]
    run = [{"query_id": "q1", "results": text}]
    return evaluate(gold, run, "evidence.recall@5").matches_of(query)


case("a query of matches is unknown", lambda: matches_of("q9"))
case("an estimate has no queries", lambda: estimate([], 10, RunOptions()))
case(
    "scores on one page are of different queries",
    lambda: load_queries(
        [evaluate(GOLD, OLD, "RR"), evaluate({"q1": ["a"]}, OLD, "RR")], [None, None]
    ),
)

# Comparison


def comparing(name: str, runs=BOTH, measures="RR", **how) -> None:
    case(name, lambda: compare(GOLD, runs() if callable(runs) else runs, measures, **how))


comparing("one run is compared", [OLD])
comparing("two runs have the same name", {"1": OLD, 1: NEW})
comparing("the baseline is unknown", baseline="nothing")
comparing("the name of the baseline is misspelled", baseline="odl")
comparing(
    "saved scores have other measures",
    lambda: {"old": evaluate(GOLD, OLD, "RR"), "new": NEW},
    "AP",
)
comparing(
    "saved scores have other conventions",
    lambda: {"old": evaluate(GOLD, OLD, "RR", conventions={"missing": "skip"}), "new": NEW},
    None,
)


def both(**how):
    return compare(GOLD, BOTH, "RR", **how)


case("too few queries are asked for", lambda: both().moved(n=0))
case("a query of a comparison is unknown", lambda: both().changes("q9", "RR", "old", "new"))
case("a run of a comparison is unknown", lambda: both().changes("q1", "RR", "odl", "new"))
case("no queries show a difference of 0", lambda: both().queries_needed(0))
case(
    "changes of saved scores are asked for",
    lambda: compare(GOLD, {"old": saved(), "new": NEW}).changes("q1", "RR", "old", "new"),
)


def changed():
    Run.of(OLD).write("old.json")
    with patch("karat.data.run_source.CACHE_BYTES", 0):  # as if it were too large to keep
        comparison = compare(GOLD, {"old": "old.json", "new": NEW}, "RR")
        Run.of(NEW).write("old.json")
        comparison.changes("q1", "RR", "old", "new")


case("a run was changed after it was scored", changed)

# Explanation


def explaining(name: str, measure="RR", **how) -> None:
    case(name, lambda: explain(measure, **how))


explaining("top_k is explained without data", top_k=5)
explaining("a level is explained without data", level="doc")
explaining("data for an explanation is missing", gold=GOLD)
explaining("a run for an explanation is missing", gold=GOLD, query="q1")
explaining("a query to explain is unknown", gold=GOLD, run=OLD, query="q9")

# Plots


def plotting(name: str, kind: str = "values", **how) -> None:
    case(name, lambda: evaluate(GOLD, OLD, "RR").plot(kind, **how))


plotting("a kind of chart is misspelled", "value")
plotting("a kind of chart is unknown", "nothing")
plotting("a chart does not go by groups", by="kind")
plotting("a chart has no measure", "latency", measure="RR")
for kind in ("scatter", "latency", "latency_histogram", "cost", "tradeoff", "groups"):
    plotting(f"there is nothing to draw as {kind}", kind)
plotting("there is nothing to draw as curves", "curves", measure="RR")
case("a chart has no pairs of runs", lambda: both().plot(a="old"))
case("saved scores have no lists to draw", lambda: Scores.read(saved()).plot("curves"))


def without_altair():
    with patch("karat.report.charts.plot.find_spec", return_value=None):
        evaluate(GOLD, OLD, "RR").plot()


case("Altair is not installed", without_altair)


def without_pandas():
    with patch.dict("sys.modules", {"pandas": None}):
        evaluate(GOLD, OLD, "RR").to_pandas()


case("pandas is not installed", without_pandas)
case("a comparison has no run of this name", lambda: both()["new-2"])

# Failed queries and chunks

FAILED = [
    {"query_id": "q1", "results": [], "error": {"type": "Timeout", "message": "slow"}},
    {"query_id": "q2", "results": ["a"]},
    {"query_id": "q3", "results": ["a"]},
]
case("too many queries of a run failed", lambda: evaluate(GOLD, FAILED, "RR"))
case(
    "too many queries of a run that is explained failed",
    lambda: explain("RR", gold=GOLD, run=FAILED, query="q2"),
)


def always_fails(query):
    raise RuntimeError("down")


case(
    "a retriever failed on every query, which is allowed",
    lambda: evaluate(
        [{"query_id": "q1", "query": "?", "relevant": ["a"]}],
        always_fails,
        "RR",
        fail_on_error=1,
    ),
)
case(
    "a run that is explained has no table of chunks",
    lambda: explain(
        "span.recall",
        gold=[{"query_id": "q", "spans": [{"doc_id": "d", "start": 0, "end": 5}]}],
        run={"q": ["a"]},
        query="q",
        chunks={"other": None},
    ),
)


# Reranking

RERANKED = {"q1": {"results": ["a"], "candidates": ["x", "a"]}}


def reranking(gold=GOLD, run=RERANKED, measures="RR@1", by=None):
    return evaluate(gold, Run.of(run, name="reranked"), measures).reranking(by)


def reranking_of_saved():
    evaluate(GOLD, RERANKED, "RR@1").write("reranked.json")
    return Scores.read("reranked.json").reranking()


case("a run has no candidates", lambda: reranking(run=NEW))
case("saved scores have no candidates", reranking_of_saved)
case(
    "scores of Spark have no candidates",
    lambda: replace(evaluate(GOLD, RERANKED, "RR@1"), scored_run=None).reranking(),
)
case("candidates are compared by another measure", lambda: reranking(by="RR@1"))
case(
    "candidates of scores without gold",
    lambda: reranking(
        run=[{"query_id": "q1", "results": ["a"], "candidates": ["a"], "latency_ms": 3}],
        measures="latency.mean",
    ),
)
case(
    "no query has candidates and something to find",
    lambda: reranking(
        run=[
            {"query_id": "q1", "results": ["a"]},
            {"query_id": "q2", "results": ["a"]},
            {"query_id": "other", "results": ["a"], "candidates": ["a"]},
        ]
    ),
)
case(
    "candidates have no texts",
    lambda: reranking(
        [{"query_id": "q1", "evidence": ["pay by card"]}],
        [{"query_id": "q1", "results": [{"text": "pay by card"}], "candidates": ["a"]}],
        "evidence.recall@1",
    ),
)
case("a stage is unknown", lambda: reranking().lost_by("retrieval"))
