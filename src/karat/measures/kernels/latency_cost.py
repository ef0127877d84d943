"""Latency, cost and context tokens, from the timings, calls and results of the run."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Floats
from karat.match.usage_table import UsageTable, prices_of, tokens_of
from karat.measures.families import CONTEXT, COST, LATENCY
from karat.measures.registry import Param, measure, word
from karat.measures.trace import is_tracing, trace_rows

_STAGE = Param("stage", "total", "the name of the timed stage in the run", word)
_QUANTILE = "interpolates linearly between two values, as numpy.percentile does by default"
_latency = partial(
    measure,
    family=LATENCY.name,
    cutoff="none",
    params=(_STAGE,),
    unit="ms",
    higher_is_better=False,
    no_gold=False,
    edges="a query without this timing is left out; the times of a stage that ran several times "
    "are added; total is the timing with this name, never the sum of other stages",
)


@_latency(
    "latency.mean",
    aliases=("latency.avg", "latency.average"),
    title="Latency, average",
    formula="the milliseconds that the stage took; over queries, the mean",
    combine="mean",
    differs="other tools agree",
)
@_latency(
    "latency.p50",
    aliases=("latency.median",),
    title="Latency, median",
    formula="the milliseconds that the stage took; over queries, the median",
    combine="p50",
    differs=_QUANTILE,
)
@_latency(
    "latency.p90",
    title="Latency, 90th percentile",
    formula="the milliseconds that the stage took; over queries, the 90th percentile",
    combine="p90",
    differs=_QUANTILE,
)
@_latency(
    "latency.p99",
    title="Latency, 99th percentile",
    formula="the milliseconds that the stage took; over queries, the 99th percentile",
    combine="p99",
    least_queries=100,
    differs=f"{_QUANTILE}; marked for fewer than 100 queries, where it is little more than the "
    "slowest query",
)
@_latency(
    "latency.max",
    title="Latency, slowest",
    formula="the milliseconds that the stage took; over queries, the maximum",
    combine="max",
    differs="other tools agree",
)
def latency(timings: UsageTable, _: None, stage: str) -> Floats:
    timed = timings.where(stage=stage)
    trace_rows(timed.rows)
    return np.where(timed.rows.count > 0, timed.total(timed.table["ms"].to_numpy()), np.nan)


_cost = partial(
    measure,
    family=COST.name,
    cutoff="none",
    params=(
        Param("stage", None, "only the calls of this stage; default: all calls", word),
        Param("model", None, "only the calls of this model; default: all calls", word),
    ),
    unit="USD",
    higher_is_better=False,
    no_gold=False,
    edges="0 for a query of the run without such calls; a query is left out if one of its calls "
    "has no price, or lacks the token count that its price needs, and such calls are counted",
    differs="the prices are those in the run; karat has no price list",
)
_FORMULA = (
    "Σ over calls of price_per_call (or price_per_1k_calls / 1000) + tokens / 1000 · price_per_1k "
    "(or prompt tokens / 1000 · price_in + completion tokens / 1000 · price_out); over queries, "
    "the "
)


@_cost(
    "cost.mean",
    aliases=("cost.avg", "cost.average"),
    title="Cost per query",
    formula=f"{_FORMULA}mean",
    combine="mean",
)
@_cost(
    "cost.sum",
    aliases=("cost.total",),
    title="Cost of all queries",
    formula=f"{_FORMULA}sum",
    combine="sum",
)
def cost(calls: UsageTable, _: None, stage: str | None, model: str | None) -> Floats:
    selected = calls.where(stage=stage, model=model)
    prices = prices_of(selected)
    trace_rows(selected.rows, USD=prices)
    return np.where(calls.present, selected.total(prices), np.nan)


@measure(
    "context.tokens",
    title="Context tokens",
    formula="Σ of the tokens of the items in the top k",
    family=CONTEXT.name,
    cutoff="optional",
    whole=True,
    higher_is_better=False,
    no_gold=False,
    edges="0 for a query of the run that retrieved nothing; a query is left out, and counted, if "
    "an item in its top k has no token count; repeated items count each time",
    differs="the token counts are those in the run; karat does not estimate them from characters",
)
def context_tokens(results: UsageTable, k: int | None) -> Floats:
    tokens = tokens_of(results)
    in_top = results.rows.rank <= (tokens.size if k is None else k)
    rows = results.rows.where(in_top)
    if is_tracing():
        counts = results.table["tokens"].filter(in_top).to_list()
        trace_rows(rows, tokens=np.array(counts, object))
    return np.where(results.present, rows.total(tokens[in_top]), np.nan)
