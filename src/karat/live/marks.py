"""What a retriever tells of itself while it is asked: the stages it goes through, its calls.

Outside a run both do nothing, so they may stay where they are when the retriever goes to work;
this module imports nothing heavy for the same reason.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextvars import ContextVar
from threading import Lock
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeVar, cast

from karat.errors import InputError

if TYPE_CHECKING:
    from karat.data.native_usage import Call

TOTAL = "total"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class stage:  # noqa: N801 - it reads as a word: `with karat.stage("rerank"):`
    """Time a stage of the retriever: `with karat.stage("rerank"): …`.

    Also `async with`, and a decorator of a function. A stage gone through several times takes the
    sum, and one within another counts in both. It is timed in threads and tasks that the
    retriever starts as well.
    """

    def __init__(self, name: str) -> None:
        if not _is_name(name):
            raise InputError(
                f"{name!r} is no name of a stage", field="stage", hint='"rerank", for example'
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
        if outer is not None:
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
    """Record a call of a model; prices are USD per 1,000 tokens, per call, or per 1,000 calls.

    Without a stage it belongs to the innermost one that is open.
    """
    mark = _innermost()
    if mark is None:
        return
    from karat.data.native_usage import Call, refuse_two_prices

    for field, word in (("model", model), ("stage", stage)):
        if word is not None and not _is_name(word):
            raise InputError(f"{word!r} is no name", field=f"record_call: {field}")
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


class Late:
    """How many marks came after their query was finished."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = Lock()

    def add(self) -> None:
        """Count one."""
        with self._lock:
            self.count += 1


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
    """What a retriever marks in the course of one attempt, in whichever thread."""

    __slots__ = ("_late", "_lock", "_open", "calls", "closed", "spent")

    def __init__(self, late: Late) -> None:
        self.spent: dict[str, int] = {}
        """Nanoseconds by stage, in the order in which they were first entered."""
        self.calls: list[Call] = []
        self.closed = False
        self._open: list[Mark] = []
        self._late = late
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
        self._late.add()

    def add(self, call: Call) -> None:
        """Keep a call."""
        with self._lock:
            if not self.closed:
                self.calls.append(call)
                return
        self._late.add()

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
            f"{value!r} is no number of tokens",
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
            f"{value!r} is no price",
            field=f"record_call: {field}",
            hint="give USD from 0 up, or leave it out",
        )
    return price
