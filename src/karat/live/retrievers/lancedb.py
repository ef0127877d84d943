"""Adapter for tables of LanceDB, which search a full-text index or use an embedding function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karat.live.protocol import Search
from karat.live.retrievers.callables import BoundCall, has_base


def adapt(target: Any, search: Search) -> BoundCall | None:
    """Return how to call a table (plain or async), or None for any other object."""
    accepts = frozenset({"top_k"})
    options: dict[str, str] | None = None  # the schema is read once, with the first query
    if has_base(target, "lancedb", "Table"):

        def search_table(query: str) -> Any:
            nonlocal options
            if options is None:
                options = _search_options(target.schema)
            return target.search(query, **options).limit(search.top_k).to_list()

        return BoundCall(search_table, accepts=accepts)
    if not has_base(target, "lancedb", "AsyncTable"):
        return None

    async def search_async(query: str) -> Any:
        nonlocal options
        if options is None:
            options = _search_options(await target.schema())
        return await (await target.search(query, **options)).limit(search.top_k).to_list()

    return BoundCall(search_async, is_async=True, accepts=accepts)


def _search_options(schema: Iterable[Any]) -> dict[str, str]:
    """Return the options of a search for a text.

    For a table without vectors, the search must be declared as a full-text search. A
    vector is a list of a fixed size, which may be inside another type.
    """
    has_vectors = any("fixed_size_list" in str(field.type) for field in schema)
    return {} if has_vectors else {"query_type": "fts"}
