"""What a run took: time by stage, and money by stage and model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.data.run import Run
from karat.match.usage import Usage
from karat.measures.combine import COMBINE, combine
from karat.measures.run.cost import prices_of
from karat.report.spending import QUANTITIES, Costs, Part, Spending, Times

TOTAL = "total"
_MAY_BE_BY_NAME = pl.col("model").is_not_null() & (
    pl.any_horizontal(pl.col("price_in", "price_out").is_not_null()) | pl.col("unpriced")
)


def spending(run: Run, *, path: str | None = None) -> Spending:
    """Return what all queries of a run took; measures look only at those that gold has.

    >>> spending(Run.of([{"query_id": "q", "results": [], "latency_ms": {"total": 3.0}}])).queries
    1
    """
    errors = pl.DataFrame(schema={"type": pl.String}) if run.errors is None else run.errors
    failed = errors["type"].value_counts().sort("count", "type", descending=[True, False])
    return Spending(
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


def by_stage(timings: Usage) -> dict[str, Floats]:
    """Return what each query took in each stage, as latency measures see it: total first."""
    stages = timings.table["stage"].unique().sort().to_list()
    found = {}
    for stage in sorted(stages, key=lambda name: name != TOTAL):
        timed = timings.where(stage=stage)
        total = timed.total(timed.table["ms"].to_numpy())
        found[stage] = total[timed.places.count > 0]
    return found


def by_stage_and_model(calls: Usage) -> list[Part]:
    """Return what each model took in each stage; calls without a price stand in rows apart."""
    return _parts(_with_prices(calls), ["stage", "model"], apart=["unpriced"])


def _with_prices(calls: Usage) -> pl.DataFrame:
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
    stages = by_stage(Usage.of(run.query_ids, run, run.timings))
    return tuple(_of_stage(name, ms.tolist()) for name, ms in stages.items())


def _of_stage(name: str, ms: list[float]) -> Times:
    return Times(name, len(ms), **{how: COMBINE[how](ms) for how in QUANTITIES})


def _costs(run: Run) -> Costs | None:
    if run.calls is None:
        return None
    calls = Usage.of(run.query_ids, run, run.calls)
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
