"""Tables as people read them: heads and cells of text; nothing is rounded before this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from karat.format import format_number
from karat.measures import Declaration, Measure, parse
from karat.report.sheet import Sheet

BETTER, WORSE = "▲", "▼"
"""What marks a significant difference."""


def format_value(value: float | object | None, measure: str | None = None) -> str:
    """Show four decimals, whole numbers whole, and a dash where there is no value."""
    if measure is None or not isinstance(value, float):
        return format_number(value)
    return measure_named(measure).format(value)


def format_difference(value: float | None, measure: str) -> str:
    """Show a difference between two values of a measure, with its sign.

    >>> signed(0.25, "RR"), signed(-0.00123, "cost.mean"), signed(0.0, "RR"), signed(None, "RR")
    ('+0.2500', '-0.00123', '0.0000', '–')
    """
    if value is None:
        return "–"
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + format_value(abs(value), measure)


def measure_label(measure: str, sheet: Sheet | None = None) -> str:
    """Return a measure as a table calls it: with its unit, where it has one.

    With a sheet, by the name that its preset has for the measure.
    """
    unit, name = declaration_of(measure).unit, measure if sheet is None else sheet.label(measure)
    return name if unit is None else f"{name} [{unit}]"


def format_with_interval(row: Mapping[str, Any]) -> str:
    """Show a value of a summary, and between what it lies where that is known."""
    value, between = format_value(row["value"], row["measure"]), format_interval(row)
    return f"{value} {between}" if between else value


def format_interval(row: Mapping[str, Any]) -> str:
    """Show the interval of a value: a dash where it has none, nothing where none was asked for.

    The ends are shown with a digit less than the value, since they are less certain.
    """
    measure = row["measure"]
    if "method" not in row or row["value"] is None:
        return ""
    if row["method"] is None:
        return "–"
    shown = declaration_of(measure).unit is not None or declaration_of(measure).whole
    ends = [
        format_value(end, measure) if shown or end is None else f"{end:.3f}"
        for end in (row["low"], row["high"])
    ]
    return f"[{', '.join(ends)}]"


def table_heads(sheets: Sequence[Sheet], names: Sequence[str]) -> list[str]:
    """Return the heads of `table_rows`, with the names of the runs as they are shown."""
    medians: list[str] = []
    if sheets[0].show_medians:
        medians = ["median"] if len(sheets) == 1 else [f"median of {name}" for name in names]
    return ["measure", *names, *medians, "n"]


def table_rows(sheets: Sequence[Sheet]) -> list[list[str]]:
    """Return one row per measure: its name, the value of each run with its interval, and n.

    Medians, where they were asked for, come between the values and n.
    """
    rows = []
    for same in zip(*(sheet.summary.iter_rows(named=True) for sheet in sheets), strict=True):
        measure = same[0]["measure"]
        values = [format_with_interval(row) for row in same]
        if sheets[0].show_medians:
            values += [format_value(row["median"], measure) for row in same]
        rows.append(
            [measure_label(measure, sheets[0]), *values, format_counts(row["n"] for row in same)]
        )
    no_medians = [""] * (len(sheets) if sheets[0].show_medians else 0)
    unjudged = unjudged_rows(sheets).items()
    return rows + [[name, *map(format_value, values), *no_medians, ""] for name, values in unjudged]


def unjudged_rows(sheets: Sequence[Sheet]) -> dict[str, list[float | None]]:
    """Return rows on items that nobody judged, where there are any: how many, and what they hide.

    A measure is `at most` what it would be if each of them were relevant.
    """
    judged: dict[int, list[float | None]] = {}
    bounds: dict[str, list[float | None]] = {}
    for same in zip(*(sheet.summary.iter_rows(named=True) for sheet in sheets), strict=True):
        name = same[0]["measure"]
        cutoff = parse(name).cutoff
        if any(row["judged"] is not None and row["judged"] < 1 for row in same):
            assert isinstance(cutoff, int)
            judged[cutoff] = [row["judged"] for row in same]
        most = [row["bound_high"] for row in same]
        values = [format_value(row["value"]) for row in same]
        if any(bound is not None for bound in most) and list(map(format_value, most)) != values:
            bounds[f"{name} at most"] = most
    shares = {f"Judged@{k}": values for k, values in sorted(judged.items())}
    asked = set(sheets[0].summary["measure"])
    return {name: values for name, values in (shares | bounds).items() if name not in asked}


def format_counts(sizes: Iterable[int]) -> str:
    """Show how many queries values rest on: one number, or from the fewest to the most."""
    least, most = min(known := list(sizes)), max(known)
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


Table = tuple[list[str], list[list[str]]]


def group_table(sheet: Sheet) -> Table | None:
    """Return heads and one row per group, if there are groups."""
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
    """Return heads and one row per query, if queries are shown."""
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
    """Return the measure of a canonical name."""
    return parse(name)


def declaration_of(measure: str) -> Declaration:
    """Return what is declared of a measure."""
    return measure_named(measure).declaration
