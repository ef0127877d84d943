"""Running a retriever: only its own time counts, and the rate of attempts is limited."""

import asyncio
import itertools
import statistics
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data.formats.native_run import Call, ResultRow
from karat.live import runner, workers
from karat.live.protocol import Answer, AttemptError
from karat.live.runner import retry_delay
from support.effort import examples
from support.fake_retrievers import Fake, fake_clock, in_task, run_queries, without_pauses


@pytest.fixture(autouse=True, scope="module")
def _without_pauses():
    with without_pauses():
        yield


@pytest.fixture
def clock():
    with fake_clock() as clock:
        yield clock


@pytest.mark.parametrize("in_tasks", [False, True])
def test_only_the_call_of_the_retriever_is_timed(clock, monkeypatch, in_tasks):
    class Slow(Fake):
        async def open(self, jobs):
            clock.pass_ms(1000)

        def parse(self, response):
            clock.pass_ms(1000)
            return super().parse(response)

    tries = itertools.count()

    def retrieve(text):
        clock.pass_ms(float(text))
        if next(tries) % 2 == 0:
            raise ValueError
        return [text]

    def pause(*_):
        clock.pass_ms(1000)
        return 0.0

    class Slowly(runner.RateLimiter):
        async def wait(self):
            clock.pass_ms(1000)

    for kind in (workers.TaskWorker, workers.ThreadWorker):

        def start(worker, attempt, start=kind.start):
            clock.pass_ms(1000)
            return start(worker, attempt)

        monkeypatch.setattr(kind, "start", start)
    monkeypatch.setattr(runner, "retry_delay", pause)
    monkeypatch.setattr(runner, "RateLimiter", Slowly)
    lines = []

    def done(line):
        clock.pass_ms(1000)
        lines.append(line)

    run_queries(
        Slow(in_task(retrieve) if in_tasks else retrieve),
        ["1", "2", "5.5"],
        done=done,
        jobs=1,
        retries=1,
    )
    assert [line.latency_ms for line in lines] == [{"total": ms} for ms in (1.0, 2.0, 5.5)]


@pytest.mark.parametrize("in_tasks", [False, True])
def test_latency_of_a_failed_query_is_that_of_its_last_attempt(clock, in_tasks):
    spent = iter([3, 8])

    def retrieve(text):
        clock.pass_ms(next(spent))
        raise ValueError

    line = run_queries(in_task(retrieve) if in_tasks else retrieve, "x", retries=1)["x"]
    assert line.latency_ms == {"total": 8.0}


def test_repeated_query_has_the_median_latency_and_the_first_results(clock):
    spent, items = iter([5, 1, 9, 4]), iter("abac")

    def retrieve(text):
        ms, item = next(spent), next(items)
        clock.pass_ms(ms)
        stages = {"search": ms * 2.0} | ({"rare": 7.0} if ms == 9 else {})
        return Answer([ResultRow(id=item)], stages, [Call(model=item)])

    line = run_queries(retrieve, "x", repeat=4)["x"]
    middle = statistics.median([5, 1, 9, 4])
    assert line.latency_ms == {"total": middle, "search": 2 * middle, "rare": 7.0}
    assert [result.id for result in line.results] == ["a"]
    assert [call.model for call in line.calls] == ["a"]
    assert line.varied


@pytest.mark.parametrize(
    ("one", "other", "varied"),
    [
        (ResultRow(id="a", score=1.0), ResultRow(id="a", score=2.0), False),
        (ResultRow(doc_id="d", start=0, end=5), ResultRow(doc_id="d", start=0, end=5), False),
        (ResultRow(doc_id="d", start=0, end=5), ResultRow(doc_id="d", start=0, end=6), True),
        (ResultRow(text="this"), ResultRow(text="that"), True),
    ],
)
def test_results_vary_by_their_items_but_not_by_their_scores(one, other, varied):
    answers = iter([one, other])
    assert run_queries(lambda _: Answer([next(answers)]), "x", repeat=2)["x"].varied == varied


def test_total_that_the_retriever_reports_is_kept_next_to_the_measured_one(clock):
    def retrieve(text):
        clock.pass_ms(10)
        return Answer([], {"total": 8.0, "rerank": 3.0})

    assert run_queries(retrieve, "x")["x"].latency_ms == {
        "total": 10.0,
        "reported": 8.0,
        "rerank": 3.0,
    }


def test_stage_called_reported_takes_precedence_over_a_reported_total(clock):
    def retrieve(text):
        clock.pass_ms(10)
        return Answer([], {"reported": 7.0, "total": 8.0})

    assert run_queries(retrieve, "x")["x"].latency_ms == {"total": 10.0, "reported": 7.0}


def test_warmup_leaves_no_line_and_no_error():
    asks = []

    def retrieve(text):
        asks.append(text)
        if len(asks) <= 5:
            raise ValueError("cold")
        return [text]

    found = run_queries(retrieve, ["a", "b"], warmup=5, jobs=1, retries=0)
    assert asks == ["a", "b", "a", "b", "a", "a", "b"]
    assert [line.error for line in found.values()] == [None, None]


# When attempts begin.


@examples(100, 1_000)
@given(
    rate=st.sampled_from([0.5, 3, 10, 1000]),
    moves=st.lists(st.sampled_from([0.0, 0.01, 0.3, 5.0]), max_size=30),
)
def test_attempts_are_evenly_spaced(rate, moves):
    now, begun = 100.0, []

    async def sleep(seconds):
        nonlocal now
        assert seconds > 0
        now += seconds

    async def take_turns():
        nonlocal now
        spacing = runner.RateLimiter(rate, lambda: now, sleep)
        for move in moves:
            await spacing.wait()
            begun.append(now)
            now += move

    coroutine = take_turns()
    with pytest.raises(StopIteration):
        coroutine.send(None)  # nothing in it waits for a loop
    for before, after, move in zip(begun, begun[1:], moves, strict=False):
        assert after - before == pytest.approx(max(1 / rate, move))


def test_concurrent_attempts_begin_one_after_the_other():
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    async def together():
        spacing = runner.RateLimiter(4, lambda: 10.0, sleep)
        await asyncio.gather(*(spacing.wait() for _ in range(5)))

    asyncio.run(together())
    assert slept == [0.25, 0.5, 0.75, 1.0]


def test_rate_applies_to_every_attempt(monkeypatch):
    turns = 0

    class Counting(runner.RateLimiter):
        async def wait(self):
            nonlocal turns
            turns += 1

    def retrieve(text):
        nonlocal asks
        asks += 1
        raise ValueError

    monkeypatch.setattr(runner, "RateLimiter", Counting)
    asks = 0
    run_queries(retrieve, "abc", retries=2, warmup=4, rate=1e9)
    assert turns == asks == 3 * 3 + 4


def test_rate_limits_a_run():
    began = time.perf_counter()
    run_queries(in_task(list), "abcdef", rate=50)
    assert time.perf_counter() - began >= 5 / 50


def test_pauses_are_random_and_grow_up_to_a_limit():
    longest = {1: 0.5, 2: 1.0, 3: 2.0, 6: 16.0, 7: 30.0, 8: 30.0, 10_000: 30.0}
    for failures, seconds in longest.items():
        pauses = [retry_delay(failures, None) for _ in range(300)]
        assert 0 <= min(pauses) < seconds / 10
        assert seconds * 0.9 < max(pauses) <= seconds
    assert retry_delay(1, 7.0) == 7.0
    assert retry_delay(1, 3600.0) == 60.0


def test_wait_that_the_retriever_requests_reaches_the_pause(monkeypatch):
    waits = []
    monkeypatch.setattr(runner, "retry_delay", lambda *arguments: waits.append(arguments) or 0.0)
    errors = iter([AttemptError("HTTP 429", "slow down", retry_after=12.5), ValueError(), None])

    def retrieve(text):
        if error := next(errors):
            raise error
        return [text]

    run_queries(retrieve, "x", retries=2)
    assert waits == [(1, 12.5), (2, None)]
