"""Estimates as text."""

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
    asked = "" if estimate.asked == estimate.queries else f", asked {estimate.asked:,} times in all"
    yield (
        f"{counted(estimate.queries, 'query')}{asked}; an estimate from "
        f"{counted(estimate.based_on, 'query')}"
    )
    if estimate.seconds is not None and estimate.each.ms is not None:
        pace = load({"jobs": estimate.jobs, "rate": estimate.rate})
        each = f"{amount(estimate.each.ms)} ms each"
        yield f"time: about {duration(estimate.seconds)}, {pace} ({each})"
    if estimate.prompt_tokens is not None or estimate.completion_tokens is not None:
        kinds = ((estimate.prompt_tokens, "read"), (estimate.completion_tokens, "written"))
        told = [f"{tokens:,} {kind}" for tokens, kind in kinds if tokens is not None]
        yield f"tokens: about {', '.join(told)}"
    if estimate.usd is not None and estimate.each.usd is not None:
        least = "at least" if estimate.unpriced else "about"
        yield f"cost: {least} {amount(estimate.usd)} USD ({amount(estimate.each.usd)} each)"
    elif not estimate.unpriced:
        yield "cost: no call of a model is known of"
    if estimate.unpriced:
        unpriced = counted(estimate.unpriced, "call")
        yield f"{unpriced} among them without a price or its tokens, in no sum"
    if estimate.failed:
        yield f"{counted(estimate.failed, 'query')} of the {estimate.based_on:,} failed"
