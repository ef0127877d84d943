"""Asking a retriever: exactly one line a question, whatever the retriever does."""

import _thread
import asyncio
import contextvars
import gc
import itertools
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_retrievers import Clock, Fake, asked, both
from karat.data.native_run import Failure, Result
from karat.data.native_usage import Call
from karat.errors import InputError, KaratWarning
from karat.live import asking, attempts, course, lines, marks, pacing, places
from karat.live.exchange import Answer, AttemptError, Question, Search, encoded

LONG = bool(os.environ.get("KARAT_SLOW"))
HANGING = 30  # seconds after which a test that hangs would fail


@pytest.fixture(autouse=True, scope="module")
def _impatient():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(course, "pause", lambda *_: 0.0)
        patch.setattr(places, "ENDING", 0.05)
        yield


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (attempts, marks):
        monkeypatch.setattr(module, "perf_counter_ns", clock)
    return clock


def in_task(function):
    return both(function)[1]


# What comes out, against an oracle.

ERRORS = {
    "fails": (ValueError("no"), "ValueError", True),
    "times out": (TimeoutError("slow"), "Timeout", True),
    "is gone": (ConnectionResetError("gone"), "ConnectionError", True),
    "is busy": (AttemptError("HTTP 503", "busy", wait=0.0), "HTTP 503", True),
    "refuses": (AttemptError("HTTP 400", "bad", again=False), "HTTP 400", False),
    "misuses karat": (InputError("bad call"), "InputError", False),
    "cancels itself": (asyncio.CancelledError("own"), "CancelledError", True),
}
steps = st.one_of(
    st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(tuple),
    st.sampled_from(sorted(ERRORS)),
    st.just("garbage"),
)


def expected(script, retries, repeat):
    """Return results, error type, attempts, varied and how often the retriever is asked."""
    told = itertools.cycle(script)
    asks, most, ends = 0, 0, []
    while len(ends) < repeat:
        attempts = 0
        while attempts <= retries:
            attempts += 1
            asks += 1
            step = next(told)
            if step not in ERRORS or not ERRORS[step][2]:
                break
        most = max(most, attempts)
        ends.append(step)
        if isinstance(step, str):
            break
    first = ends[0]
    if isinstance(first, str):
        kind = "BadAnswer" if first == "garbage" else ERRORS[first][1]
        return [], kind, most, False, asks
    return list(first), None, most, any(end != first for end in ends), asks


@settings(max_examples=1000 if LONG else 60)
@given(
    scripts=st.lists(st.lists(steps, min_size=1, max_size=5), max_size=12),
    retries=st.integers(0, 3),
    repeat=st.integers(1, 3),
    jobs=st.integers(1, 5),
    in_tasks=st.booleans(),
)
def test_every_question_has_one_line_that_tells_how_it_went(
    scripts, retries, repeat, jobs, in_tasks
):
    told = {str(at): itertools.cycle(script) for at, script in enumerate(scripts)}
    asks = dict.fromkeys(told, 0)

    def retrieve(text):
        asks[text] += 1
        step = next(told[text])
        if step in ERRORS:
            raise ERRORS[step][0]
        return step

    class Scripted(Fake):
        def read(self, returned):
            if returned == "garbage":
                raise InputError("no answer", field="results")
            return super().read(returned)

    retriever = Scripted(in_task(retrieve) if in_tasks else retrieve)
    found = asked(retriever, told, retries=retries, repeat=repeat, jobs=jobs)
    assert list(map(len, (found, asks))) == [len(scripts)] * 2
    for text, script in zip(told, scripts, strict=True):
        line = found[text]
        kind = line.error and line.error.type
        ids = [result.id for result in line.results]
        outcome = ids, kind, line.attempts, line.varied, asks[text]
        assert outcome == expected(script, retries, repeat)
        assert line.error is None or line.error.attempts == line.attempts
        assert line.latency_ms["total"] >= 0
    opened = int(bool(scripts))
    assert (retriever.opened, retriever.closed) == (opened, opened)


def test_no_question_needs_no_retriever():
    retriever = Fake(None)
    assert asked(retriever, []) == {}
    assert retriever.opened == 0


@pytest.mark.parametrize("in_tasks", [False, True])
def test_just_so_many_are_under_way_as_asked_for(in_tasks):
    jobs, under_way, most = 5, 0, []
    lock = threading.Lock()
    meeting = threading.Barrier(jobs, timeout=HANGING)
    arrived = []

    def enter():
        nonlocal under_way
        with lock:
            under_way += 1
            most.append(under_way)

    def leave():
        nonlocal under_way
        with lock:
            under_way -= 1

    def in_thread(text):
        enter()
        meeting.wait()  # passes only once all five are here
        leave()
        return [text]

    async def in_loop(text):
        enter()
        arrived.append(text)
        while len(arrived) % jobs and len(arrived) < 20:
            await asyncio.sleep(0)
        leave()
        return [text]

    found = asked(in_loop if in_tasks else in_thread, map(str, range(20)), jobs=jobs)
    assert max(most) == jobs
    assert [found[str(n)].results[0].id for n in range(20)] == [str(n) for n in range(20)]


def test_questions_are_drawn_only_when_there_is_a_place():
    drawn = 0

    class Million:
        def __len__(self):
            return 1_000_000

        def __iter__(self):
            nonlocal drawn
            for drawn in range(1, len(self) + 1):
                yield Question(str(drawn), "x")

    lines = []

    def done(line):
        lines.append(line)
        if len(lines) == 100:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        asking.ask_all(
            Fake(in_task(list)), Million(), Search(), asking.Pace(jobs=7, timeout=9), done
        )
    assert 100 <= drawn <= 100 + 2 * 7
    assert len(lines) == 100


# The time is the retriever's.


@pytest.mark.parametrize("in_tasks", [False, True])
def test_only_asking_is_timed(clock, monkeypatch, in_tasks):
    class Slow(Fake):
        async def open(self, jobs):
            clock.pass_ms(1000)

        def read(self, returned):
            clock.pass_ms(1000)
            return super().read(returned)

    tries = itertools.count()

    def retrieve(text):
        clock.pass_ms(float(text))
        if next(tries) % 2 == 0:
            raise ValueError
        return [text]

    def pause(*_):
        clock.pass_ms(1000)
        return 0.0

    class Slowly(pacing.Spacing):
        async def turn(self):
            clock.pass_ms(1000)

    monkeypatch.setattr(course, "pause", pause)
    monkeypatch.setattr(course, "Spacing", Slowly)
    found = []

    def done(line):
        clock.pass_ms(1000)
        found.append(line)

    asked(
        Slow(in_task(retrieve) if in_tasks else retrieve),
        ["1", "2", "5.5"],
        done=done,
        jobs=1,
        retries=1,
    )
    assert [line.latency_ms for line in found] == [{"total": ms} for ms in (1.0, 2.0, 5.5)]


@pytest.mark.parametrize("in_tasks", [False, True])
def test_a_failed_question_shows_the_time_of_its_last_attempt(clock, in_tasks):
    spent = iter([3, 8])

    def retrieve(text):
        clock.pass_ms(next(spent))
        raise ValueError

    line = asked(in_task(retrieve) if in_tasks else retrieve, "x", retries=1)["x"]
    assert line.latency_ms == {"total": 8.0}


def test_repeated_questions_show_the_median_and_the_first_list(clock):
    spent, found = iter([5, 1, 9, 4]), iter("abac")

    def retrieve(text):
        ms, item = next(spent), next(found)
        clock.pass_ms(ms)
        stages = {"search": ms * 2.0} | ({"rare": 7.0} if ms == 9 else {})
        return Answer([Result(id=item)], stages, [Call(model=item)])

    line = asked(retrieve, "x", repeat=4)["x"]
    middle = statistics.median([5, 1, 9, 4])
    assert line.latency_ms == {"total": middle, "search": 2 * middle, "rare": 7.0}
    assert [result.id for result in line.results] == ["a"]
    assert [call.model for call in line.calls] == ["a"]
    assert line.varied


@pytest.mark.parametrize(
    ("one", "other", "varied"),
    [
        (Result(id="a", score=1.0), Result(id="a", score=2.0), False),
        (Result(doc_id="d", start=0, end=5), Result(doc_id="d", start=0, end=5), False),
        (Result(doc_id="d", start=0, end=5), Result(doc_id="d", start=0, end=6), True),
        (Result(text="this"), Result(text="that"), True),
    ],
)
def test_lists_vary_by_what_they_hold_and_not_by_their_scores(one, other, varied):
    answers = iter([one, other])
    assert asked(lambda _: Answer([next(answers)]), "x", repeat=2)["x"].varied == varied


def test_what_the_retriever_timed_itself_stands_beside_what_karat_timed(clock):
    def retrieve(text):
        clock.pass_ms(10)
        return Answer([], {"total": 8.0, "rerank": 3.0})

    assert asked(retrieve, "x")["x"].latency_ms == {"total": 10.0, "reported": 8.0, "rerank": 3.0}


def test_warming_up_leaves_no_line_and_no_complaint():
    asks, at_first = [], []

    def retrieve(text):
        asks.append(text)
        if len(asks) <= 5:
            raise ValueError("cold")
        return [text]

    def done(line):
        at_first.append(len(asks))

    found = asked(retrieve, ["a", "b"], warmup=5, jobs=1, retries=0)
    assert asks == ["a", "b", "a", "b", "a", "a", "b"]
    assert [line.error for line in found.values()] == [None, None]


# When attempts begin.


@settings(max_examples=200)
@given(
    rate=st.sampled_from([0.5, 3, 10, 1000]),
    moves=st.lists(st.sampled_from([0.0, 0.01, 0.3, 5.0]), max_size=30),
)
def test_attempts_begin_evenly_spaced(rate, moves):
    now, begun = 100.0, []

    async def sleep(seconds):
        nonlocal now
        assert seconds > 0
        now += seconds

    async def take_turns():
        nonlocal now
        spacing = pacing.Spacing(rate, lambda: now, sleep)
        for move in moves:
            await spacing.turn()
            begun.append(now)
            now += move

    coroutine = take_turns()
    with pytest.raises(StopIteration):
        coroutine.send(None)  # nothing in it waits for a loop
    for before, after, move in zip(begun, begun[1:], moves, strict=False):
        assert after - before == pytest.approx(max(1 / rate, move))


def test_turns_that_are_asked_for_together_come_one_after_the_other():
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    async def together():
        spacing = pacing.Spacing(4, lambda: 10.0, sleep)
        await asyncio.gather(*(spacing.turn() for _ in range(5)))

    asyncio.run(together())
    assert slept == [0.25, 0.5, 0.75, 1.0]


def test_every_attempt_takes_its_turn(monkeypatch):
    turns = 0

    class Counting(pacing.Spacing):
        async def turn(self):
            nonlocal turns
            turns += 1

    def retrieve(text):
        nonlocal asks
        asks += 1
        raise ValueError

    monkeypatch.setattr(course, "Spacing", Counting)
    asks = 0
    asked(retrieve, "abc", retries=2, warmup=4, rate=1e9)
    assert turns == asks == 3 * 3 + 4


def test_a_rate_holds_back_a_run():
    began = time.perf_counter()
    asked(in_task(list), "abcdef", rate=50)
    assert time.perf_counter() - began >= 5 / 50


def test_pauses_grow_up_to_a_limit_and_are_by_lot():
    longest = {1: 0.5, 2: 1.0, 3: 2.0, 6: 16.0, 7: 30.0, 8: 30.0, 10_000: 30.0}
    for failures, seconds in longest.items():
        pauses = [pacing.pause(failures, None) for _ in range(300)]
        assert 0 <= min(pauses) < seconds / 10
        assert seconds * 0.9 < max(pauses) <= seconds
    assert pacing.pause(1, 7.0) == 7.0
    assert pacing.pause(1, 3600.0) == 60.0


def test_what_the_retriever_asks_to_wait_reaches_the_pause(monkeypatch):
    waits = []
    monkeypatch.setattr(course, "pause", lambda *given: waits.append(given) or 0.0)
    errors = iter([AttemptError("HTTP 429", "slow down", wait=12.5), ValueError(), None])

    def retrieve(text):
        if error := next(errors):
            raise error
        return [text]

    asked(retrieve, "x", retries=2)
    assert waits == [(1, 12.5), (2, None)]


# Retrievers that hang.


def test_a_thread_that_hangs_is_given_up_and_replaced():
    never, asks = threading.Event(), []

    def retrieve(text):
        asks.append(text)
        if text == "hang":
            never.wait(HANGING)
        return [text]

    with pytest.warns(KaratWarning, match="2 attempts went on after the timeout, beside the 1 at"):
        found = asked(retrieve, ["a", "hang", "b"], jobs=1, timeout=0.05, retries=1)
    never.set()
    assert asks == ["a", "hang", "hang", "b"]
    assert found["hang"].error == Failure("Timeout", "no answer within 0.05 s", 2)
    assert 50 <= found["hang"].latency_ms["total"] < 1000 * HANGING
    assert [found[text].results[0].id for text in "ab"] == ["a", "b"]


def test_a_task_that_hangs_is_cancelled():
    ended = []

    async def retrieve(text):
        try:
            await asyncio.sleep(HANGING if text == "hang" else 0)
        finally:
            ended.append(text)
        return [text]

    found = asked(retrieve, ["a", "hang", "b"], jobs=1, timeout=0.05)
    assert ended == ["a", "hang", "b"]
    assert found["hang"].error == Failure("Timeout", "no answer within 0.05 s", 1)
    assert found["b"].error is None


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
        asked(retrieve, ["hang", "b"], jobs=1, timeout=0.05, done=done)
    assert [line.error and line.error.type for line in found] == ["Timeout", None]


INTERRUPTED = """
import asyncio, sys, threading, time
sys.path[:0] = {path!r}
from fake_retrievers import Fake, asked

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
    for word in ("never", "pending", "Fatal", "daemon"):
        assert word not in complaints
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
    with pytest.raises(KeyboardInterrupt):
        asked(retriever, "abcdef", jobs=2, done=handed.append)
    before = list(handed)
    go_on.set()
    _all_threads_end()
    assert handed == before
    assert {line.query_id for line in handed} == {"q-a", "q-b"}
    assert retriever.closed == 1


def test_a_run_is_stopped_even_before_it_has_begun(monkeypatch):
    held = threading.Event()
    run = asking._Asking._run

    def late(self, following):
        held.wait(HANGING)
        run(self, following)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(asking._Asking, "_run", late)
    monkeypatch.setattr(asking, "ENDING", 0.01)
    monkeypatch.setattr(threading.Event, "wait", interrupted)
    asks = []
    with pytest.raises(KeyboardInterrupt):
        asked(asks.append, "abc")
    monkeypatch.undo()
    held.set()
    _all_threads_end()
    assert asks == []


def _all_threads_end():
    give_up = time.monotonic() + HANGING
    while any(thread.name.startswith("karat-") for thread in threading.enumerate()):
        assert time.monotonic() < give_up
        time.sleep(0.01)


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
    _all_threads_end()


# What a retriever returns.


def test_lists_are_cut_to_what_was_asked_for():
    def retrieve(text):
        return [str(n) for n in range(30)]

    line = asked(retrieve, "x", search=Search(top_k=3))["x"]
    assert [result.id for result in line.results] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("takes", "kept"), [([], ["a", "c", "d"]), (["score_threshold"], ["a", "b", "c"])]
)
def test_a_threshold_is_applied_where_the_retriever_does_not(takes, kept):
    scores = {"a": 0.9, "b": 0.4, "c": 0.5, "d": 0.6}

    def retrieve(text):
        return Answer([Result(id=item, score=score) for item, score in scores.items()])

    search = Search(top_k=3, score_threshold=0.5)
    line = asked(retrieve, "x", search=search, takes=takes)["x"]
    assert [result.id for result in line.results] == kept


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer([Result(id="a")]), "results[0]: there is no score"),
        (Answer([], {"rerank": float("nan")}), "latency_ms.rerank: nan is no number of milli"),
        (Answer([], {"rerank": -1.0}), "latency_ms.rerank: -1.0 is no number of milliseconds"),
        (Answer([], calls=[Call(price_per_1k=1, price_in=1)]), "calls[0]: price_per_1k is for"),
        (Answer([Result(text="\ud800", score=1.0)]), "half of a character"),
        (Answer([], {"\ud800": 1.0}), "half of a character"),
    ],
)
@pytest.mark.parametrize("in_tasks", [False, True])
def test_what_no_run_may_hold_is_a_bad_answer(answer, message, in_tasks):
    def retrieve(text):
        return answer if text == "bad" else []

    retrieve = in_task(retrieve) if in_tasks else retrieve
    found = asked(retrieve, ["bad", "b"], search=Search(score_threshold=0.5), retries=3)
    assert found["b"].error is None
    error = found["bad"].error
    assert (error.type, error.attempts) == ("BadAnswer", 1)
    assert message in error.message
    encoded(found["bad"])


def test_calls_are_those_of_the_attempt_that_counted_and_priced():
    tries = itertools.count(1)

    def retrieve(text):
        marks.record_call(model=f"attempt {next(tries)}")
        if text == "x":
            raise ValueError
        return Answer([], calls=[Call(model="returned")])

    def price(call):
        return Call(model=call.model, price_in=2.5)

    found = asked(retrieve, "yx", retries=1, jobs=1, price=price)
    models = {text: [(c.model, c.price_in) for c in line.calls] for text, line in found.items()}
    assert models == {
        "y": [("attempt 1", 2.5), ("returned", 2.5)],
        "x": [("attempt 3", 2.5)],
    }


class MuteError(Exception):
    """Cannot say what it is."""

    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("one\n  two\x1b[31m\tthree"), Failure("ValueError", "one two�[31m three")),
        (ValueError("x" * 501), Failure("ValueError", "x" * 499 + "…")),
        (ValueError("x" * 500), Failure("ValueError", "x" * 500)),
        (ValueError("\ud800"), Failure("ValueError", "�")),
        (TimeoutError(), Failure("Timeout")),
        (BrokenPipeError("gone"), Failure("ConnectionError", "gone")),
        (KeyError("docs"), Failure("KeyError", "'docs'")),
        (MuteError(), Failure("MuteError")),
        (StopIteration(), Failure("StopIteration")),
    ],
)
def test_an_error_is_told_in_one_line(error, told):
    def retrieve(text):
        raise error

    line = asked(retrieve, "x")["x"]
    assert line.error == told
    assert lines.LONGEST_MESSAGE == 500
    encoded(line)


# Whoever looks on, and from where.


def test_somebody_can_look_on():
    seen = []

    class Watching:
        def finished(self, line):
            seen.append(("finished", line.query_id))

        def retried(self, question, error):
            seen.append(("retried", question.query_id, error))

    tries = iter([ValueError("once"), ValueError("twice"), None])

    def retrieve(text):
        if text == "b" and (error := next(tries)):
            raise error
        return []

    asked(retrieve, "ab", jobs=1, retries=2, watch=Watching())
    assert seen == [
        ("finished", "q-a"),
        ("retried", "q-b", Failure("ValueError", "once", 1)),
        ("retried", "q-b", Failure("ValueError", "twice", 2)),
        ("finished", "q-b"),
    ]


def test_lines_are_handed_over_in_one_thread():
    threads = set()
    asked(
        lambda text: [text],
        map(str, range(100)),
        jobs=8,
        done=lambda _: threads.add(threading.get_ident()),
    )
    assert len(threads) == 1


@pytest.mark.parametrize("function", both(lambda text: [text]))
def test_it_runs_where_a_loop_runs_already(function):
    async def notebook():
        return asked(function, "abc")

    assert len(asyncio.run(notebook())) == 3


VARIABLE = contextvars.ContextVar("variable", default="nobody")


@pytest.mark.parametrize("in_tasks", [False, True])
def test_a_retriever_sees_the_context_of_the_caller_and_no_other_attempt(in_tasks):
    def retrieve(text):
        seen = VARIABLE.get()
        VARIABLE.set(text)
        return [seen]

    token = VARIABLE.set("caller")
    try:
        found = asked(in_task(retrieve) if in_tasks else retrieve, "abc", jobs=1)
    finally:
        VARIABLE.reset(token)
    assert {line.results[0].id for line in found.values()} == {"caller"}


def test_a_retriever_may_itself_ask_a_retriever():
    def outer(text):
        with marks.stage("outer"):
            inner = asked(lambda inner: [inner + text], "xy", jobs=2)
        return [line.results[0].id for line in inner.values()]

    found = asked(outer, "abc", jobs=3)
    assert sorted(r.id for r in found["b"].results) == ["xb", "yb"]
    assert set(found["b"].latency_ms) == {"total", "outer"}
