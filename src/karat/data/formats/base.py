"""What every format has in common: its declaration, and the report of what it cannot store.

A writer never drops data silently: `warn_of_gold_losses` and `warn_of_run_losses` list what the
target cannot store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from karat.data.data_file import DataFile
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError, counted, warn

Kind = Literal["gold", "run"]
KINDS: tuple[Kind, ...] = ("gold", "run")
CONVERT = "convert it to Parquet or JSON Lines with `karat convert`"
"""What to do with a file that cannot be read in pieces, for messages."""
RESPONSES = {"query_id": pl.String, "response": pl.String}
"""The columns of the table of responses of a run."""


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise, read and write it."""

    name: str
    endings: tuple[str, ...]
    sniff: Callable[[DataFile], bool]
    """Recognises the format from the first bytes, the file extension and the folder of a file."""
    kind: Callable[[DataFile], Kind | None]
    """Whether a file contains gold or a run; None if it may be either."""
    read_gold: Callable[[DataFile], Gold]
    read_run: Callable[[DataFile], Run]
    write_gold: Callable[[Gold, Any], WriteReport]
    """Writes to an open file, or to a folder if `folder` is set."""
    write_run: Callable[[Run, Any], WriteReport]
    folder: bool = False
    read_run_pieces: Callable[[DataFile], Iterator[RunPiece]] | None = None
    """Reads a run piece by piece; None if the file has to be read as a whole.

    It raises `NotInPiecesError` for a file that cannot be read in pieces.
    """
    read_gold_pieces: Callable[[DataFile], Iterator[Gold]] | None = None
    """Reads gold piece by piece; None if the file has to be read as a whole.

    A query may be in several pieces; the last piece has the texts and fields of all queries. It
    raises `NotInPiecesError` for a file that cannot be read in pieces.
    """


class NotInPiecesError(Exception):
    """The gold of a file has to be read as a whole."""


@dataclass(frozen=True, eq=False)
class RunPiece:
    """Consecutive rows of a file with a run, which are checked."""

    run: Run
    ranked: Callable[[pl.DataFrame], pl.DataFrame] | None
    """Sorts the results of whole queries; None if the queries of the piece are whole and sorted."""
    n_rises: int = 0
    """How many items have a higher score than the item before them, if the order is given."""


@dataclass(frozen=True)
class WriteReport:
    """How many queries and rows were written, and what the format could not store."""

    queries: int
    rows: int
    lost: tuple[str, ...] = ()


def unambiguous_kind(*, gold: bool, run: bool) -> Kind | None:
    """Return the kind of data if there are signs of only one kind, otherwise None."""
    if gold == run:
        return None
    return "gold" if gold else "run"


def kind_of_contexts(names: Collection[str]) -> Kind | None:
    """Return the kind of Ragas rows with these columns; None if they contain both kinds."""
    return unambiguous_kind(
        gold=any(name.startswith("reference_context") for name in names),
        run=any(name.startswith("retrieved_context") or name == "contexts" for name in names),
    )


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
    """Warn about the parts of gold that a format for judgments cannot store.

    `fields`, `empty` and `evidence` state whether the format stores fields of queries, queries with
    empty judgments, and evidence texts. `queries` and `rows` are the numbers written, if they
    differ from the numbers of the judgments; `also` lists further losses.
    """
    lost = [] if gold.spans is None else ["spans"]
    if gold.evidence is not None and not evidence:
        lost.append("evidence")
    if gold.any_of is not None:
        lost.append("any_of")
    if not fields:
        lost += [name for name in gold.queries.columns if name != "query_id"]
    if queries is None:
        written_ids = gold.query_ids_judged if empty else gold.judgments["query_id"]
        queries = written_ids.n_unique()
    if unjudged := gold.queries.height - queries:
        lost.append(f"{counted(unjudged, 'query')} without judgments")
    if gold.settings:
        lost.append("settings")
    rows = gold.judgments.height if rows is None else rows
    return _warn_of_losses(target, WriteReport(queries, rows, (*lost, *also)))


def warn_of_run_losses(
    run: Run, target: str, *, stored: Sequence[str], empty: bool, also: Sequence[str] = ()
) -> WriteReport:
    """Warn about the parts of a run that a format for ranked items cannot store.

    `stored` lists the columns that the format stores besides the id and the score, and "tag" if it
    stores a tag. `empty` states whether it stores queries without results; `also` lists further
    losses.
    """
    tables = ("timings", "calls", "attempts", "responses", "candidates")
    lost = [name for name in tables if getattr(run, name) is not None]
    results = run.results
    lost += [
        name
        for name in ("doc_id", "start", "end", "text", "tokens")
        if name in results.columns and name not in stored and not _equals_item_id(results, name)
    ]
    if run.offsets != "codepoint" and "start" in stored and "start" in results.columns:
        lost.append(f"the unit of the offsets ({run.offsets})")
    queries = run.query_ids.len()
    if run.empty and not empty:
        lost.append(f"{counted(len(run.empty), 'query')} without results")
        queries -= len(run.empty)
    if run.failed:
        lost.append(f"the errors of {counted(run.failed, 'query')}")
    settings = [name for name in run.settings if name not in stored]
    if settings:
        lost.append("the tag" if settings == ["tag"] else "settings")
    return _warn_of_losses(target, WriteReport(queries, results.height, (*lost, *also)))


def require_ids(results: pl.DataFrame, target: str, *, of_all: bool = True) -> None:
    """Raise an InputError if items have no id.

    With `of_all=False`, a table without any ids is accepted: the items are identified otherwise.
    """
    has_ids = "item_id" in results.columns
    if (of_all and not has_ids) or (has_ids and results["item_id"].null_count()):
        raise InputError(
            f"{target} requires an id for every item",
            field="item_id",
            hint="write a .jsonl file, which can store items without ids",
        )


def refuse_infinite_scores(results: pl.DataFrame, target: str) -> None:
    """Raise an InputError for infinite scores, which JSON cannot represent."""
    if "score" not in results.columns:
        return
    infinite = results.filter(results["score"].is_infinite())
    if infinite.height:
        query, score = infinite.select("query_id", "score").row(0)
        raise InputError(
            f"{target} cannot store the score {score} of query {query!r}",
            field="score",
            hint="write a .run, .csv or .parquet file, which can store infinite scores",
        )


def _equals_item_id(results: pl.DataFrame, name: str) -> bool:
    """Return whether a column is the doc_id and equals the item_id, so that nothing is lost."""
    return (
        name == "doc_id"
        and "item_id" in results.columns
        and results["doc_id"].equals(results["item_id"])
    )


def _warn_of_losses(target: str, report: WriteReport) -> WriteReport:
    if report.lost:
        message = f"{target} cannot store all of the data; not written: {', '.join(report.lost)}"
        warn(message, stacklevel=6)
    return report
