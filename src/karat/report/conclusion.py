"""The conclusion in one sentence: which run is best, and whether that is significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.evaluation.remarks import unequal_texts
from karat.format import probability
from karat.report.comparison import ComparisonSheet, PairRow, significance_mark
from karat.report.comparison_tables import P_HEADS
from karat.report.sheet import Sheet
from karat.report.tables import (
    BETTER,
    WORSE,
    format_difference,
    format_value,
    format_with_interval,
    measure_named,
)
from karat.stats.power import ALPHA

_MAX_NAMES = 3


def scores_conclusion(sheets: Sequence[Sheet]) -> str:
    """Return which run is best by the first measure, without a significance test."""
    rows = {sheet.name: sheet.summary.row(0, named=True) for sheet in sheets}
    measure = sheets[0].summary["measure"][0]
    names = _best_runs(measure, {name: row["value"] for name, row in rows.items()})
    measure = sheets[0].label(measure)
    if not names:
        return f"no query has a value for {measure}"
    value = format_with_interval(rows[names[0]]).removesuffix(" –")  # a missing interval
    if len(sheets) == 1:
        return f"{names[0]}: {measure} {value}"
    if len(names) > 1:
        return f"{_join_names(names)} share the best {measure}: {value}"
    return (
        f"{names[0]} has the best {measure}: {value}; "
        "karat compare shows whether the difference is significant"
    )


def comparison_conclusion(sheet: ComparisonSheet) -> str:
    """Return which run is best by the first measure, and which runs it significantly beats."""
    measure = sheet.measures[0]
    values = {run.name: run.summary["value"][0] for run in sheet.runs}
    names = _best_runs(measure, values)
    if not names:
        return f"no query has a value for {sheet.label(measure)}"
    if len(names) > 1:
        return f"{_join_names(names)} share the best {sheet.label(measure)}"
    return _leader_conclusion(sheet, measure, names[0], values) + _text_length_note(
        sheet, measure, names[0]
    )


def _text_length_note(sheet: ComparisonSheet, measure: str, leader: str) -> str:
    """Return a note if the best run returns much more text than another run, else ""."""
    runs = unequal_texts(sheet.comparison.scores, measure)
    if runs is None or runs[0].name != leader:
        return ""
    most, least = runs
    times = most.delivered[measure] / least.delivered[measure]
    return (
        f"; it returns {times:.1f} times as much text as {least.name}, which favours it at equal k"
    )


def _leader_conclusion(
    sheet: ComparisonSheet, measure: str, leader: str, values: Mapping[str, float | None]
) -> str:
    rivals = _rows_by_rival(sheet, measure, leader)
    if len(rivals) == 1:
        ((rival, row),) = rivals.items()
        return _conclusion_for_two(sheet, leader, rival, row)
    unsure = {
        name: row for name, row in rivals.items() if not _is_significantly_better(leader, row)
    }
    best_of_all = f"{leader} has the best {sheet.label(measure)}"
    if not unsure:
        others = "both others" if len(rivals) == 2 else f"all {len(rivals)} others"
        return f"{best_of_all}: significantly better than {others}"
    nearest = (_best_runs(measure, {name: values[name] for name in unsure}) or list(unsure))[0]
    summary = _test_summary(sheet, leader, rivals[nearest])
    if len(unsure) == len(rivals):
        return (
            f"{best_of_all}, but is not significantly better than any of the {len(rivals)} others "
            f"(nearest: {nearest}, {summary})"
        )
    return (
        f"{best_of_all}: significantly better than {len(rivals) - len(unsure)} of {len(rivals)} "
        f"others, but not than {nearest} ({summary})"
    )


def pairs_of_best(sheet: ComparisonSheet) -> list[tuple[str, str]]:
    """Return the pairs with the best run by the first measure; all pairs if no run is best."""
    values = {run.name: run.summary["value"][0] for run in sheet.runs}
    leaders = _best_runs(sheet.measures[0], values)
    return [pair for pair in sheet.names if not leaders or leaders[0] in pair]


def _rows_by_rival(sheet: ComparisonSheet, measure: str, leader: str) -> dict[str, PairRow]:
    """Return the rows of the pairs with a run, by the name of the other run."""
    rows = sheet.pairs.filter(measure=measure).to_dicts()
    return {
        row["a"] if row["b"] == leader else row["b"]: row
        for row in rows
        if leader in (row["a"], row["b"])
    }


def _is_significantly_better(leader: str, row: PairRow) -> bool:
    """Return whether a run is significantly better than the other run of its pair."""
    return significance_mark(row) == (BETTER if leader == row["b"] else WORSE)


def _conclusion_for_two(sheet: ComparisonSheet, leader: str, rival: str, row: PairRow) -> str:
    """Return the lead of a run over the only other run, and whether it is significant."""
    measure, ahead = row["measure"], _lead(leader, row)
    name = sheet.label(measure)
    if ahead is None or row["p_corrected"] is None:
        return f"{leader} has the best {name}; the difference from {rival} was not tested"
    if not measure_named(measure).is_better(ahead, 0.0):
        return (
            f"{leader} has the best {name}, but not on the queries for which both it and "
            f"{rival} have a value"
        )
    gap = format_value(abs(ahead), measure)
    if _is_significantly_better(leader, row):
        return (
            f"{leader} is significantly better than {rival}: "
            f"{name} differs by {gap} ({_format_p(sheet, row)})"
        )
    if row["p"] < ALPHA <= row["p_corrected"]:
        return f"{leader} leads {rival} by {gap} {name}: {sheet.uncorrected_note(row)}"
    few = ""
    if row["method"] == "few":
        few = f"only {row['wins'] + row['losses']} of {row['n']} queries differ, "
    return (
        f"{leader} leads {rival} by {gap} {name}, but the difference is not statistically "
        f"significant ({few}{_format_p(sheet, row)})"
    )


def _test_summary(sheet: ComparisonSheet, leader: str, row: PairRow) -> str:
    """Return the difference between two runs and its p-value."""
    ahead = _lead(leader, row)
    if ahead is None or row["p_corrected"] is None:
        return "not tested"
    if row["method"] == "few":
        return f"only {row['wins'] + row['losses']} of {row['n']} queries differ"
    if row["p"] < ALPHA <= row["p_corrected"]:
        return f"{format_difference(ahead, row['measure'])}, {sheet.uncorrected_note(row)}"
    return f"{format_difference(ahead, row['measure'])}, {_format_p(sheet, row)}"


def _lead(leader: str, row: PairRow) -> float | None:
    """Return the value of a run minus the value of the other run, over their common queries."""
    difference: float | None = row["difference"]
    if difference is None:
        return None
    return difference if leader == row["b"] else 0.0 - difference


def _format_p(sheet: ComparisonSheet, row: PairRow) -> str:
    named = P_HEADS[sheet.comparison.correction] if sheet.corrects(sheet.pairs) else "p"
    return f"{named} {probability(row['p_corrected'])}"


def _best_runs(measure: str, values: Mapping[str, float | None]) -> list[str]:
    """Return the runs with the best value; empty if no run has a value."""
    leader = measure_named(measure).best(values.values())
    return [name for name, value in values.items() if value is not None and value == leader]


def _join_names(names: list[str]) -> str:
    more = len(names) - _MAX_NAMES
    if more > 0:
        return f"{', '.join(names[:_MAX_NAMES])} and {more} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
