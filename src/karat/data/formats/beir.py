"""BEIR folders: queries.jsonl, and judgments in qrels/, one file per split.

The corpus in the same folder is not part of gold and is never opened here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import polars as pl

from karat.data.data_file import DataFile, plain_name
from karat.data.formats import table_files
from karat.data.formats.base import Format, Kind, WriteReport, warn_of_gold_losses
from karat.data.formats.json_lines import (
    Id,
    check_depth,
    converted,
    decoded,
    new_query_id,
    numbered,
)
from karat.data.formats.native_gold import queries_table
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError
from karat.files import COMPRESSIONS, Source, without_compression

_NO_RUN = "a BEIR folder contains queries and judgments, but no run"
_RUN_HINT = "give a file with a run, such as run.trec or run.jsonl; gold comes first, then the run"


class BeirQuery(msgspec.Struct):
    """A line of queries.jsonl; other keys, and those in `metadata`, are fields of the query."""

    id: Id = msgspec.field(name="_id")
    text: str | None = None


def find_split(folder: Path) -> Path | None:
    """Return the file with the judgments of a BEIR folder: the test split, or the only one."""
    try:
        files = sorted((folder / "qrels").iterdir()) if folder.is_dir() else []
    except OSError:
        return None
    splits = {
        plain_name(file): file for file in files if without_compression(file).suffix == ".tsv"
    }
    first = next(iter(splits.values()), None)
    if len(splits) > 1 and "test" not in splits:
        raise InputError(
            f"the BEIR folder has no test split; its splits are {', '.join(splits)}",
            path=folder,
            hint=f"give the file of one split, for example {first}",
        )
    return splits.get("test", first)


def sniff(source: DataFile) -> bool:
    """Return whether the file is a table in the qrels folder of a BEIR folder."""
    return (
        source.path.absolute().parent.name == "qrels"
        and queries_file(_folder(source)) is not None
        and table_files.TSV.sniff(source)
    )


def kind(_: Source) -> Kind:
    """Return "gold": a BEIR folder has no runs."""
    return "gold"


def read_gold(source: DataFile) -> Gold:
    """Read a split; queries.jsonl may also have queries of other splits, which are ignored."""
    gold = table_files.TSV.read_gold(source)
    queries = _query_data(source, gold.query_ids)
    return Gold(gold.judgments, query_data=queries, name=_folder(source).name)


def read_gold_pieces(source: DataFile) -> Iterator[Gold]:
    """Read a split block by block."""
    assert table_files.TSV.read_gold_pieces is not None, "tables are read in pieces"
    query_ids: set[str] = set()
    for piece in table_files.TSV.read_gold_pieces(source):
        query_ids.update(piece.query_ids)
        yield Gold(piece.judgments, name=_folder(source).name)
    yield Gold(query_data=_query_data(source, sorted(query_ids)), name=_folder(source).name)


def _query_data(source: DataFile, query_ids: Iterable[str]) -> pl.DataFrame:
    file = queries_file(_folder(source))
    fields_by_query = {} if file is None else _read_queries(Source(file))
    return queries_table({query: fields_by_query.get(query, {}) for query in query_ids})


def read_run(source: Source) -> NoReturn:
    """Raise an InputError: a BEIR folder has no runs."""
    raise source.error(_NO_RUN, hint=_RUN_HINT)


def refuse_folder_as_run(path: Path) -> None:
    """Raise an InputError if a BEIR folder is given instead of a run."""
    if path.is_dir() and (path / "qrels").is_dir():
        raise InputError(_NO_RUN, path=path, hint=_RUN_HINT)


def write_gold(gold: Gold, folder: Path) -> WriteReport:
    """Write queries.jsonl and qrels/test.tsv; the fields of queries become `metadata`."""
    encode = msgspec.json.Encoder().encode
    queries = gold.queries.join(gold.judgments, on="query_id", how="semi", maintain_order="left")
    with (folder / "queries.jsonl").open("wb") as file:
        for row in queries.iter_rows(named=True):
            line: dict[str, Any] = {"_id": row.pop("query_id"), "text": row.pop("text", None)}
            line["metadata"] = {name: value for name, value in row.items() if value is not None}
            file.write(encode(line) + b"\n")
    (folder / "qrels").mkdir()
    gold.judgments.select(
        pl.col("query_id").alias("query-id"),
        pl.col("item_id").alias("corpus-id"),
        pl.col("grade").alias("score"),
    ).write_csv(folder / "qrels" / "test.tsv", separator="\t")
    return warn_of_gold_losses(gold, "a BEIR folder", fields=True, empty=False)


def write_run(_: Run, folder: Path) -> NoReturn:  # noqa: ARG001
    """Raise an InputError: a BEIR folder has no runs."""
    raise InputError(
        _NO_RUN, field="format", hint="write the run to a file: .run, .jsonl, .csv or .parquet"
    )


def _folder(source: Source) -> Path:
    return source.path.absolute().parent.parent


def queries_file(folder: Path) -> Path | None:
    """Return the path of queries.jsonl (possibly compressed) in a folder, or None."""
    names = ["queries.jsonl", *(f"queries.jsonl{ending}" for ending in COMPRESSIONS)]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read_queries(source: Source) -> dict[str, dict[str, Any]]:
    queries: dict[str, dict[str, Any]] = {}
    for number, record in decoded(numbered(source), msgspec.json.Decoder().decode, source):
        line = converted(number, record, BeirQuery, source.error)
        query = new_query_id(line.id, queries, number, source.error)
        fields = fields_of(record, "_id", "text")
        check_depth(fields, number, source.error)
        queries[query] = {"text": line.text} | fields
    return queries


def fields_of(record: Mapping[str, Any], *used: str) -> dict[str, Any]:
    """Return the keys that are not used, and those in `metadata`.

    A key of `metadata` that exists outside of it as well becomes `metadata.KEY`.
    """
    fields = {key: value for key, value in record.items() if key not in used}
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        del fields["metadata"]
        reserved = {"query_id", "text", *fields}
        for key, value in metadata.items():
            fields[f"metadata.{key}" if key in reserved else key] = value
    for name in ("query_id", "text"):  # columns of the table of queries
        if name in fields:
            fields[f"{name}_field"] = fields.pop(name)
    return fields


FORMAT = Format(
    "beir",
    (),
    sniff,
    kind,
    read_gold,
    read_run,
    write_gold,
    write_run,
    folder=True,
    read_gold_pieces=read_gold_pieces,
)
