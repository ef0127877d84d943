"""The usage of a run: latency per stage, cost per stage and model, failures and load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.data.run import Run
from karat.errors import counted
from karat.evaluation.remarks import has_few_queries
from karat.evaluation.result import Result
from karat.match.usage_table import UsageTable, prices_of
from karat.measures.aggregate import COMBINE, combine
from karat.version import __version__

QUANTITIES: tuple[Literal["mean", "p50", "p90", "p99", "max"], ...] = (
    "mean",
    "p50",
    "p90",
    "p99",
    "max",
)
_NAMES = ("stage", "model")


@dataclass(frozen=True)
class Times:
    """The latency of the queries in one stage, in milliseconds."""

    stage: str
    n: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float

    @property
    def few(self) -> bool:
        """Whether there are too few queries for a 99th percentile."""
        return has_few_queries("latency.p99", self.n)

    def as_dict(self) -> dict[str, Any]:
        """Return the times as plain data."""
        times = {name: value for name, value in asdict(self).items() if name != "stage"}
        return times | ({"note": f"p99 of {counted(self.n, 'sample')}"} if self.few else {})


@dataclass(frozen=True)
class CallCosts:
    """The model calls of a stage, of a model, of both, or of the whole run."""

    stage: str | None
    model: str | None
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    """The cost of the calls that have a price; None if no call has one."""
    unpriced: int
    """The number of calls without a price."""

    def numbers(self) -> dict[str, Any]:
        """Return everything except stage and model as plain data."""
        return {name: value for name, value in asdict(self).items() if name not in _NAMES}


@dataclass(frozen=True)
class Costs:
    """The cost of the model calls of a run, as far as prices are known."""

    whole: CallCosts
    per_query: float | None
    """The mean over the `n` queries for which every call has a price."""
    n: int
    parts: tuple[CallCosts, ...]
    stages: tuple[CallCosts, ...]
    models: tuple[CallCosts, ...]
    by_name: bool
    """Whether prices may have been looked up by the name of the model.

    That is possible if calls have a price per kind of token, or no price.
    """

    def as_dict(self) -> dict[str, Any]:
        """Return the costs as plain data."""
        return self.whole.numbers() | {
            "per_query": self.per_query,
            "n": self.n,
            "stages": [{"stage": part.stage} | part.numbers() for part in self.stages],
            "models": [{"model": part.model} | part.numbers() for part in self.models],
        }


@dataclass(frozen=True)
class Usage(Result):
    """The usage of a run: failures, retries, latency and cost."""

    name: str | None
    path: str | None
    queries: int
    failed: Mapping[str, int]
    """The number of failed queries, by type of error."""
    retried: int
    """The number of queries that needed more than one attempt."""
    varied: int
    """The number of queries whose repetitions returned different results."""
    settings: Mapping[str, Any]
    times: tuple[Times, ...]
    costs: Costs | None

    @property
    def load(self) -> str | None:
        """How many queries ran at a time, in words; None if it is not known."""
        return load(self.settings)

    @property
    def prices(self) -> str | None:
        """The source of the prices that were looked up; None if none were, or it is not known."""
        prices = self.settings.get("prices")
        is_needed = self.costs is not None and self.costs.by_name
        return prices if is_needed and isinstance(prices, str) else None

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat run --json` prints; a key is absent if its value is not known."""
        run = {
            "name": self.name,
            "path": self.path,
            "queries": self.queries,
            "answered": self.queries - sum(self.failed.values()),
            "failed": dict(self.failed),
            "retried": self.retried,
            "varied": self.varied,
        }
        plain: dict[str, Any] = {
            "karat": __version__,
            "run": {name: value for name, value in run.items() if value is not None},
            "settings": dict(self.settings),
        }
        if self.times:
            plain["latency"] = {"load": self.load} if self.load else {}
            plain["latency"]["stages"] = {times.stage: times.as_dict() for times in self.times}
        if self.costs is not None:
            plain["cost"] = self.costs.as_dict()
            if self.prices:
                plain["cost"]["prices"] = self.prices
        return plain


TOTAL = "total"
_MAY_BE_BY_NAME = pl.col("model").is_not_null() & (
    pl.any_horizontal(pl.col("price_in", "price_out").is_not_null()) | pl.col("unpriced")
)


def usage(run: Run, *, path: str | None = None) -> Usage:
    """Return the usage of all queries of a run, including those that are not in gold.

    >>> usage(Run.of([{"query_id": "q", "results": [], "latency_ms": {"total": 3.0}}])).queries
    1
    """
    errors = pl.DataFrame(schema={"type": pl.String}) if run.errors is None else run.errors
    failed = errors["type"].value_counts().sort("count", "type", descending=[True, False])
    return Usage(
        name=run.name,
        path=path,
        queries=run.query_ids.len(),
        failed=dict(failed.iter_rows()),
        retried=_retried(run),
        varied=0 if run.attempts is None else int(run.attempts["varied"].sum()),
        settings=run.settings,
        times=_times(run),
        costs=_costs(run),
    )


def by_stage(timings: UsageTable) -> dict[str, Floats]:
    """Return the latencies of the queries by stage, with the total first.

    They are computed as in the latency measures.
    """
    stages = timings.table["stage"].unique().sort().to_list()
    times = {}
    for stage in sorted(stages, key=lambda name: name != TOTAL):
        timed = timings.where(stage=stage)
        total = timed.total(timed.table["ms"].to_numpy())
        times[stage] = total[timed.rows.count > 0]
    return times


def by_stage_and_model(calls: UsageTable) -> list[CallCosts]:
    """Return the calls by stage and model; calls without a price have separate entries."""
    return _parts(_with_prices(calls), ["stage", "model"], separate=["unpriced"])


def _with_prices(calls: UsageTable) -> pl.DataFrame:
    usd = pl.Series("usd", prices_of(calls), nan_to_null=True)
    return calls.table.with_columns(usd, usd.is_null().alias("unpriced"))


def _parts(table: pl.DataFrame, names: list[str], separate: Sequence[str] = ()) -> list[CallCosts]:
    tokens = [
        pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
        for name in ("prompt_tokens", "completion_tokens")
    ]
    unpriced = pl.col("unpriced").sum().alias("n_unpriced")
    keys = [*names, *separate]
    groups = table.group_by(keys).agg(pl.len().alias("calls"), *tokens, unpriced, "usd")
    return [
        CallCosts(
            stage=row.get("stage"),
            model=row.get("model"),
            calls=row["calls"],
            prompt_tokens=row["prompt_tokens"],
            completion_tokens=row["completion_tokens"],
            usd=_sum(usd for usd in row["usd"] if usd is not None),
            unpriced=row["n_unpriced"],
        )
        for row in groups.sort(keys, nulls_last=True).iter_rows(named=True)
    ]


def _sum(amounts: Iterable[float]) -> float | None:
    values = list(amounts)
    return math.fsum(values) if values else None


def _times(run: Run) -> tuple[Times, ...]:
    if run.timings is None:
        return ()
    stages = by_stage(UsageTable.of(run.query_ids, run, run.timings))
    return tuple(_stage_times(name, ms.tolist()) for name, ms in stages.items())


def _stage_times(name: str, ms: list[float]) -> Times:
    return Times(name, len(ms), **{how: COMBINE[how](ms) for how in QUANTITIES})


def _costs(run: Run) -> Costs | None:
    if run.calls is None:
        return None
    calls = UsageTable.of(run.query_ids, run, run.calls)
    if not calls.table.height:  # every query that called a model failed
        return None
    table, prices = _with_prices(calls), prices_of(calls)
    query_costs = calls.total(prices)
    known_costs = query_costs[calls.present & ~np.isnan(query_costs)].tolist()
    (whole,) = _parts(table.with_columns(run=0), ["run"])
    if whole.usd is not None:
        # Sum per query first, as cost.sum does, so that both give exactly the same number.
        sums = calls.total(np.nan_to_num(prices)).tolist()
        whole = replace(whole, usd=math.fsum(sums))
    return Costs(
        whole=whole,
        per_query=combine("mean", known_costs),
        n=len(known_costs),
        parts=tuple(_parts(table, ["stage", "model"])),
        stages=tuple(_parts(table, ["stage"])),
        models=tuple(_parts(table, ["model"])),
        by_name=bool(table.select(_MAY_BE_BY_NAME.any()).item()),
    )


def _retried(run: Run) -> int:
    """Count the queries that needed more than one attempt, failed or not."""
    tables = [table for table in (run.errors, run.attempts) if table is not None]
    retried = [table.filter(pl.col("attempts") > 1)["query_id"] for table in tables]
    return pl.concat(retried).n_unique() if retried else 0


def load(settings: Mapping[str, Any]) -> str | None:
    """Describe how many queries ran at a time; None if the settings of the run do not contain it.

    A run that was continued later may have run with several settings, one after the other.

    >>> load({"jobs": 8})
    '8 queries at a time'
    >>> load({"jobs": [32, 1], "rate": 2.5})
    '32 queries at a time, then 1, at most 2.5 started per second'
    >>> load({})
    """
    jobs = _numbers(settings.get("jobs"))
    if not jobs:
        return None
    first, *later = (f"{number:g}" for number in jobs)
    text = f"{first} {'query' if first == '1' else 'queries'} at a time"
    text = ", then ".join([text, *later])
    if rates := _numbers(settings.get("rate")):
        text += f", at most {', then '.join(f'{rate:g}' for rate in rates)} started per second"
    return text


def load_note(settings: Mapping[str, Any]) -> str | None:
    """Describe the load if more than one query ran at a time, which makes each query slower."""
    return load(settings) if any(jobs > 1 for jobs in _numbers(settings.get("jobs"))) else None


def _numbers(setting: Any) -> list[float]:
    """Return the numbers of a setting. Settings are read from a file and may contain anything."""
    values = setting if isinstance(setting, list) else [setting]
    return [
        value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
