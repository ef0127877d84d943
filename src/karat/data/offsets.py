"""Offsets in other units: JavaScript counts UTF-16 code units, some tools count UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from karat.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


UNITS = ("codepoint", "utf16", "utf8")
# The first code point that takes one unit more than those below it.
_WIDER_FROM = {"codepoint": (), "utf16": (0x10000,), "utf8": (0x80, 0x800, 0x10000)}


def check_unit(name: str, error: Callable[..., InputError] = InputError, **place: Any) -> str:
    """Return the name of a unit, or say which there are."""
    if name in UNITS:
        return name
    raise error(
        f"{name!r} is no unit that offsets are counted in",
        field="offsets",
        hint=f"known: {', '.join(UNITS)}",
        **place,
    )


def bounds(text: str, unit: str) -> NDArray[np.int64]:
    """Return where each code point of a text begins, counted in a unit, and where the text ends.

    >>> bounds("a😀b", "utf16").tolist(), bounds("a😀b", "utf8").tolist()
    ([0, 1, 3, 4], [0, 1, 5, 6])
    """
    code_points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    widths = np.ones(code_points.size, np.int64)
    for first in _WIDER_FROM[unit]:
        widths += code_points >= first
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(widths)))


def code_points(text: str, offsets: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    """Return offsets in code points; -1 inside a character, one past the length past the end.

    >>> code_points("a😀b", np.array([0, 1, 2, 3, 4, 5]), "utf16").tolist()
    [0, 1, -1, 2, 3, 4]
    """
    begins = bounds(text, unit)
    at = np.searchsorted(begins, offsets)
    inside = begins[np.minimum(at, begins.size - 1)] > offsets
    return np.where(inside, -1, at)


_WHITE_SPACE = [code for code in range(0x3001) if chr(code).isspace()]


def dense(text: str) -> str:
    r"""Return a text without any white space.

    >>> dense(" one\n two ")
    'onetwo'
    """
    return "".join(text.split())


class DenseText:
    r"""A text beside itself without white space, so that what is found in one has a place in both.

    >>> DenseText("one\n two").stretch(2, 4)
    (2, 6)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.dense = dense(text)

    @cached_property
    def positions(self) -> npt.NDArray[np.int64]:
        """Where each character of `dense` stands in the text."""
        codes = np.frombuffer(self.text.encode("utf-32-le"), np.uint32)
        return np.flatnonzero(~np.isin(codes, _WHITE_SPACE))

    def stretch(self, start: int, end: int) -> tuple[int, int]:
        """Return the stretch of the text that `dense[start:end]` stands for."""
        return int(self.positions[start]), int(self.positions[end - 1]) + 1
