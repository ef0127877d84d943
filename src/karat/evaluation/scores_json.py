"""The JSON document of scores, as `karat eval --json` prints it and `-o FILE.json` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from karat.evaluation.remarks import has_few_queries
from karat.evaluation.reranking import available_rerankings
from karat.evaluation.scores import Scores
from karat.measures import parse
from karat.stats.summary import SUMMARY
from karat.version import __version__

_KEYS = ("value", "low", "high", "method", "sd", "median", "n", "left_out")


def document(
    scores: Sequence[Scores],
    groups: Sequence[pl.DataFrame | None] | None = None,
    *,
    per_query: bool = False,
    intervals: bool = True,
) -> dict[str, Any]:
    """Return the scores of some runs as plain data.

    A key is absent if the value was not requested, and null if the value is undefined. `groups`
    contains the result of `scores.by` for each run.
    """
    first = scores[0]
    plain: dict[str, Any] = {
        "karat": __version__,
        "conventions": first.conventions.as_dict(),
        "level": first.level,
        "runs": [
            _run(score, group, per_query=per_query, intervals=intervals)
            for score, group in zip(scores, groups or [None] * len(scores), strict=True)
        ],
    }
    if first.preset is not None:
        plain["preset"] = first.preset
    if first.matching is not None:
        plain["matching"] = first.matching
    if first.settings:
        plain["settings"] = first.settings.as_dict()
    if (clusters := first.cluster_counts) is not None:
        plain["cluster"] = asdict(clusters)
    if per_query and first.queries.width > 1:
        plain["queries"] = first.queries.to_dicts()
    return plain


def _run(
    scores: Scores, groups: pl.DataFrame | None, *, per_query: bool, intervals: bool
) -> dict[str, Any]:
    run: dict[str, Any] = {
        "name": scores.name,
        "measures": _measures(scores, scores.summary(intervals=intervals)),
        "left_out": scores.left_out,
        "noted": scores.noted,
        "counts": scores.table.counts,
    }
    if scores.load is not None:
        run["load"] = scores.load
    rerankings, problems = available_rerankings([scores])
    if scores.notes or problems:
        run["notes"] = [*scores.notes, *problems]
    if rerankings:
        run["reranking"] = rerankings[0].as_dict()
    if scores.delivered:
        run["delivered"] = {scores.label(name): mean for name, mean in scores.delivered.items()}
    if groups is not None:
        fields = group_fields(groups)
        run["groups"] = [
            {"by": dict(zip(fields, key, strict=True)), "measures": _measures(scores, part)}
            for key, part in group_parts(groups)
        ]
    if per_query:
        labels = {name: scores.label(name) for name in scores}
        run["per_query"] = scores.per_query.rename(labels).to_dicts()
        weights, holes = scores.table.weights, scores.table.holes
        if weights.width:
            run["weights"] = weights.rename(labels, strict=False).to_dict(as_series=False)
        if holes.width:
            run["holes"] = holes.to_dict(as_series=False)
    return run


def group_fields(groups: pl.DataFrame) -> list[str]:
    """Return the fields that define the groups: the columns that are not part of a summary."""
    return [name for name in groups.columns if name not in (*SUMMARY, "small")]


def group_parts(groups: pl.DataFrame) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
    """Return the labels of each group and its rows, one row per measure."""
    fields = group_fields(groups)
    return list(groups.partition_by(fields, as_dict=True, maintain_order=True).items())


def _measures(scores: Scores, summary: pl.DataFrame) -> dict[str, Any]:
    entries = {}
    for row in summary.iter_rows(named=True):
        measure, n = row.pop("measure"), row["n"]
        entry = {key: row[key] for key in _KEYS if key in row}
        if row["judged"] is not None:
            entry["judged"] = row["judged"]
        if row["bound_high"] is not None:
            entry["bounds"] = {"low": row["bound_low"], "high": row["bound_high"]}
        if row.get("small"):
            entry["small"] = True
        if has_few_queries(measure, n):
            entry["note"] = f"{parse(measure).declaration.combine} of {n} samples"
        entries[scores.label(measure)] = entry
    return entries
