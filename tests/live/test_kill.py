"""Runs that are killed, interrupted and asked to end, at every call and at random moments."""

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

KILLS = 50 if FULL else 6
COUNT = 300

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

SEARCH = """
import time

def search(query):
    time.sleep(0.004)
    if query.endswith("3"):
        raise ValueError(query)
    return [{"id": query, "score": 0.5, "text": "x" * 2_000}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text("".join(f"{at}\tquery number {at}\n" for at in range(COUNT)))
    Path("searching.py").write_text(SEARCH)
    return tmp_path


def started(*words: str) -> subprocess.Popen:
    asked = ["run", "queries.tsv", "-r", "searching:search", "-o", "run.jsonl", "-j", "4"]
    how = ["--retries", "0", "--fail-on-error", "1", "--no-progress"]
    command = [sys.executable, "-m", "karat", *asked, *how, *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def whole_lines(path: Path) -> list[bytes]:
    """Return the lines that have an end; what follows the last one is torn."""
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def finished(path: Path) -> dict[str, dict]:
    """Return the records by query, having checked that none stands there twice."""
    records = [json.loads(line) for line in whole_lines(path)[1:]]
    by_query = {record["query_id"]: record for record in records}
    assert len(by_query) == len(records)
    return by_query


def check_complete(path: Path) -> None:
    records = finished(path)
    assert path.read_bytes().endswith(b"\n")
    assert set(records) == set(map(str, range(COUNT)))
    for query, record in records.items():
        text = f"query number {query}"
        told = record["error"]["message"] if "error" in record else record["results"][0]["id"]
        assert text in told
        assert ("error" in record) == (int(query) % 10 == 3)
    assert sorted(each.name for each in path.parent.iterdir() if each.name.startswith(".")) == []


def wait_for_lines(path: Path, count: int, process: subprocess.Popen) -> None:
    """Wait until so many lines are there, which they are soon unless something hangs."""
    until = time.monotonic() + 60
    while len(whole_lines(path)) < count and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.002)


def test_a_process_killed_at_any_of_its_calls_leaves_a_run_that_can_be_finished(tmp_path):
    script = TESTS / "support" / "kill_points.py"
    words = [sys.executable, "-W", "ignore", script, tmp_path / "run.jsonl"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    points = [int(told.rsplit(" ", 1)[1]) for told in done.stdout.splitlines()]
    assert len(points) == 21
    assert sum(points) > 150


def test_a_run_killed_again_and_again_ends_complete_with_nothing_lost_or_doubled(folder):
    path = folder / "run.jsonl"
    chance = random.Random(8)
    kills = starts = 0
    while kills < KILLS:
        before = finished(path)
        starts += 1
        again = starts % 3 == 0
        process = started(*["--retry-errors"] * again)
        # Some are killed while they read and mend, most in the midst of writing.
        if chance.random() < 0.8:
            wait_for_lines(path, len(before) + 1 + chance.randrange(40), process)
        time.sleep(chance.random() * 0.02)
        process.kill()
        code = process.wait()
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
        after = finished(path)
        lost = set(before) - set(after)
        assert not lost or again
        assert all("error" in before[query] for query in lost)
        if len(after) == COUNT:
            check_complete(path)
            path.unlink()
    assert started().wait() == 0
    check_complete(path)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_interrupted_or_asked_to_end_is_finished_by_the_same_command(
    folder, sent, code
):
    path = folder / "run.jsonl"
    process = started()
    wait_for_lines(path, 20, process)
    process.send_signal(sent)
    assert process.wait(60) == code
    before = finished(path)
    assert 0 < len(before) < COUNT
    assert path.read_bytes().endswith(b"\n")
    assert started().wait() == 0
    check_complete(path)
    assert before.items() <= finished(path).items()
