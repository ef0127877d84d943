"""Prices by the names of models: the cost that genai-prices states, never a guess."""

import builtins
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data.formats.native_run import Call
from karat.live import prices
from oracles import usage as usage_oracle
from support.effort import FULL, examples

genai_prices = pytest.importorskip("genai_prices")
from genai_prices.data import providers  # noqa: E402

MODELS = [(provider.id, model) for provider in providers for model in provider.models]
LENGTHS = [0, 1, 999, 128_000, 200_000, 200_001, 272_001, 1_048_577]


@pytest.fixture
def midnight(monkeypatch):
    """Stop the clock, since some prices are lower at night."""
    now = prices._now()
    monkeypatch.setattr(prices, "_now", lambda: now)
    return now


def cost(call):
    """Return the cost of a call by the oracle, which other tests compare with the kernel."""
    return usage_oracle.price(
        {name: getattr(call, name) for name in call.__struct_fields__ if name != "query_id"}
    )


def has_tiers(model):
    """Return whether the price of a model depends on the length of the prompt."""
    return "tiers" in repr(model.prices)


def test_every_model_has_the_cost_of_genai_prices_or_none(midnight):
    compared = tiered = 0
    for provider, model in MODELS:
        name = f"{provider}:{model.id}"
        for prompt in LENGTHS if FULL or has_tiers(model) else LENGTHS[2:3]:
            call = Call(model=name, prompt_tokens=prompt, completion_tokens=prompt // 7)
            usage = genai_prices.Usage(input_tokens=prompt, output_tokens=prompt // 7)
            try:
                expected = genai_prices.calc_price(
                    usage, model.id, provider_id=provider, genai_request_timestamp=midnight
                )
            except LookupError:  # a few names in the list lead nowhere
                continue
            price = expected.model_price
            actual = cost(prices.with_prices(call))
            if actual is None:
                assert None in (price.input_mtok, price.output_mtok), name
                continue
            assert math.isclose(actual, float(expected.total_price), rel_tol=1e-12), (name, prompt)
            compared += 1
            tiered += not isinstance(price.input_mtok, type(expected.total_price))
    assert compared > len(MODELS) * (6 if FULL else 0.75)
    assert tiered > 100


@pytest.mark.parametrize(
    ("model", "provider", "reference"),
    [
        ("gpt-4o", "openai", "gpt-4o"),
        ("openai:gpt-4o", "openai", "gpt-4o"),
        ("openai/gpt-4o", "openai", "gpt-4o"),
        ("OpenAI/GPT-4o", "openai", "gpt-4o"),
        ("openrouter/openai/gpt-4o", "openrouter", "openai/gpt-4o"),
        ("azure:gpt-4o", "azure", "gpt-4o"),
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("bedrock:amazon.titan-embed-text-v2:0", "aws", "amazon.titan-embed-text-v2:0"),
        ("text-embedding-3-small", "openai", "text-embedding-3-small"),
        ("embed-v4.0", "cohere", "embed-v4.0"),
        ("voyage-3", "voyageai", "voyage-3"),
        ("@cf/baai/bge-reranker-base", "cloudflare", "@cf/baai/bge-reranker-base"),
    ],
)
def test_name_of_a_model_selects_its_provider(midnight, model, provider, reference):
    usage = genai_prices.Usage(input_tokens=1500)
    expected = genai_prices.calc_price(
        usage, reference, provider_id=provider, genai_request_timestamp=midnight
    )
    call = prices.with_prices(Call(model=model, prompt_tokens=1500, completion_tokens=0))
    assert expected.total_price > 0
    assert math.isclose(cost(call), float(expected.total_price), rel_tol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        Call(model="my-own-model", prompt_tokens=9, completion_tokens=9),
        Call(model="BAAI/bge-m3", prompt_tokens=9),
        Call(model="openai/my-own-model", prompt_tokens=9),
        Call(model="text-embedding-my-own", prompt_tokens=9),
        Call(model="gpt-4o"),
        Call(model="gpt-4o", completion_tokens=9),
        Call(prompt_tokens=9, completion_tokens=9),
        Call(model="", prompt_tokens=9),
        Call(model=":", prompt_tokens=9),
        Call(model="github-copilot:gpt-4o", prompt_tokens=9, completion_tokens=9),
        Call(model="voyage-3", prompt_tokens=9, completion_tokens=9),  # it has no price for them
        Call(model="gpt-4o", prompt_tokens=9, completion_tokens=9, price_per_1k=0.5),
        Call(model="gpt-4o", prompt_tokens=9, completion_tokens=9, price_in=0.0),
        Call(model="gpt-4o", prompt_tokens=9, completion_tokens=9, price_per_call=0.0),
        Call(model="gpt-4o", prompt_tokens=9, completion_tokens=9, price_per_1k_calls=0.0),
    ],
)
def test_call_is_unchanged_if_no_price_is_known_or_it_has_one(call):
    assert prices.with_prices(call) is call


def test_only_models_that_generate_text_need_completion_tokens():
    assert cost(prices.with_prices(Call(model="voyage-3", prompt_tokens=1000))) == 0.00006
    assert cost(prices.with_prices(Call(model="gpt-4o", prompt_tokens=1000))) is None


@given(name=st.text(max_size=20), prompt=st.integers(0, 2**53 - 1))
@examples(50, 1_000)
def test_any_name_can_be_looked_up(name, prompt):
    call = prices.with_prices(Call(model=name, prompt_tokens=prompt))
    assert (call.model, call.prompt_tokens) == (name, prompt)


def test_calls_are_unchanged_without_genai_prices(monkeypatch):
    prices._model.cache_clear()
    real = builtins.__import__

    def absent(name, *rest):
        if name == "genai_prices":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    call = Call(model="gpt-4o", prompt_tokens=9, completion_tokens=9)
    assert prices.with_prices(call) is call
    prices._model.cache_clear()


def test_list_of_prices_is_named_with_its_version():
    assert prices.version() == f"genai-prices {genai_prices.__version__}"


def test_module_of_the_same_name_is_not_used_if_the_package_is_not_installed(monkeypatch):
    monkeypatch.setattr(prices, "version", lambda: None)
    prices._model.cache_clear()
    call = Call(model="gpt-4o", prompt_tokens=10)
    assert prices.with_prices(call) == call  # genai_prices can be imported, as a local file could
    prices._model.cache_clear()
