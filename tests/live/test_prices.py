"""Prices by the names of models: what genai-prices says a call costs, and never a guess."""

import builtins
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.data.native_usage import Call
from karat.live import prices
from oracles import usage as usage_oracle

genai_prices = pytest.importorskip("genai_prices")
from genai_prices.data import providers  # noqa: E402

MODELS = [(provider.id, model) for provider in providers for model in provider.models]
LENGTHS = [0, 1, 999, 128_000, 200_000, 200_001, 272_001, 1_048_577]


@pytest.fixture
def midnight(monkeypatch):
    """Hold the clock, since some prices are lower at night."""
    now = prices._now()
    monkeypatch.setattr(prices, "_now", lambda: now)
    return now


def cost(call):
    """Return what the oracle says a call costs; the kernel is held to it elsewhere."""
    return usage_oracle.price(
        {name: getattr(call, name) for name in call.__struct_fields__ if name != "query_id"}
    )


def test_every_model_costs_what_genai_prices_says_or_nothing_is_said(midnight):
    compared = tiered = 0
    for provider, model in MODELS:
        name = f"{provider}:{model.id}"
        for prompt in LENGTHS:
            call = Call(model=name, prompt_tokens=prompt, completion_tokens=prompt // 7)
            usage = genai_prices.Usage(input_tokens=prompt, output_tokens=prompt // 7)
            try:
                told = genai_prices.calc_price(
                    usage, model.id, provider_id=provider, genai_request_timestamp=midnight
                )
            except LookupError:  # a few names in the list lead nowhere
                continue
            got = cost(prices.priced(call))
            if got is None:
                known = (told.model_price.input_mtok, told.model_price.output_mtok)
                assert None in known, name
                continue
            assert math.isclose(got, float(told.total_price), rel_tol=1e-12), (name, prompt)
            compared += 1
            tiered += not isinstance(told.model_price.input_mtok, type(told.total_price))
    assert compared > len(MODELS) * 6
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
def test_a_name_chooses_the_seller(midnight, model, provider, reference):
    usage = genai_prices.Usage(input_tokens=1500)
    told = genai_prices.calc_price(
        usage, reference, provider_id=provider, genai_request_timestamp=midnight
    )
    call = prices.priced(Call(model=model, prompt_tokens=1500, completion_tokens=0))
    assert told.total_price > 0
    assert math.isclose(cost(call), float(told.total_price), rel_tol=1e-12)


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
def test_a_call_stays_as_it_is_where_nothing_is_known_or_all_is_said(call):
    assert prices.priced(call) is call


def test_an_embedder_needs_no_completion_and_a_writer_does():
    assert cost(prices.priced(Call(model="voyage-3", prompt_tokens=1000))) == 0.00006
    assert cost(prices.priced(Call(model="gpt-4o", prompt_tokens=1000))) is None


@given(name=st.text(max_size=20), prompt=st.integers(0, 2**53 - 1))
@settings(deadline=None)
def test_no_name_is_too_strange_to_look_up(name, prompt):
    told = prices.priced(Call(model=name, prompt_tokens=prompt))
    assert (told.model, told.prompt_tokens) == (name, prompt)


def test_without_the_list_calls_stay_as_they_are(monkeypatch):
    prices._model.cache_clear()
    real = builtins.__import__

    def absent(name, *rest):
        if name == "genai_prices":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    call = Call(model="gpt-4o", prompt_tokens=9, completion_tokens=9)
    assert prices.priced(call) is call
    prices._model.cache_clear()


def test_the_list_is_named_with_its_version():
    assert prices.version() == f"genai-prices {genai_prices.__version__}"
