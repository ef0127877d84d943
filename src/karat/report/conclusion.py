"""The conclusion in one line: which run is best, and whether that is significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.evaluation.remarks import unequal_texts
from karat.format import probability
from karat.report.comparison import ComparisonSheet, Row, mark
from karat.report.comparison_tables import HEADS
from karat.report.sheet import Sheet
from karat.report.tables import BETTER, WORSE, measure_named, number, signed, with_interval
from karat.stats.power import ALPHA

_NAMED = 3


def of_scores(sheets: Sequence[Sheet]) -> str:
    """Return which run is best by the first measure, without a test."""
    rows = {sheet.name: sheet.summary.row(0, named=True) for sheet in sheets}
    measure = sheets[0].summary["measure"][0]
    names = _leading(measure, {name: row["value"] for name, row in rows.items()})
    measure = sheets[0].label(measure)
    if not names:
        return f"no query has a value of {measure}"
    shown = with_interval(rows[names[0]]).removesuffix(" –")  # a dash is for tables
    if len(sheets) == 1:
        return f"{names[0]}: {measure} {shown}"
    if len(names) > 1:
        return f"{_listed(names)} share the best {measure}: {shown}"
    return (
        f"{names[0]} has the best {measure}: {shown}; "
        "karat compare shows whether the difference is significant"
    )


def of_comparison(sheet: ComparisonSheet) -> str:
    """Return which run is best by the first measure, and which others it significantly beats."""
    measure = sheet.measures[0]
    values = {run.name: run.summary["value"][0] for run in sheet.runs}
    names = _leading(measure, values)
    if not names:
        return f"no query has a value of {sheet.label(measure)}"
    if len(names) > 1:
        return f"{_listed(names)} share the best {sheet.label(measure)}"
    return _of_leader(sheet, measure, names[0], values) + _unequal(sheet, measure, names[0])


def _unequal(sheet: ComparisonSheet, measure: str, leader: str) -> str:
    """State it if the best run returns much more text than another one."""
    runs = unequal_texts(sheet.comparison.scores, measure)
    if runs is None or runs[0].name != leader:
        return ""
    most, least = runs
    times = most.delivered[measure] / least.delivered[measure]
    return (
        f"; it returns {times:.1f} times as much text as {least.name}, which favours it at equal k"
    )


def _of_leader(
    sheet: ComparisonSheet, measure: str, leader: str, values: Mapping[str, float | None]
) -> str:
    rivals = _rivals(sheet, measure, leader)
    if len(rivals) == 1:
        ((rival, row),) = rivals.items()
        return _against_one(sheet, leader, rival, row)
    unsure = {name: row for name, row in rivals.items() if not _leads(leader, row)}
    best_of_all = f"{leader} has the best {sheet.label(measure)}"
    if not unsure:
        others = "both others" if len(rivals) == 2 else f"all {len(rivals)} others"
        return f"{best_of_all}: significantly better than {others}"
    nearest = (_leading(measure, {name: values[name] for name in unsure}) or list(unsure))[0]
    told = _evidence(sheet, leader, rivals[nearest])
    if len(unsure) == len(rivals):
        return (
            f"{best_of_all}, but is not significantly better than any of the {len(rivals)} others "
            f"(nearest: {nearest}, {told})"
        )
    return (
        f"{best_of_all}: significantly better than {len(rivals) - len(unsure)} of {len(rivals)} "
        f"others, not than {nearest} ({told})"
    )


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
    """Return whether a run is significantly better than the other one of a pair."""
    return mark(row) == (BETTER if leader == row["b"] else WORSE)


def _against_one(sheet: ComparisonSheet, leader: str, rival: str, row: Row) -> str:
    """Return by how much a run leads the only other one, and whether that is significant."""
    measure, ahead = row["measure"], _ahead(leader, row)
    name = sheet.label(measure)
    if ahead is None or row["p_corrected"] is None:
        return f"{leader} has the best {name}; its difference from {rival} was not tested"
    if not measure_named(measure).is_better(ahead, 0.0):
        return (
            f"{leader} has the best {name}, but not on the queries for which both it and "
            f"{rival} have a value"
        )
    gap = number(abs(ahead), measure)
    if _leads(leader, row):
        return (
            f"{leader} is significantly better than {rival}: "
            f"{name} differs by {gap} ({_p(sheet, row)})"
        )
    if row["p"] < ALPHA <= row["p_corrected"]:
        return f"{leader} leads {rival} by {gap} {name}: {sheet.alone(row)}"
    few = ""
    if row["method"] == "few":
        few = f"only {row['wins'] + row['losses']} of {row['n']} queries differ, "
    return (
        f"{leader} leads {rival} by {gap} {name}, but the difference is not statistically "
        f"significant ({few}{_p(sheet, row)})"
    )


def _evidence(sheet: ComparisonSheet, leader: str, row: Row) -> str:
    """Return the difference between two runs and its p."""
    ahead = _ahead(leader, row)
    if ahead is None or row["p_corrected"] is None:
        return "not tested"
    if row["method"] == "few":
        return f"only {row['wins'] + row['losses']} of {row['n']} queries differ"
    if row["p"] < ALPHA <= row["p_corrected"]:
        return f"{signed(ahead, row['measure'])}, {sheet.alone(row)}"
    return f"{signed(ahead, row['measure'])}, {_p(sheet, row)}"


def _ahead(leader: str, row: Row) -> float | None:
    """Return the value of a run minus that of the other one, over the queries that both have."""
    difference: float | None = row["difference"]
    if difference is None:
        return None
    return difference if leader == row["b"] else 0.0 - difference


def _p(sheet: ComparisonSheet, row: Row) -> str:
    named = HEADS[sheet.comparison.correction] if sheet.corrects(sheet.pairs) else "p"
    return f"{named} {probability(row['p_corrected'])}"


def _leading(measure: str, values: Mapping[str, float | None]) -> list[str]:
    """Return the runs with the best value, none where no run has one."""
    leader = measure_named(measure).best(values.values())
    return [name for name, value in values.items() if value is not None and value == leader]


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    if more > 0:
        return f"{', '.join(names[:_NAMED])} and {more} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
