"""The lines of karat's own files: one query a line, an optional header first."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
import polars as pl

from karat.data import frames
from karat.data.data_file import DataFile
from karat.data.frames import HAS_NUL, LARGEST_OFFSET, LONGEST_ID
from karat.data.offsets import check_unit
from karat.errors import SWAPPED, InputError, KaratWarning, printable
from karat.files import BYTE_ORDER_MARK, DEEPEST, Source, decode, too_large

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_ID)]
Id = Text | int
Offset = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_OFFSET)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
NUL = r"\u0000"
"""The character in JSON, which does not allow it as it is."""
_ID_NAME = re.compile("(?:ids?|relevant|expected|judgments|any_of|results)$", re.IGNORECASE)
Line = TypeVar("Line")
Numbered = Iterable[tuple[int, Line]]
MakeError = Callable[..., InputError]


class Refuse(Protocol):
    """Takes what is wrong, of which kind it is, and where it stands."""

    def __call__(self, kind: str, error: InputError, /, **place: Any) -> None:
        """Raise the error, or keep it."""


def refused(_: str, error: InputError, /, **_place: Any) -> None:
    """Raise what is wrong, as every reader does but that of `karat validate`."""
    raise error


class Header(msgspec.Struct, omit_defaults=True):
    """The optional first line: what the file is."""

    karat: int
    kind: str
    name: str | None = None
    offsets: str = "codepoint"
    settings: dict[str, Any] = {}
    run_id: str | None = None
    """Chosen at random when karat run begins a file; every line that it writes repeats it."""


def numbered(source: Source) -> list[tuple[int, bytes]]:
    """Return the lines that hold something, with their numbers."""
    content = source.read()
    decode(content, source)  # as a whole, since fields that nobody asks for are not decoded
    lines = enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1)
    held = [(number, line) for number, line in lines if line.strip()]
    if NUL.encode() in content:
        _refuse_nul(held, source)
    return held


def _refuse_nul(lines: Numbered[bytes], source: Source) -> None:
    """Refuse ids with a NUL character; texts may have one."""
    marked = [(number, line) for number, line in lines if NUL.encode() in line]
    for number, record in decoded(marked, msgspec.json.Decoder().decode, source):
        if field := id_with_nul(record):
            raise source.error(f"the id {HAS_NUL}", line=number, field=field, hint="use another id")


def id_with_nul(value: Any, name: str = "") -> str | None:
    """Return the name of the field in which an id has a NUL character: keys are ids too."""
    held = [(name, value)]  # not recursive: fields may be nested deep
    while held:
        name, value = held.pop()
        if isinstance(value, str) and "\0" in value and _ID_NAME.search(name):
            return name
        if isinstance(value, list):
            held += [(name, item) for item in reversed(value)]
        elif isinstance(value, dict):
            if name in ("relevant", "judgments") and "\0" in "".join(value):
                return name
            held += reversed(value.items())
    return None


def opened(source: DataFile, kind: str) -> tuple[Header, Numbered[bytes]]:
    """Split off the header, and number the lines that hold something."""
    held = numbered(source)
    number = held[0][0]
    told = None
    if b'"karat"' in held[0][1]:
        told = next(iter(decoded(held[:1], msgspec.json.Decoder().decode, source)))[1]
    if not isinstance(told, dict) or "karat" not in told:
        return Header(1, kind, source.name), held
    header = converted(number, told, Header, source.error)
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
            hint=SWAPPED,
        )
    check_unit(header.offsets, source.error, line=number)
    header.name = header.name or source.name
    if len(held) == 1:
        raise source.error(
            "there is a header and no query", line=number, hint="write one query a line after it"
        )
    return header, held[1:]


def decoded(
    lines: Numbered[bytes], decoder: Callable[[bytes], Line], source: Source
) -> Iterator[tuple[int, Line]]:
    """Decode numbered lines, naming the line that cannot be."""
    for number, line in lines:
        try:
            yield number, decoder(line)
        except InputError as error:
            raise source.error(
                error.problem, line=number, field=error.field, hint=error.hint
            ) from error
        except msgspec.ValidationError as error:
            raise _invalid(error, number, source.error, {}) from error
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
    """Check a decoded record against its declaration; errors name keys as the file does."""
    try:
        return msgspec.convert(record, to)
    except msgspec.ValidationError as problem:
        raise _invalid(problem, number, error, theirs or {}) from problem
    except UnicodeEncodeError as problem:
        raise error(
            f"{problem.object!a} holds a lone surrogate",
            line=number,
            hint="decode the text as UTF-8 before it comes here",
        ) from problem


def _not_json(line: bytes, number: int, error: msgspec.DecodeError, source: Source) -> InputError:
    """Say what keeps a line from being JSON; Python's reader is laxer and so can tell where."""
    try:
        field, problem = next(_unlawful(json.loads(line), ""))
    except (ValueError, RecursionError, StopIteration):
        field, problem = "", f"this line is no complete JSON ({str(error).lower()})"
    return source.error(
        problem,
        line=number,
        field=field.lstrip(".") or None,
        hint="the run was cut off here: give its karat run again, which mends and finishes it"
        if _is_torn(line, source)
        else "one object a line; NaN, Infinity and lone surrogates are not JSON",
    )


def _is_torn(line: bytes, source: Source) -> bool:
    """Tell whether a line is the last of a run and has no end: karat run was writing it."""
    is_run = source.head.startswith(b'{"karat":1,"kind":"run"')
    return is_run and not line.endswith(b"\n") and source.read().endswith(b"\n" + line)


def _unlawful(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the places that hold what Python reads and JSON does not allow."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is no number in JSON"
    elif isinstance(value, str) and not _encodable(value):
        yield path, f"{value!a} holds a lone surrogate"
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _unlawful(item, f"{path}[{at}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            shown = key.encode("utf-8", "replace").decode()
            if not _encodable(key):
                yield f"{path}.{shown}", f"{key!a} holds a lone surrogate"
            yield from _unlawful(item, f"{path}.{shown}")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def table_of(rows: Any, schema: dict[str, Any], field: str, **how: Any) -> pl.DataFrame:
    """Build a table from checked rows; text that Python made may still not be text."""
    try:
        table = pl.DataFrame(rows, schema=schema, **how)
    except UnicodeEncodeError as error:
        raise InputError(
            f"{error.object[error.start]!a} is half a character (a lone surrogate)",
            field=field,
            hint="decode the text as UTF-8 before it comes here",
        ) from error
    ids = [name for name in ("item_id", "doc_id") if name in schema]
    for name in ids:
        if table[name].str.contains("\0", literal=True).any():
            raise InputError(f"an id {HAS_NUL}", field=field, hint="use another id")
    return table


def _invalid(
    error: msgspec.ValidationError, number: int, make: MakeError, theirs: Mapping[str, str]
) -> InputError:
    problem, _, place = str(error).partition(" - at ")
    path = place.rpartition("$")[2].rstrip("`").lstrip(".")
    field = path if path.strip("[.]") else None  # msgspec does not name all keys: $[...]
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", problem):
        field = f"{field}.{missing[1]}" if field else missing[1]
    if field and theirs:
        field = re.sub(r"[^.\[\]]+", lambda name: theirs.get(name[0], name[0]), field)
    return make(
        problem.replace("`", ""),
        line=number,
        field=field,
        hint="write a whole number such as 0, 1 or 2"
        if problem.startswith("Expected `int`")
        else "see docs/formats.md for the fields",
    )


ITEM_ALIASES = {
    "id": ("item_id", "chunk_id"),
    "doc_id": frames.DOC_ID[1:],
    "grade": ("rel", "relevance", "label", "score"),
}
"""Other names of the keys of an item inside a record: a result, a judgment, a span."""


def with_item_keys(item: Any, wanted: Iterable[str], theirs: dict[str, str]) -> Any:
    """Return an item of a list with karat's keys; `theirs` notes what the file calls them.

    An own name always wins: `chunk_id` is a key like any other next to `id`.
    """
    if not isinstance(item, Mapping):
        return item
    renamed = dict(item)
    lower = {key.lower(): key for key in item if isinstance(key, str)}
    for known in wanted:
        used = next((lower[name] for name in ITEM_ALIASES[known] if name in lower), None)
        if known not in renamed and used is not None:
            renamed[known] = renamed.pop(used)
            theirs[known] = used
    return renamed


def with_query_id(record: Any) -> bool:
    """Give a record an id made of the text of its query, if it has none; tell whether it did."""
    if not isinstance(record, dict) or record.get("query_id") is not None:
        return False
    text = record.get("query")
    if not isinstance(text, str) or not text.strip():
        return False
    record["query_id"] = frames.generated_id(text.encode("utf-8", "replace").decode())
    return True


def with_known_keys(
    record: Any,
    aliases: Mapping[str, Sequence[str]],
    number: int,
    error: MakeError,
    theirs: dict[str, str],
) -> Any:
    """Return a record with karat's keys; `theirs` notes what the file calls them."""
    if not isinstance(record, Mapping):
        return record
    renamed = dict(record)
    for known, others in aliases.items():
        used = [name for name in (known, *others) if name in record]
        if len(used) > 1:
            raise error(
                f"{used[0]!r} and {used[1]!r} mean the same",
                line=number,
                field=used[1],
                hint="keep one of them",
            )
        if used and used[0] != known:
            renamed[known] = renamed.pop(used[0])
            theirs[known] = used[0]
    if "query_id" not in renamed and "id" in renamed and {"query", "text"} & renamed.keys():
        renamed["query_id"] = renamed.pop("id")
        theirs["query_id"] = "id"
    return renamed


def warn_of_misspelled_keys(fields: Iterable[str], known: Iterable[str], name: str | None) -> None:
    """Warn if a field of the queries looks like a known key that is misspelled."""
    keys = sorted(known)
    for field in fields:
        near = get_close_matches(field.lower(), keys, n=1, cutoff=0.8)
        if near:
            warnings.warn(
                KaratWarning(
                    f"{f'{printable(name)}: ' if name else ''}the field {printable(field)!r} looks "
                    f"like a misspelling of {near[0]!r}; it is kept as a field of the queries"
                ),
                stacklevel=5,
            )


def check_depth(fields: Mapping[str, Any], number: int, error: MakeError) -> None:
    """Refuse fields of a query that are nested too deep."""
    for name, value in fields.items():
        if _is_deeper(value, DEEPEST):
            raise error(
                f"lists and objects are nested more than {DEEPEST} deep",
                line=number,
                field=name,
                hint="nest them less, or write the field as text",
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
    """Make the error for a record that came from no file."""
    return InputError(f"record {line}: {problem}", field=field, hint=hint)


def new_query(
    given: Id, seen: Iterable[str], number: int, error: MakeError, refuse: Refuse = refused
) -> str:
    """Return a query's id as text, refusing one that was there before."""
    query = str(given)
    if "\0" in query:
        raise error(f"the id {HAS_NUL}", line=number, field="query_id", hint="use another id")
    if query in seen:
        problem = error(
            f"query {query!r} stands there twice",
            line=number,
            field="query_id",
            hint="a query is one line; put all of it there",
        )
        refuse("duplicate-query", problem, query_id=query)
    return query


def grouped(table: pl.DataFrame | None) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a table by query."""
    groups: dict[str, list[dict[str, Any]]] = {}
    if table is not None:
        for row in table.iter_rows(named=True):
            groups.setdefault(row.pop("query_id"), []).append(row)
    return groups


def held_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON a dict, refusing a key that stands twice in it."""
    held = dict(pairs)
    if len(held) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in held if keys.count(key) > 1)
        raise InputError(
            f"{twice!r} stands twice in one object",
            field=json.dumps(twice),
            hint="write each key once; JSON readers keep only the last",
        )
    return held


def without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what it does not hold."""
    return {key: value for key, value in row.items() if value is not None}
