"""Select the queries of a run: first by filters, then a random sample, then the first ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from karat.data.data_file import path_of
from karat.data.queries import SHAPE, read_queries
from karat.errors import InputError, counted, printable
from karat.live.protocol import Query
from karat.live.run_options import RunOptions

_MAX_LISTED = 10  # values, or queries, that a message lists


def select_queries(source: Any, options: RunOptions) -> list[Query]:
    """Return the queries to run, in the order of their ids.

    `source` is gold, or anything else with ids and texts of queries. The options apply in this
    order:

    1. `filters`, such as `category=billing`. Values of one field are alternatives; all fields must
       match.
    2. `sample` draws this many queries at random. The sample depends only on the seed and the ids,
       not on the order of the file, and a larger sample contains all queries of a smaller one.
    3. `limit` takes the first queries.

    >>> texts = {"q1": "pay by card", "q2": "lost parcel", "q3": "refund"}
    >>> [query.text for query in select_queries(texts, RunOptions(limit=2))]
    ['pay by card', 'lost parcel']
    """
    queries = _apply_filters(read_queries(source), options.filters)
    _require_texts(queries, path_of(source))
    sample, limit = options.sample, options.limit
    if sample is not None and sample < queries.height:
        rows = np.random.default_rng(options.seed).permutation(queries.height)[:sample]
        queries = queries[np.sort(rows)]
    if limit is not None:
        queries = queries.head(limit)
    return [Query(*row) for row in queries.select("query_id", "text").iter_rows()]


def queries_digest(queries: Iterable[Query]) -> str:
    """Return a hash of the ids and texts of queries, which does not depend on their order."""
    lines = sorted(msgspec.json.encode((query.query_id, query.text)) for query in queries)
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def _require_texts(queries: pl.DataFrame, path: str | None) -> None:
    if "text" in queries.columns and queries["text"].dtype == pl.String:
        is_empty = pl.col("text").is_null() | (pl.col("text").str.strip_chars() == "")
        without_text = queries.filter(is_empty)
    else:
        without_text = queries
    if without_text.height:
        raise InputError(
            f"{without_text.height:,} of {counted(queries.height, 'query')} "
            f"{'has' if without_text.height == 1 else 'have'} no text: "
            f"{_format_list(without_text['query_id'].to_list())}",
            path=path,
            field="query",
            hint=SHAPE,
        )


def _apply_filters(
    queries: pl.DataFrame, filters: Mapping[str, str] | Sequence[str]
) -> pl.DataFrame:
    values_by_field: dict[str, list[str]] = {}
    for field, value in _parse_filters(filters):
        values_by_field.setdefault(field, []).append(value)
    fields = [name for name in queries.columns if name != "text"]
    unknown = next((field for field in values_by_field if field not in fields), None)
    if unknown is not None:
        raise InputError(
            f"the queries have no field {unknown!r}",
            field="filter",
            hint=f"the fields are {', '.join(map(printable, fields))}",
        )
    is_match = np.ones(queries.height, dtype=bool)
    for field, values in values_by_field.items():
        is_match &= _matches(queries[field].to_list(), field, values)
    if not is_match.any():
        filter_text = " and ".join(f"{f}={'|'.join(v)}" for f, v in values_by_field.items())
        raise InputError(f"no query has {filter_text}", field="filter", hint="remove a filter")
    return queries.filter(is_match)


def _matches(column: list[Any], field: str, values: list[str]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return which rows have one of the values; raise an error for a value that no row has."""
    spellings = [_spellings(value) for value in column]
    existing = {text for texts in spellings for text in texts}
    for value in values:
        if value not in existing:
            raise InputError(
                f"no query has {field}={printable(value)}",
                field="filter",
                hint=f"the values are {_format_list(sorted(existing))}",
            )
    matches = (not texts.isdisjoint(values) for texts in spellings)
    return np.fromiter(matches, bool, len(spellings))


def _parse_filters(filters: Mapping[str, str] | Sequence[str]) -> Iterable[tuple[str, str]]:
    if isinstance(filters, Mapping):
        return filters.items()
    pairs = []
    for text in [filters] if isinstance(filters, str) else filters:
        field, equals, value = text.partition("=")
        if not equals or not field:
            raise InputError(
                f"a filter must be FIELD=VALUE, got {text!r}",
                field="filter",
                hint="write category=billing, for example",
            )
        pairs.append((field, value))
    return pairs


def _spellings(value: Any) -> set[str]:
    """Return how a value may be written: as in JSON, and a float such as 2.0 also as 2."""
    if value is None:
        return set()
    if isinstance(value, list):
        return {text for element in value for text in _spellings(element)}
    value = msgspec.to_builtins(value)  # a date is a string in JSON
    if isinstance(value, str):
        return {value}
    texts = {msgspec.json.encode(value).decode()}
    if isinstance(value, float) and value.is_integer():
        texts.add(str(int(value)))
    return texts


def _format_list(values: Sequence[str]) -> str:
    listed = ", ".join(map(printable, values[:_MAX_LISTED]))
    return f"{listed}, …" if len(values) > _MAX_LISTED else listed
