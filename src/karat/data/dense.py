"""A text without its white space, and where each character of that stands."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

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
