"""One result as a retriever returned it, in karat's words, whoever made the retriever.

Our own names are strict: what stands there must be what it is called. Names that others use are
taken only where what stands there fits, since the same word may mean something else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from karat.data.frames import DOC_ID
from karat.data.lists import text_id
from karat.errors import InputError
from karat.live.adapters.fields import ABSENT, RESULT, Fields, at_path

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
Layer = Mapping[str, Any]


def row_of(item: Any, fields: Fields) -> dict[str, Any]:
    """Return what a result says under our names; what it does not say is left out."""
    if isinstance(item, (tuple, list)) and not _has_names(item):
        return _pair(item, fields)
    if isinstance(item, (str, int)) or _whole(item) is not ABSENT or _is_key(item):
        return _named(item, fields) or {"id": _id(item)}
    if item is None or isinstance(item, (bytes, float)) or _number(item) is not ABSENT:
        raise InputError(f"{item!r} is no result", hint="ids are text or whole numbers")
    return _object_row(as_mapping(item), fields)


def _object_row(held: Any, fields: Fields) -> dict[str, Any]:
    node = (held if isinstance(held, Mapping) else getattr(held, "__dict__", {})).get("node")
    is_node = isinstance(node, Mapping) or hasattr(node, "metadata")
    described: Any = node if is_node else held
    layers = _layers(described)
    row = _described(layers, fields)
    if is_node:  # LlamaIndex keeps the score beside the node that it belongs to
        row |= _described([{"score": at_path(held, "score")}], fields)
    if "text" not in row and hasattr(described, "get_content"):  # not every node has a .text
        row["text"] = described.get_content()
    row |= _named(held, fields)
    if "doc_id" in row and row.keys().isdisjoint(("start", "end")):
        row |= _place(layers, row.get("text"))
    elif "start" in fields.paths and "end" not in row:
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


def _pair(item: tuple[Any, ...] | list[Any], fields: Fields) -> dict[str, Any]:
    if len(item) == 1:  # a row of a database with one column
        return row_of(item[0], fields)
    if len(item) != 2 or number_of(item[1]) is None:
        raise InputError(
            f"a {type(item).__name__} of {len(item)} is no result",
            hint="return (id, score) pairs, the id first: list(zip(ids, scores))",
        )
    row = row_of(item[0], fields)
    return row if "score" in fields.paths else row | {"score": number_of(item[1])}


def _named(item: Any, fields: Fields) -> dict[str, Any]:
    """Return what stands where --field says."""
    row: dict[str, Any] = {}
    for name in RESULT:
        path = fields.paths.get(name)
        if path is None:
            continue
        value = at_path(item, path)
        if value is not ABSENT:
            row[name] = _strict(name, value)
        elif name == "id":
            raise InputError(
                f"there is nothing at {path}; it has {keys_of(item)}",
                hint="say where the id stands: --field id=…",
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


def _described(layers: list[Layer], fields: Fields) -> dict[str, Any]:
    """Find what a result calls by our names, or by names that others use."""
    item, *below = layers
    row: dict[str, Any] = {}
    for name in RESULT:
        if name in fields.paths:
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
