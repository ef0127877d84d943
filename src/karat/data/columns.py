"""Column and key names: karat's own names, and explicit mappings to the names in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from karat.errors import InputError

if TYPE_CHECKING:
    import polars as pl

QUERY_KEYS = (
    "query_id",
    "query",
    "relevant",
    "any_of",
    "spans",
    "evidence",
    "answerable",
    "results",
    "latency_ms",
    "calls",
)
"""Keys of a record of one query."""
ITEM_KEYS = ("item_id", "doc_id", "grade", "score", "start", "end", "text", "tokens")
"""Keys of an item inside a record: a result, a judgment or a span."""
NAMES = (*QUERY_KEYS, *ITEM_KEYS, "rank", "title")
RELEVANT = ("relevant", "relevant_ids", "expected", "expected_ids", "judgments")
RESULTS = ("results", "retrieved", "retrieved_ids")
EVIDENCE_LISTS = ("ground_truth_contexts",)
_LISTS = (*RELEVANT, *RESULTS, "spans", "evidence", *EVIDENCE_LISTS)
_MAX_LISTED_NAMES = 20
Value = TypeVar("Value")


class Columns:
    """An explicit mapping of columns and keys, which remembers the names that files contained.

    One mapping may be used for several files. A file need not contain all mapped names, but
    `check` raises an error for a name that was in none of the files.

    >>> Columns({"query": "question"}).keys({"question": "pay?", "topic": "billing"})
    {'query': 'pay?', 'topic': 'billing'}
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.names = dict(names or {})
        for ours, theirs in self.names.items():
            _check(ours, theirs, self.names)
        self._theirs = {theirs: ours for ours, theirs in self.names.items()}
        self._found: set[str] = set()
        self._seen: dict[str, None] = {}

    @classmethod
    def of(cls, columns: Columns | Mapping[str, str] | Iterable[str] | None) -> Columns:
        """Return a mapping from {ours: theirs}, or from words of the form OURS=THEIRS."""
        if isinstance(columns, Columns):
            return columns
        if columns is None or isinstance(columns, Mapping):
            return cls(columns)
        names: dict[str, str] = {}
        for word in columns:
            ours, equals, theirs = word.partition("=")
            if not equals:
                raise InputError(
                    f"expected OURS=THEIRS, got {word!r}",
                    field="--column",
                    hint="for example: --column query=question",
                )
            if ours in names:
                raise InputError(
                    f"{ours!r} is mapped twice", field="--column", hint="map each name only once"
                )
            names[ours] = theirs
        return cls(names)

    def __bool__(self) -> bool:
        return bool(self.names)

    def theirs(self, ours: str) -> str:
        """Return the name in the files for one of karat's names."""
        return self.names.get(ours, ours)

    def in_their_names(self, read: Mapping[str, str]) -> dict[str, str]:
        """Return {ours: name in the file} for the columns and keys that were read."""
        return {ours: self.theirs(read[ours]) for ours in NAMES if ours in read}

    def table(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the table with its columns renamed to karat's names.

        An unmapped column that already has one of these names is renamed to avoid a clash.
        """
        return table.rename(self._renamed(table.columns, NAMES)) if self.names else table

    def renamed(self, names: Iterable[str]) -> list[str]:
        """Return the columns of a table as `table` names them."""
        names = list(names)
        mapped = self._renamed(names, NAMES)
        return [mapped.get(name, name) for name in names]

    def keys(self, record: Mapping[str, Value], known: Iterable[str] = NAMES) -> dict[str, Value]:
        """Return a record with karat's names for its keys."""
        renamed = self._renamed(record, known)
        return {renamed.get(key, key): value for key, value in record.items()}

    def record(self, record: Any) -> Any:
        """Return the record of one query, with karat's names for its keys.

        The keys of the items in its lists are renamed, too.
        """
        if not self.names or not isinstance(record, Mapping):
            return record
        renamed = self.keys(record, QUERY_KEYS)
        for name in _LISTS:
            items = renamed.get(name)
            if isinstance(items, list):
                renamed[name] = [
                    self.keys(item, ITEM_KEYS) if isinstance(item, Mapping) else item
                    for item in items
                ]
        return renamed

    def rename_names(self, names: Iterable[str]) -> set[str]:
        """Return column or key names with karat's names for mapped ones, to detect a format."""
        return {self._theirs.get(name, name) for name in names}

    def check(self) -> None:
        """Raise an error if a mapped name was in none of the files."""
        for ours, theirs in self._missing():
            similar = get_close_matches(theirs, self._seen, n=1)
            raise InputError(
                f"column or key {theirs!r} not found; the input has: {self._format_seen()}",
                field=f"column {ours}={theirs}",
                hint=f"did you mean {ours}={similar[0]}?"
                if similar
                else f"map an existing column or key: {ours}=NAME",
            )

    def _format_seen(self) -> str:
        names = list(self._seen)[:_MAX_LISTED_NAMES]
        if len(self._seen) > len(names):
            names.append("…")
        return ", ".join(names) or "none"

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Check the names after all files are read; name unused mappings in earlier errors."""
        try:
            yield
        except InputError as error:
            missing = [f"{theirs!r} (mapped to {ours})" for ours, theirs in self._missing()]
            if missing:
                not_found = f"the input read so far has no column or key {' or '.join(missing)}"
                hints = [not_found, error.hint or ""]
                error.hint = "; ".join(filter(None, hints))
            raise
        self.check()

    def _missing(self) -> list[tuple[str, str]]:
        return [names for names in self.names.items() if names[1] not in self._found]

    def _renamed(self, names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
        """Return {theirs: ours} for the names that are mapped."""
        names = list(names)
        self._seen.update(dict.fromkeys(names))
        mapped = {self.names[ours]: ours for ours in known if ours in self.names}
        renamed = {theirs: ours for theirs, ours in mapped.items() if theirs in names}
        self._found.update(renamed)
        for ours in list(renamed.values()):
            if ours in names and ours not in renamed:
                renamed[ours] = _unused_name(ours, {*names, *renamed.values()})
        return renamed


def _unused_name(name: str, used: set[str]) -> str:
    while name in used:
        name += "_field"
    return name


def _check(ours: str, theirs: str, names: Mapping[str, str]) -> None:
    field = f"column {ours}={theirs}"
    if ours not in NAMES:
        similar = get_close_matches(ours, NAMES, n=1)
        suggestion = f"did you mean {similar[0]}? " if similar else ""
        raise InputError(
            f"unknown name {ours!r}",
            field=field,
            hint=f"{suggestion}available names: {', '.join(NAMES)}",
        )
    if not theirs:
        raise InputError(
            "the name in the file is missing", field=field, hint=f"write {ours}=THEIRS"
        )
    if list(names.values()).count(theirs) > 1:
        raise InputError(
            f"{theirs!r} is mapped to two names", field=field, hint="map each column only once"
        )
