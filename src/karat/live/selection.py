"""Which queries are asked: those that pass the filters, of these a sample, of these the first."""

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

_SHOWN = 10  # values, or queries, that a message names


def select_queries(source: Any, options: RunOptions) -> list[Query]:
    """Return the queries to ask, in the order of their ids.

    `source` is gold, or anything with ids and texts. First the filters choose, such as
    `category=billing`: of the values of one field any will do, and each field must hold. Of what
    they leave, `sample` draws so many by chance, always the same ones for a seed and whatever
    the order of the file; a larger sample holds a smaller one. Of these, the first `limit` are
    asked.

    >>> texts = {"q1": "pay by card", "q2": "lost parcel", "q3": "refund"}
    >>> [question.text for question in questions(texts, RunOptions(limit=2))]
    ['pay by card', 'lost parcel']
    """
    queries = _filtered(read_queries(source), options.filters)
    _need_texts(queries, path_of(source))
    sample, limit = options.sample, options.limit
    if sample is not None and sample < queries.height:
        drawn = np.random.default_rng(options.seed).permutation(queries.height)[:sample]
        queries = queries[np.sort(drawn)]
    rows = queries.head(limit) if limit is not None else queries
    return [Query(*row) for row in rows.select("query_id", "text").iter_rows()]


def digest(asked: Iterable[Query]) -> str:
    """Return what tells these ids and texts from any others, in whatever order they stand."""
    lines = sorted(msgspec.json.encode((each.query_id, each.text)) for each in asked)
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def _need_texts(queries: pl.DataFrame, path: str | None) -> None:
    """Refuse queries that nobody could ask."""
    if "text" in queries.columns and queries["text"].dtype == pl.String:
        bare = queries.filter(pl.col("text").is_null() | (pl.col("text").str.strip_chars() == ""))
    else:
        bare = queries
    if bare.height:
        names = ", ".join(map(printable, bare["query_id"].head(_SHOWN)))
        more = ", …" if bare.height > _SHOWN else ""
        raise InputError(
            f"{counted(bare.height, 'query')} of {queries.height:,} without a text: {names}{more}",
            path=path,
            field="query",
            hint=SHAPE,
        )


def _filtered(queries: pl.DataFrame, filters: Mapping[str, str] | Sequence[str]) -> pl.DataFrame:
    wanted: dict[str, list[str]] = {}
    for field, value in _pairs(filters):
        wanted.setdefault(field, []).append(value)
    fields = [name for name in queries.columns if name != "text"]
    unknown = next((field for field in wanted if field not in fields), None)
    if unknown is not None:
        raise InputError(
            f"no query has a field {unknown!r}",
            field="filter",
            hint=f"the fields are {', '.join(map(printable, fields))}",
        )
    passed = np.ones(queries.height, dtype=bool)
    for field, values in wanted.items():
        held = [_as_texts(value) for value in queries[field].to_list()]
        known = {text for texts in held for text in texts}
        for value in values:
            if value not in known:
                raise InputError(
                    f"no query has {field}={printable(value)}",
                    field="filter",
                    hint=_some(sorted(known)),
                )
        passed &= np.fromiter((not texts.isdisjoint(values) for texts in held), bool, len(held))
    if not passed.any():
        every = " and ".join(f"{field}={'|'.join(values)}" for field, values in wanted.items())
        raise InputError(f"no query has {every}", field="filter", hint="ask for less at once")
    return queries.filter(passed)


def _pairs(filters: Mapping[str, str] | Sequence[str]) -> Iterable[tuple[str, str]]:
    if isinstance(filters, Mapping):
        return filters.items()
    given = [filters] if isinstance(filters, str) else filters
    parted = [each.partition("=") for each in given]
    for field, sign, _ in parted:
        if not sign or not field:
            raise InputError(
                f"{field!r} is no filter", field="filter", hint="write category=billing"
            )
    return [(field, value) for field, _, value in parted]


def _as_texts(value: Any) -> set[str]:
    """Return how a value may be written: as JSON does, whole numbers also without a fraction."""
    if value is None:
        return set()
    if isinstance(value, list):
        return {text for each in value for text in _as_texts(each)}
    value = msgspec.to_builtins(value)  # a date is text in JSON
    if isinstance(value, str):
        return {value}
    texts = {msgspec.json.encode(value).decode()}
    if isinstance(value, float) and value.is_integer():
        texts.add(str(int(value)))
    return texts


def _some(values: Sequence[str]) -> str:
    shown = ", ".join(map(printable, values[:_SHOWN]))
    return f"there are {shown}{', …' if len(values) > _SHOWN else ''}"
