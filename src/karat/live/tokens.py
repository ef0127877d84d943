"""How many tokens results hold, by a tokenizer that somebody chose."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from typing import Any

import msgspec

from karat.data.formats.native_run import ResultRow
from karat.errors import InputError
from karat.live.protocol import Answer, Query, Retriever

Tokenizer = Callable[[str], int | Sized]
"""Takes a text, returns its tokens, or how many there are."""


class Counting(Retriever):
    """A retriever whose results are counted, outside of what is timed."""

    def __init__(self, retriever: Retriever, tokenizer: Tokenizer, name: str) -> None:
        self.name = retriever.name
        self.is_async = retriever.is_async
        self.takes = retriever.takes
        self.settings = {**retriever.settings, "tokenizer": name}
        self._retriever = retriever
        self._tokenizer = tokenizer

    def ask(self, question: Query) -> Any:
        """Ask the retriever."""
        return self._retriever.ask(question)

    def read(self, returned: Any) -> Answer:
        """Read what came back, and count."""
        answer = self._retriever.read(returned)
        return replace(answer, results=counted(answer.results, self._tokenizer))

    async def open(self, jobs: int) -> None:
        """Make the retriever ready."""
        await self._retriever.open(jobs)

    async def close(self) -> None:
        """End the retriever."""
        await self._retriever.close()


def counted(results: Sequence[ResultRow], tokenizer: Tokenizer) -> list[ResultRow]:
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
