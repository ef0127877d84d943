"""Telling from the first queries what a whole run would take."""

from __future__ import annotations

from collections.abc import Sequence

from karat.data.native_run import RunLine, run_of_lines
from karat.errors import InputError
from karat.evaluation.spending import TOTAL, spending
from karat.live.exchange import Pace
from karat.report.estimate import Each, Estimate


def estimate(lines: Sequence[RunLine], total: int, pace: Pace) -> Estimate:
    """Return what asking `total` questions at a pace would take, if they are like the first.

    Each round and each question that warms up takes as much as the first: the run tells of the
    first round only, but all are paid for.
    """
    if not lines:
        raise InputError("no query was asked", hint="an estimate needs at least one")
    spent = spending(run_of_lines(lines))
    asked = total * pace.repeat + pace.warmup
    ms = next((each.mean for each in spent.times if each.stage == TOTAL), None)
    told = {} if spent.costs is None else spent.costs.whole.numbers()

    def mean(name: str) -> float | None:
        return None if told.get(name) is None else told[name] / len(lines)

    return Estimate(
        queries=total,
        asked=asked,
        based_on=len(lines),
        failed=sum(spent.failed.values()),
        jobs=pace.jobs,
        rate=pace.rate,
        seconds=None if ms is None else _seconds(ms / 1000, asked, pace),
        unpriced=told.get("unpriced", 0),
        each=Each(ms, mean("prompt_tokens"), mean("completion_tokens"), mean("usd")),
    )


def _seconds(each: float, asked: int, pace: Pace) -> float:
    """Return how long it takes at a pace: the rounds of a question follow each other."""
    together = min(pace.jobs, max(asked // pace.repeat, 1))
    busy = each * asked / together
    return busy if pace.rate is None else max(busy, asked / pace.rate)
