"""Running a retriever: exactly one line per query, whatever the retriever does."""

import asyncio
import contextvars
import itertools
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data.formats.native_run import Call, Failure, ResultRow
from karat.errors import InputError
from karat.live import instrumentation, runner
from karat.live.loop_thread import run_all_queries
from karat.live.protocol import Answer, AttemptError, Query, encode_line
from karat.live.run_options import RunOptions
from support.effort import FULL, examples
from support.fake_retrievers import Fake, both, in_task, run_queries, without_pauses

HANGING = 30  # seconds after which a test that hangs fails


@pytest.fixture(autouse=True, scope="module")
def _without_pauses():
    with without_pauses():
        yield


# Lines compared with an oracle.

ERRORS = {
    "fails": (ValueError("no"), "ValueError", True),
    "times out": (TimeoutError("slow"), "Timeout", True),
    "is gone": (ConnectionResetError("gone"), "ConnectionError", True),
    "is busy": (AttemptError("HTTP 503", "busy", retry_after=0.0), "HTTP 503", True),
    "refuses": (AttemptError("HTTP 400", "bad", retryable=False), "HTTP 400", False),
    "misuses karat": (InputError("bad call"), "InputError", False),
    "cancels itself": (asyncio.CancelledError("own"), "CancelledError", True),
}
steps = st.one_of(
    st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(tuple),
    st.sampled_from(sorted(ERRORS)),
    st.just("garbage"),
)


def expected(script, retries, repeat):
    """Return results, error type, attempts, varied and how often the retriever is called."""
    remaining = itertools.cycle(script)
    asks, most, ends = 0, 0, []
    while len(ends) < repeat:
        attempts = 0
        while attempts <= retries:
            attempts += 1
            asks += 1
            step = next(remaining)
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


@examples(50, 600)
@given(
    scripts=st.lists(st.lists(steps, min_size=1, max_size=5), max_size=12),
    retries=st.integers(0, 3),
    repeat=st.integers(1, 3),
    jobs=st.integers(1, 5),
    in_tasks=st.booleans(),
)
def test_every_query_has_one_line_with_its_outcome(scripts, retries, repeat, jobs, in_tasks):
    remaining = {str(at): itertools.cycle(script) for at, script in enumerate(scripts)}
    asks = dict.fromkeys(remaining, 0)

    def retrieve(text):
        asks[text] += 1
        step = next(remaining[text])
        if step in ERRORS:
            raise ERRORS[step][0]
        return step

    class Scripted(Fake):
        def parse(self, response):
            if response == "garbage":
                raise InputError("no answer", field="results")
            return super().parse(response)

    retriever = Scripted(in_task(retrieve) if in_tasks else retrieve)
    found = run_queries(retriever, remaining, retries=retries, repeat=repeat, jobs=jobs)
    assert list(map(len, (found, asks))) == [len(scripts)] * 2
    for text, script in zip(remaining, scripts, strict=True):
        line = found[text]
        kind = line.error and line.error.type
        ids = [result.id for result in line.results]
        outcome = ids, kind, line.attempts, line.varied, asks[text]
        assert outcome == expected(script, retries, repeat)
        assert line.error is None or line.error.attempts == line.attempts
        assert line.latency_ms["total"] >= 0
    assert retriever.opened == ([min(jobs, len(scripts))] if scripts else [])
    assert retriever.closed == len(retriever.opened)


def test_hint_of_an_error_of_karat_is_separated_from_its_problem():
    def retrieve(text):
        raise InputError("no  such index", path="faq.json", line=3, hint="write index=faq")

    line = run_queries(retrieve, ["a"])["a"]
    assert line.error.type == "InputError"
    assert line.error.message == "faq.json:3: no such index; write index=faq"


def test_retriever_is_not_opened_without_queries():
    retriever = Fake(None)
    assert run_queries(retriever, []) == {}
    assert (retriever.opened, retriever.closed) == ([], 0)


@pytest.mark.parametrize("in_tasks", [False, True])
def test_as_many_queries_run_at_a_time_as_there_are_jobs(in_tasks):
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

    found = run_queries(in_loop if in_tasks else in_thread, map(str, range(20)), jobs=jobs)
    assert max(most) == jobs
    assert [found[str(n)].results[0].id for n in range(20)] == [str(n) for n in range(20)]


def test_queries_are_taken_only_when_a_job_is_free():
    drawn = 0

    class Million:
        def __len__(self):
            return 1_000_000

        def __iter__(self):
            nonlocal drawn
            for drawn in range(1, len(self) + 1):
                yield Query(str(drawn), "x")

    lines = []

    def done(line):
        lines.append(line)
        if len(lines) == 100:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run_all_queries(Fake(in_task(list)), Million(), RunOptions(jobs=7, timeout=9), done)
    assert 100 <= drawn <= 100 + 2 * 7
    assert len(lines) == 100


# Answers.


def test_results_are_cut_to_top_k():
    def retrieve(text):
        return [str(n) for n in range(30)]

    line = run_queries(retrieve, "x", top_k=3)["x"]
    assert [result.id for result in line.results] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("accepts", "kept"), [([], ["a", "c", "d"]), (["score_threshold"], ["a", "b", "c"])]
)
def test_score_threshold_is_applied_unless_the_retriever_accepts_it(accepts, kept):
    scores = {"a": 0.9, "b": 0.4, "c": 0.5, "d": 0.6}

    def retrieve(text):
        return Answer([ResultRow(id=item, score=score) for item, score in scores.items()])

    line = run_queries(retrieve, "x", top_k=3, score_threshold=0.5, accepts=accepts)["x"]
    assert [result.id for result in line.results] == kept


@pytest.mark.parametrize(
    ("answer", "beginning"),
    [
        (Answer([ResultRow(id="a")]), "results[0]: "),
        (Answer([], {"rerank": float("nan")}), "latency_ms.rerank: "),
        (Answer([], {"rerank": -1.0}), "latency_ms.rerank: "),
        (Answer([], calls=[Call(price_per_1k=1, price_in=1)]), "calls[0]: price_per_1k "),
        (Answer([ResultRow(text="\ud800", score=1.0)]), ""),
        (Answer([], {"\ud800": 1.0}), ""),
    ],
)
@pytest.mark.parametrize("in_tasks", [False, True])
def test_invalid_answer_is_a_bad_answer(answer, beginning, in_tasks):
    def retrieve(text):
        return answer if text == "bad" else []

    retrieve = in_task(retrieve) if in_tasks else retrieve
    found = run_queries(retrieve, ["bad", "b"], score_threshold=0.5, retries=3)
    assert found["b"].error is None
    error = found["bad"].error
    assert (error.type, error.attempts) == ("BadAnswer", 1)
    assert error.message.startswith(beginning)
    assert error.message
    encode_line(found["bad"])


def test_calls_are_those_of_the_last_attempt_and_priced():
    tries = itertools.count(1)

    def retrieve(text):
        instrumentation.record_call(model=f"attempt {next(tries)}")
        if text == "x":
            raise ValueError
        return Answer([], calls=[Call(model="returned")])

    def price(call):
        return Call(model=call.model, price_in=2.5)

    found = run_queries(retrieve, "yx", retries=1, jobs=1, price=price)
    models = {text: [(c.model, c.price_in) for c in line.calls] for text, line in found.items()}
    assert models == {
        "y": [("attempt 1", 2.5), ("returned", 2.5)],
        "x": [("attempt 3", 2.5)],
    }


class MuteError(Exception):
    """Has no message."""

    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "failure"),
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
def test_error_is_written_in_one_line(error, failure):
    def retrieve(text):
        raise error

    line = run_queries(retrieve, "x")["x"]
    assert line.error == failure
    assert runner.MAX_MESSAGE_LENGTH == 500
    encode_line(line)


# Callbacks, threads and contexts.


def test_watch_sees_retries_and_finished_queries():
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

    run_queries(retrieve, "ab", jobs=1, retries=2, watch=Watching())
    assert seen == [
        ("finished", "q-a"),
        ("retried", "q-b", Failure("ValueError", "once", 1)),
        ("retried", "q-b", Failure("ValueError", "twice", 2)),
        ("finished", "q-b"),
    ]


def test_lines_are_written_in_one_thread():
    threads = set()
    run_queries(
        lambda text: [text],
        map(str, range(100)),
        jobs=8,
        done=lambda _: threads.add(threading.get_ident()),
    )
    assert len(threads) == 1


@pytest.mark.parametrize("function", both(lambda text: [text]))
def test_run_works_within_a_running_loop(function):
    async def notebook():
        return run_queries(function, "abc")

    assert len(asyncio.run(notebook())) == 3


VARIABLE = contextvars.ContextVar("variable", default="nobody")


@pytest.mark.parametrize("in_tasks", [False, True])
def test_retriever_sees_the_context_of_the_caller_but_not_of_other_attempts(in_tasks):
    def retrieve(text):
        seen = VARIABLE.get()
        VARIABLE.set(text)
        return [seen]

    token = VARIABLE.set("caller")
    try:
        found = run_queries(in_task(retrieve) if in_tasks else retrieve, "abc", jobs=1)
    finally:
        VARIABLE.reset(token)
    assert {line.results[0].id for line in found.values()} == {"caller"}


def test_retriever_may_run_another_retriever():
    def outer(text):
        with instrumentation.stage("outer"):
            inner = run_queries(lambda inner: [inner + text], "xy", jobs=2)
        return [line.results[0].id for line in inner.values()]

    found = run_queries(outer, "abc", jobs=3)
    assert sorted(r.id for r in found["b"].results) == ["xb", "yb"]
    assert set(found["b"].latency_ms) == {"total", "outer"}


@pytest.mark.parametrize("in_tasks", [False, True])
def test_number_of_threads_and_tasks_depends_on_jobs_alone(in_tasks):
    """Each job has one thread or two tasks; one more holds all of them together."""
    jobs, questions = 64, 10_000 if FULL else 400
    before, most = threading.active_count(), 0

    def look():
        nonlocal most
        tasks = len(asyncio.all_tasks()) if in_tasks else 0
        most = max(most, tasks, threading.active_count() - before)

    def in_thread(text):
        look()
        time.sleep(0.001)
        return [text]

    async def in_loop(text):
        look()
        await asyncio.sleep(0.001)
        return [text]

    texts = [str(n) for n in range(questions)]
    found = run_queries(in_loop if in_tasks else in_thread, texts, jobs=jobs)
    assert {text: line.results[0].id for text, line in found.items()} == dict(
        zip(texts, texts, strict=True)
    )
    assert most <= (2 * jobs if in_tasks else jobs) + 1
