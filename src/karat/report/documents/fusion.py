"""The documents of a fusion: what was fused, and what tuning its parameters gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.data.run import Run
from karat.errors import counted
from karat.evaluation.fusion_tuning import FusionTuning, format_parameters
from karat.report.document_model import Cell, Column, Document, Headline, Section, Table


def fusion_counts(runs: Mapping[str, Run], fused: Run) -> dict[str, Any]:
    """Return how many queries and results each run has, as plain data."""
    all_ids = set(fused.query_ids)
    return {
        "settings": fused.settings,
        "runs": [
            {
                "name": name,
                "queries": run.query_ids.len(),
                "missing": len(all_ids.difference(run.query_ids)),
                "results": run.results.height,
            }
            for name, run in runs.items()
        ],
        "fused": {
            "name": fused.name,
            "queries": fused.query_ids.len(),
            "results": fused.results.height,
        },
    }


def fusion_document(runs: Mapping[str, Run], fused: Run) -> Document:
    """Return the numbers of queries and results of each run and of the fused run."""
    counts = fusion_counts(runs, fused)
    method = {name: value for name, value in fused.settings.items() if name in _SHOWN}
    settings = "".join(f", {_shown(name, value)}" for name, value in method.items())
    result = counts["fused"]
    headline = Headline(
        f"{fused.settings['method']}{settings}: {counted(result['queries'], 'query')}, "
        f"{counted(result['results'], 'result')} from {counted(len(runs), 'run')}"
    )
    columns = [
        Column("run", "left", is_flexible=True),
        Column("queries"),
        Column("missing"),
        Column("results"),
    ]
    rows = [
        [
            Cell(run["name"]),
            Cell(f"{run['queries']:,}"),
            Cell(f"{run['missing']:,}", tone="caution" if run["missing"] else "neutral"),
            Cell(f"{run['results']:,}"),
        ]
        for run in counts["runs"]
    ]
    rows.append(
        [
            Cell(result["name"]),
            Cell(f"{result['queries']:,}"),
            Cell("0"),
            Cell(f"{result['results']:,}"),
        ]
    )
    return Document("Fusion", headline, [Section([Table(columns, rows)])])


_SHOWN = ("k", "sigma", "phi", "gamma", "normalization", "weights", "depth")
"""The settings of a fused run that the headline shows."""


def _shown(name: str, value: Any) -> str:
    return f"{name} {value}" if isinstance(value, str) else format_parameters({name: value})


def tuning_document(tuning: FusionTuning) -> Document:
    """Return the tuned, cross-validated and default values side by side, then the folds."""
    measure = tuning.measure
    method = tuning.run.settings["method"]
    headline = Headline(
        f"{method} tuned for {measure} on {counted(tuning.n_queries, 'query')}: "
        f"{format_parameters(tuning.parameters)}"
    )
    values = [
        (f"{method}, tuned", format_parameters(tuning.parameters), tuning.tuned),
        (f"{method}, cross-validated", "chosen per fold", tuning.cross_validated),
        (f"{method}, default", format_parameters(tuning.default_parameters), tuning.default),
        *((name, "this run alone", value) for name, value in tuning.single.items()),
    ]
    table = Table(
        [Column("", "left", is_flexible=True), Column("parameters", "left"), Column(measure.name)],
        [[Cell(label), Cell(text), Cell(measure.format(value))] for label, text, value in values],
        n_labels=2,
    )
    folds = Table(
        [
            Column("fold", "left"),
            Column("queries"),
            Column("chosen on the other folds", "left"),
            Column(measure.name),
            Column("default"),
        ],
        [
            [
                Cell(str(row["fold"])),
                Cell(f"{row['queries']:,}"),
                Cell(format_parameters({name: row[name] for name in tuning.parameters})),
                Cell(measure.format(row["value"])),
                Cell(measure.format(row["default"])),
            ]
            for row in tuning.folds.iter_rows(named=True)
        ],
    )
    notes = [
        "The tuned value is optimistic: its parameters were chosen on the same queries. On other "
        "queries, expect the cross-validated value.",
        *_comparison_notes(tuning),
    ]
    details = [
        f"{len(tuning.grid)} settings were tried; {len(tuning.folds)} folds with seed "
        f"{tuning.seed}; each query is scored once with parameters chosen without its fold."
    ]
    return Document(
        "Tuned fusion",
        headline,
        [Section([table]), Section([folds], "Folds")],
        notes=notes,
        details=details,
    )


def _comparison_notes(tuning: FusionTuning) -> list[str]:
    """Return what the cross-validated value is not better than."""
    measure, reached = tuning.measure, tuning.cross_validated
    notes = []
    if not measure.is_better(reached, tuning.default):
        notes.append("Tuning does not improve on the defaults on queries that it has not seen.")
    better = [
        name
        for name, value in tuning.single.items()
        if value is not None and not measure.is_better(reached, value)
    ]
    if better:
        notes.append(f"The fused run is not better than {' and '.join(better)} alone.")
    return notes
