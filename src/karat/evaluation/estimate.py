"""Estimate the time and cost of a whole run from its first queries (`karat run --dry-run`)."""

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
class MeanUsage:
    """The mean time, tokens and cost of a query; None if it is not known."""

    ms: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    usd: float | None


@dataclass(frozen=True)
class Estimate(Result):
    """The estimated time, tokens and cost of running all queries."""

    queries: int
    asked: int
    """How many times the retriever is called, including repetitions and warm-up queries."""
    based_on: int
    """The number of queries that were run for the estimate."""
    failed: int
    """How many of the queries that were run failed."""
    jobs: int
    rate: float | None
    seconds: float | None
    unpriced: int
    """How many model calls had no price; their cost is not included."""
    each: MeanUsage

    @property
    def prompt_tokens(self) -> int | None:
        """The number of prompt tokens of all queries."""
        return self._total(self.each.prompt_tokens)

    @property
    def completion_tokens(self) -> int | None:
        """The number of completion tokens of all queries."""
        return self._total(self.each.completion_tokens)

    @property
    def usd(self) -> float | None:
        """The cost of all model calls that have a price."""
        return None if self.each.usd is None else self.each.usd * self.asked

    def _total(self, per_query: float | None) -> int | None:
        return None if per_query is None else round(per_query * self.asked)

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat run --dry-run --json` prints; null means not known."""
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
    """Estimate a run of `total` queries from the lines of the queries that were run.

    Repetitions and warm-up queries count like any other query: the run file contains only the
    first repetition, but all of them take time and cost money.
    """
    if not lines:
        raise InputError("no query was run", hint="an estimate needs at least one query")
    measured = usage(run_of_lines(lines))
    asked = total * options.repeat + options.warmup
    ms = next((times.mean for times in measured.times if times.stage == TOTAL), None)
    costs = {} if measured.costs is None else measured.costs.whole.numbers()

    def mean(name: str) -> float | None:
        return None if costs.get(name) is None else costs[name] / len(lines)

    return Estimate(
        queries=total,
        asked=asked,
        based_on=len(lines),
        failed=sum(measured.failed.values()),
        jobs=options.jobs,
        rate=options.rate,
        seconds=None if ms is None else _seconds(ms / 1000, asked, options),
        unpriced=costs.get("unpriced", 0),
        each=MeanUsage(ms, mean("prompt_tokens"), mean("completion_tokens"), mean("usd")),
    )


def _seconds(per_query: float, asked: int, options: RunOptions) -> float:
    # The repetitions of one query run one after the other.
    concurrent = min(options.jobs, max(asked // options.repeat, 1))
    seconds = per_query * asked / concurrent
    return seconds if options.rate is None else max(seconds, asked / options.rate)
