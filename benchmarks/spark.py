"""Apache Spark: karat with Spark, karat without it, and RankingMetrics on the same Parquet files.

Each function is called in a process of its own. It prepares one way to compute the measures, with
two cores, and returns the function that is timed: reading, grouping and scoring.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

CORES = 2
MEASURES = ("nDCG@10", "AP", "P@10", "R@100")

Values = dict[str, float]


def karat_local(gold: str, run: str) -> Callable[[], Values]:
    _use_two_cores()
    from karat import evaluate

    return lambda: _means(evaluate(gold, run, MEASURES))


def karat_spark(gold: str, run: str) -> Callable[[], Values]:
    _use_two_cores()
    from karat import evaluate

    _start_session()
    return lambda: _means(evaluate(gold, run, MEASURES, engine="spark"))


def ranking_metrics(gold: str, run: str) -> Callable[[], Values]:
    """RankingMetrics of Spark, which needs a pair of lists per query in an RDD of Python."""
    _use_two_cores()
    from pyspark.mllib.evaluation import RankingMetrics
    from pyspark.sql import functions as f

    session = _start_session()

    def timed() -> Values:
        by_score = f.sort_array(f.collect_list(f.struct("score", "item_id")), asc=False)
        retrieved = (
            session.read.parquet(run)
            .groupBy("query_id")
            .agg(by_score.getField("item_id").alias("retrieved"))
        )
        relevant = (
            session.read.parquet(gold)
            .where("grade > 0")
            .groupBy("query_id")
            .agg(f.collect_list("item_id").alias("relevant"))
        )
        # A query without results counts, as in karat.
        nothing = f.array().cast("array<string>")
        pairs = relevant.join(retrieved, "query_id", "left").select(
            f.coalesce("retrieved", nothing).alias("retrieved"), "relevant"
        )
        # Each measure is a job of its own; without the cache, each would read and group again.
        cached = pairs.rdd.cache()
        metrics = RankingMetrics(cached)
        values = {
            "nDCG@10": metrics.ndcgAt(10),
            "AP": metrics.meanAveragePrecision,
            "P@10": metrics.precisionAt(10),
            "R@100": metrics.recallAt(100),
        }
        cached.unpersist()
        return values

    return timed


FUNCTIONS = (karat_local, karat_spark, ranking_metrics)


def _use_two_cores() -> None:
    """Restrict this process and those that it starts; Polars and the JVM respect this."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def _start_session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", str(2 * CORES))
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )


def _means(scores: Any) -> Values:
    return dict(scores.summary(intervals=False).select("measure", "value").iter_rows())
