"""Tables as karat knows them: columns found by any of their names, ids as text, values checked."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import polars as pl

from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.errors import InputError, KaratWarning


def is_dataset(value: Any) -> bool:
    """Tell whether a value is one whole dataset."""
    return _is_instance_of_dataset_class("Dataset", value)


def _to_arrow(value: Any) -> Any:
    """Return a dataset as an Arrow table, its selection of rows applied; anything else as it is."""
    return value.with_format("arrow")[:] if is_dataset(value) else value


def check_no_splits(value: Any) -> None:
    """Refuse a dataset in splits, or one that streams: neither is one table."""
    if _is_instance_of_dataset_class("DatasetDict", value) or _is_instance_of_dataset_class(
        "IterableDatasetDict", value
    ):
        raise InputError(
            f"this dataset has splits: {', '.join(map(str, value))}",
            hint=f"choose one of them, such as dataset[{next(iter(value), 'test')!r}]",
        )
    if _is_instance_of_dataset_class("IterableDataset", value):
        raise InputError(
            "this dataset streams",
            hint="load it without streaming=True, or give list(dataset)",
        )


def _is_instance_of_dataset_class(name: str, value: Any) -> bool:
    kind = getattr(sys.modules.get("datasets"), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


QUERY_ID = ("query_id", "qid", "query-id", "queryid", "q_id")
QUERY_TEXT = ("query", "question", "user_input", "prompt")
DOC_ID = ("doc_id", "docid", "docno", "corpus-id")
ITEM_ID = ("item_id", "chunk_id", "id", *DOC_ID)
GRADE = ("grade", "rel", "relevance", "label", "score")
LARGEST_GRADE = 1 << 31  # no grade is that large, and sums of such grades would not be exact
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
OLD_CONTEXTS = "contexts"  # what Ragas 0.1 called retrieved_contexts
ANSWERS = ("answer", "response", "reference", "ground_truth")
"""What an answer is called; these are fields, and never read as evidence."""
OFFSETS_HINT = "0 ≤ start ≤ end, counted from the start of the document"
LARGEST_OFFSET = 1 << 32  # no document is that long, and keys made of places stay exact

Locate = Callable[[int, str, str, str | None], InputError]
"""Makes the error for a row: its number from 1, the field, the problem and the hint."""


def row_error(row: int, field: str, problem: str, hint: str | None) -> InputError:
    """Make the error for a row of a table that came from no file."""
    return InputError(f"row {row}: {problem}", field=field, hint=hint)


def to_frame(table: Any) -> pl.DataFrame:
    """Return any table that speaks Arrow (Polars, pandas, PyArrow, …) as a Polars frame."""
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    check_no_splits(table)
    try:
        frame = _to_polars(_to_arrow(table))
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


def _to_polars(table: Any) -> pl.DataFrame:
    try:
        return pl.DataFrame(table)
    except ImportError:  # pandas needs PyArrow for its Arrow interface
        if not hasattr(table, "columns") or not hasattr(table, "dtypes"):
            raise
        return pl.DataFrame(
            [_pandas_column(str(name), table.iloc[:, at]) for at, name in enumerate(table.columns)]
        )


def _pandas_column(name: str, values: Any) -> pl.Series:
    """Return a column of pandas without PyArrow; what pandas calls missing is null."""
    missing = values.isna().to_numpy()
    array = values.to_numpy()
    # Whole numbers of which some are missing would become floats, which are not ids.
    if missing.any() and not isinstance(values.dtype, np.dtype):
        array = values.astype(object).to_numpy()
    if array.dtype.kind in "biuf":
        numbers = pl.Series(name, array)
        return numbers.fill_nan(None) if array.dtype.kind == "f" else numbers
    held = [None if gone else _to_python(value) for value, gone in zip(array, missing, strict=True)]
    return pl.Series(name, held, strict=True)


def _to_python(value: Any) -> Any:
    """Return numbers and arrays of NumPy as Python's own."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def is_table(value: Any) -> bool:
    """Tell whether a value is a table, rather than a dict, a list or a path."""
    return (
        isinstance(value, (pl.DataFrame, pl.LazyFrame))
        or hasattr(value, "__arrow_c_stream__")
        or is_dataset(value)
    )


def has_ragas_columns(names: Iterable[str]) -> bool:
    """Tell whether columns or keys of these names make Ragas rows, and nothing of karat's own."""
    given = set(names)
    own = {"karat", "relevant", "results", "spans", "evidence", *ITEM_ID} - {"id"}
    if given.isdisjoint(CONTEXTS):
        own |= {*RELEVANT, *RESULTS, *EVIDENCE_LISTS, "error"}
        return OLD_CONTEXTS in given and own.isdisjoint(given)
    return own.isdisjoint(given)


def has_span_columns(frame: pl.DataFrame) -> bool:
    """Tell whether rows are places in documents: what has a start and no id of its own."""
    item = item_id_column(frame)
    own = item is not None and item.strip().lower() not in DOC_ID
    return column(frame, ("start",)) is not None and not own


def are_ragas_rows(records: Sequence[Any]) -> bool:
    """Tell by the first of some records whether they are Ragas rows."""
    return bool(records) and isinstance(records[0], Mapping) and has_ragas_columns(records[0])


def column(frame: pl.DataFrame, names: Iterable[str]) -> str | None:
    """Return the column of a frame that has one of these names, in their order."""
    lower = {name.strip().lower(): name for name in reversed(frame.columns)}
    found = next((name for name in names if name in lower), None)
    if found is None:
        return None
    if len(lower) < frame.width:
        _check_unique_name(frame, found)
    return lower[found]


def _check_unique_name(frame: pl.DataFrame, name: str) -> None:
    """Refuse columns whose names differ only in case or white space."""
    same = [column for column in frame.columns if column.strip().lower() == name]
    if len(same) > 1:
        raise InputError(
            f"the columns {same[0]!r} and {same[1]!r} have the same name",
            field=same[1],
            hint="rename one of them",
        )


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


def require_query_id_column(frame: pl.DataFrame) -> str:
    """Return the column of query ids, or list the columns that there are instead."""
    return query_id_column(frame) or require_column(frame, QUERY_ID, "the query's id")


def query_ids(frame: pl.DataFrame, locate: Locate = row_error) -> pl.Series:
    """Return the ids of queries; where there is no column for them, ids made of the texts."""
    name, text = query_id_column(frame), column(frame, QUERY_TEXT)
    if name is not None or text is None:
        return ids(frame[require_query_id_column(frame)], "query_id", locate)
    asked = texts(frame[text], "query_id", locate)
    bad = asked.is_null()
    if bad.any():
        raise locate(
            first_row_number(bad),
            text,
            "the query has neither an id nor a text",
            "give every row one",
        )
    known = asked.unique()
    Hashed(queries=True).warn("the table")
    return asked.replace_strict(known, pl.Series(list(map(generated_id, known)), dtype=pl.String))


def recognised_columns(frame: pl.DataFrame, **read: str | None) -> dict[str, str]:
    """Return which columns were read as what: those of the query, and what the caller read."""
    names = {"query_id": query_id_column(frame), "query": column(frame, QUERY_TEXT)} | read
    return {ours: theirs for ours, theirs in names.items() if theirs is not None}


GENERATED_ID = "[0-9a-f]{16}"
"""What the ids look like that are made of texts, as a regular expression."""


def generated_id(text: str) -> str:
    """Return the id of a text that has none: 16 hexadecimal digits of BLAKE2b over its UTF-8 bytes.

    Gold and runs use the same ids, so that both agree where their texts are the same.

    >>> generated_id("pay by card")
    '7ef27e16b36a1f31'
    """
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass
class Hashed:
    """What goes by a hash of its text, since it has no id."""

    queries: bool = False
    items: bool = False

    def warn(self, what: str) -> None:
        """Warn of it: a text that differs in one space has another id."""
        hashed = [name for name in ("queries", "items") if getattr(self, name)]
        if hashed:
            warnings.warn(
                KaratWarning(
                    f"{' and '.join(hashed)} of {what} have no ids; "
                    "a hash of their text is used instead"
                ),
                stacklevel=4,
            )


def parse_list_cell(text: str) -> list[Any] | None:
    """Read a list in a cell of a CSV, as JSON or as Python prints it; None if it is not one."""
    readers: tuple[Callable[[str], Any], ...] = (json.loads, ast.literal_eval)
    for read in readers:
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        # NumPy prints ['a' 'b'], which Python takes for one text: only its own print is trusted.
        if isinstance(found, list) and (read is json.loads or repr(found) == text.strip()):
            return found
    return None


def parse_id_lists(values: pl.Series, locate: Locate = row_error) -> list[Any]:
    """Return the ids in each cell: a list, JSON, or ids with a semicolon between them.

    >>> listed_ids(pl.Series("relevant", ["a;b", '["c"]', None]))
    [['a', 'b'], ['c'], None]
    """
    cells = [_parse_id_cell(cell, row, values.name, locate) for row, cell in enumerate(values, 1)]
    for row, cell in enumerate(cells, 1):
        if isinstance(cell, (list, dict)) and has_nul(cell):
            raise locate(row, values.name, f"an id {HAS_NUL}", "use another id")
    return cells


def has_nul(ids: Iterable[Any]) -> bool:
    """Tell whether one of some ids has a NUL character."""
    return any(isinstance(item, str) and "\0" in item for item in ids)


def query_records(
    table: pl.DataFrame, lists: Mapping[str, str], of_ids: Sequence[str], locate: Locate
) -> tuple[list[dict[str, Any]], Callable[..., InputError]]:
    """Return a table with one row per query as records, and what makes the error for one.

    `lists` are the columns that hold lists, by their key in the records; those in `of_ids` may
    also be written `a;b`.
    """
    names = {name: key for key, name in lists.items()}
    query, text = query_id_column(table), column(table, QUERY_TEXT)
    names |= {query: "query_id"} if query else {}
    names |= {text: "query"} if text else {}
    theirs = {key: name for name, key in names.items()}
    cells = {
        key: parse_id_lists(table[name], locate) if key in of_ids else _text_lists(table[name])
        for key, name in lists.items()
    }
    rows = [
        {names.get(name, name): value for name, value in row.items()}
        | {key: values[at] for key, values in cells.items()}
        for at, row in enumerate(table.iter_rows(named=True))
    ]

    def error(
        problem: str, *, line: int, field: str | None = None, hint: str | None = None
    ) -> InputError:
        key = (field or "query_id").partition("[")[0].partition(".")[0]
        return locate(line, theirs.get(key, key), problem, hint)

    return rows, error


def _text_lists(values: pl.Series) -> list[Any]:
    """Return lists of texts; text in a cell is a list only if it is written as one."""
    lists = (*EVIDENCE_LISTS, *CONTEXTS, OLD_CONTEXTS)
    if values.dtype != pl.String or values.name.lower() not in lists:
        return values.to_list()
    found = [None if cell is None else parse_list_cell(cell) for cell in values]
    return [cell if listed is None else listed for cell, listed in zip(values, found, strict=True)]


def _parse_id_cell(cell: Any, row: int, field: str, locate: Locate) -> Any:
    if isinstance(cell, pl.Series):
        return cell.to_list()
    if isinstance(cell, Mapping):  # Polars fills the keys that other rows have
        return {item: grade for item, grade in cell.items() if grade is not None}
    if not isinstance(cell, str):
        return None if cell is None else [cell]
    if not cell.strip():
        return None
    if not cell.lstrip().startswith(("[", "{")):
        return [item.strip() for item in cell.split(";") if item.strip()]
    found = parse_list_cell(cell) if cell.lstrip().startswith("[") else _parse_object_cell(cell)
    if found is None:
        raise locate(
            row, field, f"{cell[:40]!r} is not a list of ids", 'write a;b or a JSON list: ["a","b"]'
        )
    return found


def _parse_object_cell(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def item_id_column(frame: pl.DataFrame, names: Sequence[str] = ITEM_ID) -> str | None:
    """Return the column of item ids, which is not the one of query ids."""
    return column(frame.drop(query_id_column(frame) or (), strict=False), names)


def require_column(frame: pl.DataFrame, names: tuple[str, ...], what: str) -> str:
    """Return the column that holds `what`, or say which columns there are instead."""
    found = column(frame, names)
    if found is None:
        raise _missing_column_error(frame, names, what)
    return found


def require_item_id_column(frame: pl.DataFrame) -> str:
    """Return the column of item ids, or list the columns that there are instead."""
    found = item_id_column(frame)
    if found is None:
        raise _missing_column_error(frame, ITEM_ID, "the item's id")
    return found


def _missing_column_error(frame: pl.DataFrame, names: tuple[str, ...], what: str) -> InputError:
    near = get_close_matches(names[0], frame.columns, n=1)
    others = f" (or {', '.join(names[1:4])})" if len(names) > 1 else ""
    rename = f"rename {near[0]} to {names[0]}" if near else f"name it {names[0]}{others}"
    return InputError(
        f"there is no column for {what}; the columns are {format_column_names(frame)}",
        field=names[0],
        hint=f"{rename}, or map it: --column {names[0]}={near[0] if near else 'COLUMN'}",
    )


def format_column_names(frame: pl.DataFrame) -> str:
    """Return the names of the columns for an error."""
    return ", ".join(frame.columns) or "none"


def ids(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return ids as text: integers become decimal strings, floats and gaps are refused."""
    text = texts(values, field, locate)
    bad = text.is_null() | (text == "")
    if bad.any():
        raise locate(
            first_row_number(bad), values.name, "the id is missing", "give every row an id"
        )
    for bad, problem in (
        (text.str.len_bytes() > LONGEST_ID, TOO_LONG),
        (text.cast(pl.Binary).bin.contains(b"\0"), HAS_NUL),
    ):
        if bad.any():
            raise locate(first_row_number(bad), values.name, f"the id {problem}", "use another id")
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
        numbers = integers_of_text(values.cast(pl.String).str.strip_chars())
    elif values.dtype.is_float():
        numbers = values.cast(pl.Int64, strict=False)
        numbers = numbers.set(numbers.cast(pl.Float64) != values, None)
    elif values.dtype.is_integer() or values.dtype in (pl.Boolean, pl.Null):
        numbers = values.cast(pl.Int64, strict=False)
    else:
        raise locate(1, values.name, f"a column of {values.dtype} holds no whole numbers", hint)
    bad = numbers.is_null()
    if bad.any():
        at = first_row_number(bad)
        raise locate(at, values.name, f"{_format_value(values[at - 1])} is not an integer", hint)
    if field == "grade" and (bad := are_too_large(numbers)).any():
        raise locate(
            first_row_number(bad),
            values.name,
            f"{numbers[first_row_number(bad) - 1]} is too large",
            hint,
        )
    return numbers.cast(pl.Int64).alias(field)


def are_too_large(grades: pl.Series) -> pl.Series:
    """Return which grades are outside the range in which sums are exact."""
    return (grades >= LARGEST_GRADE) | (grades <= -LARGEST_GRADE)


def integers_of_text(text: pl.Series) -> pl.Series:
    """Parse integers, also those written as `1.0`; anything else becomes null.

    >>> integers_of_text(pl.Series(["1", "-2.0", "1.5", "1e3"])).to_list()
    [1, -2, None, None]
    """
    numbers = text.str.to_integer(strict=False)
    if numbers.null_count() == text.null_count():
        return numbers
    return text.str.replace(r"^([+-]?[0-9]+)\.0*$", "$1").str.to_integer(strict=False)


def counts(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return whole numbers from 0 up, or name the first value that is not one."""
    hint = f"write {field} as a whole number from 0 up"
    numbers = whole_numbers(values, field, locate, hint=hint)
    if (bad := numbers < 0).any():
        at = first_row_number(bad)
        raise locate(at, values.name, f"{numbers[at - 1]} is less than 0", hint)
    return numbers


def scores(values: pl.Series, field: str, locate: Locate = row_error) -> pl.Series:
    """Return scores as 64-bit floats, or name the first value that is not a number.

    Infinite scores order a list like any others, as they do in trec_eval.
    """
    hint = "write a number; drop items that have no score"
    text = None
    if values.dtype in (pl.String, pl.Categorical):
        text = values.cast(pl.String).str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
    elif values.dtype.is_numeric() or values.dtype == pl.Null:
        numbers = values.cast(pl.Float64, strict=False)
    else:
        raise locate(1, values.name, f"a column of {values.dtype} holds no scores", hint)
    bad = numbers.is_null() | numbers.is_nan().fill_null(value=True)
    infinite = numbers.is_infinite().fill_null(value=False)
    if text is not None and infinite.any():  # 1e999 is too large, inf is not
        bad |= infinite & ~text.str.contains("(?i)inf").fill_null(value=False)
    if bad.any():
        at = first_row_number(bad)
        what = "is too large" if numbers[at - 1] in (math.inf, -math.inf) else "is not a number"
        raise locate(at, values.name, f"{_format_value(values[at - 1])} {what}", hint)
    return numbers.alias(field)


def check_offsets(table: pl.DataFrame, locate: Locate = row_error) -> None:
    """Refuse a start or an end that marks no stretch of text."""
    if not {"start", "end"} <= set(table.columns):
        return
    start, end = table["start"], table["end"]
    bad = (start < 0) | (end < start) | (end > LARGEST_OFFSET)
    if bad.any():
        at = first_row_number(bad)
        raise locate(at, "start", describe_invalid_span(start[at - 1], end[at - 1]), OFFSETS_HINT)


def describe_invalid_span(start: int, end: int | None) -> str:
    """Say what is wrong with a start and an end that mark no stretch of text."""
    if end is not None and 0 <= start <= end:
        return f"[{start}, {end}) ends beyond {LARGEST_OFFSET:,}, further than a document goes"
    return f"[{start}, {end}) is no stretch of text"


def check_unique_ids(ids: pl.Series, what: str, locate: Locate = row_error) -> None:
    """Refuse an id that stands in two rows, naming the second."""
    again = ~ids.is_first_distinct()
    if again.any():
        at = first_row_number(again)
        problem = f"{what} {ids[at - 1]!r} stands there twice"
        raise locate(at, ids.name, problem, f"give each {what} one row")


def first_row_number(bad: pl.Series) -> int:
    """Return the number, from 1, of the first row that is bad."""
    at = bad.arg_max()
    assert at is not None
    return at + 1


def _format_value(value: Any) -> str:
    return "an empty value" if value is None else repr(value)
