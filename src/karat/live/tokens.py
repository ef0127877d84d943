"""How many tokens results hold, by a tokenizer that somebody chose."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized

import msgspec

from karat.data.native_run import Result
from karat.errors import InputError

Tokenizer = Callable[[str], int | Sized]
"""Takes a text, returns its tokens, or how many there are."""


def counted(results: Sequence[Result], tokenizer: Tokenizer) -> list[Result]:
    """Return results with the tokens of their texts; those that say them already keep them."""
    return [
        result
        if result.text is None or result.tokens is not None
        else msgspec.structs.replace(result, tokens=_count(tokenizer(result.text)))
        for result in results
    ]


def _count(returned: int | Sized) -> int:
    if isinstance(returned, int) and not isinstance(returned, bool) and returned >= 0:
        return returned
    if isinstance(returned, Sized) and not isinstance(returned, (str, bytes)):
        return len(returned)
    raise InputError(
        f"the tokenizer returned a {type(returned).__name__} that is no number of tokens",
        field="tokenizer",
        hint="let it return a whole number from 0 up, or the list of tokens",
    )
