"""The lines of karat's own files: one query a line, an optional header first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec
import polars as pl

from karat.data.files import BYTE_ORDER_MARK, Source, not_utf8, refuse_foreign_encoding
from karat.errors import InputError

Id = str | int
Line = TypeVar("Line")
Numbered = Iterable[tuple[int, Line]]
MakeError = Callable[..., InputError]


class Header(msgspec.Struct, omit_defaults=True):
    """The optional first line: what the file is."""

    karat: int
    kind: str
    name: str | None = None
    offsets: str = "codepoint"
    settings: dict[str, Any] = {}


def opened(source: Source, kind: str) -> tuple[Header, Numbered[bytes]]:
    """Split off the header, and number the lines that hold something."""
    content = source.read()
    refuse_foreign_encoding(content, source)
    lines = enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1)
    held = [(number, line) for number, line in lines if line.strip()]
    number, first = held[0]
    if not re.match(rb'\s*\{\s*"karat"', first):
        return Header(1, kind, source.name), held
    header = next(iter(decoded([held[0]], msgspec.json.Decoder(Header).decode, source)))[1]
    if header.karat != 1:
        raise source.error(
            f"version {header.karat} of the format is not known",
            line=number,
            field="karat",
            hint="this file needs a newer karat",
        )
    if header.kind != kind:
        raise source.error(
            f"this is a {header.kind} and not a {kind}" if kind == "run" else "this is a run",
            line=number,
            field="kind",
            hint="gold comes first, then the run; were they swapped?",
        )
    header.name = header.name or source.name
    if len(held) == 1:
        raise source.error("there is a header and no query", line=number)
    return header, held[1:]


def decoded(
    lines: Numbered[bytes], decode: Callable[[bytes], Line], source: Source
) -> Iterator[tuple[int, Line]]:
    """Decode numbered lines, naming the line that cannot be."""
    for number, line in lines:
        try:
            yield number, decode(line)
        except UnicodeDecodeError as error:
            raise not_utf8(source, number, error) from error
        except msgspec.ValidationError as error:
            raise _invalid(error, number, source.error) from error
        except msgspec.DecodeError as error:
            raise source.error(
                f"this line is no complete JSON ({str(error).lower()})",
                line=number,
                hint="one object a line; NaN, Infinity and lone surrogates are not JSON",
            ) from error


def converted(number: int, record: Any, to: type[Line], error: MakeError) -> Line:
    """Check a decoded record against its declaration."""
    try:
        return msgspec.convert(record, to)
    except msgspec.ValidationError as problem:
        raise _invalid(problem, number, error) from problem


def _invalid(error: msgspec.ValidationError, number: int, make: MakeError) -> InputError:
    problem, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".") or None
    return make(
        problem.replace("`", ""),
        line=number,
        field=field,
        hint="see docs/formats.md for the fields",
    )


def record_error(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    """Make the error for a record that came from no file."""
    return InputError(f"record {line}: {problem}", field=field, hint=hint)


def new_query(given: Id, seen: Iterable[str], number: int, error: MakeError) -> str:
    """Return a query's id as text, refusing an empty one and one that was there before."""
    query = str(given)
    if not query:
        raise error("the id is empty", line=number, field="query_id", hint="give the query an id")
    if query in seen:
        raise error(
            f"query {query!r} stands there twice",
            line=number,
            field="query_id",
            hint="a query is one line; put all of it there",
        )
    return query


def grouped(table: pl.DataFrame | None) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a table by query."""
    groups: dict[str, list[dict[str, Any]]] = {}
    if table is not None:
        for row in table.iter_rows(named=True):
            groups.setdefault(row.pop("query_id"), []).append(row)
    return groups


def without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what it does not hold."""
    return {key: value for key, value in row.items() if value is not None}
