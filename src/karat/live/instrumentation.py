"""Stages and model calls that a retriever records about itself during a run.

Outside a run they do nothing, so they can stay in the code that goes into production. This module
imports nothing heavy for the same reason.

A context variable holds the query that is running, so stages and calls belong to the right one
however many run at a time. Tasks of asyncio and `asyncio.to_thread` copy the context; other threads
do not, which is what `carry` is for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Lock
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from karat.errors import InputError

if TYPE_CHECKING:
    from karat.data.formats.native_run import Call

TOTAL = "total"
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")


class stage:  # noqa: N801 - it reads as a word: `with karat.stage("rerank"):`
    """Measure the time of a stage of the retriever: `with karat.stage("rerank"): …`.

    It also works with `async with`, and as a decorator of a function. The times of a stage that is
    entered several times are added up; time in a stage inside another stage counts for both.
    In a thread that the retriever starts itself, wrap the function with `karat.carry`.

    Parameters
    ----------
    name : str
        The name under which the time appears in the run, for `latency.mean(stage=rerank)`.
        "total" is the time that karat measures itself, and is refused.
    """

    def __init__(self, name: str) -> None:
        if not _is_name(name):
            raise InputError(
                f"{name!r} is not a name of a stage", field="stage", hint='"rerank", for example'
            )
        if name == TOTAL:
            raise InputError(
                f"{TOTAL} is the time that karat takes itself",
                field="stage",
                hint="name the stage after what it does",
            )
        self.name = name

    def __enter__(self) -> None:
        outer = HERE.get()
        if outer is None:
            _count_outside()
        else:
            HERE.set(outer.recorder.begin(self, outer))

    def __exit__(self, *_: object) -> None:
        mark = HERE.get()
        # Generators may leave their stages in another order than they entered them.
        while mark is not None and (mark.owner is not self or mark.ended):
            mark = mark.outer
        if mark is not None:
            mark.recorder.end(mark)
            HERE.set(_innermost())

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def __call__(self, function: _Function) -> _Function:
        """Time every call of a function."""
        import inspect

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise InputError(
                f"{function.__name__} is a generator, which works after it was called",
                field="stage",
                hint="write `with karat.stage(…):` around its work",
            )

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            with stage(self.name):
                return function(*arguments, **options)

        @functools.wraps(function)
        async def wait(*arguments: Any, **options: Any) -> Any:
            with stage(self.name):
                return await function(*arguments, **options)

        return cast("_Function", wait if inspect.iscoroutinefunction(function) else call)


def record_call(
    *,
    model: str | None = None,
    stage: str | None = None,
    prompt_tokens: int | None = None,
    completion_tokens: int | None = None,
    price_per_1k: float | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    price_per_call: float | None = None,
    price_per_1k_calls: float | None = None,
) -> None:
    """Record a call of a model, for the cost measures; outside a run this does nothing.

    In a thread that the retriever starts itself, wrap the function with `karat.carry`.

    Parameters
    ----------
    model : str, optional
        The name of the model. Without a price, `karat[live]` looks up the price of this model.
    stage : str, optional
        The stage that the call belongs to. Default: the innermost `karat.stage` that is open.
    prompt_tokens, completion_tokens : int, optional
        Number of tokens sent to the model and returned by it.
    price_per_1k : float, optional
        Price in USD per 1,000 tokens, sent or returned.
    price_in, price_out : float, optional
        Prices in USD per 1,000 tokens, for tokens sent and tokens returned.
    price_per_call : float, optional
        Price in USD per call.
    price_per_1k_calls : float, optional
        Price in USD per 1,000 calls.
    """
    mark = _innermost()
    if mark is None:
        _count_outside()
        return
    from karat.data.formats.native_run import Call, refuse_two_prices

    for field, word in (("model", model), ("stage", stage)):
        if word is not None and not _is_name(word):
            raise InputError(f"{word!r} is not a name", field=f"record_call: {field}")
    call = Call(
        stage=stage or mark.name,
        model=model,
        prompt_tokens=_count("prompt_tokens", prompt_tokens),
        completion_tokens=_count("completion_tokens", completion_tokens),
        price_per_1k=_price("price_per_1k", price_per_1k),
        price_in=_price("price_in", price_in),
        price_out=_price("price_out", price_out),
        price_per_call=_price("price_per_call", price_per_call),
        price_per_1k_calls=_price("price_per_1k_calls", price_per_1k_calls),
    )
    refuse_two_prices(call, InputError, field="record_call")
    mark.recorder.add(call)


def carry(function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """Let a function that runs in another thread record stages and calls for the current query.

    A new thread starts without the context of the thread that starts it, so karat cannot tell
    which query its stages belong to. `carry` copies the context (all context variables, for example
    also the current span of OpenTelemetry), and each call of the returned function runs in it:

        executor.submit(karat.carry(search), query)
        executor.map(karat.carry(search), queries)
        loop.run_in_executor(None, karat.carry(search), query)
        threading.Thread(target=karat.carry(search), args=[query])

    Tasks of asyncio and `asyncio.to_thread` carry the context by themselves. Call `carry` where
    the thread is started, not once at the top of a module: it copies the context of that moment.

    Parameters
    ----------
    function : callable
        A plain function. Async functions and generators run only after they were called, in the
        context of their caller, and are refused.

    Returns
    -------
    callable
        A function with the same parameters and the same result.
    """
    import inspect

    if not callable(function):
        raise InputError(
            f"an object of type {type(function).__name__} cannot be called",
            field="carry",
            hint="pass the function and its arguments separately: "
            "executor.submit(karat.carry(search), query)",
        )
    runs_later = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    )
    if any(test(function) for test in runs_later):
        name = getattr(function, "__name__", type(function).__name__)
        raise InputError(
            f"{name} is async or a generator, and would run after carry has ended",
            field="carry",
            hint="tasks carry the context by themselves; otherwise, carry the plain function that "
            "the thread calls",
        )
    context = copy_context()

    @functools.wraps(function)
    def call(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Returned:
        # A copy for each call, since a context cannot be entered in two threads at a time.
        return context.copy().run(function, *arguments, **options)

    return call


class Unattributed:
    """Counts the stages and calls during a run that belong to none of its queries."""

    def __init__(self) -> None:
        self.late = 0
        """Those whose query was already finished."""
        self.outside = 0
        """Those in a thread without a query."""
        self._lock = Lock()

    def add_late(self) -> None:
        """Count a stage or call whose query was already finished."""
        with self._lock:
            self.late += 1

    def add_outside(self) -> None:
        """Count a stage or call in a thread without a query."""
        with self._lock:
            self.outside += 1

    @contextmanager
    def counting_outside(self) -> Iterator[None]:
        """Count stages and calls in threads without a query, anywhere in this process."""
        global _runs_in_progress
        with _runs_lock:
            _runs_in_progress = (*_runs_in_progress, self)
        try:
            yield
        finally:
            with _runs_lock:
                _runs_in_progress = tuple(run for run in _runs_in_progress if run is not self)


_runs_in_progress: tuple[Unattributed, ...] = ()
_runs_lock = Lock()


def _count_outside() -> None:
    for unattributed in _runs_in_progress:
        unattributed.add_outside()


class Mark:
    """A stage that was entered; the outermost one, without a name, is the attempt itself."""

    __slots__ = ("began", "ended", "name", "outer", "owner", "recorder")

    def __init__(
        self,
        recorder: Recorder,
        name: str | None = None,
        owner: stage | None = None,
        outer: Mark | None = None,
    ) -> None:
        self.recorder = recorder
        self.name = name
        self.owner = owner
        self.outer = outer
        self.ended = False
        self.began = perf_counter_ns()


class Recorder:
    """The stages and calls of one attempt, from all of its threads."""

    __slots__ = ("_lock", "_open", "_unattributed", "calls", "closed", "spent")

    def __init__(self, unattributed: Unattributed) -> None:
        self.spent: dict[str, int] = {}
        """Nanoseconds by stage, in the order in which they were first entered."""
        self.calls: list[Call] = []
        self.closed = False
        self._open: list[Mark] = []
        self._unattributed = unattributed
        self._lock = Lock()

    def enter(self) -> None:
        """Let what is marked from here on, in this context, belong to this attempt."""
        HERE.set(Mark(self))

    def begin(self, owner: stage, outer: Mark) -> Mark:
        """Enter a stage."""
        with self._lock:
            if not self.closed:
                self.spent.setdefault(owner.name, 0)
            mark = Mark(self, owner.name, owner, outer)
            self._open.append(mark)
        return mark

    def end(self, mark: Mark) -> None:
        """Leave a stage."""
        now = perf_counter_ns()
        with self._lock:
            mark.ended = True
            self._open.remove(mark)
            if not self.closed:
                self.spent[cast("str", mark.name)] += now - mark.began
                return
        self._unattributed.add_late()

    def add(self, call: Call) -> None:
        """Keep a call."""
        with self._lock:
            if not self.closed:
                self.calls.append(call)
                return
        self._unattributed.add_late()

    def close(self) -> None:
        """Take nothing more; a stage that is still open counts up to here."""
        with self._lock:
            now = perf_counter_ns()
            if not self.closed:
                for mark in self._open:
                    self.spent[cast("str", mark.name)] += now - mark.began
            self.closed = True


HERE: ContextVar[Mark | None] = ContextVar("karat_mark", default=None)
"""The innermost stage of the attempt that runs here; None outside a run."""


def _innermost() -> Mark | None:
    mark = HERE.get()
    while mark is not None and mark.ended:
        mark = mark.outer
    return mark


def _is_name(given: Any) -> bool:
    """Tell a text that a file can hold: not empty, and without half a character."""
    try:
        return isinstance(given, str) and bool(given.encode())
    except UnicodeEncodeError:
        return False


def _count(field: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        count = value.__index__()
    except AttributeError:
        count = -1
    if isinstance(value, bool) or not 0 <= count < 1 << 53:
        raise InputError(
            f"{value!r} is not a number of tokens",
            field=f"record_call: {field}",
            hint="give a whole number from 0 up, or leave it out",
        )
    return int(count)


def _price(field: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        price = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        price = math.nan
    if not 0 <= price < 1e9:
        raise InputError(
            f"{value!r} is not a price",
            field=f"record_call: {field}",
            hint="give USD from 0 up, or leave it out",
        )
    return price
