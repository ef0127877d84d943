"""What a format cannot hold is said, never dropped in silence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from karat.data.data_file import DataFile
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError, KaratWarning, counted

Kind = Literal["gold", "run"]
KINDS: tuple[Kind, ...] = ("gold", "run")


def unambiguous_kind(*, gold: bool, run: bool) -> Kind | None:
    """Return the kind that the signs point to, or None where they point to both or neither."""
    if gold == run:
        return None
    return "gold" if gold else "run"


def kind_of_contexts(names: Collection[str]) -> Kind | None:
    """Tell by the columns of Ragas rows which kind they hold; they may hold both."""
    return unambiguous_kind(
        gold=any(name.startswith("reference_context") for name in names),
        run=any(name.startswith("retrieved_context") or name == "contexts" for name in names),
    )


@dataclass(frozen=True)
class Format:
    """One format: how to know it, read it and write it."""

    name: str
    endings: tuple[str, ...]
    sniff: Callable[[DataFile], bool]
    """From the first bytes, the ending and where the file lies."""
    kind: Callable[[DataFile], Kind | None]
    """Whether a file holds gold or a run, or None where it may be either."""
    read_gold: Callable[[DataFile], Gold]
    read_run: Callable[[DataFile], Run]
    write_gold: Callable[[Gold, Any], WriteReport]
    """Into an open file, or into a folder where the format is one."""
    write_run: Callable[[Run, Any], WriteReport]
    folder: bool = False


@dataclass(frozen=True)
class WriteReport:
    """What a file holds once it is written, and what it could not hold."""

    queries: int
    rows: int
    lost: tuple[str, ...] = ()


def warn_of_gold_losses(
    gold: Gold,
    target: str,
    *,
    fields: bool,
    empty: bool,
    evidence: bool = False,
    queries: int | None = None,
    rows: int | None = None,
    also: Sequence[str] = (),
) -> WriteReport:
    """Warn of what a target that holds judgments loses of gold.

    `fields`: whether it holds fields of queries; `empty`: queries with empty judgments.
    `queries` and `rows` say how many it holds where that does not follow.
    """
    lost = [] if gold.spans is None else ["spans"]
    if gold.evidence is not None and not evidence:
        lost.append("evidence")
    if gold.any_of is not None:
        lost.append("any_of")
    if not fields:
        lost += [name for name in gold.queries.columns if name != "query_id"]
    if queries is None:
        queries = (gold.query_ids_judged if empty else gold.judgments["query_id"]).n_unique()
    if absent := gold.queries.height - queries:
        lost.append(f"{counted(absent, 'query')} without judgments")
    if gold.settings:
        lost.append("settings")
    rows = gold.judgments.height if rows is None else rows
    return _say(target, WriteReport(queries, rows, (*lost, *also)))


def warn_of_run_losses(
    run: Run, target: str, *, holds: Sequence[str], empty: bool, also: Sequence[str] = ()
) -> WriteReport:
    """Warn of what a target that holds ranked items loses of a run.

    `holds`: which columns of results besides the id, and `tag`; `empty`: queries without results.
    """
    lost = [kind for kind in ("timings", "calls", "attempts") if getattr(run, kind) is not None]
    results = run.results
    lost += [
        name
        for name in ("doc_id", "start", "end", "text", "tokens")
        if name in results.columns and name not in holds and not _repeats_the_id(results, name)
    ]
    if run.offsets != "codepoint" and "start" in holds and "start" in results.columns:
        lost.append(f"that offsets count {run.offsets}")
    queries = run.query_ids.len()
    if run.empty and not empty:
        lost.append(f"{counted(len(run.empty), 'query')} without results")
        queries -= len(run.empty)
    if run.failed:
        lost.append(f"the errors of {counted(run.failed, 'query')}")
    settings = [name for name in run.settings if name not in holds]
    if settings:
        lost.append("the tag" if settings == ["tag"] else "settings")
    return _say(target, WriteReport(queries, results.height, (*lost, *also)))


def require_ids(results: pl.DataFrame, target: str, *, of_all: bool = True) -> None:
    """Refuse to write items that have no id where the target needs one."""
    there = "item_id" in results.columns
    if (of_all and not there) or (there and results["item_id"].null_count()):
        raise InputError(
            f"{target} needs the id of every item",
            field="item_id",
            hint="write .jsonl, which holds items without ids",
        )


def refuse_infinite_scores(results: pl.DataFrame, target: str) -> None:
    """Refuse to write scores that JSON has no number for."""
    if "score" not in results.columns:
        return
    infinite = results.filter(results["score"].is_infinite())
    if infinite.height:
        query, score = infinite.select("query_id", "score").row(0)
        raise InputError(
            f"{target} cannot hold the score {score} of query {query!r}",
            field="score",
            hint="write .run, .csv or .parquet, which hold infinite scores",
        )


def _repeats_the_id(results: pl.DataFrame, name: str) -> bool:
    """Tell whether the document is the item, so that its id says everything."""
    return (
        name == "doc_id"
        and "item_id" in results.columns
        and (results["doc_id"].equals(results["item_id"]))
    )


def _say(target: str, written: WriteReport) -> WriteReport:
    if written.lost:
        message = f"{target} cannot hold {', '.join(written.lost)}"
        warnings.warn(KaratWarning(message), stacklevel=6)
    return written
