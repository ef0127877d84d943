"""The dry run: time, tokens and cost of a whole run, estimated from its first queries."""

import math

from hypothesis import given
from hypothesis import strategies as st

from karat.data.formats.native_run import Call, Failure
from karat.evaluation.estimate import estimate
from karat.live.protocol import JournalLine
from karat.live.run_options import RunOptions
from support.effort import examples
from support.errors import refused

READ = Call(model="m", prompt_tokens=100, completion_tokens=10, price_in=0.01, price_out=0.1)


def line(at, ms=200.0, calls=(READ,), **more):
    return JournalLine(f"q{at}", [], {"total": ms, "rerank": 1e6}, list(calls), **more)


def test_first_queries_are_extrapolated_to_all():
    lines = [line(1, 100.0), line(2, 300.0), line(3, calls=[READ, READ])]
    estimated = estimate(lines, 3000, RunOptions(jobs=8))
    assert (estimated.queries, estimated.asked, estimated.based_on) == (3000, 3000, 3)
    assert estimated.seconds == 0.2 * 3000 / 8
    assert (estimated.prompt_tokens, estimated.completion_tokens) == (400_000, 40_000)
    assert math.isclose(estimated.usd, 0.002 * 4 * 1000, rel_tol=1e-12)
    assert str(estimated).splitlines() == [
        "3,000 queries, estimated from 3 queries",
        "",
        "time    about 1 min 15 s, 8 queries at a time (200.00 ms per query)",
        "tokens  about 400,000 in, 40,000 out",
        "cost    about 8.00 USD ($2,666.67 per 1M queries)",
    ]


@examples(40, 400)
@given(
    total=st.integers(1, 50),
    jobs=st.integers(1, 9),
    repeat=st.integers(1, 3),
    warmup=st.integers(0, 4),
    rate=st.none() | st.sampled_from([0.5, 3.0, 1e6]),
)
def test_the_time_is_never_less_than_the_pace_allows(total, jobs, repeat, warmup, rate):
    estimated = estimate(
        [line(1)], total, RunOptions(jobs=jobs, rate=rate, warmup=warmup, repeat=repeat)
    )
    asked = total * repeat + warmup
    assert estimated.asked == asked
    assert estimated.seconds >= 0.2 * asked / jobs * (1 - 1e-12)
    # The rounds of a query follow each other.
    assert estimated.seconds >= 0.2 * repeat * (1 - 1e-12)
    assert rate is None or estimated.seconds >= asked / rate
    assert estimated.prompt_tokens == 100 * asked
    if rate is None and total >= jobs:
        assert math.isclose(estimated.seconds, 0.2 * asked / jobs)


def test_calls_without_a_price_are_reported_and_not_counted_as_free():
    estimated = estimate([line(1, calls=[READ, Call(model="x")]), line(2)], 10, RunOptions())
    assert math.isclose(estimated.usd, 0.02)
    assert "cost      at least 0.0200 USD ($2,000.00 per 1M queries)" in str(estimated)
    assert "1 call without a price or token counts, not in any sum" in str(estimated)
    unknown = estimate([line(1, calls=[Call(model="x")])], 10, RunOptions())
    assert (unknown.usd, unknown.as_dict()["usd"], unknown.unpriced) == (None, None, 1)
    assert "\ncost" not in str(unknown)


def test_unknown_figures_are_not_shown():
    estimated = estimate([JournalLine("q1", [])], 10, RunOptions())
    assert (estimated.seconds, estimated.prompt_tokens, estimated.usd) == (None, None, None)
    assert str(estimated).splitlines()[2:] == ["cost  no model calls were recorded"]


def test_failures_and_rounds_are_shown():
    failed = line(2, error=Failure("Timeout"))
    estimated = str(estimate([line(1), failed], 10, RunOptions(jobs=1, rate=2, warmup=3, repeat=2)))
    assert "10 queries, 23 calls in all, estimated from 2 queries" in estimated
    assert "time    about 12 s, 1 query at a time, at most 2 started per second" in estimated
    assert "1 query of the 2 failed" in estimated


def test_estimate_without_queries_is_refused():
    with refused(path=None, field=None):
        estimate([], 10, RunOptions())
