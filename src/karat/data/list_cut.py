"""Shortening of ranked lists before they are scored: by score, then by length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from karat import checks
from karat.data.ranking import QuerySegments
from karat.errors import InputError

LARGEST_TOP_K = 2**63  # larger numbers do not fit into 64-bit integers


@dataclass(frozen=True)
class ListCut:
    """The part of each list that is scored.

    Items with a score below `score_threshold` are removed first, then all items after the first
    `top_k`. `origin` names the environment variables that the values came from, if any.

    >>> str(ListCut(5, 0.4, {"top_k": "RAG_TOP_K"}))
    'top_k=5 (RAG_TOP_K), score_threshold=0.4'
    """

    top_k: int | None = None
    score_threshold: float | None = None
    origin: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.top_k is not None:
            name = self.origin.get("top_k", "top_k")
            checks.integer(
                self.top_k,
                name,
                least=1,
                most=LARGEST_TOP_K - 1,
                hint=f"for example, {name}=5 scores the first five items of each list; "
                f"without {name}, all items are scored",
            )
        if self.score_threshold is not None:
            name = self.origin.get("score_threshold", "score_threshold")
            checks.finite(
                self.score_threshold,
                name,
                hint=f"for example, {name}=0.4 removes items with a score below 0.4; "
                f"without {name}, all items are scored",
            )

    def __bool__(self) -> bool:
        return self.top_k is not None or self.score_threshold is not None

    def as_dict(self) -> dict[str, Any]:
        """Return the values that are set, for saving; `ListCut(**saved)` restores them."""
        values: dict[str, Any] = {}
        if self.top_k is not None:
            values["top_k"] = int(self.top_k)
        if self.score_threshold is not None:
            values["score_threshold"] = float(self.score_threshold)
        if self.origin:
            values["origin"] = dict(self.origin)
        return values

    def __str__(self) -> str:
        parts = []
        for name, value in self.as_dict().items():
            if name != "origin":
                variable = f" ({self.origin[name]})" if name in self.origin else ""
                parts.append(f"{name}={value!r}{variable}")
        return ", ".join(parts)


def cut_lists(results: pl.DataFrame, cut: ListCut) -> pl.DataFrame:
    """Return results in rank order without items below the threshold or beyond the length."""
    if cut.score_threshold is not None and results.height:
        _require_scores(results)
        results = results.filter(pl.col("score") >= float(cut.score_threshold))
    if cut.top_k is not None:
        segments = QuerySegments.of(results["query_id"])
        positions = np.arange(results.height) - np.repeat(segments.starts, segments.lengths)
        results = results.filter(positions < int(cut.top_k))
    return results


def _require_scores(results: pl.DataFrame) -> None:
    query = None
    if "score" not in results.columns:
        problem = "the run has no scores"
    elif results["score"].null_count():
        query = results.filter(pl.col("score").is_null())["query_id"].sort()[0]
        problem = f"query {query!r} has an item without a score"
    else:
        return
    raise InputError(
        f"score_threshold needs scores, but {problem}",
        field="score",
        hint="add a score to every item, or remove score_threshold",
        query=query,
    )
