"""What can go wrong, in words a person can act on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from karat.markup import brief

if TYPE_CHECKING:
    import os


SWAPPED = "gold comes first, then the run; were they swapped?"


def counted(count: int, word: str) -> str:
    """Return a count with its word in the right number.

    >>> counted(1, "query"), counted(2, "query"), counted(3, "result"), counted(4, "day")
    ('1 query', '2 queries', '3 results', '4 days')
    """
    if count == 1:
        return f"{count:,} {word}"
    if re.search("[^aeiou]y$", word):
        return f"{count:,} {word.removesuffix('y')}ies"
    return f"{count:,} {word}s"


def printable(text: str) -> str:
    """Replace what would move the cursor or break the line."""
    return "".join(character if character.isprintable() else "�" for character in text)


def readable(text: str, most: int = 500) -> str:
    r"""Return the lines of a message as a terminal can show them, its middle left out if long.

    Names and values of the input are part of messages, whatever they contain.

    >>> readable("the columns are a\x1b[2J and b", 21)
    'the column…�[2J and b'
    """
    return "\n".join(map(printable, brief(text, most).split("\n")))


class KaratError(Exception):
    """Everything karat raises on purpose; the command line turns it into one message."""

    def __str__(self) -> str:
        return readable(super().__str__(), 1000)


class InputError(KaratError, ValueError):
    """Input that cannot be used: where it is, what is wrong and how to mend it."""

    def __init__(
        self,
        problem: str,
        *,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.field = field
        self.hint = hint
        super().__init__(problem)

    def __str__(self) -> str:
        place = printable(self.path or "")
        problem, hint = readable(self.problem), readable(self.hint or "")
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        field = printable(brief(self.field or "", 200))
        message = ": ".join(filter(None, [place, field, problem]))
        return f"{message}\n  hint: {hint}" if hint else message

    @property
    def in_one_line(self) -> str:
        """The message with its remedy, for where a line is all there is."""
        return str(self).replace("\n  hint: ", "; ")


class MeasureError(InputError):
    """A measure that does not exist, or was given something it does not take."""


class ConventionError(InputError):
    """A convention that does not exist, or one that the data breaks."""


class RetrieverError(KaratError):
    """A retriever that failed on too many queries."""


class KaratWarning(UserWarning):
    """Something a person should know before trusting a number."""

    def __str__(self) -> str:
        return readable(super().__str__(), 1000)
