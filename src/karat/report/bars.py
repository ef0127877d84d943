"""Values drawn: a bar of block characters from 0 to 1, with the interval shaded in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.report.sheet import Sheet
from karat.report.tables import declaration_of, measure_named

CERTAIN, BELOW_VALUE, ABOVE_VALUE, EMPTY = "█", "▓", "░", "·"
_EIGHTHS = " ▏▎▍▌▋▊▉"
CHARACTERS = CERTAIN + BELOW_VALUE + ABOVE_VALUE + EMPTY + _EIGHTHS.strip()

LEGEND = "bars: from 0 to 1, shaded where the interval lies"


@dataclass(frozen=True)
class ValueBar:
    """How a terminal draws a value: along which bar, and whether it is the best of its row."""

    ends: tuple[float, float, float] | None
    """The low end of its interval, the value, the high end; None where 0 to 1 says nothing."""
    best: bool

    def bar(self, width: int) -> str:
        """Return the bar: solid up to the low end, then shaded; the value ends to an eighth.

        >>> Drawn((0.25, 0.5625, 0.875), False).bar(8)
        '██▓▓▌░░·'
        """
        if self.ends is None:
            return " " * width
        low, value, high = (min(max(end, 0.0), 1.0) * width for end in self.ends)
        eighths = round(8 * value)
        full, part = divmod(eighths, 8)
        cells = [CERTAIN if at + 0.5 <= low else BELOW_VALUE for at in range(full)]
        cells += [_EIGHTHS[part]] * bool(part)
        cells += [ABOVE_VALUE if at + 0.5 <= high else EMPTY for at in range(len(cells), width)]
        return "".join(cells)


ValueBars = Mapping[tuple[int, int], ValueBar]
"""By row and column of a table."""


def value_bars(sheets: Sequence[Sheet]) -> ValueBars:
    """Return how the values in the table of runs are drawn: a row a measure, a column a run."""
    drawing = {}
    rows = zip(*(sheet.summary.iter_rows(named=True) for sheet in sheets), strict=True)
    for at, same in enumerate(rows):
        values = [row["value"] for row in same]
        leader = measure_named(same[0]["measure"]).best(values) if len(set(values)) > 1 else None
        for column, row in enumerate(same, start=1):
            leads = leader is not None and row["value"] == leader
            drawing[at, column] = ValueBar(_ends(row), leads)
    return drawing


def group_value_bars(sheet: Sheet) -> ValueBars:
    """Return how the values of groups are drawn: a row a group, a column a measure."""
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
