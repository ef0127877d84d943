"""Values as bars of block characters from 0 to 1; the interval is shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.report.sheet import Sheet
from karat.report.tables import declaration_of, measure_named

CERTAIN, BELOW_VALUE, ABOVE_VALUE, EMPTY = "█", "▓", "░", "·"
_EIGHTHS = " ▏▎▍▌▋▊▉"
CHARACTERS = CERTAIN + BELOW_VALUE + ABOVE_VALUE + EMPTY + _EIGHTHS.strip()

LEGEND = "bars: 0 to 1, the confidence interval is shaded"


@dataclass(frozen=True)
class ValueBar:
    """How a terminal shows a value: its bar, and whether it is the best in its row."""

    ends: tuple[float, float, float] | None
    """Lower end of the interval, value, upper end; None if values are not between 0 and 1."""
    best: bool

    def bar(self, width: int) -> str:
        """Return the bar: solid up to the lower end of the interval, then shaded.

        The value is drawn to an eighth of a character.

        >>> ValueBar((0.25, 0.5625, 0.875), False).bar(8)
        '██▓▓▌░░·'
        """
        if self.ends is None:
            return " " * width
        low, value, high = (min(max(end, 0.0), 1.0) * width for end in self.ends)
        eighths = round(8 * value)
        full, part = divmod(eighths, 8)
        cells = [CERTAIN if at + 0.5 <= low else BELOW_VALUE for at in range(full)]
        if part:
            cells.append(_EIGHTHS[part])
        cells += [ABOVE_VALUE if at + 0.5 <= high else EMPTY for at in range(len(cells), width)]
        return "".join(cells)


ValueBars = Mapping[tuple[int, int], ValueBar]
"""The bars of a table, by row and column."""


def value_bars(sheets: Sequence[Sheet]) -> ValueBars:
    """Return the bars of the table of values: one row per measure, one column per run."""
    bars = {}
    rows = zip(*(sheet.summary.iter_rows(named=True) for sheet in sheets), strict=True)
    for at, measure_rows in enumerate(rows):
        values = [row["value"] for row in measure_rows]
        leader = (
            measure_named(measure_rows[0]["measure"]).best(values) if len(set(values)) > 1 else None
        )
        for column, row in enumerate(measure_rows, start=1):
            leads = leader is not None and row["value"] == leader
            bars[at, column] = ValueBar(_ends(row), leads)
    return bars


def group_value_bars(sheet: Sheet) -> ValueBars:
    """Return the bars of a table of groups: one row per group, one column per measure."""
    return {
        (at, column): ValueBar(_ends(row), best=False)
        for at, (_, part) in enumerate(sheet.group_parts)
        for column, row in enumerate(part.iter_rows(named=True), start=len(sheet.group_fields))
    }


def _ends(row: Mapping[str, Any]) -> tuple[float, float, float] | None:
    value = row["value"]
    if value is None or not declaration_of(row["measure"]).bounded:
        return None
    low, high = (value if row.get(end) is None else row[end] for end in ("low", "high"))
    return low, value, high
