"""Tables as karat knows them: columns found by any of their names, ids as text, values checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import polars as pl

from karat.data import hugging_face
from karat.errors import InputError

QUERY_ID = ("query_id", "qid", "query-id", "queryid", "q_id")
QUERY_TEXT = ("query", "question", "user_input", "prompt")
DOC_ID = ("doc_id", "docid", "docno", "corpus-id")
ITEM_ID = ("item_id", "chunk_id", "id", *DOC_ID)
GRADE = ("grade", "rel", "relevance", "label", "score")
LONGEST_ID = 1 << 16
TOO_LONG = f"is longer than {LONGEST_ID:,} bytes"
HAS_NUL = "contains a NUL character"
RESULT_COLUMNS = ("score", "rank", "doc_id", "start", "end", "text", "tokens")
CONTEXTS = (
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
)
PLACE_HINT = "0 ≤ start ≤ end, counted from the start of the document"
LARGEST_PLACE = 1 << 32  # no document is that long, and keys made of places stay exact

Locate = Callable[[int, str, str, str | None], InputError]
"""Makes the error for a row: its number from 1, the field, the problem and the hint."""


def row_error(row: int, field: str, problem: str, hint: str | None) -> InputError:
    """Make the error for a row of a table that came from no file."""
    return InputError(f"row {row}: {problem}", field=field, hint=hint)


def to_frame(table: Any) -> pl.DataFrame:
    """Return any table that speaks Arrow (Polars, pandas, PyArrow, …) as a Polars frame."""
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    hugging_face.refuse_splits(table)
    try:
        frame = pl.DataFrame(hugging_face.arrow(table))
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"a {type(table).__name__} is not a table karat can read",
            hint=f"give a Polars, pandas or PyArrow table, a dict or a path ({error})",
        ) from error
    for name, kind in frame.schema.items():
        if kind == pl.Object:
            raise InputError(
                "this column holds Python objects", field=name, hint="make it text or numbers"
            )
    return frame.drop("__index_level_0__", strict=False)


def is_table(value: Any) -> bool:
    """Tell whether a value is a table, rather than a dict, a list or a path."""
    return (
        isinstance(value, (pl.DataFrame, pl.LazyFrame))
        or hasattr(value, "__arrow_c_stream__")
        or hugging_face.is_dataset(value)
    )


def holds_contexts(names: Iterable[str]) -> bool:
    """Tell whether columns or keys of these names make Ragas rows, and nothing of karat's own."""
    own = {"karat", "relevant", "results", "spans", "evidence", *ITEM_ID} - {"id"}
    return not set(CONTEXTS).isdisjoint(names) and own.isdisjoint(names)


def holds_places(frame: pl.DataFrame) -> bool:
    """Tell whether rows are places in documents: what has a start and no id of its own."""
    item = item_id_column(frame)
    own = item is not None and item.strip().lower() not in DOC_ID
    return column(frame, ("start",)) is not None and not own


def are_ragas_rows(records: Sequence[Any]) -> bool:
    """Tell by the first of some records whether they are Ragas rows."""
    return bool(records) and isinstance(records[0], Mapping) and holds_contexts(records[0])


def column(frame: pl.DataFrame, names: Iterable[str]) -> str | None:
    """Return the column of a frame that goes by one of these names, in their order."""
    lower = {name.strip().lower(): name for name in reversed(frame.columns)}
    return next((lower[name] for name in names if name in lower), None)


def query_id_column(frame: pl.DataFrame) -> str | None:
    """Return the column of query ids: `id` next to a query text, `topic` only as a last resort.

    >>> query_id_column(pl.DataFrame(schema=["topic", "id", "question"]))
    'id'
    """
    found = column(frame, QUERY_ID)
    if found is None and column(frame, QUERY_TEXT) is not None:
        found = column(frame, ("id",))
    if found is None and column(frame, ("id",)) is None:
        found = column(frame, ("topic",))
    return found


def need_query_id(frame: pl.DataFrame) -> str:
    """Return the column of query ids, or list the columns that there are instead."""
    return query_id_column(frame) or need(frame, QUERY_ID, "the query's id")


def item_id_column(frame: pl.DataFrame, names: Sequence[str] = ITEM_ID) -> str | None:
    """Return the column of item ids, which is not the one of query ids."""
    return column(frame.drop(query_id_column(frame) or (), strict=False), names)


def need(frame: pl.DataFrame, names: tuple[str, ...], what: str) -> str:
    """Return the column that holds `what`, or say which columns there are instead."""
    found = column(frame, names)
    if found is None:
        raise _no_column(frame, names, what)
    return found


def need_item_id(frame: pl.DataFrame) -> str:
    """Return the column of item ids, or list the columns that there are instead."""
    found = item_id_column(frame)
    if found is None:
        raise _no_column(frame, ITEM_ID, "the item's id")
    return found


def _no_column(frame: pl.DataFrame, names: tuple[str, ...], what: str) -> InputError:
    near = get_close_matches(names[0], frame.columns, n=1)
    hint = f"name it {names[0]} (or {', '.join(names[1:4])})" if len(names) > 1 else None
    return InputError(
        f"there is no column for {what}; the columns are {', '.join(frame.columns) or 'none'}",
        field=names[0],
        hint=f"rename {near[0]} to {names[0]}" if near else hint,
    )


def ids(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return ids as text: integers become decimal strings, floats and gaps are refused."""
    text = texts(values, field, locate)
    bad = text.is_null() | (text == "")
    if bad.any():
        raise locate(first(bad), values.name, "the id is missing", "give every row an id")
    for bad, problem in (
        (text.str.len_bytes() > LONGEST_ID, TOO_LONG),
        (text.str.contains("\0", literal=True), HAS_NUL),
    ):
        if bad.any():
            raise locate(first(bad), values.name, f"the id {problem}", "use another id")
    return text


def texts(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return text; integers become decimal strings, anything else is refused."""
    kind = values.dtype
    if kind.is_float() and values.len():
        raise locate(
            1,
            values.name,
            f"{values[0]!r} is no id: ids are text or whole numbers",
            "read the column as text",
        )
    if not (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum, pl.Null)):
        raise locate(1, values.name, f"a column of {kind} holds no text", "make it text")
    return values.cast(pl.String).alias(field)


def whole_numbers(
    values: pl.Series, field: str, locate: Locate = row_error, *, hint: str | None = None
) -> pl.Series:
    """Return whole numbers as 64-bit integers, or name the first value that is not one."""
    hint = hint or f"write {field} as a whole number"
    if values.dtype in (pl.String, pl.Categorical):
        text = values.cast(pl.String).str.strip_chars()
        numbers = text.str.to_integer(strict=False)
    elif values.dtype.is_float():
        numbers = values.cast(pl.Int64, strict=False)
        numbers = numbers.set(numbers.cast(pl.Float64) != values, None)
    elif values.dtype.is_integer() or values.dtype in (pl.Boolean, pl.Null):
        numbers = values.cast(pl.Int64, strict=False)
    else:
        raise locate(1, values.name, f"a column of {values.dtype} holds no whole numbers", hint)
    bad = numbers.is_null()
    if bad.any():
        at = first(bad)
        raise locate(at, values.name, f"{_shown(values[at - 1])} is no integer", hint)
    return numbers.cast(pl.Int64).alias(field)


def counts(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return whole numbers from 0 up, or name the first value that is not one."""
    hint = f"write {field} as a whole number from 0 up"
    numbers = whole_numbers(values, field, locate, hint=hint)
    if (bad := numbers < 0).any():
        at = first(bad)
        raise locate(at, values.name, f"{numbers[at - 1]} is less than 0", hint)
    return numbers


def scores(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return scores as finite 64-bit floats, or name the first that is not."""
    hint = "write a finite number; drop items that have no score"
    if values.dtype in (pl.String, pl.Categorical):
        text = values.cast(pl.String).str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
    elif values.dtype.is_numeric() or values.dtype == pl.Null:
        numbers = values.cast(pl.Float64, strict=False)
    else:
        raise locate(1, values.name, f"a column of {values.dtype} holds no scores", hint)
    bad = numbers.is_null() | ~numbers.is_finite().fill_null(value=False)
    if bad.any():
        at = first(bad)
        what = "is no number" if numbers[at - 1] is None else "is not finite"
        raise locate(at, values.name, f"{_shown(values[at - 1])} {what}", hint)
    return numbers.alias(field)


def check_places(table: pl.DataFrame, locate: Locate = row_error) -> None:
    """Refuse a start or an end that marks no stretch of text."""
    if not {"start", "end"} <= set(table.columns):
        return
    start, end = table["start"], table["end"]
    bad = (start < 0) | (end < start) | (end > LARGEST_PLACE)
    if bad.any():
        at = first(bad)
        raise locate(at, "start", no_place(start[at - 1], end[at - 1]), PLACE_HINT)


def no_place(start: int, end: int | None) -> str:
    """Say what is wrong with a start and an end that mark no stretch of text."""
    if end is not None and 0 <= start <= end:
        return f"[{start}, {end}) ends beyond {LARGEST_PLACE:,}, further than a document goes"
    return f"[{start}, {end}) is no stretch of text"


def refuse_twice(ids: pl.Series, what: str, locate: Locate = row_error) -> None:
    """Refuse an id that stands in two rows, naming the second."""
    again = ~ids.is_first_distinct()
    if again.any():
        at = first(again)
        problem = f"{what} {ids[at - 1]!r} stands there twice"
        raise locate(at, ids.name, problem, f"give each {what} one row")


def first(bad: pl.Series) -> int:
    """Return the number, from 1, of the first row that is bad."""
    at = bad.arg_max()
    assert at is not None
    return at + 1


def _shown(value: Any) -> str:
    return "an empty value" if value is None else repr(value)
