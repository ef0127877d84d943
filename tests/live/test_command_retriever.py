"""Retrievers behind a command: one line in, one line out, and processes that fail to do so."""

import asyncio
import contextlib
import errno
import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from karat.live.protocol import AttemptError, Query, Search
from karat.live.retrievers import command as command_module
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.command import CommandRetriever
from support.direct_calls import ids, retrieve_in_turn, retrieve_together
from support.errors import refused

# An answer has the query, the process id and the number of answers before it.
LOOP = """
import json, os, sys, time
def answer_of(*ids):
    return json.dumps({"query_id": request["query_id"], "results": ids})
for count, line in enumerate(sys.stdin):
    request = json.loads(line)
    query = request.get("query")
    answer = answer_of(query, str(os.getpid()), str(count))
"""


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch):
    """Do not wait for a process to fail at its start, unless a test is about that."""
    monkeypatch.setattr("karat.live.retrievers.command._STARTUP_SECONDS", 0)


@pytest.fixture
def script(tmp_path):
    """Write a Python program and return the command that runs it."""

    def write(text, *, after=LOOP):
        path = tmp_path / "retrieve.py"
        path.write_text(after + textwrap.indent(textwrap.dedent(text), "    " if after else ""))
        return f"{sys.executable} {path}"

    return write


def command(line, search=None, fields=()):
    return CommandRetriever(line, search or Search(), Fields.of(fields))


def is_alive(pid):
    """Return whether a process runs or is a zombie."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def ends(pid, seconds=10):
    """Return whether a process that is not our child ends soon; it may remain a zombie."""
    until = time.monotonic() + seconds
    stat = Path(f"/proc/{pid}/stat")
    while is_alive(pid) and time.monotonic() < until:
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        time.sleep(0.01)
    return not is_alive(pid)


def test_request_is_one_line_of_json(script):
    line = script("print(answer_of(json.dumps(request)))")
    search = Search(top_k=4, score_threshold=0.25, explicit=frozenset({"score_threshold"}))
    (answer,) = retrieve_together(command(line, search), "Wie?\n“so”")
    assert ids(answer) == [
        '{"query_id": "q0", "query": "Wie?\\n\\u201cso\\u201d", '
        '"top_k": 4, "score_threshold": 0.25}'
    ]


def test_fields_have_the_names_that_the_command_uses(script):
    line = script(
        """
        hits = [{"no": request["q"]["text"]}]
        print(json.dumps({"query_id": request["query_id"], "hits": hits}))
        """
    )
    retriever = command(line, fields=["query=q.text", "results=hits", "id=no"])
    (answer,) = retrieve_together(retriever, "abc")
    assert ids(answer) == ["abc"]
    assert retriever.settings == {"fields": {"query": "q.text", "results": "hits", "id": "no"}}


def test_process_is_kept_alive(script):
    answers = [ids(answer) for answer in retrieve_in_turn(command(script("print(answer)")), *"abc")]
    assert [(query, count) for query, _, count in answers] == [("a", "0"), ("b", "1"), ("c", "2")]
    assert len({pid for _, pid, _ in answers}) == 1


def test_concurrent_queries_have_one_process_each_and_all_end_with_the_run(script):
    line = script("time.sleep(0.1); print(answer)")
    answers = [ids(answer) for answer in retrieve_together(command(line), *"abcd", jobs=4)]
    assert [query for query, _, _ in answers] == list("abcd")
    pids = {pid for _, pid, _ in answers}
    assert len(pids) == 4
    assert not any(is_alive(pid) for pid in pids)


def test_process_that_ignores_its_end_of_input_and_sigterm_is_killed(script, monkeypatch):
    monkeypatch.setattr(command_module, "_EXIT_SECONDS", 0.2)
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + LOOP
    line = script(stubborn + "    print(answer)\ntime.sleep(600)", after="")
    (answer,) = retrieve_together(command(line), "a")
    assert ends(ids(answer)[1])


def test_child_of_a_process_ends_with_it(script):
    line = script(
        """
        import subprocess
        child = subprocess.Popen(["sleep", "600"])
        print(answer_of(str(child.pid)))
        """
    )
    (answer,) = retrieve_together(command(line), "a")
    assert ends(ids(answer)[0])


# A child with a session of its own: the process group of its parent does not contain it.
STARTING = """
import subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session=True{streams})
print(answer_of(str(child.pid)))
"""
SILENT = ", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux has this")
@pytest.mark.parametrize("streams", ["", SILENT])
def test_child_that_calls_setsid_ends_with_the_run(script, streams):
    (answer,) = retrieve_together(command(script(STARTING.format(streams=streams))), "a")
    assert ends(ids(answer)[0])


def test_child_that_is_not_found_is_reported(script, monkeypatch):
    monkeypatch.setattr(
        command_module, "_processes_with_mark", lambda _: []
    )  # as on systems without /proc
    children = []

    async def ask():
        retriever = command(script(STARTING.format(streams="")))
        await retriever.open(1)
        children.extend(ids(retriever.parse(await retriever.retrieve(Query("q1", "a")))))
        await retriever.close()

    try:
        with pytest.raises(AttemptError) as caught:
            asyncio.run(ask())
    finally:
        os.kill(int(children[0]), signal.SIGKILL)
    assert caught.value.kind == "ProcessLeft"


def test_answer_of_several_megabytes_is_read(script):
    (answer,) = retrieve_together(
        command(script("print(answer_of(*(f'{n:010000}' for n in range(300))))")), "a"
    )
    assert ids(answer) == [f"{n:010000}" for n in range(300)]


def test_query_of_several_megabytes_is_sent(script):
    (answer,) = retrieve_together(
        command(script("print(answer_of(str(len(query))))")), "x" * 3_000_000
    )
    assert ids(answer) == ["3000000"]


def test_answer_above_the_size_limit_is_not_read(script, monkeypatch):
    assert command_module.MAX_BYTES == 64 * 2**20
    monkeypatch.setattr(command_module, "MAX_BYTES", 2**20)
    line = script("sys.stdout.write('x' * (2 * 2**20)); sys.stdout.flush(); time.sleep(600)")
    (error,) = retrieve_together(command(line), "a")
    assert (error.kind, error.retryable) == ("BadAnswer", False)
    assert " 1 MB" in error.message


def test_python_program_need_not_flush(script, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    (answer,) = retrieve_together(command(script("print(answer)")), "a")
    assert ids(answer)[0] == "a"


def test_command_has_the_environment_of_the_caller(script, monkeypatch):
    monkeypatch.setenv("INDEX", "faq")
    (answer,) = retrieve_together(command(script("print(answer_of(os.environ['INDEX']))")), "a")
    assert ids(answer) == ["faq"]


def test_large_error_output_does_not_block_the_process(script):
    line = script("print('x' * 1_000_000, file=sys.stderr); print(answer)")
    answers = retrieve_in_turn(command(line), *"abc")
    assert [ids(answer)[0] for answer in answers] == ["a", "b", "c"]


# Failures: after each, another process answers the next query correctly.


@pytest.mark.parametrize(
    ("failing", "kind", "shown"),
    [
        ("sys.exit('no index\\nis there')", "ProcessEnded", " 1: no index | is there"),
        ("sys.exit(3)", "ProcessEnded", " 3"),
        ("sys.exit(0)", "ProcessEnded", " 0"),
        ("raise KeyError('boom')", "ProcessEnded", "KeyError: 'boom'"),
        ("os.kill(os.getpid(), 9)", "ProcessEnded", "SIGKILL"),
        ("print('[1', end=''); sys.exit(4)", "ProcessEnded", " 4"),
        ("print('Loading …')", "BadAnswer", "'Loading …'"),
        ("print()", "BadAnswer", "''"),
        ('print(\'{"level": "info"}\')', "BadAnswer", "level"),
        ("print(7)", "BadAnswer", "7"),
        ('print(\'{"query_id": "q1", "took": 3}\')', "BadAnswer", "took"),
        ("print(answer + '\\n' + answer)", "BadAnswer", '"bad", '),
        ('print(\'{"query_id": "q7", "results": []}\')', "BadAnswer", "'q7'"),
        ("sys.stdout.buffer.write(bytes([255, 10]))", "BadAnswer", "'\ufffd'"),
    ],
)
def test_process_that_fails_is_replaced(script, failing, kind, shown):
    line = script(f"if query == 'bad':\n    {failing}\nelse:\n    print(answer)")
    first, bad, after = retrieve_in_turn(command(line), "a", "bad", "c")
    assert isinstance(bad, AttemptError), bad
    assert bad.kind == kind
    assert shown in bad.message
    assert "\n" not in bad.message
    _, before, _ = ids(first)
    query, pid, count = ids(after)
    assert (query, count) == ("c", "0")
    assert pid != before
    assert not is_alive(before)


def test_process_that_closes_its_output_is_replaced(script, monkeypatch):
    monkeypatch.setattr(command_module, "_EXIT_SECONDS", 0.1)
    line = script("os.close(1) if query == 'bad' else print(answer)")
    first, bad, after = retrieve_in_turn(command(line), "a", "bad", "c")
    assert (type(bad), bad.kind) == (AttemptError, "ProcessEnded")
    assert ids(after)[::2] == ["c", "0"]
    assert ends(ids(first)[1])


def test_process_that_does_not_answer_is_ended_with_its_query(script):
    line = script("time.sleep(600 if query == 'bad' else 0); print(answer)")
    first, bad, after = retrieve_in_turn(command(line), "a", "bad", "c", timeouts={"bad": 0.3})
    assert isinstance(bad, TimeoutError)
    assert not is_alive(ids(first)[1])
    assert ids(after)[0] == "c"


def test_unrequested_line_is_never_the_answer_to_the_next_query(script, tmp_path):
    go, printed = tmp_path / "go", tmp_path / "printed"
    line = script(
        f"""
        print(answer)
        if query == "a":
            while not os.path.exists({str(go)!r}):
                time.sleep(0.01)
            print(json.dumps(dict(query_id="2", results=["the answer to nothing"])))
            open({str(printed)!r}, "w").close()
        """
    )

    async def everything():
        retriever = command(line)
        await retriever.open(1)
        try:
            first = await retriever.retrieve(Query("1", "a"))
            go.touch()
            while not printed.exists():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            second = await retriever.retrieve(Query("2", "b"))
            return retriever.parse(first), retriever.parse(second)
        finally:
            await retriever.close()

    first, second = asyncio.run(everything())
    assert ids(first)[0] == "a"
    assert ids(second)[0] == "b"
    assert ids(first)[1] != ids(second)[1]


def test_late_second_line_is_never_the_answer_to_the_next_query(script):
    # The second line of an answer is printed when the next query has been sent.
    line = script("print(late if count else answer); late = answer")
    first, second, third = retrieve_in_turn(command(line), "a", "b", "c")
    assert (type(second), second.kind, second.retryable) == (AttemptError, "BadAnswer", True)
    assert "'q0'" in second.message
    assert [ids(first)[::2], ids(third)[::2]] == [["a", "0"], ["c", "0"]]


@pytest.mark.parametrize(
    "printed", ['["a"]', '{"results": ["a"]}', '{"query_id": null, "results": ["a"]}']
)
def test_answer_without_its_query_id_is_refused_with_the_line_to_print(script, printed):
    (error,) = retrieve_together(command(script(f"print({printed!r})")), "a")
    assert (type(error), error.kind, error.retryable) == (AttemptError, "BadAnswer", False)
    assert printed in error.message
    assert '{"query_id": "q0", "results": ' in error.message


def test_query_id_of_an_answer_may_be_a_number(script):
    async def answer():
        retriever = command(script("print(json.dumps({'query_id': 7, 'results': ['a']}))"))
        await retriever.open(1)
        try:
            return retriever.parse(await retriever.retrieve(Query("7", "text")))
        finally:
            await retriever.close()

    assert ids(asyncio.run(answer())) == ["a"]


def test_processes_end_when_a_query_is_interrupted(script, tmp_path):
    line = script(f"print(os.getpid(), file=open({str(tmp_path / 'pid')!r}, 'w'), flush=True)")

    async def everything():
        retriever = command(line)
        await retriever.open(1)
        try:
            asking = asyncio.ensure_future(retriever.retrieve(Query("1", "a")))
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                await asyncio.sleep(0.01)
            os.kill(os.getpid(), 2)
            await asking
        finally:
            asking.cancel()
            await retriever.close()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(everything())
    assert ends((tmp_path / "pid").read_text())


# Commands that cannot be run


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("", "cmd:"),
        ("  ", "cmd:"),
        ("./ask 'half", "cmd:"),
        ("./ask-nobody", "cmd:./ask-nobody"),
        ("ask-nobody --fast", "cmd:ask-nobody"),
    ],
)
def test_invalid_command_is_refused_before_the_first_query(line, field):
    with refused(path=None, line=None, field=field) as caught:
        command(line)
    assert caught.value.hint


def test_file_that_is_not_executable_is_refused(tmp_path):
    path = tmp_path / "ask"
    path.write_text("#!/bin/sh\n")
    with refused(field=f"cmd:{path}") as caught:
        command(str(path))
    assert f"chmod +x {path}" in caught.value.hint


def test_hint_shows_how_to_name_a_file_of_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "ask").write_text("#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    with refused(field="cmd:ask") as caught:
        command("ask")
    assert "cmd:./ask" in caught.value.hint


def test_file_that_cannot_be_started_is_refused_when_opened(tmp_path):
    path = tmp_path / "ask"
    path.write_text("just text\n")
    path.chmod(0o755)
    with refused(field=f"cmd:{path}") as caught:
        retrieve_together(command(str(path)), "q")
    assert os.strerror(errno.ENOEXEC) in caught.value.problem
    assert caught.value.hint


def test_command_that_ends_at_once_is_refused_when_opened(monkeypatch):
    monkeypatch.setattr("karat.live.retrievers.command._STARTUP_SECONDS", 20)
    line = "sh -c 'echo bad option >&2; exit 3'"
    with refused(field=f"cmd:{line}") as caught:
        retrieve_together(command(line), "q")
    assert " 3: bad option" in caught.value.problem


def test_name_of_a_command_hides_its_secrets():
    retriever = command("sh -c 'cat; x' --api-key=abc --token def --index faq")
    assert retriever.name == "cmd:sh -c 'cat; x' '--api-key=***' --token '***' --index faq"
