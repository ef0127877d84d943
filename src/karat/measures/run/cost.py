"""What the retriever's calls of models cost."""

from __future__ import annotations

from functools import partial

import numpy as np

from karat.arrays import Floats
from karat.match.usage_table import UsageTable
from karat.measures.declare import Param, measure, word
from karat.measures.workings import note_places

_cost = partial(
    measure,
    family="cost",
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


def prices_of(calls: UsageTable) -> Floats:
    """Return what each call costs in USD, NaN where that is not known."""
    # Not with Polars, which divides by 1000 as it multiplies by 0.001: other digits.
    columns = ("prompt_tokens", "completion_tokens", "price_per_1k", "price_in", "price_out")
    prompt, completion, price, price_in, price_out = map(calls.floats, columns)
    per_call = calls.floats("price_per_call")
    per_call = np.where(np.isnan(per_call), calls.floats("price_per_1k_calls") / 1000, per_call)
    # An embedder writes no tokens, so its completion may be left out; a prompt never is.
    at_one_price = (prompt + _or_zero(completion)) / 1000 * price
    at_two = _part(prompt, price_in) + _part(completion, price_out)
    given = [~np.isnan(price), ~np.isnan(price_in) | ~np.isnan(price_out), ~np.isnan(per_call)]
    known: Floats = _or_zero(per_call) + np.select(given, [at_one_price, at_two, 0.0], np.nan)
    return known


def _part(tokens: Floats, price: Floats) -> Floats:
    """Return the price of one kind of tokens; no price is needed where there are none."""
    none = np.isnan(price) & (_or_zero(tokens) == 0)
    return np.where(none, 0.0, tokens / 1000 * price)


def _or_zero(values: Floats) -> Floats:
    return np.where(np.isnan(values), 0.0, values)
