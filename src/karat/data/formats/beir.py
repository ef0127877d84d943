"""BEIR folders: queries.jsonl, and judgments in qrels/, one file a split.

The corpus that lies beside them is no part of gold and is never opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import polars as pl

from karat.data.data_file import DataFile, plain_name
from karat.data.formats import table_files
from karat.data.formats.base import Format, Kind, WriteReport, warn_of_gold_losses
from karat.data.formats.json_lines import Id, check_depth, converted, decoded, new_query, numbered
from karat.data.formats.native_gold import queries_of
from karat.data.gold import Gold
from karat.data.run import Run
from karat.errors import InputError
from karat.files import COMPRESSIONS, Source, without_compression

_NO_RUN = "a BEIR folder has queries and judgments, and no run"
_RUN_FILE = "name a file with a run, such as run.trec or run.jsonl; gold comes first, then the run"


class BeirQuery(msgspec.Struct):
    """A line of queries.jsonl; further keys, and those of `metadata`, are fields of the query."""

    id: Id = msgspec.field(name="_id")
    text: str | None = None


def split_of(folder: Path) -> Path | None:
    """Return the file of judgments that a folder stands for: test, or the only split there is."""
    try:
        files = sorted((folder / "qrels").iterdir()) if folder.is_dir() else []
    except OSError:
        return None
    splits = {plain_name(f): f for f in files if without_compression(f).suffix == ".tsv"}
    if len(splits) > 1 and "test" not in splits:
        raise InputError(
            f"this BEIR folder has no test split, but {', '.join(splits)}",
            path=folder,
            hint=f"name one of them, such as {next(iter(splits.values()))}",
        )
    return splits.get("test", next(iter(splits.values()), None))


def sniff(source: DataFile) -> bool:
    """Tell whether a table lies in a BEIR folder."""
    return (
        source.path.absolute().parent.name == "qrels"
        and queries_file(_folder(source)) is not None
        and table_files.TSV.sniff(source)
    )


def kind(_: Source) -> Kind:
    """Say that the folder holds gold."""
    return "gold"


def read_gold(source: DataFile) -> Gold:
    """Read a split, with what queries.jsonl knows of its queries; others are of other splits."""
    gold = table_files.TSV.read_gold(source)
    file = queries_file(_folder(source))
    told = {} if file is None else _queries(Source(file))
    known = queries_of({query: told.get(query, {}) for query in gold.query_ids})
    return Gold(gold.judgments, query_data=known, name=_folder(source).name)


def read_run(source: Source) -> NoReturn:
    """Refuse: judgments are all that a BEIR folder holds."""
    raise source.error(_NO_RUN, hint=_RUN_FILE)


def refuse_folder_as_run(path: Path) -> None:
    """Refuse a folder of judgments where a run is meant."""
    if path.is_dir() and (path / "qrels").is_dir():
        raise InputError(_NO_RUN, path=path, hint=_RUN_FILE)


def write_gold(gold: Gold, folder: Path) -> WriteReport:
    """Write queries.jsonl and qrels/test.tsv; fields of queries go under `metadata`."""
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
    """Refuse: a BEIR folder has no place for a run."""
    raise InputError(_NO_RUN, field="format", hint="write the run as a file: .run, .jsonl, .csv, …")


def _folder(source: Source) -> Path:
    return source.path.absolute().parent.parent


def queries_file(folder: Path) -> Path | None:
    """Return the file of queries that lies in a folder, if one does."""
    names = ["queries.jsonl", *(f"queries.jsonl{ending}" for ending in COMPRESSIONS)]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _queries(source: Source) -> dict[str, dict[str, Any]]:
    queries: dict[str, dict[str, Any]] = {}
    for number, record in decoded(numbered(source), msgspec.json.Decoder().decode, source):
        line = converted(number, record, BeirQuery, source.error)
        query = new_query(line.id, queries, number, source.error)
        fields = fields_of(record, "_id", "text")
        check_depth(fields, number, source.error)
        queries[query] = {"text": line.text} | fields
    return queries


def fields_of(record: Mapping[str, Any], *used: str) -> dict[str, Any]:
    """Return the further keys and those of `metadata`, under its name where two are alike."""
    fields = {key: value for key, value in record.items() if key not in used}
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        del fields["metadata"]
        taken = {"query_id", "text", *fields}
        fields |= {f"metadata.{k}" if k in taken else k: v for k, v in metadata.items()}
    for name in ("query_id", "text"):  # which are the query's own
        if name in fields:
            fields[f"{name}_field"] = fields.pop(name)
    return fields


FORMAT = Format("beir", (), sniff, kind, read_gold, read_run, write_gold, write_run, folder=True)
