"""Input tables: conversion to Polars, recognition of columns, and checks of ids and values."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import polars as pl

from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.errors import InputError, warn

QUERY_ID = ("query_id", "qid", "query-id", "queryid", "q_id")
QUERY_TEXT = ("query", "question", "user_input", "prompt")
DOC_ID = ("doc_id", "docid", "docno", "corpus-id")
ITEM_ID = ("item_id", "chunk_id", "id", *DOC_ID)
GRADE = ("grade", "rel", "relevance", "label", "score")
LARGEST_GRADE = 1 << 31  # sums of larger grades would not be exact
LONGEST_ID = 1 << 16
MAP_ID_COLUMN = "--column query_id=COLUMN"
TOO_LONG = f"is longer than {LONGEST_ID:,} bytes"
HAS_NUL = "contains a NUL character"
RESULT_COLUMNS = ("score", "rank", "doc_id", "start", "end", "text", "tokens")
CONTEXTS = (
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
)
OLD_CONTEXTS = "contexts"  # the name of retrieved_contexts in Ragas 0.1
ANSWERS = ("answer", "response", "reference", "ground_truth")
"""Names of answers. They become query fields and are never read as evidence texts."""
OFFSETS_HINT = "use 0 ≤ start ≤ end, counted from the start of the document"
LARGEST_OFFSET = 1 << 32  # longer than any document; keys that combine offsets stay exact

Locate = Callable[[int, str, str, str | None], InputError]
"""Makes the error for a row from the row number (from 1), the field, the problem and the hint."""


def row_error(row: int, field: str, problem: str, hint: str | None) -> InputError:
    """Return the error for a row of a table that was not read from a file."""
    return InputError(f"row {row}: {problem}", field=field, hint=hint)


def to_frame(table: Any) -> pl.DataFrame:
    """Return any table with an Arrow interface (pandas, PyArrow, …) as a Polars data frame."""
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    check_no_splits(table)
    try:
        frame = _to_polars(_to_arrow(table))
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"a value of type {type(table).__name__} cannot be read as a table",
            hint=f"pass a Polars, pandas or PyArrow table, a dict or a path ({error})",
        ) from error
    for name, kind in frame.schema.items():
        if kind == pl.Object:
            raise InputError(
                "the column contains Python objects",
                field=name,
                hint="convert it to text or numbers",
            )
    return frame.drop("__index_level_0__", strict=False)


def _to_polars(table: Any) -> pl.DataFrame:
    try:
        return pl.DataFrame(table)
    except ImportError:  # pandas needs PyArrow for its Arrow interface
        if not hasattr(table, "columns") or not hasattr(table, "dtypes"):
            raise
        return pl.DataFrame(
            [
                _pandas_column(str(name), table.iloc[:, index])
                for index, name in enumerate(table.columns)
            ]
        )


def _pandas_column(name: str, values: Any) -> pl.Series:
    """Return a pandas column without using PyArrow; missing values become null."""
    missing = values.isna().to_numpy()
    array = values.to_numpy()
    # Otherwise an integer column with missing values would become floats, which are not ids.
    if missing.any() and not isinstance(values.dtype, np.dtype):
        array = values.astype(object).to_numpy()
    if array.dtype.kind in "biuf":
        numbers = pl.Series(name, array)
        return numbers.fill_nan(None) if array.dtype.kind == "f" else numbers
    cells = [
        None if is_missing else _to_python(value)
        for value, is_missing in zip(array, missing, strict=True)
    ]
    return pl.Series(name, cells, strict=True)


def _to_python(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def is_table(value: Any) -> bool:
    """Return whether a value is a table, as opposed to a dict, a list or a path."""
    return (
        isinstance(value, (pl.DataFrame, pl.LazyFrame))
        or hasattr(value, "__arrow_c_stream__")
        or is_dataset(value)
    )


def is_dataset(value: Any) -> bool:
    """Return whether a value is a Hugging Face dataset without splits."""
    return _is_hugging_face("Dataset", value)


def _to_arrow(value: Any) -> Any:
    """Return a Hugging Face dataset as an Arrow table, and other values unchanged."""
    return value.with_format("arrow")[:] if is_dataset(value) else value


def check_no_splits(value: Any) -> None:
    """Raise an error for a Hugging Face dataset that has splits or is streamed."""
    if _is_hugging_face("DatasetDict", value) or _is_hugging_face("IterableDatasetDict", value):
        raise InputError(
            f"the dataset has splits: {', '.join(map(str, value))}",
            hint=f"choose one of them, for example dataset[{next(iter(value), 'test')!r}]",
        )
    if _is_hugging_face("IterableDataset", value):
        raise InputError(
            "streamed datasets are not supported",
            hint="load the dataset without streaming=True, or pass list(dataset)",
        )


def _is_hugging_face(name: str, value: Any) -> bool:
    kind = getattr(sys.modules.get("datasets"), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def has_ragas_columns(names: Iterable[str]) -> bool:
    """Return whether column or key names are those of Ragas rows and not of karat's own formats."""
    names = set(names)
    karat_names = {"karat", "relevant", "results", "spans", "evidence", *ITEM_ID} - {"id"}
    if names.isdisjoint(CONTEXTS):
        karat_names |= {*RELEVANT, *RESULTS, *EVIDENCE_LISTS, "error"}
        return OLD_CONTEXTS in names and karat_names.isdisjoint(names)
    return karat_names.isdisjoint(names)


def has_span_columns(frame: pl.DataFrame) -> bool:
    """Return whether rows are spans: they have a start, and no item id besides the document id."""
    item = item_id_column(frame)
    has_item_id = item is not None and item.strip().lower() not in DOC_ID
    return column(frame, ("start",)) is not None and not has_item_id


def are_ragas_rows(records: Sequence[Any]) -> bool:
    """Return whether the first record is a Ragas row."""
    return bool(records) and isinstance(records[0], Mapping) and has_ragas_columns(records[0])


def column(frame: pl.DataFrame, names: Iterable[str]) -> str | None:
    """Return the column with one of these names, or None; earlier names take precedence.

    Case and surrounding white space of the column names are ignored.
    """
    by_lower_name = {name.strip().lower(): name for name in reversed(frame.columns)}
    match = next((name for name in names if name in by_lower_name), None)
    if match is None:
        return None
    if len(by_lower_name) < frame.width:
        _check_unique_name(frame, match)
    return by_lower_name[match]


def _check_unique_name(frame: pl.DataFrame, name: str) -> None:
    same = [column for column in frame.columns if column.strip().lower() == name]
    if len(same) > 1:
        raise InputError(
            f"the columns {same[0]!r} and {same[1]!r} differ only in case or white space",
            field=same[1],
            hint="rename one of them",
        )


def query_id_column(frame: pl.DataFrame) -> str | None:
    """Return the column of query ids, or None.

    `id` is used only next to a query text. `topic` is used only without one, as in tables of TREC:
    next to a query text it is a category of queries.

    >>> query_id_column(pl.DataFrame(schema=["topic", "id", "question"]))
    'id'
    >>> query_id_column(pl.DataFrame(schema=["topic", "docno", "rel"]))
    'topic'
    """
    name = column(frame, QUERY_ID)
    if name is not None:
        return name
    if column(frame, QUERY_TEXT) is not None:
        return column(frame, ("id",))
    return column(frame, ("topic",)) if column(frame, ("id",)) is None else None


def require_query_id_column(frame: pl.DataFrame) -> str:
    """Return the column of query ids, or raise an error that lists the existing columns."""
    return query_id_column(frame) or require_column(frame, QUERY_ID, "the query id")


def query_ids(frame: pl.DataFrame, locate: Locate = row_error) -> pl.Series:
    """Return the query ids; if there is no column for them, ids generated from the texts."""
    name, text = query_id_column(frame), column(frame, QUERY_TEXT)
    if name is not None or text is None:
        return ids(frame[require_query_id_column(frame)], "query_id", locate)
    query_texts = texts(frame[text], "query_id", locate)
    bad = query_texts.is_null()
    if bad.any():
        raise locate(
            first_row_number(bad),
            text,
            "the query has neither an id nor a text",
            "add a query_id or a query text to every row",
        )
    Hashed(queries=True).warn("the table")
    unique_texts = query_texts.unique()
    generated_ids = pl.Series(list(map(generated_id, unique_texts)), dtype=pl.String)
    return query_texts.replace_strict(unique_texts, generated_ids)


def recognised_columns(frame: pl.DataFrame, **columns: str | None) -> dict[str, str]:
    """Return {ours: theirs} for the columns of the query and those that the caller recognised."""
    names = {"query_id": query_id_column(frame), "query": column(frame, QUERY_TEXT)} | columns
    return {ours: theirs for ours, theirs in names.items() if theirs is not None}


GENERATED_ID = "[0-9a-f]{16}"
"""A regular expression for ids that are generated from texts."""


def generated_id(text: str) -> str:
    """Return an id for a text: 16 hexadecimal digits of the BLAKE2b hash of its UTF-8 bytes.

    Gold and runs use the same function, so that equal texts have equal ids.

    >>> generated_id("pay by card")
    '7ef27e16b36a1f31'
    """
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass
class Hashed:
    """Whether queries or items have no ids, so that hashes of their texts are used instead."""

    queries: bool = False
    items: bool = False

    def warn(self, what: str) -> None:
        """Warn if ids were generated: texts that differ in a single space have different ids."""
        hashed = [name for name in ("queries", "items") if getattr(self, name)]
        if hashed:
            hint = f"; {MAP_ID_COLUMN} reads ids of a column" if self.queries else ""
            warn(
                f"some {' and '.join(hashed)} of {what} have no id; "
                f"a hash of the text is used as the id{hint}",
                stacklevel=4,
            )


def parse_list_cell(text: str) -> list[Any] | None:
    """Parse a list in a CSV cell, written as JSON or as by Python's `repr`; None if it is neither.

    A list in Python syntax must be exactly its `repr`: NumPy prints ['a' 'b'], which Python would
    parse as the single text 'ab'.
    """
    parsers: tuple[Callable[[str], Any], ...] = (json.loads, ast.literal_eval)
    for parse in parsers:
        try:
            value = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list) and (parse is json.loads or repr(value) == text.strip()):
            return value
    return None


def parse_id_lists(values: pl.Series, locate: Locate = row_error) -> list[Any]:
    """Return the ids in each cell: a list, a JSON list, or ids separated by semicolons.

    >>> parse_id_lists(pl.Series("relevant", ["a;b", '["c"]', None]))
    [['a', 'b'], ['c'], None]
    """
    cells = [_parse_id_cell(cell, row, values.name, locate) for row, cell in enumerate(values, 1)]
    for row, cell in enumerate(cells, 1):
        if isinstance(cell, (list, dict)) and has_nul(cell):
            raise locate(row, values.name, f"an id {HAS_NUL}", "use another id")
    return cells


def has_nul(ids: Iterable[Any]) -> bool:
    """Return whether one of the ids contains a NUL character."""
    return any(isinstance(item, str) and "\0" in item for item in ids)


def query_records(
    table: pl.DataFrame, lists: Mapping[str, str], id_lists: Sequence[str], locate: Locate
) -> tuple[list[dict[str, Any]], Callable[..., InputError]]:
    """Return a table with one row per query as records, and a function that makes their errors.

    `lists` maps keys of the records to the columns that hold lists. The lists of the keys in
    `id_lists` may also be written as `a;b`.
    """
    key_by_column = {name: key for key, name in lists.items()}
    if query := query_id_column(table):
        key_by_column[query] = "query_id"
    if text := column(table, QUERY_TEXT):
        key_by_column[text] = "query"
    column_by_key = {key: name for name, key in key_by_column.items()}
    cells = {
        key: parse_id_lists(table[name], locate) if key in id_lists else _text_lists(table[name])
        for key, name in lists.items()
    }
    rows = [
        {key_by_column.get(name, name): value for name, value in row.items()}
        | {key: values[index] for key, values in cells.items()}
        for index, row in enumerate(table.iter_rows(named=True))
    ]

    def error(
        problem: str, *, line: int, field: str | None = None, hint: str | None = None
    ) -> InputError:
        key = (field or "query_id").partition("[")[0].partition(".")[0]
        if key == "query_id" and query is not None:
            hint = f"{hint}; {MAP_ID_COLUMN} reads the ids of another column"
        return locate(line, column_by_key.get(key, key), problem, hint)

    return rows, error


def _text_lists(values: pl.Series) -> list[Any]:
    """Return the cells of a list column; lists written as text are parsed in known columns."""
    lists = (*EVIDENCE_LISTS, *CONTEXTS, OLD_CONTEXTS)
    if values.dtype != pl.String or values.name.lower() not in lists:
        return values.to_list()
    cells: list[Any] = []
    for cell in values:
        parsed = None if cell is None else parse_list_cell(cell)
        cells.append(cell if parsed is None else parsed)
    return cells


def _parse_id_cell(cell: Any, row: int, field: str, locate: Locate) -> Any:
    if isinstance(cell, pl.Series):
        return cell.to_list()
    if isinstance(cell, Mapping):  # Polars adds the keys of other rows with null values
        return {item: grade for item, grade in cell.items() if grade is not None}
    if not isinstance(cell, str):
        return None if cell is None else [cell]
    if not cell.strip():
        return None
    if not cell.lstrip().startswith(("[", "{")):
        return [item.strip() for item in cell.split(";") if item.strip()]
    is_list = cell.lstrip().startswith("[")
    ids = parse_list_cell(cell) if is_list else _parse_object_cell(cell)
    if ids is None:
        raise locate(
            row,
            field,
            f"expected a list of ids, got {cell[:40]!r}",
            'write a;b or a JSON list: ["a","b"]',
        )
    return ids


def _parse_object_cell(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def item_id_column(frame: pl.DataFrame, names: Sequence[str] = ITEM_ID) -> str | None:
    """Return the column of item ids, other than the column of query ids, or None."""
    return column(frame.drop(query_id_column(frame) or (), strict=False), names)


def require_column(frame: pl.DataFrame, names: tuple[str, ...], what: str) -> str:
    """Return the column with one of these names, or raise an error that lists the columns."""
    name = column(frame, names)
    if name is None:
        raise _missing_column_error(frame, names, what)
    return name


def require_item_id_column(frame: pl.DataFrame) -> str:
    """Return the column of item ids, or raise an error that lists the existing columns."""
    name = item_id_column(frame)
    if name is None:
        raise _missing_column_error(frame, ITEM_ID, "the item id")
    return name


def _missing_column_error(frame: pl.DataFrame, names: tuple[str, ...], what: str) -> InputError:
    expected = names[0]
    similar = get_close_matches(expected, frame.columns, n=1)
    if similar:
        hint = f"rename {similar[0]} to {expected}, or map it: --column {expected}={similar[0]}"
    else:
        aliases = f" (or {', '.join(names[1:4])})" if len(names) > 1 else ""
        hint = f"name the column {expected}{aliases}, or map it: --column {expected}=COLUMN"
    return InputError(
        f"no column for {what}; the columns are {format_column_names(frame)}",
        field=expected,
        hint=hint,
    )


def format_column_names(frame: pl.DataFrame) -> str:
    """Return the names of the columns, for an error message."""
    return ", ".join(frame.columns) or "none"


def ids(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return ids as text: integers become decimal strings; floats and nulls are errors."""
    text = texts(values, field, locate)
    bad = text.is_null() | (text == "")
    if bad.any():
        raise locate(
            first_row_number(bad), values.name, "the id is missing", "add an id to every row"
        )
    for bad, problem in (
        (text.str.len_bytes() > LONGEST_ID, TOO_LONG),
        (text.cast(pl.Binary).bin.contains(b"\0"), HAS_NUL),
    ):
        if bad.any():
            raise locate(first_row_number(bad), values.name, f"the id {problem}", "use another id")
    return text


def texts(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return a text column: integers become decimal strings; other types are errors."""
    kind = values.dtype
    if kind.is_float() and values.len():
        raise locate(
            1,
            values.name,
            f"expected text or a whole number, got {values[0]!r}",
            "read the column as text",
        )
    if not (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum, pl.Null)):
        raise locate(1, values.name, f"expected text, got {kind}", "convert it to text")
    return values.cast(pl.String).alias(field)


def whole_numbers(
    values: pl.Series, field: str, locate: Locate = row_error, *, hint: str | None = None
) -> pl.Series:
    """Return a column as 64-bit integers, or raise an error for the first other value."""
    hint = hint or "write a whole number"
    if values.dtype in (pl.String, pl.Categorical):
        numbers = integers_of_text(values.cast(pl.String).str.strip_chars())
    elif values.dtype.is_float():
        numbers = values.cast(pl.Int64, strict=False)
        numbers = numbers.set(numbers.cast(pl.Float64) != values, None)
    elif values.dtype.is_integer() or values.dtype in (pl.Boolean, pl.Null):
        numbers = values.cast(pl.Int64, strict=False)
    else:
        raise locate(1, values.name, f"expected whole numbers, got {values.dtype}", hint)
    bad = numbers.is_null()
    if bad.any():
        row = first_row_number(bad)
        raise locate(row, values.name, f"{_format_value(values[row - 1])} is not an integer", hint)
    if field == "grade" and (bad := are_too_large(numbers)).any():
        raise locate(
            first_row_number(bad),
            values.name,
            f"{numbers[first_row_number(bad) - 1]} is too large",
            hint,
        )
    return numbers.cast(pl.Int64).alias(field)


def are_too_large(grades: pl.Series) -> pl.Series:
    """Return for each grade whether it is outside the range in which sums are exact."""
    return (grades >= LARGEST_GRADE) | (grades <= -LARGEST_GRADE)


def integers_of_text(text: pl.Series) -> pl.Series:
    """Parse integers, including those written as `1.0`; anything else becomes null.

    >>> integers_of_text(pl.Series(["1", "-2.0", "1.5", "1e3"])).to_list()
    [1, -2, None, None]
    """
    numbers = text.str.to_integer(strict=False)
    if numbers.null_count() == text.null_count():
        return numbers
    return text.str.replace(r"^([+-]?[0-9]+)\.0*$", "$1").str.to_integer(strict=False)


def flags(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return a column of true and false, which may be written as text; empty cells become null.

    >>> flags(pl.Series("answerable", ["true", "False", "", None]), "answerable").to_list()
    [True, False, None, None]
    """
    if values.dtype in (pl.Boolean, pl.Null):
        return values.cast(pl.Boolean).alias(field)
    bad, parsed = values.is_not_null(), pl.repeat(None, values.len(), dtype=pl.Boolean, eager=True)
    if values.dtype in (pl.String, pl.Categorical, pl.Enum):
        text = values.cast(pl.String).str.strip_chars().str.to_lowercase()
        parsed = text.replace_strict({"true": True, "false": False}, default=None)
        bad = parsed.is_null() & (text != "").fill_null(value=False)
    if bad.any():
        row = first_row_number(bad)
        problem = f"expected true or false, got {_format_value(values[row - 1])}"
        raise locate(row, values.name, problem, "write true or false, or leave it empty")
    return parsed.cast(pl.Boolean).alias(field)


def counts(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return a column of integers ≥ 0, or raise an error for the first other value."""
    hint = "write a whole number of at least 0"
    numbers = whole_numbers(values, field, locate, hint=hint)
    if (bad := numbers < 0).any():
        row = first_row_number(bad)
        raise locate(row, values.name, f"{numbers[row - 1]} is less than 0", hint)
    return numbers


def scores(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return scores as 64-bit floats, or raise an error for the first value that is not a number.

    Infinite scores are allowed, as in trec_eval.
    """
    hint = "write a number; remove items without a score"
    text = None
    if values.dtype in (pl.String, pl.Categorical):
        text = values.cast(pl.String).str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
    elif values.dtype.is_numeric() or values.dtype == pl.Null:
        numbers = values.cast(pl.Float64, strict=False)
    else:
        raise locate(1, values.name, f"expected scores, got {values.dtype}", hint)
    bad = numbers.is_null() | numbers.is_nan().fill_null(value=True)
    infinite = numbers.is_infinite().fill_null(value=False)
    if text is not None and infinite.any():  # 1e999 is an error, inf is not
        bad |= infinite & ~text.str.contains("(?i)inf").fill_null(value=False)
    if bad.any():
        row = first_row_number(bad)
        is_infinite = numbers[row - 1] in (math.inf, -math.inf)
        problem = "is too large" if is_infinite else "is not a number"
        raise locate(row, values.name, f"{_format_value(values[row - 1])} {problem}", hint)
    return numbers.alias(field)


def check_offsets(table: pl.DataFrame, locate: Locate = row_error) -> None:
    """Raise an error for the first row whose start and end are not a valid span."""
    if not {"start", "end"} <= set(table.columns):
        return
    start, end = table["start"], table["end"]
    bad = (start < 0) | (end < start) | (end > LARGEST_OFFSET)
    if bad.any():
        row = first_row_number(bad)
        raise locate(
            row, "start", describe_invalid_span(start[row - 1], end[row - 1]), OFFSETS_HINT
        )


def describe_invalid_span(start: int, end: int | None) -> str:
    """Return what is wrong with the start and the end of an invalid span."""
    if end is not None and 0 <= start <= end:
        return f"[{start}, {end}) is not a valid span: it ends after {LARGEST_OFFSET:,}"
    return f"[{start}, {end}) is not a valid span"


def check_unique_ids(ids: pl.Series, what: str, locate: Locate = row_error) -> None:
    """Raise an error for the first row that repeats an id."""
    repeated = ~ids.is_first_distinct()
    if repeated.any():
        row = first_row_number(repeated)
        problem = f"duplicate {what} {ids[row - 1]!r}"
        raise locate(row, ids.name, problem, f"keep one row per {what}")


def check_unique_query_ids(ids: pl.Series, name: str | None, locate: Locate = row_error) -> None:
    """Raise an error for the first row that repeats the id of a query.

    `name` is the column that the ids are from, or None if they are hashes of the texts.
    """
    repeated = ~ids.is_first_distinct()
    if not repeated.any():
        return
    row = first_row_number(repeated)
    hint = "keep one row per query"
    if name is None:
        raise locate(row, ids.name, "the text of an earlier query is repeated", hint)
    problem = f"duplicate query {ids[row - 1]!r}{in_id_column(name)}"
    raise locate(row, name, problem, f"{hint}; {MAP_ID_COLUMN} reads the ids of another column")


def in_id_column(name: str) -> str:
    """Return the end of a message about query ids: the column that was read, if it is unusual."""
    return "" if name == "query_id" else f"; the column {name!r} was read as the query id"


def first_row_number(bad: pl.Series) -> int:
    """Return the number, from 1, of the first row for which `bad` is true."""
    index = bad.arg_max()
    assert index is not None
    return index + 1


def _format_value(value: Any) -> str:
    return "an empty value" if value is None else repr(value)
