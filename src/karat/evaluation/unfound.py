"""What gold holds and no run found, at whatever rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from karat.evaluation.opened import Opened
from karat.match.evidence import Found
from karat.match.level import documents
from karat.match.spans import Coverage, wanted_spans
from karat.match.stretches import overlapping

_KEY = ["query_id", "item_id"]
_NAME = {"query_id": pl.String, "piece": pl.String}


@dataclass(frozen=True)
class Unfound:
    """Pieces of gold of one kind, and which of them no run found."""

    what: str
    wanted: int
    left: pl.DataFrame
    """(query_id, piece): what each is called, sorted."""


def unfound(opened: Sequence[Opened]) -> list[Unfound]:
    """Return for each kind of gold what every run missed; all were scored against one gold."""
    ways = {"rank": _items, "span": _spans, "evidence": _evidence}
    return [way(opened) for family, way in ways.items() if family in opened[0].families]


def _items(opened: Sequence[Opened]) -> Unfound:
    plan, gold = opened[0].plan, opened[0].gold
    rel = next((m.params["rel"] for m in plan.of_family("rank") if "rel" in m.params), 1)
    wanted = gold.judgments.filter(pl.col("grade") >= rel).select(_KEY).unique()
    lists = [documents(each.run) if plan.level == "doc" else each.run for each in opened]
    found = pl.concat([run.results.select(_KEY) for run in lists if run.results.height] or [wanted])
    left = wanted.join(found, on=_KEY, how="anti") if found is not wanted else wanted
    named = left.select("query_id", piece="item_id").sort("query_id", "piece")
    return Unfound("relevant item", wanted.height, named)


def _spans(opened: Sequence[Opened]) -> Unfound:
    spans = wanted_spans(opened[0].gold)
    touched = np.zeros(spans.height, np.bool_)
    for each in opened:
        coverage: Coverage = each.readings["span"].data  # its spans are the rows of gold, in order
        touched[overlapping(coverage.items, coverage.spans)[1]] = True
    name = pl.format("{}[{}:{}]", "doc_id", "start", "end")
    held = spans.select("query_id", piece=name, empty=pl.col("start") == pl.col("end"))
    pieces = held.with_columns(pl.Series("touched", touched)).filter(~pl.col("empty"))
    distinct = pieces.unique(["query_id", "piece"])
    left = distinct.filter(~pl.col("touched")).select("query_id", "piece")
    return Unfound("span", distinct.height, left.sort("query_id", "piece"))


def _evidence(opened: Sequence[Opened]) -> Unfound:
    founds: list[Found] = [each.readings["evidence"].data for each in opened]
    first, query_ids = founds[0], opened[0].session.prepared.query_ids
    covered = np.concatenate([found.covering.evidence for found in founds])
    left = np.setdiff1d(first.covering.counted, covered).tolist()
    rows = [(query_ids[int(first.evidence.query[at])], first.evidence.text[at]) for at in left]
    frame = pl.DataFrame(rows, schema=_NAME, orient="row")
    return Unfound("evidence", first.covering.counted.size, frame.sort("query_id", "piece"))
