"""Adapter for tables of LanceDB, which search a full-text index or use an embedding function."""

from __future__ import annotations

from typing import Any

from karat.live.protocol import Search
from karat.live.retrievers.callables import BoundCall, has_base


def adapt(target: Any, search: Search) -> BoundCall | None:
    """Return how to call a table (plain or async), or None for any other object."""
    accepts = frozenset({"top_k"})
    if has_base(target, "lancedb", "Table"):
        return BoundCall(
            lambda query: target.search(query).limit(search.top_k).to_list(), accepts=accepts
        )
    if not has_base(target, "lancedb", "AsyncTable"):
        return None

    async def search_async(query: str) -> Any:
        return await (await target.search(query)).limit(search.top_k).to_list()

    return BoundCall(search_async, is_async=True, accepts=accepts)
