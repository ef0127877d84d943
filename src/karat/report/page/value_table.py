"""The table of values: measures as rows, runs as columns, and the remarks below it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from karat.evaluation.remarks import scoring_notes
from karat.markup import Markup, brief, joined, named, tag
from karat.report.cells import (
    BETTER,
    WORSE,
    declaration_of,
    format_counts,
    format_interval,
    format_value,
    measure_label,
    measure_named,
)
from karat.report.comparison import ComparisonSheet, run_letter, significant_differences
from karat.report.documents.scores import unjudged_rows
from karat.report.page.model import Json
from karat.report.sheet import Sheet, interval_methods, remarks
from karat.stats.power import ALPHA

# Attributes hold JSON, since an id may contain characters that HTML attributes cannot.


def query_button(query_id: str) -> Markup:
    """Return a button that opens a query."""
    return tag("button", named(query_id, 48), type="button", data_query=json.dumps(query_id))


def show_button(show: Json) -> Markup:
    """Return a button that sets the filters of the table of queries."""
    text = "show these queries"
    return tag("button", text, type="button", class_="show", data_show=json.dumps(show))


MAX_SENTENCE = 2_000
"""Longer sentences are shortened: they contain names of runs, which can have any length."""
_MAX_LETTERED = 8
"""With more runs, the marks count the beaten runs instead of naming them by letter."""

SummaryRow = Mapping[str, Any]


def value_section(sheets: Sequence[Sheet], comparison: ComparisonSheet | None) -> Markup:
    """Return the table of values, the legend of its marks, and the remarks below it."""
    marks = Marks(sheets, comparison)
    notes = [*interval_methods(sheets), *remarks(sheets), *scoring_notes(sheets[0].scores)]
    return joined(
        scrollable(value_table(sheets, marks), "Values of each run"),
        tag("p", marks.legend, class_="key") if marks.legend else None,
        remark_list(notes),
    )


class Marks:
    """Marks in a table of values: the best of each measure, and significant differences."""

    def __init__(self, sheets: Sequence[Sheet], comparison: ComparisonSheet | None) -> None:
        self.names = [sheet.name for sheet in sheets]
        self.compared = comparison is not None
        self.baseline = None if comparison is None else comparison.comparison.baseline
        self._beaten: dict[tuple[str, str], list[str]] = {}
        if comparison is not None:
            for winner, loser, measure in significant_differences(comparison):
                self._beaten.setdefault((winner, measure), []).append(loser)
        named_by_letter = self.baseline is None and len(self.names) <= _MAX_LETTERED
        self.lettered = named_by_letter and bool(self._beaten)

    def of(self, run: str, measure: str) -> Markup | None:
        """Return the mark next to a value of a run."""
        beaten = self._beaten.get((run, measure), [])
        if self.baseline is not None:
            if self.baseline in beaten:
                return tag("span", f"{BETTER} better", class_="sign rose")
            worse = run in self._beaten.get((self.baseline, measure), [])
            return tag("span", f"{WORSE} worse", class_="sign fell") if worse else None
        if not beaten:
            return None
        letters = [run_letter(at) for at, name in enumerate(self.names) if name in beaten]
        text = ", ".join(letters) if self.lettered else f"{len(letters):,}"
        return tag("span", f"{BETTER} {text}", class_="sign rose")

    def head(self, at: int) -> Markup | None:
        """Return the mark next to the name of a run."""
        if self.lettered:
            return tag("span", run_letter(at), class_="letter")
        is_baseline = self.names[at] == self.baseline
        return tag("span", "baseline", class_="letter") if is_baseline else None

    @property
    def legend(self) -> str:
        """The meaning of the marks."""
        if len(self.names) == 1:
            return ""
        best = "best: the best value of a measure"
        if not self.compared:
            return f"{best}; karat compare shows which differences are significant"
        if not self._beaten:
            return f"{best}; no statistically significant difference (corrected p < {ALPHA})"
        if self.baseline is not None:
            marks = f"{BETTER} and {WORSE}: significantly better or worse than the baseline"
        elif self.lettered:
            marks = f"{BETTER} a: significantly better than run a"
        else:
            marks = f"{BETTER} 3: significantly better than 3 other runs"
        return f"{best}. {marks} (corrected p < {ALPHA})"


def value_table(sheets: Sequence[Sheet], marks: Marks) -> Markup:
    """Return the table of values; `data-value` holds each value with all digits."""
    heads = [tag("th", "measure", scope="col")]
    for at, sheet in enumerate(sheets):
        heads.append(tag("th", named(sheet.name, 48), " ", marks.head(at), scope="col"))
    heads.append(tag("th", "n", scope="col"))
    summaries = [sheet.summary.iter_rows(named=True) for sheet in sheets]
    rows = [_row(run_rows, marks, sheets[0]) for run_rows in zip(*summaries, strict=True)]
    rows += [_unjudged_row(name, exact) for name, exact in unjudged_rows(sheets).items()]
    return tag(
        "table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="numbers headline"
    )


def _row(run_rows: Sequence[SummaryRow], marks: Marks, sheet: Sheet) -> Markup:
    measure, maximum = run_rows[0]["measure"], bar_maximum(run_rows)
    best = measure_named(measure).best([row["value"] for row in run_rows])
    differ = any(row["value"] != best for row in run_rows)
    cells = []
    for name, row in zip(marks.names, run_rows, strict=True):
        is_best = differ and row["value"] is not None and row["value"] == best
        mark, interval = marks.of(name, measure), format_interval(row)
        cells.append(
            tag(
                "td",
                tag("span", format_value(row["value"], measure), class_="number"),
                tag("span", " best", class_="sign") if is_best else None,
                joined(" ", mark) if mark else None,
                tag("span", interval, class_="interval") if interval else None,
                bar(row, maximum),
                class_="best" if is_best else None,
                **exact_attributes(row),
            )
        )
    title = tag("small", declaration_of(measure).title)
    return tag(
        "tr", tag("th", measure_label(measure, sheet), title, scope="row"), cells, _sizes(run_rows)
    )


def _sizes(run_rows: Sequence[SummaryRow]) -> Markup:
    """Return the number of queries of a measure, and how many are left out."""
    left_out = [row["left_out"] for row in run_rows]
    note = tag("small", f"{format_counts(left_out)} left out") if any(left_out) else None
    return tag("td", format_counts(row["n"] for row in run_rows), note, class_="size")


def _unjudged_row(name: str, exact_values: Sequence[float | None]) -> Markup:
    cells = [
        tag("td", format_value(value), data_value=None if value is None else repr(value))
        for value in exact_values
    ]
    return tag(
        "tr", tag("th", name, scope="row"), cells, tag("td", class_="size"), class_="unjudged-row"
    )


def exact_attributes(row: SummaryRow) -> dict[str, str | None]:
    """Return the attributes that hold a value and its interval with all digits."""
    numbers = {f"data_{name}": row.get(name) for name in ("value", "low", "high")}
    return {name: None if value is None else repr(value) for name, value in numbers.items()}


def remark_list(remarks: Sequence[str]) -> Markup | None:
    """Return remarks as a list, or None if there are none."""
    items = [tag("li", named(remark, MAX_SENTENCE)) for remark in remarks]
    return tag("ul", items, class_="remarks") if items else None


def scrollable(table: Markup, label: str) -> Markup:
    """Return a table in a box that scrolls if the table is wider than the page."""
    return tag(
        "div",
        table,
        class_="scroll fitted",
        role="region",
        tabindex=0,
        aria_label=brief(label, 200),
    )


def bar_maximum(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the value of a full bar: 1, or the largest value of an amount."""
    if declaration_of(rows[0]["measure"]).bounded:
        return 1.0
    ends = [row.get(end) or 0.0 for row in rows for end in ("value", "high")]
    return max(ends) or 1.0


def bar(row: Mapping[str, Any], maximum: float) -> Markup | None:
    """Return the bar of a value, with a line for its interval if there is one."""
    if row["value"] is None:
        return None
    shapes = [
        tag("rect", class_="track", width="100%", height="100%"),
        tag("rect", class_="filled", width=_share(row["value"], maximum), height="100%"),
    ]
    low, high = row.get("low"), row.get("high")
    if low is not None and high is not None:
        ends = {"x1": _share(low, maximum), "x2": _share(high, maximum)}
        shapes.append(tag("line", class_="between", y1="50%", y2="50%", **ends))
    return tag("svg", *shapes, class_="gauge", aria_hidden="true")


def _share(value: float, maximum: float) -> str:
    return f"{100 * min(max(value / maximum, 0.0), 1.0):.2f}%"
