"""The tools, each asked for the same measures in the way its own documentation shows.

Run as a module it does one task in a process of its own and prints what came out as JSON.
Imports inside the functions, so that no tool's memory holds another.
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

from benchmarks import live, retrieval, significance, spans, texts

MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")
FIFTY = tuple(
    f"{name}@{cutoff}"
    for name in ("nDCG", "AP", "RR", "P", "R", "F1", "Success", "RBP", "ERR", "Judged")
    for cutoff in (1, 5, 10, 20, 100)
)

# How others spell the same five, in the same order.
TREC_EVAL = ("ndcg_cut_10", "map", "recip_rank", "P_10", "recall_100")
RANX = ("ndcg@10", "map", "mrr", "precision@10", "recall@100")


@dataclass(frozen=True)
class Task:
    """What is timed, and how to get the mean of each measure from its result afterwards."""

    timed: Callable[[], Any]
    values: Callable[[Any], dict[str, float]]


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
    """Ask pytrec_eval, or what has its interface."""
    wanted = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100"}

    def values(result: dict[str, dict[str, float]]) -> dict[str, float]:
        return {
            ours: fmean(query[theirs] for query in result.values())
            for ours, theirs in zip(MEASURES, TREC_EVAL, strict=True)
        }

    return Task(lambda: package.RelevanceEvaluator(gold, wanted).evaluate(run), values)


def karat_spans() -> Task:
    from karat import Gold, evaluate

    gold, run = spans.tables()
    ready = Gold.of(spans=gold)
    return Task(lambda: evaluate(ready, run, spans.MEASURES).summary(intervals=False), _karat_means)


def merge_loop_spans() -> Task:
    gold, run = map(spans.lists, spans.tables())
    return Task(lambda: spans.merge_loop(gold, run), dict)


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
    """The p of every pair and its 95% interval, which the peers do not compute."""
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
        found = []
        for flips in sign_flips(pairs, significance.DRAWS):
            assert flips is not None
            flips.interval(0.95)
            found.append(flips.p)
        return found

    return Task(p_and_intervals, significance.named)


def scipy_randomization() -> Task:
    import numpy as np
    from scipy.stats import permutation_test

    differences = significance.differences()

    def timed() -> Any:
        # All pairs in one call, which share their draws as they do in karat.
        return permutation_test(
            (differences,),
            np.mean,
            permutation_type="samples",
            n_resamples=significance.DRAWS,
            batch=100,
            vectorized=True,
            rng=1,
        ).pvalue

    return Task(timed, significance.named)


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

    return Task(timed, significance.named)


def karat_tasks() -> Task:
    import karat.live.retrieve  # noqa: F401

    return Task(lambda: live.karat(live.wait_in_task), _answered)


def karat_threads() -> Task:
    import karat.live.retrieve  # noqa: F401

    return Task(lambda: live.karat(live.wait_in_thread), _answered)


def bare_tasks() -> Task:
    return Task(live.bare_tasks, _answered)


def bare_threads() -> Task:
    return Task(live.bare_threads, _answered)


def _answered(count: int) -> dict[str, float]:
    return {"answered": count}


def karat_import() -> Task:
    def timed() -> None:
        import karat  # noqa: F401

    return Task(timed, lambda _: {})


def _karat_means(summary: Any) -> dict[str, float]:
    return dict(summary.select("measure", "value").iter_rows())


def _dicts(gold: str, run: str) -> tuple[dict[str, dict[str, Any]], ...]:
    """Read TREC files into dicts: before the clock starts, so plain is good enough."""
    judgments: dict[str, dict[str, int]] = {}
    results: dict[str, dict[str, float]] = {}
    with open(gold) as lines:
        for query, _, item, grade in map(str.split, lines):
            judgments.setdefault(query, {})[item] = int(grade)
    with open(run) as lines:
        for query, _, item, _, score, _ in map(str.split, lines):
            results.setdefault(query, {})[item] = float(score)
    return judgments, results


TOOLS: dict[str, Callable[..., Task]] = {
    tool.__name__: tool
    for tool in (
        karat_files,
        karat_files_intervals,
        karat_files_fifty,
        ir_measures_files,
        ranx_files,
        karat_dicts,
        pytrec_eval_dicts,
        karat_pytrec_eval_dicts,
        karat_spans,
        merge_loop_spans,
        karat_texts,
        karat_texts_large,
        difflib_texts,
        karat_randomization,
        scipy_randomization,
        ranx_randomization,
        karat_tasks,
        karat_threads,
        bare_tasks,
        bare_threads,
        karat_import,
    )
}


def _bm25_task(function: Callable[..., Callable[[], Any]], size: retrieval.Size) -> Task:
    return Task(function(*retrieval.corpus(size)), lambda _: {})


TOOLS |= {
    f"{function.__name__}_{size.label}": partial(_bm25_task, function, size)
    for function in retrieval.FUNCTIONS
    for size in retrieval.SIZES
}


def main(name: str, *paths: str) -> None:
    """Do one task; its imports are timed apart."""
    given = _dicts(*paths) if name.endswith("_dicts") else paths
    start = perf_counter()
    task = TOOLS[name](*given)
    ready = perf_counter()
    result = task.timed()
    done = perf_counter()
    outcome = {"imports": ready - start, "seconds": done - ready, "values": task.values(result)}
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
