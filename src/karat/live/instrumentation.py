"""Stages and model calls that a retriever records about itself during a run.

Outside a run they do nothing, so they can stay in production code. For the same reason, this module
imports nothing heavy.

What is in this file:

- `stage`, `record_call` and `carry`, the public functions that a retriever calls.
- `Recorder` collects the stages and calls of one attempt, and `Unattributed` counts those that
  belong to no query.

A context variable has the current attempt, so stages and calls are added to the right query, even
if many queries run at a time. Tasks of asyncio and `asyncio.to_thread` copy the context; other
threads do not, and need `carry`.
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

    It also works with `async with`, and as a decorator of a function. If a stage is entered several
    times, the times are added. The time of a stage inside another stage counts for both.
    In a thread that the retriever starts itself, wrap the function with `karat.carry`.

    Parameters
    ----------
    name : str
        The name under which the time appears in the run, for `latency.mean(stage=rerank)`.
        "total" is not allowed: karat stores the total time under this name.

    Examples
    --------
    >>> import karat
    >>> def search(query, top_k):
    ...     with karat.stage("rerank"):
    ...         return ["faq-1"]
    >>> run = karat.retrieve(search, {"q1": "how do I get a refund?"})
    >>> run.timings["stage"].to_list()
    ['total', 'rerank']
    """

    def __init__(self, name: str) -> None:
        if not _is_name(name):
            raise InputError(
                f"expected the name of a stage, got {name!r}",
                field="stage",
                hint='use a string such as "rerank"',
            )
        if name == TOTAL:
            raise InputError(
                f"{TOTAL!r} is not allowed as a stage: karat stores the total time under this name",
                field="stage",
                hint='use a name for a part of the work, such as "rerank"',
            )
        self.name = name

    def __enter__(self) -> None:
        outer = CURRENT.get()
        if outer is None:
            _count_outside()
        else:
            CURRENT.set(outer.recorder.begin(self, outer))

    def __exit__(self, *_: object) -> None:
        mark = CURRENT.get()
        # Generators may leave stages in another order than they entered them.
        while mark is not None and (mark.owner is not self or mark.is_ended):
            mark = mark.outer
        if mark is not None:
            mark.recorder.end(mark)
            CURRENT.set(_innermost())

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def __call__(self, function: _Function) -> _Function:
        """Measure the time of every call of a function."""
        import inspect

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise InputError(
                f"{function.__name__!r} is a generator function: its body runs during iteration, "
                "not during the call",
                field="stage",
                hint="use `with karat.stage(…):` inside the generator",
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
    """Record a call of a model, for the cost measures. Outside a run, this does nothing.

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

    Examples
    --------
    >>> import karat
    >>> def search(query, top_k):
    ...     karat.record_call(model="my-model", prompt_tokens=12, price_per_1k=0.02)
    ...     return ["faq-1"]
    >>> run = karat.retrieve(search, {"q1": "how do I get a refund?"})
    >>> run.calls.select("model", "prompt_tokens").rows()
    [('my-model', 12)]
    """
    mark = _innermost()
    if mark is None:
        _count_outside()
        return
    from karat.data.formats.native_run import Call, refuse_two_prices

    for field, name in (("model", model), ("stage", stage)):
        if name is not None and not _is_name(name):
            raise InputError(
                f"expected a name, got {name!r}",
                field=f"record_call: {field}",
            )
    call = Call(
        stage=stage or mark.name,
        model=model,
        prompt_tokens=_token_count("prompt_tokens", prompt_tokens),
        completion_tokens=_token_count("completion_tokens", completion_tokens),
        price_per_1k=_price("price_per_1k", price_per_1k),
        price_in=_price("price_in", price_in),
        price_out=_price("price_out", price_out),
        price_per_call=_price("price_per_call", price_per_call),
        price_per_1k_calls=_price("price_per_1k_calls", price_per_1k_calls),
    )
    refuse_two_prices(call, InputError, field="record_call")
    mark.recorder.add(call)


def carry(function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """Wrap a function so that it can record stages and calls of the current query in any thread.

    A new thread does not inherit the context of the thread that starts it, so karat does not know
    which query its stages belong to. `carry` copies the context (all context variables, including
    the current span of OpenTelemetry), and each call of the returned function runs in that copy:

        executor.submit(karat.carry(search), query)
        executor.map(karat.carry(search), queries)
        loop.run_in_executor(None, karat.carry(search), query)
        threading.Thread(target=karat.carry(search), args=[query])

    Tasks of asyncio and `asyncio.to_thread` copy the context themselves. Call `carry` where the
    thread is started, not once at the top of a module: it copies the context of that moment.

    Parameters
    ----------
    function : callable
        A plain function. Async functions and generators are not allowed: they only run after they
        were called, in the context of their caller.

    Returns
    -------
    callable
        A function with the same parameters and the same result.

    Examples
    --------
    >>> import karat
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def rerank(items):
    ...     with karat.stage("rerank"):
    ...         return items
    >>> def search(query, top_k):
    ...     with ThreadPoolExecutor() as executor:
    ...         return executor.submit(karat.carry(rerank), ["faq-1"]).result()
    >>> run = karat.retrieve(search, {"q1": "how do I get a refund?"})
    >>> run.timings["stage"].to_list()
    ['total', 'rerank']
    """
    import inspect

    if not callable(function):
        raise InputError(
            f"carry requires a function, got an object of type {type(function).__name__}",
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
            f"{name!r} is an async or a generator function: its body does not run during the call",
            field="carry",
            hint="asyncio tasks do not need karat.carry, because they copy the context; for a "
            "thread, wrap the regular function that the thread calls",
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
        """Number of stages and calls whose query was already finished."""
        self.outside = 0
        """Number of stages and calls in a thread without a query."""
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
    """An entered stage; the outermost one has no name and is the attempt itself."""

    __slots__ = ("is_ended", "name", "outer", "owner", "recorder", "start_ns")

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
        self.is_ended = False
        self.start_ns = perf_counter_ns()


class Recorder:
    """The stages and calls of one attempt, from all of its threads."""

    __slots__ = ("_lock", "_open", "_unattributed", "calls", "closed", "spent")

    def __init__(self, unattributed: Unattributed) -> None:
        self.spent: dict[str, int] = {}
        """Nanoseconds by stage, in the order of the first entry."""
        self.calls: list[Call] = []
        self.closed = False
        self._open: list[Mark] = []
        self._unattributed = unattributed
        self._lock = Lock()

    def enter(self) -> None:
        """Attribute all stages and calls in this context to this attempt, from now on."""
        CURRENT.set(Mark(self))

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
            mark.is_ended = True
            self._open.remove(mark)
            if not self.closed:
                self.spent[cast("str", mark.name)] += now - mark.start_ns
                return
        self._unattributed.add_late()

    def add(self, call: Call) -> None:
        """Add a call."""
        with self._lock:
            if not self.closed:
                self.calls.append(call)
                return
        self._unattributed.add_late()

    def close(self) -> None:
        """Stop recording; the time of an open stage counts until now."""
        with self._lock:
            now = perf_counter_ns()
            if not self.closed:
                for mark in self._open:
                    self.spent[cast("str", mark.name)] += now - mark.start_ns
            self.closed = True


CURRENT: ContextVar[Mark | None] = ContextVar("karat_mark", default=None)
"""The innermost stage of the current attempt; None outside a run."""


def _innermost() -> Mark | None:
    mark = CURRENT.get()
    while mark is not None and mark.is_ended:
        mark = mark.outer
    return mark


def _is_name(value: Any) -> bool:
    """Return whether a value is a non-empty string that can be written to a file."""
    try:
        return isinstance(value, str) and bool(value.encode())
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _token_count(field: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        count = value.__index__()
    except AttributeError:
        count = -1
    if isinstance(value, bool) or not 0 <= count < 1 << 53:
        raise InputError(
            f"expected a number of tokens, got {value!r}",
            field=f"record_call: {field}",
            hint="pass an integer of at least 0, or leave it out",
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
            f"expected a price, got {value!r}",
            field=f"record_call: {field}",
            hint="pass a number of USD of at least 0, or leave it out",
        )
    return price
