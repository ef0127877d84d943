"""The usage of a run as text: latency by stage, cost by stage and model."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from karat.errors import counted, printable
from karat.evaluation.usage import QUANTITIES, Part, Times, Usage
from karat.format import amount
from karat.report.terminal import WIDTH, shorten, table_lines

_STAGE_WIDTH, _MODEL_WIDTH = 16, 28


def text(usage: Usage) -> str:
    """Return counts, times and costs as text of 80 columns."""
    return "\n".join([*_counts(usage), *_latency(usage), *_cost(usage)])


def _counts(usage: Usage) -> list[str]:
    parts = [counted(usage.queries, "query")]
    if usage.failed:
        kinds = ", ".join(f"{count:,} {printable(kind)}" for kind, count in usage.failed.items())
        parts.append(f"{sum(usage.failed.values()):,} failed ({kinds})")
    if usage.retried:
        parts.append(f"{usage.retried:,} retried")
    if usage.varied:
        parts.append(f"{usage.varied:,} with different answers on repetition")
    name = f"{printable(usage.name)}: " if usage.name else ""
    return _wrap(name + ", ".join(parts))


def _latency(usage: Usage) -> Iterator[str]:
    if not usage.times:
        return
    yield ""
    rows = [[shorten(times.stage, _STAGE_WIDTH), *_time_cells(times)] for times in usage.times]
    yield from table_lines(["latency [ms]", "n", *QUANTITIES], rows, 1, 0)
    if any(times.few for times in usage.times):
        yield "*: p99 from fewer than 100 samples"
    if usage.load:
        yield from _wrap(usage.load)


def _time_cells(times: Times) -> list[str]:
    """Return the cells of a row: n and the times; a p99 from few samples is marked."""
    cells = {name: amount(getattr(times, name)) for name in QUANTITIES}
    if times.few:
        cells["p99"] += "*"
    return [f"{times.n:,}", *cells.values()]


def _cost(usage: Usage) -> Iterator[str]:
    if usage.costs is None:
        return
    yield ""
    total, parts = usage.costs.whole, usage.costs.parts
    rows = [_cost_cells(part, part.stage, part.model) for part in parts]
    if len(parts) > 1:
        rows.append(_cost_cells(total, "all", ""))
    yield from table_lines(
        ["stage", "model", "calls", "tokens in", "tokens out", "USD"], rows, 2, 0
    )
    if usage.costs.per_query is not None:
        n_priced = counted(usage.costs.n, "query")
        scope = f" (over the {n_priced} with known cost)" if total.unpriced else ""
        yield f"{amount(usage.costs.per_query)} USD per query{scope}"
    if total.unpriced:
        unpriced = counted(total.unpriced, "call")
        yield f"{unpriced} without a known price or token count, not included in the sums"
        if _could_look_up_prices(usage):
            yield "  to look up prices by model name: pip install 'karat[live]'"
    if usage.prices:
        yield from _wrap(f"prices for calls that do not state one: {printable(usage.prices)}")


def _could_look_up_prices(usage: Usage) -> bool:
    """Return whether karat made the run without a price list and a model has no price."""
    if usage.costs is None or "jobs" not in usage.settings or "prices" in usage.settings:
        return False
    return any(part.model is not None and part.unpriced for part in usage.costs.models)


def _cost_cells(part: Part, stage: str | None, model: str | None) -> list[str]:
    widths = ((stage, _STAGE_WIDTH), (model, _MODEL_WIDTH))
    names = ["–" if name is None else shorten(name, width) for name, width in widths]
    counts = (part.calls, part.prompt_tokens, part.completion_tokens)
    numbers = ["–" if count is None else f"{count:,}" for count in counts]
    return [*names, *numbers, "–" if part.usd is None else amount(part.usd)]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")
