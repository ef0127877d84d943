"""The engine for Apache Spark: the same scores, notes and errors as in this process."""

import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest

import karat
from karat.engines.spark_session import session as spark_session
from support.errors import refused


def java_version():
    if shutil.which("java") is None:
        return 0
    text = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    return int(text.split('"')[1].split(".")[0])


pytestmark = [
    pytest.mark.skipif(java_version() < 17, reason="Spark 4 needs Java 17 or newer"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
]
TEXTS = ["the refund is paid within 14 days", "pay by card", "call us"]


@pytest.fixture(scope="module")
def spark():
    # Four attempts per task, as on a cluster; the default of a local session is one.
    session = spark_session("local[2,4]")
    session.conf.set("spark.sql.shuffle.partitions", "3")
    yield session
    session.stop()


def data(seed, n=120):
    """Return gold of all three kinds and a run; a few queries have most of the results."""
    chance = random.Random(seed)
    gold = [
        {"query_id": f"q{at}", "relevant": {f"d{chance.randrange(9)}": chance.randrange(3)}}
        | {"spans": [{"doc_id": f"d{chance.randrange(9)}", "start": 5, "end": 40}]}
        | {"evidence": [chance.choice(TEXTS)], "user_id": f"u{at % 25}"}
        for at in range(n)
    ]
    rows = []
    for at in range(5, n + 4):  # some queries are missing, and some are unknown
        length = 400 if at % 40 == 7 else chance.randrange(1, 9)
        for item in chance.sample(range(max(9, length)), length):
            start = chance.randrange(30)
            rows.append(
                {"query_id": f"q{at}", "item_id": f"d{item}", "score": chance.randrange(20) / 8}
                | {"doc_id": f"d{item}", "start": start, "end": start + 20}
                | {"text": chance.choice(TEXTS)}
            )
    chance.shuffle(rows)
    return gold, pl.DataFrame(rows)


MEASURES = ["nDCG@10", "AP", "R@5", "span.recall@5", "span.iou@100c", "evidence.recall@3"]


def described(scores):
    table = scores.table
    return (
        [table.frame.to_dicts(), table.counts, table.weights.to_dicts(), table.holes.to_dicts()],
        [scores.name, scores.notes, scores.delivered, scores.summary().to_dicts(), str(scores)],
    )


def caught(call, *args, **options):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always", karat.errors.KaratWarning)
        scores = call(*args, **options)
    own = [one for one in shown if issubclass(one.category, karat.errors.KaratWarning)]
    return scores, sorted(str(one.message) for one in own)


@pytest.mark.parametrize(("partitions", "tasks"), [(1, 1), (7, 3), (3, 16)])
def test_scores_are_those_of_this_process_for_any_number_of_partitions(spark, partitions, tasks):
    gold, run = data(partitions)
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    frame = spark.createDataFrame(run.rows(), run.columns).repartition(partitions)
    options = {"cluster": "user_id", "top_k": 50}
    local, warned = caught(karat.evaluate, gold, run, MEASURES, **options)
    scores, shown = caught(karat.evaluate, gold, frame, MEASURES, engine="spark", **options)
    assert described(scores) == described(local)
    assert shown == warned
    assert scores.by("user_id").equals(local.by("user_id"))


def test_parquet_tables_comparisons_and_gates(spark, tmp_path):
    gold, run = data(4)
    other = run.with_columns(score=pl.col("start") / 7)
    run.write_parquet(tmp_path / "old.parquet")
    paths = [str(tmp_path / "old.parquet"), "table:new"]
    spark.createDataFrame(other.rows(), other.columns).createOrReplaceTempView("new")
    local = karat.compare(gold, {"old": run, "new": other}, ["nDCG@10", "RR"])
    remote = karat.compare(gold, paths, ["nDCG@10", "RR"], engine="spark")
    assert remote.pairs.equals(local.pairs)
    verdict = karat.gate(gold, paths[1], "RR max_drop 0.01", baseline=paths[0], engine="spark")
    expected = karat.gate(gold, other, "RR max_drop 0.01", baseline=run)
    assert [check.as_dict() for check in verdict.checks] == [
        check.as_dict() for check in expected.checks
    ]
    assert "that were scored by Spark" in " ".join(str(remote).split())
    with refused(path="table:absent"):
        karat.evaluate(gold, "table:absent", "RR", engine="spark")


def test_the_example_of_the_documentation_runs(spark):
    page = Path(__file__).parents[2] / "docs" / "spark.md"
    block = page.read_text().partition("\n\n    import karat\n")[2].partition("\n\nOn the")[0]
    exec(dedent("    import karat\n" + block), {})


def test_gold_may_be_a_table_and_other_runs_are_scored_here(spark):
    judgments = [("q1", "a", 1), ("q2", "b", 2)]
    gold = spark.createDataFrame(judgments, ["query_id", "item_id", "grade"])
    scores = karat.evaluate(gold, {"q1": ["a"], "q2": ["x", "b"]}, "RR", engine="spark")
    assert scores["RR"] == 0.75


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ("query_id, item_id", "rank"),
        ("item_id, score", "query_id"),
        ("query_id, score", "item_id"),
        ("cast(1.5 as double) as query_id, item_id, score", "query_id"),
        ("query_id, item_id, array(score) as score", "score"),
    ],
)
def test_wrong_columns_are_refused_before_a_job(spark, columns, field):
    rows = spark.sql("select 'q1' as query_id, 'a' as item_id, 1.0 as score, raise_error('x') as y")
    with refused(field=field):
        karat.evaluate({"q1": ["a"]}, rows.selectExpr(*_split(columns)), "RR", engine="spark")


def _split(columns):
    return [part.strip() for part in columns.split(", ")]


@pytest.mark.parametrize(
    ("row", "field"),
    [((None, "b", 1.0), "query_id"), (("q1", None, 1.0), "item_id"), (("q1", "b", None), "score")],
)
def test_a_wrong_row_has_the_message_of_this_process(spark, row, field):
    rows = [("q1", "a", 2.0), row]
    columns = "query_id string, item_id string, score double"
    names = ["query_id", "item_id", "score"]
    with refused(field=field) as local:
        karat.evaluate({"q1": ["a"]}, pl.DataFrame(rows, schema=names, orient="row"), "RR")
    with refused(field=field) as remote:
        frame = spark.createDataFrame(rows, columns)
        karat.evaluate({"q1": ["a"]}, frame, "RR", engine="spark")
    assert remote.value.problem.partition(": ")[2] == local.value.problem.partition(": ")[2]
    assert remote.value.hint == local.value.hint


def test_the_command_line_scores_with_spark(spark, command, tmp_path):
    gold, run = data(6)
    karat.Gold.of(gold).write(tmp_path / "gold.jsonl")
    run.write_parquet(tmp_path / "run.parquet")
    words = ("eval", str(tmp_path / "gold.jsonl"), str(tmp_path / "run.parquet"), "-m", "RR,AP")
    code, out, _ = command(*words, "--engine", "spark", "--master", "local[2]", "--json")
    assert (code, out) == (0, command(*words, "--json")[1])


def test_a_cluster_that_loses_an_executor_has_the_same_scores(tmp_path):
    """Run real executors as processes of their own, and kill one in the middle of the job."""
    script = Path(__file__).parent / "spark_cluster.py"
    words = [sys.executable, str(script), str(tmp_path)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "equal after the loss of an executor"
