"""Telling from the first queries what a whole run would take."""

from __future__ import annotations

from collections.abc import Sequence

from karat.data.native_run import RunLine, run_of_lines
from karat.errors import InputError
from karat.evaluation.spending import TOTAL, spending
from karat.live.options import RunOptions
from karat.report.estimate import Each, Estimate


def estimate(lines: Sequence[RunLine], total: int, options: RunOptions) -> Estimate:
    """Return what asking `total` queries with these options would take, if they are like the first.

    Each round and each question that warms up takes as much as the first: the run tells of the
    first round only, but all are paid for.
    """
    if not lines:
        raise InputError("no query was asked", hint="an estimate needs at least one")
    spent = spending(run_of_lines(lines))
    asked = total * options.repeat + options.warmup
    ms = next((each.mean for each in spent.times if each.stage == TOTAL), None)
    told = {} if spent.costs is None else spent.costs.whole.numbers()

    def mean(name: str) -> float | None:
        return None if told.get(name) is None else told[name] / len(lines)

    return Estimate(
        queries=total,
        asked=asked,
        based_on=len(lines),
        failed=sum(spent.failed.values()),
        jobs=options.jobs,
        rate=options.rate,
        seconds=None if ms is None else _seconds(ms / 1000, asked, options),
        unpriced=told.get("unpriced", 0),
        each=Each(ms, mean("prompt_tokens"), mean("completion_tokens"), mean("usd")),
    )


def _seconds(each: float, asked: int, options: RunOptions) -> float:
    """Return how long it takes with these options: the rounds of a question follow each other."""
    together = min(options.jobs, max(asked // options.repeat, 1))
    busy = each * asked / together
    return busy if options.rate is None else max(busy, asked / options.rate)
