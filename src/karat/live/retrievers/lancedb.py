"""Tables of LanceDB, searched by what they are set up for: a full-text index or an embedder."""

from __future__ import annotations

from typing import Any

from karat.live.protocol import Search
from karat.live.retrievers.callables import Caller, is_a


def asking(given: Any, search: Search) -> Caller | None:
    """Recognise a table, plain or async."""
    takes = frozenset({"top_k"})
    if is_a(given, "lancedb", "Table"):
        return Caller(lambda q: given.search(q).limit(search.top_k).to_list(), takes=takes)
    if not is_a(given, "lancedb", "AsyncTable"):
        return None

    async def searched(query: str) -> Any:
        return await (await given.search(query)).limit(search.top_k).to_list()

    return Caller(searched, is_async=True, takes=takes)
