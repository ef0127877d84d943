"""The table of values: measures as rows, runs as columns, and the remarks below it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from karat.data.notebook import boxed
from karat.evaluation.remarks import scoring_notes
from karat.markup import Markup, brief, joined, named, tag
from karat.report.comparison import ComparisonSheet, run_letter, significant_differences
from karat.report.page.model import Json
from karat.report.sheet import Sheet, interval_methods, remarks
from karat.report.tables import (
    BETTER,
    WORSE,
    declaration_of,
    format_counts,
    format_interval,
    format_value,
    measure_label,
    measure_named,
    unjudged_rows,
)
from karat.stats.power import ALPHA

# JSON in attributes, as an attribute cannot hold every character an id can.


def query_button(query_id: str) -> Markup:
    """Return a button that opens a query."""
    return tag("button", named(query_id, 48), type="button", data_query=json.dumps(query_id))


def show_button(show: Json) -> Markup:
    """Return a button that sets the table of queries to what is meant."""
    words = "show these queries"
    return tag("button", words, type="button", class_="show", data_show=json.dumps(show))


MAX_SENTENCE = 2_000
"""Sentences hold names of runs, and these can be of any length."""
_MAX_LETTERED = 8
"""Of more runs, those that one is better than are counted, not named."""

SummaryRow = Mapping[str, Any]


def value_section(sheets: Sequence[Sheet], comparison: ComparisonSheet | None) -> Markup:
    """Return the table of values, what its marks mean, and the remarks below it."""
    marks = Marks(sheets, comparison)
    said = [*interval_methods(sheets), *remarks(sheets), *scoring_notes(sheets[0].scores)]
    return joined(
        scrollable(value_table(sheets, marks), "The values of each run"),
        tag("p", marks.legend, class_="key") if marks.legend else None,
        remark_list(said),
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
        listed = [run_letter(at) for at, name in enumerate(self.names) if name in beaten]
        told = ", ".join(listed) if self.lettered else f"{len(listed):,}"
        return tag("span", f"{BETTER} {told}", class_="sign rose")

    def head(self, at: int) -> Markup | None:
        """Return the mark next to the name of a run."""
        if self.lettered:
            return tag("span", run_letter(at), class_="letter")
        is_baseline = self.names[at] == self.baseline
        return tag("span", "baseline", class_="letter") if is_baseline else None

    @property
    def legend(self) -> str:
        """What the marks say, in words."""
        if len(self.names) == 1:
            return ""
        told = "best: the best value of a measure"
        if not self.compared:
            return f"{told}; karat compare shows which differences are significant"
        if not self._beaten:
            return f"{told}; no statistically significant difference (corrected p < {ALPHA})"
        if self.baseline is not None:
            means = f"{BETTER} and {WORSE}: significantly better or worse than the baseline"
        elif self.lettered:
            means = f"{BETTER} a: significantly better than the run marked a"
        else:
            means = f"{BETTER} 3: significantly better than three other runs"
        return f"{told}. {means} (corrected p < {ALPHA})"


def value_table(sheets: Sequence[Sheet], marks: Marks) -> Markup:
    """Return the values as a table; `data-value` holds each as exactly as the JSON does."""
    heads = [tag("th", "measure", scope="col")]
    for at, sheet in enumerate(sheets):
        heads.append(tag("th", named(sheet.name, 48), " ", marks.head(at), scope="col"))
    heads.append(tag("th", "n", scope="col"))
    summaries = [sheet.summary.iter_rows(named=True) for sheet in sheets]
    rows = [_row(same, marks, sheets[0]) for same in zip(*summaries, strict=True)]
    rows += [_unjudged_row(name, exact) for name, exact in unjudged_rows(sheets).items()]
    return tag(
        "table", tag("thead", tag("tr", heads)), tag("tbody", rows), class_="numbers headline"
    )


def _row(same: Sequence[SummaryRow], marks: Marks, sheet: Sheet) -> Markup:
    measure, most = same[0]["measure"], bar_maximum(same)
    leading = measure_named(measure).best([row["value"] for row in same])
    apart = any(row["value"] != leading for row in same)
    cells = []
    for name, row in zip(marks.names, same, strict=True):
        is_best = apart and row["value"] is not None and row["value"] == leading
        cells.append(
            tag(
                "td",
                tag("span", format_value(row["value"], measure), class_="number"),
                tag("span", " best", class_="sign") if is_best else None,
                joined(" ", mark) if (mark := marks.of(name, measure)) else None,
                tag("span", between, class_="interval")
                if (between := format_interval(row))
                else None,
                bar(row, most),
                class_="best" if is_best else None,
                **exact_attributes(row),
            )
        )
    title = tag("small", declaration_of(measure).title)
    return tag(
        "tr", tag("th", measure_label(measure, sheet), title, scope="row"), cells, _sizes(same)
    )


def _sizes(same: Sequence[SummaryRow]) -> Markup:
    """Return on how many queries a measure rests, and how many it leaves out."""
    left_out = [row["left_out"] for row in same]
    apart = tag("small", f"{format_counts(left_out)} left out") if any(left_out) else None
    return tag("td", format_counts(row["n"] for row in same), apart, class_="size")


def _unjudged_row(name: str, exact_values: Sequence[float | None]) -> Markup:
    cells = [
        tag("td", format_value(value), data_value=None if value is None else repr(value))
        for value in exact_values
    ]
    return tag("tr", tag("th", name, scope="row"), cells, tag("td", class_="size"), class_="hole")


def exact_attributes(row: SummaryRow) -> dict[str, str | None]:
    """Return the attributes that hold a value and its interval with all their digits."""
    found = {f"data_{end}": row.get(end) for end in ("value", "low", "high")}
    return {name: None if value is None else repr(value) for name, value in found.items()}


def remark_list(said: Sequence[str]) -> Markup | None:
    """Return remarks as a list, where there are any."""
    items = [tag("li", named(sentence, MAX_SENTENCE)) for sentence in said]
    return tag("ul", items, class_="remarks") if items else None


def scrollable(table: Markup, words: str) -> Markup:
    """Return a table that scrolls in its own box, where it is wider than the page."""
    return tag(
        "div",
        table,
        class_="scroll fitted",
        role="region",
        tabindex=0,
        aria_label=brief(words, 200),
    )


def bar_maximum(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the value that a full bar of a measure stands for: 1, or the most of an amount."""
    if declaration_of(rows[0]["measure"]).bounded:
        return 1.0
    ends = [row.get(end) or 0.0 for row in rows for end in ("value", "high")]
    return max(ends) or 1.0


def bar(row: Mapping[str, Any], most: float) -> Markup | None:
    """Return a bar of a value, and a line over its interval where there is one."""
    if row["value"] is None:
        return None
    drawn = [
        tag("rect", class_="track", width="100%", height="100%"),
        tag("rect", class_="filled", width=_share(row["value"], most), height="100%"),
    ]
    low, high = row.get("low"), row.get("high")
    if low is not None and high is not None:
        ends = {"x1": _share(low, most), "x2": _share(high, most)}
        drawn.append(tag("line", class_="between", y1="50%", y2="50%", **ends))
    return tag("svg", *drawn, class_="gauge", aria_hidden="true")


def _share(value: float, most: float) -> str:
    return f"{100 * min(max(value / most, 0.0), 1.0):.2f}%"


def scores_html(sheet: Sheet) -> Markup:
    """Return the values of a run and the remarks on them, as a notebook shows them."""
    return boxed(value_section([sheet], None))
