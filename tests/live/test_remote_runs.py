"""Runs against servers and commands that fail: what stands in the lines in the end."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import msgspec
import pytest

from karat.live.adapters.command import CommandRetriever
from karat.live.adapters.fields import Fields
from karat.live.adapters.http import HttpRetriever
from karat.live.asking import ask_all
from karat.live.exchange import Pace, Question, Search, encoded
from support import live_server
from support.live_server import saying, serving

SECRET = "s3cr3t-w0rd"


def run(retriever, *queries, **pace):
    """Ask everything; return the lines by query, in order."""
    lines = []
    questions = [Question(f"q{n}", query) for n, query in enumerate(queries)]
    ask_all(retriever, questions, Search(top_k=2), Pace(**pace), lines.append)
    return sorted(lines, key=lambda line: int(line.query_id[1:]))


def http(url, headers=None):
    return HttpRetriever(url, Search(top_k=2), Fields(), headers or {}, {})


def ids(line):
    return [result.id for result in line.results]


@pytest.mark.parametrize(
    "failure",
    [
        saying(b"down", 500),
        saying(b"slow down", 429, Retry_After="0"),
        live_server.silent,
        live_server.resetting,
        live_server.cutting,
        saying(b"<html>"),
        live_server.no_http,
    ],
)
def test_what_passes_is_asked_again(failure):
    with serving(live_server.failing_first(1, failure)) as server:
        lines = run(http(server.url), "a", "b", jobs=2, retries=1)
    assert [ids(line) for line in lines] == [["a-0", "a-1"], ["b-0", "b-1"]]
    assert [line.attempts for line in lines] == [2, 2]
    assert [line.error for line in lines] == [None, None]


def test_what_stays_is_a_result():
    with serving(saying(b"no such index", 500)) as server:
        (line,) = run(http(server.url), "a", retries=1)
    assert line.results == []
    assert (line.error.type, line.error.message, line.error.attempts) == (
        "HTTP 500",
        "no such index",
        2,
    )


def test_what_will_be_refused_again_is_asked_once():
    with serving(saying(b"who are you", 401)) as server:
        (line,) = run(http(server.url), "a", retries=5)
    assert line.error.attempts == 1
    assert len(server.asked) == 1


def test_a_server_that_hangs_is_given_up():
    def respond(handler, question):
        hangs = question["query"] == "b"
        (live_server.hanging if hangs else live_server.echo)(handler, question)

    with serving(respond) as server:
        lines = run(http(server.url), "a", "b", "c", jobs=1, timeout=1.5, retries=0)
    assert [ids(line) for line in lines] == [["a-0", "a-1"], [], ["c-0", "c-1"]]
    assert lines[1].error.type == "Timeout"


def test_the_time_of_an_answer_is_that_of_the_server():
    with serving(live_server.slow(0.2)) as server:
        lines = run(http(server.url), *"abcd", jobs=2)
    assert all(200 <= line.latency_ms["total"] < 10_000 for line in lines)


def test_a_server_under_many_failures_loses_no_question():
    lock, count = threading.Lock(), iter(range(10**9))
    ways = [live_server.echo, saying(b"", 503), live_server.cutting, live_server.leaving]
    ways += [live_server.silent, saying(b"{"), live_server.resetting, live_server.echo]

    def respond(handler, question):
        with lock:
            way = ways[next(count) % len(ways)]
        way(handler, question)

    queries = [f"query {n}" for n in range(60)]
    with serving(respond) as server:
        lines = run(http(server.url), *queries, jobs=16, retries=2)
    assert [line.query_id for line in lines] == [f"q{n}" for n in range(60)]
    for query, line in zip(queries, lines, strict=True):
        assert line.error or ids(line) == [f"{query}-0", f"{query}-1"]


def test_no_secret_stands_in_a_line():
    def respond(handler, question):
        said = f"{handler.headers['Authorization']} {handler.path}".encode()
        ways = [saying(said, 403), saying(said), saying(b"", 302, Location="/?" + said.decode())]
        ways[int(question["query"])](handler, question)

    with serving(respond) as server:
        url = f"{server.url}?api_key={SECRET}"
        lines = run(http(url, {"Authorization": f"Bearer {SECRET}"}), "0", "1", "2", retries=0)
    assert len(lines) == 3
    assert all(line.error for line in lines)
    assert SECRET not in b"".join(map(encoded, lines)).decode()


def test_a_command_that_fails_now_and_then_loses_no_question(tmp_path):
    path = tmp_path / "retrieve.py"
    path.write_text(
        "import json, os, sys, time\n"
        "for count, line in enumerate(sys.stdin):\n"
        "    asked = json.loads(line)\n"
        "    way = os.getpid() % 4 if count == 3 else None\n"
        "    if way == 0: sys.exit(1)\n"
        "    if way == 1: print('garbage')\n"
        "    if way == 2: time.sleep(600)\n"
        "    print(json.dumps({'results': [asked['query']], 'query_id': asked['query_id']}))\n"
    )
    queries = [f"query {n}" for n in range(40)]
    retriever = CommandRetriever(f"{sys.executable} {path}", Search(), Fields())
    lines = run(retriever, *queries, jobs=4, retries=3, timeout=2.0)
    assert [ids(line) for line in lines] == [[query] for query in queries]


def test_listening_to_a_new_process_is_not_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr("karat.live.adapters.process._SETTLING", 1)
    path = tmp_path / "retrieve.py"
    path.write_text("import sys\nfor line in sys.stdin: print('[1]')\n")
    began = time.perf_counter()
    (line,) = run(CommandRetriever(f"{sys.executable} {path}", Search(), Fields()), "a")
    passed = time.perf_counter() - began
    assert 0 < line.latency_ms["total"] <= (passed - 1) * 1000


def test_lines_of_a_command_are_those_of_a_native_run(tmp_path):
    path = tmp_path / "retrieve.py"
    answer = {
        "results": [{"id": 7, "score": 0.5, "doc_id": "d", "start": 0, "end": 4, "text": "ähm"}],
        "latency_ms": {"rerank": 3.5},
        "calls": [{"model": "m", "prompt_tokens": 9}],
    }
    path.write_text(f"import sys\nfor line in sys.stdin: print({json.dumps(answer)!r})\n")
    retriever = CommandRetriever(f"{sys.executable} {path}", Search(), Fields())
    (line,) = run(retriever, "a")
    told = msgspec.json.decode(encoded(line))
    assert told["latency_ms"].pop("total") > 0
    assert told == {"query_id": "q0", **answer, "results": [{**answer["results"][0], "id": "7"}]}


def test_no_process_outlives_a_run_that_is_interrupted(tmp_path):
    child = tmp_path / "retrieve.py"
    child.write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "name = f'pid-{os.getpid()}'\n"
        "for count, line in enumerate(sys.stdin):\n"
        "    open(name, 'w')\n"
        "    time.sleep(600)\n"
    )
    program = f"""
        from karat.live.adapters.command import CommandRetriever
        from karat.live.adapters.fields import Fields
        from karat.live.asking import ask_all
        from karat.live.exchange import Pace, Question, Search

        retriever = CommandRetriever({f"{sys.executable} {child}"!r}, Search(), Fields())
        questions = [Question(str(n), "why") for n in range(9)]
        ask_all(retriever, questions, Search(), Pace(jobs=3), print)
    """
    running = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, stderr=subprocess.PIPE
    )
    while len(list(tmp_path.glob("pid-*"))) < 3 and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    pids = [path.name.removeprefix("pid-") for path in tmp_path.glob("pid-*")]
    assert len(pids) == 3
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
