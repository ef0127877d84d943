"""Retrievers made of a function, and a clock that only moves when a test moves it."""

import inspect
from contextlib import contextmanager

import pytest

from karat.data.formats.native_run import ResultRow
from karat.live import instrumentation, runner, workers
from karat.live.loop_thread import run_all_queries
from karat.live.protocol import Answer, Query, Retriever
from karat.live.run_options import RunOptions


class Fake(Retriever):
    """Calls a function with the text of a query; a list of ids is parsed as an answer."""

    name = "fake"

    def __init__(self, function, *, accepts=()):
        self.settings = {}
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.accepts = frozenset(accepts)
        self.opened = []
        self.closed = 0

    def retrieve(self, query):
        return self.function(query.text)

    def parse(self, response):
        if isinstance(response, Answer):
            return response
        return Answer([ResultRow(id=item) for item in response])

    async def open(self, jobs):
        self.opened.append(jobs)

    async def close(self):
        self.closed += 1


class Clock:
    """Time in nanoseconds that passes only by `pass_ms`."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def pass_ms(self, ms):
        self.now += round(ms * 1e6)


@contextmanager
def fake_clock():
    """Measure all times with a `Clock`."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        for module in (workers, instrumentation):
            patch.setattr(module, "perf_counter_ns", clock)
        yield clock


@contextmanager
def without_pauses():
    """Retry at once, and hardly wait for tasks that were cancelled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "retry_delay", lambda *_: 0.0)
        patch.setattr(workers, "CANCEL_TIMEOUT", 0.05)
        yield


def in_task(function):
    """Return a function as a coroutine function."""

    async def awaited(text):
        return function(text)

    return awaited


def both(function):
    """Return a function as it is, and as a coroutine function."""
    return [function, in_task(function)]


def run_queries(function, texts, *, done=None, price=None, watch=None, accepts=(), **options):
    """Run a retriever made of a function; return the line of each text."""
    retriever = function if isinstance(function, Retriever) else Fake(function, accepts=accepts)
    lines = []
    prices = {} if price is None else {"price": price}
    run_all_queries(
        retriever,
        [Query(f"q-{text}", text) for text in texts],
        RunOptions(**{"timeout": None, "retries": 0, "stop_after_failures": 0} | options),
        done or lines.append,
        watch=watch,
        **prices,
    )
    by_text = {line.query_id.removeprefix("q-"): line for line in lines}
    assert len(by_text) == len(lines)
    return by_text
