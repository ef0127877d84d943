"""The dry run: what a whole run would take, told from its first queries."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.data.native_run import Failure
from karat.data.native_usage import Call
from karat.errors import InputError
from karat.evaluation.estimating import estimate
from karat.live.exchange import Line, Pace

READ = Call(model="m", prompt_tokens=100, completion_tokens=10, price_in=0.01, price_out=0.1)


def line(at, ms=200.0, calls=(READ,), **more):
    return Line(f"q{at}", [], {"total": ms, "rerank": 1e6}, list(calls), **more)


def test_what_the_first_took_is_what_all_take():
    lines = [line(1, 100.0), line(2, 300.0), line(3, calls=[READ, READ])]
    told = estimate(lines, 3000, Pace(jobs=8))
    assert (told.queries, told.asked, told.based_on) == (3000, 3000, 3)
    assert told.seconds == 0.2 * 3000 / 8
    assert (told.prompt_tokens, told.completion_tokens) == (400_000, 40_000)
    assert math.isclose(told.usd, 0.002 * 4 * 1000, rel_tol=1e-12)
    assert str(told).splitlines() == [
        "3,000 queries; an estimate from 3 queries",
        "time: about 1 min 15 s, asked 8 at a time (200.00 ms each)",
        "tokens: about 400,000 read, 40,000 written",
        "cost: about 8.00 USD (0.00267 each)",
    ]


@given(
    total=st.integers(1, 50),
    jobs=st.integers(1, 9),
    repeat=st.integers(1, 3),
    warmup=st.integers(0, 4),
    rate=st.none() | st.sampled_from([0.5, 3.0, 1e6]),
)
def test_the_time_is_never_less_than_the_pace_allows(total, jobs, repeat, warmup, rate):
    told = estimate([line(1)], total, Pace(jobs, rate=rate, warmup=warmup, repeat=repeat))
    asked = total * repeat + warmup
    assert told.asked == asked
    assert told.seconds >= 0.2 * asked / jobs * (1 - 1e-12)
    assert told.seconds >= 0.2 * repeat * (1 - 1e-12)  # the rounds of a question follow each other
    assert rate is None or told.seconds >= asked / rate
    assert told.prompt_tokens == 100 * asked
    if rate is None and total >= jobs:
        assert math.isclose(told.seconds, 0.2 * asked / jobs)


def test_calls_without_a_price_are_said_and_never_free():
    told = estimate([line(1, calls=[READ, Call(model="x")]), line(2)], 10, Pace())
    assert math.isclose(told.usd, 0.02)
    assert "cost: at least 0.0200 USD (0.00200 each)" in str(told)
    assert "1 call among them without a price or its tokens, in no sum" in str(told)
    unknown = estimate([line(1, calls=[Call(model="x")])], 10, Pace())
    assert (unknown.usd, unknown.as_dict()["usd"], unknown.unpriced) == (None, None, 1)
    assert "cost:" not in str(unknown)


def test_what_is_not_known_is_not_said():
    told = estimate([Line("q1", [])], 10, Pace())
    assert (told.seconds, told.prompt_tokens, told.usd) == (None, None, None)
    assert str(told).splitlines()[1:] == ["cost: no call of a model is known of"]


def test_failures_and_rounds_are_said():
    failed = line(2, error=Failure("Timeout"))
    told = str(estimate([line(1), failed], 10, Pace(jobs=1, rate=2, warmup=3, repeat=2)))
    assert "10 queries, asked 23 times in all; an estimate from 2 queries" in told
    assert "time: about 12 s, asked 1 at a time, at most 2 begun a second" in told
    assert "1 query of the 2 failed" in told


def test_an_estimate_from_nothing_is_refused():
    with pytest.raises(InputError, match="no query was asked"):
        estimate([], 10, Pace())
