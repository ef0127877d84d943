"""Conversion of offsets between units, and between a text and its copy without white space.

JavaScript counts UTF-16 code units, and some tools count UTF-8 bytes; karat counts code points.
"""

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
# Code points from which on a character needs one more unit than the smaller ones.
_WIDER_FROM = {"codepoint": (), "utf16": (0x10000,), "utf8": (0x80, 0x800, 0x10000)}


def check_unit(name: str, error: Callable[..., InputError] = InputError, **place: Any) -> str:
    """Return a valid name of a unit, or raise an error that lists the units."""
    if name in UNITS:
        return name
    raise error(
        f"unknown unit {name!r}",
        field="offsets",
        hint=f"choose one of {', '.join(UNITS)}",
        **place,
    )


def bounds(text: str, unit: str) -> NDArray[np.int64]:
    """Return the offset of each code point of a text, and of its end, in a unit.

    >>> bounds("a😀b", "utf16").tolist(), bounds("a😀b", "utf8").tolist()
    ([0, 1, 3, 4], [0, 1, 5, 6])
    """
    code_points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    widths = np.ones(code_points.size, np.int64)
    for first in _WIDER_FROM[unit]:
        widths += code_points >= first
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(widths)))


def code_points(text: str, offsets: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    """Return offsets converted to code points.

    An offset inside a character becomes -1, and one past the end becomes the length plus one.

    >>> code_points("a😀b", np.array([0, 1, 2, 3, 4, 5]), "utf16").tolist()
    [0, 1, -1, 2, 3, 4]
    """
    boundaries = bounds(text, unit)
    index = np.searchsorted(boundaries, offsets)
    inside = boundaries[np.minimum(index, boundaries.size - 1)] > offsets
    return np.where(inside, -1, index)


_WHITE_SPACE = [code for code in range(0x3001) if chr(code).isspace()]


def dense(text: str) -> str:
    r"""Return a text without white space.

    >>> dense(" one\n two ")
    'onetwo'
    """
    return "".join(text.split())


class DenseText:
    r"""A text and its copy without white space, with the original offset of each character.

    >>> DenseText("one\n two").original_span(2, 4)
    (2, 6)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.dense = dense(text)

    @cached_property
    def positions(self) -> npt.NDArray[np.int64]:
        """The offset in `text` of each character of `dense`."""
        codes = np.frombuffer(self.text.encode("utf-32-le"), np.uint32)
        return np.flatnonzero(~np.isin(codes, _WHITE_SPACE))

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of `text` that corresponds to `dense[start:end]`."""
        return int(self.positions[start]), int(self.positions[end - 1]) + 1
