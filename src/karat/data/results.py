"""What a retriever may return, in karat's words, whoever made the retriever.

Our own names are strict: a value must be what its name says. Names that others use are
accepted only if the value fits, since the same word may mean something else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Set
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec

from karat.data.dict_runs import text_id
from karat.data.formats.json_lines import Id, converted
from karat.data.formats.native_run import ResultRow, RunLine, check_result
from karat.data.frames import DOC_ID, is_table, to_frame
from karat.errors import InputError

RESULT_FIELDS = ResultRow.__struct_fields__
MISSING: Any = object()
"""Stands for what is not there at all, as opposed to what is null."""
Paths = Mapping[str, str]
"""Where things are in a result, where they have other names than ours: --field of `karat run`."""

# Names in the result itself, and in what is filed below it. The score of a row of LanceDB is
# never its _distance, which is better the smaller it is. What is filed below a result as its
# `score` may be anything; `relevance_score` is where rerankers of LangChain leave theirs.
_NAMES = {
    "id": ("item_id", "chunk_id", "node_id", "id_", "_id", "corpus_id"),
    "score": ("_relevance_score", "relevance_score", "_score"),
    "doc_id": (*DOC_ID[1:], "document_id", "ref_doc_id"),
    "text": ("content", "page_content", "document"),
}
_NESTED_NAMES = {
    "id": ("id", "item_id", "chunk_id", "_id"),
    "score": ("relevance_score",),
    "doc_id": (*DOC_ID, "document_id", "ref_doc_id", "source_id", "source"),
    "text": ("text", "content", "page_content", "document"),
}
_NESTED_KEYS = ("metadata", "meta", "payload", "_source")
_STARTS = ("start_index", "start_char_idx", "split_idx_start")
_ENDS = ("end_char_idx",)
_KNOWN = frozenset(
    chain(RESULT_FIELDS, *_NAMES.values(), *_NESTED_NAMES.values(), _NESTED_KEYS, _STARTS, _ENDS)
)
_MOST_KEYS, _MOST_CHARACTERS = 12, 60
# Where other tools put the list: Haystack, LlamaIndex, Qdrant, Pinecone,
# Elasticsearch, Meilisearch.
_LIST_PATHS = ("results", "documents", "source_nodes", "points", "matches", "hits.hits", "hits")
_SHAPES = "return a list of ids, of (id, score) pairs, of dicts, or of objects"
Layer = Mapping[str, Any]


class _NativeResult(ResultRow, omit_defaults=True, forbid_unknown_fields=True):
    """A result in our own names and no others, as most are; it is read at once."""


def parse_returned(returned: Any) -> list[ResultRow]:
    """Read a list of results, or what holds one, whatever library it comes from.

    >>> [(result.id, result.score) for result in results_of([("a", 0.9), ("b", 0.5)])]
    [('a', 0.9), ('b', 0.5)]
    """
    results = parse_results(find_result_list(normalize_returned(returned), {}), {})
    check_no_lone_surrogates(text for result in results for text in _result_texts(result))
    return results


def normalize_returned(returned: Any) -> Any:
    """Return what came back as a mapping, a table or a list; refuse what holds no list."""
    held = returned if _has_rows(returned) else as_mapping(returned)
    if held is None:
        raise InputError("nothing was returned", hint="did the function forget its return?")
    if isinstance(held, (str, bytes)):
        raise InputError(f"a {type(held).__name__} was returned instead of a list", hint=_SHAPES)
    if isinstance(held, Set):
        raise InputError("a set has no order", hint="return a list, the best first")
    return held


def parse_results(listed: Any, paths: Paths) -> list[ResultRow]:
    """Read a list of results, each checked."""
    results = _parse_native_results(listed, paths)
    if results is None:
        line = {"query_id": "-", "results": _rows(listed, paths)}
        read = converted(0, line, RunLine, error_without_line).results or ()
        results = [result for result in read if isinstance(result, ResultRow)]
    for at, result in enumerate(results):
        check_result(result, 0, at, error_without_line)
    return results


def check_no_lone_surrogates(texts: Iterable[str | None]) -> None:
    """Refuse text that no file can hold."""
    try:
        "".join(filter(None, texts)).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{error.object[error.start]!a} is half a character (a lone surrogate)",
            hint="decode the text as UTF-8",
        ) from error


def _result_texts(result: ResultRow) -> tuple[Any, ...]:
    return result.id, result.doc_id, result.text


def error_without_line(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    """Make the error for results that are on no line of a file."""
    del line
    return InputError(problem, field=field, hint=hint)


def _parse_native_results(listed: Any, paths: Paths) -> list[ResultRow] | None:
    """Read a list of ids, or of results in our own names; None where it is anything else."""
    if not paths.keys().isdisjoint(RESULT_FIELDS) or type(listed) is not list:
        return None
    if not {str, int, dict}.issuperset(map(type, listed)):
        return None
    try:
        read = msgspec.convert(listed, list[_NativeResult | Id])
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    return [_to_result_row(result) for result in read]


def _to_result_row(read: _NativeResult | str | int) -> ResultRow:
    if not isinstance(read, ResultRow):
        return ResultRow(str(read))
    result = ResultRow(*msgspec.structs.astuple(read))
    result.id = None if read.id is None else str(read.id)
    result.doc_id = None if read.doc_id is None else str(read.doc_id)
    result.text = _to_plain_str(read.text)
    return result


def find_result_list(held: Any, paths: Paths) -> Any:
    """Return what holds the results: what came back, or a part of it."""
    if path := paths.get("results"):
        found = value_at_path(held, path)
        if found is MISSING or found is None:
            raise InputError(
                f"there is nothing at {path}; it has {describe_keys(held)}",
                hint="map the list: --field results=…",
            )
        return found
    if isinstance(held, (list, tuple)) or _has_rows(held):
        return held
    for path in _LIST_PATHS:
        found = value_at_path(held, path)
        if found is not MISSING and not callable(found) and to_float(found) is None:
            return [] if found is None else found
    return held


def _has_rows(value: Any) -> bool:
    """Tell a table from a single column, which is a list of ids."""
    return is_table(value) and type(value).__name__ != "Series"


def _rows(listed: Any, paths: Paths) -> list[dict[str, Any]]:
    if _has_rows(listed):
        return _rows_from_table(listed, paths)
    if isinstance(listed, Mapping):
        return _rows_from_scores(listed)
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
        raise InputError(
            f"what was returned is not a list of results; it has {describe_keys(listed)}",
            hint=f"{_SHAPES}, or map the list: --field results=…",
        )
    rows = [_row(at, item, paths) for at, item in enumerate(listed)]
    _check_paths_exist(rows, paths)
    return rows


def _row(at: int, item: Any, paths: Paths) -> dict[str, Any]:
    try:
        row = to_row(item, paths)
    except InputError as error:
        place = f"results[{at}]" + (f".{error.field}" if error.field else "")
        raise InputError(error.problem, field=place, hint=error.hint) from error
    except RecursionError as error:
        raise InputError("it is nested too deep", field=f"results[{at}]", hint=_SHAPES) from error
    if all(row.get(name) is None for name in ("id", "doc_id", "start", "text")):
        raise InputError(
            f"it has neither id, nor place, nor text; it has {describe_keys(item)}",
            field=f"results[{at}]",
            hint="map the id: --field id=…",
        )
    return {name: _to_plain_str(value) for name, value in row.items()}


def _to_plain_str(value: Any) -> Any:
    """Return text of another class, such as NumPy's, as what a file can hold."""
    return str.__str__(value) if isinstance(value, str) else value


def _rows_from_table(table: Any, paths: Paths) -> list[dict[str, Any]]:
    """Read rows in the order of every table: by rank, else by score, else as they stand."""
    frame = to_frame(table)
    if "rank" in frame.columns:
        frame = frame.sort("rank", maintain_order=True)
    rows = [_row(at, item, paths) for at, item in enumerate(frame.iter_rows(named=True))]
    _check_paths_exist(rows, paths)
    if "rank" not in frame.columns and all(row.get("score") is not None for row in rows):
        rows.sort(key=_score_order, reverse=True)
    return rows


def _rows_from_scores(scores: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Rank `{id: score}` as everywhere: by score, ties by id, both descending."""
    if {"id", "score"} <= scores.keys():
        raise InputError(
            "this is one result instead of a list", hint="return a list, even for one result"
        )
    numbers = {key: to_float(value) for key, value in scores.items()}
    if None in numbers.values() or "query_id" in numbers:  # an echoed id may be a number too
        raise InputError(
            f"there is no list of results in it; it has {describe_keys(scores)}",
            hint='return a list, or {"results": […]}, or map the list: --field results=…',
        )
    rows = [
        {"id": _to_plain_str(text_id(key, "id")), "score": score} for key, score in numbers.items()
    ]
    return sorted(rows, key=_score_order, reverse=True)


def _score_order(row: dict[str, Any]) -> tuple[float, bytes]:
    return row["score"], row.get("id", "").encode("utf-8", "surrogatepass")


def _check_paths_exist(rows: list[dict[str, Any]], paths: Paths) -> None:
    """Refuse a path that none of the results has, which is more likely misspelt than empty."""
    for name in RESULT_FIELDS:
        if rows and name in paths and not any(name in row for row in rows):
            path = paths[name]
            raise InputError(
                f"none of the results has anything at {path}",
                field=name,
                hint=f"map it: --field {name}=…",
            )


def value_at_path(held: Any, path: str) -> Any:
    """Follow a path through mappings, lists and attributes; ABSENT where it leads nowhere."""
    if isinstance(held, Mapping) and path in held:
        return held[path]  # also a key that has dots in it
    key, _, rest = path.partition(".")
    if isinstance(held, Mapping):
        found = held.get(key, MISSING)
    elif isinstance(held, (list, tuple)) and key.isdecimal():
        found = held[int(key)] if int(key) < len(held) else MISSING
    else:
        found = getattr(held, key, MISSING)
    return value_at_path(found, rest) if rest and found is not MISSING else found


def to_row(item: Any, paths: Paths) -> dict[str, Any]:
    """Return what a result says under our names; what it does not say is left out."""
    if isinstance(item, (tuple, list)) and not _has_known_fields(item):
        return _row_from_pair(item, paths)
    if isinstance(item, (str, int)) or _to_int(item) is not MISSING or _is_database_key(item):
        return _values_at_paths(item, paths) or {"id": _id(item)}
    if item is None or isinstance(item, (bytes, float)) or _to_number(item) is not MISSING:
        raise InputError(f"{item!r} is not a result", hint="ids are text or whole numbers")
    return _row_from_object(as_mapping(item), paths)


def _row_from_object(held: Any, paths: Paths) -> dict[str, Any]:
    node = (held if isinstance(held, Mapping) else getattr(held, "__dict__", {})).get("node")
    is_node = isinstance(node, Mapping) or hasattr(node, "metadata")
    described: Any = node if is_node else held
    layers = _result_layers(described)
    row = _known_values(layers, paths)
    if is_node:  # LlamaIndex keeps the score beside the node that it belongs to
        row |= _known_values([{"score": value_at_path(held, "score")}], paths)
    if "text" not in row and hasattr(described, "get_content"):  # not every node has a .text
        row["text"] = described.get_content()
    row |= _values_at_paths(held, paths)
    if "doc_id" in row and row.keys().isdisjoint(("start", "end")):
        row |= _offsets(layers, row.get("text"))
    elif "start" in paths and "end" not in row:
        row |= _offsets_from_text(row.get("start"), row.get("text"))
    return row


def describe_keys(held: Any) -> str:
    """Name the keys or attributes of what came back, for an error."""
    if isinstance(held, (str, bytes, int, float)):
        return f"no keys, being {repr(held)[:_MOST_CHARACTERS]}"
    if isinstance(held, Mapping):
        keys = list(map(str, held))
    else:
        own = getattr(held, "__dict__", None) or getattr(held, "__slots__", None) or dir(held)
        keys = [name for name in own if not name.startswith("__")]
    shown = ", ".join(keys[:_MOST_KEYS]) + (", …" if len(keys) > _MOST_KEYS else "")
    what = "the keys" if isinstance(held, Mapping) else f"as a {type(held).__name__}"
    return f"{what} {shown or 'nothing'}"


def as_mapping(held: Any) -> Any:
    """Return rows of databases, which have keys and are no mappings, as dicts."""
    if isinstance(held, Mapping) or not (hasattr(held, "keys") and hasattr(held, "__getitem__")):
        return held
    return dict(held)


def to_float(value: Any) -> float | None:
    """Return a number of any library as a float, None where it is none."""
    found = _to_number(value)
    return None if found is MISSING else found


def _has_known_fields(item: Any) -> bool:
    """Tell whether a tuple has names that say what stands in it."""
    return not _KNOWN.isdisjoint(getattr(item, "_fields", ()))


def _row_from_pair(item: tuple[Any, ...] | list[Any], paths: Paths) -> dict[str, Any]:
    if len(item) == 1:  # a row of a database with one column
        return to_row(item[0], paths)
    if len(item) != 2 or to_float(item[1]) is None:
        raise InputError(
            f"a {type(item).__name__} of {len(item)} is not a result",
            hint="return (id, score) pairs, the id first: list(zip(ids, scores))",
        )
    row = to_row(item[0], paths)
    return row if "score" in paths else row | {"score": to_float(item[1])}


def _values_at_paths(item: Any, paths: Paths) -> dict[str, Any]:
    """Return what stands where --field says."""
    row: dict[str, Any] = {}
    for name in RESULT_FIELDS:
        path = paths.get(name)
        if path is None:
            continue
        value = value_at_path(item, path)
        if value is not MISSING:
            row[name] = _convert_value(name, value)
        elif name == "id":
            raise InputError(
                f"there is nothing at {path}; it has {describe_keys(item)}",
                hint="map the id: --field id=…",
            )
    return row


def _result_layers(item: Any) -> list[Layer]:
    """Return a result, what is filed below it, and what is filed below that."""
    item = _to_layer(item)
    below = _nested_layers(item)
    return [item, *below, *(deeper for layer in below for deeper in _nested_layers(layer))]


def _nested_layers(layer: Layer) -> list[Layer]:
    held = (layer.get(name) for name in _NESTED_KEYS)
    return [below for below in held if isinstance(below, Mapping)]


def _known_values(layers: list[Layer], paths: Paths) -> dict[str, Any]:
    """Find what a result calls by our names, or by names that others use."""
    item, *below = layers
    row: dict[str, Any] = {}
    for name in RESULT_FIELDS:
        if name in paths:
            continue
        value = item.get(name)
        if value is not MISSING and value is not None:
            row[name] = _convert_value(name, value)
        elif (fits := _FITS.get(name)) is not None:
            found = _first_fitting([item], _NAMES[name], fits)
            found = _first_fitting(below, _NESTED_NAMES[name], fits) if found is MISSING else found
            if found is not MISSING:
                row[name] = found
    return row


def _to_layer(part: Any) -> Layer:
    """Return what an object has of the names that are looked for; a method says nothing."""
    if isinstance(part, Mapping):
        return part
    own = getattr(part, "__dict__", None) or {}
    declared = _declared_names(type(part))  # type: ignore[arg-type]  # mypy: a class is not hashable
    names = _KNOWN if _has_dynamic_attributes(part) else _KNOWN & own.keys() | declared
    values = ((name, getattr(part, name, MISSING)) for name in names)
    return {n: value for n, value in values if value is not MISSING and not callable(value)}


@lru_cache(maxsize=256)
def _declared_names(kind: type) -> frozenset[str]:
    """Return which of the names looked for a class and those above it declare."""
    return frozenset(name for above in kind.__mro__ for name in vars(above)) & _KNOWN


def _has_dynamic_attributes(part: Any) -> bool:
    """Tell whether an object may have attributes that are declared nowhere.

    Asking a Pydantic object for what it does not have takes a microsecond or two, and results
    are asked for dozens of names: it makes up none unless it was given more than it declares.
    """
    if hasattr(type(part), "__pydantic_extra__"):
        return bool(part.__pydantic_extra__)
    return hasattr(type(part), "__getattr__")


def _first_fitting(layers: list[Layer], names: tuple[str, ...], fits: Callable[[Any], Any]) -> Any:
    """Return the first value under these names that is what we look for."""
    for layer in layers:
        for name in names:
            if name in layer and (value := fits(layer[name])) is not MISSING:
                return value
    return MISSING


def _offsets(layers: list[Layer], text: Any) -> dict[str, Any]:
    """Find where in its document a result stands; -1, which LangChain writes, is nowhere."""
    for layer in layers:
        start, end = _fit_offset(layer.get("start")), _fit_offset(layer.get("end"))
        if start is MISSING or end is MISSING:
            start = _first_fitting([layer], _STARTS, _fit_offset)
            end = _first_fitting([layer], _ENDS, _fit_offset)
        if start is not MISSING:
            return (
                _offsets_from_text(start, text) if end is MISSING else {"start": start, "end": end}
            )
    return {}


def _offsets_from_text(start: Any, text: Any) -> dict[str, Any]:
    """Return a place that ends where its text does; without a text it is none."""
    if not isinstance(start, int) or not isinstance(text, str):
        return {}
    return {"start": start, "end": start + len(text)}


def _convert_value(name: str, value: Any) -> Any:
    """Return a value as what it is called, or as it is, to be refused."""
    if value is None:
        return None
    if name in ("id", "doc_id"):
        return _id(value, name)
    found = _to_number(value) if name == "score" else _to_int(value)
    return value if found is MISSING or isinstance(value, str) else found


def _id(value: Any, field: str = "id") -> str:
    if _is_database_key(value):
        return str(value)
    whole = _to_int(value)
    return text_id(value if whole is MISSING else whole, field)


def _is_database_key(value: Any) -> bool:
    """Tell keys of databases that are no text, by their class, since they may not be imported."""
    return type(value).__name__ in ("UUID", "ObjectId")


def _to_int(value: Any) -> Any:
    """Return a whole number of any library as an int."""
    if isinstance(value, bool):
        return MISSING
    try:
        return operator.index(value)
    except TypeError:
        return MISSING


def _to_number(value: Any) -> Any:
    """Return a number of any library as a float; text is none, nor is a table of one number."""
    if isinstance(value, (str, bytes, bool)) or getattr(value, "shape", ()) != ():
        return MISSING
    try:
        return float(value)
    except (TypeError, ValueError):
        return MISSING


def _fit_id(value: Any) -> Any:
    if isinstance(value, str):
        return value or MISSING
    return str(value) if _is_database_key(value) or _to_int(value) is not MISSING else MISSING


def _fit_text(value: Any) -> Any:
    return value if isinstance(value, str) else MISSING


def _fit_offset(value: Any) -> Any:
    whole = _to_int(value)
    return whole if whole is not MISSING and whole >= 0 else MISSING


_FITS: dict[str, Callable[[Any], Any]] = {
    "id": _fit_id,
    "score": _to_number,
    "doc_id": _fit_id,
    "text": _fit_text,
}
