"""The conclusion in one sentence: which run is best, and whether that is significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.evaluation.comparison import count_tests
from karat.evaluation.remarks import main_measure, unequal_texts
from karat.format import probability
from karat.report.cells import (
    BETTER,
    WORSE,
    format_counts,
    format_size,
    measure_named,
    readable,
    significance_mark,
    table_label,
    value_cell,
)
from karat.report.comparison import ComparisonSheet, PairRow, differing_units
from karat.report.document_model import Headline
from karat.report.sheet import Sheet
from karat.stats.power import ALPHA

_NAMED = 3

BETTER_LABEL = "significantly better"
CLOSE_LABEL = "too close to call"
TIE_LABEL = "tie"
UNEQUAL_LABEL = "compare with care"
UNTESTED_LABEL = "not tested"
EMPTY_LABEL = "no values"


def scores_conclusion(sheets: Sequence[Sheet]) -> Headline:
    """Return which run is best by the main measure, without a test."""
    main = main_measure([sheet.scores for sheet in sheets]).name
    rows = {sheet.name: sheet.row(main) for sheet in sheets}
    names = _leading(main, {name: row["value"] for name, row in rows.items()})
    measure = sheets[0].label(main)
    if not names:
        return Headline(f"no query has a value of {measure}", "bad", EMPTY_LABEL)
    cell = value_cell(rows[names[0]])
    value = f"{cell.text} {cell.interval}".removesuffix(" –").rstrip()
    count = format_counts(row["n"] for row in rows.values())
    queries = "1 query" if count == "1" else f"{count} queries"
    if len(sheets) == 1:
        return Headline(f"{names[0]}: {measure} {value} over {queries}")
    if len(names) > 1:
        text = f"{_listed(names)} share the best {measure}: {value}"
        return Headline(text, label=TIE_LABEL)
    return Headline(
        f"{names[0]} has the best {measure}: {value}; "
        "karat compare shows whether the difference is significant",
        label=UNTESTED_LABEL,
    )


def comparison_conclusion(sheet: ComparisonSheet) -> Headline:
    """Return which run is best by the main measure, and which others it significantly beats."""
    measure = sheet.main_measure
    values = {run.name: run.row(measure)["value"] for run in sheet.runs}
    leaders = _leading(measure, values)
    if not leaders:
        return Headline(f"no query has a value of {sheet.label(measure)}", "bad", EMPTY_LABEL)
    if len(leaders) > 1:
        text = f"{_listed(leaders)} share the best {sheet.label(measure)}"
        return Headline(text, "caution", TIE_LABEL)
    headline = _of_leader(sheet, measure, leaders[0], values)
    if warning := _unequal(sheet, measure, leaders[0]):
        label = UNEQUAL_LABEL if headline.tone == "good" else headline.label
        return Headline(headline.text + warning, "caution", label)
    return headline


def _unequal(sheet: ComparisonSheet, measure: str, leader: str) -> str:
    """Return a warning if the best run returns much more text than another one."""
    runs = unequal_texts(sheet.comparison.scores, measure)
    if runs is None or runs[0].name != leader:
        return ""
    most, least = runs
    factor = most.delivered[measure] / least.delivered[measure]
    return (
        f"; it returns {factor:.1f} times as much text as {least.name}, which favours it at equal k"
    )


def _of_leader(
    sheet: ComparisonSheet, measure: str, leader: str, values: Mapping[str, float | None]
) -> Headline:
    rivals = _rivals(sheet, measure, leader)
    if len(rivals) == 1:
        ((rival, row),) = rivals.items()
        return _against_one(sheet, leader, rival, row)
    undecided = {name: row for name, row in rivals.items() if not _is_better(leader, row)}
    best_of_all = f"{leader} has the best {sheet.label(measure)}"
    if not undecided:
        others = "both others" if len(rivals) == 2 else f"all {len(rivals)} others"
        return Headline(f"{best_of_all}: significantly better than {others}", "good", BETTER_LABEL)
    nearest = (_leading(measure, {name: values[name] for name in undecided}) or list(undecided))[0]
    evidence = _evidence(sheet, leader, rivals[nearest])
    if len(undecided) == len(rivals):
        others = "either other" if len(rivals) == 2 else f"any of the {len(rivals)} others"
        return Headline(
            f"{best_of_all}, but is not significantly better than {others} "
            f"(nearest: {nearest}, {evidence})",
            "caution",
            CLOSE_LABEL,
        )
    more = f" and {len(undecided) - 1:,} more" if len(undecided) > 1 else ""
    return Headline(
        f"{best_of_all}: significantly better than {len(rivals) - len(undecided)} of "
        f"{len(rivals)} others, but not than {nearest} ({evidence}){more}",
        "caution",
        CLOSE_LABEL,
    )


def _rivals(sheet: ComparisonSheet, measure: str, leader: str) -> dict[str, PairRow]:
    """Return the pairs of a run by the name of the other one; with a baseline, only that pair."""
    rows = sheet.pairs.filter(measure=measure).to_dicts()
    return {
        row["a"] if row["b"] == leader else row["b"]: row
        for row in rows
        if leader in (row["a"], row["b"])
    }


def _is_better(leader: str, row: PairRow) -> bool:
    """Return whether a run is significantly better than the other one of a pair."""
    return significance_mark(row) == (BETTER if leader == row["b"] else WORSE)


def _against_one(sheet: ComparisonSheet, leader: str, rival: str, row: PairRow) -> Headline:
    """Return by how much a run leads the only other one, and whether that is significant."""
    measure, lead = row["measure"], _lead(leader, row)
    name = sheet.label(measure)
    if lead is None or row["p_corrected"] is None:
        return Headline(
            f"{leader} has the best {name}; its difference from {rival} was not tested",
            "caution",
            UNTESTED_LABEL,
        )
    if not measure_named(measure).is_better(lead, 0.0):
        return Headline(
            f"{leader} has the best {name}, but not on the queries for which both it and "
            f"{rival} have a value",
            "caution",
            CLOSE_LABEL,
        )
    gap = _gap(abs(lead), measure)
    if _is_better(leader, row):
        return Headline(
            f"{leader} is significantly better than {rival}: "
            f"{gap} {name} ahead (p = {_p(row)})".replace("p = <", "p < "),
            "good",
            BETTER_LABEL,
        )
    if row["p"] < ALPHA <= row["p_corrected"]:
        return Headline(
            f"{leader} leads {rival} by {gap} {name}: {sheet.uncorrected_note(row)}",
            "caution",
            CLOSE_LABEL,
        )
    reasons = [f"p = {_p(row)}"]
    if row["method"] == "few":
        reasons.insert(0, _differing(row))
    elif row["detectable"] is not None:
        detectable = _gap(row["detectable"], measure)
        reasons.append(
            f"with {row['n']:,} queries, differences below {detectable} are easily missed"
        )
    return Headline(
        f"{leader} leads {rival} by {gap} {name}, but the gap is not significant "
        f"({'; '.join(reasons)})",
        "caution",
        CLOSE_LABEL,
    )


def _gap(size: float, measure: str) -> str:
    """Format the size of a difference, with its unit as in tables."""
    size = readable({"measure": measure, "value": size})["value"]
    label = table_label(measure)
    unit = f" {label.split(' [')[1].removesuffix(']')} of" if " [" in label else ""
    return format_size(size, measure) + unit


def _differing(row: PairRow) -> str:
    """Return how few queries differ between two runs."""
    if row["n"] == 1 and row["wins"] + row["losses"]:
        return "there is only 1 query"
    return differing_units(row)


def _evidence(sheet: ComparisonSheet, leader: str, row: PairRow) -> str:
    """Return the difference between two runs and its p-value."""
    lead = _lead(leader, row)
    if lead is None or row["p_corrected"] is None:
        return "not tested"
    if row["method"] == "few":
        return _differing(row)
    if row["p"] < ALPHA <= row["p_corrected"]:
        return f"{_distance(lead, row)}, {sheet.uncorrected_note(row)}"
    corrected = "corrected " if count_tests(sheet.pairs) > 1 else ""
    return f"{_distance(lead, row)}, {corrected}p = {_p(row)}".replace("p = <", "p < ")


def _distance(lead: float, row: PairRow) -> str:
    """Return how far a run is ahead of or behind the other run of a pair."""
    is_ahead = measure_named(row["measure"]).is_better(lead, 0.0)
    size = format_size(abs(lead), row["measure"])
    return f"{size} {'ahead' if is_ahead else 'behind'}" if lead else "no difference"


def _lead(leader: str, row: PairRow) -> float | None:
    """Return the value of a run minus that of the other one, over the queries that both have."""
    difference: float | None = row["difference"]
    if difference is None:
        return None
    return difference if leader == row["b"] else 0.0 - difference


def _p(row: PairRow) -> str:
    return probability(row["p_corrected"])


def _leading(measure: str, values: Mapping[str, float | None]) -> list[str]:
    """Return the runs with the best value; empty if no run has a value."""
    best = measure_named(measure).best(values.values())
    return [name for name, value in values.items() if value is not None and value == best]


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    if more > 0:
        return f"{', '.join(names[:_NAMED])} and {more} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
