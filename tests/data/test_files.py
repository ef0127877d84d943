"""Files: every format gives back what was written, files are written whole, parts are joined."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import files
from karat.data import Gold, Run
from karat.errors import InputError, KaratWarning
from karat.files import writing
from support.effort import examples
from support.errors import refused

RUN_ENDINGS = ["run", "jsonl", "json", "csv", "tsv", "parquet", "arrow"]
GOLD_ENDINGS = ["qrels", "jsonl", "json", "csv", "tsv", "parquet", "arrow"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return one folder for all examples, because making a folder for each takes long."""
    return tmp_path_factory.mktemp("files")


def lists(run: Run) -> dict[str, list[str]]:
    grouped = run.results.group_by("query_id", maintain_order=True).agg("item_id")
    return dict(grouped.iter_rows())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Round trips

ANY_ID = st.text(min_size=1, max_size=6).filter(lambda text: "\0" not in text)
# TREC's ids hold no white space, and a line that starts with # is a comment.
TREC_ID = ANY_ID.filter(
    lambda text: not any(c.isspace() for c in text) and not text.startswith(("#", "\ufeff"))
)
SCORES = st.sampled_from([0.0, 1.0, -0.0]) | st.floats(allow_nan=False, allow_infinity=False)


def by_query(ids: st.SearchStrategy[str], values: st.SearchStrategy) -> st.SearchStrategy[dict]:
    return st.dictionaries(ids, values, min_size=1, max_size=4)


def ranked(ids: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, list[str]]]:
    return by_query(ids, st.lists(ids, min_size=1, max_size=5))


def scored(ids: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, dict[str, float]]]:
    return by_query(ids, st.dictionaries(ids, SCORES, min_size=1, max_size=5))


def judged(ids: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, dict[str, int]]]:
    return by_query(ids, st.dictionaries(ids, st.integers(-3, 10**6), min_size=1, max_size=5))


def assert_ranking_returns(given_lists: dict[str, list[str]], path: Path) -> None:
    Run.of(given_lists).write(path)
    assert lists(Run.read(path)) == given_lists, path.name


def assert_scores_return(given_scores: dict[str, dict[str, float]], path: Path) -> None:
    run = Run.of(given_scores)
    run.write(path)
    back = Run.read(path).results.select(run.results.columns)
    assert back.sort("query_id", maintain_order=True).rows() == (
        run.results.sort("query_id", maintain_order=True).rows()
    ), path.name


def assert_judgments_return(given_grades: dict[str, dict[str, int]], path: Path) -> None:
    gold = Gold.of(given_grades)
    gold.write(path)
    assert sorted(Gold.read(path).judgments.rows()) == sorted(gold.judgments.rows()), path.name


@examples(25, 400)
@given(any_lists=ranked(ANY_ID), trec_lists=ranked(TREC_ID))
def test_a_ranking_returns_from_every_format(folder, any_lists, trec_lists):
    for ending in RUN_ENDINGS:
        ranking = trec_lists if ending == "run" else any_lists
        assert_ranking_returns(ranking, folder / f"listed.{ending}")


@examples(25, 400)
@given(any_scores=scored(ANY_ID), trec_scores=scored(TREC_ID))
def test_scores_and_their_ranking_return_from_every_format(folder, any_scores, trec_scores):
    for ending in RUN_ENDINGS:
        scores = trec_scores if ending == "run" else any_scores
        assert_scores_return(scores, folder / f"scored.{ending}")


@examples(25, 400)
@given(any_grades=judged(ANY_ID), trec_grades=judged(TREC_ID))
def test_judgments_return_from_every_format(folder, any_grades, trec_grades):
    for ending in GOLD_ENDINGS:
        grades = trec_grades if ending == "qrels" else any_grades
        assert_judgments_return(grades, folder / f"judged.{ending}")


@pytest.mark.parametrize("compression", ["gz", "zst"])
@pytest.mark.parametrize("ending", RUN_ENDINGS)
def test_a_run_returns_from_a_compressed_file(tmp_path, ending, compression):
    path = tmp_path / f"run.{ending}.{compression}"
    Run.of({"q1": ["b", "a"], "q2": ["c"]}).write(path)
    assert lists(Run.read(path)) == {"q1": ["b", "a"], "q2": ["c"]}


@pytest.mark.parametrize("compression", ["gz", "zst"])
@pytest.mark.parametrize("ending", GOLD_ENDINGS)
def test_gold_returns_from_a_compressed_file(tmp_path, ending, compression):
    path = tmp_path / f"gold.{ending}.{compression}"
    Gold.of({"q1": {"a": 2, "b": 0}}).write(path)
    assert Gold.read(path).judgments.rows() == [("q1", "a", 2), ("q1", "b", 0)]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet", "arrow"])
def test_fields_of_queries_return_from_formats_that_hold_them(tmp_path, ending):
    table = pl.DataFrame(
        {"query_id": ["q1"], "item_id": ["a"], "grade": [1], "category": ["x"], "query": ["how?"]}
    )
    Gold.of(table).write(tmp_path / f"gold.{ending}")
    back = Gold.read(tmp_path / f"gold.{ending}").queries.to_dicts()
    assert back == [{"query_id": "q1", "text": "how?", "category": "x"}]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_a_field_with_the_name_of_a_judgments_column_is_not_mistaken_for_it(tmp_path, ending):
    gold = Gold.of([{"query_id": "q1", "relevant": {"a": 2}, "grade": "hard"}])
    try:
        with warnings.catch_warnings(action="ignore", category=KaratWarning):
            gold.write(tmp_path / f"gold.{ending}")
    except InputError as error:
        assert "grade" in str(error)  # noqa: PT017  refusing is correct as well
    else:
        assert Gold.read(tmp_path / f"gold.{ending}").fields in ([], ["grade"])


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize("value", ["other", ["other"]])
def test_a_field_that_would_be_read_as_the_query_text_is_refused(tmp_path, ending, value):
    row = {"query_id": "q1", "user_input": "why", "reference_context_ids": ["a"], "query": value}
    with refused(field="query"):
        Gold.of([row]).write(tmp_path / f"gold.{ending}")


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_field_that_holds_lists_is_written_or_refused(tmp_path, ending):
    gold = Gold.of([{"query_id": "q1", "relevant": ["a"], "tags": ["x", "y"]}])
    path = tmp_path / f"gold.{ending}"
    try:
        with warnings.catch_warnings(action="ignore", category=KaratWarning):
            gold.write(path)
    except InputError as error:
        assert "tags" in str(error)  # noqa: PT017  refusing is correct as well
    else:
        assert Gold.read(path).judgments.rows() == [("q1", "a", 1)]


def test_a_named_format_takes_precedence_over_the_ending(tmp_path):
    Run.of({"q1": ["b", "a"]}).write(tmp_path / "run.out", format="csv")
    assert (tmp_path / "run.out").read_text() == "query_id,rank,item_id\nq1,1,b\nq1,2,a\n"


# Runs in TREC format


def test_the_trec_writer_writes_ranks_and_scores(tmp_path):
    Run.of({"q1": {"a": 0.25, "b": 0.5}}, name="my run").write(tmp_path / "x.run")
    written = (tmp_path / "x.run").read_text()
    assert written == "q1 Q0 b 1 0.5 my_run\nq1 Q0 a 2 0.25 my_run\n"


def test_the_trec_writer_writes_n_to_1_for_a_list_without_scores(tmp_path):
    Run.of({"q1": ["b", "a"]}, name="r").write(tmp_path / "x.run")
    assert (tmp_path / "x.run").read_text() == "q1 Q0 b 1 2.0 r\nq1 Q0 a 2 1.0 r\n"


def test_where_order_and_scores_disagree_the_trec_writer_writes_n_to_1_and_warns(tmp_path):
    """A reranker may leave a new order with the scores of the old one."""
    results = [{"id": "b", "score": 0.1}, {"id": "a", "score": 0.9}]
    with pytest.warns(KaratWarning):
        run = Run.of([{"query_id": "q1", "results": results}], name="r")
    with pytest.warns(KaratWarning, match="scores"):
        run.write(tmp_path / "x.run")
    assert (tmp_path / "x.run").read_text() == "q1 Q0 b 1 2.0 r\nq1 Q0 a 2 1.0 r\n"


def test_ties_in_another_order_than_trec_gives_them_keep_their_order(tmp_path):
    results = [{"id": "a", "score": 1}, {"id": "b", "score": 1}]
    run = Run.of([{"query_id": "q1", "results": results}])
    with pytest.warns(KaratWarning, match="scores"):
        run.write(tmp_path / "x.run")
    assert lists(Run.read(tmp_path / "x.run")) == {"q1": ["a", "b"]}


@pytest.mark.parametrize("item", ["a b", "a\tb", "a\n"])
def test_the_trec_writer_refuses_ids_that_hold_white_space(tmp_path, item):
    with refused(field="item_id") as caught:
        Run.of({"q1": [item]}).write(tmp_path / "x.run")
    assert repr(item) in caught.value.problem


def test_the_trec_writer_refuses_a_query_that_would_be_a_comment(tmp_path):
    with refused(field="query_id") as caught:
        Gold.of({"#1": ["a"]}).write(tmp_path / "x.qrels")
    assert "'#1'" in caught.value.problem


def test_the_trec_writer_writes_every_item_that_the_reader_accepts(tmp_path):
    (tmp_path / "in.run").write_text("q1 Q0 #5 1 0.5 t\n")
    Run.read(tmp_path / "in.run").write(tmp_path / "out.run")
    assert lists(Run.read(tmp_path / "out.run")) == {"q1": ["#5"]}


# What a format cannot hold is reported


@pytest.mark.parametrize("ending", ["run", "csv", "tsv", "parquet"])
@pytest.mark.parametrize(
    "source",
    [
        [{"query_id": "q1", "results": ["a"]}, {"query_id": "q2", "results": []}],
        {"q1": {"a": 1.0}, "q2": {}},
    ],
    ids=["records", "dict"],
)
def test_lost_queries_without_results_are_reported(tmp_path, ending, source):
    with pytest.warns(KaratWarning, match="1 query"):
        Run.of(source).write(tmp_path / f"x.{ending}")


@pytest.mark.parametrize("ending", ["qrels", "csv", "tsv", "parquet"])
def test_lost_queries_without_judgments_are_reported(tmp_path, ending):
    gold = Gold.of({"q1": {"a": 1}, "q2": {}})
    with pytest.warns(KaratWarning, match="1 query"):
        gold.write(tmp_path / f"x.{ending}")


@pytest.mark.parametrize("ending", ["run", "json", "csv", "parquet"])
@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"latency_ms": {"total": 1.0}}, "timings"),
        ({"calls": [{"stage": "embed", "model": "m"}]}, "calls"),
    ],
    ids=["timings", "calls"],
)
def test_lost_timings_and_calls_are_reported(tmp_path, ending, part, word):
    run = Run.of([{"query_id": "q1", "results": ["a"], **part}])
    with pytest.warns(KaratWarning, match=word):
        run.write(tmp_path / f"x.{ending}")


@pytest.mark.parametrize("ending", ["run", "json"])
def test_lost_texts_of_items_are_reported(tmp_path, ending):
    run = Run.of([{"query_id": "q1", "results": [{"id": "a", "text": "how"}]}])
    with pytest.warns(KaratWarning, match="text"):
        run.write(tmp_path / f"x.{ending}")


@pytest.mark.parametrize("ending", ["qrels", "json"])
def test_lost_fields_of_queries_are_reported(tmp_path, ending):
    gold = Gold.of([{"query_id": "q1", "relevant": ["a"], "category": "billing"}])
    with pytest.warns(KaratWarning, match="category"):
        gold.write(tmp_path / f"x.{ending}")


@pytest.mark.parametrize("ending", ["qrels", "json", "csv", "parquet"])
def test_lost_spans_and_evidence_are_reported(tmp_path, ending):
    span = {"doc_id": "d", "start": 0, "end": 1}
    gold = Gold.of([{"query_id": "q1", "relevant": ["a"], "spans": [span], "evidence": ["x"]}])
    with pytest.warns(KaratWarning, match="spans, evidence"):
        gold.write(tmp_path / f"x.{ending}")


@pytest.mark.parametrize("ending", RUN_ENDINGS)
def test_a_run_with_an_item_without_an_id_returns_or_is_refused(tmp_path, ending):
    results = [{"id": "a", "score": 2.0}, {"doc_id": "d", "start": 0, "end": 4, "score": 1.0}]
    run = Run.of([{"query_id": "q1", "results": results}])
    path = tmp_path / f"x.{ending}"
    try:
        run.write(path)
    except InputError as error:
        assert "id" in str(error)  # noqa: PT017  refusing is correct as well
    else:
        assert lists(Run.read(path)) == {"q1": ["a", None]}


@pytest.mark.parametrize("ending", ["run", "json"])
def test_a_run_of_places_alone_is_refused_by_formats_of_ids(tmp_path, ending):
    run = Run.of([{"query_id": "q1", "results": [{"doc_id": "d", "start": 0, "end": 4}]}])
    with refused(field="item_id"):
        run.write(tmp_path / f"x.{ending}")


# Written completely or not at all


def test_a_failure_while_writing_leaves_nothing(tmp_path):
    def write_half() -> None:
        with files.writing(tmp_path / "x.run") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["x.run", "x.run.gz", "x.run.zst"])
def test_a_failure_while_writing_keeps_the_old_file(tmp_path, name):
    def write_half() -> None:
        with files.writing(tmp_path / name) as file:
            file.write(b"half")
            raise RuntimeError

    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_half()
    assert (tmp_path / name).read_bytes() == b"old"


def test_a_run_that_cannot_be_written_keeps_the_old_file(tmp_path):
    (tmp_path / "x.run").write_bytes(b"old")
    with pytest.raises(InputError):
        Run.of({"q1": ["fine", "not fine"]}).write(tmp_path / "x.run")
    assert (names(tmp_path), (tmp_path / "x.run").read_bytes()) == (["x.run"], b"old")


@pytest.mark.parametrize("name", ["csv", "tsv", "parquet", "arrow", "jsonl", "json", "trec"])
def test_full_disk_is_reported_with_its_reason(name):
    for data in (Gold.of({"q1": ["a"]}), Run.of({"q1": ["a"]})):
        with refused(path="/dev/full") as caught:
            data.write("/dev/full", format=name)
        assert "No space left on device" in caught.value.problem


def test_writing_replaces_an_old_file_and_leaves_no_temporary_file(tmp_path):
    (tmp_path / "x.run").write_bytes(b"old")
    Run.of({"q1": ["a"]}, name="r").write(tmp_path / "x.run")
    assert names(tmp_path) == ["x.run"]
    assert (tmp_path / "x.run").read_bytes() == b"q1 Q0 a 1 1.0 r\n"


def test_the_old_file_is_visible_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "x.run"
    path.write_bytes(b"old")
    with files.writing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["x.run.gz", "x.jsonl.gz", "x.csv.zst", "x.parquet", "x.arrow"])
def test_writing_is_deterministic(tmp_path, name):
    run = Run.of({"q1": ["a", "b"], "q2": ["c"]})
    run.write(tmp_path / name)
    first = (tmp_path / name).read_bytes()
    (tmp_path / "elsewhere").mkdir()
    run.write(tmp_path / "elsewhere" / name)
    assert (tmp_path / "elsewhere" / name).read_bytes() == first


def test_a_gzip_file_names_neither_its_file_nor_the_time(tmp_path):
    Run.of({"q1": ["a"]}).write(tmp_path / "secret.run.gz")
    content = (tmp_path / "secret.run.gz").read_bytes()
    assert b"secret" not in content
    assert content[4:8] == bytes(4)


def test_a_gzip_file_is_closed_when_it_is_written(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        Run.of({"q1": ["a"]}, name="r").write(tmp_path / "x.run.gz")
    assert [str(warning.message) for warning in caught] == []


def test_a_gzip_file_holds_what_was_written(tmp_path):
    Run.of({"q1": ["a"]}, name="r").write(tmp_path / "x.run.gz")
    assert gzip.decompress((tmp_path / "x.run.gz").read_bytes()) == b"q1 Q0 a 1 1.0 r\n"


# Several parts


def test_several_files_make_one_run(tmp_path):
    (tmp_path / "part-1.run").write_text("q1 Q0 a 1 0.5 t\n")
    (tmp_path / "part-2.jsonl").write_text('{"query_id": "q2", "results": ["b"]}\n')
    assert lists(Run.read(tmp_path / "part-*")) == {"q1": ["a"], "q2": ["b"]}


def test_several_files_make_one_gold(tmp_path):
    (tmp_path / "part-1.qrels").write_text("q1 0 a 1\n")
    (tmp_path / "part-2.qrels").write_text("q1 0 b 2\nq2 0 c 1\n")
    gold = Gold.read(str(tmp_path / "*.qrels"))
    assert sorted(gold.judgments.rows()) == [("q1", "a", 1), ("q1", "b", 2), ("q2", "c", 1)]


def test_parts_keep_the_queries_that_retrieved_nothing_or_failed(tmp_path):
    (tmp_path / "1.jsonl").write_text('{"query_id": "q1", "results": []}\n')
    (tmp_path / "2.jsonl").write_text('{"query_id": "q2", "error": {"type": "Timeout"}}\n')
    run = Run.read(tmp_path / "*.jsonl")
    assert (sorted(run.query_ids), run.failed) == (["q1", "q2"], 1)


def test_parts_keep_timings_and_calls(tmp_path):
    for query in ("q1", "q2"):
        (tmp_path / f"{query}.jsonl").write_text(
            f'{{"query_id": "{query}", "results": ["a"], "latency_ms": {{"total": 1}},'
            ' "calls": [{"stage": "embed"}]}\n'
        )
    run = Run.read(tmp_path / "*.jsonl")
    assert (run.timings.height, run.calls.height) == (2, 2)


def test_parts_keep_the_fields_that_only_some_of_them_have(tmp_path):
    (tmp_path / "1.jsonl").write_text('{"query_id": "q1", "relevant": ["a"], "level": "easy"}\n')
    (tmp_path / "2.jsonl").write_text('{"query_id": "q2", "relevant": ["a"], "topic": "x"}\n')
    gold = Gold.read(tmp_path / "*.jsonl")
    assert sorted(gold.fields) == ["level", "topic"]


def test_parts_whose_fields_differ_in_type_are_read_or_refused(tmp_path):
    (tmp_path / "1.jsonl").write_text('{"query_id": "q1", "relevant": ["a"], "level": "easy"}\n')
    (tmp_path / "2.jsonl").write_text('{"query_id": "q2", "relevant": ["a"], "level": ["x"]}\n')
    try:
        assert Gold.read(tmp_path / "*.jsonl").queries.height == 2
    except InputError as error:
        assert "level" in str(error)  # noqa: PT017  refusing is correct as well


def test_parts_whose_calls_differ_in_type_are_read_or_refused(tmp_path):
    for query, model in (("q1", '"m"'), ("q2", '["m"]')):
        (tmp_path / f"{query}.jsonl").write_text(
            f'{{"query_id": "{query}", "results": ["a"], "calls": [{{"model": {model}}}]}}\n'
        )
    try:
        assert Run.read(tmp_path / "*.jsonl").calls.height == 2
    except InputError as error:
        assert "model" in str(error)  # noqa: PT017  refusing is correct as well


def test_an_existing_file_takes_precedence_over_a_pattern(tmp_path):
    (tmp_path / "run[1].run").write_text("q1 Q0 a 1 0.5 t\n")
    (tmp_path / "run1.run").write_text("q1 Q0 b 1 0.5 t\n")
    assert lists(Run.read(tmp_path / "run[1].run")) == {"q1": ["a"]}


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"q1 0 a 1\nq1 0 b 2\n",))
    writer.start()
    assert Gold.read(pipe).judgments.height == 2
    writer.join()


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_compressed_content_is_detected_without_its_ending(tmp_path, ending):
    packed = tmp_path / f"x.run.{ending}"
    Run.of({"q1": {"a": 0.5}}).write(packed)
    packed.rename(tmp_path / "x.run")
    assert lists(Run.read(tmp_path / "x.run")) == {"q1": ["a"]}


def test_a_name_that_the_system_refuses_is_an_input_error(tmp_path):
    path = tmp_path / ("x" * 300 + ".jsonl")
    with refused(path=path):
        Run.of({"q1": ["a"]}).write(path)


def test_a_link_keeps_pointing_to_its_file(tmp_path):
    (tmp_path / "real.run").write_text("old")
    (tmp_path / "link.run").symlink_to("real.run")
    Run.of({"q1": ["a"]}).write(tmp_path / "link.run")
    assert (tmp_path / "link.run").is_symlink()
    assert (tmp_path / "real.run").read_text() == "q1 Q0 a 1 1.0 karat\n"


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "private.run"
    path.touch(mode=0o600)
    Run.of({"q1": ["a"]}).write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(path.read_text)
        Run.of({"q1": ["a"]}).write(path, format="trec")
        assert read.result() == "q1 Q0 a 1 1.0 karat\n"
    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 251 + ".run")
    Run.of({"q1": ["a"]}).write(path)
    assert path.read_text() == "q1 Q0 a 1 1.0 karat\n"


KILLED_WHILE_WRITING = """
import os, sys
from karat.files import writing, writing_folder
context = (writing if sys.argv[1] == "file" else writing_folder)(sys.argv[2])
context.__enter__()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="process ids of POSIX")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_temporary_file_of_a_killed_process_is_removed_by_the_next_writer(tmp_path, kind):
    words = [sys.executable, "-c", KILLED_WHILE_WRITING, kind, str(tmp_path / "scores.csv")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        (temporary,) = tmp_path.iterdir()
        with writing(tmp_path / "first.csv"):
            pass
        assert temporary.exists(), "the file of a living process is kept"
        process.kill()
    elsewhere = tmp_path / temporary.name.replace(temporary.name.split("-")[1], "0" * 8)
    elsewhere.touch()
    with writing(tmp_path / "second.csv"):
        pass
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"first.csv", "second.csv", elsewhere.name}, "files of other hosts are kept"
