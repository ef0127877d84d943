"""Latency and cost of one query: plain loops over its timings and calls.

`None` is a value that is left out. No code is shared with karat.
"""

from __future__ import annotations

import math

import numpy as np

Timing = tuple[str, float]
Call = dict[str, object]


def added(values: list[float]) -> float:
    """Add one after the other, the smallest first; `sum` compensates from Python 3.12 on."""
    total = 0.0
    for value in sorted(values):
        total = total + value
    return total


def latency(timings: list[Timing], stage: str) -> float | None:
    spent = [ms for name, ms in timings if name == stage]
    return added(spent) if spent else None


def price(call: Call) -> float | None:
    """Return the cost of a call, None if it cannot be known."""
    prompt, completion = call.get("prompt_tokens"), call.get("completion_tokens")
    per_call, one = call.get("price_per_call"), call.get("price_per_1k")
    if call.get("price_per_1k_calls") is not None:
        per_call = call["price_per_1k_calls"] / 1000
    two = {"in": (prompt, call.get("price_in")), "out": (completion, call.get("price_out"))}
    if one is not None:
        if prompt is None:
            return None
        tokens = (prompt + (completion or 0)) / 1000 * one
    elif any(rate is not None for _, rate in two.values()):
        tokens = 0.0
        for count, rate in two.values():
            if rate is None and not count:
                continue
            if rate is None or count is None:
                return None
            tokens = tokens + count / 1000 * rate
    elif per_call is None:
        return None
    else:
        tokens = 0.0
    return (0.0 if per_call is None else per_call) + tokens


def wanted(calls: list[Call], stage: str | None, model: str | None) -> list[Call]:
    return [
        call
        for call in calls
        if (stage is None or call.get("stage") == stage)
        and (model is None or call.get("model") == model)
    ]


def cost(calls: list[Call] | None, stage: str | None, model: str | None) -> float | None:
    """Return the cost of a query; its calls are `None` if the run does not have the query."""
    if calls is None:
        return None
    prices = [price(call) for call in wanted(calls, stage, model)]
    return None if None in prices else added(prices)


def over_queries(how: str, values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if how == "mean":
        return math.fsum(known) / len(known)
    if how == "sum":
        return math.fsum(known)
    if how == "max":
        return max(known)
    return float(np.percentile(known, int(how.removeprefix("p"))))
