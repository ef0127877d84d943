"""Runs that are killed at every system call and at random moments, interrupted and terminated."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.effort import FULL
from support.paths import TESTS

KILLS = 25 if FULL else 3
COUNT = 300 if FULL else 150
QUERIES = [f"{at:03}" for at in range(COUNT)]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

# Queries from the limit on are never answered, so that a run with a lower limit cannot end.
SEARCH = """
import pathlib, time

LIMIT = int(pathlib.Path("limit").read_text())

def search(query):
    time.sleep(600 if int(query.split()[-1]) >= LIMIT else 0.004)
    if query.endswith("3"):
        raise ValueError(query)
    return [{"id": query, "score": 0.5, "text": "x" * 2_000}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text("".join(f"{query}\tquery number {query}\n" for query in QUERIES))
    Path("searching.py").write_text(SEARCH)
    Path("limit").write_text(str(COUNT))
    return tmp_path


def start_run() -> subprocess.Popen:
    run = ["run", "queries.tsv", "-r", "searching:search", "-o", "run.jsonl", "-j", "4"]
    options = ["--retries", "0", "--fail-on-error", "1", "--no-progress"]
    command = [sys.executable, "-m", "karat", *run, *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def whole_lines(path: Path) -> list[bytes]:
    """Return the lines that have an end; a torn line may follow the last one."""
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def finished_queries(path: Path) -> dict[str, dict]:
    """Return the records by query, and check that no query has two."""
    records = [json.loads(line) for line in whole_lines(path)[1:]]
    by_query = {record["query_id"]: record for record in records}
    assert len(by_query) == len(records)
    return by_query


def answered(records: dict[str, dict]) -> dict[str, dict]:
    """Return the records of queries that did not fail; the others run again."""
    return {query: record for query, record in records.items() if "error" not in record}


def check_complete(path: Path) -> None:
    records = finished_queries(path)
    assert path.read_bytes().endswith(b"\n")
    assert set(records) == set(QUERIES)
    for query, record in records.items():
        text = record["error"]["message"] if "error" in record else record["results"][0]["id"]
        assert text == f"query number {query}"
        assert ("error" in record) == (int(query) % 10 == 3)
    assert list(path.parent.glob(".*")) == []


def wait_for_lines(path: Path, count: int, process: subprocess.Popen) -> None:
    """Wait until the file has this many lines or the process has ended."""
    until = time.monotonic() + 60
    while len(whole_lines(path)) < count and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.002)


def test_process_killed_at_any_system_call_leaves_a_run_that_can_be_finished(tmp_path):
    script = TESTS / "support" / "kill_points.py"
    words = [sys.executable, "-W", "ignore", script, tmp_path / "run.jsonl"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    points = [int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()]
    assert len(points) == 21
    assert sum(points) > 150


def test_run_killed_several_times_is_finished_without_losing_or_doubling_a_query(folder):
    path = folder / "run.jsonl"
    chance = random.Random(8)
    kills = 0
    while kills < KILLS:
        before = finished_queries(path)
        process = start_run()
        # Some are killed while they start, most while they write the file.
        if chance.random() < 0.8:
            wait_for_lines(path, len(before) + 1 + chance.randrange(40), process)
            time.sleep(chance.random() * 0.02)
        else:
            time.sleep(chance.random())
        process.kill()
        code = process.wait()
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
        after = finished_queries(path)
        assert answered(before).items() <= after.items()
        if len(after) == COUNT:
            check_complete(path)
            path.unlink()
    assert start_run().wait() == 0
    check_complete(path)


def test_run_that_is_interrupted_or_terminated_is_finished_by_the_same_command(folder):
    path = folder / "run.jsonl"
    finished: dict[str, dict] = {}
    for sent, code, limit in ((signal.SIGINT, 130, 70), (signal.SIGTERM, 143, 140)):
        Path("limit").write_text(str(limit))
        process = start_run()
        wait_for_lines(path, len(finished) + 20, process)
        process.send_signal(sent)
        assert process.wait(60) == code
        before, finished = finished, finished_queries(path)
        assert len(before) < len(finished) < COUNT
        assert answered(before).items() <= finished.items()
        assert path.read_bytes().endswith(b"\n")
    Path("limit").write_text(str(COUNT))
    assert start_run().wait() == 0
    check_complete(path)
    assert answered(finished).items() <= finished_queries(path).items()
