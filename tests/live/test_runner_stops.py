"""Running a retriever that hangs, ends Python, or must be stopped."""

import _thread
import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from karat.data.formats.native_run import Call
from karat.errors import InputError, KaratWarning
from karat.live import loop_thread, runner
from karat.live.protocol import Answer, AttemptError
from karat.live.runner import RepeatedFailureError
from support.errors import refused
from support.fake_retrievers import Fake, in_task, run_queries, without_pauses
from support.paths import TESTS

HANGING = 30  # seconds after which a test that hangs fails
TIMEOUT = 0.3  # seconds: far more than an answer takes on a busy machine


@pytest.fixture(autouse=True, scope="module")
def _without_pauses():
    with without_pauses():
        yield


@pytest.fixture(autouse=True, scope="module")
def _cheap_garbage_collection():
    """Let `gc.collect` look at new objects only; it would take 0.2 s with all modules."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


# Retrievers that hang.


def test_thread_that_hangs_is_replaced():
    never, asks = threading.Event(), []

    def retrieve(text):
        asks.append(text)
        if text == "hang":
            never.wait(HANGING)
        return [text]

    with pytest.warns(KaratWarning, match="2 attempts kept running"):
        lines = run_queries(retrieve, ["a", "hang", "b"], jobs=1, timeout=TIMEOUT, retries=1)
    never.set()
    assert asks == ["a", "hang", "hang", "b"]
    error = lines["hang"].error
    assert (error.type, error.attempts) == ("Timeout", 2)
    assert f"{TIMEOUT} s" in error.message
    assert 100 <= lines["hang"].latency_ms["total"] < 1000 * HANGING
    assert [lines[text].results[0].id for text in "ab"] == ["a", "b"]


def test_task_that_hangs_is_cancelled():
    ended = []

    async def retrieve(text):
        try:
            await asyncio.sleep(HANGING if text == "hang" else 0)
        finally:
            ended.append(text)
        return [text]

    lines = run_queries(retrieve, ["a", "hang", "b"], jobs=1, timeout=TIMEOUT)
    assert ended == ["a", "hang", "b"]
    assert (lines["hang"].error.type, lines["hang"].error.attempts) == ("Timeout", 1)
    assert f"{TIMEOUT} s" in lines["hang"].error.message
    assert lines["b"].error is None


def test_task_that_another_one_delayed_has_its_whole_time():
    async def retrieve(text):
        if text == "blocking":
            time.sleep(0.4)
        else:
            await asyncio.sleep(0.1)
        return [text]

    lines = run_queries(retrieve, ["blocking", "delayed"], jobs=2, timeout=0.45)
    assert lines["delayed"].error is None


def test_task_that_ignores_its_cancellation_is_left_alone():
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
        lines.append(line)
        stubborn = len(lines) < 2

    lines = []
    with pytest.warns(KaratWarning, match=r"\b1\b"):
        run_queries(retrieve, ["hang", "b"], jobs=1, timeout=TIMEOUT, done=done)
    assert [line.error and line.error.type for line in lines] == ["Timeout", None]


# How the retriever hangs, the signal that ends the run, and whether a loop runs already.
CASES = [
    ("in_thread", signal.SIGINT, False),
    ("in_thread", signal.SIGTERM, False),
    ("in_task", signal.SIGINT, False),
    ("in_task", signal.SIGTERM, True),
    ("blocking", signal.SIGINT, False),
    ("deaf", signal.SIGINT, False),
]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_run_that_hangs_can_be_stopped():
    words = [sys.executable, "-X", "dev", "-W", "error", "-m", "support.stopped_runs"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run([*words, json.dumps(CASES)], capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    for case, (code, out, errors) in zip(CASES, json.loads(done.stdout), strict=True):
        is_terminated = case[1] == signal.SIGTERM
        assert (code, out) == (143 if is_terminated else -signal.SIGINT, ""), (case, errors)
        for word in ("was never", "was destroyed", "Fatal"):
            assert word not in errors, (case, errors)
        assert errors.count("Traceback") == (0 if is_terminated else 1), (case, errors)


@pytest.mark.parametrize("in_tasks", [False, True])
def test_no_line_is_written_after_an_interrupt(in_tasks):
    go_on, both_handed, handed = threading.Event(), threading.Event(), []

    def in_thread(text):
        if text == "c":
            both_handed.wait(HANGING)
            _thread.interrupt_main()
        if text in "cd":
            go_on.wait(HANGING)
        return [text]

    def done(line):
        handed.append(line)
        if len(handed) == 2:
            both_handed.set()

    async def in_loop(text):
        return await asyncio.to_thread(in_thread, text)

    retriever = Fake(in_loop if in_tasks else in_thread)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_queries(retriever, "abcdef", jobs=2, done=done)
    finally:
        signal.signal(signal.SIGINT, before)
    at_once = list(handed)
    go_on.set()
    assert _all_threads_end()
    assert handed == at_once
    assert {line.query_id for line in handed} == {"q-a", "q-b"}
    assert retriever.closed == 1


def test_run_can_be_stopped_before_it_has_begun(monkeypatch):
    go_on = threading.Event()
    run = loop_thread._LoopThread._run

    def late(self, following):
        go_on.wait(HANGING)
        run(self, following)

    wait = threading.Event.wait

    def interrupted(event, timeout=None):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return wait(event, timeout)

    monkeypatch.setattr(loop_thread._LoopThread, "_run", late)
    monkeypatch.setattr(loop_thread, "STOP_TIMEOUT", 0.01)
    monkeypatch.setattr(threading.Event, "wait", interrupted)
    asks = []
    with pytest.raises(KeyboardInterrupt):
        run_queries(asks.append, "abc")
    monkeypatch.undo()
    go_on.set()
    assert _all_threads_end()
    assert asks == []


def _all_threads_end():
    """Return whether all threads of karat end soon."""
    give_up = time.monotonic() + HANGING
    while any(thread.name.startswith("karat-") for thread in threading.enumerate()):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True


# Errors that stop the whole run.


class Ended(BaseException):
    """Neither an `Exception` nor one of the exceptions by which Python ends."""


@pytest.mark.parametrize("end", [SystemExit("no key"), KeyboardInterrupt("own"), Ended("so")])
@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize("warmup", [0, 1])
def test_retriever_that_ends_python_ends_the_run(caplog, end, in_tasks, warmup):
    def retrieve(text):
        raise end

    handed = []
    retriever = Fake(in_task(retrieve) if in_tasks else retrieve)
    with pytest.raises(type(end), match=str(end)):
        run_queries(retriever, "abc", jobs=2, done=handed.append, retries=3, warmup=warmup)
    gc.collect()
    assert (handed, retriever.closed, caplog.text) == ([], 1, "")


@pytest.mark.parametrize("in_tasks", [False, True])
def test_retriever_that_ends_python_has_time_to_close(monkeypatch, in_tasks):
    class Slow(Fake):
        async def close(self):
            await asyncio.sleep(0.1)
            self.closed += 1

    monkeypatch.setattr(loop_thread, "STOP_TIMEOUT", 0.01)
    retriever = Slow(in_task(sys.exit) if in_tasks else sys.exit)
    with pytest.raises(SystemExit, match="no key"):
        run_queries(retriever, ["no key"])
    assert retriever.closed == 1


def test_task_of_a_retriever_that_ends_python_ends_the_run():
    async def exit_soon():
        sys.exit("in a task")

    async def retrieve(text):
        await asyncio.create_task(exit_soon())

    handed = []
    retriever = Fake(retrieve)
    with pytest.raises(SystemExit, match="in a task"):
        run_queries(retriever, "abc", jobs=2, done=handed.append)
    assert (handed, retriever.closed) == ([], 1)


@pytest.mark.parametrize("in_tasks", [False, True])
@pytest.mark.parametrize("who", ["done", "price", "finished", "retried"])
def test_error_of_a_callback_ends_the_run(caplog, in_tasks, who):
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
        run_queries(retriever, map(str, range(50)), jobs=1, retries=2, **options)
    gc.collect()
    assert (calls, retriever.closed, caplog.text) == ([who], 1, "")


def test_retriever_that_cannot_be_opened_is_closed_and_its_error_raised():
    class Shut(Fake):
        async def open(self, jobs):
            raise InputError("no such server")

    retriever = Shut(list)
    with refused() as caught:
        run_queries(retriever, "abc")
    assert caught.value.problem == "no such server"
    assert retriever.closed == 1


def test_retriever_that_cannot_be_closed_loses_no_line(monkeypatch):
    class Open(Fake):
        async def close(self):
            await asyncio.sleep(HANGING)

    monkeypatch.setattr(runner, "CLOSE_TIMEOUT", 0.01)
    with pytest.warns(KaratWarning, match="Timeout"):
        assert len(run_queries(Open(list), "abc")) == 3


def test_threads_of_a_run_end_with_it():
    run_queries(lambda text: [text], "abcdefgh", jobs=4)
    assert _all_threads_end()


# Failures in a row.


def failing_at(failing, kind=RuntimeError):
    def retrieve(text):
        asked.append(text)
        if failing(int(text)):
            raise kind("down")
        return [text]

    asked = []
    return retrieve, asked


def stopped(retrieve, count, **pace):
    """Run `count` queries; return the error that stopped the run and the lines before."""
    lines = []
    pace = {"jobs": 1, "stop_after_failures": 10} | pace
    with pytest.raises(RepeatedFailureError) as caught:
        run_queries(retrieve, map(str, range(count)), done=lines.append, **pace)
    return caught.value, lines


@pytest.mark.parametrize("way", [lambda function: function, in_task])
def test_run_stops_after_ten_failures_of_the_same_kind_in_a_row(way):
    retrieve, asked = failing_at(lambda n: n >= 3)
    error, lines = stopped(way(retrieve), 60)
    assert (error.failure.type, error.failure.message, error.count) == ("RuntimeError", "down", 10)
    assert asked == list(map(str, range(13)))
    assert [line.error is None for line in lines] == [True] * 3 + [False] * 10


def test_number_of_failures_can_be_set():
    retrieve, asked = failing_at(lambda n: True)
    error, _ = stopped(retrieve, 60, stop_after_failures=1)
    assert (error.count, asked) == (1, ["0"])


def test_run_never_stops_with_zero():
    retrieve, _ = failing_at(lambda n: True)
    assert len(run_queries(retrieve, map(str, range(60)), stop_after_failures=0)) == 60


def test_an_answer_between_failures_starts_the_count_again():
    retrieve, _ = failing_at(lambda n: n % 10 != 9)
    texts = map(str, range(60))
    assert len(run_queries(retrieve, texts, jobs=1, stop_after_failures=10)) == 60


def test_failures_of_another_kind_start_the_count_again():
    def retrieve(text):
        raise AttemptError(f"HTTP {500 + int(text) // 9 % 2}", "down", retryable=False)

    texts = map(str, range(60))
    assert len(run_queries(retrieve, texts, jobs=1, stop_after_failures=10)) == 60


def test_retries_of_one_query_count_once():
    retrieve, asked = failing_at(lambda n: True)
    _, lines = stopped(retrieve, 60, retries=2)
    assert len(lines) == 10
    assert len(asked) == 30


def test_concurrent_run_stops_too():
    lines = []
    retrieve, _ = failing_at(lambda n: True)
    texts = map(str, range(500))
    with pytest.raises(RepeatedFailureError):
        run_queries(retrieve, texts, jobs=8, stop_after_failures=10, done=lines.append)
    assert 10 <= len(lines) < 10 + 8


def test_number_that_is_not_a_count_is_refused():
    with refused(field="stop_after_failures"):
        run_queries(lambda text: [], ["a"], stop_after_failures=-1)
