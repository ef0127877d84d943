"""How long the retriever took."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Floats
from karat.match.usage_table import UsageTable, prices_of, tokens_of
from karat.measures.families import CONTEXT, COST, LATENCY
from karat.measures.registry import Param, measure, word
from karat.measures.trace import is_tracing, trace_rows

_STAGE = Param("stage", "total", "the stage that was timed, by the name it has in the run", word)
_QUANTILE = "between two values by a straight line, as numpy.percentile does by default"
_latency = partial(
    measure,
    family=LATENCY.name,
    cutoff="none",
    params=(_STAGE,),
    unit="ms",
    higher_is_better=False,
    no_gold=False,
    edges="a query without this timing is left out; a stage that was gone through several times "
    "took the sum; total is only what was timed as total, never a sum of other stages",
)


@_latency(
    "latency.mean",
    aliases=("latency.avg", "latency.average"),
    title="Latency, average",
    formula="milliseconds that the stage took; over queries their mean",
    combine="mean",
    differs="the same everywhere",
)
@_latency(
    "latency.p50",
    aliases=("latency.median",),
    title="Latency, median",
    formula="milliseconds that the stage took; over queries what half of them stay within",
    combine="p50",
    differs=_QUANTILE,
)
@_latency(
    "latency.p90",
    title="Latency, 90th percentile",
    formula="milliseconds that the stage took; over queries what 90% of them stay within",
    combine="p90",
    differs=_QUANTILE,
)
@_latency(
    "latency.p99",
    title="Latency, 99th percentile",
    formula="milliseconds that the stage took; over queries what 99% of them stay within",
    combine="p99",
    least_queries=100,
    differs=f"{_QUANTILE}; of fewer than 100 queries it is marked, being hardly more than the "
    "slowest",
)
@_latency(
    "latency.max",
    title="Latency, slowest",
    formula="milliseconds that the stage took; over queries the most",
    combine="max",
    differs="the same everywhere",
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
        Param("stage", None, "only the calls of this stage; all if it is not said", word),
        Param("model", None, "only the calls of this model; all if it is not said", word),
    ),
    unit="USD",
    higher_is_better=False,
    no_gold=False,
    edges="0 for a query of the run without such calls; a query with a call that has no price, or "
    "not the tokens that its price is for, is left out, and the call is counted",
    differs="prices are those in the run; none is looked up",
)
_FORMULA = (
    "Σ over calls of price_per_call, or price_per_1k_calls / 1000, + tokens / 1000 · price_per_1k, "
    "or prompt tokens / 1000 · price_in + completion tokens / 1000 · price_out; over queries their "
)


@_cost(
    "cost.mean",
    aliases=("cost.avg", "cost.average"),
    title="Cost of a query",
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
    made = calls.where(stage=stage, model=model)
    prices = prices_of(made)
    trace_rows(made.rows, USD=prices)
    return np.where(calls.present, made.total(prices), np.nan)


@measure(
    "context.tokens",
    title="Context tokens delivered",
    formula="Σ of the tokens of the items in the top k",
    family=CONTEXT.name,
    cutoff="optional",
    whole=True,
    higher_is_better=False,
    no_gold=False,
    edges="0 for a query of the run that retrieved nothing; a query with an item in the top k of "
    "unknown tokens is left out, and counted; an item that stands again counts again",
    differs="tokens are those in the run, by whatever tokenizer counted them; none is guessed from "
    "characters",
)
def context_tokens(results: UsageTable, k: int | None) -> Floats:
    tokens = tokens_of(results)
    kept = results.rows.rank <= (tokens.size if k is None else k)
    delivered = results.rows.where(kept)
    if is_tracing():
        whole = results.table["tokens"].filter(kept).to_list()
        trace_rows(delivered, tokens=np.array(whole, object))
    return np.where(results.present, delivered.total(tokens[kept]), np.nan)
