"""What models cost: prices by their names, where a call brings none."""

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
# Models that only their maker sells, and that genai-prices finds once it is told the maker.
_MAKERS = {"text-embedding-": "openai", "embed-": "cohere"}


def version() -> str | None:
    """Return which list of prices is looked up, None where there is none."""
    try:
        return f"genai-prices {version_of('genai-prices')}"
    except PackageNotFoundError:
        return None


def load() -> None:
    """Read the list now: the first look into it takes so long that it would show in a latency."""
    _model("gpt-4o")


def priced(call: Call) -> Call:
    """Return a call with the prices of its model, in USD per 1,000 tokens.

    A call that has a price keeps it. One whose model is not known stays as it is, and so does one
    whose tokens are of a kind that the model has no price for: it counts as unpriced.
    `provider:model` and `provider/model` choose who sells the model.
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
    price_in, price_out = _at(prices.input_mtok, prompt), _at(prices.output_mtok, prompt)
    nobody_knows = (price_in is None and prompt) or (price_out is None and completion)
    if nobody_knows or (price_in is None and price_out is None):
        return call
    # A completion that nothing is said of is free only where its price is nothing.
    if completion is None and not price_out:
        price_out = None
    per_1k_calls = _at(prices.requests_kcount, prompt)
    return msgspec.structs.replace(
        call,
        price_in=None if price_in is None else float(price_in / 1000),  # they are per million
        price_out=None if price_out is None else float(price_out / 1000),
        price_per_1k_calls=None if per_1k_calls is None else float(per_1k_calls),
    )


@lru_cache(maxsize=4096)
def _model(name: str) -> ModelInfo | None:
    """Find a model by its name, as the seller that it names calls it before all others."""
    if version() is None:  # a file of this name in the current folder is not the package
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    for provider, model in _ways(name.strip()):
        try:
            return calc_price(Usage(input_tokens=0), model, provider_id=provider).model
        except LookupError:
            continue
    return None


def _ways(name: str) -> Iterator[tuple[str | None, str]]:
    """Yield whom to ask for which model, None for whoever is known to sell it."""
    for separator in ":/":
        provider, found, model = name.partition(separator)
        if found and provider and model:
            yield provider, model
    yield None, name
    for opening, maker in _MAKERS.items():
        if name.lower().startswith(opening):
            yield maker, name


def _at(price: Decimal | TieredPrices | None, prompt: int) -> Decimal | None:
    """Return the price that holds for a prompt of this length: it may rise with it."""
    if price is None or isinstance(price, Decimal):
        return price
    reached = [tier.price for tier in price.tiers if prompt > tier.start]
    return reached[-1] if reached else price.base


def _now() -> datetime:
    """Return the moment whose prices count; some are lower at night."""
    return datetime.now(UTC)
