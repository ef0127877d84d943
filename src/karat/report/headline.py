"""What the numbers say, in one line: which run is best, and whether that is real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.report.comparison import ComparisonSheet, Row, mark
from karat.report.comparison_tables import HEADS, probability
from karat.report.sheet import Sheet
from karat.report.tables import BETTER, WORSE, best, better, signed, with_interval

_NAMED = 3


def of_scores(sheets: Sequence[Sheet]) -> str:
    """Say which run is best by the first measure; of runs that were only scored, no more."""
    rows = {sheet.name: sheet.summary.row(0, named=True) for sheet in sheets}
    measure = sheets[0].summary["measure"][0]
    names = _leading(measure, {name: row["value"] for name, row in rows.items()})
    if not names:
        return f"no query has a value of {measure}"
    shown = with_interval(rows[names[0]])
    if len(sheets) == 1:
        return f"{names[0]}: {measure} {shown}"
    if len(names) > 1:
        return f"{_listed(names)} are best by {measure}: {shown}"
    return f"{names[0]} is best by {measure}: {shown}; karat compare tells whether that is real"


def of_comparison(sheet: ComparisonSheet) -> str:
    """Say which run is best by the first measure, and on which others its lead is real."""
    measure = sheet.measures[0]
    values = {run.name: run.summary["value"][0] for run in sheet.runs}
    names = _leading(measure, values)
    if not names:
        return f"no query has a value of {measure}"
    if len(names) > 1:
        return f"{_listed(names)} are best by {measure}, with the same value"
    leader = names[0]
    said = f"{leader} is best by {measure}: its lead"
    rivals = _rivals(sheet, measure, leader)
    unsure = {name: row for name, row in rivals.items() if not _leads(leader, row)}
    if not unsure and len(rivals) > 1:
        return f"{said} is real on each of the {len(rivals)} others"
    others = {name: values[name] for name in unsure or rivals}
    nearest = (_leading(measure, others) or list(others))[0]
    said += f" on {nearest}{_lead(sheet, leader, rivals[nearest])}"
    if len(rivals) == 1:
        return said
    sure = len(rivals) - len(unsure) or "none"
    return f"{said}; it is real on {sure} of {len(rivals)} others"


def pairs_of_best(sheet: ComparisonSheet) -> list[tuple[str, str]]:
    """Return the pairs of the run that is best by the first measure; all, where none is."""
    values = {run.name: run.summary["value"][0] for run in sheet.runs}
    leaders = _leading(sheet.measures[0], values)
    return [pair for pair in sheet.names if not leaders or leaders[0] in pair]


def _rivals(sheet: ComparisonSheet, measure: str, leader: str) -> dict[str, Row]:
    """Return the pairs of a run by the name of the other one; with a baseline, that alone."""
    rows = sheet.pairs.filter(measure=measure).to_dicts()
    return {
        row["a"] if row["b"] == leader else row["b"]: row
        for row in rows
        if leader in (row["a"], row["b"])
    }


def _leads(leader: str, row: Row) -> bool:
    """Tell whether a run is shown to be better than the other one of a pair."""
    return mark(row) == (BETTER if leader == row["b"] else WORSE)


def _lead(sheet: ComparisonSheet, leader: str, row: Row) -> str:
    """Say how far a run is ahead in a pair, and how sure that is."""
    measure, difference, p = row["measure"], row["difference"], row["p_corrected"]
    if difference is None or p is None:
        return " was not tested"
    ahead = difference if leader == row["b"] else 0.0 - difference
    if not better(measure, ahead, 0.0):  # the values are over other queries than the pair
        return " does not hold on the queries that both have a value for"
    sure = "is real" if _leads(leader, row) else "may be chance"
    named = HEADS[sheet.choices.correction] if sheet.corrects(sheet.pairs) else "p"
    return f", {signed(ahead, measure)}, {sure} ({named} {probability(p)})"


def _leading(measure: str, values: Mapping[str, float | None]) -> list[str]:
    """Return the runs with the best value, none where no run has one."""
    leader = best(measure, values.values())
    return [name for name, value in values.items() if value is not None and value == leader]


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    if more > 0:
        return f"{', '.join(names[:_NAMED])} and {more} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
