"""What passes between karat and a retriever: a question, how to search, an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from karat import checks
from karat.data.formats.native_run import Call, ResultRow, RunLine


@dataclass(frozen=True, slots=True)
class Query:
    """A query as the retriever is asked it."""

    query_id: str
    text: str


@dataclass(frozen=True)
class Search:
    """How a retriever is to search; what it takes of this is handed to it.

    `given` names what somebody set; all else stands at its default, and is not sent to a server
    that may not know it.
    """

    top_k: int = 20
    score_threshold: float | None = None
    prefetch_limit: int = 100
    rerank_top_n: int = 20
    given: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("top_k", "prefetch_limit", "rerank_top_n"):
            object.__setattr__(self, name, checks.integer(getattr(self, name), name, least=1))
        if self.score_threshold is not None:
            threshold = checks.finite(self.score_threshold, "score_threshold")
            object.__setattr__(self, "score_threshold", threshold)

    def as_dict(self) -> dict[str, Any]:
        """Return all settings by their names."""
        return {name: getattr(self, name) for name in SEARCH_SETTINGS}


SEARCH_SETTINGS = ("top_k", "score_threshold", "prefetch_limit", "rerank_top_n")


@dataclass(frozen=True)
class Answer:
    """What a retriever returned for a question, in karat's words."""

    results: list[ResultRow]
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    """Stages that the retriever timed itself."""
    calls: list[Call] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Timed:
    """What came back, of a retriever whose `ask` does more than ask, and when (perf_counter_ns)."""

    returned: Any
    began: int
    ended: int


class Line(RunLine, omit_defaults=True):
    """A line of a run that karat writes."""

    run_id: str | None = None
    """The `run_id` of the header, which shows that the line belongs to this file."""


class AttemptError(Exception):
    """An attempt that failed, as the run tells of it.

    Any other exception that a retriever raises is told by its class and its message.
    """

    def __init__(
        self, kind: str, message: str, *, again: bool = True, wait: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        """A short name: Timeout, HTTP 500, BadAnswer, …"""
        self.message = message
        self.again = again
        """Whether asking again may help."""
        self.wait = wait
        """How many seconds the retriever asks us to wait before, if it does."""


class Retriever(ABC):
    """A retriever made ready to be asked.

    `ask` alone is timed, so reading what came back stands apart from it. Both may raise anything:
    that is a failed attempt.
    """

    name: str
    """What the header of the run calls it."""
    is_async: bool
    """Whether `ask` returns an awaitable; if not, it is called in threads."""
    takes: frozenset[str]
    """Which of the settings of a search are handed to it."""
    settings: Mapping[str, Any]
    """What else decides its answers, for the header of the run; no secrets."""

    @abstractmethod
    def ask(self, question: Query) -> Any:
        """Ask, and return what came back as it is, or `Timed` where not all of this is asking."""

    @abstractmethod
    def read(self, returned: Any) -> Answer:
        """Bring what came back into karat's words."""

    async def open(self, jobs: int) -> None:  # noqa: B027
        """Make ready for so many questions at a time, within the loop that asks."""

    async def close(self) -> None:  # noqa: B027
        """End what `open` began."""


def encoded(line: Line) -> bytes:
    """Return a line as it stands in the file, its end included."""
    return msgspec.json.encode(line) + b"\n"
