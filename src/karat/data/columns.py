"""Names of columns and keys: karat's own, and those of a file that an explicit mapping names."""

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
    "results",
    "latency_ms",
    "calls",
)
"""What a record of one query may have."""
ITEM_KEYS = ("item_id", "doc_id", "grade", "score", "start", "end", "text", "tokens")
"""What an item inside a record may have: a result, a judgment, a span."""
NAMES = (*QUERY_KEYS, *ITEM_KEYS, "rank", "title")
RELEVANT = ("relevant", "relevant_ids", "expected", "expected_ids", "judgments")
RESULTS = ("results", "retrieved", "retrieved_ids")
EVIDENCE_LISTS = ("ground_truth_contexts",)
_LISTS = (*RELEVANT, *RESULTS, "spans", "evidence", *EVIDENCE_LISTS)
_MOST_SHOWN = 20
Value = TypeVar("Value")


class Columns:
    """An explicit mapping of columns and keys, and what the files had of it.

    One mapping may be used for several files: each is read with the names that it has, and
    `check` refuses a name that none of them had.

    >>> Columns({"query": "question"}).keys({"question": "pay?", "topic": "billing"})
    {'query': 'pay?', 'topic': 'billing'}
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        """Take {ours: theirs}."""
        self.names = dict(names or {})
        for ours, theirs in self.names.items():
            _check(ours, theirs, self.names)
        self._theirs = {theirs: ours for ours, theirs in self.names.items()}
        self._found: set[str] = set()
        self._seen: dict[str, None] = {}

    @classmethod
    def of(cls, given: Columns | Mapping[str, str] | Iterable[str] | None) -> Columns:
        """Take a mapping, or words of the form OURS=THEIRS."""
        if isinstance(given, Columns):
            return given
        if given is None or isinstance(given, Mapping):
            return cls(given)
        names: dict[str, str] = {}
        for word in given:
            ours, equals, theirs = word.partition("=")
            if not equals:
                raise InputError(
                    f"{word!r} has no =",
                    field="--column",
                    hint="write OURS=THEIRS, such as --column query=question",
                )
            if ours in names:
                raise InputError(
                    f"{ours} is mapped twice", field="--column", hint="map each name once"
                )
            names[ours] = theirs
        return cls(names)

    def __bool__(self) -> bool:
        return bool(self.names)

    def theirs(self, ours: str) -> str:
        """Return what the files call one of karat's names."""
        return self.names.get(ours, ours)

    def in_their_names(self, read: Mapping[str, str]) -> dict[str, str]:
        """Return what was read as what, {ours: theirs}, with the names that the file has."""
        return {ours: self.theirs(read[ours]) for ours in NAMES if ours in read}

    def table(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return a table with karat's names; a column that has one by chance makes room."""
        return table.rename(self._renamed(table.columns, NAMES)) if self.names else table

    def keys(self, record: Mapping[str, Value], known: Iterable[str] = NAMES) -> dict[str, Value]:
        """Return a record with karat's names for its keys."""
        renamed = self._renamed(record, known)
        return {renamed.get(key, key): value for key, value in record.items()}

    def record(self, record: Any) -> Any:
        """Return the record of one query with karat's names, also for the items in its lists."""
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
        """Return names of columns or keys as karat calls them, to recognise a format by them."""
        return {self._theirs.get(name, name) for name in names}

    def check(self) -> None:
        """Refuse a name that none of the files had."""
        for ours, theirs in self._missing():
            near = get_close_matches(theirs, self._seen, n=1)
            shown = list(self._seen)[:_MOST_SHOWN]
            more = ", …" if len(self._seen) > len(shown) else ""
            raise InputError(
                f"no column or key is called {theirs!r}; "
                f"found: {', '.join(shown) + more if shown else 'none'}",
                field=f"column {ours}={theirs}",
                hint=f"did you mean {ours}={near[0]}?" if near else "write OURS=THEIRS",
            )

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Check the names after all files were read; an error before that mentions them."""
        try:
            yield
        except InputError as error:
            unused = ", ".join(f"{ours}={theirs}" for ours, theirs in self._missing())
            if unused:
                notes = [error.hint or "", f"not found so far: --column {unused}"]
                error.hint = "; ".join(filter(None, notes))
            raise
        self.check()

    def _missing(self) -> list[tuple[str, str]]:
        return [names for names in self.names.items() if names[1] not in self._found]

    def _renamed(self, names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
        """Return {theirs: ours} for the names that are mapped."""
        given = list(names)
        self._seen.update(dict.fromkeys(given))
        wanted = {self.names[ours]: ours for ours in known if ours in self.names}
        renamed = {theirs: ours for theirs, ours in wanted.items() if theirs in given}
        self._found.update(renamed)
        for ours in list(renamed.values()):
            if ours in given and ours not in renamed:
                renamed[ours] = _free_name(ours, {*given, *renamed.values()})
        return renamed


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_field"
    return name


def _check(ours: str, theirs: str, names: Mapping[str, str]) -> None:
    field = f"column {ours}={theirs}"
    if ours not in NAMES:
        near = get_close_matches(ours, NAMES, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise InputError(
            f"{ours!r} is not one of karat's names",
            field=field,
            hint=f"{meant}known: {', '.join(NAMES)}",
        )
    if not theirs:
        raise InputError(
            "the name of the column is missing", field=field, hint=f"write {ours}=THEIRS"
        )
    if list(names.values()).count(theirs) > 1:
        raise InputError(
            f"{theirs!r} is mapped to two names", field=field, hint="map each column once"
        )
