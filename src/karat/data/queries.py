"""Reading queries (ids, texts and fields) from gold, or from files of queries."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from karat.data import frames
from karat.data.columns import Columns
from karat.data.data_file import DataFile, PathSource
from karat.data.formats import beir, native, pytrec_json, registry, table_files, trec
from karat.data.formats.json_lines import (
    Id,
    MakeError,
    Numbered,
    check_depth,
    converted,
    decoded,
    new_query_id,
    numbered,
    record_error,
    table_of,
)
from karat.data.formats.native_gold import GOLD_KEYS, queries_table
from karat.data.gold import Gold, generated_query_id, gold_of_table, is_list_of_pairs
from karat.data.gold_tables import TEXT_COLUMNS, list_columns
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK, HEAD_BYTES, Source, decode

LINE_IDS = ("query_id", "qid", "_id", "id")
LINE_TEXTS = ("query", "text", "question", "user_input", "prompt", "title")
COLUMN_IDS = (*frames.QUERY_ID, "_id", "id")
SHAPE = (
    "name the columns or keys 'query_id' (the id) and 'query' (the text), or map a column: "
    "--column query=COLUMN"
)
_GOLD_KEYS = {"karat", *GOLD_KEYS} - {"query_id", "query", "answerable"}
_TREC_LINE = re.compile(r"\S+\s+\S+\s+\S+\s+[-+.\d]+(?:\s+\S+\s+\S.*)?")
_SCHEMA = {"query_id": pl.String, "text": pl.String}


class QueryLine(msgspec.Struct, rename={"beir_id": "_id"}):
    """One line of a JSON Lines file of queries; other keys are query fields."""

    query_id: Id | None = None
    qid: Id | None = None
    beir_id: Id | None = None
    id: Id | None = None
    query: str | None = None
    text: str | None = None
    question: str | None = None
    user_input: str | None = None
    prompt: str | None = None
    title: str | None = None
    answerable: bool | None = None


def read_queries(
    source: Any, *, columns: Columns | Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return a table of queries with query_id, text if known, and fields; sorted by id.

    The source is gold, or anything with ids and texts: a file, a table, records or a dict. It may
    also be a text file with one query per line. `columns` maps karat's names to the names in the
    source.

    >>> read_queries({"q2": "lost parcel", "q1": "pay by card"})["text"].to_list()
    ['pay by card', 'lost parcel']
    """
    mapping = Columns.of(columns)
    table = _to_queries(source, mapping)
    if mapping is not columns:
        mapping.check()
    if not table.height:
        raise InputError("no queries found", hint=SHAPE)
    return table.sort("query_id")


def _to_queries(source: Any, columns: Columns) -> pl.DataFrame:
    if isinstance(source, PathSource) and source.format is None:
        source, columns = source.path, source.columns or columns
    if isinstance(source, (str, os.PathLike)):
        return _from_path(Path(source), columns)
    if frames.is_table(source):
        return _from_table(columns.table(frames.to_frame(source)))
    if isinstance(source, (Mapping, Sequence)):
        return _from_python(source, columns)
    return Gold.open(source).queries


def _from_path(path: Path, columns: Columns) -> pl.DataFrame:
    beir_file = beir.queries_file(path) if beir.find_split(path) is None else None
    if beir_file is not None:
        return _from_file(DataFile(beir_file, columns))
    files = registry.sources(path, columns)
    if len(files) == 1:
        return _from_file(files[0])
    return Gold.read(path, columns=columns).queries


def _from_file(source: DataFile) -> pl.DataFrame:
    """Read a file of queries; a file with other contents is read as gold."""
    if _has_pairs(source):
        return _from_pairs(source)
    file_format = registry.detect(source)
    if file_format.name in table_files.READERS:
        table_rows = table_files.READERS[file_format.name](source)
        return table_files.convert_table(_from_table, table_rows, source)
    keys = _first_keys(source) if file_format is native.FORMAT else set()
    # {"q1": "text", …} looks like a native line, but its keys are query ids.
    if file_format is pytrec_json.FORMAT or (
        source.ending == ".json" and not keys & {*LINE_IDS, "karat"}
    ):
        return pytrec_json.convert_content(
            source, lambda content: _from_python(content, source.columns)
        )
    if file_format is native.FORMAT and not keys & _GOLD_KEYS:
        lines = decoded(numbered(source), msgspec.json.Decoder().decode, source)
        return _from_records(((n, source.columns.record(line)) for n, line in lines), source.error)
    if file_format is trec.FORMAT and _has_text_lines(source):
        return _from_text_lines(source)
    return file_format.read_gold(source).queries


def _first_keys(source: DataFile) -> set[str]:
    """Return the keys of the first line, or an empty set if it is not a JSON object."""
    try:
        first = msgspec.json.decode(native.first_line(source))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return set()
    return source.columns.rename_names(first) if isinstance(first, dict) else set()


def _from_python(source: Any, columns: Columns) -> pl.DataFrame:
    """Read {id: text} or a list of records; anything else is read as gold."""
    if isinstance(source, Mapping) and any(isinstance(text, str) for text in source.values()):
        return _from_mapping(source)
    if isinstance(source, Sequence):
        source = [columns.record(record) for record in source]
        is_gold = (
            frames.are_ragas_rows(source)
            or is_list_of_pairs(source)
            or any(
                not _GOLD_KEYS.isdisjoint(record)
                for record in source
                if isinstance(record, Mapping)
            )
        )
        if not is_gold:
            return _from_records(enumerate(source, 1), record_error)
    return Gold.of(source).queries


def _from_mapping(texts: Mapping[Any, Any]) -> pl.DataFrame:
    for query, text in texts.items():
        if isinstance(query, bool) or not isinstance(query, (str, int)) or query == "":
            raise InputError(
                f"an id must be text or a whole number, got {query!r}", field="query_id"
            )
        if not isinstance(text, str):
            raise InputError(
                f"query {query!r}: the text must be a string, got {text!r}",
                field="text",
                hint=SHAPE,
            )
    table = table_of([(str(q), text) for q, text in texts.items()], _SCHEMA, "text", orient="row")
    frames.check_unique_ids(table["query_id"], "query")
    return table


def _from_records(lines: Numbered[Any], error: MakeError) -> pl.DataFrame:
    queries: dict[str, dict[str, Any]] = {}
    hashed = frames.Hashed()
    for number, record in lines:
        converted(number, record, QueryLine, error)
        id_key = next((key for key in LINE_IDS if record.get(key) is not None), None)
        text_key = next((key for key in LINE_TEXTS if record.get(key) is not None), None)
        if id_key is None and text_key is None:
            raise error(
                "the query has neither an id nor a text", line=number, field="query_id", hint=SHAPE
            )
        hashed.queries |= id_key is None
        query_id = record[id_key] if id_key else generated_query_id(record[text_key])
        query = new_query_id(query_id, queries, number, error)
        used_keys = (id_key or "query_id", text_key or "text", *_GOLD_KEYS)
        fields = beir.fields_of(record, *used_keys)
        check_depth(fields, number, error)
        queries[query] = {"text": record.get(text_key)} | fields
    hashed.warn("the file")
    return queries_table(queries)


def _from_table(table: pl.DataFrame, *, locate: frames.Locate = frames.row_error) -> pl.DataFrame:
    if _is_gold(table):
        return gold_of_table(table, locate=locate).queries
    query = frames.column(table, COLUMN_IDS) or frames.query_id_column(table)
    text = frames.column(table, TEXT_COLUMNS)
    if query is None:
        ids = frames.query_ids(table, locate)
    else:
        ids = frames.ids(table[query], "query_id", locate)
    frames.check_unique_query_ids(ids, query, locate)
    checked = [ids]
    if text is not None:
        checked.append(frames.texts(table[text], "text", locate))
    fields = table.drop({query or "query_id", text or "text", "query_id", "text"}, strict=False)
    if "answerable" in fields.columns:
        fields = fields.with_columns(frames.flags(fields["answerable"], "answerable", locate))
    return pl.DataFrame([*checked, *fields.get_columns()])


def _is_gold(table: pl.DataFrame) -> bool:
    """Return whether the rows are judgments, evidence texts, spans or Ragas rows."""
    query = frames.column(table, (*COLUMN_IDS, "topic"))
    item, grade = (frames.column(table, names) for names in (frames.ITEM_ID, frames.GRADE))
    return (
        (None not in (query, item, grade) and query != item)
        or frames.column(table, ("evidence",)) is not None
        or bool(list_columns(table))
        or frames.has_ragas_columns(table.columns)
        or frames.has_span_columns(table)
    )


def _has_pairs(source: DataFile) -> bool:
    """Return whether a file has lines of id, tab and text without a header, as in MS MARCO."""
    if table_files.PARQUET.sniff(source) or table_files.ARROW.sniff(source):
        return False  # binary data may look like such lines
    head = source.head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    if len(source.head) == HEAD_BYTES:  # the last line may be incomplete
        head = head.rpartition("\n")[0]
    lines = [line.split("\t") for line in head.split("\n") if line.strip()]
    if not lines or any(len(fields) != 2 for fields in lines):
        return False
    names = {name.strip(' "\r').lower() for name in lines[0]}
    return names.isdisjoint((*COLUMN_IDS, "topic"))


def _from_pairs(source: Source) -> pl.DataFrame:
    queries: dict[str, str] = {}
    for number, line in enumerate(decode(source.read(), source).split("\n"), 1):
        if not line.strip():
            continue
        query, tab, text = line.rstrip("\r").partition("\t")
        if not tab or "\t" in text or not query.strip():
            raise source.error(
                "expected an id, a tab and a text",
                line=number,
                hint="if the file has other columns, add a header line with their names",
            )
        queries[new_query_id(query.strip(), queries, number, source.error)] = text
    return pl.DataFrame(list(queries.items()), schema=_SCHEMA, orient="row")


def _has_text_lines(source: Source) -> bool:
    """Return whether a .txt file has one query per line, and no line that may be from qrels."""
    head = source.head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    lines = [line.strip() for line in head.splitlines() if line.strip()]
    return source.ending == ".txt" and not any(map(_TREC_LINE.fullmatch, lines))


def _from_text_lines(source: Source) -> pl.DataFrame:
    """Read one query per line; ids are generated from the texts."""
    queries: dict[str, str] = {}
    for number, line in enumerate(decode(source.read(), source).split("\n"), 1):
        if text := line.strip():
            queries[new_query_id(generated_query_id(text), queries, number, source.error)] = text
    return pl.DataFrame(list(queries.items()), schema=_SCHEMA, orient="row")
