"""Retrievers behind a command: a line in, a line out, and processes that do otherwise."""

import asyncio
import contextlib
import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from karat.errors import InputError
from karat.live.adapters.command import CommandRetriever
from karat.live.adapters.fields import Fields
from karat.live.exchange import AttemptError, Question, Search
from support.direct_calls import asked, ids, in_turn

# Each answer names its process and how many it gave before.
LOOP = """
import json, os, sys, time
for count, line in enumerate(sys.stdin):
    asked = json.loads(line)
    query = asked.get("query")
    answer = json.dumps([query, str(os.getpid()), str(count)])
"""


@pytest.fixture
def script(tmp_path):
    """Write a program in Python and return how it is called."""

    def write(text, *, after=LOOP):
        path = tmp_path / "retrieve.py"
        path.write_text(after + textwrap.indent(textwrap.dedent(text), "    " if after else ""))
        return f"{sys.executable} {path}"

    return write


def command(line, search=None, fields=()):
    return CommandRetriever(line, search or Search(), Fields.of(fields))


def is_alive(pid):
    """Tell whether a process runs; one that nobody has waited for counts too."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def ends(pid, seconds=10):
    """Wait for the end of a process that is not ours to wait for; it may be left a zombie."""
    until = time.monotonic() + seconds
    stat = Path(f"/proc/{pid}/stat")
    while is_alive(pid) and time.monotonic() < until:
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        time.sleep(0.01)
    return not is_alive(pid)


def test_a_question_is_a_line_of_json(script):
    line = script("print(json.dumps([json.dumps(asked)]))")
    search = Search(top_k=4, score_threshold=0.25, given=frozenset({"score_threshold"}))
    (answer,) = asked(command(line, search), "Wie?\n“so”")
    assert ids(answer) == [
        '{"query_id": "q0", "query": "Wie?\\n\\u201cso\\u201d", '
        '"top_k": 4, "score_threshold": 0.25}'
    ]


def test_fields_have_the_names_that_the_command_uses(script):
    line = script("print(json.dumps({'hits': [{'no': asked['q']['text']}]}))")
    retriever = command(line, fields=["query=q.text", "results=hits", "id=no"])
    (answer,) = asked(retriever, "abc")
    assert ids(answer) == ["abc"]
    assert retriever.settings == {"fields": {"query": "q.text", "results": "hits", "id": "no"}}


def test_a_process_is_kept_alive(script):
    answers = in_turn(command(script("print(answer)")), *"abc")
    found = [ids(answer) for answer in answers]
    assert [(query, count) for query, _, count in found] == [("a", "0"), ("b", "1"), ("c", "2")]
    assert len({pid for _, pid, _ in found}) == 1


def test_questions_at_the_same_time_have_a_process_each(script):
    line = script("time.sleep(0.3); print(answer)")
    found = [ids(answer) for answer in asked(command(line), *"abcd", jobs=4)]
    assert [query for query, _, _ in found] == list("abcd")
    assert len({pid for _, pid, _ in found}) == 4


def test_all_processes_are_gone_in_the_end(script):
    found = [ids(answer) for answer in asked(command(script("print(answer)")), *"abcd", jobs=4)]
    assert not any(is_alive(pid) for _, pid, _ in found)


def test_a_process_that_will_not_end_is_ended(script):
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + LOOP
    line = script(stubborn + "    print(answer)\ntime.sleep(600)", after="")
    (answer,) = asked(command(line), "a")
    assert not is_alive(ids(answer)[1])


def test_what_a_process_started_ends_with_it(script):
    line = script(
        """
        import subprocess
        child = subprocess.Popen(["sleep", "600"])
        print(json.dumps([str(child.pid)]))
        """
    )
    (answer,) = asked(command(line), "a")
    assert ends(ids(answer)[0])


def test_an_answer_of_many_megabytes_is_read(script):
    (answer,) = asked(command(script("print(json.dumps(['x' * 3_000_000]))")), "a")
    assert ids(answer) == ["x" * 3_000_000]


def test_a_question_of_many_megabytes_is_put(script):
    (answer,) = asked(command(script("print(json.dumps([str(len(query))]))")), "x" * 3_000_000)
    assert ids(answer) == ["3000000"]


def test_an_answer_beyond_all_bounds_is_not_read(script):
    line = script("sys.stdout.write('x' * (65 * 2**20)); sys.stdout.flush(); time.sleep(600)")
    (error,) = asked(command(line), "a")
    assert (error.kind, error.again) == ("BadAnswer", False)
    assert "more than 64 MB" in error.message


def test_a_python_program_need_not_flush(script, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    (answer,) = asked(command(script("print(answer)")), "a")
    assert ids(answer)[0] == "a"


def test_a_command_has_the_environment_of_the_caller(script, monkeypatch):
    monkeypatch.setenv("INDEX", "faq")
    (answer,) = asked(command(script("print(json.dumps([os.environ['INDEX']]))")), "a")
    assert ids(answer) == ["faq"]


def test_much_said_on_the_error_output_holds_nothing_up(script):
    line = script("print('x' * 1_000_000, file=sys.stderr); print(answer)")
    answers = in_turn(command(line), *"abc")
    assert [ids(answer)[0] for answer in answers] == ["a", "b", "c"]


# What goes wrong: each time the next question is answered by another process, and rightly.


@pytest.mark.parametrize(
    ("failing", "kind", "told"),
    [
        ("sys.exit('no index\\nis there')", "ProcessEnded", "with code 1: no index | is there"),
        ("sys.exit(3)", "ProcessEnded", "the process ended with code 3"),
        ("sys.exit(0)", "ProcessEnded", "line after line until its input ends"),
        ("raise KeyError('boom')", "ProcessEnded", "KeyError: 'boom'"),
        ("os.kill(os.getpid(), 9)", "ProcessEnded", "was ended by SIGKILL"),
        ("print('[1', end=''); sys.exit(4)", "ProcessEnded", "with code 4"),
        ("os.close(1); time.sleep(600)", "ProcessEnded", "closed its output"),
        ("print('Loading …')", "BadAnswer", "'Loading …' came back, which is no JSON"),
        ("print()", "BadAnswer", "no JSON"),
        ('print(\'{"level": "info"}\')', "BadAnswer", "level"),
        ("print(7)", "BadAnswer", "7"),
        ("print(answer + '\\n' + answer)", "BadAnswer", "more than one line"),
        ('print(\'{"query_id": "q7", "results": []}\')', "BadAnswer", "query 'q7'"),
        ("sys.stdout.buffer.write(bytes([255, 10]))", "BadAnswer", "no JSON"),
    ],
)
def test_a_process_that_fails_is_replaced(script, failing, kind, told):
    line = script(f"if query == 'bad':\n    {failing}\nelse:\n    print(answer)")
    first, bad, after = in_turn(command(line), "a", "bad", "c")
    assert isinstance(bad, AttemptError), bad
    assert bad.kind == kind
    assert told in bad.message
    assert "\n" not in bad.message
    _, before, _ = ids(first)
    query, pid, count = ids(after)
    assert (query, count) == ("c", "0")
    assert pid != before
    assert not is_alive(before)


def test_a_process_that_says_nothing_is_ended_with_its_question(script):
    line = script("time.sleep(600 if query == 'bad' else 0); print(answer)")
    first, bad, after = in_turn(command(line), "a", "bad", "c", timeout=3.0)
    assert isinstance(bad, TimeoutError)
    assert not is_alive(ids(first)[1])
    assert ids(after)[0] == "c"


def test_a_line_that_nobody_asked_for_is_never_the_answer_to_the_next_question(script):
    line = script(
        """
        print(answer)
        if query == "a":
            time.sleep(0.2)
            print(json.dumps(["the answer to nothing"]))
        """
    )

    async def everything():
        retriever = command(line)
        await retriever.open(1)
        try:
            first = await retriever.ask(Question("1", "a"))
            await asyncio.sleep(1)
            second = await retriever.ask(Question("2", "b"))
            return retriever.read(first), retriever.read(second)
        finally:
            await retriever.close()

    first, second = asyncio.run(everything())
    assert ids(first)[0] == "a"
    assert ids(second)[0] == "b"
    assert ids(first)[1] != ids(second)[1]


def test_a_program_that_always_says_two_things_is_found_out_at_once(script, monkeypatch):
    monkeypatch.setattr("karat.live.adapters.process._SETTLING", 1)
    line = script("print(answer); time.sleep(0.001); print(answer)")
    for error in in_turn(command(line), "a", "b"):
        assert "more than one line came back, first '" in error.message


def test_processes_are_gone_after_ctrl_c_within_a_question(script, tmp_path):
    line = script(f"print(os.getpid(), file=open({str(tmp_path / 'pid')!r}, 'w'), flush=True)")

    async def everything():
        retriever = command(line)
        await retriever.open(1)
        try:
            asking = asyncio.ensure_future(retriever.ask(Question("1", "a")))
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


# Commands that cannot be


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "there is no command"),
        ("  ", "there is no command"),
        ("./ask 'half", "no closing quotation"),
        ("./ask-nobody", "no such command"),
        ("ask-nobody --fast", "no such command"),
    ],
)
def test_what_is_no_command_is_refused_before_anything_is_asked(line, told):
    with pytest.raises(InputError) as caught:
        command(line)
    assert told in str(caught.value)
    assert "hint: " in str(caught.value)


def test_a_file_that_may_not_be_executed_is_refused(tmp_path):
    path = tmp_path / "ask"
    path.write_text("#!/bin/sh\n")
    with pytest.raises(InputError, match=r"chmod \+x"):
        command(str(path))


def test_a_file_of_this_folder_needs_its_folder(tmp_path, monkeypatch):
    (tmp_path / "ask").write_text("#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"write cmd:\./ask"):
        command("ask")


def test_a_file_that_no_program_runs_is_refused_when_opened(tmp_path):
    path = tmp_path / "ask"
    path.write_text("just text\n")
    path.chmod(0o755)
    with pytest.raises(InputError, match="#!"):
        asked(command(str(path)), "q")


def test_a_command_that_ends_at_once_is_refused_when_opened(monkeypatch):
    monkeypatch.setattr("karat.live.adapters.command._GRACE", 20)
    with pytest.raises(InputError, match=r"before it was asked anything: .* code 3: bad option"):
        asked(command("sh -c 'echo bad option >&2; exit 3'"), "q")


def test_the_name_of_a_command_hides_its_secrets():
    retriever = command("sh -c 'cat; x' --api-key=abc --token def --index faq")
    assert retriever.name == "cmd:sh -c 'cat; x' '--api-key=***' --token '***' --index faq"
