"""Small bars that stand beside numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.markup import Markup, tag
from karat.report.tables import declaration


def full(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the value that a full bar of a measure stands for: 1, or the most of an amount."""
    if declaration(rows[0]["measure"]).bounded:
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
