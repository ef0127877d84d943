"""What the charts of runs are drawn from."""

from __future__ import annotations

from collections.abc import Sequence

from karat.evaluation.opened import Opened
from karat.evaluation.page.curving import curves
from karat.evaluation.page.outcomes import first_of_gold
from karat.evaluation.page.spending import costs, latencies, tradeoffs
from karat.evaluation.scores import Scores
from karat.report.page.model import Picture


def picture(scores: Sequence[Scores], opened: Sequence[Opened | None]) -> Picture:
    """Return what charts show of runs; only runs whose lists are at hand have anything to show."""
    runs = {score.name: one for score, one in zip(scores, opened, strict=True) if one is not None}
    by_depth, by_recall = curves(runs)
    return Picture(
        curves=by_depth,
        precision_recall=by_recall,
        latencies=latencies(runs),
        costs=costs(runs),
        tradeoffs=tradeoffs(runs, first_of_gold(scores[0].table.measures)),
    )
