"""Estimates of the time and cost of a run as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from karat.errors import counted
from karat.evaluation.estimate import Estimate
from karat.evaluation.usage import load
from karat.format import amount, duration
from karat.report.terminal import WIDTH


def text(estimate: Estimate) -> str:
    """Return an estimate as text of 80 columns."""
    return "\n".join(
        line
        for sentence in _sentences(estimate)
        for line in textwrap.wrap(sentence, WIDTH, subsequent_indent="  ")
    )


def _sentences(estimate: Estimate) -> Iterator[str]:
    calls = ""
    if estimate.asked != estimate.queries:
        calls = f", {estimate.asked:,} calls of the retriever in total"
    yield (
        f"{counted(estimate.queries, 'query')}{calls}; estimated from "
        f"{counted(estimate.based_on, 'query')}"
    )
    if estimate.seconds is not None and estimate.each.ms is not None:
        pace = load({"jobs": estimate.jobs, "rate": estimate.rate})
        per_query = f"{amount(estimate.each.ms)} ms per query"
        yield f"time: about {duration(estimate.seconds)}, {pace} ({per_query})"
    if estimate.prompt_tokens is not None or estimate.completion_tokens is not None:
        kinds = ((estimate.prompt_tokens, "in"), (estimate.completion_tokens, "out"))
        parts = [f"{tokens:,} {kind}" for tokens, kind in kinds if tokens is not None]
        yield f"tokens: about {', '.join(parts)}"
    if estimate.usd is not None and estimate.each.usd is not None:
        prefix = "at least" if estimate.unpriced else "about"
        per_query = f"{amount(estimate.each.usd)} per query"
        yield f"cost: {prefix} {amount(estimate.usd)} USD ({per_query})"
    elif not estimate.unpriced:
        yield "cost: unknown, no model calls were reported"
    if estimate.unpriced:
        unpriced = counted(estimate.unpriced, "call")
        yield f"{unpriced} without a known price or token count, not included in the sums"
    if estimate.failed:
        yield f"{counted(estimate.failed, 'query')} of the {estimate.based_on:,} failed"
