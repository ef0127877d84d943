"""Tables of scores as text: column heads and formatted cells. Values are rounded only here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from karat.format import format_number
from karat.measures import Declaration, Measure, parse
from karat.report.sheet import Sheet

BETTER, WORSE = "▲", "▼"
"""Marks of significant differences."""


def format_value(value: float | object | None, measure: str | None = None) -> str:
    """Return a value with four decimals, counts as integers, and a dash for None."""
    if measure is None or not isinstance(value, float):
        return format_number(value)
    return measure_named(measure).format(value)


def format_difference(value: float | None, measure: str) -> str:
    """Return a difference between two values of a measure, with its sign.

    >>> format_difference(0.25, "RR"), format_difference(-0.00123, "cost.mean")
    ('+0.2500', '-0.00123')
    >>> format_difference(0.0, "RR"), format_difference(None, "RR")
    ('0.0000', '–')
    """
    if value is None:
        return "–"
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + format_value(abs(value), measure)


def measure_label(measure: str, sheet: Sheet | None = None) -> str:
    """Return the name of a measure in tables, with its unit if it has one.

    With a sheet, the name is the one that the preset of the scores defines.
    """
    unit, name = declaration_of(measure).unit, measure if sheet is None else sheet.label(measure)
    return name if unit is None else f"{name} [{unit}]"


def format_with_interval(row: Mapping[str, Any]) -> str:
    """Return a value of a summary, followed by its interval if there is one."""
    value, interval = format_value(row["value"], row["measure"]), format_interval(row)
    return f"{value} {interval}" if interval else value


def format_interval(row: Mapping[str, Any]) -> str:
    """Return the interval of a value: a dash if it has none, "" if none was requested.

    The ends have one digit less than the value, since they are less certain.
    """
    measure = row["measure"]
    if "method" not in row or row["value"] is None:
        return ""
    if row["method"] is None:
        return "–"
    declaration = declaration_of(measure)
    is_share = declaration.unit is None and not declaration.whole
    ends = [
        f"{end:.3f}" if is_share and end is not None else format_value(end, measure)
        for end in (row["low"], row["high"])
    ]
    return f"[{', '.join(ends)}]"


def table_heads(sheets: Sequence[Sheet], names: Sequence[str]) -> list[str]:
    """Return the column heads of `table_rows`, with the given names of the runs."""
    medians: list[str] = []
    if sheets[0].show_medians:
        medians = ["median"] if len(sheets) == 1 else [f"median of {name}" for name in names]
    return ["measure", *names, *medians, "n"]


def table_rows(sheets: Sequence[Sheet]) -> list[list[str]]:
    """Return one row per measure: its name, the value of each run with its interval, and n.

    Medians, if requested, are between the values and n.
    """
    rows = []
    for run_rows in _rows_by_measure(sheets):
        measure = run_rows[0]["measure"]
        values = [format_with_interval(row) for row in run_rows]
        if sheets[0].show_medians:
            values += [format_value(row["median"], measure) for row in run_rows]
        rows.append(
            [
                measure_label(measure, sheets[0]),
                *values,
                format_counts(row["n"] for row in run_rows),
            ]
        )
    no_medians = [""] * (len(sheets) if sheets[0].show_medians else 0)
    unjudged = unjudged_rows(sheets).items()
    return rows + [[name, *map(format_value, values), *no_medians, ""] for name, values in unjudged]


def unjudged_rows(sheets: Sequence[Sheet]) -> dict[str, list[float | None]]:
    """Return rows about unjudged items, if there are any, by label.

    `Judged@k` is the share of judged items; `NAME at most` is the value that a measure would have
    if every unjudged item were relevant. Measures that were requested anyway are not repeated.
    """
    judged: dict[int, list[float | None]] = {}
    bounds: dict[str, list[float | None]] = {}
    for run_rows in _rows_by_measure(sheets):
        name = run_rows[0]["measure"]
        cutoff = parse(name).cutoff
        if any(row["judged"] is not None and row["judged"] < 1 for row in run_rows):
            assert isinstance(cutoff, int)
            judged[cutoff] = [row["judged"] for row in run_rows]
        upper_bounds = [row["bound_high"] for row in run_rows]
        values = [format_value(row["value"]) for row in run_rows]
        has_bounds = any(bound is not None for bound in upper_bounds)
        if has_bounds and list(map(format_value, upper_bounds)) != values:
            bounds[f"{name} at most"] = upper_bounds
    shares = {f"Judged@{k}": values for k, values in sorted(judged.items())}
    requested = set(sheets[0].summary["measure"])
    return {name: values for name, values in (shares | bounds).items() if name not in requested}


def _rows_by_measure(sheets: Sequence[Sheet]) -> Iterator[tuple[dict[str, Any], ...]]:
    """Yield the rows of each measure in the summaries of all runs."""
    yield from zip(*(sheet.summary.iter_rows(named=True) for sheet in sheets), strict=True)


def format_counts(sizes: Iterable[int]) -> str:
    """Return numbers of queries as one number, or as a range if they differ."""
    numbers = list(sizes)
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


Table = tuple[list[str], list[list[str]]]


def group_table(sheet: Sheet) -> Table | None:
    """Return the column heads and one row per group, or None if there are no groups."""
    if sheet.groups is None:
        return None
    fields = sheet.group_fields
    rows = []
    for key, part in sheet.group_parts:
        values = [format_with_interval(row) for row in part.iter_rows(named=True)]
        labels = ["–" if label is None else str(label) for label in key]
        mark = "*" if part["small"].any() else ""
        rows.append([*labels, *values, format_counts(part["n"]) + mark])
    measures = [measure_label(measure, sheet) for measure in sheet.summary["measure"]]
    return [*fields, *measures, "n"], rows


def query_table(sheet: Sheet) -> Table | None:
    """Return the column heads and one row per query, or None if queries are not shown."""
    if not sheet.show_queries:
        return None
    measures = sheet.summary["measure"].to_list()
    rows = [
        [query, *(format_value(v, m) for m, v in zip(measures, values, strict=True))]
        for query, *values in sheet.scores.per_query.iter_rows()
    ]
    return ["query_id", *(measure_label(measure, sheet) for measure in measures)], rows


@cache
def measure_named(name: str) -> Measure:
    """Return the measure with a canonical name."""
    return parse(name)


def declaration_of(measure: str) -> Declaration:
    """Return the declaration of a measure."""
    return measure_named(measure).declaration
