"""The tools: each computes the same measures, in the way that its own documentation shows.

Run as a module it does one task in a process of its own and prints the result as JSON. Imports are
inside the functions, so that the memory of one tool does not include another.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import Any

from benchmarks import live, retrieval, significance, spans, spark, texts

MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")
FIFTY = tuple(
    f"{name}@{cutoff}"
    for name in ("nDCG", "AP", "RR", "P", "R", "F1", "Success", "RBP", "ERR", "Judged")
    for cutoff in (1, 5, 10, 20, 100)
)

# The same five measures, in the same order, as other tools spell them.
TREC_EVAL = ("ndcg_cut_10", "map", "recip_rank", "P_10", "recall_100")
RANX = ("ndcg@10", "map", "mrr", "precision@10", "recall@100")


@dataclass(frozen=True)
class Task:
    """What is timed, and how to get the value of each measure from its result afterwards."""

    timed: Callable[[], Any]
    values: Callable[[Any], dict[str, float]]
    is_repeated: bool = False
    """Whether a second call in the same process is timed, too."""


def karat_files(gold: str, run: str, measures: tuple[str, ...] = MEASURES) -> Task:
    from karat import evaluate

    return Task(lambda: evaluate(gold, run, measures).summary(intervals=False), _karat_means)


def karat_files_intervals(gold: str, run: str) -> Task:
    from karat import evaluate

    return Task(lambda: evaluate(gold, run, MEASURES).summary(), _karat_means)


def karat_files_fifty(gold: str, run: str) -> Task:
    return karat_files(gold, run, FIFTY)


def ir_measures_files(gold: str, run: str) -> Task:
    import ir_measures

    measures = [ir_measures.parse_measure(name) for name in MEASURES]

    def timed() -> dict[Any, float]:
        return ir_measures.calc_aggregate(
            measures, ir_measures.read_trec_qrels(gold), ir_measures.read_trec_run(run)
        )

    return Task(timed, lambda result: {str(name): value for name, value in result.items()})


def ranx_files(gold: str, run: str) -> Task:
    import ranx

    def timed() -> dict[str, float]:
        return ranx.evaluate(
            ranx.Qrels.from_file(gold, kind="trec"),
            ranx.Run.from_file(run, kind="trec"),
            list(RANX),
        )

    return Task(timed, lambda result: dict(zip(MEASURES, map(result.get, RANX), strict=True)))


def karat_dicts(gold: Any, run: Any) -> Task:
    from karat import evaluate

    return Task(
        lambda: evaluate(gold, run, MEASURES),
        lambda scores: _karat_means(scores.summary(intervals=False)),
    )


def pytrec_eval_dicts(gold: Any, run: Any) -> Task:
    import pytrec_eval

    return _pytrec_eval(pytrec_eval, gold, run)


def karat_pytrec_eval_dicts(gold: Any, run: Any) -> Task:
    from karat.compat import pytrec_eval

    return _pytrec_eval(pytrec_eval, gold, run)


def _pytrec_eval(package: Any, gold: Any, run: Any) -> Task:
    """Evaluate with pytrec_eval, or with a package that has its interface."""
    measures = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100"}

    def values(result: dict[str, dict[str, float]]) -> dict[str, float]:
        return {
            measure: fmean(query[name] for query in result.values())
            for measure, name in zip(MEASURES, TREC_EVAL, strict=True)
        }

    return Task(lambda: package.RelevanceEvaluator(gold, measures).evaluate(run), values)


def karat_spans() -> Task:
    from karat import Gold, evaluate

    gold_spans, run = spans.tables()
    gold = Gold.of(spans=gold_spans)
    return Task(lambda: evaluate(gold, run, spans.MEASURES).summary(intervals=False), _karat_means)


def plain_loop_spans() -> Task:
    gold, run = map(spans.lists, spans.tables())
    return Task(lambda: spans.plain_loop(gold, run), dict)


def karat_texts(size: texts.Size = texts.SMALL) -> Task:
    from karat.match.text import TextLists, cover

    evidence, chunks = texts.columns(size)

    def values(covering: Any) -> dict[str, float]:
        covered = set(zip(covering.evidence.tolist(), covering.chunk.tolist(), strict=True))
        return {"covered in the sample": len(covered.intersection(texts.sample(size)))}

    return Task(lambda: cover(TextLists(*evidence), TextLists(*chunks)), values)


def karat_texts_large() -> Task:
    return karat_texts(texts.LARGE)


def difflib_texts() -> Task:
    (_, evidence), (_, chunks) = texts.columns(texts.SMALL)
    return Task(lambda: texts.difflib_sample(evidence, chunks, texts.SMALL), dict)


def karat_randomization() -> Task:
    """The p-value of each pair and its 95% interval, which the other tools do not compute."""
    import polars as pl

    from karat.measures import ScoreTable, parse
    from karat.stats.paired_tests import sign_flips
    from karat.stats.pairs import pair

    table, measure = significance.values(), parse("nDCG@10")
    ids = [f"q{number:04}" for number in range(len(table))]
    runs = [
        ScoreTable((measure,), pl.DataFrame({"query_id": ids, measure.name: column}), {})
        for column in table.T
    ]
    pairs = [
        pair(runs[a], runs[b], measure, (f"run {a}", f"run {b}")) for a, b in significance.PAIRS
    ]

    def p_and_intervals() -> list[float]:
        p_values = []
        for flips in sign_flips(pairs, significance.DRAWS):
            assert flips is not None
            flips.interval(0.95)
            p_values.append(flips.p)
        return p_values

    return Task(p_and_intervals, significance.p_by_pair)


def scipy_randomization() -> Task:
    import numpy as np
    from scipy.stats import permutation_test

    differences = significance.differences()

    def timed() -> Any:
        # In one call, all pairs share their draws, as they do in karat.
        return permutation_test(
            (differences,),
            np.mean,
            permutation_type="samples",
            n_resamples=significance.DRAWS,
            batch=100,
            vectorized=True,
            rng=1,
        ).pvalue

    return Task(timed, significance.p_by_pair)


def ranx_randomization() -> Task:
    from ranx.statistical_tests import fisher_randomization_test

    table = significance.values()
    fisher_randomization_test(table[:, 0], table[:, 1], n_permutations=10)  # compiles

    def timed() -> list[float]:
        return [
            fisher_randomization_test(table[:, a], table[:, b], n_permutations=significance.DRAWS)[
                0
            ]
            for a, b in significance.PAIRS
        ]

    return Task(timed, significance.p_by_pair)


def karat_tasks() -> Task:
    import karat.live.retrieve  # noqa: F401

    return Task(lambda: live.karat(live.wait_in_task), _number_answered)


def karat_threads() -> Task:
    import karat.live.retrieve  # noqa: F401

    return Task(lambda: live.karat(live.wait_in_thread), _number_answered)


def plain_tasks() -> Task:
    return Task(live.plain_tasks, _number_answered)


def plain_threads() -> Task:
    return Task(live.plain_threads, _number_answered)


def _number_answered(count: int) -> dict[str, float]:
    return {"answered": count}


def karat_import() -> Task:
    def timed() -> None:
        import karat  # noqa: F401

    return Task(timed, lambda _: {})


def _karat_means(summary: Any) -> dict[str, float]:
    return dict(summary.select("measure", "value").iter_rows())


def _dicts(gold: str, run: str) -> tuple[dict[str, dict[str, Any]], ...]:
    """Read TREC files into dicts; this is not timed."""
    judgments: dict[str, dict[str, int]] = {}
    results: dict[str, dict[str, float]] = {}
    with open(gold) as lines:
        for query, _, item, grade in map(str.split, lines):
            judgments.setdefault(query, {})[item] = int(grade)
    with open(run) as lines:
        for query, _, item, _, score, _ in map(str.split, lines):
            results.setdefault(query, {})[item] = float(score)
    return judgments, results


TASKS: dict[str, Callable[..., Task]] = {
    function.__name__: function
    for function in (
        karat_files,
        karat_files_intervals,
        karat_files_fifty,
        ir_measures_files,
        ranx_files,
        karat_dicts,
        pytrec_eval_dicts,
        karat_pytrec_eval_dicts,
        karat_spans,
        plain_loop_spans,
        karat_texts,
        karat_texts_large,
        difflib_texts,
        karat_randomization,
        scipy_randomization,
        ranx_randomization,
        karat_tasks,
        karat_threads,
        plain_tasks,
        plain_threads,
        karat_import,
    )
}


def _retrieval_task(
    function: Callable[..., Callable[[], Any]], collection: retrieval.Collection
) -> Task:
    return Task(function(*retrieval.load(collection)), lambda _: {})


TASKS |= {
    f"{function.__name__}_{collection.label}": partial(_retrieval_task, function, collection)
    for function in retrieval.FUNCTIONS
    for collection in retrieval.COLLECTIONS
}


def _spark_task(function: Callable[..., Callable[[], Any]], gold: str, run: str) -> Task:
    return Task(function(gold, run), dict, is_repeated=True)


TASKS |= {function.__name__: partial(_spark_task, function) for function in spark.FUNCTIONS}


def main(name: str, *paths: str) -> None:
    """Do one task; its setup, such as imports, is timed separately."""
    inputs = _dicts(*paths) if name.endswith("_dicts") else paths
    start = perf_counter()
    task = TASKS[name](*inputs)
    ready = perf_counter()
    result = task.timed()
    end = perf_counter()
    outcome = {"setup": ready - start, "seconds": end - ready, "values": task.values(result)}
    if task.is_repeated:
        start = perf_counter()
        task.timed()
        outcome["second_call"] = perf_counter() - start
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
