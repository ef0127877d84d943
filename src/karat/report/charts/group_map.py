"""Groups of queries by measure, as a map: where a run does worse than over all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from karat.errors import counted
from karat.markup import shown
from karat.measures import parse
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import COLOURS, inline_data, join_names, legend, tooltips
from karat.report.sheet import Sheet
from karat.report.tables import format_value, format_with_interval, measure_label
from karat.stats.groups import FEW

MAX_GROUPS = 50
"""Of more groups, those with the most queries are drawn."""
_FULL_COLOUR = 0.5
"""A group that is so much better or worse than all queries has the full colour."""
_BETTER, _WORSE = "better", "worse"
_MAX_NAMED = 3
_LABEL_LENGTH, _MIN_NAME_LENGTH = 28, 8


def groups(
    sheet: Sheet, measures: Sequence[str], at: int = 1, *, named: bool = False
) -> TitledChart | None:
    """Draw some measures of the groups of a run; `named` says the run in the title."""
    cells = [cell for cell in _cells(sheet) if cell["measure"] in measures]
    if not cells:
        return None
    fields = ", ".join(sheet.group_fields)
    names = list(dict.fromkeys(cell["group"] for cell in cells))
    kept = _largest_groups(cells, names)
    return TitledChart(
        f"groups-{at}",
        "groups",
        f"Groups by {fields}" + (f", {sheet.name}" if named else ""),
        _caption(cells, names, fields, len(kept)),
        _chart([cell for cell in cells if cell["group"] in kept], kept),
    )


def _cells(sheet: Sheet) -> list[dict[str, Any]]:
    """Return a row a group and measure that has a value."""
    if sheet.groups is None:
        return []
    overall = dict(sheet.summary.select("measure", "value").iter_rows())
    fields = sheet.group_fields
    parts = sheet.groups.partition_by(fields, as_dict=True, maintain_order=True)
    labels = _unique_labels([_label(key, part["n"]) for key, part in parts.items()])
    return [
        {
            "group": name,
            "names": " · ".join(_names(key)),
            "measure": row["measure"],
            "value": format_value(row["value"], row["measure"]) + ("*" if row["small"] else ""),
            "shown": (told := format_with_interval(row)),
            "ends": told.partition(" ")[2],
            "n": row["n"],
            **_compared_with_all(row["measure"], row["value"], overall[row["measure"]]),
        }
        for name, (key, part) in zip(labels, parts.items(), strict=True)
        for row in part.iter_rows(named=True)
        if row["value"] is not None
    ]


def _label(key: Sequence[Any], sizes: pl.Series) -> str:
    most = max(_MIN_NAME_LENGTH, _LABEL_LENGTH // len(key))
    parts = [name if len(name) <= most else f"{name[: most - 1]}…" for name in _names(key)]
    return f"{' · '.join(parts)} ({max(sizes):,})"


def _names(key: Sequence[Any]) -> list[str]:
    # Rows are sorted by name in an expression, in which Vega cannot read every character.
    return ["–" if value is None else shown(str(value)) for value in key]


def _unique_labels(labels: Sequence[str]) -> list[str]:
    """Return labels of which no two are alike: two groups never share a row."""
    seen: dict[str, int] = {}
    found = []
    for name in labels:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return found if len(set(found)) == len(found) else _unique_labels(found)


def _compared_with_all(measure: str, value: float, overall: float | None) -> dict[str, Any]:
    """Return on which side of the value over all queries a group lies, and how far from it."""
    # A sum over some queries has nothing to be held against.
    if not overall or parse(measure).declaration.combine == "sum":
        return {"side": _BETTER, "far": 0.0, "apart": "–"}
    apart = (value - overall) / abs(overall)
    gained = apart if parse(measure).declaration.higher_is_better else -apart
    return {
        "side": _BETTER if gained >= 0 else _WORSE,
        "far": min(abs(apart), _FULL_COLOUR),
        "apart": f"{apart:+.0%}",
    }


def _largest_groups(cells: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the groups to draw, in their order."""
    sizes: dict[str, int] = dict.fromkeys(names, 0)
    for cell in cells:
        sizes[cell["group"]] = max(sizes[cell["group"]], cell["n"])
    largest = set(sorted(names, key=lambda name: -sizes[name])[:MAX_GROUPS])
    return [name for name in names if name in largest]


def _chart(cells: list[dict[str, Any]], names: list[str]) -> Any:
    import altair as alt

    between = any(cell["ends"] for cell in cells)
    measures = list(dict.fromkeys(cell["measure"] for cell in cells))
    titles = {measure: measure_label(measure) for measure in measures}
    data = [cell | {"measure": titles[cell["measure"]]} for cell in cells]
    base = alt.Chart(inline_data(data)).encode(
        x=alt.X(
            field="measure",
            type="nominal",
            sort=list(titles.values()),
            title=None,
            axis=alt.Axis(orient="top", labelAngle=0, labelLimit=120, domain=False, ticks=False),
        ),
        y=alt.Y(
            field="group",
            type="nominal",
            sort=names,
            title=None,
            axis=alt.Axis(labelLimit=220, domain=False, ticks=False),
        ),
        tooltip=tooltips(
            names="group",
            measure="measure",
            shown="value",
            apart="against all queries",
            n="queries",
        ),
    )
    sides = alt.Color(
        field="side",
        type="nominal",
        scale=alt.Scale(domain=[_BETTER, _WORSE], range=[COLOURS[0], COLOURS[1]]),
        legend=legend([_BETTER, _WORSE]),
    )
    # Never so full that the text on it could not be read, on a light page or a dark one.
    strength = alt.Opacity(
        field="far",
        type="quantitative",
        scale=alt.Scale(domain=[0, _FULL_COLOUR], range=[0.04, 0.6]),
        legend=None,
    )
    squares = base.mark_rect(cornerRadius=3).encode(color=sides, opacity=strength)
    values = base.mark_text(fontSize=12, dy=-6 if between else 0)
    layers = [squares, values.encode(text=alt.Text(field="value", type="nominal"))]
    if between:
        ends = base.mark_text(fontSize=9, dy=8).encode(text=alt.Text(field="ends", type="nominal"))
        layers.append(ends)
    return alt.layer(*layers).properties(height=max(60, (36 if between else 26) * len(names)))


def _caption(cells: Sequence[dict[str, Any]], names: Sequence[str], fields: str, drawn: int) -> str:
    first = cells[0]["measure"]
    own = [cell for cell in cells if cell["measure"] == first and cell["side"] == _WORSE]
    worst = sorted(own, key=lambda cell: (-cell["far"], cell["group"]))[:_MAX_NAMED]
    said = [f"{cell['group']} with {cell['shown']}" for cell in worst]
    cut = "" if drawn == len(names) else f" The {drawn} with the most queries are drawn."
    small = f" * fewer than {FEW} queries." if any("*" in c["value"] for c in cells) else ""
    below = f" Worst by {first}: {join_names(said)}." if said else ""
    return (
        f"{counted(len(names), 'group')} by {fields}, with the number of queries: blue is better "
        f"than over all queries, orange is worse, in full colour by {_FULL_COLOUR:.0%} or more.{small}"
        f"{below}{cut}"
    )
