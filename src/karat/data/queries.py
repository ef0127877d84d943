"""Queries to ask: ids and texts, from gold or from files that hold little else."""

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
    new_query,
    numbered,
    record_error,
    table_of,
)
from karat.data.formats.native_gold import GOLD_KEYS, queries_of
from karat.data.gold import Gold, generated_query_id, gold_of_table, is_list_of_pairs
from karat.data.gold_tables import TEXT_COLUMNS, list_columns
from karat.errors import InputError
from karat.files import BYTE_ORDER_MARK, HEAD_BYTES, Source, decode

LINE_IDS = ("query_id", "qid", "_id", "id")
LINE_TEXTS = ("query", "text", "question", "user_input", "prompt", "title")
COLUMN_IDS = (*frames.QUERY_ID, "_id", "id", "topic")
SHAPE = "give ids and texts as query_id and query, or map yours: --column query=COLUMN"
_GOLD_KEYS = {"karat", *GOLD_KEYS} - {"query_id", "query"}
_TREC_LINE = re.compile(r"\S+\s+\S+\s+\S+\s+[-+.\d]+(?:\s+\S+\s+\S.*)?")
_SCHEMA = {"query_id": pl.String, "text": pl.String}


class QueryLine(msgspec.Struct, rename={"beir_id": "_id"}):
    """A query in JSON Lines, by any of its names; further keys are fields of the query."""

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


def read_queries(
    source: Any, *, columns: Columns | Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return queries however they are given: query_id, text where known, fields; sorted by id.

    They are given as gold, or as anything with ids and texts: a file, a table, records, a dict.
    A text file with one query per line is read, too. `columns` maps karat's names to theirs.

    >>> read_queries({"q2": "lost parcel", "q1": "pay by card"})["text"].to_list()
    ['pay by card', 'lost parcel']
    """
    mapping = Columns.of(columns)
    table = _to_queries(source, mapping)
    if mapping is not columns:
        mapping.check()
    if not table.height:
        raise InputError("there is no query", hint=SHAPE)
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
    lone = beir.queries_file(path) if beir.split_of(path) is None else None
    sources = registry.sources(path, columns) if lone is None else [DataFile(lone, columns)]
    if len(sources) == 1:
        return _from_file(sources[0])
    return Gold.read(path, columns=columns).queries


def _from_file(source: DataFile) -> pl.DataFrame:
    """Read a file of ids and texts; if it holds more, it is gold."""
    if _has_pairs(source):
        return _from_pairs(source)
    known = registry.detect(source)
    if known.name in table_files.READERS:
        return table_files.made(_from_table, table_files.READERS[known.name](source), source)
    keys = _first_keys(source) if known is native.FORMAT else set()
    # An object of plain texts looks like a line; the ids of queries are its keys.
    if known is pytrec_json.FORMAT or (
        source.ending == ".json" and not keys & {*LINE_IDS, "karat"}
    ):
        return pytrec_json.placed(source, lambda content: _from_python(content, source.columns))
    if known is native.FORMAT and not keys & _GOLD_KEYS:
        lines = decoded(numbered(source), msgspec.json.Decoder().decode, source)
        return _from_records(((n, source.columns.record(line)) for n, line in lines), source.error)
    if known is trec.FORMAT and _has_text_lines(source):
        return _from_text_lines(source)
    return known.read_gold(source).queries


def _first_keys(source: DataFile) -> set[str]:
    """Return the keys of the first line, or none if it is not a JSON object."""
    try:
        first = msgspec.json.decode(native.first_line(source))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return set()
    return source.columns.rename_names(first) if isinstance(first, dict) else set()


def _from_python(given: Any, columns: Columns) -> pl.DataFrame:
    """Read {id: text} or a list of records; anything else is gold, or nothing."""
    if isinstance(given, Mapping) and any(isinstance(text, str) for text in given.values()):
        return _from_mapping(given)
    if isinstance(given, Sequence):
        given = [columns.record(record) for record in given]
    if isinstance(given, Sequence) and not frames.are_ragas_rows(given):
        signs = [set(record) & _GOLD_KEYS for record in given if isinstance(record, Mapping)]
        if not any(signs) and not is_list_of_pairs(given):
            return _from_records(enumerate(given, 1), record_error)
    return Gold.of(given).queries


def _from_mapping(texts: Mapping[Any, Any]) -> pl.DataFrame:
    for query, text in texts.items():
        if isinstance(query, bool) or not isinstance(query, (str, int)) or query == "":
            raise InputError(f"{query!r} is no id: ids are text or whole numbers", field="query_id")
        if not isinstance(text, str):
            raise InputError(f"query {query!r} has {text!r} for its text", field="text", hint=SHAPE)
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
        given = record[id_key] if id_key else generated_query_id(record[text_key])
        query = new_query(given, queries, number, error)
        used = (id_key or "query_id", text_key or "text", *_GOLD_KEYS)
        fields = beir.fields_of(record, *used)
        check_depth(fields, number, error)
        queries[query] = {"text": record.get(text_key)} | fields
    hashed.warn("the file")
    return queries_of(queries)


def _from_table(table: pl.DataFrame, *, locate: frames.Locate = frames.row_error) -> pl.DataFrame:
    if _is_gold(table):
        return gold_of_table(table, locate=locate).queries
    query = frames.column(table, COLUMN_IDS)
    if query is None:
        ids = frames.query_ids(table, locate)
    else:
        ids = frames.ids(table[query], "query_id", locate)
    frames.check_unique_ids(ids, "query", locate)
    text = frames.column(table, TEXT_COLUMNS)
    own = [ids] if text is None else [ids, frames.texts(table[text], "text", locate)]
    rest = table.drop({query or "query_id", text or "text", "query_id", "text"}, strict=False)
    return pl.DataFrame([*own, *rest.get_columns()])


def _is_gold(table: pl.DataFrame) -> bool:
    """Tell whether the rows are judgments, evidence, places or Ragas rows, and not queries."""
    judged = [frames.column(table, names) for names in (COLUMN_IDS, frames.ITEM_ID, frames.GRADE)]
    return (
        (None not in judged and judged[0] != judged[1])
        or frames.column(table, ("evidence",)) is not None
        or bool(list_columns(table))
        or frames.has_ragas_columns(table.columns)
        or frames.has_span_columns(table)
    )


def _has_pairs(source: DataFile) -> bool:
    """Tell files of id, tab and text that name no columns, as MS MARCO's are."""
    if table_files.PARQUET.sniff(source) or table_files.ARROW.sniff(source):
        return False  # whose bytes may look like that
    head = source.head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    whole = head.rpartition("\n")[0] if len(source.head) == HEAD_BYTES else head
    lines = [line.split("\t") for line in whole.split("\n") if line.strip()]
    if not lines or any(len(fields) != 2 for fields in lines):
        return False
    names = {name.strip(' "\r').lower() for name in lines[0]}
    return names.isdisjoint(COLUMN_IDS)


def _from_pairs(source: Source) -> pl.DataFrame:
    queries: dict[str, str] = {}
    for number, line in enumerate(decode(source.read(), source).split("\n"), 1):
        if not line.strip():
            continue
        query, tab, text = line.rstrip("\r").partition("\t")
        if not tab or "\t" in text or not query.strip():
            raise source.error(
                "this line is not an id, a tab and a text", line=number, hint="name the columns"
            )
        queries[new_query(query.strip(), queries, number, source.error)] = text
    return pl.DataFrame(list(queries.items()), schema=_SCHEMA, orient="row")


def _has_text_lines(source: Source) -> bool:
    """Tell whether a file has one query per line: text, and nothing that may be qrels."""
    head = source.head.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    lines = [line.strip() for line in head.splitlines() if line.strip()]
    return source.ending == ".txt" and not any(map(_TREC_LINE.fullmatch, lines))


def _from_text_lines(source: Source) -> pl.DataFrame:
    """Read one query per line; its id is made of its text."""
    queries: dict[str, str] = {}
    for number, line in enumerate(decode(source.read(), source).split("\n"), 1):
        if text := line.strip():
            queries[new_query(generated_query_id(text), queries, number, source.error)] = text
    return pl.DataFrame(list(queries.items()), schema=_SCHEMA, orient="row")
