"""Prices of models by name, from the package genai-prices, for calls without a price."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

import msgspec

from karat.data.formats.native_run import Call

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, TieredPrices

_PRICES = ("price_per_1k", "price_in", "price_out", "price_per_call", "price_per_1k_calls")
# Models that genai-prices finds only with their provider.
_PROVIDERS = {"text-embedding-": "openai", "embed-": "cohere"}


def version() -> str | None:
    """Return the name and version of the price list, or None if it is not installed."""
    try:
        return f"genai-prices {version_of('genai-prices')}"
    except PackageNotFoundError:
        return None


def load() -> None:
    """Load the price list now; otherwise the first lookup would add to a latency."""
    _model("gpt-4o")


def with_prices(call: Call) -> Call:
    """Return a call with the prices of its model, in USD per 1,000 tokens.

    A call that has a price keeps it. A call stays without a price if its model is unknown, or if
    the model has no price for the kind of its tokens. `provider:model` and `provider/model` select
    the provider.
    """
    prompt, completion = call.prompt_tokens, call.completion_tokens
    if call.model is None or prompt is None:
        return call
    if any(getattr(call, name) is not None for name in _PRICES):
        return call
    model = _model(call.model)
    if model is None:
        return call
    prices = model.get_prices(_now())
    price_in = _price_for(prices.input_mtok, prompt)
    price_out = _price_for(prices.output_mtok, prompt)
    is_unknown = (price_in is None and prompt) or (price_out is None and completion)
    if is_unknown or (price_in is None and price_out is None):
        return call
    # Without a number of completion tokens, the call has a cost only if these tokens are free.
    if completion is None and not price_out:
        price_out = None
    per_1k_calls = _price_for(prices.requests_kcount, prompt)
    return msgspec.structs.replace(
        call,
        price_in=None if price_in is None else float(price_in / 1000),  # per million
        price_out=None if price_out is None else float(price_out / 1000),
        price_per_1k_calls=None if per_1k_calls is None else float(per_1k_calls),
    )


@lru_cache(maxsize=4096)
def _model(name: str) -> ModelInfo | None:
    """Find a model by name; a provider in the name takes precedence."""
    if version() is None:  # a file genai_prices.py in the current folder is not the package
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    for provider, model in _candidates(name.strip()):
        try:
            return calc_price(Usage(input_tokens=0), model, provider_id=provider).model
        except LookupError:
            continue
    return None


def _candidates(name: str) -> Iterator[tuple[str | None, str]]:
    """Yield (provider, model) pairs to look up; None means any provider."""
    for separator in ":/":
        provider, separated, model = name.partition(separator)
        if separated and provider and model:
            yield provider, model
    yield None, name
    for prefix, provider in _PROVIDERS.items():
        if name.lower().startswith(prefix):
            yield provider, name


def _price_for(price: Decimal | TieredPrices | None, prompt: int) -> Decimal | None:
    """Return the price for a prompt of this length; some prices increase with it."""
    if price is None or isinstance(price, Decimal):
        return price
    reached = [tier.price for tier in price.tiers if prompt > tier.start]
    return reached[-1] if reached else price.base


def _now() -> datetime:
    """Return the time for which prices are looked up; some are lower at night."""
    return datetime.now(UTC)
