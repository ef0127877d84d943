"""Count the tokens of returned texts with a tokenizer of the user's choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from typing import Any

import msgspec

from karat.data.formats.native_run import ResultRow
from karat.errors import InputError
from karat.live.protocol import Answer, Query, Retriever

Tokenizer = Callable[[str], int | Sized]
"""Takes a text and returns a list of tokens, or the token count."""


class TokenCountingRetriever(Retriever):
    """Wraps a retriever and counts the tokens of its results; counting is not timed."""

    def __init__(self, retriever: Retriever, tokenizer: Tokenizer, name: str) -> None:
        self.name = retriever.name
        self.is_async = retriever.is_async
        self.accepts = retriever.accepts
        self.settings = {**retriever.settings, "tokenizer": name}
        self._retriever = retriever
        self._tokenizer = tokenizer

    def retrieve(self, query: Query) -> Any:
        """Run the wrapped retriever."""
        return self._retriever.retrieve(query)

    def parse(self, response: Any) -> Answer:
        """Convert the response and count tokens."""
        answer = self._retriever.parse(response)
        return replace(answer, results=with_token_counts(answer.results, self._tokenizer))

    async def open(self, jobs: int) -> None:
        """Open the wrapped retriever."""
        await self._retriever.open(jobs)

    async def close(self) -> None:
        """Close the wrapped retriever."""
        await self._retriever.close()


def with_token_counts(results: Sequence[ResultRow], tokenizer: Tokenizer) -> list[ResultRow]:
    """Return the results with the number of tokens of their texts.

    A result that already has a number of tokens keeps it.
    """
    return [
        result
        if result.text is None or result.tokens is not None
        else msgspec.structs.replace(result, tokens=_to_count(tokenizer(result.text)))
        for result in results
    ]


def _to_count(tokens: int | Sized) -> int:
    if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0:
        return tokens
    if isinstance(tokens, Sized) and not isinstance(tokens, (str, bytes)):
        return len(tokens)
    got = tokens if isinstance(tokens, int) else f"an object of type {type(tokens).__name__}"
    raise InputError(
        f"the tokenizer must return a list of tokens or the token count, got {got}",
        field="tokenizer",
        hint="return an integer of at least 0, or a list of tokens",
    )
