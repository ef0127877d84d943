"""A heat map of groups of queries by measure: where a run is better or worse than overall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from karat.errors import counted
from karat.markup import shown
from karat.measures import parse
from karat.report.cells import format_value, format_with_interval, readable, table_label
from karat.report.charts.chart import TitledChart
from karat.report.charts.theme import Palette, inline_data, join_names, legend, tooltips
from karat.report.sheet import Sheet
from karat.stats.groups import FEW

MAX_GROUPS = 50
"""If there are more groups, those with the most queries are drawn."""
_FULL_COLOUR = 0.5
"""The relative difference from all queries at which a group has the full colour."""
_BETTER, _WORSE = "better", "worse"
_MAX_NAMED = 3
_LABEL_LENGTH, _MIN_NAME_LENGTH = 28, 8


def groups(
    sheet: Sheet, measures: Sequence[str], palette: Palette, at: int = 1, *, named: bool = False
) -> TitledChart | None:
    """Return the heat map of a run; with `named`, its title contains the name of the run."""
    cells = [cell for cell in _cells(sheet) if cell["measure"] in measures]
    if not cells:
        return None
    fields = ", ".join(sheet.group_fields)
    names = list(dict.fromkeys(cell["group"] for cell in cells))
    largest = _largest_groups(cells, names)
    return TitledChart(
        id=f"groups-{at}",
        title=f"Groups by {fields}, {sheet.name}" if named else f"Groups by {fields}",
        readout=_readout(cells, names, fields, len(largest)),
        chart=_chart([cell for cell in cells if cell["group"] in largest], largest, palette),
    )


def _cells(sheet: Sheet) -> list[dict[str, Any]]:
    """Return one cell per group and measure that has a value."""
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
            "value": format_value(readable(row)["value"], row["measure"])
            + ("*" if row["small"] else ""),
            "shown": format_with_interval(readable(row)),
            "n": row["n"],
            **_compared_with_all(row["measure"], row["value"], overall[row["measure"]]),
        }
        for name, (key, part) in zip(labels, parts.items(), strict=True)
        for row in part.iter_rows(named=True)
        if row["value"] is not None
    ]


def _label(key: Sequence[Any], sizes: pl.Series) -> str:
    length = max(_MIN_NAME_LENGTH, _LABEL_LENGTH // len(key))
    parts = [name if len(name) <= length else f"{name[: length - 1]}…" for name in _names(key)]
    return f"{' · '.join(parts)} ({max(sizes):,})"


def _names(key: Sequence[Any]) -> list[str]:
    # Vega sorts the rows with an expression, which cannot contain every character.
    return ["–" if value is None else shown(str(value)) for value in key]


def _unique_labels(labels: Sequence[str]) -> list[str]:
    """Return unique labels, so that two groups never share a row."""
    seen: dict[str, int] = {}
    unique = []
    for name in labels:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return unique if len(set(unique)) == len(unique) else _unique_labels(unique)


def _compared_with_all(measure: str, value: float, overall: float | None) -> dict[str, Any]:
    """Return whether a group is better or worse than all queries, and by how much."""
    # A sum over a group is not comparable with the sum over all queries.
    if not overall or parse(measure).declaration.combine == "sum":
        return {"side": _BETTER, "far": 0.0, "apart": "–"}
    change = (value - overall) / abs(overall)
    gain = change if parse(measure).declaration.higher_is_better else -change
    return {
        "side": _BETTER if gain >= 0 else _WORSE,
        "far": min(abs(change), _FULL_COLOUR),
        "apart": f"{change:+.0%}",
    }


def _largest_groups(cells: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the largest groups, in their original order."""
    sizes: dict[str, int] = dict.fromkeys(names, 0)
    for cell in cells:
        sizes[cell["group"]] = max(sizes[cell["group"]], cell["n"])
    largest = set(sorted(names, key=lambda name: -sizes[name])[:MAX_GROUPS])
    return [name for name in names if name in largest]


def _chart(cells: list[dict[str, Any]], names: list[str], palette: Palette) -> Any:
    import altair as alt

    measures = list(dict.fromkeys(cell["measure"] for cell in cells))
    titles = {measure: table_label(measure) for measure in measures}
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
            apart="compared with all queries",
            n="queries",
        ),
    )
    sides = alt.Color(
        field="side",
        type="nominal",
        scale=alt.Scale(
            domain=[_BETTER, _WORSE], range=[palette.colour("better"), palette.colour("worse")]
        ),
        legend=legend([_BETTER, _WORSE]),
    )
    # Never fully opaque, so that the text stays readable on a light or dark page.
    strength = alt.Opacity(
        field="far",
        type="quantitative",
        scale=alt.Scale(domain=[0, _FULL_COLOUR], range=[0.04, 0.6]),
        legend=None,
    )
    squares = base.mark_rect(cornerRadius=3).encode(color=sides, opacity=strength)
    values = base.mark_text(fontSize=11).encode(text=alt.Text(field="value", type="nominal"))
    return alt.layer(squares, values).properties(height=max(60, 26 * len(names)))


def _readout(cells: Sequence[dict[str, Any]], names: Sequence[str], fields: str, drawn: int) -> str:
    first = cells[0]["measure"]
    worse = [cell for cell in cells if cell["measure"] == first and cell["side"] == _WORSE]
    worst = sorted(worse, key=lambda cell: (-cell["far"], cell["group"]))[:_MAX_NAMED]
    sentences = [
        f"{counted(len(names), 'group')} by {fields}, with the number of queries in parentheses.",
        "Green is better than the value over all queries, red is worse; the colour saturates at a "
        f"difference of {_FULL_COLOUR:.0%}.",
    ]
    if any("*" in cell["value"] for cell in cells):
        sentences.append(f"*: fewer than {FEW} queries.")
    if worst:
        groups = [f"{cell['group']} with {cell['shown']}" for cell in worst]
        sentences.append(f"Worst by {first}: {join_names(groups)}.")
    if drawn < len(names):
        sentences.append(f"Only the {drawn} groups with the most queries are drawn.")
    return " ".join(sentences)
