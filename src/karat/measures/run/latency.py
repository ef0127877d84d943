"""How long the retriever took."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Floats
from karat.match.usage_table import UsageTable
from karat.measures.declare import Param, measure, word
from karat.measures.families import LATENCY
from karat.measures.workings import note_places

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
    note_places(timed.places)
    return np.where(timed.places.count > 0, timed.total(timed.table["ms"].to_numpy()), np.nan)
