"""The types that karat and a retriever exchange: query, search settings, answer, error.

`Retriever` is the base class of everything that karat can run. `JournalLine` is what karat writes
for one query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from karat import checks
from karat.data.formats.native_run import Call, ResultRow, RunLine
from karat.errors import InputError


@dataclass(frozen=True, slots=True)
class Query:
    """A query as it is sent to a retriever."""

    query_id: str
    text: str


SEARCH_SETTINGS = ("top_k", "score_threshold", "prefetch_limit", "rerank_top_n")


@dataclass(frozen=True)
class Search:
    """The search settings of a run. A retriever gets those that it accepts.

    `explicit` has the names of the settings that the user set. The others have their defaults and
    are not sent to a server, which may not know them.
    """

    top_k: int = 20
    score_threshold: float | None = None
    prefetch_limit: int = 100
    rerank_top_n: int = 20
    explicit: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("top_k", "prefetch_limit", "rerank_top_n"):
            object.__setattr__(self, name, checks.integer(getattr(self, name), name, least=1))
        if self.score_threshold is not None:
            threshold = checks.finite(self.score_threshold, "score_threshold")
            object.__setattr__(self, "score_threshold", threshold)

    def as_dict(self) -> dict[str, Any]:
        """Return all settings by name."""
        return {name: getattr(self, name) for name in SEARCH_SETTINGS}


@dataclass(frozen=True)
class Answer:
    """The response of a retriever to one query, in karat's types."""

    results: list[ResultRow]
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds of the stages that the retriever measured itself."""
    calls: list[Call] = field(default_factory=list)
    candidates: list[ResultRow] | None = None
    """The list before reranking, if the retriever reranks."""


@dataclass(frozen=True, slots=True)
class TimedResponse:
    """A response with its own start and end (`perf_counter_ns`).

    For retrievers whose `retrieve` also does work that must not count as latency.
    """

    response: Any
    start_ns: int
    end_ns: int


class JournalLine(RunLine, omit_defaults=True):
    """A line of a run file that karat writes."""

    run_id: str | None = None
    """The `run_id` of the header. It shows that the line belongs to this file."""


def encode_line(line: JournalLine) -> bytes:
    """Return a line as JSON, with a line break at the end."""
    return msgspec.json.encode(line) + b"\n"


class AttemptError(Exception):
    """A failed attempt, with the type and the message that the run records.

    For any other exception of a retriever, the run records its class and its message.

    Parameters
    ----------
    kind : str
        A short name: Timeout, HTTP 500, BadAnswer, …
    message : str
        What went wrong.
    retryable : bool, default True
        Whether another attempt may succeed.
    retry_after : float, optional
        Seconds to wait before another attempt, if the retriever requires it.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after


class StopRunError(InputError):
    """A problem of all further queries: it stops the run, while other errors fail one query.

    The parameters are those of `InputError`.
    """


class Retriever(ABC):
    """A retriever that is ready to run.

    Only `retrieve` is timed; `parse` is not. An exception in either is a failed attempt, except for
    a `StopRunError`.
    """

    name: str
    """The name in the header of the run."""
    is_async: bool
    """Whether `retrieve` returns an awaitable; otherwise it is called in threads."""
    accepts: frozenset[str]
    """Names of the search settings that are passed to the retriever."""
    settings: Mapping[str, Any]
    """Everything else that influences the answers, for the header of the run; without secrets."""

    @abstractmethod
    def retrieve(self, query: Query) -> Any:
        """Run a query and return the raw response.

        A `TimedResponse` replaces the time that karat measures around this call.
        """

    @abstractmethod
    def parse(self, response: Any) -> Answer:
        """Convert a raw response into an `Answer`."""

    async def open(self, jobs: int) -> None:  # noqa: B027
        """Prepare for `jobs` concurrent queries; called in the event loop of the run."""

    async def close(self) -> None:  # noqa: B027
        """Release what `open` acquired."""
