"""A measure explained: what it means, and how its value comes about on a query."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from karat.conventions import HELP, Conventions
from karat.measures import Measure
from karat.report.terminal import WIDTH, clean, plain_lines, short

_SHOWN = 20  # ranks shown whatever stands there; beyond them, only what counts
_MOST = 60
_ITEM_WIDTH = 24
_LABEL = 13

Row = dict[str, Any]


@dataclass(frozen=True)
class Calculation:
    """How the value of one query came about: what the kernel noted, and what it returned."""

    run: str
    value: float | None
    rows: list[Row]
    """The list: rank, item, grade, and what was noted of the place."""
    counted: set[int]
    """The ranks that the measure counted."""
    ideal: list[Row]
    missed: list[Row]
    """What has a grade above 0 and is not in the list as far as it counts."""
    numbers: dict[str, Any]
    remarks: list[str]

    @property
    def columns(self) -> list[str]:
        """What was noted of places, in the order of the kernel."""
        return _columns(self.rows)

    def contribution(self, item: str) -> float:
        """Return what an item brought: the last that was noted of its place, else 1."""
        for row in self.rows:
            if row["item"] == item and row["rank"] in self.counted:
                return float(row.get(self.columns[-1], 0.0)) if self.columns else 1.0
        return 0.0


@dataclass(frozen=True)
class Explanation:
    """What a measure means, with calculations on an example or on data; print it."""

    measure: Measure
    query: str | None
    calculations: list[Calculation]
    conventions: Conventions

    @property
    def difference(self) -> float | None:
        """The second run's value less the first's, where there are two."""
        if len(self.calculations) < 2:
            return None
        first, second = (calculation.value for calculation in self.calculations)
        return None if first is None or second is None else second - first

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        declaration = self.measure.declaration
        whole: dict[str, Any] = {
            "measure": self.measure.name,
            "title": declaration.title,
            "formula": declaration.formula,
            "parameters": {param.name: param.help for param in declaration.params},
            "edges": declaration.edges,
            "differs": declaration.differs,
            "over_queries": declaration.combine,
            "conventions": self.conventions.as_dict(),
            "query": self.query,
            "calculations": [
                {
                    "run": calculation.run,
                    "value": calculation.value,
                    "list": calculation.rows,
                    "ideal": calculation.ideal,
                    "missed": calculation.missed,
                    "numbers": calculation.numbers,
                    "remarks": calculation.remarks,
                }
                for calculation in self.calculations
            ],
        }
        if len(self.calculations) == 2:
            whole["difference"] = self.difference
        return whole

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if self.query is None:
            yield from _meaning(self.measure, self.conventions)
            yield ""
            yield "Example"
            yield ""
        else:
            title = self.measure.declaration.title
            yield f"{self.measure}: {title}, for query {clean(repr(self.query))}"
            yield from _field("Formula", self.measure.declaration.formula)
            if departures := self.conventions.departures():
                words = ", ".join(f"{name}={word}" for name, word in departures.items())
                yield from _field("Conventions", words)
            yield ""
        if len(self.calculations) == 2:
            first, second = self.calculations
            yield from _side_by_side(self.measure, first, second, self.difference)
        else:
            yield from _calculated(self.measure, self.calculations[0], self.query is not None)


def _meaning(measure: Measure, conventions: Conventions) -> Iterator[str]:
    declaration = measure.declaration
    yield f"{measure}: {declaration.title}"
    yield ""
    yield from _field("Formula", declaration.formula)
    for param in declaration.params:
        value = measure.params[param.name]
        yield from _field("Parameter", f"{param.name}={value}: {param.help}")
    cutoff = {
        "none": "none: the whole list counts",
        "optional": "@k cuts the list at rank k; without it the whole list counts",
        "share": "@r is a point of recall from 0 to 1",
    }[declaration.cutoff]
    yield from _field("Cutoff", cutoff)
    better = "higher" if declaration.higher_is_better else "lower"
    yield from _field("Over queries", f"{declaration.combine}; {better} is better")
    yield from _field("Edge cases", declaration.edges)
    yield from _field("Elsewhere", declaration.differs)
    if declaration.aliases:
        yield from _field("Also called", ", ".join(declaration.aliases))
    words = conventions.as_dict()
    if not declaration.no_gold:
        del words["no_gold"]
    for name, word in words.items():
        yield from _field("Convention", f"{name}={word}: {HELP[name]}")


def _calculated(measure: Measure, calculation: Calculation, named: bool) -> Iterator[str]:
    if named:
        yield clean(calculation.run)
    yield from _table(_picked(calculation))
    yield from _missed(calculation)
    if calculation.ideal:
        yield ""
        yield "Ideal list"
        yield from _table(calculation.ideal[:_SHOWN])
        if (more := len(calculation.ideal) - _SHOWN) > 0:
            yield f"… {more} more"
    yield ""
    for name, value in calculation.numbers.items():
        yield f"{name} = {_exact(value)}"
    yield from calculation.remarks
    yield f"{measure} = {_exact(calculation.value)}"


def _side_by_side(
    measure: Measure, first: Calculation, second: Calculation, difference: float | None
) -> Iterator[str]:
    """Show what each item that counts in either list brought to each, the most telling first."""
    rank_of = [{row["item"]: row["rank"] for row in c.rows} for c in (first, second)]
    grade_of = {row["item"]: row["grade"] for c in (second, first) for row in c.rows}
    counted = {
        row["item"]: None for c in (first, second) for row in c.rows if row["rank"] in c.counted
    }
    brought = {item: (first.contribution(item), second.contribution(item)) for item in counted}
    rows = [
        [
            short(item, _ITEM_WIDTH),
            _shown(grade_of[item]),
            *(_shown(ranks.get(item)) for ranks in rank_of),
            *map(_shown, (one, other, other - one)),
        ]
        for item, (one, other) in sorted(
            brought.items(), key=lambda pair: (-abs(pair[1][1] - pair[1][0]), pair[0])
        )
    ]
    what = first.columns[-1] if first.columns else "counted"
    yield f"1 is {clean(first.run)}, 2 is {clean(second.run)}; {what} of each item"
    heads = ["item", "grade", "rank 1", "rank 2", f"{what} 1", "2", "2 − 1"]
    yield from plain_lines(heads, rows[:_MOST], 1)
    if len(rows) > _MOST:
        yield f"… {len(rows) - _MOST} more"
    for calculation in (first, second):
        yield from _missed(calculation, clean(calculation.run))
    yield ""
    names = dict.fromkeys([*first.numbers, *second.numbers])
    for name in names:
        one, other = first.numbers.get(name), second.numbers.get(name)
        yield f"{name}: 1 = {_exact(one)}, 2 = {_exact(other)}"
    for calculation, number in ((first, 1), (second, 2)):
        for remark in calculation.remarks:
            yield f"{number}: {remark}"
    yield f"{measure} 1 = {_exact(first.value)}"
    yield f"{measure} 2 = {_exact(second.value)}"
    yield f"2 − 1 = {_exact(difference)}"


def _picked(calculation: Calculation) -> list[Row]:
    """Pick the rows to show: the top of the list, and below it what counts."""
    top = [row for row in calculation.rows if row["rank"] <= _SHOWN]
    below = [
        row
        for row in calculation.rows
        if row["rank"] > _SHOWN and row["rank"] in calculation.counted
    ]
    return [*top, *below[: _MOST - len(top)]]


def _missed(calculation: Calculation, run: str = "") -> list[str]:
    """Name what should have been found, the highest grades first."""
    if not calculation.missed:
        return []
    named = [f"{short(row['item'], _ITEM_WIDTH)} ({row['grade']})" for row in calculation.missed]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    text = f"not there{f' in {run}' if run else ''}: {', '.join(named[:_SHOWN])}{more}"
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")


def _table(rows: list[Row]) -> list[str]:
    if not rows:
        return ["nothing was retrieved"]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    labels = 2 if "item" in keys else 1
    cells = [[short(_shown(row.get(key)), _ITEM_WIDTH) for key in keys] for row in rows]
    return plain_lines([clean(key) for key in keys], cells, labels)


def _columns(rows: list[Row]) -> list[str]:
    keys = dict.fromkeys(key for row in rows for key in row)
    return [key for key in keys if key not in ("rank", "item", "grade")]


def _field(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=label.ljust(_LABEL), subsequent_indent=" " * _LABEL
    )


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value)


def _exact(value: Any) -> str:
    return "left out" if value is None else repr(value)
