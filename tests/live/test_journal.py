"""The journal: however a run ends, resuming it neither loses nor doubles a query."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data import Run
from karat.data.formats.json_lines import Header
from karat.data.formats.native_run import Failure, ResultRow
from karat.errors import InputError, KaratWarning
from karat.live import journal as module
from karat.live import locked_file
from karat.live.journal import Journal
from karat.live.protocol import JournalLine
from support.effort import examples
from support.errors import refused

RUN_ID = "0a1b2c3d"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("journal")


@pytest.fixture(autouse=True, scope="module")
def _fast_disk():
    """Sync often, but do not wait for the disk; and give all runs the same id."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.secrets, "token_hex", lambda _: RUN_ID)
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(module, "SYNC_SECONDS", 0.02)
        yield


def header(**settings: object) -> Header:
    usual = {"retriever": "app:search", "top_k": 20, "jobs": 8, "queries": {"count": 6}}
    return Header(1, "run", "mine", settings=usual | settings)


def line(query: str, *, failed: bool = False, text: str = "") -> JournalLine:
    if failed:
        return JournalLine(query, [], error=Failure("Timeout", "too slow", 3))
    return JournalLine(
        query, [ResultRow(f"item of {query}", 0.5, text=text or None)], {"total": 1.5}
    )


def written(path: Path, lines: list[JournalLine], **settings: object) -> bytes:
    path.unlink(missing_ok=True)
    with Journal.open(path, header(**settings)) as journal:
        for one in lines:
            journal.write(one)
    return path.read_bytes()


def records(path: Path) -> list[dict]:
    content = path.read_bytes()
    assert content.endswith(b"\n")
    return [json.loads(one) for one in content.split(b"\n")[:-1]]


def query_ids(path: Path) -> list[str]:
    first, *rest = records(path)
    assert first["kind"] == "run"
    return [record["query_id"] for record in rest]


def failure(path: Path, header_now: Header | None = None, **options: bool) -> InputError:
    with refused(path=path) as caught:
        Journal.open(path, header_now or header(), **options)
    return caught.value


# Resuming


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@examples(50, 600)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=6),
    cut=st.floats(0, 1),
    failing=st.sets(st.integers(0, 5)),
)
def test_run_cut_at_any_byte_is_finished_without_losing_or_doubling_a_query(
    folder, texts, cut, failing
):
    path = folder / "cut.jsonl"
    queries = {
        f"q{at}": line(f"q{at}", failed=at in failing, text=text) for at, text in enumerate(texts)
    }
    now = header(queries={"count": len(queries)})
    whole = written(path, list(queries.values()), **now.settings)
    part = whole[: round(cut * len(whole))]
    path.write_bytes(part)
    # A line is whole if all its bytes are there, even without its line break.
    kept = [one for one in whole.split(b"\n")[1:-1] if one in part.split(b"\n")[1:]]
    answered = {record["query_id"] for record in map(json.loads, kept) if "error" not in record}

    if answered == set(queries):
        assert failure(path, now).__cause__ is None
        assert path.read_bytes() == part
        return
    with Journal.open(path, now) as journal:
        assert set(journal.done) == answered
        for query, one in queries.items():
            if query not in answered:
                journal.write(one)

    assert sorted(path.read_bytes().split(b"\n")) == sorted(whole.split(b"\n"))
    assert not list(folder.glob(".*"))


def test_every_cut_of_one_file_is_repaired(folder):
    path = folder / "each.jsonl"
    whole = written(path, [line("é"), line("q2", failed=True), line("q3")])
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        with Journal.open(path, header()) as journal:
            for query in {"é", "q2", "q3"} - set(journal.done):
                journal.write(line(query))
        assert sorted(query_ids(path)) == ["q2", "q3", "é"]


def test_unfinished_run_can_be_read_after_every_line(folder):
    path = folder / "read.jsonl"
    path.unlink(missing_ok=True)
    with Journal.open(path, header()) as journal:
        for at in range(3):
            journal.write(line(f"q{at}", failed=at == 1))
            run = Run.read(path)
            assert run.query_ids.len() == at + 1
    assert run.settings == header().settings


def test_last_line_without_line_break_is_kept_if_it_is_whole(folder):
    path = folder / "end.jsonl"
    path.write_bytes(written(path, [line("q1"), line("q2")])[:-1])
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1", "q2"}
        journal.write(line("q3"))
    assert query_ids(path) == ["q1", "q2", "q3"]


def test_torn_line_is_cut_off_even_if_it_has_a_line_break(folder):
    path = folder / "ended.jsonl"
    whole = written(path, [line("q1"), line("q2")])
    path.write_bytes(whole[:-20] + b"\n")
    with pytest.warns(KaratWarning, match="line 3"), Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1"}
    assert query_ids(path) == ["q1"]


def test_zeros_that_a_power_loss_leaves_are_cut_off(folder):
    path = folder / "zeros.jsonl"
    whole = written(path, [line("q1")])
    path.write_bytes(whole + b"\0" * 4096)
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1"}
    assert path.read_bytes() == whole


def test_unfinished_run_without_failures_is_not_rewritten(folder):
    path = folder / "whole.jsonl"
    written(path, [line("q1"), line("q2")])
    before = path.stat()
    with Journal.open(path, header()) as journal:
        assert journal.done == {"q1": None, "q2": None}
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_failed_queries_are_removed_to_run_again(folder):
    path = folder / "failed.jsonl"
    written(path, [line("q1", failed=True), line("q2"), line("q3", failed=True)])
    path.chmod(0o640)
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q2"}
        assert query_ids(path) == ["q2"]
        assert isinstance(failure(path).__cause__, BlockingIOError)
        journal.write(line("q1"))
    assert query_ids(path) == ["q2", "q1"]
    assert path.stat().st_mode & 0o777 == 0o640


def test_any_file_is_overwritten_on_request(folder):
    path = folder / "anew.jsonl"
    finished = written(path, [line(f"q{at}") for at in range(6)])
    for content in (b"a shopping list\n", finished):
        path.write_bytes(content)
        with Journal.open(path, header(), overwrite=True) as journal:
            assert journal.done == {}
            journal.write(line("q1"))
        assert query_ids(path) == ["q1"]


def test_link_keeps_pointing_to_its_run(folder):
    path, link = folder / "target.jsonl", folder / "link.jsonl"
    written(path, [line("q1", failed=True)])
    link.symlink_to(path)
    with Journal.open(link, header()) as journal:
        journal.write(line("q2"))
    assert link.is_symlink()
    assert query_ids(path) == ["q2"]


# Settings


def test_changed_settings_are_refused_with_both_values_and_the_file_is_kept(folder):
    path = folder / "settings.jsonl"
    whole = written(path, [line("q1"), line("q2")], filter=["a=b"])[:-5]
    path.write_bytes(whole)
    now = header(top_k=50, queries={"count": 5}, rerank_top_n=3)
    error = failure(path, now)
    for part in ("top_k 20 → 50", "queries.count 6 → 5", 'filter ["a=b"] → ', "rerank_top_n"):
        assert part in error.problem
    assert "→ 3" in error.problem
    assert "retriever" not in error.problem
    assert error.hint
    assert path.read_bytes() == whole


def test_queries_with_other_texts_are_refused(folder):
    path = folder / "texts.jsonl"
    written(path, [line("q1")], queries={"count": 6, "sha256": "a" * 64})
    error = failure(path, header(queries={"count": 6, "sha256": "b" * 64}))
    assert "queries" in error.problem
    assert "aaaa" not in error.problem


def test_renamed_file_is_resumed_with_its_first_name(folder):
    path = folder / "name.jsonl"
    written(path, [line("q1")])
    before = path.read_bytes()
    with Journal.open(path, msgspec.structs.replace(header(), name="yours")) as journal:
        assert set(journal.done) == {"q1"}
    assert path.read_bytes() == before


def test_jobs_and_rate_may_change_and_all_values_are_kept(folder):
    path = folder / "pace.jsonl"
    written(path, [line("q1")], started="monday", timeout=60.0)
    for pace in ({"jobs": 4}, {"jobs": 8, "rate": 2.5}, {"jobs": 4, "rate": 2.5}):
        Journal.open(path, header(started="friday", timeout=60.0, **pace)).close()
    settings = records(path)[0]["settings"]
    assert (settings["jobs"], settings["rate"]) == ([8, 4], [None, 2.5])
    assert (settings["timeout"], settings["started"]) == (60.0, "monday")
    assert query_ids(path) == ["q1"]


def test_finished_run_is_refused_and_not_written_to(folder):
    path = folder / "finished.jsonl"
    written(path, [line(f"q{at}") for at in range(6)])
    before = path.stat()
    for settings in ({}, {"jobs": 1}, {"top_k": 50}):
        error = failure(path, header(**settings))
        assert "6 queries" in error.problem
        assert "--overwrite" in error.hint
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_run_in_which_every_query_has_a_line_but_one_failed_is_continued(folder):
    path = folder / "unfinished.jsonl"
    written(path, [line(f"q{at}", failed=at == 3) for at in range(6)])
    with Journal.open(path, header(jobs=1)) as journal:
        assert {f"q{at}" for at in range(6)} - set(journal.done) == {"q3"}
        journal.write(line("q3"))
    assert records(path)[0]["settings"]["jobs"] == [8, 1]
    assert "6 queries" in failure(path).problem


def test_settings_are_compared_as_json_writes_them(folder):
    path = folder / "tuple.jsonl"
    written(path, [line("q1")], handed=("top_k", "rerank_top_n"))
    with Journal.open(path, header(handed=("top_k", "rerank_top_n"))) as journal:
        assert set(journal.done) == {"q1"}


# Refusals


@pytest.mark.parametrize("name", ["run.jsonl.gz", "run.jsonl.zst", "run.csv", "run"])
def test_file_that_is_not_json_lines_is_refused(folder, name):
    error = failure(folder / name)
    assert repr(Path(name).suffix) in error.problem
    assert error.hint
    assert not (folder / name).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"a shopping list\n",
        b'{"karat":1,"kind":"gold"}\n{"query_id":"q1"}\n',
        b'{"query_id":"q1","results":[]}\n',
        b'{"karat":1,"kind":"run","settings":7}\n',
        b"7\n",
    ],
)
def test_file_that_is_not_a_run_is_kept(folder, content):
    path = folder / "else.jsonl"
    path.write_bytes(content)
    error = failure(path)
    assert (error.line, error.field) == (1, None)
    assert error.hint
    assert path.read_bytes() == content


def test_run_of_a_newer_format_is_refused(folder):
    path = folder / "later.jsonl"
    path.write_bytes(b'{"karat":2,"kind":"run"}\n')
    error = failure(path)
    assert (error.line, error.field) == (1, "karat")
    assert "2" in error.problem


@pytest.mark.parametrize("broken", [b'{"query_id":"q2","res', b"\xff\xff", b"[" * 10**5])
def test_damaged_line_is_removed_with_a_warning_and_its_query_runs_again(folder, broken):
    path = folder / "broken.jsonl"
    first, second, third = written(path, [line("q1"), line("q3")]).splitlines(keepends=True)
    path.write_bytes(first + second + broken + b"\n" + third)
    with pytest.warns(KaratWarning, match="line 3"), Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1", "q3"}
    assert path.read_bytes() == first + second + third


def test_run_that_was_cut_within_a_line_is_continued(folder):
    path = folder / "cut-within.jsonl"
    whole = written(path, [line("q1"), line("q2")])
    appended = b"".join(written(path, [line("q3"), line("q4")]).splitlines(keepends=True)[1:])
    for size in range(len(whole) - len(whole.splitlines()[2]), len(whole) - 1):
        path.write_bytes(whole[:size] + appended)  # as O_APPEND does after another's truncate
        with pytest.warns(KaratWarning, match="line 3"):
            journal = Journal.open(path, header())
        with journal:
            assert set(journal.done) == {"q1", "q4"}
            journal.write(line("q2"))
            journal.write(line("q3"))
        assert query_ids(path) == ["q1", "q4", "q2", "q3"]


def test_json_that_is_not_a_line_of_a_run_is_refused(folder):
    path = folder / "other.jsonl"
    first, second, third = written(path, [line("q1"), line("q3")]).splitlines(keepends=True)
    content = first + second + b'{"results":[]}\n' + third
    path.write_bytes(content)
    error = failure(path)
    assert (error.line, error.field) == (3, None)
    assert error.hint
    assert path.read_bytes() == content


# Lines that another process appended


@pytest.mark.parametrize("run_id", [None, "ffffffff"])
def test_line_of_another_process_is_refused_and_the_file_is_kept(folder, run_id):
    path = folder / "foreign.jsonl"
    foreign = line("q2")
    foreign.run_id = run_id
    content = written(path, [line("q1")]) + msgspec.json.encode(foreign) + b"\n"
    path.write_bytes(content)
    error = failure(path)
    assert error.line == 3
    assert "delete the line" in error.hint
    assert path.read_bytes() == content


def test_lines_are_not_checked_if_the_header_has_no_run_id(folder):
    path = folder / "older.jsonl"
    other = line("q2")
    other.run_id = "ffffffff"
    parts = (header(), line("q1"), other)
    path.write_bytes(b"".join(msgspec.json.encode(part) + b"\n" for part in parts))
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1", "q2"}
        journal.write(line("q3"))
    assert query_ids(path) == ["q1", "q2", "q3"]
    assert "run_id" not in records(path)[-1]


def test_each_file_has_its_own_run_id_and_reads_as_a_run(folder):
    path = folder / "ids.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.secrets, "token_hex", lambda size: os.urandom(size).hex())
        written(path, [line("q1")])
        first = {record["run_id"] for record in records(path)}
        written(path, [line("q1")])
        second = {record["run_id"] for record in records(path)}
    assert len(first) == len(second) == 1
    assert first != second
    run = Run.read(path)
    assert run.results["item_id"].to_list() == ["item of q1"]
    assert "run_id" not in run.settings


def test_line_that_another_process_appends_stops_the_run(folder):
    path = folder / "appended.jsonl"
    path.unlink(missing_ok=True)
    journal = Journal.open(path, header())
    journal.write(line("q1"))
    with path.open("ab") as other:
        other.write(b'{"query_id":"q9","results":["x"]}\n')
    with refused(path=path):
        journal.close()
    assert failure(path).line == 3


def test_run_without_answers_is_begun_anew_with_other_settings(folder):
    path = folder / "no-answers.jsonl"
    written(path, [line("q1", failed=True)])
    with Journal.open(path, header(fields={"query": "question"})) as journal:
        assert journal.done == {}
        journal.write(line("q1"))
    assert records(path)[0]["settings"]["fields"] == {"query": "question"}
    assert query_ids(path) == ["q1"]


def test_last_line_that_is_json_but_not_of_a_run_is_refused(folder):
    path = folder / "last.jsonl"
    path.write_bytes(written(path, [line("q1")]) + b'{"id":"q2","results":[]}\n')
    assert failure(path).line == 3


def test_duplicate_query_is_refused(folder):
    path = folder / "twice.jsonl"
    whole = written(path, [line("q1"), line("q2")])
    path.write_bytes(whole + whole.splitlines(keepends=True)[1])
    error = failure(path)
    assert (error.line, error.field) == (4, "query_id")
    assert "'q1'" in error.problem


def test_folder_pipe_and_missing_folder_are_refused(folder):
    paths = [folder / "made.jsonl", folder / "pipe.jsonl", folder / "nowhere" / "run.jsonl"]
    paths[0].mkdir()
    os.mkfifo(paths[1])
    assert len({failure(path).problem for path in paths}) == 3


# One process per file


HOLDER = """
import sys, time
from karat.data.formats.json_lines import Header
from karat.live.journal import Journal
journal = Journal.open(sys.argv[1], Header(1, "run", "mine"))
print("held", flush=True)
time.sleep(600)
"""


def test_second_process_is_refused_until_the_first_was_killed(folder):
    path = folder / "held.jsonl"
    header = Header(1, "run", "mine")
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        for options in ({}, {"overwrite": True}):
            assert isinstance(failure(path, header, **options).__cause__, BlockingIOError)
    finally:
        holder.kill()
        holder.communicate()
    Journal.open(path, header).close()
    assert [name.name for name in folder.iterdir() if "held" in name.name] == ["held.jsonl"]


FORKED = """
import os, sys, time
from karat.data.formats.json_lines import Header
from karat.live.journal import Journal
journal = Journal.open(sys.argv[1], Header(1, "run", "mine"))
if not os.fork():
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_child_of_a_killed_process_does_not_lock_the_file(folder):
    path = folder / "forked.jsonl"
    words = [sys.executable, "-W", "ignore", "-c", FORKED, path]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        child = int(process.stdout.readline())
        process.kill()
        process.wait()
        try:
            with Journal.open(path, Header(1, "run", "mine")) as journal:
                assert journal.done == {}
        finally:
            os.kill(child, signal.SIGKILL)


def test_file_replaced_before_it_was_locked_is_opened_again(folder, monkeypatch):
    path, new = folder / "raced.jsonl", folder / "new.jsonl"
    written(path, [line("q1")])
    written(new, [line("q1"), line("q2")])
    hold = locked_file.lock_file

    def hold_late(descriptor, name):
        if new.exists():
            new.replace(path)
        hold(descriptor, name)

    monkeypatch.setattr(locked_file, "lock_file", hold_late)
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1", "q2"}


def test_disk_without_locks_is_refused(folder, monkeypatch):
    def without(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locked_file, "_lock", without)
    error = failure(folder / "unlocked.jsonl")
    assert "No locks available" in error.problem
    assert error.hint


def test_many_threads_write_whole_lines(folder):
    path = folder / "threads.jsonl"
    path.unlink(missing_ok=True)
    with Journal.open(path, header()) as journal:

        def write(at: int) -> None:
            for number in range(50):
                journal.write(line(f"{at}-{number}", text="x" * 5_000))

        threads = [threading.Thread(target=write, args=[at]) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(query_ids(path))) == 400


# Failures while writing


class Disk:
    """A disk that takes a few bytes at a time until it is full."""

    def __init__(self, room: int, at_a_time: int) -> None:
        self.room = room
        self.at_a_time = at_a_time
        self.write = os.write

    def __call__(self, descriptor, content):
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.write(descriptor, content[: min(self.at_a_time, self.room)])
        self.room -= taken
        return taken


@examples(50, 600)
@given(room=st.integers(0, 500), at_a_time=st.integers(1, 200))
def test_full_disk_leaves_whole_lines_and_a_run_that_can_be_finished(folder, room, at_a_time):
    path = folder / "full.jsonl"
    written(path, [])
    finished = []

    def write_all() -> None:
        with Journal.open(path, header()) as journal:
            for at in range(20):
                journal.write(line(f"q{at}"))
                finished.append(f"q{at}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", Disk(room, at_a_time))
        with refused(path=path) as caught:
            write_all()
        assert "No space left" in caught.value.problem
    assert query_ids(path) == finished
    with Journal.open(path, header()) as journal:
        assert list(journal.done) == finished


def test_no_line_follows_one_that_could_not_be_written(folder, monkeypatch):
    path = folder / "torn.jsonl"
    written(path, [])
    journal = Journal.open(path, header())
    write, cut = os.write, os.ftruncate
    disk = Disk(10, 10)
    monkeypatch.setattr(os, "write", disk)
    monkeypatch.setattr(os, "ftruncate", Disk(0, 1))  # the torn line cannot be removed either
    with pytest.raises(InputError, match="No space left"):
        journal.write(line("q1"))
    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "ftruncate", cut)
    for _ in range(2):
        with pytest.raises(InputError, match="No space left"):
            journal.write(line("q2"))
    with pytest.raises(InputError, match="No space left"):
        journal.close()
    assert path.read_bytes().endswith(b'\n{"query_id')
    with Journal.open(path, header()) as journal:
        journal.write(line("q3"))
    assert query_ids(path) == ["q3"]


@pytest.mark.parametrize("before", [True, False])
def test_interrupt_within_a_write_leaves_no_torn_line(folder, monkeypatch, before):
    path = folder / "interrupt.jsonl"
    written(path, [])
    write = os.write
    pieces = iter([20, 30])

    def interrupted(descriptor, content):
        size = next(pieces, None)
        if size is None:
            if not before:
                write(descriptor, content)
            raise KeyboardInterrupt
        return write(descriptor, content[:size])

    with Journal.open(path, header()) as journal:
        monkeypatch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.write(line("q1"))
        monkeypatch.setattr(os, "write", write)
        journal.write(line("q2"))
    assert query_ids(path) == ["q2"]


def test_second_interrupt_while_a_line_is_removed_leaves_no_torn_line(folder, monkeypatch):
    path = folder / "interrupts.jsonl"
    written(path, [])
    write = os.write
    with Journal.open(path, header()) as journal:
        with monkeypatch.context() as patch:

            def interrupted(descriptor, content):
                if isinstance(content, memoryview):
                    write(descriptor, content[:20])
                raise KeyboardInterrupt

            patch.setattr(os, "write", interrupted)
            patch.setattr(os, "ftruncate", interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.write(line("q1"))
        journal.write(line("q2"))
    assert query_ids(path) == ["q2"]


def test_failing_sync_stops_the_run(folder, monkeypatch):
    path = folder / "sync.jsonl"
    written(path, [])

    def broken(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    journal = Journal.open(path, header())
    with pytest.raises(InputError, match="Input/output error"):
        _write_until_it_fails(journal)
    monkeypatch.undo()
    with pytest.raises(InputError, match="Input/output error"):
        journal.close()


def test_failed_rewrite_leaves_the_old_file_and_no_other(folder, monkeypatch):
    path = folder / "rewrite.jsonl"
    whole = written(path, [line("q1", failed=True), line("q2")])

    def broken(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    assert "Input/output error" in failure(path).problem
    assert path.read_bytes() == whole
    assert not list(folder.glob(".*"))
    monkeypatch.undo()
    Journal.open(path, header()).close()


def test_file_that_a_killed_rewrite_left_is_removed(folder):
    path = folder / "scrap.jsonl"
    written(path, [line("q1")])
    (folder / ".scrap.jsonl.karat-part").write_text("half a li")
    Journal.open(path, header()).close()
    assert not list(folder.glob(".scrap*"))


@pytest.mark.parametrize("change", ["removed", "moved", "replaced", "cut"])
def test_run_stops_if_its_file_is_removed_moved_replaced_or_cut(folder, change):
    path, other = folder / "gone.jsonl", folder / "moved.jsonl"
    written(path, [line("q1")])
    journal = Journal.open(path, header())
    if change == "removed":
        path.unlink()
    elif change == "moved":
        path.rename(other)
    elif change == "replaced":
        other.write_text("mine")
        other.replace(path)
    else:
        os.truncate(path, 5)
    with refused(path=path) as caught:
        _write_until_it_fails(journal)
    assert caught.value.__cause__ is None  # noticed, not a failed write
    with refused(path=path):
        journal.close()
    if change == "replaced":
        assert path.read_text() == "mine"


def _write_until_it_fails(journal: Journal) -> None:
    for at in range(3_000):
        journal.write(line(f"w{at}"))
        time.sleep(0.01)


def test_lines_are_synced_during_the_run(folder, monkeypatch):
    path = folder / "often.jsonl"
    written(path, [])
    synced = threading.Event()

    def fsync(_):
        if b'"q1"' in path.read_bytes():
            synced.set()

    monkeypatch.setattr(os, "fsync", fsync)
    with Journal.open(path, header()) as journal:
        journal.write(line("q1"))
        assert synced.wait(60)


def test_header_is_on_the_disk_before_the_first_line(folder, monkeypatch):
    path = folder / "header.jsonl"
    path.unlink(missing_ok=True)
    synced = []

    def fsync(descriptor):
        synced.append(os.path.samestat(os.fstat(descriptor), folder.stat()))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(module, "SYNC_SECONDS", 600)
    journal = Journal.open(path, header())
    assert synced == [False, True]
    journal.close()


def test_error_of_the_file_does_not_hide_an_error_of_the_run(folder):
    path = folder / "hidden.jsonl"
    written(path, [])

    def write_all() -> None:
        with Journal.open(path, header()):
            path.unlink()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_all()


def test_eval_refuses_a_torn_run_with_its_line(folder, command):
    path, gold = folder / "repair.jsonl", folder / "gold.jsonl"
    gold.write_text('{"query_id":"q1","relevant":["a"]}\n')
    path.write_bytes(written(path, [line("q1"), line("q2")])[:-9])
    code, out, err = command("eval", gold, path)
    assert (code, out) == (2, "")
    assert re.search(r"repair\.jsonl:3: .*\n  3 \| .*\n.*\^\n  hint: ", err)
