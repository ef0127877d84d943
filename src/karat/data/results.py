"""Parsing of what retrievers return: ids, pairs, dicts, tables, and objects of other libraries.

A value under one of karat's own names must have the right type; otherwise it is an error. The
names of other libraries are more ambiguous, so that a value of another type is ignored.
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
"""Marks a value that does not exist, as opposed to one that is null."""
Paths = Mapping[str, str]
"""The paths of result fields under other names, from the option --field of `karat run`."""

# Names in the result itself, and in objects nested in it, such as its metadata. LanceDB's _distance
# is not a score, because smaller values are better. A nested `score` may be anything; LangChain
# rerankers store theirs as `relevance_score`.
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
_MAX_KEYS, _MAX_CHARACTERS = 12, 60
# Paths of the result list in the responses of Haystack, LlamaIndex, Qdrant, Pinecone,
# Elasticsearch, Meilisearch.
_LIST_PATHS = ("results", "documents", "source_nodes", "points", "matches", "hits.hits", "hits")
_SHAPES = "return a list of ids, of (id, score) pairs, of dicts, or of objects"
Layer = Mapping[str, Any]


class _NativeResult(ResultRow, omit_defaults=True, forbid_unknown_fields=True):
    """A result with karat's own names only, which is the usual case and fast to parse."""


def parse_returned(returned: Any) -> list[ResultRow]:
    """Parse a list of results, or an object that contains one, from any library.

    >>> [(result.id, result.score) for result in parse_returned([("a", 0.9), ("b", 0.5)])]
    [('a', 0.9), ('b', 0.5)]
    """
    results = parse_results(find_result_list(normalize_returned(returned), {}), {})
    check_no_lone_surrogates(text for result in results for text in _result_texts(result))
    return results


def parse_candidates(returned: Any, paths: Paths | None = None) -> list[ResultRow] | None:
    """Parse the list before reranking next to a list of results; None if there is no such list.

    >>> parse_candidates({"results": ["b"], "candidates": ["a", "b"]})[0].id
    'a'
    """
    paths = paths or {}
    output = as_mapping(returned)
    if find_result_list(output, paths) is output:
        return None
    candidates = value_at_path(output, paths.get("candidates", "candidates"))
    if candidates is MISSING or candidates is None:
        return None
    results = parse_results(candidates, paths, "candidates")
    check_no_lone_surrogates(text for result in results for text in _result_texts(result))
    return results


def normalize_returned(returned: Any) -> Any:
    """Return the output of a retriever; database rows become dicts, and other types are errors."""
    output = returned if _has_rows(returned) else as_mapping(returned)
    if output is None:
        raise InputError("the retriever returned None", hint="does it have a return statement?")
    if isinstance(output, (str, bytes)):
        raise InputError(f"expected a list of results, got {type(output).__name__}", hint=_SHAPES)
    if isinstance(output, Set):
        raise InputError(
            "expected a list of results, got a set, which has no order",
            hint="return a list with the best result first",
        )
    return output


def parse_results(result_list: Any, paths: Paths, key: str = "results") -> list[ResultRow]:
    """Parse and check a list of results; errors name its items after `key`."""
    results = _parse_native_results(result_list, paths)
    if results is None:
        line = {"query_id": "-", "results": [], key: _rows(result_list, paths, key)}
        parsed = getattr(converted(0, line, RunLine, error_without_line), key) or ()
        results = [result for result in parsed if isinstance(result, ResultRow)]
    for index, result in enumerate(results):
        check_result(result, 0, f"{key}[{index}]", error_without_line)
    return results


def check_no_lone_surrogates(texts: Iterable[str | None]) -> None:
    """Raise an error for text with a lone surrogate, which cannot be encoded as UTF-8."""
    try:
        "".join(filter(None, texts)).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the text contains a lone surrogate: {error.object[error.start]!a}",
            hint="decode the text as UTF-8",
        ) from error


def _result_texts(result: ResultRow) -> tuple[Any, ...]:
    return result.id, result.doc_id, result.text


def error_without_line(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    """Return an error for results that were not read from a file, and so have no line."""
    del line
    return InputError(problem, field=field, hint=hint)


def _parse_native_results(result_list: Any, paths: Paths) -> list[ResultRow] | None:
    """Parse a list of ids, or of results with karat's own names; None for anything else."""
    if not paths.keys().isdisjoint(RESULT_FIELDS) or type(result_list) is not list:
        return None
    if not {str, int, dict}.issuperset(map(type, result_list)):
        return None
    try:
        results = msgspec.convert(result_list, list[_NativeResult | Id])
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    return [_to_result_row(result) for result in results]


def _to_result_row(native: _NativeResult | str | int) -> ResultRow:
    if not isinstance(native, ResultRow):
        return ResultRow(str(native))
    result = ResultRow(*msgspec.structs.astuple(native))
    result.id = None if native.id is None else str(native.id)
    result.doc_id = None if native.doc_id is None else str(native.doc_id)
    result.text = _to_plain_str(native.text)
    return result


def find_result_list(output: Any, paths: Paths) -> Any:
    """Return the list of results: the output of the retriever, or the part that contains it."""
    if path := paths.get("results"):
        value = value_at_path(output, path)
        if value is MISSING or value is None:
            raise InputError(
                f"no value at {path!r}; the output {describe_content(output)}",
                hint="map the list: --field results=…",
            )
        return value
    if isinstance(output, (list, tuple)) or _has_rows(output):
        return output
    for path in _LIST_PATHS:
        value = value_at_path(output, path)
        if value is not MISSING and not callable(value) and to_float(value) is None:
            return [] if value is None else value
    return output


def _has_rows(value: Any) -> bool:
    """Return whether a value is a table; a single column is a list of ids."""
    return is_table(value) and type(value).__name__ != "Series"


def _rows(result_list: Any, paths: Paths, key: str) -> list[dict[str, Any]]:
    if _has_rows(result_list):
        return _rows_from_table(result_list, paths, key)
    if isinstance(result_list, Mapping):
        return _rows_from_scores(result_list)
    if isinstance(result_list, (str, bytes)) or not isinstance(result_list, Iterable):
        raise InputError(
            f"the output is not a list of results; it {describe_content(result_list)}",
            hint=f"{_SHAPES}, or map the list: --field results=…",
        )
    rows = [_row(f"{key}[{index}]", item, paths) for index, item in enumerate(result_list)]
    _check_paths_exist(rows, paths)
    return rows


def _row(location: str, item: Any, paths: Paths) -> dict[str, Any]:
    try:
        row = to_row(item, paths)
    except InputError as error:
        field = f"{location}.{error.field}" if error.field else location
        raise InputError(error.problem, field=field, hint=error.hint) from error
    except RecursionError as error:
        raise InputError("values are nested too deeply", field=location, hint=_SHAPES) from error
    if all(row.get(name) is None for name in ("id", "doc_id", "start", "text")):
        raise InputError(
            f"the result has no id, no span and no text; it {describe_content(item)}",
            field=location,
            hint="map the id: --field id=…",
        )
    return {name: _to_plain_str(value) for name, value in row.items()}


def _to_plain_str(value: Any) -> Any:
    """Convert subclasses of `str`, such as NumPy's, which cannot be serialized."""
    return str.__str__(value) if isinstance(value, str) else value


def _rows_from_table(table: Any, paths: Paths, key: str) -> list[dict[str, Any]]:
    """Return rows sorted by rank if there is one, otherwise by score, otherwise unsorted."""
    frame = to_frame(table)
    if "rank" in frame.columns:
        frame = frame.sort("rank", maintain_order=True)
    rows = [
        _row(f"{key}[{index}]", item, paths)
        for index, item in enumerate(frame.iter_rows(named=True))
    ]
    _check_paths_exist(rows, paths)
    if "rank" not in frame.columns and all(row.get("score") is not None for row in rows):
        rows.sort(key=_score_order, reverse=True)
    return rows


def _rows_from_scores(scores: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Return rows of `{id: score}` sorted by score, and ties by id, both descending."""
    if {"id", "score"} <= scores.keys():
        raise InputError(
            "expected a list of results, got a single result",
            hint="return a list, even for one result",
        )
    numbers = {key: to_float(value) for key, value in scores.items()}
    if None in numbers.values() or "query_id" in numbers:  # the query id may be a number
        raise InputError(
            f"the output has no list of results; it {describe_content(scores)}",
            hint='return a list, or {"results": […]}, or map the list: --field results=…',
        )
    rows = [
        {"id": _to_plain_str(text_id(key, "id")), "score": score} for key, score in numbers.items()
    ]
    return sorted(rows, key=_score_order, reverse=True)


def _score_order(row: dict[str, Any]) -> tuple[float, bytes]:
    return row["score"], row.get("id", "").encode("utf-8", "surrogatepass")


def _check_paths_exist(rows: list[dict[str, Any]], paths: Paths) -> None:
    """Raise an error for a path that is in none of the results, which is probably misspelled."""
    for name in RESULT_FIELDS:
        if rows and name in paths and not any(name in row for row in rows):
            raise InputError(
                f"no result has a value at {paths[name]!r}",
                field=name,
                hint=f"correct the path: --field {name}=…",
            )


def value_at_path(container: Any, path: str) -> Any:
    """Follow a path through mappings, lists and attributes; MISSING if it does not exist."""
    if isinstance(container, Mapping) and path in container:
        return container[path]  # the key itself may contain dots
    key, _, rest = path.partition(".")
    if isinstance(container, Mapping):
        value = container.get(key, MISSING)
    elif isinstance(container, (list, tuple)) and key.isdecimal():
        value = container[int(key)] if int(key) < len(container) else MISSING
    else:
        value = getattr(container, key, MISSING)
    return value_at_path(value, rest) if rest and value is not MISSING else value


def to_row(item: Any, paths: Paths) -> dict[str, Any]:
    """Return the values of a result under karat's names; missing values are omitted."""
    if isinstance(item, (tuple, list)) and not _has_known_fields(item):
        return _row_from_pair(item, paths)
    if isinstance(item, (str, int)) or _to_int(item) is not MISSING or _is_database_key(item):
        return _values_at_paths(item, paths) or {"id": _id(item)}
    if item is None or isinstance(item, (bytes, float)) or _to_number(item) is not MISSING:
        raise InputError(f"{item!r} is not a result", hint="use text or whole numbers as ids")
    return _row_from_object(as_mapping(item), paths)


def _row_from_object(result: Any, paths: Paths) -> dict[str, Any]:
    attributes = result if isinstance(result, Mapping) else getattr(result, "__dict__", {})
    node = attributes.get("node")
    has_node = isinstance(node, Mapping) or hasattr(node, "metadata")
    content: Any = node if has_node else result
    layers = _result_layers(content)
    row = _known_values(layers, paths)
    if has_node:  # in LlamaIndex, the score is next to the node, not in it
        row |= _known_values([{"score": value_at_path(result, "score")}], paths)
    if "text" not in row and hasattr(content, "get_content"):  # some nodes have no .text
        row["text"] = content.get_content()
    row |= _values_at_paths(result, paths)
    if "doc_id" in row and row.keys().isdisjoint(("start", "end")):
        row |= _offsets(layers, row.get("text"))
    elif "start" in paths and "end" not in row:
        row |= _offsets_from_text(row.get("start"), row.get("text"))
    return row


def describe_content(value: Any) -> str:
    """Return a phrase for an error message: "has the keys 'a', 'b'", or "is 7"."""
    if isinstance(value, (str, bytes, int, float)):
        return f"is {repr(value)[:_MAX_CHARACTERS]}"
    if isinstance(value, Mapping):
        names, kind = list(map(str, value)), "key"
    else:
        names = getattr(value, "__dict__", None) or getattr(value, "__slots__", None) or dir(value)
        names = [name for name in names if not name.startswith("__")]
        kind = "attribute"
    owner = "" if isinstance(value, Mapping) else f"is a {type(value).__name__} and "
    if not names:
        return f"{owner}has no {kind}s"
    if len(names) == 1:
        return f"{owner}has the {kind} {names[0]!r}"
    listed = ", ".join(map(repr, names[:_MAX_KEYS])) + (", …" if len(names) > _MAX_KEYS else "")
    return f"{owner}has the {kind}s {listed}"


def as_mapping(value: Any) -> Any:
    """Return a database row, which has keys but is not a mapping, as a dict."""
    if isinstance(value, Mapping) or not (hasattr(value, "keys") and hasattr(value, "__getitem__")):
        return value
    return dict(value)


def to_float(value: Any) -> float | None:
    """Return a number of any library as a float, or None if the value is not a number."""
    number = _to_number(value)
    return None if number is MISSING else number


def _has_known_fields(item: Any) -> bool:
    """Return whether a value is a named tuple with known field names."""
    return not _KNOWN.isdisjoint(getattr(item, "_fields", ()))


def _row_from_pair(item: tuple[Any, ...] | list[Any], paths: Paths) -> dict[str, Any]:
    if len(item) == 1:  # a database row with one column
        return to_row(item[0], paths)
    if len(item) != 2 or to_float(item[1]) is None:
        raise InputError(
            f"expected an (id, score) pair, got a {type(item).__name__} of length {len(item)}",
            hint="return pairs with the id first: list(zip(ids, scores))",
        )
    row = to_row(item[0], paths)
    return row if "score" in paths else row | {"score": to_float(item[1])}


def _values_at_paths(item: Any, paths: Paths) -> dict[str, Any]:
    """Return the values at the paths of --field."""
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
                f"no value at {path!r}; the result {describe_content(item)}",
                hint="map the id: --field id=…",
            )
    return row


def _result_layers(item: Any) -> list[Layer]:
    """Return a result, the objects nested in it, and the objects nested in those."""
    item = _to_layer(item)
    nested = _nested_layers(item)
    return [item, *nested, *(inner for layer in nested for inner in _nested_layers(layer))]


def _nested_layers(layer: Layer) -> list[Layer]:
    values = (layer.get(name) for name in _NESTED_KEYS)
    return [value for value in values if isinstance(value, Mapping)]


def _known_values(layers: list[Layer], paths: Paths) -> dict[str, Any]:
    """Return the values under karat's names, or under the names of other libraries."""
    item, *nested = layers
    row: dict[str, Any] = {}
    for name in RESULT_FIELDS:
        if name in paths:
            continue
        value = item.get(name)
        if value is not MISSING and value is not None:
            row[name] = _convert_value(name, value)
        elif (fits := _FITS.get(name)) is not None:
            match = _first_fitting([item], _NAMES[name], fits)
            if match is MISSING:
                match = _first_fitting(nested, _NESTED_NAMES[name], fits)
            if match is not MISSING:
                row[name] = match
    return row


def _to_layer(item: Any) -> Layer:
    """Return the attributes of an object that have known names; methods are ignored."""
    if isinstance(item, Mapping):
        return item
    attributes = getattr(item, "__dict__", None) or {}
    declared = _declared_names(type(item))  # type: ignore[arg-type]  # mypy: a class is not hashable
    names = _KNOWN if _has_dynamic_attributes(item) else _KNOWN & attributes.keys() | declared
    values = ((name, getattr(item, name, MISSING)) for name in names)
    return {n: value for n, value in values if value is not MISSING and not callable(value)}


@lru_cache(maxsize=256)
def _declared_names(kind: type) -> frozenset[str]:
    """Return the known names that a class or one of its base classes declares."""
    return frozenset(name for base in kind.__mro__ for name in vars(base)) & _KNOWN


def _has_dynamic_attributes(item: Any) -> bool:
    """Return whether an object may have attributes that are not declared.

    Access to a missing attribute of a Pydantic object takes one or two microseconds, which adds up
    over dozens of names. Pydantic objects have undeclared attributes only in `__pydantic_extra__`.
    """
    if hasattr(type(item), "__pydantic_extra__"):
        return bool(item.__pydantic_extra__)
    return hasattr(type(item), "__getattr__")


def _first_fitting(layers: list[Layer], names: tuple[str, ...], fits: Callable[[Any], Any]) -> Any:
    """Return the first value under these names that has the right type."""
    for layer in layers:
        for name in names:
            if name in layer and (value := fits(layer[name])) is not MISSING:
                return value
    return MISSING


def _offsets(layers: list[Layer], text: Any) -> dict[str, Any]:
    """Return the start and the end of a result; -1, which LangChain uses, means unknown."""
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
    """Return the offsets of a result without an end, which follows from the length of its text."""
    if not isinstance(start, int) or not isinstance(text, str):
        return {}
    return {"start": start, "end": start + len(text)}


def _convert_value(name: str, value: Any) -> Any:
    """Convert a value to the type of a field; an unsuitable value is returned unchanged."""
    if value is None:
        return None
    if name in ("id", "doc_id"):
        return _id(value, name)
    number = _to_number(value) if name == "score" else _to_int(value)
    return value if number is MISSING or isinstance(value, str) else number


def _id(value: Any, field: str = "id") -> str:
    if _is_database_key(value):
        return str(value)
    whole = _to_int(value)
    return text_id(value if whole is MISSING else whole, field)


def _is_database_key(value: Any) -> bool:
    """Return whether a value is a UUID or ObjectId; compared by name to avoid imports."""
    return type(value).__name__ in ("UUID", "ObjectId")


def _to_int(value: Any) -> Any:
    """Return an integer of any library as an int, or MISSING."""
    if isinstance(value, bool):
        return MISSING
    try:
        return operator.index(value)
    except TypeError:
        return MISSING


def _to_number(value: Any) -> Any:
    """Return a number of any library as a float, or MISSING for text and for arrays."""
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
