"""What the retriever's calls of models cost."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Floats
from karat.match.usage_table import UsageTable, prices_of
from karat.measures.declare import Param, measure, word
from karat.measures.families import COST
from karat.measures.workings import note_places

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
    note_places(made.places, USD=prices)
    return np.where(calls.present, made.total(prices), np.nan)
