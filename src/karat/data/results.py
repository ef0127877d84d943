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

RESULT = ResultRow.__struct_fields__
ABSENT: Any = object()
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
_NAMES_BELOW = {
    "id": ("id", "item_id", "chunk_id", "_id"),
    "score": ("relevance_score",),
    "doc_id": (*DOC_ID, "document_id", "ref_doc_id", "source_id", "source"),
    "text": ("text", "content", "page_content", "document"),
}
_BELOW = ("metadata", "meta", "payload", "_source")
_STARTS = ("start_index", "start_char_idx", "split_idx_start")
_ENDS = ("end_char_idx",)
_KNOWN = frozenset(chain(RESULT, *_NAMES.values(), *_NAMES_BELOW.values(), _BELOW, _STARTS, _ENDS))
_MOST_KEYS, _MOST_CHARACTERS = 12, 60
# Where other tools put the list: Haystack, LlamaIndex, Qdrant, Pinecone,
# Elasticsearch, Meilisearch.
_HOLDERS = ("results", "documents", "source_nodes", "points", "matches", "hits.hits", "hits")
_SHAPES = "return a list of ids, of (id, score) pairs, of dicts, or of objects"
Layer = Mapping[str, Any]


class _Native(ResultRow, omit_defaults=True, forbid_unknown_fields=True):
    """A result in our own names and no others, as most are; it is read at once."""


def results_of(returned: Any) -> list[ResultRow]:
    """Read a list of results, or what holds one, whatever library it comes from.

    >>> [(result.id, result.score) for result in results_of([("a", 0.9), ("b", 0.5)])]
    [('a', 0.9), ('b', 0.5)]
    """
    results = results_in(listed_in(held_in(returned), {}), {})
    refuse_half_characters(text for result in results for text in _texts(result))
    return results


def held_in(returned: Any) -> Any:
    """Return what came back as a mapping, a table or a list; refuse what holds no list."""
    held = returned if _has_rows(returned) else as_mapping(returned)
    if held is None:
        raise InputError("nothing was returned", hint="did the function forget its return?")
    if isinstance(held, (str, bytes)):
        raise InputError(f"a {type(held).__name__} was returned instead of a list", hint=_SHAPES)
    if isinstance(held, Set):
        raise InputError("a set has no order", hint="return a list, the best first")
    return held


def results_in(listed: Any, paths: Paths) -> list[ResultRow]:
    """Read a list of results, each checked."""
    results = _at_once(listed, paths)
    if results is None:
        line = {"query_id": "-", "results": _rows(listed, paths)}
        read = converted(0, line, RunLine, unplaced).results or ()
        results = [result for result in read if isinstance(result, ResultRow)]
    for at, result in enumerate(results):
        check_result(result, 0, at, unplaced)
    return results


def refuse_half_characters(texts: Iterable[str | None]) -> None:
    """Refuse text that no file can hold."""
    try:
        "".join(filter(None, texts)).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{error.object[error.start]!a} is half a character (a lone surrogate)",
            hint="decode the text as UTF-8",
        ) from error


def _texts(result: ResultRow) -> tuple[Any, ...]:
    return result.id, result.doc_id, result.text


def unplaced(
    problem: str, *, line: int, field: str | None = None, hint: str | None = None
) -> InputError:
    """Make the error for results that are on no line of a file."""
    del line
    return InputError(problem, field=field, hint=hint)


def _at_once(listed: Any, paths: Paths) -> list[ResultRow] | None:
    """Read a list of ids, or of results in our own names; None where it is anything else."""
    if not paths.keys().isdisjoint(RESULT) or type(listed) is not list:
        return None
    if not {str, int, dict}.issuperset(map(type, listed)):
        return None
    try:
        read = msgspec.convert(listed, list[_Native | Id])
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None
    return [_plain(result) for result in read]


def _plain(read: _Native | str | int) -> ResultRow:
    if not isinstance(read, ResultRow):
        return ResultRow(str(read))
    result = ResultRow(*msgspec.structs.astuple(read))
    result.id = None if read.id is None else str(read.id)
    result.doc_id = None if read.doc_id is None else str(read.doc_id)
    result.text = _plain_text(read.text)
    return result


def listed_in(held: Any, paths: Paths) -> Any:
    """Return what holds the results: what came back, or a part of it."""
    if path := paths.get("results"):
        found = at_path(held, path)
        if found is ABSENT or found is None:
            raise InputError(
                f"there is nothing at {path}; it has {keys_of(held)}",
                hint="map the list: --field results=…",
            )
        return found
    if isinstance(held, (list, tuple)) or _has_rows(held):
        return held
    for path in _HOLDERS:
        found = at_path(held, path)
        if found is not ABSENT and not callable(found) and number_of(found) is None:
            return [] if found is None else found
    return held


def _has_rows(value: Any) -> bool:
    """Tell a table from a single column, which is a list of ids."""
    return is_table(value) and type(value).__name__ != "Series"


def _rows(listed: Any, paths: Paths) -> list[dict[str, Any]]:
    if _has_rows(listed):
        return _of_table(listed, paths)
    if isinstance(listed, Mapping):
        return _of_scores(listed)
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
        raise InputError(
            f"what was returned is not a list of results; it has {keys_of(listed)}",
            hint=f"{_SHAPES}, or map the list: --field results=…",
        )
    rows = [_row(at, item, paths) for at, item in enumerate(listed)]
    _refuse_what_is_nowhere(rows, paths)
    return rows


def _row(at: int, item: Any, paths: Paths) -> dict[str, Any]:
    try:
        row = row_of(item, paths)
    except InputError as error:
        place = f"results[{at}]" + (f".{error.field}" if error.field else "")
        raise InputError(error.problem, field=place, hint=error.hint) from error
    except RecursionError as error:
        raise InputError("it is nested too deep", field=f"results[{at}]", hint=_SHAPES) from error
    if all(row.get(name) is None for name in ("id", "doc_id", "start", "text")):
        raise InputError(
            f"it has neither id, nor place, nor text; it has {keys_of(item)}",
            field=f"results[{at}]",
            hint="map the id: --field id=…",
        )
    return {name: _plain_text(value) for name, value in row.items()}


def _plain_text(value: Any) -> Any:
    """Return text of another class, such as NumPy's, as what a file can hold."""
    return str.__str__(value) if isinstance(value, str) else value


def _of_table(table: Any, paths: Paths) -> list[dict[str, Any]]:
    """Read rows in the order of every table: by rank, else by score, else as they stand."""
    frame = to_frame(table)
    if "rank" in frame.columns:
        frame = frame.sort("rank", maintain_order=True)
    rows = [_row(at, item, paths) for at, item in enumerate(frame.iter_rows(named=True))]
    _refuse_what_is_nowhere(rows, paths)
    if "rank" not in frame.columns and all(row.get("score") is not None for row in rows):
        rows.sort(key=_by_score, reverse=True)
    return rows


def _of_scores(scores: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Rank `{id: score}` as everywhere: by score, ties by id, both descending."""
    if {"id", "score"} <= scores.keys():
        raise InputError(
            "this is one result instead of a list", hint="return a list, even for one result"
        )
    numbers = {key: number_of(value) for key, value in scores.items()}
    if None in numbers.values() or "query_id" in numbers:  # an echoed id may be a number too
        raise InputError(
            f"there is no list of results in it; it has {keys_of(scores)}",
            hint='return a list, or {"results": […]}, or map the list: --field results=…',
        )
    rows = [
        {"id": _plain_text(text_id(key, "id")), "score": score} for key, score in numbers.items()
    ]
    return sorted(rows, key=_by_score, reverse=True)


def _by_score(row: dict[str, Any]) -> tuple[float, bytes]:
    return row["score"], row.get("id", "").encode("utf-8", "surrogatepass")


def _refuse_what_is_nowhere(rows: list[dict[str, Any]], paths: Paths) -> None:
    """Refuse a path that none of the results has, which is more likely misspelt than empty."""
    for name in RESULT:
        if rows and name in paths and not any(name in row for row in rows):
            path = paths[name]
            raise InputError(
                f"none of the results has anything at {path}",
                field=name,
                hint=f"map it: --field {name}=…",
            )


def at_path(held: Any, path: str) -> Any:
    """Follow a path through mappings, lists and attributes; ABSENT where it leads nowhere."""
    if isinstance(held, Mapping) and path in held:
        return held[path]  # also a key that has dots in it
    key, _, rest = path.partition(".")
    if isinstance(held, Mapping):
        found = held.get(key, ABSENT)
    elif isinstance(held, (list, tuple)) and key.isdecimal():
        found = held[int(key)] if int(key) < len(held) else ABSENT
    else:
        found = getattr(held, key, ABSENT)
    return at_path(found, rest) if rest and found is not ABSENT else found


def row_of(item: Any, paths: Paths) -> dict[str, Any]:
    """Return what a result says under our names; what it does not say is left out."""
    if isinstance(item, (tuple, list)) and not _has_names(item):
        return _pair(item, paths)
    if isinstance(item, (str, int)) or _whole(item) is not ABSENT or _is_key(item):
        return _named(item, paths) or {"id": _id(item)}
    if item is None or isinstance(item, (bytes, float)) or _number(item) is not ABSENT:
        raise InputError(f"{item!r} is not a result", hint="ids are text or whole numbers")
    return _object_row(as_mapping(item), paths)


def _object_row(held: Any, paths: Paths) -> dict[str, Any]:
    node = (held if isinstance(held, Mapping) else getattr(held, "__dict__", {})).get("node")
    is_node = isinstance(node, Mapping) or hasattr(node, "metadata")
    described: Any = node if is_node else held
    layers = _layers(described)
    row = _described(layers, paths)
    if is_node:  # LlamaIndex keeps the score beside the node that it belongs to
        row |= _described([{"score": at_path(held, "score")}], paths)
    if "text" not in row and hasattr(described, "get_content"):  # not every node has a .text
        row["text"] = described.get_content()
    row |= _named(held, paths)
    if "doc_id" in row and row.keys().isdisjoint(("start", "end")):
        row |= _place(layers, row.get("text"))
    elif "start" in paths and "end" not in row:
        row |= _ended(row.get("start"), row.get("text"))
    return row


def keys_of(held: Any) -> str:
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


def number_of(value: Any) -> float | None:
    """Return a number of any library as a float, None where it is none."""
    found = _number(value)
    return None if found is ABSENT else found


def _has_names(item: Any) -> bool:
    """Tell whether a tuple has names that say what stands in it."""
    return not _KNOWN.isdisjoint(getattr(item, "_fields", ()))


def _pair(item: tuple[Any, ...] | list[Any], paths: Paths) -> dict[str, Any]:
    if len(item) == 1:  # a row of a database with one column
        return row_of(item[0], paths)
    if len(item) != 2 or number_of(item[1]) is None:
        raise InputError(
            f"a {type(item).__name__} of {len(item)} is not a result",
            hint="return (id, score) pairs, the id first: list(zip(ids, scores))",
        )
    row = row_of(item[0], paths)
    return row if "score" in paths else row | {"score": number_of(item[1])}


def _named(item: Any, paths: Paths) -> dict[str, Any]:
    """Return what stands where --field says."""
    row: dict[str, Any] = {}
    for name in RESULT:
        path = paths.get(name)
        if path is None:
            continue
        value = at_path(item, path)
        if value is not ABSENT:
            row[name] = _strict(name, value)
        elif name == "id":
            raise InputError(
                f"there is nothing at {path}; it has {keys_of(item)}",
                hint="map the id: --field id=…",
            )
    return row


def _layers(item: Any) -> list[Layer]:
    """Return a result, what is filed below it, and what is filed below that."""
    item = _view(item)
    below = _below(item)
    return [item, *below, *(deeper for layer in below for deeper in _below(layer))]


def _below(layer: Layer) -> list[Layer]:
    held = (layer.get(name) for name in _BELOW)
    return [below for below in held if isinstance(below, Mapping)]


def _described(layers: list[Layer], paths: Paths) -> dict[str, Any]:
    """Find what a result calls by our names, or by names that others use."""
    item, *below = layers
    row: dict[str, Any] = {}
    for name in RESULT:
        if name in paths:
            continue
        value = item.get(name)
        if value is not ABSENT and value is not None:
            row[name] = _strict(name, value)
        elif (fits := _FITS.get(name)) is not None:
            found = _fitting([item], _NAMES[name], fits)
            found = _fitting(below, _NAMES_BELOW[name], fits) if found is ABSENT else found
            if found is not ABSENT:
                row[name] = found
    return row


def _view(part: Any) -> Layer:
    """Return what an object has of the names that are looked for; a method says nothing."""
    if isinstance(part, Mapping):
        return part
    own = getattr(part, "__dict__", None) or {}
    declared = _declared(type(part))  # type: ignore[arg-type]  # mypy: a class is not hashable
    names = _KNOWN if _makes_attributes(part) else _KNOWN & own.keys() | declared
    values = ((name, getattr(part, name, ABSENT)) for name in names)
    return {n: value for n, value in values if value is not ABSENT and not callable(value)}


@lru_cache(maxsize=256)
def _declared(kind: type) -> frozenset[str]:
    """Return which of the names looked for a class and those above it declare."""
    return frozenset(name for above in kind.__mro__ for name in vars(above)) & _KNOWN


def _makes_attributes(part: Any) -> bool:
    """Tell whether an object may have attributes that are declared nowhere.

    Asking a Pydantic object for what it does not have takes a microsecond or two, and results
    are asked for dozens of names: it makes up none unless it was given more than it declares.
    """
    if hasattr(type(part), "__pydantic_extra__"):
        return bool(part.__pydantic_extra__)
    return hasattr(type(part), "__getattr__")


def _fitting(layers: list[Layer], names: tuple[str, ...], fits: Callable[[Any], Any]) -> Any:
    """Return the first value under these names that is what we look for."""
    for layer in layers:
        for name in names:
            if name in layer and (value := fits(layer[name])) is not ABSENT:
                return value
    return ABSENT


def _place(layers: list[Layer], text: Any) -> dict[str, Any]:
    """Find where in its document a result stands; -1, which LangChain writes, is nowhere."""
    for layer in layers:
        start, end = _fit_place(layer.get("start")), _fit_place(layer.get("end"))
        if start is ABSENT or end is ABSENT:
            start = _fitting([layer], _STARTS, _fit_place)
            end = _fitting([layer], _ENDS, _fit_place)
        if start is not ABSENT:
            return _ended(start, text) if end is ABSENT else {"start": start, "end": end}
    return {}


def _ended(start: Any, text: Any) -> dict[str, Any]:
    """Return a place that ends where its text does; without a text it is none."""
    if not isinstance(start, int) or not isinstance(text, str):
        return {}
    return {"start": start, "end": start + len(text)}


def _strict(name: str, value: Any) -> Any:
    """Return a value as what it is called, or as it is, to be refused."""
    if value is None:
        return None
    if name in ("id", "doc_id"):
        return _id(value, name)
    found = _number(value) if name == "score" else _whole(value)
    return value if found is ABSENT or isinstance(value, str) else found


def _id(value: Any, field: str = "id") -> str:
    if _is_key(value):
        return str(value)
    whole = _whole(value)
    return text_id(value if whole is ABSENT else whole, field)


def _is_key(value: Any) -> bool:
    """Tell keys of databases that are no text, by their class, since they may not be imported."""
    return type(value).__name__ in ("UUID", "ObjectId")


def _whole(value: Any) -> Any:
    """Return a whole number of any library as an int."""
    if isinstance(value, bool):
        return ABSENT
    try:
        return operator.index(value)
    except TypeError:
        return ABSENT


def _number(value: Any) -> Any:
    """Return a number of any library as a float; text is none, nor is a table of one number."""
    if isinstance(value, (str, bytes, bool)) or getattr(value, "shape", ()) != ():
        return ABSENT
    try:
        return float(value)
    except (TypeError, ValueError):
        return ABSENT


def _fit_id(value: Any) -> Any:
    if isinstance(value, str):
        return value or ABSENT
    return str(value) if _is_key(value) or _whole(value) is not ABSENT else ABSENT


def _fit_text(value: Any) -> Any:
    return value if isinstance(value, str) else ABSENT


def _fit_place(value: Any) -> Any:
    whole = _whole(value)
    return whole if whole is not ABSENT and whole >= 0 else ABSENT


_FITS: dict[str, Callable[[Any], Any]] = {
    "id": _fit_id,
    "score": _number,
    "doc_id": _fit_id,
    "text": _fit_text,
}
