"""Runs larger than the memory limit: batches give the scores of the whole run, and leave no files.

Batches are made tiny, so that small files are read in many of them.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat import files
from karat.data import gold_source, run_source, spill
from karat.data.formats import table_files
from karat.data.gold_source import PartitionedGold, open_gold
from karat.data.run_source import RunSource
from karat.engines import scoring_options, table_store
from karat.errors import InputError
from karat.files import zstd
from support.effort import examples

CHANCE = random.Random(7)
MEASURES = ["nDCG@10", "AP", "Judged@5"]
GOLD = {
    f"q{query}": {f"d{CHANCE.randrange(99)}": CHANCE.randrange(3) for _ in range(8)}
    for query in range(2, 33)
}
ROWS = pl.DataFrame(
    [
        (f"q{query}", f"d{item}", rank, CHANCE.choice([2.0, 1.0, 0.5]))
        for query in range(30)
        for rank, item in enumerate(CHANCE.sample(range(99), 20), 1)
    ],
    schema=["query_id", "item_id", "rank", "score"],
    orient="row",
)


def trec(table):
    return "".join(f"{q} Q0 {item} {rank} {score} tag\n" for q, item, rank, score in table.rows())


WRITERS = {
    "run.zst": lambda table, path: path.write_bytes(zstd.compress(trec(table).encode())),
    "run": lambda table, path: path.write_text(trec(table)),
    "run.gz": lambda table, path: path.write_bytes(gzip.compress(trec(table).encode())),
    "csv": lambda table, path: table.write_csv(path),
    "tsv": lambda table, path: table.drop("rank").write_csv(path, separator="\t"),
    "parquet": lambda table, path: table.write_parquet(path),
    "arrow": lambda table, path: table.write_ipc(path),
    "jsonl": lambda table, path: karat.Run.of(table).write(path),
}


@pytest.fixture(autouse=True)
def spill_parent(tmp_path, monkeypatch):
    folder = tmp_path / "spill"
    monkeypatch.setattr(spill, "_parent", lambda: folder)
    return folder


@pytest.fixture
def tiny_batches(monkeypatch, request):
    """Read files in blocks, and runs in batches, of a few rows; a random number for each test."""
    chance = random.Random(request.node.name)
    monkeypatch.setattr(scoring_options, "LEAST_MEMORY", 1)
    monkeypatch.setattr(run_source, "_SMALLEST_BATCH", chance.randrange(1, 3000))
    monkeypatch.setattr(gold_source, "_SMALLEST_PART", chance.randrange(1000, 20_000))
    monkeypatch.setattr(files.Source.whole_lines, "__defaults__", (chance.randrange(50, 2000),))
    monkeypatch.setattr(table_files, "_MOST_ROWS", chance.randrange(1, 99))


def evaluated(run, **options):
    """Everything about the scores, and the messages of all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = karat.evaluate(GOLD, run, MEASURES, **options)
    table = scores.table
    messages = {str(warning.message) for warning in caught}
    return table.frame.rows(), table.holes.rows(), table.counts, scores.notes, scores.name, messages


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("is_shuffled", [False, True], ids=["grouped", "shuffled"])
@pytest.mark.usefixtures("tiny_batches")
def test_batches_give_the_scores_of_the_whole_run(tmp_path, spill_parent, ending, is_shuffled):
    path = tmp_path / f"bm25.{ending}"
    table = ROWS.sample(fraction=1.0, shuffle=True, seed=3) if is_shuffled else ROWS
    WRITERS[ending](table, path)
    assert evaluated(path, memory=1) == evaluated(path)
    assert RunSource(path, 1).is_large
    assert not spill_parent.exists()


@pytest.mark.usefixtures("tiny_batches")
def test_reranking_of_a_run_in_batches_is_shown_like_that_of_the_whole_run(tmp_path):
    path = tmp_path / "run.jsonl"
    lists = {query: list(items) for query, items in GOLD.items()}
    lines = [
        {"query_id": query, "results": items[:4], "candidates": items[::-1]}
        for query, items in lists.items()
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what was read for the scores is read again
        shown = [str(karat.evaluate(GOLD, path, MEASURES, memory=m)) for m in (None, 1)]
    assert shown[0] == shown[1]
    assert "before and after reranking" in shown[1]


@pytest.mark.usefixtures("tiny_batches")
def test_chunks_against_gold_of_documents_are_reported_for_batches(tmp_path):
    table = ROWS.with_columns(doc_id="item_id", item_id=pl.col("item_id") + "#0", start=0, end=5)
    path = tmp_path / "chunks.jsonl"
    karat.Run.of(table).write(path)
    messages = evaluated(path, memory=1)[-1]
    assert sum("--level doc" in message for message in messages) == 1
    assert messages == evaluated(path)[-1]


@pytest.mark.usefixtures("tiny_batches")
def test_misspelled_keys_are_reported_for_batches(tmp_path):
    path = tmp_path / "run.jsonl"
    lines = [{"query_id": query, "results": list(items)} for query, items in GOLD.items()]
    lines[20]["candiates"] = ["d1"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    messages = evaluated(path, memory=1)[-1]
    assert sum("'candiates'" in message for message in messages) == 1
    assert messages == evaluated(path)[-1]


@pytest.mark.usefixtures("tiny_batches")
def test_parts_in_several_files_are_one_run(tmp_path):
    for number in range(3):
        part = ROWS.filter(pl.col("query_id").str.len_chars() == number)
        WRITERS["run"](part if part.height else ROWS[:0], tmp_path / f"{number}.run")
    (tmp_path / "0.run").unlink()
    (tmp_path / "1.run").unlink()
    WRITERS["csv"](ROWS.filter(pl.col("query_id").str.len_chars() == 3), tmp_path / "b.csv")
    pattern = tmp_path / "*.*"
    assert evaluated(pattern, memory=1) == evaluated(pattern)
    assert evaluated(pattern)[4] == str(pattern)


@pytest.fixture
def folder(tmp_path):
    """A folder with the parts of a run, as another program writes it."""
    folder = tmp_path / "dense"
    folder.mkdir()
    for number, query in enumerate(["q1", "q2"]):
        is_part = ROWS["query_id"].str.starts_with(query)
        ROWS.filter(is_part).write_parquet(folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").touch()
    return folder


@pytest.mark.usefixtures("tiny_batches")
def test_folder_of_parts_is_one_run(folder):
    assert evaluated(folder, memory=1) == evaluated(folder) == evaluated(f"{folder}/")
    *scores, name, messages = evaluated(folder)
    *same_scores, _, same_messages = evaluated(folder / "part*")
    assert (name, scores, messages) == ("dense", same_scores, same_messages)


@pytest.mark.usefixtures("tiny_batches")
def test_folder_with_one_part_has_the_name_of_the_folder(folder):
    (folder / "part-0.parquet").unlink()
    assert evaluated(folder, memory=1) == evaluated(folder)
    assert evaluated(folder)[4] == "dense"


@pytest.mark.parametrize("memory", [None, "256M"])
@pytest.mark.parametrize("content", ["mixed", "nested", "empty"])
def test_folder_that_is_not_one_run_is_refused(folder, memory, content):
    if content == "mixed":
        WRITERS["run"](ROWS, folder / "other.run")
    elif content == "nested":
        (folder / "day=1").mkdir()
    else:
        for part in folder.iterdir():
            part.unlink()
    with pytest.raises(InputError) as error:
        karat.evaluate(GOLD, folder, MEASURES, memory=memory)
    assert error.value.path == str(folder)


@pytest.mark.usefixtures("tiny_batches")
def test_files_of_a_run_use_one_unit_of_offsets(tmp_path):
    for number, unit in enumerate(["utf8", "codepoint"]):
        span = {"query_id": [f"q{number}"], "doc_id": ["d"], "start": [0], "end": [1]}
        karat.Run.of(pl.DataFrame(span), offsets=unit).write(tmp_path / f"{number}.jsonl")
    for memory in (None, 1):
        with pytest.raises(InputError) as error:
            karat.evaluate(GOLD, tmp_path / "*.jsonl", MEASURES, memory=memory)
        assert error.value.field == "offsets"


@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.filterwarnings("ignore:.*higher score than the item before")
@pytest.mark.parametrize("ending", ["run", "jsonl"])
def test_query_in_two_files_is_refused(tmp_path, spill_parent, ending):
    for number in range(2):
        WRITERS[ending](ROWS, tmp_path / f"{number}.{ending}")
    with pytest.raises(InputError) as error:
        karat.evaluate(GOLD, tmp_path / f"*.{ending}", MEASURES, memory=1)
    assert "in more than one of the files" in error.value.problem
    assert not spill_parent.exists()


@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.parametrize(
    ("ending", "bad", "field"),
    [
        ("run", "q29 Q0 x 21 high tag\n", "score"),
        ("csv", "q29,x,21,high\n", "score"),
        ("csv", "q29,x,20,1.0\n", "rank"),
        ("jsonl", '{"query_id": "q99", "results": [{"id": "x", "score": "high"}]}\n', None),
    ],
)
def test_bad_row_in_the_last_batch_has_its_line(tmp_path, spill_parent, ending, bad, field):
    path = tmp_path / f"bm25.{ending}"
    WRITERS[ending](ROWS, path)
    text = path.read_text() + bad
    path.write_text(text)
    errors = []
    for options in ({}, {"memory": 1}):
        with pytest.raises(InputError) as error:
            karat.evaluate(GOLD, path, MEASURES, **options)
        errors.append((error.value.path, error.value.line, error.value.field, str(error.value)))
    assert errors[0] == errors[1]
    assert errors[1][:2] == (str(path), text.count("\n"))
    assert field is None or errors[1][2] == field
    assert not spill_parent.exists()


@pytest.mark.usefixtures("tiny_batches")
def test_lists_of_some_queries_are_read_from_a_large_run(tmp_path):
    path = tmp_path / "bm25.run"
    WRITERS["run"](ROWS.sample(fraction=1.0, shuffle=True, seed=3), path)
    some = RunSource(path, 1).read_only(["q3", "q17"])
    assert some.results.sort("query_id", maintain_order=True).equals(
        karat.Run.read(path).only(["q3", "q17"]).results.sort("query_id", maintain_order=True)
    )


@pytest.mark.usefixtures("tiny_batches")
def test_comparison_in_batches_is_that_of_whole_runs(tmp_path):
    paths = [tmp_path / "a.run", tmp_path / "b.csv"]
    WRITERS["run"](ROWS, paths[0])
    WRITERS["csv"](ROWS.with_columns(rank=21 - pl.col("rank")), paths[1])
    whole, batches = (karat.compare(GOLD, paths, MEASURES, memory=m) for m in (None, 1))
    assert batches.pairs.equals(whole.pairs)


@pytest.mark.usefixtures("tiny_batches")
def test_gate_in_batches_is_that_of_the_whole_run(tmp_path):
    WRITERS["run"](ROWS, tmp_path / "bm25.run")
    limits = {"nDCG@10": ">= 0.1", "AP": ">= 0.9"}
    whole, batches = (
        karat.gate(GOLD, tmp_path / "bm25.run", thresholds=limits, memory=memory)
        for memory in (None, 1)
    )
    assert (batches.passed, batches.checks) == (whole.passed, whole.checks)


@pytest.mark.parametrize("ending", ["run", "csv", "jsonl"])
@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.filterwarnings("ignore:.*items have a higher score")
def test_run_too_large_for_the_cache_is_scored_in_batches(
    tmp_path, spill_parent, monkeypatch, ending
):
    path = tmp_path / f"bm25.{ending}"
    for table in (ROWS, ROWS.sample(fraction=1.0, shuffle=True, seed=3)):
        WRITERS[ending](table, path)
        whole = evaluated(path)
        with monkeypatch.context() as patch:
            patch.setattr(run_source, "_LARGEST_WHOLE", 0)
            patch.setattr(run_source, "_LARGEST_BATCH", 3000)
            source = RunSource(path)
            assert source.is_streamed
            runs = list(source.large_batches())
            assert len(runs) > 1
            assert sum(run.results.height for run in runs) == ROWS.height
            assert all(run.segments.contiguous for run in runs)
            assert evaluated(path) == whole
    assert not spill_parent.exists(), "nothing is written, because the run fits"


@given(
    memory=st.integers(1, 10_000) | st.just(1 << 30),
    batch=st.integers(500, 5000),
    part=st.integers(2000, 20_000),
    block=st.integers(200, 5000),
    seed=st.none() | st.integers(0, 9),
    stored_share=st.sampled_from([1, 1 << 20, 1 << 40]),
)
@examples(8, 300)
def test_every_limit_and_size_of_batches_gives_the_same_scores(
    shared_folder, memory, batch, part, block, seed, stored_share
):
    table = ROWS if seed is None else ROWS.sample(fraction=1.0, shuffle=True, seed=seed)
    if seed == 0:  # only the last row reveals that the rows of a query are apart
        table = pl.concat([ROWS[1:], ROWS[:1]])
    gold, run = shared_folder / "gold.qrels", shared_folder / "bm25.run"
    GOLD_WRITERS["qrels"](JUDGMENTS, gold)
    WRITERS["run"](table, run)
    *whole, queries, messages = evaluated_with(gold, run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "_parent", lambda: shared_folder / "spill")
        patch.setattr(scoring_options, "LEAST_MEMORY", 1)
        patch.setattr(run_source, "_SMALLEST_BATCH", batch)
        patch.setattr(run_source, "_LARGEST_BATCH", batch)
        patch.setattr(run_source, "_LARGEST_WHOLE", 0)
        patch.setattr(table_store, "_STORED_SHARE", stored_share)
        patch.setattr(gold_source, "_SMALLEST_PART", part)
        patch.setattr(files.Source.whole_lines, "__defaults__", (block,))
        *parts, queries_of_parts, messages_of_parts = evaluated_with(gold, run, memory=memory)
    assert parts == whole
    assert queries_of_parts.equals(queries)
    assert messages_of_parts == messages


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("limits")


def test_memory_limit_must_be_a_size():
    for memory in ("lots", "1M", 5, -1, 2.5):
        with pytest.raises(InputError) as error:
            karat.evaluate(GOLD, {"q2": ["d1"]}, memory=memory)
        assert error.value.field == "memory"


def test_spill_folder_of_a_killed_process_is_removed(spill_parent):
    code = (
        "import time; from pathlib import Path; from karat.data import spill;"
        f"spill._parent = lambda: Path({str(spill_parent)!r});"
        "folder = spill.SpillFolder(); print(folder.path, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    path = Path(process.stdout.readline().strip())
    mine = spill.SpillFolder()
    assert path.exists(), "the folder of a living process is kept"
    process.kill()
    process.wait()
    process.stdout.close()
    karat.Evaluator(GOLD)
    assert not path.exists()
    assert mine.path.exists()
    mine.close()
    assert not spill_parent.exists()


def _with_small_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def command(tmp_path, *words):
    return [sys.executable, "-m", "karat", "eval", *map(str, words), "--memory", "256M"]


@pytest.fixture(scope="module")
def large_run(tmp_path_factory):
    """A shuffled run of 60 MB, which is large for a limit of 256 MB."""
    folder = tmp_path_factory.mktemp("large")
    random_rows = ROWS.select("item_id", "score")
    n_copies = 2_400_000 // ROWS.height
    table = pl.concat([random_rows] * n_copies).with_columns(
        query_id="a-rather-long-query-" + (pl.int_range(pl.len()) % 100_000).cast(pl.String)
    )
    table.select(
        "query_id",
        pl.lit("Q0").alias("q0"),
        "item_id",
        pl.lit(1).alias("r"),
        "score",
        pl.lit("t").alias("t"),
    ).write_csv(folder / "run.run", separator=" ", include_header=False)
    (folder / "gold.qrels").write_text("a-rather-long-query-1 0 d1 1\n")
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_full_disk_leaves_no_files(large_run, tmp_path):
    # Bytecode must not be cut off at the limit, too.
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    output = tmp_path / "scores.parquet"
    ran = subprocess.run(
        command(tmp_path, large_run / "gold.qrels", large_run / "run.run", "-o", output),
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=_with_small_disk,
        check=False,
    )
    assert ran.returncode == 2, ran.stderr
    assert "writing temporary files failed" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
        signal.SIGKILL,
    ],
)
def test_stopped_command_leaves_no_files(large_run, tmp_path, number):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    words = command(
        tmp_path, large_run / "gold.qrels", large_run / "run.run", "-o", tmp_path / "scores.json"
    )
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("karat-spill-*/*/*.arrow")) and time.monotonic() < deadline:
        assert process.poll() is None, "the command must still be reading"
        time.sleep(0.01)
    process.send_signal(number)
    process.wait()
    if number == signal.SIGKILL:
        assert list(tmp_path.glob("karat-spill-*/*"))
        code = "import karat; karat.Evaluator({'q': ['a']})"
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert not list(tmp_path.glob("karat-spill-*/*"))
    assert not (tmp_path / "scores.json").exists()


JUDGMENTS = pl.DataFrame(
    [(query, item, grade) for query, items in GOLD.items() for item, grade in items.items()],
    schema=["query_id", "item_id", "grade"],
    orient="row",
)


def qrels(table):
    return "".join(f"{query} 0 {item} {grade}\n" for query, item, grade in table.rows())


def with_fields(table):
    """Judgments with a field of the query, and a column with several values per query."""
    topic = pl.col("query_id").str.slice(-1)
    return table.with_columns(
        topic=topic, query="what is " + pl.col("query_id") + "?", judge=pl.int_range(pl.len()) % 3
    )


def gold_lines(table, path):
    gold = karat.Gold.of(with_fields(table).drop("judge"))
    gold.write(path)
    with path.open("a") as file:
        file.write('{"query_id": "none", "relevant": []}\n')
        file.write('{"query_id": "no answer", "relevant": ["d1"], "answerable": false}\n')


GOLD_WRITERS = {
    "qrels": lambda table, path: path.write_text(qrels(table)),
    "qrels.gz": lambda table, path: path.write_bytes(gzip.compress(qrels(table).encode())),
    "csv": lambda table, path: with_fields(table).write_csv(path),
    "tsv": lambda table, path: with_fields(table).write_csv(path, separator="\t"),
    "parquet": lambda table, path: with_fields(table).write_parquet(path),
    "arrow": lambda table, path: with_fields(table).write_ipc(path),
    "jsonl": gold_lines,
}


def evaluated_with(gold, run, **options):
    """Everything about the scores, the queries, and the messages of all warnings in order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = karat.evaluate(gold, run, MEASURES, **options)
    table = scores.table
    messages = [str(warning.message) for warning in caught]
    queries = scores.queries
    return table.frame.rows(), table.holes.rows(), table.counts, scores.notes, queries, messages


def assert_same_with(gold, run, **options):
    *parts, queries, messages = evaluated_with(gold, run, memory=1, **options)
    *whole, whole_queries, whole_messages = evaluated_with(gold, run, **options)
    assert parts == whole
    assert queries.equals(whole_queries)
    assert messages == whole_messages
    assert isinstance(open_gold(gold, 1), PartitionedGold)


@pytest.mark.parametrize("ending", GOLD_WRITERS)
@pytest.mark.parametrize("is_shuffled", [False, True], ids=["grouped", "shuffled"])
@pytest.mark.usefixtures("tiny_batches")
def test_gold_in_parts_gives_the_scores_of_the_whole_gold(
    tmp_path, spill_parent, ending, is_shuffled
):
    table = pl.concat([JUDGMENTS, JUDGMENTS.head(3)]) if ending != "jsonl" else JUDGMENTS
    if is_shuffled:
        table = table.sample(fraction=1.0, shuffle=True, seed=3)
    gold, run = tmp_path / f"gold.{ending}", tmp_path / "bm25.run"
    GOLD_WRITERS[ending](table, gold)
    WRITERS["run"](ROWS, run)
    assert_same_with(gold, run)
    gc.collect()
    assert not spill_parent.exists()


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.usefixtures("tiny_batches")
def test_run_of_any_format_is_scored_with_gold_in_parts(tmp_path, ending):
    gold, run = tmp_path / "gold.qrels", tmp_path / f"bm25.{ending}"
    GOLD_WRITERS["qrels"](JUDGMENTS, gold)
    WRITERS[ending](ROWS, run)
    assert_same_with(gold, run)


@pytest.mark.usefixtures("tiny_batches")
def test_ids_that_are_not_in_the_run_are_found_with_gold_in_parts(tmp_path):
    gold, run = tmp_path / "gold.qrels", tmp_path / "bm25.run"
    GOLD_WRITERS["qrels"](JUDGMENTS.with_columns(item_id="x" + pl.col("item_id")), gold)
    WRITERS["run"](ROWS, run)
    assert_same_with(gold, run)
    assert "relevant ids of gold" in evaluated_with(gold, run, memory=1)[-1][-1]


@pytest.mark.usefixtures("tiny_batches")
def test_gold_in_several_files_is_read_in_parts(tmp_path):
    folder = tmp_path / "gold"
    folder.mkdir()
    GOLD_WRITERS["qrels"](JUDGMENTS.head(100), folder / "a.qrels")
    GOLD_WRITERS["csv"](JUDGMENTS.tail(-100), folder / "b.csv")
    WRITERS["run"](ROWS, tmp_path / "bm25.run")
    assert_same_with(folder / "*.*", tmp_path / "bm25.run")


@pytest.mark.usefixtures("tiny_batches")
def test_run_in_memory_is_scored_with_gold_in_parts(tmp_path):
    gold = tmp_path / "gold.qrels"
    GOLD_WRITERS["qrels"](JUDGMENTS, gold)
    assert_same_with(gold, {"q2": {"d1": 1.0, "d2": 0.5}, "q40": {"d1": 1.0}, "q3": {}})


@pytest.mark.usefixtures("tiny_batches")
def test_gold_with_texts_is_held_in_memory_with_a_warning(tmp_path):
    gold, run = tmp_path / "gold.jsonl", tmp_path / "bm25.run"
    karat.Gold.of(JUDGMENTS).with_evidence({"q2": ["pay by card"]}).write(gold)
    WRITERS["run"](ROWS, run)
    *parts, _, messages = evaluated_with(gold, run, memory=1)
    *whole, _, _ = evaluated_with(gold, run)
    assert parts == whole
    assert "held in memory" in messages[0]


@pytest.mark.parametrize("ending", ["qrels", "csv", "jsonl"])
@pytest.mark.usefixtures("tiny_batches")
def test_bad_row_in_the_last_part_of_gold_has_its_line(tmp_path, spill_parent, ending):
    bad = {"qrels": "q9 0 x y\n", "csv": "q9,x,y,t,q,1\n", "jsonl": '{"query_id": 1.5}\n'}
    gold = tmp_path / f"gold.{ending}"
    GOLD_WRITERS[ending](JUDGMENTS, gold)
    with gold.open("a") as file:
        file.write(bad[ending])
    errors = []
    for memory in (None, 1):
        with pytest.raises(InputError) as error:
            karat.evaluate(gold, {"q2": ["d1"]}, MEASURES, memory=memory)
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    assert not spill_parent.exists()


@pytest.fixture(scope="module")
def large_gold(tmp_path_factory):
    """Gold of 50 MB, for a run with one query."""
    folder = tmp_path_factory.mktemp("large-gold")
    row = pl.int_range(2_500_000)
    pl.select(
        query_id="q" + (row // 25).cast(pl.String),
        zero=pl.lit("0"),
        item_id="document" + (row * 7919 % 100_003).cast(pl.String),
        grade=row % 3,
    ).write_csv(folder / "gold.qrels", separator=" ", include_header=False)
    (folder / "a.run").write_text("q1 Q0 document1 1 1.0 t\n")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_gold_in_parts_takes_less_memory_than_the_whole_gold(large_gold, tmp_path):
    environment = os.environ | {
        "TMPDIR": str(tmp_path),
        "POLARS_MAX_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "1",
    }
    peaks = {}
    for memory in ("256M", "20G"):
        words = [*command(tmp_path, large_gold / "gold.qrels", large_gold / "a.run")[:-1], memory]
        words += ["-m", "RR", "--no-intervals"]
        peaks[memory] = _peak(words, environment)
    assert peaks["256M"] < 0.75 * peaks["20G"]


def _peak(words, environment):
    """Return the largest resident size of a command in bytes."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(ran.stdout) << 10


def test_small_file_with_many_rows_is_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_MAX_EXPANDED", "1M")
    row = pl.int_range(200_000)
    pl.select(
        query_id="q" + (row // 100).cast(pl.String),
        item_id="d" + (row % 100).cast(pl.String),
        score=(100 - row % 100).cast(pl.Float64),
    ).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(table_files, "_MOST_ROWS", 20_000)
    assert karat.evaluate({"q7": ["d1"]}, tmp_path / "a.parquet", "RR")["RR"] == 0.5


ADDRESS_SPACE = 7 << 28
"""1.75 GiB. Python, Polars and NumPy reserve about 1.4 GiB of it, even for small files."""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_run_larger_than_the_address_space_is_scored(tmp_path):
    item = "d" * 990
    line = "q{query} Q0 {item}{rank:02} {rank} {score} t\n".format
    block = "".join(
        line(query="000000", item=item, rank=rank, score=100 - rank) for rank in range(100)
    )
    content = 0
    with zstd.open(tmp_path / "a.run.zst", "wb") as file:
        while content < 1.1 * ADDRESS_SPACE:
            lines = block.replace("q000000 ", f"q{content // len(block):06} ").encode()
            content += file.write(lines)
    (tmp_path / "gold.qrels").write_text(f"q000001 0 {item}03 1\n")
    environment = os.environ | {
        "TMPDIR": str(tmp_path),
        "POLARS_MAX_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "KARAT_MAX_EXPANDED": "4G",
    }
    ran = subprocess.run(
        [*command(tmp_path, tmp_path / "gold.qrels", tmp_path / "a.run.zst"), "-m", "RR", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)),
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["runs"][0]["measures"]["RR"]["value"] == 0.25
