"""Checks for the values of options, and suggestions for misspelled names.

A check returns the value as a Python number, even if it is a NumPy number, or raises an InputError
that names the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

from karat.errors import InputError


def integer(
    value: Any, field: str, *, least: int, most: int | None = None, hint: str | None = None
) -> int:
    """Check an integer.

    >>> integer(5, "top_k", least=1)
    5
    """
    limit = f"of at least {least}"
    if not isinstance(value, bool) and isinstance(value, Integral):
        number = int(value)
        if most is not None and number > most:
            limit = f"of at most {most}"
        elif number >= least:
            return number
    raise InputError(f"must be an integer {limit}, got {value!r}", field=field, hint=hint)


def finite(value: Any, field: str, *, hint: str | None = None) -> float:
    """Check a number that is neither NaN nor infinite."""
    if not _is_finite(value):
        raise InputError(f"must be a finite number, got {value!r}", field=field, hint=hint)
    return _to_python(value)


def positive(
    value: Any, field: str, *, most: float | None = None, hint: str | None = None
) -> float:
    """Check a number greater than 0."""
    if _is_finite(value) and value > 0 and (most is None or value <= most):
        return _to_python(value)
    limit = "" if most is None else f" and at most {most:g}"
    raise InputError(
        f"must be a number greater than 0{limit}, got {value!r}", field=field, hint=hint
    )


def share(value: Any, field: str, *, hint: str | None = None) -> float:
    """Check a share: a number from 0 to 1."""
    if _is_finite(value) and 0 <= value <= 1:
        return _to_python(value)
    raise InputError(f"must be a number from 0 to 1, got {value!r}", field=field, hint=hint)


def one_of(value: Any, field: str, known: Iterable[str]) -> str:
    """Check that a value is one of the known words."""
    words = list(known)
    if value in words:
        return str(value)
    similar = did_you_mean(value, words) or ""
    hint = f"{similar} choose one of {', '.join(words)}".lstrip()
    raise InputError(f"unknown value {value!r}", field=field, hint=hint)


def did_you_mean(
    word: object, known: Iterable[str], *, count: int = 1, show: Callable[[str], str] = repr
) -> str | None:
    """Return a question with the known words that are most similar to a word, or None.

    >>> did_you_mean("bilingual", ["billing", "post"])
    "did you mean 'billing'?"
    """
    from difflib import get_close_matches

    similar = get_close_matches(str(word), list(known), n=count)
    return f"did you mean {' or '.join(map(show, similar))}?" if similar else None


def _is_finite(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


def _to_python(value: Any) -> float:
    """Return a Python number; integers stay integers, so that they are printed without decimals."""
    return int(value) if isinstance(value, Integral) else float(value)
