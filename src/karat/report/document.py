"""The JSON document: what `--json` prints and `-o FILE.json` holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from karat.format import to_json
from karat.measures import parse
from karat.report.sheet import Sheet, left_out, noted, rests_on_few
from karat.report.tables import group_fields, group_parts
from karat.version import __version__

_KEYS = ("value", "low", "high", "method", "sd", "median", "n", "left_out")


def document(sheets: Sequence[Sheet]) -> dict[str, Any]:
    """Return the numbers as plain data; absent: not asked; null: undefined."""
    whole: dict[str, Any] = {
        "karat": __version__,
        "conventions": sheets[0].conventions.as_dict(),
        "level": sheets[0].level,
        "runs": [_run(sheet) for sheet in sheets],
    }
    if sheets[0].preset is not None:
        whole["preset"] = sheets[0].preset
    if sheets[0].matching is not None:
        whole["matching"] = sheets[0].matching
    if sheets[0].settings:
        whole["settings"] = sheets[0].settings.as_dict()
    if sheets[0].show_queries and sheets[0].queries.width > 1:
        whole["queries"] = sheets[0].queries.to_dicts()
    return whole


def print_document(sheets: Sequence[Sheet]) -> None:
    """Print the document to standard output."""
    print(to_json(document(sheets)))


def _run(sheet: Sheet) -> dict[str, Any]:
    run: dict[str, Any] = {
        "name": sheet.name,
        "measures": _measures(sheet, sheet.summary),
        "left_out": left_out(sheet.counts, sheet.conventions),
        "noted": noted(sheet.counts, sheet.conventions),
        "counts": sheet.counts,
    }
    if sheet.load is not None:
        run["load"] = sheet.load
    if sheet.notes:
        run["notes"] = list(sheet.notes)
    if sheet.delivered:
        run["delivered"] = {sheet.label(name): mean for name, mean in sheet.delivered.items()}
    if sheet.groups is not None:
        fields = group_fields(sheet)
        run["groups"] = [
            {"by": dict(zip(fields, key, strict=True)), "measures": _measures(sheet, part)}
            for key, part in group_parts(sheet)
        ]
    if sheet.show_queries:
        labels = {name: sheet.label(name) for name in sheet.summary["measure"]}
        run["per_query"] = sheet.per_query.rename(labels).to_dicts()
        if sheet.weights.width:
            weights = sheet.weights.rename(labels, strict=False)
            run["weights"] = weights.to_dict(as_series=False)
        if sheet.holes.width:
            run["holes"] = sheet.holes.to_dict(as_series=False)
    return run


def _measures(sheet: Sheet, summary: pl.DataFrame) -> dict[str, Any]:
    whole = {}
    for row in summary.iter_rows(named=True):
        measure, n = row.pop("measure"), row["n"]
        entry = {key: row[key] for key in _KEYS if key in row}
        if row["judged"] is not None:
            entry["judged"] = row["judged"]
        if row["bound_high"] is not None:
            entry["bounds"] = {"low": row["bound_low"], "high": row["bound_high"]}
        if row.get("small"):
            entry["small"] = True
        if rests_on_few(measure, n):
            entry["note"] = f"{parse(measure).declaration.combine} of {n} samples"
        whole[sheet.label(measure)] = entry
    return whole
