"""Explanations as text: the definition of a measure, and how its value for a query is computed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from karat.conventions import HELP, Conventions
from karat.errors import printable
from karat.evaluation.calculation import MOST_ROWS, TOP, Calculation, changes
from karat.evaluation.explanation import Explanation
from karat.evaluation.list_rows import Row
from karat.format import amount
from karat.measures import Measure
from karat.measures.registry import UNITS, format_value
from karat.report.terminal import WIDTH, plain_lines, shorten

_ITEM_WIDTH = 24
_TITLE_WIDTH = 40
_LABEL_WIDTH = 13
_HEADS = ["item", "grade", "rank 1", "rank 2", "adds 1", "adds 2", "2 − 1"]


def text(explanation: Explanation) -> str:
    """Return an explanation as text of 80 columns."""
    return "\n".join(_lines(explanation))


def _lines(explanation: Explanation) -> Iterator[str]:
    if explanation.query is None:
        yield from _definition(explanation.measure, explanation.conventions)
        if explanation.matching:
            yield from _field("Covered", explanation.matching)
        yield ""
        yield "Example"
        yield ""
    else:
        title = explanation.measure.declaration.title
        query = shorten(repr(explanation.query), _TITLE_WIDTH)
        yield from textwrap.wrap(f"{explanation.measure}: {title}, for query {query}", WIDTH)
        yield from _field("Formula", explanation.measure.declaration.formula)
        if departures := explanation.conventions.departures():
            settings = ", ".join(f"{name}={value}" for name, value in departures.items())
            yield from _field("Conventions", settings)
        if explanation.level != "item":
            yield from _field("Level", explanation.level)
        if explanation.matching:
            yield from _field("Covered", explanation.matching)
        yield ""
    if len(explanation.calculations) == 2:
        first, second = explanation.calculations
        yield from _side_by_side(explanation.measure, first, second, explanation.difference)
    else:
        yield from _calculation_lines(
            explanation.measure, explanation.calculations[0], explanation.query is not None
        )


def _definition(measure: Measure, conventions: Conventions) -> Iterator[str]:
    declaration = measure.declaration
    yield f"{measure}: {declaration.title}"
    yield ""
    yield from _field("Formula", declaration.formula)
    for param in declaration.params:
        value = measure.params[param.name]
        setting = param.name if value is None else f"{param.name}={format_value(value)}"
        yield from _field("Parameter", f"{setting}: {param.help}")
    cutoff = {
        "none": "none: the whole list is used" if declaration.reads_gold else "none",
        "optional": "@k uses the first k ranks; without it the whole list is used",
        "budget": "@k uses the first k ranks, @2000c the first 2000 characters (the item that "
        "crosses the limit is cut there); without it the whole list is used",
        "share": "@r is a recall level from 0 to 1",
    }[declaration.cutoff]
    yield from _field("Cutoff", cutoff)
    better = "higher" if declaration.higher_is_better else "lower"
    unit = f"; in {declaration.unit}" if declaration.unit else ""
    yield from _field("Over queries", f"{declaration.combine}; {better} is better{unit}")
    yield from _field("Edge cases", declaration.edges)
    yield from _field("Other tools", declaration.differs)
    for publication in declaration.cites:
        yield from _field("Defined in", publication)
    if declaration.aliases:
        yield from _field("Also called", ", ".join(declaration.aliases))
    settings = conventions.as_dict()
    if not declaration.no_gold:
        del settings["no_gold"]
    if not declaration.reads.is_graded:
        del settings["unjudged"]
    if not declaration.reads.is_graded and not declaration.counts_repeats:
        del settings["duplicates"]
    if not declaration.reads_gold:  # latency and cost never count a query that is not in the run
        del settings["missing"]
    for name, value in settings.items():
        yield from _field("Convention", f"{name}={value}: {HELP[name]}")


def _calculation_lines(measure: Measure, calculation: Calculation, show_run: bool) -> Iterator[str]:
    if show_run:
        yield shorten(calculation.run, WIDTH)
    rows = calculation.picked
    yield from _table(rows) or [measure.declaration.reads.empty]
    if len(rows) < len(calculation.rows):
        n_ranks = len(calculation.rows)
        yield f"… of {n_ranks:,} ranks; below rank {TOP}, only items that count are shown"
    yield from _missed_items(calculation, "missed")
    yield from _evidence_lines(calculation, "Evidence")
    if calculation.ideal:
        yield ""
        yield "Ideal list"
        yield from _table(calculation.ideal[:TOP])
        if (more := len(calculation.ideal) - TOP) > 0:
            yield f"… {more:,} more"
    yield ""
    for name, value in calculation.numbers.items():
        yield f"{name} = {_format_exact(value)}"
    yield from calculation.remarks
    yield f"{measure} = {_format_exact(calculation.value)}"


def _side_by_side(
    measure: Measure, first: Calculation, second: Calculation, difference: float | None
) -> Iterator[str]:
    for number, calculation in ((1, first), (2, second)):
        yield f"{number} is {shorten(calculation.run, WIDTH - 5)}"
    yield ""
    if measure.declaration.reads_gold:
        yield from _item_lines(first, second)
    else:
        for number, calculation in ((1, first), (2, second)):
            yield f"{number}:"
            yield from _table(calculation.picked) or [measure.declaration.reads.empty]
    for number, calculation in ((1, first), (2, second)):
        yield from _missed_items(calculation, f"missed in {number}")
        yield from _evidence_lines(calculation, f"Evidence in {number}")
    yield ""
    for name in dict.fromkeys([*first.numbers, *second.numbers]):
        values = [_format_exact(side.numbers.get(name)) for side in (first, second)]
        yield f"{name}: 1 = {values[0]}, 2 = {values[1]}"
    for number, calculation in ((1, first), (2, second)):
        for remark in calculation.remarks:
            yield f"{number}: {remark}"
    yield f"{measure} 1 = {_format_exact(first.value)}"
    yield f"{measure} 2 = {_format_exact(second.value)}"
    yield f"2 − 1 = {_format_exact(difference)}"


def _item_lines(first: Calculation, second: Calculation) -> Iterator[str]:
    """Yield what each item adds to the value of each list, largest differences first."""
    item_changes = changes(first, second)
    rows = [
        [
            shorten(change.item, _ITEM_WIDTH),
            *map(_format_cell, (change.grade, change.rank_a, change.rank_b)),
            *map(_format_cell, (change.brought_a, change.brought_b, change.difference)),
        ]
        for change in item_changes[:MOST_ROWS]
    ]
    if rows:
        columns = first.columns or second.columns
        addend = f" ({columns[-1]})" if columns else ""
        yield f"What each item adds to the value{addend}"
        yield from plain_lines(_HEADS, rows, 1)
    else:
        yield "No item counts in either list."
    if len(item_changes) > MOST_ROWS:
        yield f"… {len(item_changes) - MOST_ROWS:,} more"


def _missed_items(calculation: Calculation, label: str) -> list[str]:
    """Return the relevant items that do not count in the list, highest grades first."""
    if not calculation.missed:
        return []
    items = []
    for row in calculation.missed[:TOP]:
        rank = "" if row["rank"] is None else f", at rank {row['rank']}"
        items.append(f"{shorten(row['item'], _ITEM_WIDTH)} (grade {row['grade']}{rank})")
    more = len(calculation.missed) - len(items)
    text = f"{label}: {', '.join(items)}" + (f" and {more:,} more" if more else "")
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")


def _evidence_lines(calculation: Calculation, label: str) -> Iterator[str]:
    """Yield what covers each evidence text, or how similar the nearest item is."""
    if not calculation.matches:
        return
    yield ""
    yield label
    yield from _table(
        [
            {
                "evidence": " ".join(match["evidence"].split()),
                "rank": match["rank"],
                "how": match["how"],
                "ratio": match["ratio"],
                "nearest": match["nearest_rank"],
                "its Indel": match["nearest_indel"],
                "its ratio": match["nearest_ratio"],
            }
            for match in calculation.matches[:TOP]
        ]
    )
    if (more := len(calculation.matches) - TOP) > 0:
        yield f"… {more:,} more"


def _table(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    keys = list(dict.fromkeys(key for row in rows for key in row))
    labels = 2 if "item" in keys else 1
    cells = [
        [shorten(_format_cell(row.get(key), key), _ITEM_WIDTH) for key in keys] for row in rows
    ]
    return plain_lines([printable(key) for key in keys], cells, labels)


def _field(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=label.ljust(_LABEL_WIDTH), subsequent_indent=" " * _LABEL_WIDTH
    )


def _format_cell(value: Any, key: str = "") -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return amount(value) if key in UNITS else f"{value:.4f}"
    return str(value)


def _format_exact(value: Any) -> str:
    return "left out" if value is None else repr(value)
