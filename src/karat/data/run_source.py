"""Where a run comes from: how it was given, and the only place that reads it, once or again."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from karat.data.data_file import path_of
from karat.data.run import Run

CACHE_BYTES = 256 * 2**20
"""How much memory the runs may take that are kept after they were read, in the whole process.

A run is scored first and its lists are shown later, by a page or an explanation. Runs are kept in
between as long as there is room; a run that is larger, or comes when the room is taken, is read
again instead, so that memory does not grow with the number and the size of the runs.
"""
_BYTES_PER_DICT_RESULT = 64  # bytes of a result once the table of a run from dicts is made

_cached_runs: WeakKeyDictionary[RunSource, Run] = WeakKeyDictionary()
_cache_lock = Lock()


class RunSource:
    """A run as it was given: path, glob, table, dict, records, or a `Run`.

    >>> source = RunSource({"q1": ["a", "b"], "q2": ["c"]})
    >>> source.read().results.height, [batch.results.height for batch in source.batches(2)]
    (3, [2, 1])
    """

    def __init__(self, given: Any) -> None:
        self.given = given

    @property
    def path(self) -> str | None:
        """The path that the run was given by, if it was."""
        return path_of(self.given)

    @property
    def is_kept(self) -> bool:
        """Whether the run is in memory, so that it need not be read again."""
        return isinstance(self.given, Run) or self in _cached_runs

    def read(self) -> Run:
        """Return the whole run, which is read now unless it was kept."""
        if isinstance(self.given, Run):
            return self.given
        run = _cached_runs.get(self)
        if run is None:
            run = Run.open(self.given)
            with _cache_lock:
                if _size(run) + sum(map(_size, _cached_runs.values())) <= CACHE_BYTES:
                    _cached_runs[self] = run
        return run

    def batches(self, rows: int | None = None) -> Iterator[Run]:
        """Yield the run in parts of whole queries, each of so many results or of one query.

        Without `rows`, all of it is one batch. Any partition of the queries gives the same scores.
        """
        run = self.read()
        query_ids = run.query_ids.to_list()
        if rows is None or len(query_ids) < 2:
            yield run
            return
        segments = run.segments
        length = dict(zip(segments.query_ids, segments.lengths.tolist(), strict=True))
        ends = np.cumsum([length.get(query, 0) for query in query_ids])
        first = 0
        while first < len(query_ids):
            before = ends[first - 1] if first else 0
            stop = max(int(np.searchsorted(ends, before + rows, "right")), first + 1)
            yield run.only(query_ids[first:stop])
            first = stop


def _size(run: Run) -> int:
    """Return how many bytes a run takes beside what it was given as."""
    if run.lists is not None:
        return _BYTES_PER_DICT_RESULT * int(run.lists.lengths.sum())
    tables = (run.results, run.timings, run.calls)
    return sum(int(table.estimated_size()) for table in tables if table is not None)
