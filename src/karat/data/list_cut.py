"""What shapes a ranked list before it is scored: a least score, then a length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from karat import checks
from karat.data.ranking import QuerySegments
from karat.errors import InputError

LARGEST_TOP_K = 2**63  # what JSON and NumPy hold


@dataclass(frozen=True)
class ListCut:
    """Which part of each list is scored; checked when it is made.

    Items that score below `score_threshold` go first, then all but the first `top_k`. `origin`
    names the environment variable that a setting came from, where one did.

    >>> str(Settings(5, 0.4, {"top_k": "RAG_TOP_K"}))
    'top_k=5 (RAG_TOP_K), score_threshold=0.4'
    """

    top_k: int | None = None
    score_threshold: float | None = None
    origin: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.top_k is not None:
            checks.integer(
                self.top_k,
                self.origin.get("top_k", "top_k"),
                least=1,
                most=LARGEST_TOP_K - 1,
                hint="5 scores the first five items of each list; leave it out to score all",
            )
        if self.score_threshold is not None:
            checks.finite(
                self.score_threshold,
                self.origin.get("score_threshold", "score_threshold"),
                hint="0.4 leaves out items with a lower score; leave it out to keep all",
            )

    def __bool__(self) -> bool:
        """Tell whether there is anything to shape by."""
        return self.top_k is not None or self.score_threshold is not None

    def as_dict(self) -> dict[str, Any]:
        """Return what was set, for saving; `Settings(**saved)` is the same again."""
        held: dict[str, Any] = {}
        if self.top_k is not None:
            held["top_k"] = int(self.top_k)
        if self.score_threshold is not None:
            held["score_threshold"] = float(self.score_threshold)
        return held | ({"origin": dict(self.origin)} if self.origin else {})

    def __str__(self) -> str:
        told = self.as_dict()
        told.pop("origin", None)
        return ", ".join(
            f"{name}={value!r}" + (f" ({self.origin[name]})" if name in self.origin else "")
            for name, value in told.items()
        )


def cut_lists(results: pl.DataFrame, settings: ListCut) -> pl.DataFrame:
    """Leave out of each list, in rank order, what scores too low, then what stands too far down."""
    if settings.score_threshold is not None and results.height:
        _require_scores(results)
        results = results.filter(pl.col("score") >= float(settings.score_threshold))
    if settings.top_k is not None:
        segments = QuerySegments.of(results["query_id"])
        above = np.arange(results.height) - np.repeat(segments.starts, segments.lengths)
        results = results.filter(above < int(settings.top_k))
    return results


def _require_scores(results: pl.DataFrame) -> None:
    if "score" not in results.columns:
        problem = "the run holds no scores"
    elif results["score"].null_count():
        query = results.filter(pl.col("score").is_null())["query_id"][0]
        problem = f"query {query!r} has an item without a score"
    else:
        return
    raise InputError(
        f"{problem}, so none can be held against a threshold",
        field="score",
        hint="write the score of every item, or leave score_threshold out",
    )
