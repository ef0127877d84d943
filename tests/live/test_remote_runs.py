"""Runs with servers and commands that fail: the lines that are written in the end."""

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

from karat.live.loop_thread import run_all_queries
from karat.live.protocol import Query, Search, encode_line
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.command import CommandRetriever
from karat.live.retrievers.http import HttpRetriever
from karat.live.run_options import RunOptions
from support import live_server
from support.fake_retrievers import without_pauses
from support.live_server import saying, serving

SECRET = "s3cr3t-w0rd"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """Retry at once, and do not wait for a process to fail at its start."""
    monkeypatch.setattr("karat.live.retrievers.command._STARTUP_SECONDS", 0)
    with without_pauses():
        yield


def run(retriever, *queries, **options):
    """Run all queries; return their lines in order."""
    lines = []
    numbered = [Query(f"q{n}", text) for n, text in enumerate(queries)]
    options = RunOptions(**{"top_k": 2, "stop_after_failures": 0} | options)
    run_all_queries(retriever, numbered, options, lines.append)
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
        live_server.not_http,
    ],
)
def test_temporary_failure_is_retried(failure):
    with serving(live_server.failing_first(1, failure)) as server:
        lines = run(http(server.url), "a", "b", jobs=2, retries=1)
    assert [ids(line) for line in lines] == [["a-0", "a-1"], ["b-0", "b-1"]]
    assert [line.attempts for line in lines] == [2, 2]
    assert [line.error for line in lines] == [None, None]


def test_lasting_failure_is_written_as_an_error():
    with serving(saying(b"no such index", 500)) as server:
        (line,) = run(http(server.url), "a", retries=1)
    assert line.results == []
    assert (line.error.type, line.error.message, line.error.attempts) == (
        "HTTP 500",
        "no such index",
        2,
    )


def test_failure_that_a_retry_cannot_help_is_not_retried():
    with serving(saying(b"who are you", 401)) as server:
        (line,) = run(http(server.url), "a", retries=5)
    assert line.error.attempts == 1
    assert len(server.requests) == 1


DEEP = b"[" * 100_000


def test_answer_of_a_server_that_is_nested_too_deeply_is_reported_as_that():
    with serving(saying(DEEP + b"]" * len(DEEP))) as server:
        (line,) = run(http(server.url), "a", retries=5)
    assert (line.error.type, line.error.attempts) == ("BadAnswer", 1)
    assert "nested too deeply" in line.error.message


def test_answer_of_a_command_that_is_nested_too_deeply_is_reported_as_that(tmp_path):
    path = tmp_path / "retrieve.py"
    path.write_text("import sys\nfor line in sys.stdin: print('[' * 100_000)\n")
    retriever = CommandRetriever(f"{sys.executable} {path}", Search(), Fields())
    (line,) = run(retriever, "a", retries=5)
    assert (line.error.type, line.error.attempts) == ("BadAnswer", 1)
    assert "nested too deeply" in line.error.message


def test_query_times_out_when_the_server_hangs():
    def respond(handler, request):
        hangs = request["query"] == "b"
        (live_server.hanging if hangs else live_server.echo)(handler, request)

    with serving(respond) as server:
        lines = run(http(server.url), "a", "b", "c", jobs=1, timeout=0.6, retries=0)
    assert [ids(line) for line in lines] == [["a-0", "a-1"], [], ["c-0", "c-1"]]
    assert lines[1].error.type == "Timeout"


def test_latency_is_the_time_of_the_server():
    with serving(live_server.slow(0.1)) as server:
        lines = run(http(server.url), *"abcd", jobs=2)
    assert all(100 <= line.latency_ms["total"] < 10_000 for line in lines)


def test_no_query_is_lost_when_the_server_fails_often():
    lock, count = threading.Lock(), iter(range(10**9))
    ways = [live_server.echo, saying(b"", 503), live_server.cutting, live_server.leaving]
    ways += [live_server.silent, saying(b"{"), live_server.resetting, live_server.echo]

    def respond(handler, request):
        with lock:
            way = ways[next(count) % len(ways)]
        way(handler, request)

    queries = [f"query {n}" for n in range(60)]
    with serving(respond) as server:
        lines = run(http(server.url), *queries, jobs=16, retries=2)
    assert [line.query_id for line in lines] == [f"q{n}" for n in range(60)]
    for query, line in zip(queries, lines, strict=True):
        assert line.error or ids(line) == [f"{query}-0", f"{query}-1"]


def test_secrets_are_not_written_to_lines():
    def respond(handler, request):
        echoed = f"{handler.headers['Authorization']} {handler.path}"
        body = echoed.encode()
        ways = [saying(body, 403), saying(body), saying(b"", 302, Location=f"/?{echoed}")]
        ways[int(request["query"])](handler, request)

    with serving(respond) as server:
        url = f"{server.url}?api_key={SECRET}"
        lines = run(http(url, {"Authorization": f"Bearer {SECRET}"}), "0", "1", "2", retries=0)
    assert len(lines) == 3
    assert all(line.error for line in lines)
    assert SECRET not in b"".join(map(encode_line, lines)).decode()


def test_no_query_is_lost_when_the_command_fails_often(tmp_path, monkeypatch):
    path = tmp_path / "retrieve.py"
    # Each process fails at its fourth query, in the way of the file that it takes first.
    path.write_text(
        "import json, os, sys, time\n"
        "for count, line in enumerate(sys.stdin):\n"
        "    request = json.loads(line)\n"
        "    way = None\n"
        "    for name in sorted(os.listdir('ways')) if count == 3 else ():\n"
        "        try: os.remove(f'ways/{name}')\n"
        "        except FileNotFoundError: continue\n"
        "        way = name[1:]\n"
        "        break\n"
        "    if way == 'exit': sys.exit(1)\n"
        "    if way == 'garbage': print('garbage')\n"
        "    if way == 'hang': time.sleep(600)\n"
        "    print(json.dumps({'results': [request['query']], 'query_id': request['query_id']}))\n"
    )
    ways = tmp_path / "ways"
    ways.mkdir()
    for name in ("0hang", "1exit", "2garbage", "3exit", "4garbage"):
        (ways / name).touch()
    queries = [f"query {n}" for n in range(40)]
    retriever = CommandRetriever(f"{sys.executable} {path}", Search(), Fields())
    monkeypatch.chdir(tmp_path)
    lines = run(retriever, *queries, jobs=4, retries=3, timeout=1.5)
    assert [ids(line) for line in lines] == [[query] for query in queries]
    assert not list(ways.iterdir())
    assert max(line.attempts for line in lines) > 1


def test_latency_is_the_time_of_the_command(tmp_path):
    path = tmp_path / "retrieve.py"
    path.write_text(
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    time.sleep(0.1)\n"
        "    print(json.dumps({'query_id': json.loads(line)['query_id'], 'results': []}))\n"
    )
    lines = run(CommandRetriever(f"{sys.executable} {path}", Search(), Fields()), "a", "b", jobs=1)
    assert all(100 <= line.latency_ms["total"] < 10_000 for line in lines)


def test_lines_of_a_command_are_lines_of_a_native_run(tmp_path):
    path = tmp_path / "retrieve.py"
    answer = {
        "query_id": "q0",
        "results": [{"id": 7, "score": 0.5, "doc_id": "d", "start": 0, "end": 4, "text": "ähm"}],
        "latency_ms": {"rerank": 3.5},
        "calls": [{"model": "m", "prompt_tokens": 9}],
    }
    path.write_text(f"import sys\nfor line in sys.stdin: print({json.dumps(answer)!r})\n")
    retriever = CommandRetriever(f"{sys.executable} {path}", Search(), Fields())
    (line,) = run(retriever, "a")
    record = msgspec.json.decode(encode_line(line))
    assert record["latency_ms"].pop("total") > 0
    assert record == {**answer, "results": [{**answer["results"][0], "id": "7"}]}


def test_no_process_outlives_an_interrupted_run(tmp_path):
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
        from karat.live.retrievers.command import CommandRetriever
        from karat.live.retrievers.answers import Fields
        from karat.live.loop_thread import run_all_queries
        from karat.live.protocol import Query, Search
        from karat.live.run_options import RunOptions

        retriever = CommandRetriever({f"{sys.executable} {child}"!r}, Search(), Fields())
        queries = [Query(str(n), "why") for n in range(9)]
        run_all_queries(retriever, queries, RunOptions(jobs=3), print)
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
