"""What a run took, as people see it: time by stage, money by stage and model."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from karat.errors import counted, printable
from karat.format import amount
from karat.report.load import load
from karat.report.sheet import rests_on_few
from karat.report.terminal import WIDTH, short, wide_lines
from karat.version import __version__

QUANTITIES: tuple[Literal["mean", "p50", "p90", "p99", "max"], ...] = (
    "mean",
    "p50",
    "p90",
    "p99",
    "max",
)
_STAGE_WIDTH, _MODEL_WIDTH = 16, 28
_NAMES = ("stage", "model")


@dataclass(frozen=True)
class Times:
    """The milliseconds that queries took in one stage."""

    stage: str
    n: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float

    @property
    def few(self) -> bool:
        """Whether the 99th percentile is hardly more than the slowest query."""
        return rests_on_few("latency.p99", self.n)

    def cells(self) -> list[str]:
        """Return n and the times as a table shows them, those that rest on few marked."""
        shown = {how: amount(getattr(self, how)) for how in QUANTITIES}
        return [f"{self.n:,}", *(shown | {"p99": shown["p99"] + "*" * self.few}).values()]

    def as_dict(self) -> dict[str, Any]:
        """Return the times as plain data."""
        told = {name: value for name, value in asdict(self).items() if name != "stage"}
        return told | ({"note": f"p99 of {counted(self.n, 'sample')}"} if self.few else {})


@dataclass(frozen=True)
class Part:
    """The calls of a stage, of a model, of both or of a whole run."""

    stage: str | None
    model: str | None
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    """What those with a price cost; None where none has one."""
    unpriced: int

    def numbers(self) -> dict[str, Any]:
        """Return all but the names, as plain data."""
        return {name: value for name, value in asdict(self).items() if name not in _NAMES}


@dataclass(frozen=True)
class Costs:
    """What the calls of a run cost, as far as that is known."""

    whole: Part
    per_query: float | None
    """The mean over the `n` queries that have a price for every call."""
    n: int
    parts: tuple[Part, ...]
    stages: tuple[Part, ...]
    models: tuple[Part, ...]
    by_name: bool
    """Whether prices may have been looked up: calls have them per kind of token, or none."""

    def as_dict(self) -> dict[str, Any]:
        """Return the costs as plain data."""
        return self.whole.numbers() | {
            "per_query": self.per_query,
            "n": self.n,
            "stages": [{"stage": part.stage} | part.numbers() for part in self.stages],
            "models": [{"model": part.model} | part.numbers() for part in self.models],
        }


@dataclass(frozen=True)
class Spending:
    """What a run took."""

    name: str | None
    path: str | None
    queries: int
    failed: Mapping[str, int]
    """How many queries failed, by what happened."""
    retried: int
    varied: int
    settings: Mapping[str, Any]
    times: tuple[Times, ...]
    costs: Costs | None

    @property
    def load(self) -> str | None:
        """How many questions were under way at a time, in words; None where that is not known."""
        return load(self.settings)

    @property
    def prices(self) -> str | None:
        """Where prices come from that calls did not bring, None where that is not known."""
        told = self.settings.get("prices")
        is_needed = self.costs is not None and self.costs.by_name
        return told if is_needed and isinstance(told, str) else None

    @property
    def _might_be_looked_up(self) -> bool:
        """Whether karat asked without a list of prices, and a model has none."""
        if self.costs is None or "jobs" not in self.settings or "prices" in self.settings:
            return False
        return any(part.model is not None and part.unpriced for part in self.costs.models)

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat run --json` prints; absent: not known."""
        run = {
            "name": self.name,
            "path": self.path,
            "queries": self.queries,
            "answered": self.queries - sum(self.failed.values()),
            "failed": dict(self.failed),
            "retried": self.retried,
            "varied": self.varied,
        }
        told: dict[str, Any] = {
            "karat": __version__,
            "run": {name: value for name, value in run.items() if value is not None},
            "settings": dict(self.settings),
        }
        if self.times:
            told["latency"] = {"load": self.load} if self.load else {}
            told["latency"]["stages"] = {each.stage: each.as_dict() for each in self.times}
        if self.costs is not None:
            told["cost"] = self.costs.as_dict() | ({"prices": self.prices} if self.prices else {})
        return told

    def __str__(self) -> str:
        return "\n".join([*self._counts(), *self._latency(), *self._cost()])

    def _counts(self) -> list[str]:
        told = [counted(self.queries, "query")]
        if self.failed:
            kinds = ", ".join(f"{count:,} {printable(kind)}" for kind, count in self.failed.items())
            told.append(f"{sum(self.failed.values()):,} failed ({kinds})")
        if self.retried:
            told.append(f"{self.retried:,} asked again")
        if self.varied:
            told.append(f"{self.varied:,} answered in different ways")
        name = f"{printable(self.name)}: " if self.name else ""
        return _wrapped(name + ", ".join(told))

    def _latency(self) -> Iterator[str]:
        if not self.times:
            return
        yield ""
        rows = [[short(each.stage, _STAGE_WIDTH), *each.cells()] for each in self.times]
        yield from wide_lines(["latency [ms]", "n", *QUANTITIES], rows, 1, 0)
        if any(each.few for each in self.times):
            yield "* p99 of fewer than 100 samples"
        if self.load:
            yield from _wrapped(self.load)

    def _cost(self) -> Iterator[str]:
        if self.costs is None:
            return
        yield ""
        whole, parts = self.costs.whole, self.costs.parts
        rows = [_cells(part, part.stage, part.model) for part in parts]
        if len(parts) > 1:
            rows.append(_cells(whole, "all", ""))
        yield from wide_lines(["stage", "model", "calls", "tokens in", "out", "USD"], rows, 2, 0)
        if self.costs.per_query is not None:
            known = counted(self.costs.n, "query")
            of_some = f" (of the {known} whose cost is known)" if whole.unpriced else ""
            yield f"{amount(self.costs.per_query)} USD a query{of_some}"
        if whole.unpriced:
            unpriced = counted(whole.unpriced, "call")
            yield f"{unpriced} without a price or its tokens, in no sum"
            if self._might_be_looked_up:
                yield "  pip install 'karat[live]' for prices by the names of models"
        if self.prices:
            yield from _wrapped(f"prices that calls did not bring: {printable(self.prices)}")


def _cells(part: Part, stage: str | None, model: str | None) -> list[str]:
    widths = ((stage, _STAGE_WIDTH), (model, _MODEL_WIDTH))
    names = ["–" if name is None else short(name, width) for name, width in widths]
    counts = (part.calls, part.prompt_tokens, part.completion_tokens)
    shown = ["–" if count is None else f"{count:,}" for count in counts]
    return [*names, *shown, "–" if part.usd is None else amount(part.usd)]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")
