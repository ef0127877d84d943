"""What a line of a native run says of its own speed and cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import polars as pl

from karat.data.native_lines import Count, Id, MakeError
from karat.errors import InputError

TIMINGS = {"query_id": pl.String, "stage": pl.String, "ms": pl.Float64}
CALLS = {
    "query_id": pl.String,
    "stage": pl.String,
    "model": pl.String,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "price_per_1k": pl.Float64,
    "price_in": pl.Float64,
    "price_out": pl.Float64,
    "price_per_call": pl.Float64,
    "price_per_1k_calls": pl.Float64,
}
# Far above anything real, and low enough that no sum over queries can overflow.
_MOST_MS = 1e15
Price = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]


class Call(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One call of a model, and what it costs in USD."""

    query_id: Id | None = None  # ignored: a call belongs to the query on whose line it stands
    stage: str | None = None
    model: str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    price_per_1k: Price | None = None
    price_in: Price | None = None
    price_out: Price | None = None
    price_per_call: Price | None = None
    price_per_1k_calls: Price | None = None


def timing_rows(
    query: str, latency: dict[str, float] | None, number: int, error: MakeError
) -> list[tuple[str, str, float]]:
    """Return a row for each stage of a line, refusing what is no duration."""
    for stage, ms in (latency or {}).items():
        if not 0 <= ms < _MOST_MS:
            raise error(
                f"{ms} is no number of milliseconds",
                line=number,
                field=f"latency_ms.{stage}",
                hint="write a finite number from 0 up, or leave the stage out",
            )
    return [(query, stage, ms) for stage, ms in (latency or {}).items()]


def refuse_two_prices(call: Call, error: Callable[..., InputError], **place: Any) -> None:
    """Refuse a call that is priced in two ways at once."""
    apart = call.price_in is not None or call.price_out is not None
    if call.price_per_1k is not None and apart:
        raise error(
            "price_per_1k is for all tokens, price_in and price_out are for either kind",
            hint="give one price, or the two",
            **place,
        )
    if call.price_per_call is not None and call.price_per_1k_calls is not None:
        raise error(
            "price_per_call and price_per_1k_calls are one price in two units",
            hint="give one of them",
            **place,
        )


def call_rows(
    query: str, calls: Sequence[Call] | None, number: int, error: MakeError
) -> list[tuple[Any, ...]]:
    """Return a row for each call of a line, refusing prices that contradict each other."""
    for at, call in enumerate(calls or ()):
        refuse_two_prices(call, error, line=number, field=f"calls[{at}]")
    return [(query, *msgspec.structs.astuple(call)[1:]) for call in calls or ()]
