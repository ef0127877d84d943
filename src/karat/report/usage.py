"""What a run took, as text: time by stage, money by stage and model."""

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
    told = [counted(usage.queries, "query")]
    if usage.failed:
        kinds = ", ".join(f"{count:,} {printable(kind)}" for kind, count in usage.failed.items())
        told.append(f"{sum(usage.failed.values()):,} failed ({kinds})")
    if usage.retried:
        told.append(f"{usage.retried:,} asked again")
    if usage.varied:
        told.append(f"{usage.varied:,} answered in different ways")
    name = f"{printable(usage.name)}: " if usage.name else ""
    return _wrap(name + ", ".join(told))


def _latency(usage: Usage) -> Iterator[str]:
    if not usage.times:
        return
    yield ""
    rows = [[shorten(each.stage, _STAGE_WIDTH), *_time_cells(each)] for each in usage.times]
    yield from table_lines(["latency [ms]", "n", *QUANTITIES], rows, 1, 0)
    if any(each.few for each in usage.times):
        yield "* p99 of fewer than 100 samples"
    if usage.load:
        yield from _wrap(usage.load)


def _time_cells(times: Times) -> list[str]:
    """Return n and the times as a table shows them, those that rest on few marked."""
    shown = {how: amount(getattr(times, how)) for how in QUANTITIES}
    return [f"{times.n:,}", *(shown | {"p99": shown["p99"] + "*" * times.few}).values()]


def _cost(usage: Usage) -> Iterator[str]:
    if usage.costs is None:
        return
    yield ""
    whole, parts = usage.costs.whole, usage.costs.parts
    rows = [_cost_cells(part, part.stage, part.model) for part in parts]
    if len(parts) > 1:
        rows.append(_cost_cells(whole, "all", ""))
    yield from table_lines(["stage", "model", "calls", "tokens in", "out", "USD"], rows, 2, 0)
    if usage.costs.per_query is not None:
        known = counted(usage.costs.n, "query")
        of_some = f" (of the {known} whose cost is known)" if whole.unpriced else ""
        yield f"{amount(usage.costs.per_query)} USD a query{of_some}"
    if whole.unpriced:
        unpriced = counted(whole.unpriced, "call")
        yield f"{unpriced} without a price or its tokens, in no sum"
        if _could_look_up_prices(usage):
            yield "  pip install 'karat[live]' for prices by the names of models"
    if usage.prices:
        yield from _wrap(f"prices that calls did not bring: {printable(usage.prices)}")


def _could_look_up_prices(usage: Usage) -> bool:
    """Whether karat asked without a list of prices, and a model has none."""
    if usage.costs is None or "jobs" not in usage.settings or "prices" in usage.settings:
        return False
    return any(part.model is not None and part.unpriced for part in usage.costs.models)


def _cost_cells(part: Part, stage: str | None, model: str | None) -> list[str]:
    widths = ((stage, _STAGE_WIDTH), (model, _MODEL_WIDTH))
    names = ["–" if name is None else shorten(name, width) for name, width in widths]
    counts = (part.calls, part.prompt_tokens, part.completion_tokens)
    shown = ["–" if count is None else f"{count:,}" for count in counts]
    return [*names, *shown, "–" if part.usd is None else amount(part.usd)]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")
