"""Errors and warnings, and helpers for their messages."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from karat.markup import brief

if TYPE_CHECKING:
    import os


Item = TypeVar("Item")
SWAPPED = "gold comes first, then the run; check whether you swapped them"


def for_example(count: int, example: str) -> str:
    """Return text for the end of a message: an example, or the only case if `count` is 1.

    >>> for_example(1, "'q1'"), for_example(2, "'q1'")
    (": 'q1'", ", for example 'q1'")
    """
    return f": {example}" if count == 1 else f", for example {example}"


def counted(count: int, word: str) -> str:
    """Return a count with a noun in the singular or plural.

    >>> counted(1, "query"), counted(2, "query"), counted(3, "result"), counted(4, "day")
    ('1 query', '2 queries', '3 results', '4 days')
    """
    if count == 1:
        return f"{count:,} {word}"
    if re.search("[^aeiou]y$", word):
        return f"{count:,} {word.removesuffix('y')}ies"
    return f"{count:,} {word}s"


def printable(text: str) -> str:
    """Replace control characters, which could move the cursor or break the line."""
    return "".join(character if character.isprintable() else "�" for character in text)


def readable(text: str, most: int = 500) -> str:
    r"""Return a message that is safe for terminals, shortened in the middle if it is too long.

    Messages contain names and values of the input, which may contain any character.

    >>> readable("the columns are a\x1b[2J and b", 21)
    'the column…�[2J and b'
    """
    return "\n".join(map(printable, brief(text, most).split("\n")))


class KaratError(Exception):
    """Base class of all errors that karat raises on purpose.

    The command line prints such an error as a message without a traceback.

    Examples
    --------
    >>> issubclass(InputError, KaratError)
    True
    """

    def __str__(self) -> str:
        return readable(super().__str__(), 1000)


class InputError(KaratError, ValueError):
    """Invalid input: what is wrong, where it is, and how to fix it.

    Parameters
    ----------
    problem : str
        What is wrong.
    path : path, optional
        The file that is invalid.
    line : int, optional
        The line in the file, from 1.
    field : str, optional
        The field, column, parameter or option that is invalid.
    hint : str, optional
        How to fix it.
    query : str, optional
        The id of the query that is invalid.

    Examples
    --------
    >>> print(InputError("the id is missing", path="run.csv", line=3, field="item_id"))
    run.csv:3: item_id: the id is missing
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
        query: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.field = field
        self.hint = hint
        self.query = query
        super().__init__(problem)

    def __str__(self) -> str:
        location = printable(self.path or "")
        problem, hint = readable(self.problem), readable(self.hint or "")
        if self.line is not None:
            location = f"{location}:{self.line}" if location else f"line {self.line}"
        field = printable(brief(self.field or "", 200))
        message = ": ".join(filter(None, [location, field, problem]))
        return f"{message}\n  hint: {hint}" if hint else message

    @property
    def in_one_line(self) -> str:
        """The message and the hint in a single line."""
        return str(self).replace("\n  hint: ", "; ")


class MeasureError(InputError):
    """An unknown measure, or an invalid parameter of a measure.

    The parameters are those of `InputError`.

    Examples
    --------
    >>> import karat
    >>> try:
    ...     karat.evaluate({"q1": ["a"]}, {"q1": ["a"]}, "nDGC")
    ... except karat.MeasureError as error:
    ...     print("nDCG" in error.hint)
    True
    """


class ConventionError(InputError):
    """An unknown convention, or data that a convention forbids.

    The parameters are those of `InputError`.

    Examples
    --------
    >>> import karat
    >>> karat.Conventions(missing="never")
    Traceback (most recent call last):
        ...
    karat.errors.ConventionError: missing: unknown value 'never'
      hint: choose one of zero, skip, error
    """


class RetrieverError(KaratError):
    """The retriever failed on too many queries.

    Examples
    --------
    >>> print(RetrieverError("the retriever failed on 3 of 10 queries"))
    the retriever failed on 3 of 10 queries
    """


class KaratWarning(UserWarning):
    """A warning about something that may make scores misleading.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", KaratWarning)  # doctest: +SKIP
    """

    def __str__(self) -> str:
        return readable(super().__str__(), 1000)


_is_muted: ContextVar[bool] = ContextVar("is_muted", default=False)
_shown: ContextVar[set[str] | None] = ContextVar("shown", default=None)


def warn(message: str, *, stacklevel: int = 1) -> None:
    """Emit a `KaratWarning`, unless `without_warnings` or `warnings_once` suppresses it.

    These work in several threads, which `warnings.catch_warnings` does not.
    """
    shown = _shown.get()
    if _is_muted.get() or (shown is not None and message in shown):
        return
    if shown is not None:
        shown.add(message)
    warnings.warn(KaratWarning(message), stacklevel=stacklevel + 1)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress the warnings of karat."""
    token = _is_muted.set(True)
    try:
        yield
    finally:
        _is_muted.reset(token)


@contextmanager
def warnings_once(shown: set[str]) -> Iterator[None]:
    """Emit each warning of karat only if it is not in `shown`, and add it there."""
    token = _shown.set(shown)
    try:
        yield
    finally:
        _shown.reset(token)


def with_warnings_once(items: Iterable[Item], shown: set[str] | None = None) -> Iterator[Item]:
    """Yield items; a warning that is repeated while they are made is emitted once."""
    iterator, shown = iter(items), set() if shown is None else shown
    while True:
        with warnings_once(shown):
            item = next(iterator, None)
        if item is None:
            return
        yield item
