"""The options of a run in one frozen object, which checks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from karat import checks
from karat.data.offsets import check_unit
from karat.live.failures import MAX_FAILED, checked_share
from karat.live.protocol import Search
from karat.live.tokens import Tokenizer

if TYPE_CHECKING:
    from karat.live.reranker import Reranker
    from karat.live.retrievers.embedders import EmbeddingFunction

MAX_IN_A_ROW = 10
"""Default number of failures of the same kind in a row that stop a run."""
_MINIMUM = {
    "jobs": 1,
    "retries": 0,
    "warmup": 0,
    "repeat": 1,
    "stop_after_failures": 0,
    "limit": 1,
    "sample": 1,
    "seed": 0,
}
_OPTIONAL = ("stop_after_failures", "limit", "sample")


@dataclass(frozen=True)
class RunOptions:
    """The options of a run; `karat.retrieve` documents each of them."""

    top_k: int = 20
    score_threshold: float | None = None
    prefetch_limit: int | None = None
    rerank_top_n: int | None = None
    jobs: int = 8
    timeout: float | None = 60.0
    retries: int = 2
    rate: float | None = None
    warmup: int = 0
    repeat: int = 1
    stop_after_failures: int | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    filters: Sequence[str] = ()
    fields: Sequence[str] = ()
    method: str = "POST"
    headers: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    embedder: str | EmbeddingFunction | None = None
    embedding_model: str | None = None
    embedding_key_env: str | None = None
    retriever_options: Sequence[str] | Mapping[str, Any] = ()
    tokenizer: str | Tokenizer | None = None
    reranker: str | Reranker | None = None
    reranker_model: str | None = None
    reranker_key_env: str | None = None
    offsets: str = "codepoint"
    name: str | None = None
    fail_on_error: float = MAX_FAILED

    def __post_init__(self) -> None:
        checked_share(self.fail_on_error)
        for name, minimum in _MINIMUM.items():
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, checks.integer(value, name, least=minimum))
        for name in ("timeout", "rate"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, checks.positive(value, name))
        self.search()  # checks the search settings
        check_unit(self.offsets)

    def search(self) -> Search:
        """Return the search settings; those that are None keep their defaults and are not sent."""
        optional = {
            "score_threshold": self.score_threshold,
            "prefetch_limit": self.prefetch_limit,
            "rerank_top_n": self.rerank_top_n,
        }
        explicit: dict[str, Any] = {"top_k": self.top_k} | {
            name: value for name, value in optional.items() if value is not None
        }
        return Search(**explicit, explicit=frozenset(explicit))

    @property
    def max_failures_in_a_row(self) -> int:
        """Number of failures of the same kind in a row that stop the run; 0 never stops it.

        The default is 0 if all queries may fail (`fail_on_error=1`).
        """
        if self.stop_after_failures is not None:
            return self.stop_after_failures
        return 0 if self.fail_on_error == 1 else MAX_IN_A_ROW

    def as_settings(self) -> dict[str, Any]:
        """Return the options about selection and load, for the header of a run."""
        return {
            "limit": self.limit,
            "sample": self.sample,
            "seed": None if self.sample is None else self.seed,
            "filter": list(self.filters) or None,
            "jobs": self.jobs,
            "timeout": self.timeout,
            "retries": self.retries,
            "rate": self.rate,
            "warmup": self.warmup or None,
            "repeat": self.repeat if self.repeat > 1 else None,
        }
