"""The source of a run, which reads the run on demand and caches it if there is room."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from karat.data.data_file import path_of
from karat.data.run import Run

CACHE_BYTES = 256 * 2**20
"""The memory limit of all cached runs in the process.

A run is scored first, and its lists are needed again later, by a report or an explanation. Runs
that fit into the limit are cached in between. Other runs are read again, so that memory does not
grow with the number and the size of the runs.
"""
_BYTES_PER_DICT_RESULT = 64  # of the table that is built from the dicts

_cached_runs: WeakKeyDictionary[RunSource, Run] = WeakKeyDictionary()
_cache_lock = Lock()


class RunSource:
    """The source of a run: a path, a glob pattern, a table, a dict, records or a `Run`.

    >>> source = RunSource({"q1": ["a", "b"], "q2": ["c"]})
    >>> source.read().results.height, [batch.results.height for batch in source.batches(2)]
    (3, [2, 1])
    """

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    def path(self) -> str | None:
        """The path of the run, or None if the source is not a path."""
        return path_of(self.data)

    @property
    def is_kept(self) -> bool:
        """Whether the run is in memory, so that `read` is fast."""
        return isinstance(self.data, Run) or self in _cached_runs

    def read(self) -> Run:
        """Return the whole run, from the cache if possible."""
        if isinstance(self.data, Run):
            return self.data
        run = _cached_runs.get(self)
        if run is None:
            run = Run.open(self.data)
            with _cache_lock:
                if _size(run) + sum(map(_size, _cached_runs.values())) <= CACHE_BYTES:
                    _cached_runs[self] = run
        return run

    def batches(self, rows: int | None = None) -> Iterator[Run]:
        """Yield the run in batches of whole queries.

        A batch has at most `rows` results, unless a single query has more. Without `rows`, there
        is one batch. The scores do not depend on the batches.
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
    """Return the memory that a run uses in addition to its source, in bytes."""
    if run.lists is not None:
        return _BYTES_PER_DICT_RESULT * int(run.lists.lengths.sum())
    tables = (run.results, run.timings, run.calls)
    size = sum(int(table.estimated_size()) for table in tables if table is not None)
    return size if run.candidates is None else size + _size(run.candidates)
