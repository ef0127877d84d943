"""Numbers, intervals and labels as cells of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from karat.format import DIGITS, format_number, not_as_zero, probability
from karat.measures import Declaration, Measure, parse
from karat.measures.families import COST
from karat.report.document_model import Cell, Tone, Whisker
from karat.report.sheet import Sheet
from karat.stats.power import ALPHA

BETTER, WORSE = "▲", "▼"
"""What marks a significant difference."""
DASH = "–"
"""What is shown where there is no value."""
_LARGE_CHANGE = 2.0
_ROUNDING = 1e-12
"""Two means may differ by so much only because sums are rounded."""
_MILLION = 1_000_000
_AMOUNTS = (
    "value",
    "low",
    "high",
    "median",
    "value_a",
    "value_b",
    "difference",
    "detectable",
)


@cache
def measure_named(name: str) -> Measure:
    """Return the measure of a canonical name."""
    return parse(name)


def declaration_of(measure: str) -> Declaration:
    """Return the declaration of a measure."""
    return measure_named(measure).declaration


def format_value(value: float | None, measure: str | None = None, digits: int = DIGITS) -> str:
    """Format a value of a measure, or any value from 0 to 1.

    >>> format_value(0.25, "RR"), format_value(None, "RR"), format_value(0.5)
    ('0.250', '–', '0.500')
    """
    if measure is None:
        return format_number(value, digits=digits)
    return measure_named(measure).format(value, digits)


def format_difference(value: float | None, measure: str) -> str:
    """Format a difference between two values of a measure, with its sign.

    >>> format_difference(0.25, "RR"), format_difference(-0.00123, "cost.mean")
    ('+0.250', '-0.00123')
    >>> format_difference(0.0, "RR"), format_difference(None, "RR"), format_difference(2e-4, "RR")
    ('0.000', '–', '+0.0002')
    """
    if value is None:
        return DASH
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + format_size(abs(value), measure)


def format_size(size: float | None, measure: str) -> str:
    """Format the size of a difference; rounding does not make it zero."""
    if size is None or size <= _ROUNDING:
        return format_value(size, measure)
    return not_as_zero(size, format_value(size, measure))


def change(share: float | None) -> str:
    """Format a relative change; above +200% as a factor.

    >>> change(0.031), change(-0.5), change(6493.0), change(None), change(0.0)
    ('+3.1%', '-50.0%', '×6,494', '–', '0.0%')
    """
    if share is None:
        return DASH
    if share > _LARGE_CHANGE:
        return f"×{1 + share:,.0f}" if share > 9 else f"×{1 + share:,.1f}"
    return f"{share:+.1%}" if share else "0.0%"


def measure_label(measure: str, sheet: Sheet | None = None) -> str:
    """Return the name of a measure with its unit; a preset may have its own name for it."""
    unit = declaration_of(measure).unit
    name = measure if sheet is None else sheet.label(measure)
    return name if unit is None else f"{name} [{unit}]"


def interval_text(
    low: float | None, high: float | None, measure: str, *, sign: bool, digits: int = DIGITS
) -> str:
    """Format an interval; an open end is a dash."""
    if low is None and high is None:
        return DASH
    if sign:
        ends = [format_difference(end, measure).removeprefix("+") for end in (low, high)]
    else:
        ends = [format_value(end, measure, digits) for end in (low, high)]
    return f"[{', '.join(ends)}]"


def table_label(measure: str, sheet: Sheet | None = None) -> str:
    """Return the label of a measure in a table whose rows were passed through `readable`."""
    if not _is_cost_per_query(measure):
        return measure_label(measure, sheet)
    name = measure if sheet is None else sheet.label(measure)
    return f"{name} [USD per 1M queries]"


def readable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a summary or of pairs with values that can be read.

    The cost of one query is tiny; therefore the cost of a million queries is shown.
    """
    if not _is_cost_per_query(row["measure"]):
        return dict(row)
    return {
        name: value * _MILLION if name in _AMOUNTS and value is not None else value
        for name, value in row.items()
    }


def _is_cost_per_query(measure: str) -> bool:
    one = declaration_of(measure)
    return one.reads is COST and one.combine == "mean"


def value_cell(
    row: Mapping[str, Any], *, is_best: bool = False, mark: str = "", digits: int = DIGITS
) -> Cell:
    """Return the cell of a value of a summary, with its interval if it was computed."""
    interval = ""
    if "method" in row and row["value"] is not None:
        if row["method"] is None:
            interval = DASH
        else:
            interval = interval_text(
                row["low"], row["high"], row["measure"], sign=False, digits=digits
            )
    text = format_value(row["value"], row["measure"], digits)
    return Cell(text, interval, mark, is_best=is_best, drawing=drawing(row))


def format_interval(row: Mapping[str, Any]) -> str:
    """Format the interval of a value of a summary; empty if none was computed."""
    return value_cell(row).interval


def format_with_interval(row: Mapping[str, Any]) -> str:
    """Format a value of a summary with its interval."""
    return value_cell(row).full_text


def drawing(row: Mapping[str, Any]) -> Whisker | None:
    """Return what a dot-and-whisker mark shows of a value; None if 0 to 1 is not its scale."""
    value = row["value"]
    if value is None or not declaration_of(row["measure"]).bounded:
        return None
    low, high = (value if row.get(end) is None else row[end] for end in ("low", "high"))
    return Whisker(low, value, high)


def significance_mark(row: Mapping[str, Any]) -> str:
    """Return ▲ or ▼ if run b of a pair is significantly better or worse than a."""
    difference, p = row["difference"], row["p_corrected"]
    # The signed-rank test may tell runs apart whose means are equal.
    if p is None or p >= ALPHA or not difference:
        return ""
    return BETTER if measure_named(row["measure"]).is_better(difference, 0.0) else WORSE


def difference_cell(row: Mapping[str, Any]) -> Cell:
    """Return the cell of the difference of a pair of runs, green or red if it is significant."""
    mark = significance_mark(row)
    tones: dict[str, Tone] = {BETTER: "good", WORSE: "bad", "": "neutral"}
    return Cell(format_difference(row["difference"], row["measure"]), mark=mark, tone=tones[mark])


def p_cell(p: float | None) -> Cell:
    """Return the cell of a p-value."""
    return Cell(probability(p))


def format_counts(sizes: Iterable[int]) -> str:
    """Format numbers of queries: one number, or the smallest and the largest."""
    all_sizes = list(sizes)
    smallest, largest = min(all_sizes), max(all_sizes)
    return f"{smallest:,}" if smallest == largest else f"{smallest:,}–{largest:,}"
