"""`history`: how a measure changed over saved scores, by date or by commit. Returns a `History`."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from karat import checks
from karat.errors import InputError, counted
from karat.evaluation.baselines import setting_differences
from karat.evaluation.comparison import select_measures
from karat.evaluation.provenance import Provenance
from karat.evaluation.remarks import main_measure
from karat.evaluation.result import Result, to_pandas
from karat.evaluation.saved_scores import holds_scores, saved_run_names, write_parquet
from karat.evaluation.scores import Scores
from karat.files import writing
from karat.measures import Measure
from karat.measures.name_parser import AnyMeasure, measure_list
from karat.stats.pairs import pair
from karat.stats.pairwise import compare_pairs
from karat.version import __version__

ORDERS = ("date", "commit")
LAST = 20
"""How many saved scores of each run are shown by default."""
_COMMIT_LENGTH = 9
_EXTENSIONS = (".parquet", ".json")
_TIME = pl.Datetime("ms", "UTC")
_CHANGE = ("difference", "low", "high", "p_corrected", "n")


@dataclass(frozen=True, eq=False, repr=False)
class History(Result):
    """The result of `history`: the values of saved scores in order, and their changes.

    Parameters
    ----------
    table : DataFrame
        One row per run, measure and saved scores, the oldest first: run, measure, saved, commit,
        committed, is_modified, file, value, low, high, n; then the change since the previous row
        of the same run and measure: difference, difference_low, difference_high, p (corrected for
        all changes of the run and measure) and n_compared (the queries with a value in both).
    overall : DataFrame
        One row per run and measure with at least three saved scores: the change from the first to
        the last of them, with the same columns.
    by : "date" or "commit"
        The order.
    notes : tuple of str, default ()
        What was left out, and changes of gold or settings.
    """

    table: pl.DataFrame
    overall: pl.DataFrame
    by: str
    notes: tuple[str, ...] = ()

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame."""
        return to_pandas(self.table)

    def as_dict(self) -> dict[str, Any]:
        """Return the table and the overall changes as plain data."""
        return {
            "karat": __version__,
            "by": self.by,
            "history": _plain_rows(self.table),
            "overall": _plain_rows(self.overall),
            "notes": list(self.notes),
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the history to a file.

        Parameters
        ----------
        path : path
            The file to write. Its extension decides the format: .json, .csv or .md.
        """
        self._write(path)

    def plot(self, *, measure: AnyMeasure | None = None) -> Any:
        """Return an Altair chart of the values with their intervals.

        Parameters
        ----------
        measure : str or Measure, default None
            Draw only this measure. None draws one chart per measure.
        """
        return self._plot("history", by=None, measure=measure)

    def __repr__(self) -> str:
        parts = []
        for (run, measure), rows in series(self.table):
            values = ", ".join(f"{value:.3f}" for value in rows["value"].drop_nulls().tail(3))
            parts.append(f"{run} {measure} … {values}" if rows.height > 3 else f"{run} {values}")
        return f"<History: {'; '.join(parts)}>"


def history(
    sources: Any,
    measures: Any = None,
    *,
    by: str = "date",
    runs: str | Sequence[str] | None = None,
    last: int = LAST,
) -> History:
    """Show how measures changed over saved scores.

    Each value is compared with the previous one of the same run, over the queries that both have
    a value for. The p-values are corrected with Holm's method over all changes that are tested.

    Parameters
    ----------
    sources : path, Scores or list of them
        Saved scores (.parquet or .json): files, glob patterns or folders.
    measures : str, Measure or list of them, default None
        What to show, such as "nDCG@10". None shows the main measure of the newest scores.
    by : "date" or "commit", default "date"
        "date" shows all saved scores in the order in which they were saved. "commit" shows the
        newest scores of each commit, in the order of the commits, without scores that were saved
        while tracked files differed from the commit.
    runs : str or list of str, default None
        Show only the runs with these names. None shows all.
    last : int, default 20
        How many saved scores of each run to show.

    Returns
    -------
    History
        The values with 95% confidence intervals, and the changes.

    Examples
    --------
    >>> import tempfile
    >>> from karat import evaluate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number, results in enumerate((["b", "a"], ["a", "b"])):
    ...         evaluate({"q1": ["a"]}, {"q1": results}, "RR").write(f"{folder}/{number}.parquet")
    ...     history(folder).table.select("run", "measure", "value", "difference").rows()
    [('run', 'RR', 0.5, None), ('run', 'RR', 1.0, 0.5)]
    """
    checks.one_of(by, "by", ORDERS)
    checks.integer(last, "last", least=1, hint=f"for example {LAST}")
    notes: list[str] = []
    entries = _ordered(_entries(sources, notes), by, notes)
    entries = _of_runs(entries, (runs,) if isinstance(runs, str) else runs)
    chosen = _measures(entries, measures)
    tables, overall = [], []
    for name in dict.fromkeys(entry.scores.name for entry in entries):
        of_run = [entry for entry in entries if entry.scores.name == name]
        if len(of_run) > last:
            notes.append(f"{name}: {counted(len(of_run) - last, 'older scores')} not shown")
        for measure in chosen:
            with_measure = [entry for entry in of_run[-last:] if measure.name in entry.scores]
            if missing := len(of_run[-last:]) - len(with_measure):
                notes.append(
                    f"{name}: {missing} of {missing + len(with_measure)} saved scores do "
                    f"not contain {measure.name}"
                )
            if with_measure:
                rows, change = _series(with_measure, measure, notes)
                tables.append(rows)
                overall += change
    return History(
        pl.DataFrame([row for rows in tables for row in rows], schema=_TABLE),
        pl.DataFrame(overall, schema=_OVERALL),
        by,
        tuple(dict.fromkeys(notes)),
    )


_CHANGES: dict[str, Any] = {
    "difference": pl.Float64,
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "p": pl.Float64,
    "n_compared": pl.Int64,
}
_TABLE: dict[str, Any] = {
    "run": pl.String,
    "measure": pl.String,
    "saved": _TIME,
    "commit": pl.String,
    "committed": _TIME,
    "is_modified": pl.Boolean,
    "file": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    **_CHANGES,
}
_OVERALL: dict[str, Any] = {"run": pl.String, "measure": pl.String, **_CHANGES}


@dataclass(frozen=True, eq=False)
class _Entry:
    """The scores of one run, and when they were saved."""

    scores: Scores
    provenance: Provenance

    @property
    def day(self) -> str:
        return f"{self.provenance.saved:%Y-%m-%d %H:%M}"


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise an error if scores cannot be saved in a folder; it is created later if missing."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise InputError(
            "expected a folder", path=path, field="history", hint="choose a folder for the scores"
        )


def save(scores: Sequence[Scores], folder: str | os.PathLike[str]) -> Path:
    """Write scores to a new file in a folder, which is created if it is missing."""
    provenance = scores[0].provenance
    name = f"{provenance.saved:%Y-%m-%dT%H-%M-%S-%f}"[:-3]  # milliseconds
    if provenance.commit is not None:
        name += f"-{provenance.commit[:_COMMIT_LENGTH]}"
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder cannot be created ({error.strerror})", path=folder, field="history"
        ) from error
    path = Path(folder, f"{name}.parquet")
    with writing(path) as file:
        write_parquet(scores, file)
    return path


def with_earlier(scores: Sequence[Scores], folder: str | os.PathLike[str]) -> History:
    """Return the history of some runs: earlier scores in a folder, then these."""
    earlier = [folder] if os.path.isdir(folder) else []
    names = [score.name for score in scores]
    measures = [main_measure(scores).name, *scores[0]]
    return history([*earlier, *scores], list(dict.fromkeys(measures)), runs=names)


def series(table: pl.DataFrame) -> Iterator[tuple[tuple[str, str], pl.DataFrame]]:
    """Yield the rows of each run and measure, in order."""
    parts = table.partition_by("run", "measure", as_dict=True, maintain_order=True)
    for (run, measure), rows in parts.items():
        yield (str(run), str(measure)), rows


def commit_label(row: dict[str, Any]) -> str:
    """Return the beginning of the commit of a row, with + if tracked files differed from it."""
    if row["commit"] is None:
        return "–"
    return str(row["commit"])[:_COMMIT_LENGTH] + ("+" if row["is_modified"] else "")


def _plain_rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    times = [name for name, kind in table.schema.items() if kind == _TIME]
    return table.with_columns(pl.col(times).dt.to_string("iso:strict")).to_dicts()


def _entries(sources: Any, notes: list[str]) -> list[_Entry]:
    """Read all runs of all sources."""
    is_list = isinstance(sources, Iterable) and not isinstance(sources, (str, os.PathLike, Scores))
    entries: dict[tuple[str, datetime], _Entry] = {}
    for source in sources if is_list else [sources]:
        if isinstance(source, Scores):
            found = [source]
        else:
            found = [score for path in _files(source, notes) for score in _read(path)]
        for scores in found:
            # The same scores may be saved as .parquet and as .json.
            entries.setdefault(
                (scores.name, scores.provenance.saved), _Entry(scores, scores.provenance)
            )
    if not entries:
        raise InputError(
            "no saved scores were found",
            path=sources if isinstance(sources, (str, os.PathLike)) else None,
            field="sources",
            hint="save scores with `karat eval --history FOLDER`, or with -o scores.parquet",
        )
    return list(entries.values())


def _read(path: str) -> Iterator[Scores]:
    """Yield the scores of all runs of a file."""
    if os.path.isfile(path) and not holds_scores(path):
        raise InputError(
            "not a file of saved scores",
            path=path,
            hint="save scores with `karat eval --history FOLDER`, or with -o scores.parquet",
        )
    for name in saved_run_names(path):
        scores = Scores.read(path, run=name)
        if scores.saved is None:
            raise InputError(
                "the file does not state when the scores were saved",
                path=path,
                hint="save them with `karat eval -o FILE` or `Scores.write`",
            )
        yield scores


def _files(source: Any, notes: list[str]) -> list[str]:
    """Return the files of saved scores that a path, a pattern or a folder names."""
    path = os.fspath(source)
    if os.path.isdir(path):
        files = sorted(
            entry.path
            for entry in os.scandir(path)
            if entry.is_file() and entry.name.lower().endswith(_EXTENSIONS)
        )
        others = [file for file in files if not holds_scores(file)]
        if others:
            notes.append(f"{counted(len(others), 'file')} without scores, such as {others[0]}")
        return [file for file in files if file not in others]
    if not os.path.exists(path) and glob.has_magic(path):
        return sorted(file for file in glob.glob(path) if os.path.isfile(file))
    return [path]


def _ordered(entries: Sequence[_Entry], by: str, notes: list[str]) -> list[_Entry]:
    """Return the entries from the oldest to the newest; by commit, one per run and commit."""
    in_time = sorted(entries, key=lambda entry: entry.provenance.saved)
    if by == "date":
        return in_time
    of_commits = [
        entry
        for entry in in_time
        if entry.provenance.commit is not None and not entry.provenance.is_modified
    ]
    if not of_commits:
        raise InputError(
            "no scores were saved in a commit without further changes",
            field="by",
            hint="show all of them by='date' (--by date)",
        )
    if others := len(in_time) - len(of_commits):
        saved = counted(others, "saved score")
        notes.append(f"{saved} without a commit, or with changes after it, not shown")
    newest = {(entry.scores.name, entry.provenance.commit): entry for entry in of_commits}
    if earlier := len(of_commits) - len(newest):
        notes.append(f"{counted(earlier, 'earlier save')} of the same commits not shown")
    return sorted(newest.values(), key=lambda entry: (_commit_time(entry), entry.provenance.saved))


def _commit_time(entry: _Entry) -> datetime:
    return entry.provenance.committed or entry.provenance.saved


def _of_runs(entries: list[_Entry], names: Sequence[str] | None) -> list[_Entry]:
    if names is None:
        return entries
    available = list(dict.fromkeys(entry.scores.name for entry in entries))
    for name in names:
        if name not in available:
            raise InputError(
                f"no saved scores of a run {name!r}",
                field="runs",
                hint=f"the runs are {', '.join(available)}",
            )
    return [entry for entry in entries if entry.scores.name in names]


def _measures(entries: Sequence[_Entry], measures: Any) -> list[Measure]:
    """Return the measures to show; at least one of the saved scores must contain each."""
    if measures is None:
        return [main_measure([entries[-1].scores])]
    parse = entries[-1].scores.parse  # a preset may define names of its own
    chosen = list(dict.fromkeys(map(parse, measure_list(measures))))
    for measure in chosen:
        if not any(measure.name in entry.scores for entry in entries):
            raise InputError(
                f"no saved scores contain {measure.name}",
                field="measures",
                hint=f"the newest contain {', '.join(entries[-1].scores.keys())}",
            )
    return chosen


def _series(
    entries: Sequence[_Entry], measure: Measure, notes: list[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of one run and measure, and the overall change if there is one."""
    scores = [select_measures(entry.scores, (measure,), None) for entry in entries]
    steps = [(at - 1, at) for at in range(1, len(entries))]
    pairs = [*steps, (0, len(entries) - 1)] if len(entries) > 2 else steps
    comparable = [
        (a, b)
        for a, b in pairs
        if _is_comparable(entries[a], entries[b], measure, notes if (a, b) in steps else [])
    ]
    changes: dict[tuple[int, int], dict[str, Any]] = {}
    if comparable:
        compared = compare_pairs(
            {str(at): one.table for at, one in enumerate(scores)},
            pairs=[(str(a), str(b)) for a, b in comparable],
        )
        for key, row in zip(comparable, compared.iter_rows(named=True), strict=True):
            changes[key] = dict(zip(_CHANGES, (row[name] for name in _CHANGE), strict=True))
    label = {"run": entries[0].scores.name, "measure": measure.name}
    rows = []
    for at, (entry, one) in enumerate(zip(entries, scores, strict=True)):
        (summary,) = one.summary().iter_rows(named=True)
        source = entry.provenance
        rows.append(
            {
                **label,
                "saved": source.saved,
                "commit": source.commit,
                "committed": source.committed,
                "is_modified": source.is_modified,
                "file": entry.scores.path,
                **{name: summary[name] for name in ("value", "low", "high", "n")},
                **changes.get((at - 1, at), {}),
            }
        )
    total = (0, len(entries) - 1)
    return rows, [label | changes[total]] if len(entries) > 2 and total in changes else []


def _is_comparable(before: _Entry, after: _Entry, measure: Measure, notes: list[str]) -> bool:
    """Return whether the change of a measure can be tested; add a note if gold changed."""
    start = f"{after.scores.name}, {after.day}:"
    different = list(setting_differences(before.scores, after.scores, [measure.name]))
    if different:
        notes.append(
            f"{start} other settings than before ({'; '.join(different)}), so the change is unknown"
        )
        return False
    old, new = (set(entry.scores.per_query["query_id"]) for entry in (before, after))
    if old != new:
        parts = [(len(new - old), "added"), (len(old - new), "removed")]
        changed = " and ".join(f"{counted(n, 'query')} {what}" for n, what in parts if n)
        notes.append(f"{start} {changed}; the change is over the queries that both have")
    try:
        both = pair(before.scores.table, after.scores.table, measure)
    except InputError as error:
        notes.append(f"{start} {error.problem}")
        return False
    return both.n > 0
