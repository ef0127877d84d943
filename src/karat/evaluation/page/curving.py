"""How runs do at every depth: values by k, and precision by recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from karat.evaluation.opened import Opened
from karat.measures import Measure, parse
from karat.measures.rank.interpolated import ELEVEN_POINTS

CURVED = {
    "rank": ("R", "P", "nDCG"),
    "span": ("span.recall", "span.precision", "span.iou"),
    "evidence": ("evidence.recall", "evidence.P", "evidence.nDCG"),
}
"""What is drawn by k, for each kind of gold."""
LEAST_DEPTH, MOST_DEPTH = 10, 1000
_DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)

_CURVES = {"run": pl.String, "measure": pl.String, "k": pl.Int64, "value": pl.Float64}
_POINTS = {"run": pl.String, "recall": pl.Float64, "precision": pl.Float64}


def curves(runs: Mapping[str, Opened]) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """Return values by k (run, measure, k, value) and precision by recall; None where none is.

    Each run is scored once more, by all of these measures at the same time.
    """
    longest = max((_longest(opened) for opened in runs.values()), default=0)
    by_depth, by_recall = [], []
    for name, opened in runs.items():
        deep, recalling = _by_depth(opened, longest), _by_recall(opened)
        if not deep:
            continue
        table = opened.table([*deep, *recalling])
        by_depth += [(name, whole(m).name, m.cutoff, table.value(m)) for m in deep]
        by_recall += [(name, m.cutoff, table.value(m)) for m in recalling]
    drawn = pl.DataFrame(by_depth, _CURVES, orient="row").drop_nulls()
    points = pl.DataFrame(by_recall, _POINTS, orient="row").drop_nulls()
    return (drawn if drawn.height else None), (points if points.height else None)


def whole(measure: Measure) -> Measure:
    """Return a measure without its cutoff."""
    return Measure(measure.declaration, None, measure.params)


def depths(longest: int, asked: Sequence[int] = ()) -> list[int]:
    """Return the ranks to measure at: evenly by their logarithm, and those that were asked for.

    >>> depths(25), depths(4, [7])
    ([1, 2, 3, 5, 10, 20], [1, 2, 3, 5, 7, 10])
    """
    most = min(max(longest, LEAST_DEPTH), MOST_DEPTH)
    return sorted(k for k in {*_DEPTHS, *asked} if k <= most)


def _longest(opened: Opened) -> int:
    lengths = opened.run.segments.lengths
    return int(lengths.max()) if len(lengths) else 0


def _by_depth(opened: Opened, longest: int) -> list[Measure]:
    """Return what to measure at which depths; parameters are those that were asked for, if any."""
    wanted = []
    for family, names in CURVED.items():
        if family not in opened.families:
            continue
        for name in names:
            asked = [m for m in opened.plan.measures if m.declaration.name == name]
            at = depths(longest, [m.cutoff for m in asked if isinstance(m.cutoff, int)])
            kinds = dict.fromkeys(whole(m) for m in asked or [parse(name)])
            wanted += [Measure(m.declaration, k, m.params) for m in kinds for k in at]
    return wanted


def _by_recall(opened: Opened) -> list[Measure]:
    if "rank" not in opened.families:
        return []
    asked = [m for m in opened.plan.measures if m.declaration.name == "IPrec"]
    first = (asked or [parse("IPrec@0.0")])[0]
    return [Measure(first.declaration, point, first.params) for point in ELEVEN_POINTS]
