"""The journal: whatever ends a run, going on with it loses no query and doubles none."""

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
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.data import Run
from karat.data.native_lines import Header
from karat.data.native_run import Failure, Result
from karat.errors import InputError
from karat.live.exchange import Line
from karat.live.file import Journal
from karat.live.file import journal as module
from support.effort import FULL

examples = settings(max_examples=2_000 if FULL else 80, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("journal")


def header(**settings: object) -> Header:
    told = {"retriever": "app:search", "top_k": 20, "jobs": 8, "queries": {"count": 6}}
    return Header(1, "run", "mine", settings=told | settings)


def line(query: str, *, failed: bool = False, text: str = "") -> Line:
    if failed:
        return Line(query, [], error=Failure("Timeout", "too slow", 3))
    return Line(query, [Result(f"item of {query}", 0.5, text=text or None)], {"total": 1.5})


def written(path: Path, lines: list[Line], **settings: object) -> bytes:
    path.unlink(missing_ok=True)
    with Journal.open(path, header(**settings)) as journal:
        for each in lines:
            journal.write(each)
    return path.read_bytes()


def records(path: Path) -> list[dict]:
    content = path.read_bytes()
    assert content.endswith(b"\n")
    return [json.loads(each) for each in content.split(b"\n")[:-1]]


def query_ids(path: Path) -> list[str]:
    told, *rest = records(path)
    assert told["kind"] == "run"
    return [record["query_id"] for record in rest]


def failure(path: Path, told: Header | None = None, **how: bool) -> InputError:
    with pytest.raises(InputError) as caught:
        Journal.open(path, told or header(), **how)
    return caught.value


# Going on


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@examples
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=6),
    cut=st.floats(0, 1),
    failing=st.sets(st.integers(0, 5)),
    retry=st.booleans(),
)
def test_a_run_cut_off_at_any_byte_is_finished_without_a_query_lost_or_doubled(
    folder, texts, cut, failing, retry
):
    path = folder / "cut.jsonl"
    queries = {
        f"q{at}": line(f"q{at}", failed=at in failing, text=text) for at, text in enumerate(texts)
    }
    whole = written(path, list(queries.values()))
    part = whole[: round(cut * len(whole))]
    path.write_bytes(part)
    # A line is whole if all its bytes are there; the mark that ends it adds nothing.
    held = [each for each in whole.split(b"\n")[1:-1] if each in part.split(b"\n")[1:]]
    expected = {json.loads(each)["query_id"]: "error" in json.loads(each) for each in held}

    with Journal.open(path, header(), retry_errors=retry) as journal:
        done = set(journal.done)
        assert done == {query for query, failed in expected.items() if not (failed and retry)}
        for query, each in queries.items():
            if query not in done:
                journal.write(each)

    assert sorted(path.read_bytes().split(b"\n")) == sorted(whole.split(b"\n"))
    assert not list(folder.glob(".*"))


def test_every_single_cut_of_one_file_is_mended(folder):
    path = folder / "each.jsonl"
    whole = written(path, [line("é"), line("q2", failed=True), line("q3")])
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        with Journal.open(path, header()) as journal:
            for query in {"é", "q2", "q3"} - set(journal.done):
                journal.write(line(query))
        assert sorted(query_ids(path)) == ["q2", "q3", "é"]


def test_a_run_that_goes_on_can_be_read_after_every_line(folder):
    path = folder / "read.jsonl"
    path.unlink(missing_ok=True)
    with Journal.open(path, header()) as journal:
        for at in range(3):
            journal.write(line(f"q{at}", failed=at == 1))
            run = Run.read(path)
            assert run.query_ids.len() == at + 1
    assert run.settings == header().settings


def test_a_whole_last_line_that_only_lacks_its_end_is_kept(folder):
    path = folder / "end.jsonl"
    path.write_bytes(written(path, [line("q1"), line("q2")])[:-1])
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1", "q2"}
        journal.write(line("q3"))
    assert query_ids(path) == ["q1", "q2", "q3"]


def test_a_torn_line_is_cut_off_even_where_something_ended_it(folder):
    path = folder / "ended.jsonl"
    whole = written(path, [line("q1"), line("q2")])
    path.write_bytes(whole[:-20] + b"\n")
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1"}
    assert query_ids(path) == ["q1"]


def test_what_a_power_loss_leaves_of_the_last_lines_is_cut_off(folder):
    path = folder / "zeros.jsonl"
    whole = written(path, [line("q1")])
    path.write_bytes(whole + b"\0" * 4096)
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1"}
    assert path.read_bytes() == whole


def test_nothing_is_written_to_a_run_that_is_whole(folder):
    path = folder / "whole.jsonl"
    written(path, [line("q1"), line("q2", failed=True)])
    before = path.stat()
    with Journal.open(path, header()) as journal:
        assert journal.done["q2"] == Failure("Timeout", "too slow", 3)
        assert journal.done["q1"] is None
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_failed_queries_are_taken_out_to_be_asked_again(folder):
    path = folder / "failed.jsonl"
    written(path, [line("q1", failed=True), line("q2"), line("q3", failed=True)])
    path.chmod(0o640)
    with Journal.open(path, header(), retry_errors=True) as journal:
        assert set(journal.done) == {"q2"}
        assert query_ids(path) == ["q2"]
        assert "another process" in failure(path).problem
        journal.write(line("q1"))
    assert query_ids(path) == ["q2", "q1"]
    assert path.stat().st_mode & 0o777 == 0o640


def test_no_resume_begins_anew_whatever_stands_there(folder):
    path = folder / "anew.jsonl"
    path.write_text("a shopping list\n")
    with Journal.open(path, header(), resume=False) as journal:
        assert journal.done == {}
        journal.write(line("q1"))
    assert query_ids(path) == ["q1"]


def test_a_link_keeps_pointing_to_its_run(folder):
    path, link = folder / "target.jsonl", folder / "link.jsonl"
    written(path, [line("q1", failed=True)])
    link.symlink_to(path)
    with Journal.open(link, header(), retry_errors=True) as journal:
        journal.write(line("q2"))
    assert link.is_symlink()
    assert query_ids(path) == ["q2"]


# Settings


def test_other_settings_are_named_with_what_they_were_and_the_file_stays(folder):
    path = folder / "settings.jsonl"
    whole = written(path, [line("q1")], filter=["a=b"])[:-5]
    path.write_bytes(whole)
    now = header(top_k=50, queries={"count": 5}, rerank_top_n=3)
    error = failure(path, now)
    assert error.problem == (
        "this run was begun with other settings: top_k 20 → 50; queries.count 6 → 5; "
        'filter ["a=b"] → none; rerank_top_n none → 3'
    )
    assert "-o" in error.hint
    assert "--no-resume" in error.hint
    assert path.read_bytes() == whole


def test_queries_with_other_texts_are_told_apart(folder):
    path = folder / "texts.jsonl"
    written(path, [line("q1")], queries={"count": 6, "sha256": "a" * 64})
    error = failure(path, header(queries={"count": 6, "sha256": "b" * 64}))
    assert error.problem.endswith("settings: queries (other ids or other texts)")


def test_a_file_that_was_renamed_is_gone_on_with_by_its_first_name(folder):
    path = folder / "name.jsonl"
    written(path, [line("q1")])
    before = path.read_bytes()
    with Journal.open(path, msgspec.structs.replace(header(), name="yours")) as journal:
        assert set(journal.done) == {"q1"}
    assert path.read_bytes() == before


def test_how_fast_a_run_was_asked_may_change_and_is_told(folder):
    path = folder / "pace.jsonl"
    written(path, [line("q1")], started="monday", timeout=60.0)
    for pace in ({"jobs": 4}, {"jobs": 8, "rate": 2.5}, {"jobs": 4, "rate": 2.5}):
        Journal.open(path, header(started="friday", timeout=60.0, **pace)).close()
    told = records(path)[0]["settings"]
    assert (told["jobs"], told["rate"], told["timeout"]) == ([8, 4], [None, 2.5], 60.0)
    assert told["started"] == "monday"
    assert query_ids(path) == ["q1"]


def test_a_run_that_is_finished_tells_of_no_pace_it_was_not_asked_at(folder):
    path = folder / "finished.jsonl"
    whole = written(path, [line(f"q{at}") for at in range(6)])
    Journal.open(path, header(jobs=1)).close()
    assert path.read_bytes() == whole


def test_settings_that_json_writes_otherwise_still_agree(folder):
    path = folder / "tuple.jsonl"
    written(path, [line("q1")], handed=("top_k", "rerank_top_n"))
    with Journal.open(path, header(handed=("top_k", "rerank_top_n"))) as journal:
        assert set(journal.done) == {"q1"}


# Refusals


@pytest.mark.parametrize("name", ["run.jsonl.gz", "run.jsonl.zst", "run.csv", "run"])
def test_only_a_file_of_lines_can_be_written_line_by_line(folder, name):
    assert "karat convert" in failure(folder / name).hint
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
def test_a_file_that_is_something_else_is_left_as_it_is(folder, content):
    path = folder / "else.jsonl"
    path.write_bytes(content)
    error = failure(path)
    assert (error.line, "left as it is" in error.problem) == (1, True)
    assert "--no-resume" in error.hint
    assert path.read_bytes() == content


def test_a_run_of_a_later_format_is_left_as_it_is(folder):
    path = folder / "later.jsonl"
    path.write_bytes(b'{"karat":2,"kind":"run"}\n')
    assert "newer karat" in failure(path).hint


@pytest.mark.parametrize("broken", [b'{"query_id":"q2","res', b'{"results":[]}', b"\xff\xff"])
def test_a_broken_line_among_others_is_named(folder, broken):
    path = folder / "broken.jsonl"
    first, second, third = written(path, [line("q1"), line("q3")]).splitlines(keepends=True)
    content = first + second + broken + b"\n" + third
    path.write_bytes(content)
    error = failure(path)
    assert (error.line, error.hint) == (3, "delete the line, and its query is asked again")
    assert path.read_bytes() == content


def test_a_last_line_that_is_whole_and_no_line_of_a_run_is_not_thrown_away(folder):
    path = folder / "last.jsonl"
    path.write_bytes(written(path, [line("q1")]) + b'{"id":"q2","results":[]}\n')
    assert failure(path).line == 3


def test_a_query_that_stands_twice_is_named(folder):
    path = folder / "twice.jsonl"
    whole = written(path, [line("q1"), line("q2")])
    path.write_bytes(whole + whole.splitlines(keepends=True)[1])
    error = failure(path)
    assert (error.line, error.problem) == (4, "query 'q1' stands there twice")


def test_a_folder_a_pipe_and_a_missing_folder_are_refused(folder):
    (folder / "made.jsonl").mkdir()
    assert "directory" in failure(folder / "made.jsonl").problem
    os.mkfifo(folder / "pipe.jsonl")
    assert "no plain file" in failure(folder / "pipe.jsonl").problem
    assert "does not exist" in failure(folder / "nowhere" / "run.jsonl").problem


# One process a file


HOLDER = """
import sys, time
from karat.data.native_lines import Header
from karat.live.file import Journal
journal = Journal.open(sys.argv[1], Header(1, "run", "mine"))
print("held", flush=True)
time.sleep(600)
"""


def test_a_second_process_is_refused_until_the_first_is_gone_even_by_kill(folder):
    path = folder / "held.jsonl"
    told = Header(1, "run", "mine")
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        for how in ({}, {"resume": False}, {"retry_errors": True}):
            assert failure(path, told, **how).problem == "another process is writing this run"
    finally:
        holder.kill()
        holder.communicate()
    Journal.open(path, told).close()
    assert [name.name for name in folder.iterdir() if "held" in name.name] == ["held.jsonl"]


FORKED = """
import os, sys, time
from karat.data.native_lines import Header
from karat.live.file import Journal
journal = Journal.open(sys.argv[1], Header(1, "run", "mine"))
if not os.fork():
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_forked_does_not_hold_the_file(folder):
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


def test_a_file_that_was_replaced_before_it_was_locked_is_opened_again(folder, monkeypatch):
    path, new = folder / "raced.jsonl", folder / "new.jsonl"
    written(path, [line("q1")])
    written(new, [line("q1"), line("q2")])
    hold = module.HeldFile.__init__.__globals__["locking"].hold

    def replaced_meanwhile(descriptor, name):
        if new.exists():
            new.replace(path)
        hold(descriptor, name)

    monkeypatch.setattr("karat.live.file.locking.hold", replaced_meanwhile)
    with Journal.open(path, header()) as journal:
        assert set(journal.done) == {"q1", "q2"}


def test_a_disk_without_locks_is_refused(folder, monkeypatch):
    def without(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("karat.live.file.locking._lock", without)
    assert "local disk" in failure(folder / "unlocked.jsonl").hint


def test_many_threads_write_whole_lines(folder):
    path = folder / "threads.jsonl"
    path.unlink(missing_ok=True)
    with Journal.open(path, header()) as journal:

        def write(at: int) -> None:
            for each in range(50):
                journal.write(line(f"{at}-{each}", text="x" * 5_000))

        threads = [threading.Thread(target=write, args=[at]) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(query_ids(path))) == 400


# What fails while writing


class Disk:
    """A disk that takes a few bytes at a time, and at some point is full."""

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


@examples
@given(room=st.integers(0, 500), at_a_time=st.integers(1, 200))
def test_a_full_disk_leaves_whole_lines_and_the_run_can_be_finished(folder, room, at_a_time):
    path = folder / "full.jsonl"
    written(path, [])
    finished = []

    def ask_all() -> None:
        with Journal.open(path, header()) as journal:
            for at in range(20):
                journal.write(line(f"q{at}"))
                finished.append(f"q{at}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", Disk(room, at_a_time))
        with pytest.raises(InputError, match="No space"):
            ask_all()
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
    monkeypatch.setattr(os, "ftruncate", Disk(0, 1))  # nor can the torn line be taken back
    with pytest.raises(InputError, match="No space"):
        journal.write(line("q1"))
    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "ftruncate", cut)
    for _ in range(2):
        with pytest.raises(InputError, match="No space"):
            journal.write(line("q2"))
    with pytest.raises(InputError, match="No space"):
        journal.close()
    assert path.read_bytes().endswith(b'\n{"query_id')
    with Journal.open(path, header()) as journal:
        journal.write(line("q3"))
    assert query_ids(path) == ["q3"]


@pytest.mark.parametrize("before", [True, False])
def test_an_interrupt_within_a_write_leaves_no_torn_line(folder, monkeypatch, before):
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


def test_a_second_interrupt_while_a_line_is_taken_back_leaves_no_torn_line_either(
    folder, monkeypatch
):
    path = folder / "interrupts.jsonl"
    written(path, [])
    write = os.write
    with Journal.open(path, header()) as journal:
        with monkeypatch.context() as patch:

            def interrupted(*given):
                if isinstance(given[1], memoryview):
                    write(given[0], given[1][:20])
                raise KeyboardInterrupt

            patch.setattr(os, "write", interrupted)
            patch.setattr(os, "ftruncate", interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.write(line("q1"))
        journal.write(line("q2"))
    assert query_ids(path) == ["q2"]


def test_a_disk_that_cannot_sync_stops_the_run(folder, monkeypatch):
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


def test_a_rewrite_that_fails_leaves_the_old_file_and_nothing_beside(folder, monkeypatch):
    path = folder / "rewrite.jsonl"
    whole = written(path, [line("q1", failed=True), line("q2")])

    def broken(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    assert "Input/output error" in failure(path, retry_errors=True).problem
    assert path.read_bytes() == whole
    assert not list(folder.glob(".*"))
    monkeypatch.undo()
    Journal.open(path, header()).close()


def test_what_a_killed_rewrite_left_beside_is_taken_away(folder):
    path = folder / "scrap.jsonl"
    written(path, [line("q1")])
    (folder / ".scrap.jsonl.karat-part").write_text("half a li")
    Journal.open(path, header()).close()
    assert not list(folder.glob(".scrap*"))


@pytest.mark.parametrize("what", ["removed", "moved", "replaced", "cut"])
def test_a_run_does_not_go_on_into_a_file_that_nobody_finds(folder, what):
    path, other = folder / "gone.jsonl", folder / "moved.jsonl"
    written(path, [line("q1")])
    journal = Journal.open(path, header())
    if what == "removed":
        path.unlink()
    elif what == "moved":
        path.rename(other)
    elif what == "replaced":
        other.write_text("mine")
        other.replace(path)
    else:
        os.truncate(path, 5)
    with pytest.raises(InputError, match=r"somebody (moved|cut)"):
        _write_until_it_fails(journal)
    with pytest.raises(InputError, match=r"somebody (moved|cut)"):
        journal.close()
    if what == "replaced":
        assert path.read_text() == "mine"


def _write_until_it_fails(journal: Journal) -> None:
    for at in range(3_000):
        journal.write(line(f"w{at}"))
        time.sleep(0.01)


def test_lines_are_synced_while_the_run_goes_on(folder, monkeypatch):
    path = folder / "often.jsonl"
    written(path, [])
    synced = threading.Event()
    fsync = os.fsync

    def told(descriptor):
        fsync(descriptor)
        if b'"q1"' in path.read_bytes():
            synced.set()

    monkeypatch.setattr(os, "fsync", told)
    with Journal.open(path, header()) as journal:
        journal.write(line("q1"))
        assert synced.wait(60)


def test_the_header_is_on_the_disk_before_the_first_line(folder, monkeypatch):
    path = folder / "header.jsonl"
    path.unlink(missing_ok=True)
    fsync = os.fsync
    synced = []

    def told(descriptor):
        fsync(descriptor)
        synced.append(os.path.samestat(os.fstat(descriptor), folder.stat()))

    monkeypatch.setattr(os, "fsync", told)
    monkeypatch.setattr(module, "SYNC_SECONDS", 600)
    journal = Journal.open(path, header())
    assert synced == [False, True]
    journal.close()


def test_an_error_of_the_run_is_not_hidden_by_one_of_the_file(folder):
    path = folder / "hidden.jsonl"
    written(path, [])

    def ask_all() -> None:
        with Journal.open(path, header()):
            path.unlink()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask_all()


def test_karat_eval_says_who_repairs_a_torn_run(folder, command):
    path, gold = folder / "repair.jsonl", folder / "gold.jsonl"
    gold.write_text('{"query_id":"q1","relevant":["a"]}\n')
    path.write_bytes(written(path, [line("q1"), line("q2")])[:-9])
    code, _, err = command("eval", gold, path)
    assert code == 2
    assert re.search(r"repair.jsonl:3: .*\n  hint: .*karat run", err)
