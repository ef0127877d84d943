"""What a run took: time by stage, money by stage and model, and the load that it ran under."""

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
    """The milliseconds that queries took in one stage."""

    stage: str
    n: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float

    @property
    def few(self) -> bool:
        """Whether the 99th percentile is hardly more than the slowest query."""
        return has_few_queries("latency.p99", self.n)

    def as_dict(self) -> dict[str, Any]:
        """Return the times as plain data."""
        times = {name: value for name, value in asdict(self).items() if name != "stage"}
        return times | ({"note": f"p99 of {counted(self.n, 'sample')}"} if self.few else {})


@dataclass(frozen=True)
class Part:
    """The calls of a stage, of a model, of both or of a whole run."""

    stage: str | None
    model: str | None
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    """What those with a price cost; None where none has one."""
    unpriced: int

    def numbers(self) -> dict[str, Any]:
        """Return all but the names, as plain data."""
        return {name: value for name, value in asdict(self).items() if name not in _NAMES}


@dataclass(frozen=True)
class Costs:
    """What the calls of a run cost, as far as that is known."""

    whole: Part
    per_query: float | None
    """The mean over the `n` queries that have a price for every call."""
    n: int
    parts: tuple[Part, ...]
    stages: tuple[Part, ...]
    models: tuple[Part, ...]
    by_name: bool
    """Whether prices may have been looked up: calls have them per kind of token, or none."""

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
    """What a run took."""

    name: str | None
    path: str | None
    queries: int
    failed: Mapping[str, int]
    """How many queries failed, by what happened."""
    retried: int
    varied: int
    settings: Mapping[str, Any]
    times: tuple[Times, ...]
    costs: Costs | None

    @property
    def load(self) -> str | None:
        """How many questions were under way at a time, in words; None where that is not known."""
        return load(self.settings)

    @property
    def prices(self) -> str | None:
        """Where prices come from that calls did not bring, None where that is not known."""
        prices = self.settings.get("prices")
        is_needed = self.costs is not None and self.costs.by_name
        return prices if is_needed and isinstance(prices, str) else None

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat run --json` prints; absent: not known."""
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
            plain["latency"]["stages"] = {each.stage: each.as_dict() for each in self.times}
        if self.costs is not None:
            plain["cost"] = self.costs.as_dict() | ({"prices": self.prices} if self.prices else {})
        return plain


TOTAL = "total"
_MAY_BE_BY_NAME = pl.col("model").is_not_null() & (
    pl.any_horizontal(pl.col("price_in", "price_out").is_not_null()) | pl.col("unpriced")
)


def usage(run: Run, *, path: str | None = None) -> Usage:
    """Return what all queries of a run took; measures look only at those that gold has.

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
    """Return what each query took in each stage, as latency measures see it: total first."""
    stages = timings.table["stage"].unique().sort().to_list()
    found = {}
    for stage in sorted(stages, key=lambda name: name != TOTAL):
        timed = timings.where(stage=stage)
        total = timed.total(timed.table["ms"].to_numpy())
        found[stage] = total[timed.rows.count > 0]
    return found


def by_stage_and_model(calls: UsageTable) -> list[Part]:
    """Return what each model took in each stage; calls without a price have rows of their own."""
    return _parts(_with_prices(calls), ["stage", "model"], apart=["unpriced"])


def _with_prices(calls: UsageTable) -> pl.DataFrame:
    usd = pl.Series("usd", prices_of(calls), nan_to_null=True)
    return calls.table.with_columns(usd, usd.is_null().alias("unpriced"))


def _parts(table: pl.DataFrame, names: list[str], apart: Sequence[str] = ()) -> list[Part]:
    tokens = [
        pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
        for name in ("prompt_tokens", "completion_tokens")
    ]
    unpriced = pl.col("unpriced").sum().alias("n_unpriced")
    kinds = [*names, *apart]
    groups = table.group_by(kinds).agg(pl.len().alias("calls"), *tokens, unpriced, "usd")
    return [
        Part(
            stage=row.get("stage"),
            model=row.get("model"),
            calls=row["calls"],
            prompt_tokens=row["prompt_tokens"],
            completion_tokens=row["completion_tokens"],
            usd=_sum(usd for usd in row["usd"] if usd is not None),
            unpriced=row["n_unpriced"],
        )
        for row in groups.sort(kinds, nulls_last=True).iter_rows(named=True)
    ]


def _sum(amounts: Iterable[float]) -> float | None:
    held = list(amounts)
    return math.fsum(held) if held else None


def _times(run: Run) -> tuple[Times, ...]:
    if run.timings is None:
        return ()
    stages = by_stage(UsageTable.of(run.query_ids, run, run.timings))
    return tuple(_of_stage(name, ms.tolist()) for name, ms in stages.items())


def _of_stage(name: str, ms: list[float]) -> Times:
    return Times(name, len(ms), **{how: COMBINE[how](ms) for how in QUANTITIES})


def _costs(run: Run) -> Costs | None:
    if run.calls is None:
        return None
    calls = UsageTable.of(run.query_ids, run, run.calls)
    if not calls.table.height:  # every query that called a model failed
        return None
    table, prices = _with_prices(calls), prices_of(calls)
    of_queries = calls.total(prices)
    known = of_queries[calls.present & ~np.isnan(of_queries)].tolist()
    (whole,) = _parts(table.with_columns(run=0), ["run"])
    if whole.usd is not None:
        # By query first, as cost.sum does: where all is known the two agree to the bit.
        sums = calls.total(np.nan_to_num(prices)).tolist()
        whole = replace(whole, usd=math.fsum(sums))
    return Costs(
        whole=whole,
        per_query=combine("mean", known),
        n=len(known),
        parts=tuple(_parts(table, ["stage", "model"])),
        stages=tuple(_parts(table, ["stage"])),
        models=tuple(_parts(table, ["model"])),
        by_name=bool(table.select(_MAY_BE_BY_NAME.any()).item()),
    )


def _retried(run: Run) -> int:
    """Count the queries that took more than one attempt, whether they failed in the end or not."""
    tables = [table for table in (run.errors, run.attempts) if table is not None]
    again = [table.filter(pl.col("attempts") > 1)["query_id"] for table in tables]
    return pl.concat(again).n_unique() if again else 0


def load(settings: Mapping[str, Any]) -> str | None:
    """Say how many questions were under way at a time, None where a run does not tell.

    A run that was finished later may have been asked at several paces.

    >>> load({"jobs": 8}), load({"jobs": [32, 1], "rate": 2.5}), load({})
    ('asked 8 at a time', 'asked 32, then 1 at a time, at most 2.5 begun a second', None)
    """
    jobs = _told(settings.get("jobs"))
    if not jobs:
        return None
    rates = _told(settings.get("rate"))
    rate = f", at most {_in_turn(rates)} begun a second" if rates else ""
    return f"asked {_in_turn(jobs)} at a time{rate}"


def load_note(settings: Mapping[str, Any]) -> str | None:
    """Say the load where questions had to share the retriever, else nothing."""
    return load(settings) if any(jobs > 1 for jobs in _told(settings.get("jobs"))) else None


def _told(given: Any) -> list[float]:
    """Return the numbers of a setting; whoever wrote the file may have written anything."""
    every = given if isinstance(given, list) else [given]
    return [each for each in every if isinstance(each, (int, float)) and not isinstance(each, bool)]


def _in_turn(numbers: list[float]) -> str:
    return ", then ".join(f"{number:g}" for number in numbers)
