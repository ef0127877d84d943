"""The document of a history: the values of saved scores in order, and their changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from karat.errors import counted
from karat.evaluation.history import History, commit_label, series
from karat.report.cells import (
    BETTER,
    difference_cell,
    interval_text,
    measure_label,
    measure_named,
    p_cell,
    readable,
    significance_mark,
    table_label,
    value_cell,
)
from karat.report.document_model import (
    Cell,
    Column,
    Document,
    Headline,
    Section,
    Table,
    Tone,
)

_DETAILS = (
    "times are UTC",
    "change: since the row above, over the queries with a value in both; p: two-sided sign-flip "
    "randomization test, corrected by Holm's method over all changes of the run",
    "a change of judgments is not recognised; only added and removed queries are",
)


def history_document(history: History) -> Document:
    """Return one table per run and measure; the headline states the newest change."""
    parts = list(series(history.table))
    if len(parts) == 1:
        ((_, rows),) = parts
        headline = _headline(rows)
        if since_first := _since_first(rows, history.overall):
            headline = replace(headline, text=f"{headline.text}; {since_first}")
        sections = [Section([_table(rows, history.by)])]
    else:
        days = history.table["saved"].dt.date().sort().dt.to_string()
        saves = counted(history.table.select("run", "saved").n_unique(), "saved score")
        runs = counted(history.table["run"].n_unique(), "run")
        headline = Headline(f"{saves} of {runs}, {days[0]} to {days[-1]}")
        sections = [
            Section(
                [_table(rows, history.by, _since_first(rows, history.overall))],
                _headline(rows).text,
            )
            for _, rows in parts
        ]
    details = [*_DETAILS]
    if history.table["is_modified"].any():
        details.insert(1, "+ after a commit: tracked files differed from the commit")
    return Document("History", headline, sections, notes=history.notes, details=details)


def _headline(rows: pl.DataFrame) -> Headline:
    """State the newest value, and the change since the one before it."""
    newest = rows.row(-1, named=True)
    run, measure = newest["run"], newest["measure"]
    label = measure_label(measure)
    if newest["value"] is None:
        return Headline(f"{run}: no query has a value of {label}", "bad")
    statement = f"{run}: {label} {value_cell(readable(newest)).text}"
    if rows.height == 1:
        return Headline(f"{statement} on {newest['saved']:%Y-%m-%d}; nothing to compare with yet")
    before = rows.row(-2, named=True)
    return Headline(f"{statement}, {_change(newest, before)}", _tone(newest))


def _since_first(rows: pl.DataFrame, overall: pl.DataFrame) -> str:
    """State the change since the first value; empty if that is the one before the newest."""
    first = rows.row(0, named=True)
    is_same = (pl.col("run") == first["run"]) & (pl.col("measure") == first["measure"])
    total = overall.filter(is_same)
    return _change(total.row(0, named=True), first) if total.height else ""


def _change(row: dict[str, Any], since: dict[str, Any]) -> str:
    when = f"since {since['saved']:%Y-%m-%d %H:%M}"
    if row["difference"] is None:
        return f"change {when} unknown"
    if row["difference"] == 0:
        return f"unchanged {when}"
    change = difference_cell(_as_pair(row)).text
    p = p_cell(row["p"]).text
    if row["p"] is None:
        return f"{change} {when} (not tested)"
    sign = "" if significance_mark(_as_pair(row)) else "not significant, "
    return f"{change} {when} ({sign}p {p if p.startswith('<') else f'= {p}'})"


def _tone(row: dict[str, Any]) -> Tone:
    mark = significance_mark(_as_pair(row))
    if not mark:
        return "neutral"
    return "good" if mark == BETTER else "bad"


def _as_pair(row: dict[str, Any]) -> dict[str, Any]:
    """Return a change as a row of a comparison."""
    pair = {
        "measure": row["measure"],
        "difference": row["difference"],
        "low": row["difference_low"],
        "high": row["difference_high"],
        "p_corrected": row["p"],
    }
    return readable(pair)


def _table(rows: pl.DataFrame, by: str, note: str = "") -> Table:
    measure = rows["measure"][0]
    ends = rows.select(
        low=pl.min_horizontal("low", "value").min(), high=pl.max_horizontal("high", "value").max()
    )
    low, high = ends.row(0)
    has_commits = rows["commit"].is_not_null().any()
    has_scale = measure_named(measure).declaration.bounded and low is not None and low < high
    date = Column("saved", "left")
    commit = Column("commit", "left", priority=0 if by == "commit" else 2)
    names = [commit, date] if by == "commit" else [date, commit]
    columns = [
        *(names if has_commits else [date]),
        Column(table_label(measure)),
        *(
            [Column(f"{low:.2f} … {high:.2f}", "left", priority=3, scale=(low, high))]
            if has_scale
            else []
        ),
        Column("change"),
        Column("95% interval", priority=1),
        Column("p"),
        Column("queries", priority=4),
    ]
    lines = []
    for at, row in enumerate(rows.iter_rows(named=True)):
        shown = readable({**row, "method": "" if row["low"] is not None else None})
        value = value_cell(shown)
        time = Cell(f"{row['saved']:%Y-%m-%d %H:%M}")
        commit_cell = Cell(commit_label(row))
        labels = [commit_cell, time] if by == "commit" else [time, commit_cell]
        lines.append(
            [
                *(labels if has_commits else [time]),
                value,
                *([Cell("", drawing=value.drawing)] if has_scale else []),
                *(_change_cells(row) if at else [Cell(""), Cell(""), Cell("")]),
                Cell(f"{row['n']:,}"),
            ]
        )
    return Table(
        columns,
        lines,
        notes=[note] if note else [],
        n_labels=len(names) if has_commits else 1,
        may_omit_intervals=True,
    )


def _change_cells(row: dict[str, Any]) -> list[Cell]:
    pair = _as_pair(row)
    interval = interval_text(pair["low"], pair["high"], row["measure"], sign=True)
    return [difference_cell(pair), Cell(interval), p_cell(row["p"])]
