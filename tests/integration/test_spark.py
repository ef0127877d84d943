"""The engine for Apache Spark: the same scores, notes and errors as in this process."""

import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.data.columns import Columns
from karat.data.data_file import PathSource
from karat.engines import spark as engine
from karat.engines.spark_session import session as spark_session
from karat.match.gold_index import PreparedGold
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
SETTING = "spark.sql.shuffle.partitions"


@pytest.fixture(scope="module")
def spark():
    # Four attempts per task, as on a cluster; the default of a local session is one.
    session = spark_session("local[2,4]")
    session.conf.set(SETTING, "3")
    session.conf.set("spark.sql.files.openCostInBytes", "128MB")  # one partition per file
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
        [scores.notes, scores.delivered, scores.summary().to_dicts()],
    )


def caught(call, *args, **options):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always", karat.errors.KaratWarning)
        scores = call(*args, **options)
    own = [one for one in shown if issubclass(one.category, karat.errors.KaratWarning)]
    return scores, sorted(str(one.message) for one in own)


def written_in_parts(run, folder, n_parts):
    """Write a table as a folder of Parquet files, which are cut anywhere."""
    folder.mkdir()
    size = -(-run.height // n_parts)
    for part in range(n_parts):
        run[part * size : (part + 1) * size].write_parquet(folder / f"part-{part:05}.parquet")
    return str(folder)


@pytest.fixture
def ways(monkeypatch):
    """The ways in which runs were scored."""
    used = []
    for name in ("_in_place", "_shuffled", "_by_bucket"):
        method = getattr(engine.SparkRun, name)

        def noted(*args, name=name, method=method, **options):
            used.append(name)
            return method(*args, **options)

        monkeypatch.setattr(engine.SparkRun, name, noted)
    return used


@pytest.mark.parametrize(("partitions", "tasks"), [(1, 1), (7, 3), (3, 16)])
def test_scores_are_those_of_this_process_for_any_number_of_partitions(
    spark, ways, partitions, tasks
):
    gold, run = data(partitions)
    spark.conf.set(SETTING, str(tasks))
    frame = spark.createDataFrame(run.rows(), run.columns).repartition(partitions)
    options = {"cluster": "user_id", "top_k": 50}
    local, warned = caught(karat.evaluate, gold, run, MEASURES, **options)
    scores, shown = caught(karat.evaluate, gold, frame, MEASURES, engine="spark", **options)
    assert described(scores) == described(local)
    assert shown == warned
    assert set(ways) == {"_shuffled"}
    assert scores.by("user_id").equals(local.by("user_id"))


def test_sorted_parts_are_not_shuffled(spark, ways, tmp_path):
    gold, run = data(5)
    run = run.sort("query_id")
    folder = written_in_parts(run, tmp_path / "run", 6)
    local, warned = caught(karat.evaluate, gold, run, MEASURES)
    scores, shown = caught(karat.evaluate, gold, folder, MEASURES, engine="spark")
    assert described(scores) == described(local)
    assert shown == warned
    assert set(ways) == {"_in_place"}
    assert scores.name == "run"


def test_a_query_in_the_middle_of_two_parts_makes_a_shuffle(spark, ways, tmp_path):
    gold, run = data(6)
    folder = tmp_path / "run"
    folder.mkdir()
    half = run.height // 2
    for name, part in (("a", run[:half]), ("b", run[half:])):
        part.sort("query_id").write_parquet(folder / f"{name}.parquet")
    scores = karat.evaluate(gold, str(folder), "AP", engine="spark")
    assert scores.per_query.equals(karat.evaluate(gold, run, "AP").per_query)
    assert ways[:2] == ["_in_place", "_shuffled"]


def test_a_long_list_over_several_parts_is_shuffled_alone(spark, ways, tmp_path):
    lengths = [50_000 if at == 4 else 3 for at in range(9)]
    rows = [(f"q{at:02}", f"document {item}") for at in range(9) for item in range(lengths[at])]
    run = pl.DataFrame(rows, ["query_id", "item_id"], orient="row")
    run = run.with_columns(score=pl.int_range(pl.len()) * 7919 % 1_000_003 / 8)
    gold = {f"q{at:02}": {f"document {at % 3}": 1, "document 49000": 2} for at in range(9)}
    folder = written_in_parts(run, tmp_path / "run", 3)
    scores = karat.evaluate(gold, folder, ["AP", "RR"], engine="spark")
    assert scores.per_query.equals(karat.evaluate(gold, run, ["AP", "RR"]).per_query)
    assert ways[:2] == ["_in_place", "_shuffled"]


def test_large_gold_is_sent_in_buckets(spark, ways, monkeypatch):
    monkeypatch.setattr(engine, "LARGEST_BROADCAST", 0)
    gold, run = data(7)
    frame = spark.createDataFrame(run.rows(), run.columns).repartition(4)
    local, warned = caught(karat.evaluate, gold, run, MEASURES)
    scores, shown = caught(karat.evaluate, gold, frame, MEASURES, engine="spark")
    assert described(scores) == described(local)
    assert shown == warned
    assert set(ways) == {"_by_bucket"}


PART = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 30), st.integers(0, 6)), min_size=1, max_size=40
)


def check_partitioning(spark, parts, long_list):
    """Score parts of a table with Spark and here; a long list makes one part much larger."""
    rows = [
        (f"q{query}", f"d{item}", float(score)) for part in parts for query, item, score in part
    ]
    rows += [("q3", f"long{item}", item % 11 / 4) for item in range(long_list)]
    run = pl.DataFrame(rows, ["query_id", "item_id", "score"], orient="row")
    run = run.unique(["query_id", "item_id"], keep="first", maintain_order=True)
    gold = {f"q{query}": {f"d{query}": 1, "long7": 2} for query in range(10)}
    if not set(run["query_id"]) & set(gold):
        return
    frame = spark.createDataFrame(run.to_arrow(compat_level=pl.CompatLevel.oldest()))
    frame = frame.repartition(len(parts)) if long_list else frame.coalesce(len(parts))
    local, warned = caught(karat.evaluate, gold, run, ["AP", "nDCG@5"])
    scores, shown = caught(karat.evaluate, gold, frame, ["AP", "nDCG@5"], engine="spark")
    assert described(scores) == described(local)
    assert shown == warned


def test_random_partitions_have_the_same_scores(spark):
    @settings(max_examples=4, deadline=None)
    @given(st.lists(PART, min_size=1, max_size=4))
    def check(parts):
        check_partitioning(spark, parts, 0)

    check()


@pytest.mark.slow
def test_random_and_skewed_partitions_have_the_same_scores(spark):
    @settings(max_examples=40, deadline=None)
    @given(st.lists(PART, min_size=1, max_size=9), st.sampled_from([0, 1000, 50_000]))
    def check(parts, long_list):
        check_partitioning(spark, parts, long_list)

    check()


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


def test_examples_of_the_documentation_run_in_a_process_of_their_own(tmp_path):
    """As for a reader: PYSPARK_PYTHON is not set, and python3 of PATH does not have karat."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "spark_page.py")],
        capture_output=True,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"},
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-2:] == ["the page is up to date", "workers cannot import"]


@pytest.mark.parametrize("kind", ["frame", "table"])
def test_gold_may_be_a_table_and_other_runs_are_scored_here(spark, kind):
    judgments = [("q1", "a", 1), ("q2", "b", 2)]
    gold = spark.createDataFrame(judgments, ["query_id", "item_id", "grade"])
    gold.createOrReplaceTempView("judgments")
    gold = gold if kind == "frame" else "table:judgments"
    scores = karat.evaluate(gold, {"q1": ["a"], "q2": ["x", "b"]}, "RR", engine="spark")
    assert scores["RR"] == 0.75


def test_columns_may_have_other_names(spark, tmp_path):
    frame = pl.DataFrame({"query_id": ["q1"] * 2, "passage": ["x", "a"], "similarity": [2.0, 1.0]})
    frame.write_parquet(tmp_path / "run.parquet")
    names = Columns({"item_id": "passage", "score": "similarity"})
    source = PathSource(str(tmp_path / "run.parquet"), columns=names)
    assert karat.evaluate({"q1": ["a"]}, source, "RR", engine="spark")["RR"] == 0.5
    with refused(field="column item_id=document"):
        source = PathSource(source.path, columns=Columns({"item_id": "document"}))
        karat.evaluate({"q1": ["a"]}, source, "RR", engine="spark")


@pytest.mark.parametrize(
    ("kind", "lists"),
    [("string", ["x", "a"]), ("struct<item_id:string,score:double>", [("x", 2.0), ("a", 1.0)])],
)
def test_a_table_may_have_one_row_per_query(spark, kind, lists):
    rows = [("q1", lists), ("q2", [])]
    frame = spark.createDataFrame(rows, f"query_id string, results array<{kind}>")
    scores = karat.evaluate({"q1": ["a"], "q2": ["b"]}, frame, "RR", engine="spark")
    assert scores.per_query.rows() == [("q1", 0.5), ("q2", 0.0)]


def test_a_pattern_is_the_name_of_its_run(spark, tmp_path):
    run = pl.DataFrame({"query_id": ["q1", "q2"], "item_id": ["a", "b"], "score": [1.0, 1.0]})
    written_in_parts(run, tmp_path / "run", 2)
    pattern = str(tmp_path / "run" / "*.parquet")
    gold = {"q1": ["a"], "q2": ["b"]}
    scores = karat.evaluate(gold, pattern, "RR", engine="spark")
    assert (scores.name, scores["RR"]) == (karat.evaluate(gold, pattern, "RR").name, 1.0)


@pytest.mark.parametrize("bytes_of_gold", [0, engine.LARGEST_BROADCAST])
def test_frame_has_the_scores_of_the_cluster(spark, monkeypatch, bytes_of_gold):
    monkeypatch.setattr(engine, "LARGEST_BROADCAST", bytes_of_gold)
    gold, run = data(9)
    frame = spark.createDataFrame(run.rows(), run.columns).repartition(3)
    scores = karat.evaluate(gold, frame, MEASURES, engine="spark")
    monkeypatch.setattr(engine, "_collected", None)
    assert type(scores.frame) is type(frame)
    assert pl.DataFrame(scores.frame.toArrow()).sort("query_id").equals(scores.per_query)
    local = karat.evaluate(gold, run, "AP")
    assert local.frame is local.per_query
    with refused(field="matches"):
        _ = scores.matches


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


def test_a_table_without_rows_has_the_message_of_this_process(spark):
    columns = "query_id string, item_id string, score double"
    frame = spark.createDataFrame([], columns)
    with refused() as local:
        karat.evaluate({"q1": ["a"]}, pl.DataFrame(frame.toArrow()), "RR")
    with refused() as remote:
        karat.evaluate({"q1": ["a"]}, frame, "RR", engine="spark")
    assert (remote.value.problem, remote.value.hint) == (local.value.problem, local.value.hint)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("text.parquet", "is not a Parquet file"),
        ("damaged", "Spark failed: "),
        ("absent.parquet", "PATH_NOT_FOUND"),
        ("table:absent", "TABLE_OR_VIEW_NOT_FOUND"),
        ("s3://bucket/run", "No FileSystem for scheme"),
        ("s3a://bucket/run.jsonl.gz", "ends in .jsonl"),
    ],
)
def test_a_run_that_cannot_be_read_is_one_message(spark, tmp_path, path, problem, capfd):
    (tmp_path / "text.parquet").write_text("not Parquet\n")
    run = pl.DataFrame({"query_id": ["q1"] * 500, "item_id": map(str, range(500)), "score": 1.0})
    written_in_parts(run, tmp_path / "damaged", 2)
    file = tmp_path / "damaged" / "part-00001.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:50] + bytes(800) + whole[850:])
    place = path if ":" in path else str(tmp_path / path)
    capfd.readouterr()
    with refused(path=place) as error:
        karat.evaluate({"q1": ["1"]}, place, "RR", engine="spark")
    assert problem in error.value.problem
    assert len(str(error.value).splitlines()) == 2
    assert "\tat " not in capfd.readouterr().err


def test_an_error_in_the_data_frame_is_one_message(spark):
    frame = spark.sql("select concat('q', id) as query_id, 'a' as item_id, 1/id as score from ids")
    with refused() as error:
        karat.evaluate({"q1": ["a"]}, frame, "RR", engine="spark")
    assert "DIVIDE_BY_ZERO" in error.value.problem
    assert len(str(error.value).splitlines()) == 2


@pytest.fixture(autouse=True)
def ids(request):
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").range(3).createOrReplaceTempView("ids")


def test_a_data_frame_that_changes_between_two_readings_is_refused(spark):
    def changing(batches):
        import random

        import pyarrow as pa

        for _ in batches:
            n = random.SystemRandom().randrange(1, 1 << 30)
            ids = [f"q{n}", "q1"]
            yield pa.RecordBatch.from_pydict({"query_id": ids, "text": TEXTS[:2], "rank": [1, 1]})

    frame = spark.range(1).mapInArrow(changing, "query_id string, text string, rank long")
    gold = [{"query_id": "q1", "evidence": [TEXTS[1]]}]
    with refused() as error:
        karat.evaluate(gold, frame, "evidence.recall@3", engine="spark")
    assert "changed while it was scored" in error.value.problem


@pytest.mark.parametrize("master", ["spark://localhost:9", "cluster.example.org"])
def test_a_wrong_master_is_refused_at_once(master, monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with refused(field="--master"):
        spark_session(master)


def test_the_number_of_parts_follows_from_the_size_unless_it_is_set(spark):
    run = pl.DataFrame({"query_id": ["q1"], "item_id": ["a"], "score": [1.0]})
    frame = spark.createDataFrame(run.to_arrow(compat_level=pl.CompatLevel.oldest()))
    gold = PreparedGold(karat.Gold.of({"q1": ["a"]}))
    numbers = []
    for setting in ("5", "200"):
        spark.conf.set(SETTING, setting)
        numbers.append(engine.SparkRun(gold, frame)._n_parts)
    spark.conf.set(SETTING, "3")
    assert numbers == [5, 4]
    assert engine.parts_setting("auto") is None


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
    assert done.stdout.splitlines()[-2:] == [
        "equal after the loss of an executor",
        "the session of this data frame has been stopped",
    ]
