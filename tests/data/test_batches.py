"""Runs larger than the memory limit: batches give the scores of the whole run, and leave no files.

Batches are made tiny, so that small files are read in many of them.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat import files
from karat.data import gold_source, run_source, spill
from karat.data.data_file import DataFile
from karat.data.file_sizes import estimated_bytes
from karat.data.formats import table_files
from karat.data.run_source import RunSource
from karat.engines import scoring_options, table_store
from karat.errors import InputError
from karat.files import zstd
from support.batches import (
    GOLD,
    GOLD_WRITERS,
    JUDGMENTS,
    MEASURES,
    ROWS,
    WRITERS,
    command,
    evaluated_with,
)
from support.effort import examples

pytestmark = pytest.mark.usefixtures("spill_parent")


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
def test_documents_of_batches_without_offsets_are_matched_by_path_suffix(tmp_path):
    spans = [{"doc_id": f"docs/{name}.md", "start": 0, "end": 10} for name in "ab"]
    gold = [{"query_id": f"q{number}", "spans": [span]} for number, span in enumerate(spans)]
    chunks = pl.DataFrame({"item_id": ["a", "b"], "doc_id": ["docs/a.md", "docs/b.md"]})
    chunks = chunks.with_columns(start=0, end=pl.Series([5, 9]))
    items = [{"id": "a", "doc_id": "a.md", "start": 0, "end": 5}, {"id": "b", "doc_id": "b.md"}]
    lines = [{"query_id": f"q{number}", "results": [item]} for number, item in enumerate(items)]
    for line in lines:
        (tmp_path / f"{line['query_id']}.jsonl").write_text(json.dumps(line))
    whole, batches = (
        karat.evaluate(gold, str(tmp_path / "*.jsonl"), "span.recall", chunks=chunks, **options)
        for options in ({}, {"memory": 1})
    )
    assert batches.table.frame.equals(whole.table.frame)
    assert batches.notes == whole.notes
    assert "2 document ids matched by path suffix" in str(whole.notes)


@pytest.mark.usefixtures("tiny_batches")
def test_queries_that_a_run_of_documents_lacks_are_scored(tmp_path, monkeypatch):
    (tmp_path / "gold.qrels").write_text("q1 0 a.md 1\nq2 0 b.md 1\n")
    path = tmp_path / "run.csv"
    path.write_text("query_id,text,doc_id,start,end\nq1,pay,a.md,0,3\n")
    for gold in (karat.Gold.read(tmp_path / "gold.qrels"), tmp_path / "gold.qrels"):
        for memory in (None, 1):
            assert karat.evaluate(gold, path, "RR", level="doc", memory=memory)["RR"] == 0.5
    monkeypatch.setattr(run_source, "_LARGEST_WHOLE", 0)
    assert karat.evaluate(gold, path, "RR", level="doc")["RR"] == 0.5


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
@pytest.mark.filterwarnings("ignore:.*items have a higher score")
@pytest.mark.parametrize("has_late_repeat", [False, True])
def test_files_of_different_formats_are_one_run(tmp_path, has_late_repeat):
    is_first = pl.col("query_id").str.slice(1).cast(pl.Int64) < 15
    first = ROWS.filter(is_first)
    n_grouped = 100 if has_late_repeat else 0
    shuffled = first[n_grouped:].sample(fraction=1.0, shuffle=True, seed=3)
    WRITERS["run"](pl.concat([first[:n_grouped], shuffled]), tmp_path / "a.run")
    WRITERS["jsonl"](ROWS.filter(~is_first), tmp_path / "b.jsonl")
    run = str(tmp_path / "*.*")
    with pytest.MonkeyPatch.context() as patch:
        if has_late_repeat:
            patch.setattr(run_source, "_FIRST_ROWS", 10)
        assert evaluated(run, memory=1) == evaluated(run)


def test_files_with_different_columns_are_partitioned_in_memory(tmp_path, monkeypatch):
    rows = ROWS.sample(fraction=1.0, shuffle=True, seed=3)
    is_first = pl.col("query_id").str.slice(1).cast(pl.Int64) < 15
    WRITERS["csv"](rows.filter(is_first), tmp_path / "a.csv")
    WRITERS["csv"](rows.filter(~is_first).with_columns(text=pl.lit("a")), tmp_path / "b.csv")
    run = str(tmp_path / "*.csv")
    whole = evaluated(run)
    monkeypatch.setattr(run_source, "_LARGEST_WHOLE", 0)
    assert RunSource(run).is_faster_in_batches
    assert evaluated(run) == whole


@pytest.mark.usefixtures("tiny_batches")
def test_query_in_two_rows_with_lists_is_refused(tmp_path):
    lists = ROWS.group_by("query_id", maintain_order=True).agg(results="item_id")
    pl.concat([lists, lists[:1]]).write_parquet(tmp_path / "run.parquet", row_group_size=5)
    WRITERS["parquet"](JUDGMENTS, tmp_path / "gold.parquet")
    for gold in (GOLD, tmp_path / "gold.parquet"):
        with pytest.raises(InputError) as error:
            karat.evaluate(gold, tmp_path / "run.parquet", MEASURES, memory=1)
        assert error.value.problem == "query 'q0' is in more than one row"


@pytest.mark.usefixtures("tiny_batches")
def test_query_in_two_rows_of_one_of_several_files_is_refused(tmp_path):
    lists = ROWS.group_by("query_id", maintain_order=True).agg(results="item_id")
    pl.concat([lists[:20], lists[:1]]).write_parquet(tmp_path / "a.parquet", row_group_size=5)
    lists[20:].write_parquet(tmp_path / "b.parquet")
    WRITERS["parquet"](JUDGMENTS, tmp_path / "gold")
    with pytest.raises(InputError) as error:
        karat.evaluate(tmp_path / "gold", str(tmp_path / "*.parquet"), MEASURES, memory=1)
    assert error.value.problem == "query 'q0' is in more than one row"


@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ragas_rows_in_a_table_are_read_as_a_whole(tmp_path, monkeypatch, ending):
    table = pl.DataFrame(
        {
            "user_input": [f"question {number}" for number in range(20)],
            "retrieved_contexts": ['["a text"]'] * 20,
            "retrieved_context_ids": ['["d1"]'] * 20,
        }
    )
    path = tmp_path / f"run.{ending}"
    if ending == "csv":
        table.write_csv(path)
    else:
        lists = pl.col("retrieved_contexts", "retrieved_context_ids")
        table.with_columns(lists.str.json_decode(pl.List(pl.String))).write_parquet(path)
    gold = [{"query": f"question {number}", "relevant": ["d1"]} for number in range(20)]
    *whole, _, messages = evaluated_with(gold, path)
    *batches, _, messages_of_batches = evaluated_with(gold, path, memory=1)
    assert batches == whole
    (added,) = set(messages_of_batches) - set(messages)
    assert "cannot be read in batches" in added
    monkeypatch.setattr(run_source, "_LARGEST_WHOLE", 0)
    assert not RunSource(path).is_faster_in_batches


@pytest.mark.usefixtures("tiny_batches")
def test_run_without_queries_is_reported_for_gold_in_parts(tmp_path):
    WRITERS["parquet"](JUDGMENTS, tmp_path / "gold.parquet")
    problems = []
    for gold in (GOLD, tmp_path / "gold.parquet"):
        with pytest.raises(InputError, match="have no query in common") as error:
            karat.evaluate(gold, {}, MEASURES, memory=1)
        problems.append(error.value.problem)
    assert problems[0] == problems[1]


@pytest.mark.usefixtures("tiny_batches")
def test_default_measures_read_a_large_run_twice(tmp_path, monkeypatch):
    gold = karat.Gold.of(
        [
            {"query_id": query, "relevant": items["item_id"].to_list()[:3], "evidence": ["a text"]}
            for (query,), items in ROWS.group_by("query_id")
        ]
    )
    WRITERS["csv"](ROWS, tmp_path / "bm25.csv")
    n_readings, pieces = 0, RunSource._pieces

    def counted_pieces(source, file, activity="reading"):
        nonlocal n_readings
        n_readings += 1
        return pieces(source, file, activity)

    monkeypatch.setattr(RunSource, "_pieces", counted_pieces)
    scores = karat.evaluate(gold, tmp_path / "bm25.csv", memory=1)
    assert "nDCG@10" in scores.table.frame.columns
    assert n_readings == 2


def test_size_of_a_table_is_estimated_from_its_content(tmp_path):
    size = ROWS.height * (16 + 16 + 8 + 8)
    writers = {"stream.arrow": ROWS.write_ipc_stream, "file.dat": ROWS.write_parquet}
    for name, write in writers.items():
        write(tmp_path / name)
        assert 0.5 * size < estimated_bytes([DataFile(tmp_path / name)], 0, 1) < 2 * size


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
def test_evaluations_in_threads_leave_the_filters_of_warnings(tmp_path):
    WRITERS["run"](ROWS, tmp_path / "bm25.run")
    state = [*warnings.filters], warnings.showwarning, warnings._showwarnmsg_impl

    def evaluate(memory):
        return karat.evaluate(GOLD, tmp_path / "bm25.run", MEASURES, memory=memory)["AP"]

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(evaluate, [None, 1] * 8))) == 1
    assert ([*warnings.filters], warnings.showwarning, warnings._showwarnmsg_impl) == state


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
            assert source.is_faster_in_batches
            runs = list(source.batches())
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
    stored_share=st.sampled_from([1, 2**-20, 0]),
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
        patch.setattr(table_store, "_MEMORY_SHARE", stored_share)
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


def test_spill_folder_is_removed_after_an_interrupted_removal(spill_parent, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    folder = spill.SpillFolder()
    with monkeypatch.context() as patch:
        patch.setattr(spill.shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            folder.close()
    folder.close()
    assert not spill_parent.exists()


def test_spill_folders_of_concurrent_commands_are_kept(spill_parent):
    def use_folders(n_folders):
        for _ in range(n_folders):
            folder = spill.SpillFolder()
            folder.write_whole(pl.DataFrame({"item": ["d1"]}))
            assert folder.scan_whole().collect().height == 1
            folder.close()

    # The lock of a folder excludes other threads, too.
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use_folders, [100] * 4))
    assert not spill_parent.exists()


def test_spill_folder_of_another_user_is_not_used(spill_parent, tmp_path):
    notes = tmp_path / "home" / "notes"
    notes.mkdir(parents=True)
    spill_parent.symlink_to(tmp_path / "home")
    spill.remove_leftovers()
    with pytest.raises(InputError, match="belongs to another user, or is not a folder") as error:
        spill.SpillFolder()
    assert "TMPDIR" in error.value.hint
    assert notes.is_dir()


def _with_small_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


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
    while not list(tmp_path.glob("karat-spill-*/*/*-rows")) and time.monotonic() < deadline:
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
