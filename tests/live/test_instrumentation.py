"""Stages and calls that a retriever records belong to its query, in any task or carried thread."""

import asyncio
import contextlib
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.data.formats.native_run import Call
from karat.errors import KaratWarning
from karat.live.protocol import Answer
from support.effort import examples
from support.errors import refused
from support.fake_retrievers import both, fake_clock, run_queries, without_pauses

HANGING = 30


@pytest.fixture(autouse=True, scope="module")
def _without_pauses():
    with without_pauses():
        yield


@pytest.fixture
def clock():
    with fake_clock() as clock:
        yield clock


def calls_of(line):
    return [(call.stage, call.model) for call in line.calls or []]


# Stages.

trees = st.recursive(
    st.just([]),
    lambda inner: st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.booleans(), inner), max_size=4
    ),
    max_leaves=12,
)


def spent_in(tree, spent):
    """Add up the time of each stage of a tree; return the time of the whole tree."""
    whole = 0
    for name, ms, _, inner in tree:
        took = ms + spent_in(inner, spent)
        spent[name] = spent.get(name, 0) + took
        whole += took
    return whole


@examples(60, 600)
@given(tree=trees, in_tasks=st.booleans())
def test_stage_has_the_time_between_its_begin_and_its_end(tree, in_tasks):
    expected = {}
    expected["total"] = spent_in(tree, expected)

    def go_through(tree):
        for name, ms, fails, inner in tree:
            with contextlib.suppress(ValueError), karat.stage(name):
                clock.pass_ms(ms)
                go_through(inner)
                if fails:
                    raise ValueError

    def retrieve(text):
        go_through(tree)
        return []

    with fake_clock() as clock:
        line = run_queries(both(retrieve)[in_tasks], "x")["x"]
    assert line.latency_ms == expected
    assert next(iter(line.latency_ms)) == "total"


def in_thread(work):
    thread = threading.Thread(target=karat.carry(work))
    thread.start()
    thread.join()


def in_timer(work):
    timer = threading.Timer(0, karat.carry(work))
    timer.start()
    timer.join()


def in_pool(work):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(karat.carry(work)).result()


def in_shared_pool(work):
    SHARED.submit(karat.carry(work)).result()


def in_map(work):
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(karat.carry(lambda _: work()), [1]))


def in_thread_of_a_pool(work):
    in_pool(lambda: in_thread(work))


def in_loop_of_its_own(work):
    async def main():
        await asyncio.gather(asyncio.to_thread(work))

    asyncio.run(main())


SHARED = ThreadPoolExecutor(2)
WAYS = [
    in_thread,
    in_timer,
    in_pool,
    in_shared_pool,
    in_map,
    in_thread_of_a_pool,
    in_loop_of_its_own,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("in_tasks", [False, True])
def test_stages_and_calls_are_recorded_in_threads(way, in_tasks):
    if in_tasks and way is in_loop_of_its_own:
        way = in_pool  # a loop cannot run in a loop

    def retrieve(text):
        def work():
            with karat.stage(f"stage of {text}"):
                karat.record_call(model=f"model of {text}")

        with karat.stage("around"):
            way(work)
            way(lambda: karat.record_call(model="beside"))
        return []

    texts = [str(n) for n in range(12)]
    found = run_queries(both(retrieve)[in_tasks], texts, jobs=4)
    for text in texts:
        assert list(found[text].latency_ms) == ["total", "around", f"stage of {text}"]
        assert calls_of(found[text]) == [
            (f"stage of {text}", f"model of {text}"),
            ("around", "beside"),
        ]


def test_stages_and_calls_are_recorded_in_tasks_and_executors():
    async def retrieve(text):
        async def work(name):
            async with karat.stage(name):
                await asyncio.sleep(0)
                karat.record_call(model=text)

        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            for name in ("one", "two"):
                group.create_task(work(name))
        for pool, name in ((None, "default"), (SHARED, "shared")):
            await loop.run_in_executor(
                pool, karat.carry(lambda name=name: karat.record_call(model=f"{name} {text}"))
            )
        return []

    found = run_queries(retrieve, "abcdefgh", jobs=4)
    for text in "abcdefgh":
        assert list(found[text].latency_ms) == ["total", "one", "two"]
        assert calls_of(found[text]) == [
            ("one", text),
            ("two", text),
            (None, f"default {text}"),
            (None, f"shared {text}"),
        ]


def test_carried_function_may_run_in_several_threads_at_a_time():
    def retrieve(text):
        meeting = threading.Barrier(3, timeout=HANGING)

        def work(name):
            with karat.stage(name):
                meeting.wait()

        with ThreadPoolExecutor(3) as pool, karat.stage("around"):
            list(pool.map(karat.carry(work), "abc"))
        return []

    line = run_queries(retrieve, "x")["x"]
    assert sorted(line.latency_ms) == ["a", "around", "b", "c", "total"]


def test_carried_function_keeps_parameters_result_and_name():
    def add(a, *, b):
        """Add two numbers."""
        return a + b

    carried = karat.carry(add)
    assert carried(1, b=2) == 3
    assert (carried.__name__, carried.__doc__) == ("add", "Add two numbers.")


def test_carry_copies_the_context_when_it_is_called():
    variable = ContextVar("variable")
    variable.set("before")
    carried = karat.carry(variable.get)
    variable.set("after")
    assert carried() == "before"


async def coroutine():
    pass


def generator():
    yield


async def async_generator():
    yield


@pytest.mark.parametrize(
    "function",
    [3, coroutine, partial(coroutine), generator, async_generator],
    ids=["number", "coroutine", "partial", "generator", "async generator"],
)
def test_carry_refuses_what_does_not_run_when_it_is_called(function):
    with refused(path=None, line=None, field="carry"):
        karat.carry(function)


@pytest.mark.parametrize("in_tasks", [False, True])
def test_stages_and_calls_in_threads_without_carry_are_counted_in_one_warning(in_tasks):
    # The threads of the pool are started by one query and serve others later.
    with ThreadPoolExecutor(2) as pool:

        def work(text):
            with karat.stage("search"):
                karat.record_call(model=text)

        def retrieve(text):
            pool.submit(work, text).result()
            return []

        with pytest.warns(KaratWarning) as caught:
            found = run_queries(both(retrieve)[in_tasks], "abcdef", jobs=3)
    assert [list(line.latency_ms) for line in found.values()] == [["total"]] * 6
    assert [line.calls for line in found.values()] == [None] * 6
    (warning,) = caught
    assert "12 entries" in str(warning.message)
    assert "karat.carry" in str(warning.message)


def test_thread_of_a_pool_does_not_keep_the_query_of_a_carried_function():
    with ThreadPoolExecutor(1) as pool:

        def retrieve(text):
            pool.submit(karat.carry(karat.record_call), model=text).result()
            pool.submit(karat.record_call, model="without a query").result()
            return []

        with pytest.warns(KaratWarning, match=r"\b2 entries"):
            found = run_queries(retrieve, "ab", jobs=1)
    assert [calls_of(line) for line in found.values()] == [[(None, "a")], [(None, "b")]]


def test_generators_may_leave_their_stages_in_any_order(clock):
    def lazily(name):
        with karat.stage(name):
            yield

    def retrieve(text):
        one, other = lazily("a"), lazily("b")
        for step in (one, other, one):
            next(step, None)
            clock.pass_ms(1)
        karat.record_call(model="within b")
        next(other, None)
        clock.pass_ms(1)
        karat.record_call(model="after all")
        return []

    line = run_queries(retrieve, "x")["x"]
    assert line.latency_ms == {"total": 4.0, "a": 2.0, "b": 2.0}
    assert calls_of(line) == [("b", "within b"), (None, "after all")]


def test_stage_that_is_left_in_another_context_lasts_to_the_end(clock):
    rerank = karat.stage("rerank")

    def lazily():
        with rerank:
            yield

    def retrieve(text):
        lazy = lazily()
        with rerank:
            elsewhere = copy_context()
        copy_context().run(next, lazy)
        clock.pass_ms(1)
        elsewhere.run(next, lazy, None)
        clock.pass_ms(1)
        return []

    line = run_queries(retrieve, "x")["x"]
    assert line.error is None
    assert line.latency_ms == {"total": 2.0, "rerank": 2.0}


def test_stage_object_may_be_entered_several_times(clock):
    rerank = karat.stage("rerank")

    def retrieve(text):
        with rerank:
            clock.pass_ms(1)
            with rerank:
                clock.pass_ms(2)
        with rerank:
            clock.pass_ms(4)
        return []

    assert run_queries(retrieve, "x")["x"].latency_ms == {"total": 7.0, "rerank": 3.0 + 2.0 + 4.0}


def test_stage_decorates_a_function(clock):
    @karat.stage("search")
    def search(text, *, ms):
        """Look it up."""
        clock.pass_ms(ms)
        return [text]

    @karat.stage("rerank")
    async def rerank(items):
        await asyncio.sleep(0)
        clock.pass_ms(5)
        return items

    async def retrieve(text):
        return await rerank(search(text, ms=2))

    line = run_queries(retrieve, "x")["x"]
    assert line.latency_ms == {"total": 7.0, "search": 2.0, "rerank": 5.0}
    assert (search.__name__, search.__doc__) == ("search", "Look it up.")
    assert [result.id for result in line.results] == ["x"]


def test_stage_does_not_decorate_a_generator():
    def numbers():
        yield 1

    with refused(path=None, line=None, field="stage") as caught:
        karat.stage("search")(numbers)
    assert "numbers" in caught.value.problem


@pytest.mark.parametrize("name", ["", None, 3, "total", "\udc00"])
def test_invalid_name_of_a_stage_is_refused(name):
    with refused(path=None, line=None, field="stage") as caught:
        karat.stage(name)
    assert (name if name == "total" else repr(name)) in caught.value.problem


def test_returned_latency_takes_precedence_over_a_recorded_stage(clock):
    def retrieve(text):
        with karat.stage("rerank"):
            clock.pass_ms(3)
        with karat.stage("search"):
            clock.pass_ms(1)
        return Answer([], {"rerank": 2.5})

    assert run_queries(retrieve, "x")["x"].latency_ms == {
        "total": 4.0,
        "rerank": 2.5,
        "search": 1.0,
    }


@pytest.mark.parametrize("in_tasks", [False, True])
def test_stages_and_calls_of_a_failed_attempt_are_dropped(in_tasks):
    tries = iter("ab")

    def retrieve(text):
        which = next(tries)
        with karat.stage(f"stage {which}"):
            karat.record_call(model=which)
            if which == "a":
                raise ValueError
        return []

    line = run_queries(both(retrieve)[in_tasks], "x", retries=1)["x"]
    assert list(line.latency_ms) == ["total", "stage b"]
    assert calls_of(line) == [("stage b", "b")]


def test_stage_that_hangs_has_the_time_until_the_timeout():
    never = threading.Event()

    def in_thread(text):
        with karat.stage("rerank"):
            never.wait(HANGING)

    async def in_task(text):
        with karat.stage("rerank"):
            await asyncio.sleep(HANGING)

    with pytest.warns(KaratWarning, match=r"\b1\b"):
        threaded = run_queries(in_thread, "x", timeout=0.2)["x"]
    never.set()
    for line in (threaded, run_queries(in_task, "x", timeout=0.2)["x"]):
        assert 50 <= line.latency_ms["rerank"] < 1000 * HANGING


def test_late_stages_and_calls_are_counted_in_a_warning():
    returned, ended, threads = threading.Event(), threading.Event(), []

    def straggle():
        with karat.stage("begun in time"):
            returned.wait(HANGING)
        with karat.stage("begun late"):
            karat.record_call(model="late")
        ended.set()

    def retrieve(text):
        if text == "a":
            threads.append(threading.Thread(target=karat.carry(straggle)))
            threads[0].start()
            return []
        returned.set()
        ended.wait(HANGING)
        return []

    with pytest.warns(KaratWarning, match=r"\b3\b"):
        found = run_queries(retrieve, "ab", jobs=1)
    threads[0].join()
    assert list(found["a"].latency_ms) in (["total", "begun in time"], ["total"])
    assert list(found["b"].latency_ms) == ["total"]
    assert (found["a"].calls, found["b"].calls) == (None, None)


# Outside a run.


def test_stages_and_calls_do_nothing_outside_a_run():
    with karat.stage("rerank"):
        karat.record_call(model="m", prompt_tokens=-1)

    @karat.stage("search")
    def search():
        return 1

    assert search() == 1


def test_threading_is_never_patched():
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def retrieve(text):
        assert threading.Thread.start is start
        assert ThreadPoolExecutor.submit is submit
        return []

    assert run_queries(retrieve, "x")["x"].error is None


# Calls.


def test_call_is_kept_as_it_was_recorded():
    def retrieve(text):
        karat.record_call(
            model="m", stage="embed", prompt_tokens=np.int64(3), completion_tokens=0, price_in=0.5
        )
        karat.record_call(price_per_call=np.float64(0.25), price_per_1k=2)
        karat.record_call(stage="rerank", price_per_1k_calls=2)
        return []

    assert run_queries(retrieve, "x")["x"].calls == [
        Call(stage="embed", model="m", prompt_tokens=3, completion_tokens=0, price_in=0.5),
        Call(price_per_call=0.25, price_per_1k=2.0),
        Call(stage="rerank", price_per_1k_calls=2.0),
    ]


@pytest.mark.parametrize(
    ("call", "place"),
    [
        ({"prompt_tokens": -1}, "prompt_tokens: -1 "),
        ({"completion_tokens": 1.5}, "completion_tokens: 1.5 "),
        ({"prompt_tokens": True}, "prompt_tokens: True "),
        ({"prompt_tokens": 1 << 53}, "prompt_tokens: 9007199254740992 "),
        ({"price_per_1k": math.nan}, "price_per_1k: nan "),
        ({"price_in": -0.1}, "price_in: -0.1 "),
        ({"price_out": "1"}, "price_out: '1' "),
        ({"price_per_call": math.inf}, "price_per_call: inf "),
        ({"price_per_call": 10**400}, "price_per_call: 1"),
        ({"price_in": [1]}, "price_in: [1] "),
        ({"price_per_1k": 1, "price_out": 1}, "price_per_1k "),
        ({"price_per_call": 1, "price_per_1k_calls": 1}, "price_per_call "),
        ({"model": ""}, "model: '' "),
        ({"model": "\ud800"}, "model: '\\ud800' "),
        ({"stage": 3}, "stage: 3 "),
    ],
)
def test_invalid_call_is_refused_at_once(call, place):
    def retrieve(text):
        karat.record_call(**call)
        return []

    line = run_queries(retrieve, "x", retries=2)["x"]
    assert (line.error.type, line.error.attempts) == ("InputError", 1)
    field, _, value = place.partition(": ")
    assert line.error.message.startswith(f"record_call: {field}")
    assert value.strip() in line.error.message
    assert line.calls is None
