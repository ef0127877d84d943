"""`karat run` on a file that exists: continue what is unfinished, refuse what is finished."""

import json
import os
import sys
import time

import pytest

import karat
from karat.errors import InputError

GOLD = [{"query_id": f"q{n}", "query": f"question {n}", "relevant": ["a"]} for n in range(4)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    karat.Gold.of(GOLD).write("gold.jsonl")
    yield tmp_path
    sys.modules.pop("mine_finished", None)


def write_retriever(result):
    with open("mine_finished.py", "w") as file:
        file.write(f"def search(query, top_k):\n    return {result!r}\n")
    sys.modules.pop("mine_finished", None)


WORDS = ["run", "gold.jsonl", "-r", "mine_finished:search", "-o", "run.jsonl", "--no-progress"]


def test_a_finished_file_is_refused_and_overwritten_on_request(command, project):
    write_retriever(["x"])
    code, _, err = command(*WORDS)
    assert code == 0
    assert "wrote run.jsonl" in err
    before = (project / "run.jsonl").read_bytes()
    write_retriever(["a"])
    os.utime("run.jsonl", (time.time() - 200,) * 2)
    code, out, err = command(*WORDS)
    assert (code, out) == (2, "")
    assert "wrote" not in err
    assert "4 queries, finished 3 min ago" in err
    assert "--overwrite" in err
    assert (project / "run.jsonl").read_bytes() == before
    assert command(*WORDS, "--overwrite")[0] == 0
    assert karat.evaluate("gold.jsonl", "run.jsonl", "RR")["RR"] == 1.0


def test_an_unfinished_file_is_continued_with_missing_and_failed_queries_only(project):
    asked = []

    def search(query, top_k):
        asked.append(query)
        if query == "question 1" and asked.count(query) == 1:
            raise RuntimeError("once")
        return ["a"]

    karat.retrieve(search, GOLD[:3], output="run.jsonl", retries=0, jobs=1, fail_on_error=1)
    lines = (project / "run.jsonl").read_text().splitlines(keepends=True)
    (project / "run.jsonl").write_text("".join(lines[:-1]))  # the last query was never answered
    asked[:] = [query for query in asked if query == "question 1"]
    run = karat.retrieve(search, GOLD[:3], output="run.jsonl", retries=0, jobs=1)
    assert sorted(asked) == ["question 1", "question 1", "question 2"]
    assert run.failed == 0
    lines = (project / "run.jsonl").read_text().splitlines()
    ids = [json.loads(line)["query_id"] for line in lines[1:]]
    assert sorted(ids) == ["q0", "q1", "q2"]
    with pytest.raises(InputError) as error:
        karat.retrieve(search, GOLD[:3], output="run.jsonl", retries=0, jobs=1)
    assert error.value.path.endswith("run.jsonl")
    karat.retrieve(search, GOLD[:3], output="run.jsonl", retries=0, jobs=1, overwrite=True)


def test_a_changed_source_stops_a_run_from_being_continued(command, project):
    write_retriever(["x"])
    assert command(*WORDS)[0] == 0
    lines = (project / "run.jsonl").read_text().splitlines(keepends=True)
    (project / "run.jsonl").write_text("".join(lines[:-2]))
    write_retriever(["a"])
    code, _, err = command(*WORDS)
    assert code == 2
    assert "--overwrite" in err
    assert (project / "run.jsonl").read_text() == "".join(lines[:-2])
    write_retriever(["x"])
    assert command(*WORDS)[0] == 0


def test_a_run_with_too_many_failures_keeps_its_answers_and_exits_with_2(command, project):
    with open("mine_finished.py", "w") as file:
        file.write(
            "def search(query, top_k):\n"
            "    if query.endswith('3'):\n        raise RuntimeError('down')\n    return ['a']\n"
        )
    code, out, _ = command(*WORDS, "--retries", "0")
    assert code == 2
    assert out
    assert karat.Run.read("run.jsonl").failed == 1
    assert command(*WORDS, "--retries", "0", "--fail-on-error", "0.25")[0] == 0
