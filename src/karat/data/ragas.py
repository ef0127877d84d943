"""Rows as Ragas has them, in JSON Lines; named, also in a JSON list or a table."""

from __future__ import annotations

import re
from typing import IO, Any

import msgspec
import polars as pl

from karat.data import nested, tables
from karat.data.files import DataFile
from karat.data.format import Format, Kind, kind_of_contexts
from karat.data.frames import CONTEXTS, holds_contexts
from karat.data.gold import Gold
from karat.data.losses import Written, need_ids, say_what_a_run_loses, say_what_gold_loses
from karat.data.native import first_line
from karat.data.native_lines import Numbered, decoded, grouped, numbered
from karat.data.ragas_rows import gold_of_rows, run_of_rows
from karat.data.run import Run
from karat.errors import counted

TARGET = "a file of Ragas rows"
# A quote inside a text has a backslash before it, so that no text looks like a key.
_KEY = re.compile(rb'"(\w+)"\s*:')
_OTHERS = (tables.PARQUET, tables.ARROW, tables.CSV, tables.TSV, nested.FORMAT)


def sniff(source: DataFile) -> bool:
    """Tell whether the first line is an object with contexts, and no line of karat's own."""
    first = first_line(source)
    return first.startswith(b"{") and holds_contexts(
        source.columns.rename_names(key.decode() for key in _KEY.findall(first))
    )


def kind(source: DataFile) -> Kind | None:
    """Tell gold from a run by the contexts that are there; rows of both may be either."""
    if other := _other(source):
        return other.kind(source)
    rows = (row for _, row in _rows(source) if isinstance(row, dict))
    return kind_of_contexts({key for row in rows for key in row if row[key] is not None})


def read_gold(source: DataFile) -> Gold:
    """Read reference contexts."""
    if other := _other(source):
        return other.read_gold(source)
    return gold_of_rows(_rows(source), source.error, name=source.name)


def read_run(source: DataFile) -> Run:
    """Read retrieved contexts, ranked as listed."""
    if other := _other(source):
        return other.read_run(source)
    return run_of_rows(_rows(source), source.error, name=source.name)


def write_gold(gold: Gold, file: IO[bytes]) -> Written:
    """Write what is relevant: ids of items, and texts that are evidence."""
    encode = msgspec.json.Encoder().encode
    relevant = gold.judgments.filter(pl.col("grade") > 0)
    items, evidence = grouped(relevant), grouped(gold.evidence)
    judged = set(gold.query_ids_judged)
    taken = [name for name in gold.fields if name in (*CONTEXTS, "user_input")]
    for row in gold.queries.drop(taken).iter_rows(named=True):
        query = row.pop("query_id")
        line: dict[str, Any] = {"query_id": query, "user_input": row.pop("text", None)}
        if query in evidence:
            line["reference_contexts"] = [piece["text"] for piece in evidence[query]]
        ids = dict.fromkeys(judgment["item_id"] for judgment in items.get(query, ()))
        line["reference_context_ids"] = list(ids) if query in judged else None
        file.write(encode(line | {k: v for k, v in row.items() if v is not None}) + b"\n")
    lost = list(taken)
    if others := relevant.filter(pl.col("grade") > 1).height:
        lost.append(f"{counted(others, 'grade')} other than 1")
    if irrelevant := gold.judgments.height - relevant.height:
        lost.append(f"{counted(irrelevant, 'judgment')} of grade 0 or less")
    return say_what_gold_loses(
        gold,
        TARGET,
        fields=True,
        empty=True,
        evidence=True,
        queries=gold.queries.height,
        rows=relevant.height,
        also=lost,
    )


def write_run(run: Run, file: IO[bytes]) -> Written:
    """Write the ids and texts of what was retrieved, in rank order."""
    encode = msgspec.json.Encoder().encode
    results = run.results
    texts_say_all = "text" in results.columns and not results["text"].null_count()
    need_ids(results, TARGET, of_all=not texts_say_all)
    by_id = "item_id" in results.columns
    lists = grouped(results)
    textless = 0
    for query in run.query_ids:
        line: dict[str, Any] = {"query_id": query}
        items = lists.get(query, [])
        texts = [item.get("text") for item in items]
        if None not in texts and "text" in results.columns:
            line["retrieved_contexts"] = texts
        elif any(text is not None for text in texts):
            textless += 1
        if by_id:
            line["retrieved_context_ids"] = [item["item_id"] for item in items]
        file.write(encode(line) + b"\n")
    lost = ["scores"] if "score" in results.columns else []
    if textless:
        lost.append(f"the texts of {textless} lists in which some items have none")
    return say_what_a_run_loses(run, TARGET, holds=("text",), empty=True, also=lost)


def _other(source: DataFile) -> Format | None:
    """Return the format of rows that were called Ragas rows and are not in JSON Lines."""
    if first_line(source).startswith(b"{"):
        return None
    return next((known for known in _OTHERS if known.sniff(source)), None)


def _rows(source: DataFile) -> Numbered[Any]:
    rows = decoded(numbered(source), msgspec.json.Decoder().decode, source)
    return ((number, source.columns.record(row)) for number, row in rows)


FORMAT = Format("ragas", (), sniff, kind, read_gold, read_run, write_gold, write_run)
