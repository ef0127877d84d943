"""What a run would take, told from its first queries."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from karat.errors import counted
from karat.format import amount, duration
from karat.report.load import load
from karat.report.terminal import WIDTH
from karat.version import __version__


@dataclass(frozen=True)
class Each:
    """What a question took, as a mean over the first ones; None where nothing is known."""

    ms: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    usd: float | None


@dataclass(frozen=True)
class Estimate:
    """What asking all questions would take, if they are like the first."""

    queries: int
    asked: int
    """How often a question is asked in all: rounds and those that warm up are counted."""
    based_on: int
    failed: int
    """How many of those that it is based on the retriever failed on."""
    jobs: int
    rate: float | None
    seconds: float | None
    unpriced: int
    """How many calls of those that it is based on have no price; their cost is in no figure."""
    each: Each

    @property
    def prompt_tokens(self) -> int | None:
        """The tokens that models would read."""
        return self._whole(self.each.prompt_tokens)

    @property
    def completion_tokens(self) -> int | None:
        """The tokens that models would write."""
        return self._whole(self.each.completion_tokens)

    @property
    def usd(self) -> float | None:
        """What calls with a price would cost."""
        return None if self.each.usd is None else self.each.usd * self.asked

    def _whole(self, each: float | None) -> int | None:
        return None if each is None else round(each * self.asked)

    def as_dict(self) -> dict[str, Any]:
        """Return what `karat run --dry-run --json` prints; null: not known."""
        return {
            "karat": __version__,
            "queries": self.queries,
            "asked": self.asked,
            "based_on": self.based_on,
            "failed": self.failed,
            "jobs": self.jobs,
            "rate": self.rate,
            "seconds": self.seconds,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "usd": self.usd,
            "unpriced": self.unpriced,
            "each": asdict(self.each),
        }

    def __str__(self) -> str:
        return "\n".join(
            line
            for text in self._sentences()
            for line in textwrap.wrap(text, WIDTH, subsequent_indent="  ")
        )

    def _sentences(self) -> Iterator[str]:
        asked = "" if self.asked == self.queries else f", asked {self.asked:,} times in all"
        yield (
            f"{counted(self.queries, 'query')}{asked}; an estimate from "
            f"{counted(self.based_on, 'query')}"
        )
        if self.seconds is not None and self.each.ms is not None:
            pace = load({"jobs": self.jobs, "rate": self.rate})
            yield f"time: about {duration(self.seconds)}, {pace} ({amount(self.each.ms)} ms each)"
        if self.prompt_tokens is not None or self.completion_tokens is not None:
            kinds = ((self.prompt_tokens, "read"), (self.completion_tokens, "written"))
            told = [f"{tokens:,} {kind}" for tokens, kind in kinds if tokens is not None]
            yield f"tokens: about {', '.join(told)}"
        if self.usd is not None and self.each.usd is not None:
            least = "at least" if self.unpriced else "about"
            yield f"cost: {least} {amount(self.usd)} USD ({amount(self.each.usd)} each)"
        elif not self.unpriced:
            yield "cost: no call of a model is known of"
        if self.unpriced:
            unpriced = counted(self.unpriced, "call")
            yield f"{unpriced} among them without a price or its tokens, in no sum"
        if self.failed:
            yield f"{counted(self.failed, 'query')} of the {self.based_on:,} failed"
