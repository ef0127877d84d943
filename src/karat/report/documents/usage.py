"""The documents of a run's usage and of an estimate: time by stage, cost by stage and model."""

from __future__ import annotations

from collections.abc import Iterator

from karat.errors import counted
from karat.evaluation.estimate import Estimate
from karat.evaluation.usage import QUANTITIES, CallCosts, Usage, load
from karat.format import amount, duration
from karat.report.cells import DASH
from karat.report.document_model import (
    Cell,
    Column,
    Document,
    FieldList,
    Headline,
    Section,
    Table,
    Tone,
)

_MILLION = 1_000_000


def usage_document(usage: Usage) -> Document:
    """Return how many queries ran, how long they took and what they cost."""
    sections = []
    if usage.times:
        sections.append(Section([_times(usage)]))
    if usage.costs is not None:
        sections.append(Section([_costs(usage)]))
    return Document("Usage", _headline(usage), sections, notes=list(_notes(usage)))


def _headline(usage: Usage) -> Headline:
    words = [counted(usage.queries, "query")]
    tone: Tone = "neutral"
    if usage.failed:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in usage.failed.items())
        words.append(f"{sum(usage.failed.values()):,} failed ({kinds})")
        tone = "bad"
    if usage.retried:
        words.append(f"{usage.retried:,} retried")
    if usage.varied:
        words.append(f"{usage.varied:,} returned different results when repeated")
    return Headline((f"{usage.name}: " if usage.name else "") + ", ".join(words), tone)


def _times(usage: Usage) -> Table:
    columns = [Column("latency [ms]", "left"), Column("n"), *map(Column, QUANTITIES)]
    rows = []
    for times in usage.times:
        cells = {name: amount(getattr(times, name)) for name in QUANTITIES}
        if times.few:
            cells["p99"] += "*"
        rows.append([Cell(times.stage), Cell(f"{times.n:,}"), *map(Cell, cells.values())])
    notes = ["* p99 of fewer than 100 samples"] if any(t.few for t in usage.times) else []
    return Table(columns, rows, notes=notes)


def _costs(usage: Usage) -> Table:
    assert usage.costs is not None
    columns = [
        Column("stage", "left"),
        Column("model", "left"),
        Column("calls"),
        Column("tokens in"),
        Column("tokens out"),
        Column("USD"),
    ]
    rows = [_cost_cells(part, part.stage, part.model) for part in usage.costs.parts]
    if len(rows) > 1:
        rows.append(_cost_cells(usage.costs.whole, "all", ""))
    return Table(columns, rows, n_labels=2)


def _cost_cells(part: CallCosts, stage: str | None, model: str | None) -> list[Cell]:
    names = [Cell(DASH if name is None else name) for name in (stage, model)]
    numbers = (part.calls, part.prompt_tokens, part.completion_tokens)
    counts = [Cell(DASH if count is None else f"{count:,}") for count in numbers]
    return [*names, *counts, Cell(DASH if part.usd is None else amount(part.usd))]


def _notes(usage: Usage) -> Iterator[str]:
    if usage.load:
        yield usage.load
    if usage.costs is None:
        return
    if usage.costs.per_query is not None:
        known = counted(usage.costs.n, "query")
        scope = f" (of the {known} whose cost is known)" if usage.costs.whole.unpriced else ""
        yield f"cost: {per_million(usage.costs.per_query)}{scope}"
    if usage.costs.whole.unpriced:
        unpriced = counted(usage.costs.whole.unpriced, "call")
        yield f"{unpriced} without a price or token counts, not in any sum"
        if _prices_could_help(usage):
            yield "pip install 'karat[live]' to look up prices by the names of models"
    if usage.prices:
        yield f"prices of calls that did not state one: {usage.prices}"


def per_million(usd_per_query: float) -> str:
    """Format the cost of a query so that small amounts can be read.

    >>> per_million(0.00000026), per_million(0.0123)
    ('$0.26 per 1M queries', '$12,300.00 per 1M queries')
    """
    return f"${usd_per_query * _MILLION:,.2f} per 1M queries"


def _prices_could_help(usage: Usage) -> bool:
    """Return whether karat ran this without a price list, and a model has no price."""
    if usage.costs is None or "jobs" not in usage.settings or "prices" in usage.settings:
        return False
    return any(part.model is not None and part.unpriced for part in usage.costs.models)


def estimate_document(estimate: Estimate) -> Document:
    """Return what a whole run would take."""
    runs = "" if estimate.asked == estimate.queries else f", {estimate.asked:,} calls in all"
    headline = (
        f"{counted(estimate.queries, 'query')}{runs}, estimated from "
        f"{counted(estimate.based_on, 'query')}"
    )
    return Document(
        "Estimate", Headline(headline), [Section([FieldList(list(_estimated(estimate)))])]
    )


def _estimated(estimate: Estimate) -> Iterator[tuple[str, str]]:
    if estimate.seconds is not None and estimate.each.ms is not None:
        pace = load({"jobs": estimate.jobs, "rate": estimate.rate})
        each = f"{amount(estimate.each.ms)} ms per query"
        yield "time", f"about {duration(estimate.seconds)}, {pace} ({each})"
    tokens = {"in": estimate.prompt_tokens, "out": estimate.completion_tokens}
    if any(count is not None for count in tokens.values()):
        words = [f"{n:,} {kind}" for kind, n in tokens.items() if n is not None]
        yield "tokens", f"about {', '.join(words)}"
    if estimate.usd is not None and estimate.each.usd is not None:
        least = "at least" if estimate.unpriced else "about"
        yield "cost", f"{least} {amount(estimate.usd)} USD ({per_million(estimate.each.usd)})"
    elif not estimate.unpriced:
        yield "cost", "no model calls were recorded"
    if estimate.unpriced:
        unpriced = counted(estimate.unpriced, "call")
        yield "unpriced", f"{unpriced} without a price or token counts, not in any sum"
    if estimate.failed:
        yield "failed", f"{counted(estimate.failed, 'query')} of the {estimate.based_on:,} failed"
