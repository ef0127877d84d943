"""Asking a retriever that hangs, or ends, or must be stopped."""

import _thread
import asyncio
import gc
import signal
import subprocess
import sys
import threading
import time

import pytest

from karat.data.native_run import Failure
from karat.data.native_usage import Call
from karat.errors import InputError, KaratWarning
from karat.live.asking import background, course
from karat.live.exchange import Answer
from support.fake_retrievers import Fake, asked, impatient, in_task

HANGING = 30  # seconds after which a test that hangs would fail


@pytest.fixture(autouse=True, scope="module")
def _impatient():
    with impatient():
        yield


# Retrievers that hang.


def test_a_thread_that_hangs_is_given_up_and_replaced():
    never, asks = threading.Event(), []

    def retrieve(text):
        asks.append(text)
        if text == "hang":
            never.wait(HANGING)
        return [text]

    with pytest.warns(KaratWarning, match="2 attempts went on after the timeout, beside the 1 at"):
        found = asked(retrieve, ["a", "hang", "b"], jobs=1, timeout=0.4, retries=1)
    never.set()
    assert asks == ["a", "hang", "hang", "b"]
    assert found["hang"].error == Failure("Timeout", "no answer within 0.4 s", 2)
    assert 100 <= found["hang"].latency_ms["total"] < 1000 * HANGING
    assert [found[text].results[0].id for text in "ab"] == ["a", "b"]


def test_a_task_that_hangs_is_cancelled():
    ended = []

    async def retrieve(text):
        try:
            await asyncio.sleep(HANGING if text == "hang" else 0)
        finally:
            ended.append(text)
        return [text]

    found = asked(retrieve, ["a", "hang", "b"], jobs=1, timeout=0.4)
    assert ended == ["a", "hang", "b"]
    assert found["hang"].error == Failure("Timeout", "no answer within 0.4 s", 1)
    assert found["b"].error is None


def test_a_task_that_others_held_up_has_its_whole_time():
    async def retrieve(text):
        if text == "blocking":
            time.sleep(0.6)
        else:
            await asyncio.sleep(0.4)
        return [text]

    found = asked(retrieve, ["blocking", "held up"], jobs=2, timeout=0.8)
    assert found["held up"].error is None


def test_a_task_that_does_not_heed_being_cancelled_is_left_alone():
    stubborn = True

    async def retrieve(text):
        while text == "hang" and stubborn:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return [text]

    def done(line):
        nonlocal stubborn
        found.append(line)
        stubborn = len(found) < 2

    found = []
    with pytest.warns(KaratWarning, match="1 attempt went on"):
        asked(retrieve, ["hang", "b"], jobs=1, timeout=0.4, done=done)
    assert [line.error and line.error.type for line in found] == ["Timeout", None]


INTERRUPTED = """
import asyncio, sys, threading, time
sys.path[:0] = {path!r}
from support.fake_retrievers import Fake, asked

def in_thread(text):
    if text != "a":
        time.sleep(3600)
    return [text]

async def in_task(text):
    if text != "a":
        await asyncio.sleep(3600)
    return [text]

async def blocking(text):
    return in_thread(text)

async def deaf(text):
    while text != "a":
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
    return [text]

def main():
    asked({kind}, "abcdef", jobs={jobs}, done=lambda line: print(line.query_id, flush=True))

async def within_a_loop():
    main()

import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have set it to be ignored
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
asyncio.run(within_a_loop()) if {looped} else main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize(
    ("kind", "number", "looped"),
    [
        ("in_thread", signal.SIGINT, False),
        ("in_thread", signal.SIGTERM, False),
        ("in_task", signal.SIGINT, False),
        ("in_task", signal.SIGTERM, True),
        ("blocking", signal.SIGINT, False),
        ("deaf", signal.SIGINT, False),
    ],
)
def test_a_run_that_hangs_can_be_stopped(kind, number, looped):
    jobs = 1 if kind == "blocking" else 3  # it would hold up the first question too
    code = INTERRUPTED.format(path=sys.path, kind=kind, looped=looped, jobs=jobs)
    with subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "q-a\n"
            process.send_signal(number)
            out, complaints = process.communicate(timeout=HANGING)
        finally:
            process.kill()
    assert out == ""
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGINT)
    for word in ("was never", "was destroyed", "Fatal"):
        assert word not in complaints, complaints
    assert complaints.count("Traceback") == (0 if number == signal.SIGTERM else 1)


@pytest.mark.parametrize("in_tasks", [False, True])
def test_nothing_is_handed_over_after_an_interrupt(in_tasks):
    go_on, handed = threading.Event(), []

    def in_thread(text):
        if text == "c":
            _thread.interrupt_main()
        if text in "cd":
            go_on.wait(HANGING)
        return [text]

    async def in_loop(text):
        return await asyncio.to_thread(in_thread, text)

    retriever = Fake(in_loop if in_tasks else in_thread)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            asked(retriever, "abcdef", jobs=2, done=handed.append)
    finally:
        signal.signal(signal.SIGINT, before)
    at_once = list(handed)
    go_on.set()
    assert _all_threads_end()
    assert handed == at_once
    assert {line.query_id for line in handed} == {"q-a", "q-b"}
    assert retriever.closed == 1


def test_a_run_is_stopped_even_before_it_has_begun(monkeypatch):
    held = threading.Event()
    run = background._Asking._run

    def late(self, following):
        held.wait(HANGING)
        run(self, following)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(background._Asking, "_run", late)
    monkeypatch.setattr(background, "ENDING", 0.01)
    monkeypatch.setattr(threading.Event, "wait", interrupted)
    asks = []
    with pytest.raises(KeyboardInterrupt):
        asked(asks.append, "abc")
    monkeypatch.undo()
    held.set()
    assert _all_threads_end()
    assert asks == []


def _all_threads_end():
    """Tell whether they do, which they may take a moment for."""
    give_up = time.monotonic() + HANGING
    while any(thread.name.startswith("karat-") for thread in threading.enumerate()):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True


# What stops everything.


class Ended(BaseException):
    """Neither an error nor one of Python's own ends."""


@pytest.mark.parametrize("end", [SystemExit("no key"), KeyboardInterrupt("own"), Ended("so")])
@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize("warmup", [0, 1])
def test_a_retriever_that_ends_python_is_no_result(caplog, end, in_tasks, warmup):
    def retrieve(text):
        raise end

    handed = []
    retriever = Fake(in_task(retrieve) if in_tasks else retrieve)
    with pytest.raises(type(end), match=str(end)):
        asked(retriever, "abc", jobs=2, done=handed.append, retries=3, warmup=warmup)
    gc.collect()
    assert (handed, retriever.closed, caplog.text) == ([], 1, "")


@pytest.mark.parametrize("in_tasks", [False, True])
def test_a_retriever_that_ends_python_has_its_time_for_closing(monkeypatch, in_tasks):
    class Slow(Fake):
        async def close(self):
            await asyncio.sleep(0.2)
            self.closed += 1

    monkeypatch.setattr(background, "ENDING", 0.01)
    retriever = Slow(in_task(sys.exit) if in_tasks else sys.exit)
    with pytest.raises(SystemExit, match="no key"):
        asked(retriever, ["no key"])
    assert retriever.closed == 1


def test_a_task_of_the_retriever_that_ends_python_is_no_result_either():
    async def exit_soon():
        sys.exit("in a task")

    async def retrieve(text):
        await asyncio.create_task(exit_soon())

    handed = []
    retriever = Fake(retrieve)
    with pytest.raises(SystemExit, match="in a task"):
        asked(retriever, "abc", jobs=2, done=handed.append)
    assert (handed, retriever.closed) == ([], 1)


@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize("who", ["done", "price", "finished", "retried"])
def test_an_error_of_ours_stops_everything(caplog, in_tasks, who):
    calls = []

    def fail(*_):
        calls.append(who)
        raise OSError("disk full")

    class Watching:
        def finished(self, line):
            if who == "finished":
                fail()

        def retried(self, question, error):
            if who == "retried":
                fail()

    def retrieve(text):
        if who == "retried":
            raise ValueError
        return Answer([], calls=[Call(model="m")])

    retriever = Fake(in_task(retrieve) if in_tasks else retrieve)
    options = {who: fail} if who in ("done", "price") else {"watch": Watching()}
    with pytest.raises(OSError, match="disk full"):
        asked(retriever, map(str, range(50)), jobs=1, retries=2, **options)
    gc.collect()
    assert (calls, retriever.closed, caplog.text) == ([who], 1, "")


def test_a_retriever_that_does_not_open_is_closed_and_told_of():
    class Shut(Fake):
        async def open(self, jobs):
            raise InputError("no such server")

    retriever = Shut(list)
    with pytest.raises(InputError, match="no such server"):
        asked(retriever, "abc")
    assert retriever.closed == 1


def test_a_retriever_that_does_not_close_costs_no_line(monkeypatch):
    class Open(Fake):
        async def close(self):
            await asyncio.sleep(HANGING)

    monkeypatch.setattr(course, "CLOSING", 0.01)
    with pytest.warns(KaratWarning, match="closing the retriever failed: Timeout"):
        assert len(asked(Open(list), "abc")) == 3


def test_threads_and_tasks_of_a_run_end_with_it():
    asked(lambda text: [text], "abcdefgh", jobs=4)
    assert _all_threads_end()
