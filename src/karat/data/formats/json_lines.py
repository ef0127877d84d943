"""JSON Lines: read and check lines, report where they are wrong, and rename keys of other tools.

Shared by the native format, Ragas rows, BEIR queries and records that are given in Python.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
import polars as pl

from karat.data import frames
from karat.data.data_file import DataFile
from karat.data.formats.json_text import Mistake
from karat.data.formats.mismatches import Mismatch
from karat.data.frames import HAS_NUL, LARGEST_OFFSET, LONGEST_ID
from karat.data.offsets import check_unit
from karat.errors import SWAPPED, InputError, printable, warn
from karat.files import BYTE_ORDER_MARK, DEEPEST, Source, decode, too_large

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_ID)]
Id = Text | int
Offset = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_OFFSET)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
NUL = r"\u0000"
"""The NUL character as JSON spells it; JSON does not allow the plain character."""
_ID_NAME = re.compile(
    "(?:ids?|relevant|expected|judgments|any_of|results|candidates)$", re.IGNORECASE
)
Line = TypeVar("Line")
Numbered = Iterable[tuple[int, Line]]
"""Lines or records with their numbers, from 1."""
MakeError = Callable[..., InputError]
"""Makes the error for a line, as `Source.error` does."""
DECODE_HINT = "decode the text as UTF-8 before passing it to karat"


class Refuse(Protocol):
    """A function that handles an error: called with its kind, the error, and its query or span."""

    def __call__(self, kind: str, error: InputError, /, **location: Any) -> None:
        """Raise or collect the error."""


def raise_error(_: str, error: InputError, /, **_location: Any) -> None:
    """Raise the error. Only `karat validate` collects errors instead."""
    raise error


class Header(msgspec.Struct, omit_defaults=True):
    """The optional first line, which describes the file."""

    karat: int
    kind: str
    name: str | None = None
    offsets: str = "codepoint"
    settings: dict[str, Any] = {}
    run_id: str | None = None
    """A random id that `karat run` chooses for each file and repeats on every line."""


def numbered(source: Source) -> list[tuple[int, bytes]]:
    """Return the lines that are not blank, with their line numbers."""
    return _numbered(source.read(), source, 1)


def numbered_blocks(source: Source) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the lines that are not blank, with their line numbers, in blocks."""
    first_line = 1
    for block in source.whole_lines():
        yield _numbered(block, source, first_line)
        first_line += block.count(b"\n")


def _numbered(content: bytes, source: Source, first_line: int) -> list[tuple[int, bytes]]:
    # Checks everything: the JSON decoder skips fields that are not read.
    decode(content, source, first_line)
    all_lines = enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), first_line)
    lines = [(number, line) for number, line in all_lines if line.strip()]
    if NUL.encode() in content:
        _refuse_nul(lines, source)
    return lines


def _refuse_nul(lines: Numbered[bytes], source: Source) -> None:
    """Raise an InputError for ids with a NUL character; texts may contain one."""
    lines_with_nul = [(number, line) for number, line in lines if NUL.encode() in line]
    for number, record in decoded(lines_with_nul, msgspec.json.Decoder().decode, source):
        if field := id_with_nul(record):
            raise source.error(f"the id {HAS_NUL}", line=number, field=field, hint="use another id")


def id_with_nul(value: Any, name: str = "") -> str | None:
    """Return the name of the field in which an id has a NUL character.

    The keys of `relevant` and `judgments` are ids, too.
    """
    stack = [(name, value)]  # a stack instead of recursion: fields may be deeply nested
    while stack:
        name, value = stack.pop()
        if isinstance(value, str) and "\0" in value and _ID_NAME.search(name):
            return name
        if isinstance(value, list):
            stack += [(name, item) for item in reversed(value)]
        elif isinstance(value, dict):
            if name in ("relevant", "judgments") and "\0" in "".join(value):
                return name
            stack += reversed(value.items())
    return None


def read_header(source: DataFile, kind: str) -> tuple[Header, Numbered[bytes]]:
    """Return the header, or a default one, and the numbered lines after it."""
    header, lines, header_line = header_of(numbered(source), source, kind)
    if header_line is not None and not lines:
        raise source.error(
            "the file has a header but no queries",
            line=header_line,
            hint="write one query per line after the header",
        )
    return header, lines


def header_of(
    lines: list[tuple[int, bytes]], source: DataFile, kind: str
) -> tuple[Header, list[tuple[int, bytes]], int | None]:
    """Return the header, or a default one, the lines after it, and the line of the header."""
    number, first_line = lines[0]
    record = None
    if b'"karat"' in first_line:
        record = next(iter(decoded(lines[:1], msgspec.json.Decoder().decode, source)))[1]
    if not isinstance(record, dict) or "karat" not in record:
        return Header(1, kind, source.name), lines, None
    header = converted(number, record, Header, source.error)
    if header.karat != 1:
        raise source.error(
            f"unknown version {header.karat} of the format, expected 1",
            line=number,
            field="karat",
            hint="install a newer version of karat to read this file",
        )
    if header.kind != kind:
        raise source.error(
            f"expected {_with_article(kind)}, got {_with_article(header.kind)}",
            line=number,
            field="kind",
            hint=SWAPPED,
        )
    check_unit(header.offsets, source.error, line=number)
    header.name = header.name or source.name
    return header, lines[1:], number


def _with_article(kind: str) -> str:
    return "a run" if kind == "run" else kind


def decoded(
    lines: Numbered[bytes], decoder: Callable[[bytes], Line], source: Source
) -> Iterator[tuple[int, Line]]:
    """Decode numbered lines; errors name the line."""
    for number, line in lines:
        try:
            yield number, decoder(line)
        except InputError as error:
            raise source.error(
                error.problem, line=number, field=error.field, hint=error.hint
            ) from error
        except msgspec.ValidationError as error:
            raise _invalid(Mismatch.in_line(error, line), number, source.error, {}) from error
        except msgspec.DecodeError as error:
            raise _not_json(line, number, error, source) from error
        except (ValueError, RecursionError) as error:
            raise too_large(source, line.decode(), error, line=number) from error


def converted(
    number: int,
    record: Any,
    to: type[Line],
    error: MakeError,
    theirs: Mapping[str, str] | None = None,
) -> Line:
    """Convert a decoded record to a msgspec type; errors use the keys of the file (`theirs`)."""
    try:
        return msgspec.convert(record, to)
    except msgspec.ValidationError as problem:
        raise _invalid(Mismatch.of(problem, record), number, error, theirs or {}) from problem
    except UnicodeEncodeError as problem:
        raise error(
            f"the text contains a lone surrogate: {problem.object!a}",
            line=number,
            hint=DECODE_HINT,
        ) from problem


def _not_json(line: bytes, number: int, error: msgspec.DecodeError, source: Source) -> InputError:
    """Make the error for a line that is not JSON.

    Python's JSON reader accepts more than JSON allows, so it may find the field that is wrong.
    """
    field, hint = (
        "",
        "write one JSON object per line; JSON allows no NaN, Infinity or lone surrogates",
    )
    problem = f"the line is not valid JSON ({str(error).lower()})"
    text = line.decode()
    try:
        field, problem = next(_invalid_values(json.loads(text), ""))
    except json.JSONDecodeError as mistake:
        found = Mistake.of(text, "line", mistake)
        problem, hint = found.problem, found.hint or hint
    except (ValueError, RecursionError, StopIteration):
        pass  # msgspec says what is wrong
    if _is_torn(line, source):
        hint = (
            "the run was interrupted here: repeat the `karat run` command to repair and finish it"
        )
    return source.error(problem, line=number, field=field.lstrip(".") or None, hint=hint)


def _is_torn(line: bytes, source: Source) -> bool:
    """Return whether this is the last line of a run, without a newline: `karat run` was stopped."""
    is_run = source.head.startswith(b'{"karat":1,"kind":"run"')
    return is_run and not line.endswith(b"\n") and source.read().endswith(b"\n" + line)


def _invalid_values(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and problem of each value that Python reads but JSON does not allow."""
    if isinstance(value, float) and not math.isfinite(value):
        number = "NaN" if math.isnan(value) else "a number that is infinite or too large"
        yield path, f"{number} is not allowed in JSON"
    elif isinstance(value, str) and not _is_encodable(value):
        yield path, f"the text contains a lone surrogate: {value!a}"
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _invalid_values(item, f"{path}[{i}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not _is_encodable(key):
                yield path, f"a key contains a lone surrogate: {key!a}"
            yield from _invalid_values(item, f"{path}.{key}")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def table_of(rows: Any, schema: dict[str, Any], field: str, **how: Any) -> pl.DataFrame:
    """Build a table from checked rows.

    Strings from Python may still contain lone surrogates, which Polars cannot store, and ids may
    contain NUL characters; both raise an InputError for the field.
    """
    try:
        table = pl.DataFrame(rows, schema=schema, **how)
    except UnicodeEncodeError as error:
        raise InputError(
            f"the text contains a lone surrogate: {error.object[error.start]!a}",
            field=field,
            hint=DECODE_HINT,
        ) from error
    ids = [name for name in ("item_id", "doc_id") if name in schema]
    for name in ids:
        if table[name].str.contains("\0", literal=True).any():
            raise InputError(f"an id {HAS_NUL}", field=field, hint="use another id")
    return table


def _invalid(
    mismatch: Mismatch, number: int, make: MakeError, theirs: Mapping[str, str]
) -> InputError:
    field = mismatch.field
    if field and theirs:
        path, quote, key = field.partition('["')  # a key is not a field
        path = re.sub(r"[^.\[\]]+", lambda name: theirs.get(name[0], name[0]), path)
        field = f"{path}{quote}{key}"
    hint = mismatch.hint or "`karat docs formats` lists the fields"
    return make(mismatch.problem, line=number, field=field, hint=hint)


ITEM_ALIASES = {
    "id": ("item_id", "chunk_id"),
    "doc_id": frames.DOC_ID[1:],
    "grade": ("rel", "relevance", "label", "score"),
}
"""Other names for the keys of an item inside a record: a result, a judgment or a span."""


def with_item_keys(item: Any, keys: Iterable[str], theirs: dict[str, str]) -> Any:
    """Rename the keys of an item to karat's; `theirs` is filled with the names in the file.

    karat's names take precedence: next to `id`, `chunk_id` is a key like any other.
    """
    if not isinstance(item, Mapping):
        return item
    renamed = dict(item)
    lower = {key.lower(): key for key in item if isinstance(key, str)}
    for key in keys:
        alias = next((lower[name] for name in ITEM_ALIASES[key] if name in lower), None)
        if key not in renamed and alias is not None:
            renamed[key] = renamed.pop(alias)
            theirs[key] = alias
    return renamed


def with_query_id(record: Any) -> bool:
    """Add an id that is a hash of the query text to a record without id; return whether it did."""
    if not isinstance(record, dict) or record.get("query_id") is not None:
        return False
    text = record.get("query")
    if not isinstance(text, str) or not text.strip():
        return False
    record["query_id"] = frames.generated_id(text.encode("utf-8", "replace").decode())
    return True


def with_karat_keys(
    record: Any,
    aliases: Mapping[str, Sequence[str]],
    number: int,
    error: MakeError,
    theirs: dict[str, str],
) -> Any:
    """Rename the keys of a record to karat's; `theirs` is filled with the names in the file."""
    if not isinstance(record, Mapping):
        return record
    renamed = dict(record)
    for key, other_names in aliases.items():
        names = [name for name in (key, *other_names) if name in record]
        if len(names) > 1:
            raise error(
                f"{names[0]!r} and {names[1]!r} are two names of the same field",
                line=number,
                field=names[1],
                hint="keep one of them",
            )
        if names and names[0] != key:
            renamed[key] = renamed.pop(names[0])
            theirs[key] = names[0]
    if "query_id" not in renamed and "id" in renamed and {"query", "text"} & renamed.keys():
        renamed["query_id"] = renamed.pop("id")
        theirs["query_id"] = "id"
    return renamed


_OTHER_IDS = ("user_id", "session_id", "tenant_id", "account_id", "device_id")
"""Fields that resemble a key, but are ids of something else."""


def warn_of_misspelled_keys(
    fields: Iterable[str],
    keys: Iterable[str],
    name: str | None,
    remark: str = "it is kept as a field of the queries",
) -> None:
    """Warn if a field looks like a misspelled key; `remark` says what happens with it."""
    prefix = f"{printable(name)}: " if name else ""
    for field in fields:
        if similar := similar_key(field, keys):
            warn(
                f"{prefix}the field {printable(field)!r} looks like a misspelling of "
                f"{similar!r}; {remark}",
                stacklevel=5,
            )


def similar_key(field: str, keys: Iterable[str]) -> str | None:
    """Return the key that a field is probably meant to be, or None."""
    if field.lower() in _OTHER_IDS:
        return None
    return next(iter(get_close_matches(field.lower(), sorted(keys), n=1, cutoff=0.8)), None)


def check_depth(fields: Mapping[str, Any], number: int, error: MakeError) -> None:
    """Raise an InputError for fields of a query that are nested too deeply."""
    for name, value in fields.items():
        if _is_deeper(value, DEEPEST):
            raise error(
                f"lists and objects are nested more than {DEEPEST} levels deep",
                line=number,
                field=name,
                hint="use fewer levels, or write the field as text",
            )


def _is_deeper(value: Any, depth: int) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list):
        return False
    return depth == 0 or any(_is_deeper(item, depth - 1) for item in value)


def record_error(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    """Make the error for a record that does not come from a file."""
    return InputError(f"record {line}: {problem}", field=field, hint=hint)


def new_query_id(
    query_id: Id, seen: Iterable[str], number: int, error: MakeError, refuse: Refuse = raise_error
) -> str:
    """Return the id of a query as text; an id that was seen before goes to `refuse`."""
    query = str(query_id)
    if "\0" in query:
        raise error(f"the id {HAS_NUL}", line=number, field="query_id", hint="use another id")
    if query in seen:
        problem = error(
            f"query {query!r} occurs twice",
            line=number,
            field="query_id",
            hint="write one line per query, with all of its data",
        )
        refuse("duplicate-query", problem, query_id=query)
    return query


def rows_by_query(table: pl.DataFrame | None) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a table as dicts, grouped by query."""
    groups: dict[str, list[dict[str, Any]]] = {}
    if table is not None:
        for row in table.iter_rows(named=True):
            groups.setdefault(row.pop("query_id"), []).append(row)
    return groups


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Convert the pairs of a JSON object to a dict; raise an InputError for a duplicate key."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for key in record if keys.count(key) > 1)
        raise InputError(
            f"the key {duplicate!r} occurs twice in one object",
            field=json.dumps(duplicate),
            hint="write each key once; JSON readers keep only the last value",
        )
    return record


def without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without its null values."""
    return {key: value for key, value in row.items() if value is not None}
