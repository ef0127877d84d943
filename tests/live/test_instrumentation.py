"""What a retriever marks while it is asked belongs to its query, wherever it was marked."""

import asyncio
import contextlib
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.data.native_usage import Call
from karat.errors import InputError, KaratWarning
from karat.live import marks
from karat.live.asking.carrying import carrying
from karat.live.exchange import Answer
from support.fake_retrievers import asked, both, fake_clock, impatient

HANGING = 30


@pytest.fixture(autouse=True, scope="module")
def _impatient():
    with impatient():
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
    """Add up what each stage of a tree takes; return what the tree as a whole takes."""
    whole = 0
    for name, ms, _, inner in tree:
        took = ms + spent_in(inner, spent)
        spent[name] = spent.get(name, 0) + took
        whole += took
    return whole


@settings(max_examples=150)
@given(tree=trees, in_tasks=st.booleans())
def test_every_stage_takes_the_time_between_its_ends(tree, in_tasks):
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
        line = asked(both(retrieve)[in_tasks], "x")["x"]
    assert line.latency_ms == expected
    assert next(iter(line.latency_ms)) == "total"


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def in_timer(work):
    timer = threading.Timer(0, work)
    timer.start()
    timer.join()


def in_pool(work):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def in_shared_pool(work):
    SHARED.submit(work).result()


def in_map(work):
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(lambda _: work(), [1]))


def in_thread_of_a_pool(work):
    in_pool(lambda: in_thread(work))


def in_loop_of_its_own(work):
    async def main():
        await asyncio.gather(asyncio.to_thread(work))
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)

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
def test_marks_follow_into_threads(way, in_tasks):
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

    texts = [str(n) for n in range(20)]
    found = asked(both(retrieve)[in_tasks], texts, jobs=4)
    for text in texts:
        assert list(found[text].latency_ms) == ["total", "around", f"stage of {text}"]
        assert calls_of(found[text]) == [
            (f"stage of {text}", f"model of {text}"),
            ("around", "beside"),
        ]


def test_marks_follow_into_tasks_and_executors():
    async def retrieve(text):
        async def work(name):
            async with karat.stage(name):
                await asyncio.sleep(0)
                karat.record_call(model=text)

        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            for name in ("one", "two"):
                group.create_task(work(name))
        await loop.run_in_executor(None, lambda: karat.record_call(model=f"default {text}"))
        await loop.run_in_executor(SHARED, lambda: karat.record_call(model=f"shared {text}"))
        return []

    found = asked(retrieve, "abcdefgh", jobs=4)
    for text in "abcdefgh":
        assert list(found[text].latency_ms) == ["total", "one", "two"]
        assert calls_of(found[text]) == [
            ("one", text),
            ("two", text),
            (None, f"default {text}"),
            (None, f"shared {text}"),
        ]


def test_a_thread_of_a_pool_keeps_nothing_of_the_query_it_was_started_for():
    # Work that is handed to the pool by nobody's query must not be taken for the first one's.
    with ThreadPoolExecutor(1) as pool:

        def retrieve(text):
            pool.submit(lambda: None).result()
            aside = threading.Thread(target=hand_over, daemon=True)
            token = marks.HERE.set(None)
            aside.start()
            marks.HERE.reset(token)
            aside.join()
            return []

        def hand_over():
            pool.submit(karat.record_call, model="nobody's").result()

        found = asked(retrieve, "ab", jobs=1)
    assert [line.calls for line in found.values()] == [None, None]


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

    line = asked(retrieve, "x")["x"]
    assert line.latency_ms == {"total": 4.0, "a": 2.0, "b": 2.0}
    assert calls_of(line) == [("b", "within b"), (None, "after all")]


def test_a_stage_that_is_left_elsewhere_counts_up_to_the_end(clock):
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

    line = asked(retrieve, "x")["x"]
    assert line.error is None
    assert line.latency_ms == {"total": 2.0, "rerank": 2.0}


def test_one_stage_may_be_kept_and_entered_anew(clock):
    rerank = karat.stage("rerank")

    def retrieve(text):
        with rerank:
            clock.pass_ms(1)
            with rerank:
                clock.pass_ms(2)
        with rerank:
            clock.pass_ms(4)
        return []

    assert asked(retrieve, "x")["x"].latency_ms == {"total": 7.0, "rerank": 3.0 + 2.0 + 4.0}


def test_a_function_may_be_a_stage(clock):
    @karat.stage("search")
    def search(text, *, ms):
        """Look it up."""
        clock.pass_ms(ms)
        return [text]

    @karat.stage("rerank")
    async def rerank(found):
        await asyncio.sleep(0)
        clock.pass_ms(5)
        return found

    async def retrieve(text):
        return await rerank(search(text, ms=2))

    line = asked(retrieve, "x")["x"]
    assert line.latency_ms == {"total": 7.0, "search": 2.0, "rerank": 5.0}
    assert (search.__name__, search.__doc__) == ("search", "Look it up.")
    assert [result.id for result in line.results] == ["x"]


def test_a_generator_cannot_be_a_stage():
    def numbers():
        yield 1

    with pytest.raises(InputError, match="numbers is a generator"):
        karat.stage("search")(numbers)


@pytest.mark.parametrize("name", ["", None, 3, "total", "\udc00"])
def test_a_stage_needs_a_name_of_its_own(name):
    with pytest.raises(InputError, match="stage: "):
        karat.stage(name)


def test_what_is_returned_wins_over_what_is_marked(clock):
    def retrieve(text):
        with karat.stage("rerank"):
            clock.pass_ms(3)
        with karat.stage("search"):
            clock.pass_ms(1)
        return Answer([], {"rerank": 2.5})

    assert asked(retrieve, "x")["x"].latency_ms == {"total": 4.0, "rerank": 2.5, "search": 1.0}


@pytest.mark.parametrize("in_tasks", [False, True])
def test_marks_of_an_attempt_that_failed_do_not_show_in_the_next(in_tasks):
    tries = iter("ab")

    def retrieve(text):
        which = next(tries)
        with karat.stage(f"stage {which}"):
            karat.record_call(model=which)
            if which == "a":
                raise ValueError
        return []

    line = asked(both(retrieve)[in_tasks], "x", retries=1)["x"]
    assert list(line.latency_ms) == ["total", "stage b"]
    assert calls_of(line) == [("stage b", "b")]


def test_a_stage_that_hangs_shows_how_long():
    never = threading.Event()

    def in_thread(text):
        with karat.stage("rerank"):
            never.wait(HANGING)

    async def in_task(text):
        with karat.stage("rerank"):
            await asyncio.sleep(HANGING)

    with pytest.warns(KaratWarning, match="went on after the timeout"):
        one = asked(in_thread, "x", timeout=0.4)["x"]
    never.set()
    for line in (one, asked(in_task, "x", timeout=0.4)["x"]):
        assert 100 <= line.latency_ms["rerank"] < 1000 * HANGING


def test_marks_that_come_too_late_are_counted_and_told():
    returned, ended, threads = threading.Event(), threading.Event(), []

    def straggle():
        with karat.stage("begun in time"):
            returned.wait(HANGING)
        with karat.stage("begun late"):
            karat.record_call(model="late")
        ended.set()

    def retrieve(text):
        if text == "a":
            threads.append(threading.Thread(target=straggle))
            threads[0].start()
            return []
        returned.set()
        ended.wait(HANGING)
        return []

    with pytest.warns(KaratWarning, match="3 marks .* came after the query"):
        found = asked(retrieve, "ab", jobs=1)
    threads[0].join()
    assert list(found["a"].latency_ms) in (["total", "begun in time"], ["total"])
    assert list(found["b"].latency_ms) == ["total"]
    assert (found["a"].calls, found["b"].calls) == (None, None)


# Outside a run.


def test_outside_a_run_marks_do_nothing():
    with karat.stage("rerank"):
        karat.record_call(model="m", prompt_tokens=-1)

    @karat.stage("search")
    def search():
        return 1

    assert search() == 1


def test_threads_are_as_they_were_once_all_runs_have_ended():
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit
    with carrying():
        with carrying():
            assert threading.Thread.start is not start
        assert threading.Thread.start is not start
        assert ThreadPoolExecutor.submit is not submit
    assert threading.Thread.start is start
    assert ThreadPoolExecutor.submit is submit


def test_what_others_set_over_threads_meanwhile_stays(monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    seen = []

    def retrieve(text):
        if not seen:
            ours = threading.Thread.start

            def start(thread):
                seen.append(thread.name)
                ours(thread)

            threading.Thread.start = start
        in_thread(lambda: karat.record_call(model=text))
        return []

    for _ in range(3):
        found = asked(retrieve, "ab", jobs=1)
        assert [calls_of(line) for line in found.values()] == [[(None, "a")], [(None, "b")]]
    assert len(seen) >= 6


# Calls.


def test_a_call_is_kept_as_it_was_told():
    def retrieve(text):
        karat.record_call(
            model="m", stage="embed", prompt_tokens=np.int64(3), completion_tokens=0, price_in=0.5
        )
        karat.record_call(price_per_call=np.float64(0.25), price_per_1k=2)
        karat.record_call(stage="rerank", price_per_1k_calls=2)
        return []

    assert asked(retrieve, "x")["x"].calls == [
        Call(stage="embed", model="m", prompt_tokens=3, completion_tokens=0, price_in=0.5),
        Call(price_per_call=0.25, price_per_1k=2.0),
        Call(stage="rerank", price_per_1k_calls=2.0),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prompt_tokens": -1}, "record_call: prompt_tokens: -1 is no number of tokens"),
        ({"completion_tokens": 1.5}, "record_call: completion_tokens: 1.5 is no number"),
        ({"prompt_tokens": True}, "record_call: prompt_tokens: True is no number"),
        ({"prompt_tokens": 1 << 53}, "record_call: prompt_tokens: 9007199254740992 is no"),
        ({"price_per_1k": math.nan}, "record_call: price_per_1k: nan is no price"),
        ({"price_in": -0.1}, "record_call: price_in: -0.1 is no price"),
        ({"price_out": "1"}, "record_call: price_out: '1' is no price"),
        ({"price_per_call": math.inf}, "record_call: price_per_call: inf is no price"),
        ({"price_per_call": 10**400}, "record_call: price_per_call: 1"),
        ({"price_in": [1]}, "record_call: price_in: [1] is no price"),
        ({"price_per_1k": 1, "price_out": 1}, "record_call: price_per_1k is for all tokens"),
        (
            {"price_per_call": 1, "price_per_1k_calls": 1},
            "record_call: price_per_call and",
        ),
        ({"model": ""}, "record_call: model: '' is no name"),
        ({"model": "\ud800"}, "record_call: model: '\\ud800' is no name"),
        ({"stage": 3}, "record_call: stage: 3 is no name"),
    ],
)
def test_a_call_that_cannot_be_is_refused_at_once(given, message):
    def retrieve(text):
        karat.record_call(**given)
        return []

    line = asked(retrieve, "x", retries=2)["x"]
    assert (line.error.type, line.error.attempts) == ("InputError", 1)
    assert line.error.message.startswith(message)
    assert line.calls is None
