"""Estimates of what a whole run would take, from its first queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from karat.data.formats.native_run import RunLine, run_of_lines
from karat.errors import InputError
from karat.evaluation.result import Result
from karat.evaluation.usage import TOTAL, usage
from karat.live.run_options import RunOptions
from karat.version import __version__


@dataclass(frozen=True)
class Each:
    """What a question took, as a mean over the first ones; None where nothing is known."""

    ms: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    usd: float | None


@dataclass(frozen=True)
class Estimate(Result):
    """What asking all questions would take, if they are like the first."""

    queries: int
    asked: int
    """How often a question is asked in all: rounds and those that warm up are counted."""
    based_on: int
    failed: int
    """How many of those that it is based on the retriever failed on."""
    jobs: int
    rate: float | None
    seconds: float | None
    unpriced: int
    """How many calls of those that it is based on have no price; their cost is in no figure."""
    each: Each

    @property
    def prompt_tokens(self) -> int | None:
        """The tokens that models would read."""
        return self._whole(self.each.prompt_tokens)

    @property
    def completion_tokens(self) -> int | None:
        """The tokens that models would write."""
        return self._whole(self.each.completion_tokens)

    @property
    def usd(self) -> float | None:
        """What calls with a price would cost."""
        return None if self.each.usd is None else self.each.usd * self.asked

    def _whole(self, each: float | None) -> int | None:
        return None if each is None else round(each * self.asked)

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat run --dry-run --json` prints; null: not known."""
        return {
            "karat": __version__,
            "queries": self.queries,
            "asked": self.asked,
            "based_on": self.based_on,
            "failed": self.failed,
            "jobs": self.jobs,
            "rate": self.rate,
            "seconds": self.seconds,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "usd": self.usd,
            "unpriced": self.unpriced,
            "each": asdict(self.each),
        }


def estimate(lines: Sequence[RunLine], total: int, options: RunOptions) -> Estimate:
    """Return what a run of `total` queries with these options would take, if all are alike.

    Each repetition and each query that warms up takes as much as the first: the run records the
    first repetition only, but all are paid for.
    """
    if not lines:
        raise InputError("no query was asked", hint="an estimate needs at least one")
    spent = usage(run_of_lines(lines))
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
    """Return how long it takes with these options: repetitions of a query follow each other."""
    together = min(options.jobs, max(asked // options.repeat, 1))
    busy = each * asked / together
    return busy if options.rate is None else max(busy, asked / options.rate)
