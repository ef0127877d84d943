"""What a format cannot hold is said, never dropped in silence."""

from __future__ import annotations

import warnings

import polars as pl

from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError, KaratWarning


def say_what_gold_loses(gold: Gold, target: str, *, fields: bool, empty: bool) -> None:
    """Warn of what a target that holds judgments loses of gold.

    `fields`: whether it holds fields of queries; `empty`: queries with empty judgments.
    """
    lost = [kind for kind in ("spans", "evidence") if getattr(gold, kind) is not None]
    if not fields:
        lost += [name for name in gold.queries.columns if name != "query_id"]
    held = gold.query_ids_judged if empty else gold.judgments["query_id"]
    if absent := gold.queries.height - held.n_unique():
        lost.append(f"{absent} queries without judgments")
    _say(target, lost)


def say_what_a_run_loses(run: Run, target: str, *, places: bool, empty: bool) -> None:
    """Warn of what a target that holds ranked items loses of a run.

    `places`: whether it holds documents, places and texts; `empty`: queries without results.
    """
    lost = [kind for kind in ("timings", "calls") if getattr(run, kind) is not None]
    if not places:
        lost += [c for c in ("doc_id", "start", "end", "text") if c in run.results.columns]
    if run.empty and not empty:
        lost.append(f"{len(run.empty)} queries without results")
    if run.failed and empty:
        lost.append(f"the errors of {run.failed} queries")
    _say(target, lost)


def need_ids(results: pl.DataFrame, target: str, *, of_all: bool = True) -> None:
    """Refuse to write items that have no id where the target needs one."""
    there = "item_id" in results.columns
    if (of_all and not there) or (there and results["item_id"].null_count()):
        raise InputError(
            f"{target} needs the id of every item",
            field="item_id",
            hint="write .jsonl, which holds items without ids",
        )


def _say(target: str, lost: list[str]) -> None:
    if lost:
        warnings.warn(KaratWarning(f"{target} cannot hold {', '.join(lost)}"), stacklevel=4)
