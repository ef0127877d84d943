"""Slow and obvious readers of every format, in plain Python; PyArrow reads Parquet and Arrow.

They follow docs/formats.md, not the code of karat. `RefusedError`: the input has no meaning.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import math
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

import gzip

QUERY_ID = ("query_id", "qid", "query-id", "queryid", "q_id")
QUERY_TEXT = ("query", "question", "user_input", "prompt")
DOC_ID = ("doc_id", "docid", "docno", "corpus-id")
OWN_ID = ("item_id", "chunk_id", "id")
LISTS = ("relevant", "relevant_ids", "expected", "expected_ids", "judgments")
RESULTS = ("results", "retrieved", "retrieved_ids")
GRADE = ("grade", "rel", "relevance", "label", "score")
CONTEXTS = (
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
INFINITE = re.compile(r"[+-]?(inf|infinity)", re.IGNORECASE)
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
LARGEST_OFFSET = 2**32
LARGEST_GRADE = 2**31


CONVENTIONS = {
    "missing": ("zero", "skip", "error"),
    "unknown": ("ignore", "error"),
    "no_gold": ("family", "zero", "one", "recall", "skip"),
    "duplicates": ("first", "count", "set", "error"),
    "unjudged": ("irrelevant", "skip"),
}


class RefusedError(Exception):
    """The input has no meaning."""


class UncheckedError(RefusedError):
    """The input may have a meaning, but this module does not know it."""


@dataclass
class PlainGold:
    judgments: list[tuple[str, str, int]] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)
    """Queries that judgments were given for, also if there are none."""
    spans: list[tuple[str, str, int, int]] = field(default_factory=list)
    evidence: list[tuple[str, str]] = field(default_factory=list)
    queries: set[str] = field(default_factory=set)
    texts: dict[str, str | None] | None = None
    """The texts of the queries; None where they are not checked."""


@dataclass
class PlainItem:
    id: str | None
    score: float | None = None
    doc_id: str | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None


@dataclass
class PlainRun:
    lists: dict[str, list[PlainItem]] = field(default_factory=dict)
    timings: list[tuple[str, str, float]] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    candidates: dict[str, list[PlainItem]] = field(default_factory=dict)


def refuse(reason: str) -> NoReturn:
    raise RefusedError(reason)


def content_of(path: Path) -> bytes:
    """Return the bytes of a file, expanded if its ending or its first bytes call for it."""
    data = path.read_bytes()
    try:
        if path.suffix == ".gz" or (path.suffix != ".zst" and data.startswith(b"\x1f\x8b\x08")):
            return gzip.decompress(data)
        if path.suffix == ".zst" or data.startswith(b"\x28\xb5\x2f\xfd"):
            return zstd.decompress(data)
    except (OSError, EOFError, zstd.ZstdError, ValueError) as error:
        raise RefusedError(str(error)) from error
    except Exception as error:  # zlib.error
        raise RefusedError(str(error)) from error
    return data


def text_of(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        refuse("UTF-16")
    if data[:400].count(0) * 4 > len(data[:400]):
        refuse("zero bytes")
    try:
        text = data.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError:
        refuse("not UTF-8")
    if not text.strip(" \t\r\n\v\f"):
        refuse("empty")
    return text


def an_id(value: Any) -> str:
    """Return an id as text: whole numbers become text, everything else is refused."""
    if isinstance(value, bytes):
        raise UncheckedError("bytes that may be text")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        refuse(f"{str(value)[:50]!r} is not an id")
    try:
        text = str(value)
        text.encode()
    except (UnicodeEncodeError, ValueError):
        refuse("half a character, or too many digits")
    if "\0" in text:
        refuse("an id with NUL")
    return text


def a_text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        refuse("not a text")
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        refuse("half a character")
    return value


def stripped(text: str) -> str:
    """Strip white space of Unicode; Python's includes separators such as U+001C."""
    keep = "\x1c\x1d\x1e\x1f"
    return re.sub(rf"^[^\S{keep}]+|[^\S{keep}]+$", "", text)


def a_whole_number(value: Any, low: int = -(2**63), high: int = 2**63 - 1) -> int:
    if isinstance(value, str):
        text = stripped(value)
        if not WHOLE.fullmatch(text):
            refuse(f"{text[:50]!r} is not a whole number")
        sign, digits = text[:1].strip("0123456789"), text.partition(".")[0].lstrip("+-0")
        if len(digits) > 30:
            refuse("out of range")
        number = int(f"{sign}{digits or 0}")
    elif isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        number = int(value)
    else:
        refuse(f"{str(value)[:50]!r} is not a whole number")
    if not low <= number <= high:
        refuse("out of range")
    return number


def a_grade(value: Any) -> int:
    return a_whole_number(value, -LARGEST_GRADE + 1, LARGEST_GRADE - 1)


def an_offset(value: Any) -> int:
    return a_whole_number(value, 0, LARGEST_OFFSET)


def a_score(value: Any) -> float:
    if isinstance(value, str):
        value = stripped(value)
        if not DECIMAL.fullmatch(value):
            refuse(f"{value[:50]!r} is not a number")
    elif value is None or not isinstance(value, (int, float)):
        refuse(f"{str(value)[:50]!r} is not a number")
    try:
        number = float(value)
    except OverflowError:
        refuse("too large")
    if not math.isfinite(number):
        refuse("not finite")
    return number


def infinite_or(score: Any) -> float:
    """Return a score of TREC or of a table, which may be infinite."""
    if isinstance(score, str) and INFINITE.fullmatch(stripped(score)):
        return float(score)
    if isinstance(score, float) and math.isinf(score):
        return score
    return a_score(score)


def by_score(items: list[PlainItem]) -> list[PlainItem]:
    """Order by score descending, ties by the bytes of the id descending."""
    if any(item.id is None for item in items):
        return sorted(items, key=lambda item: -(item.score or 0.0))
    return sorted(items, key=lambda item: (item.score, (item.id or "").encode()), reverse=True)


# TREC and ir_datasets: fields on lines.


def lines_of_fields(data: bytes) -> list[list[bytes]]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        refuse("UTF-16")
    lines = [line.split() for line in data.removeprefix(BYTE_ORDER_MARK).split(b"\n")]
    for line in data.removeprefix(BYTE_ORDER_MARK).split(b"\n"):
        if line.strip().startswith(b"#") and b"\r" in line.strip():
            refuse("a comment that may hide lines")
    return [fields for fields in lines if fields and not fields[0].startswith(b"#")]


def decoded(field: bytes) -> str:
    try:
        return field.decode("utf-8")
    except UnicodeDecodeError:
        refuse("not UTF-8")


def trec_gold(data: bytes) -> PlainGold:
    gold = PlainGold()
    for fields in lines_of_fields(data):
        if len(fields) != 4:
            refuse("not four fields")
        query, _, item, grade = map(decoded, (fields[0], b"", fields[2], fields[3]))
        if not grade.isascii():
            refuse("not a grade")
        gold.judgments.append((an_id(query), an_id(item), a_grade(grade)))
    return judged(gold)


def judged(gold: PlainGold) -> PlainGold:
    if not gold.judgments:
        refuse("no judgment")
    gold.judged = {query for query, _, _ in gold.judgments}
    gold.queries = set(gold.judged)
    return gold


def trec_run(data: bytes) -> PlainRun:
    """Read a run; fields after the sixth belong to a tag with spaces."""
    lists: dict[str, list[PlainItem]] = {}
    body = data.removeprefix(BYTE_ORDER_MARK)
    inside = any(b"\r" in line.strip() for line in body.split(b"\n"))
    for fields in lines_of_fields(data):
        if len(fields) < 6:
            refuse("not six fields")
        if len(fields) > 6 and inside:
            refuse("more than six fields, and a carriage return that may end a line")
        if len(fields) > 6 and DECIMAL.fullmatch(fields[5].decode("latin-1")):
            refuse("more than six fields, and no tag")
        query, item, score = decoded(fields[0]), decoded(fields[2]), decoded(fields[4])
        if not score.isascii():
            refuse("not a score")
        lists.setdefault(an_id(query), []).append(PlainItem(an_id(item), infinite_or(score)))
    if not lists:
        refuse("no result")
    return PlainRun({query: by_score(items) for query, items in lists.items()})


def ir_datasets_fields(data: bytes, most: int) -> list[list[str]]:
    text = re.sub(r"\A(?:[ \t\r]*\n)+", "", text_of(data)).lstrip("\r")
    lines = [line.removesuffix("\r").split("\t") for line in text.split("\n")]
    if any("\r" in field for fields in lines for field in fields):
        refuse("a carriage return inside a line")
    rows = [fields for fields in lines if any(fields)]
    if not rows or not all(3 <= len(fields) <= most for fields in rows):
        refuse("the number of fields")
    if any(len(fields) > len(rows[0]) for fields in rows):
        refuse("more fields than in the first line")
    return rows


def ir_datasets_gold(data: bytes) -> PlainGold:
    rows = ir_datasets_fields(data, 4)
    return judged(PlainGold([(an_id(r[0]), an_id(r[1]), a_grade(r[2])) for r in rows]))


def ir_datasets_run(data: bytes) -> PlainRun:
    lists: dict[str, list[PlainItem]] = {}
    raw: dict[str, list[str]] = {}
    for query, item, score in ir_datasets_fields(data, 3):
        lists.setdefault(an_id(query), []).append(PlainItem(an_id(item), infinite_or(score)))
        raw.setdefault(query, []).append(score)
    several = [scores for scores in raw.values() if len(scores) > 1]
    if several and all(scores == [str(n + 1) for n in range(len(scores))] for scores in several):
        refuse("ranks")
    return PlainRun({query: by_score(items) for query, items in lists.items()})


# Tables.


@dataclass
class Table:
    names: list[str]
    rows: list[list[Any]]

    def find(self, wanted: Iterable[str], but: str | None = None) -> str | None:
        """Return the first column with one of these names, in the order of the names."""
        for name in wanted:
            same = [c for c in self.names if c.strip().lower() == name and c != but]
            if len(same) > 1:
                refuse("two columns whose names differ only in case or spaces")
            if same:
                return same[0]
        return None

    def column(self, name: str) -> list[Any]:
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    @property
    def query(self) -> str | None:
        if (found := self.find(QUERY_ID)) is not None:
            return found
        if self.find(QUERY_TEXT):
            return self.find(["id"])
        return None if self.find(["id"]) else self.find(["topic"])

    def need(self, wanted: Iterable[str], but: str | None = None) -> str:
        return self.find(wanted, but) or refuse(f"no column {next(iter(wanted))}")


def delimited_table(data: bytes, separator: str) -> Table:
    text = text_of(data).lstrip("\r\n")
    for match in re.finditer(r"\r(?!\n)", text):
        if text.count('"', 0, match.start()) % 2 == 0:
            refuse("a lone carriage return")
    csv.field_size_limit(sys.maxsize)
    try:
        rows = [
            row
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
            if row
        ]
    except csv.Error as error:
        raise RefusedError(str(error)) from error
    if not rows:
        refuse("no line")
    for value in (value for row in rows for value in row if value.count('"') % 2):
        last_line = text.rpartition("\n")[2]  # where it does no harm
        if value.replace('"', '""') not in text and value not in last_line:
            refuse("a quote inside an unquoted value")
    if text.startswith("\ufeff"):
        raise UncheckedError("two byte order marks")
    if any(len(row) != len(rows[0]) for row in rows):
        refuse("rows of different lengths")
    if any('"' in name and name.replace('"', '""') not in text for name in rows[0]):
        refuse("a quote inside an unquoted name")
    named = [name for name in rows[0] if name.strip()]
    if len(set(named)) < len(named):
        refuse("two columns of one name")
    return Table(rows[0], [[value or None for value in row] for row in rows[1:] if any(row)])


def arrow_table(data: bytes, name: str) -> Table:
    """Read columns with PyArrow, an independent reader."""
    file = io.BytesIO(data)
    try:
        if name == "parquet":
            table = pa.parquet.ParquetFile(file).read()
        elif data.startswith(b"\xff\xff\xff\xff"):
            table = pa.ipc.open_stream(file).read_all()
        else:
            table = pa.ipc.open_file(file).read_all()
        table.validate(full=True)
        columns = [table.column(at).to_pylist() for at in range(table.num_columns)]
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError, TypeError) as error:
        raise RefusedError(f"PyArrow: {error}") from error
    if "__index_level_0__" in table.column_names:
        refuse("an index of pandas")
    return Table(list(table.column_names), [list(row) for row in zip(*columns, strict=True)])


def holds_contexts(names: Iterable[str]) -> bool:
    own = {"karat", "relevant", "results", "spans", "evidence", *OWN_ID, *DOC_ID} - {"id"}
    return bool(set(CONTEXTS) & set(names)) and not own & set(names)


def table_gold(table: Table) -> PlainGold:
    if holds_contexts(table.names):
        return ragas_gold(ragas_of_table(table))
    query = table.query
    start, grade = table.find(["start"]), table.find(GRADE)
    item = table.find((*OWN_ID, *DOC_ID), but=query)
    places = start and (item is None or item.strip().lower() in DOC_ID)
    if grade in (None, "score") and (table.find(["rank"]) or (grade and places)):
        refuse("a run")
    if not table.rows:
        refuse("no rows")
    ids = query_ids(table)
    gold = PlainGold(queries=set(ids))
    words = table.find(QUERY_TEXT, but=query)
    if words and len(set(ids)) < len(set(zip(ids, map(repr, table.column(words)), strict=True))):
        refuse("a query has two texts")
    if places:
        docs = [an_id(value) for value in table.column(table.need(DOC_ID))]
        starts = [an_offset(value) for value in table.column(table.need(["start"]))]
        ends = [an_offset(value) for value in table.column(table.need(["end"]))]
        if any(low > high for low, high in zip(starts, ends, strict=True)):
            refuse("the end is before the start")
        if graded := table.find(["grade", "rel", "relevance"]):
            for value in table.column(graded):
                a_grade(value)
        gold.spans = list(zip(ids, docs, starts, ends, strict=True))
        return gold
    evidence = table.find(["evidence"])
    if evidence and table.find(["relevant", "relevant_ids", "expected_ids"]):
        raise UncheckedError("evidence next to a list of ids")
    if evidence and grade is None:
        texts = [cell_text(value) for value in table.column(evidence)]
        if None in texts:  # CSV has empty texts as well as missing ones
            raise UncheckedError("an evidence text is missing or empty")
        gold.evidence = [(q, text or "") for q, text in zip(ids, texts, strict=True)]
        return gold
    listed = table.find(LISTS)
    if item is None and listed:
        if sum(name.strip().lower() in QUERY_ID for name in table.names) > 1:
            raise UncheckedError("two columns of query ids")
        for name, cell in zip(ids, table.column(listed), strict=True):
            gold.judgments += [(name, one, 1) for one in dict.fromkeys(ids_in_cell(cell))]
        gold.judged = set(ids)
        if len(gold.judged) < len(ids):
            raise UncheckedError("several lists of a query")
        return gold
    items = [an_id(value) for value in table.column(item or refuse("no item id"))]
    grades = [a_grade(value) for value in table.column(grade or refuse("no grade"))]
    gold.judgments = list(zip(ids, items, grades, strict=True))
    gold.judged = set(ids)
    return gold


def cell_text(value: Any) -> str | None:
    """Return the text of a cell; whole numbers become text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return a_text(value)


def query_ids(table: Table) -> list[str]:
    """Return the ids of the queries; without such a column, hashes of their texts."""
    if table.query is not None:
        return [an_id(value) for value in table.column(table.query)]
    texts = table.column(table.find(QUERY_TEXT) or refuse("no query id"))
    return [hashed(text) if isinstance(text, str) and text else refuse("no text") for text in texts]


def ids_in_cell(cell: Any) -> list[str]:
    """Return the ids in a cell: a list, or one that is written as text, or separated by ;."""
    if cell is None or (isinstance(cell, str) and not any(map(str.strip, cell.split(";")))):
        raise UncheckedError("an empty list")
    if isinstance(cell, str) and cell.strip().startswith("{"):
        raise UncheckedError("an object in a cell")
    if isinstance(cell, str) and cell.strip().startswith("["):
        cell = list_in_cell(cell)
    if isinstance(cell, str):
        return [an_id(one.strip()) for one in cell.split(";") if one.strip()]
    return [an_id(one) for one in a_list(cell)]


def table_run(table: Table) -> PlainRun:
    if holds_contexts(table.names):
        return ragas_run(ragas_of_table(table))
    query = table.query
    names = query_ids(table)
    start = table.find(["start"])
    item = table.find(OWN_ID if start else (*OWN_ID, *DOC_ID), but=query)
    text, end = table.find(["text"]), table.find(["end"])
    if item is None and text is None and start is None:
        refuse("no item")
    score, rank, tokens = table.find(["score"]), table.find(["rank"]), table.find(["tokens"])
    if table.find(GRADE[:-1]) and not (score or rank):
        refuse("gold")
    if not table.rows:
        refuse("no rows")
    lists: dict[str, list[tuple[Any, PlainItem]]] = {}
    for name, row in zip(names, table.rows, strict=True):
        cells = dict(zip(reversed(table.names), reversed(row), strict=True))
        one = PlainItem(None if item is None else an_id(cells[item]))
        one.score = infinite_or(cells[score]) if score else None
        one.text = cell_text(cells[text]) if text else None
        one.end = a_whole_number(cells[end]) if end else None
        if start:
            one.start = a_whole_number(cells[start])
            document = table.find(DOC_ID)
            one.doc_id = cell_text(cells[document]) if document else None
            if one.end is not None and not 0 <= one.start <= one.end <= LARGEST_OFFSET:
                refuse("not a span")
        if tokens:
            a_whole_number(cells[tokens], low=0)
        order = a_whole_number(cells[rank]) if rank else 0
        lists.setdefault(name, []).append((order, one))
    run = PlainRun()
    for name, listed in lists.items():
        if rank:
            if len({order for order, _ in listed}) < len(listed):
                refuse("a rank is repeated")
            listed.sort(key=lambda pair: pair[0])
        items = [one for _, one in listed]
        run.lists[name] = by_score(items) if score and not rank else items
    return run


# JSON and JSON Lines.


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        refuse("a key is repeated")
    return dict(pairs)


class TooLong:
    """A number of more digits than Python reads: refused where it matters."""


def too_long(everywhere: bool) -> TooLong:
    return refuse("a number of too many digits") if everywhere else TooLong()


def json_value(text: str | bytes, *, keys_once: bool) -> Any:
    try:
        return json.loads(
            text.decode() if isinstance(text, bytes) else text,
            object_pairs_hook=once if keys_once else None,
            parse_constant=lambda word: refuse(word),
            parse_int=lambda digits: int(digits) if len(digits) < 1000 else too_long(keys_once),
        )
    except (ValueError, RecursionError) as error:
        raise RefusedError(str(error)) from error


def json_records(data: bytes, *, keys_once: bool) -> list[Any]:
    text_of(data)
    lines = [line for line in data.removeprefix(BYTE_ORDER_MARK).split(b"\n") if line.strip()]
    header = [
        json_value(line, keys_once=keys_once and b'"karat"' not in line) for line in lines[:1]
    ]
    return header + [json_value(line, keys_once=keys_once) for line in lines[1:]]


def without_header(records: list[Any], kind: str) -> list[Any]:
    if not records or not isinstance(records[0], dict) or "karat" not in records[0]:
        return records
    header = records[0]
    if "TooLong" in repr(header):
        raise UncheckedError("a number of too many digits in the settings")
    if type(header["karat"]) is not int or header["karat"] != 1 or header.get("kind") != kind:
        refuse("the header")
    if header.get("offsets", "codepoint") not in ("codepoint", "utf16", "utf8"):
        refuse("the unit of offsets")
    if not isinstance(header.get("settings", {}), dict) or len(records) == 1:
        refuse("the header")
    a_text(header.get("name"))
    return records[1:]


ALIASES = {
    "query_id": ("qid", "query-id"),
    "query": ("question", "user_input", "prompt"),
    "relevant": ("relevant_ids", "expected", "expected_ids", "judgments"),
    "evidence": ("reference_contexts", "ground_truth_contexts"),
}


def an_object(record: Any) -> dict[str, Any]:
    return record if isinstance(record, dict) else refuse("not an object")


def a_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else refuse("not a list")


def given_or_empty(record: dict[str, Any], key: str) -> Any:
    return [] if record.get(key) is None else record[key]


def known_keys(record: dict[str, Any]) -> dict[str, Any]:
    renamed = dict(record)
    for known, others in ALIASES.items():
        used = [name for name in (known, *others) if name in record]
        if len(used) > 1:
            refuse("two names of one key")
        if used:
            renamed[known] = renamed.pop(used[0])
    if "query_id" not in renamed and ("query" in renamed or "text" in renamed):
        renamed["query_id"] = renamed.pop("id", None)
    return renamed


def native_gold(records: list[Any]) -> PlainGold:
    gold = PlainGold(texts={})
    for given in records:
        record = known_keys(an_object(given))
        if record.get("query_id") is None and record.get("query"):
            raise UncheckedError("a query without an id")
        query = an_id(record.get("query_id"))
        if query in gold.queries:
            refuse("a query is repeated")
        gold.queries.add(query)
        assert gold.texts is not None
        gold.texts[query] = a_text(record.get("query"))
        if "results" in record and not {"relevant", "spans", "evidence"} & set(record):
            refuse("a run")
        relevant, pairs = record.get("relevant"), []
        if relevant is not None:
            gold.judged.add(query)
            if isinstance(relevant, dict):
                pairs = [(an_id(item), json_grade(grade)) for item, grade in relevant.items()]
            else:
                pairs = list(dict.fromkeys(map(listed_judgment, a_list(relevant))))
            gold.judgments += [(query, item, grade) for item, grade in pairs]
        for group in a_list(given_or_empty(record, "any_of")):
            if not a_list(group) or not {an_id(item) for item in group} <= {i for i, _ in pairs}:
                refuse("a group of any_of that is empty, or not relevant")
        if record.get("spans") is not None:
            for span in a_list(record["spans"]):
                gold.spans.append(native_span(query, an_object(span)))
        if isinstance(record.get("evidence"), str):
            record["evidence"] = [record["evidence"]]
        if record.get("evidence") is not None:
            for text in a_list(record["evidence"]):
                if isinstance(text, dict):
                    raise UncheckedError("evidence as objects")
                gold.evidence.append(
                    (query, a_text(text) or ("" if text == "" else refuse("null")))
                )
    return gold


def listed_judgment(judgment: Any) -> tuple[str, int]:
    """Return the judgment in a list: an id, or an object with an id or a text."""
    if not isinstance(judgment, dict):
        return an_id(judgment), 1
    keys = set(judgment) - {"grade"}
    if len(keys) != 1 or not keys <= {"id", "chunk_id", "text"}:
        raise UncheckedError("other keys of a judgment")
    grade = json_grade(judgment.get("grade", 1))
    name, value = next(iter(keys)), judgment[next(iter(keys))]
    if value is None:
        refuse("neither an id nor a text")
    return (hashed(an_id(a_text(value))) if name == "text" else an_id(value)), grade


def json_grade(value: Any) -> int:
    if isinstance(value, (bool, str)):
        refuse("not a grade")
    return a_grade(value)


def json_number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    if isinstance(value, (bool, str)):
        refuse("not a number")
    number = a_score(value)
    return number if low <= number <= high else refuse("out of range")


def json_whole(value: Any, low: int, high: int) -> int:
    if isinstance(value, (bool, str, float)):
        refuse("not a whole number")
    return a_whole_number(value, low, high)


def native_span(query: str, span: dict[str, Any]) -> tuple[str, str, int, int]:
    start = json_whole(span.get("start"), 0, LARGEST_OFFSET)
    end = json_whole(span.get("end"), start, LARGEST_OFFSET)
    a_text(span.get("text"))
    json_grade(span.get("grade", 1))
    return query, an_id(span.get("doc_id")), start, end


def native_run(records: list[Any]) -> PlainRun:
    run = PlainRun()
    for given in records:
        record = an_object(given)
        if {"qid", "query-id", "queryid", "q_id", "retrieved", "retrieved_ids"} & set(record):
            raise UncheckedError("other names of keys")
        if record.get("query_id") is None and {*QUERY_TEXT} & set(record):
            raise UncheckedError("a query without an id")
        query = an_id(record.get("query_id"))
        if query in run.lists:
            refuse("a query is repeated")
        run.lists[query] = []
        if record.get("error") is not None:
            failure = an_object(record["error"])
            if not isinstance(failure.get("type"), str):
                refuse("an error without a type")
            if not isinstance(failure.get("message", ""), str):
                refuse("the message of an error is not text")
            run.failed.add(query)
        elif record.get("results") is None:
            if {"retrieved_contexts", "contexts"} & set(record):
                raise UncheckedError("texts as results")
            refuse("no results")
        items = [native_item(result) for result in a_list(given_or_empty(record, "results"))]
        before = [native_item(result) for result in a_list(given_or_empty(record, "candidates"))]
        if query not in run.failed:
            run.lists[query] = items
            if record.get("candidates") is not None:
                run.candidates[query] = before
        latency = record.get("latency_ms")
        if isinstance(latency, dict):
            for stage, ms in latency.items():
                time = json_number(ms, 0, 1e15 - 1)
                run.timings.append((query, a_text(stage) or "", time))
        elif latency is not None:
            time = json_number(latency, 0, 1e15 - 1)
            run.timings.append((query, "total", time))
        for call in a_list(given_or_empty(record, "calls")):
            a_call(an_object(call))
        if record.get("attempts", 1) != 1 or record.get("varied", False) is not False:
            raise UncheckedError("attempts")
    return run


def a_call(call: dict[str, Any]) -> None:
    """Check a call of the shape that samples have; other calls are not checked."""
    if not set(call) <= {"stage", "model", "prompt_tokens", "completion_tokens", "price_per_1k"}:
        raise UncheckedError("other keys of a call")
    a_text(call.get("stage")), a_text(call.get("model"))
    for name in ("prompt_tokens", "completion_tokens"):
        if call.get(name) is not None:
            json_whole(call[name], 0, 2**53 - 1)
    if call.get("price_per_1k") is not None:
        json_number(call["price_per_1k"], 0, 1e9 - 1)


def native_item(result: Any) -> PlainItem:
    if not isinstance(result, dict):
        return PlainItem(an_id(result))
    if result.get("id") is None and {"chunk_id", "item_id", "docno"} & set(result):
        raise UncheckedError("other names of keys")
    ids = {
        name: None if result.get(name) is None else an_id(result[name]) for name in ("id", "doc_id")
    }
    score = None if result.get("score") is None else json_number(result["score"])
    places = {
        name: None if result.get(name) is None else json_whole(result[name], 0, LARGEST_OFFSET)
        for name in ("start", "end")
    }
    start, end, text = places["start"], places["end"], a_text(result.get("text"))
    if start is not None and (end is None or end < start):
        refuse("not a span")
    if result.get("tokens") is not None:
        json_whole(result["tokens"], 0, 2**53 - 1)
    item = ids["id"] if ids["id"] is not None or start is not None else ids["doc_id"]
    if item is None and start is None and text is None:
        refuse("nothing that names an item")
    return PlainItem(item, score, ids["doc_id"], start, end, text)


def nested(data: bytes) -> Any:
    content = json_value(text_of(data), keys_once=True)
    return content or refuse("no query")


def nested_gold(data: bytes) -> PlainGold:
    content = nested(data)
    if isinstance(content, list):
        if holds_contexts(content[0] if isinstance(content[0], dict) else {}):
            return ragas_gold(content)
        return native_gold(content)
    gold = PlainGold()
    for query, items in an_object(content).items():
        gold.judged.add(an_id(query))
        if isinstance(items, dict):
            pairs = [(an_id(item), bool_grade(grade)) for item, grade in items.items()]
        else:
            pairs = [(item, 1) for item in dict.fromkeys(map(an_id, a_list(items)))]
        gold.judgments += [(query, item, grade) for item, grade in pairs]
    gold.queries = set(gold.judged)
    return gold


def bool_grade(value: Any) -> int:
    """Return a grade; `true` and `false` are 1 and 0, as in Python."""
    return int(value) if isinstance(value, bool) else json_grade(value)


def nested_run(data: bytes) -> PlainRun:
    content = nested(data)
    if isinstance(content, list):
        if holds_contexts(content[0] if isinstance(content[0], dict) else {}):
            return ragas_run(content)
        return native_run(content)
    run = PlainRun()
    for query, items in an_object(content).items():
        if isinstance(items, list) and any(isinstance(item, (list, dict)) for item in items):
            raise UncheckedError("what a retriever may return")
        if isinstance(items, dict):
            listed = [PlainItem(an_id(i), json_number(s)) for i, s in items.items()]
            run.lists[an_id(query)] = by_score(listed)
        else:
            run.lists[an_id(query)] = [PlainItem(an_id(item)) for item in a_list(items)]
    if len({type(items) for items in content.values()}) > 1:
        refuse("lists and dicts")
    return run


# Ragas rows.


def hashed(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def ragas_of_table(table: Table) -> list[Any]:
    """Return the rows of a table; a list in a cell of text is JSON, or as Python prints it."""
    records = []
    for row in table.rows:
        record = dict(zip(reversed(table.names), reversed(row), strict=True))
        for name in CONTEXTS:
            if isinstance(record.get(name), str):
                record[name] = list_in_cell(record[name])
        records.append(record)
    return records or refuse("no rows")


def list_in_cell(text: str) -> Any:
    if not text.strip():
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list) and (read is json.loads or repr(value) == text.strip()):
            return value
    refuse("not a list")


def ragas_rows(records: list[Any]) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        if isinstance(record, list):
            raise UncheckedError("a JSON list")
        row = an_object(record)
        if "TooLong" in repr(row):
            refuse("a number of too many digits")
        question = a_text(row.get("user_input"))
        if question is None and {*QUERY_TEXT, *QUERY_ID[1:]} & set(row):
            raise UncheckedError("other names of keys")
        query = row.get("id") if row.get("query_id") is None else row["query_id"]
        if query is None:
            query = hashed(question if question is not None else refuse("neither id nor question"))
        for name in ("query_id", "id"):
            if row.get(name) is not None:
                an_id(row[name])
        if an_id(query) in rows:
            refuse("a query is repeated")
        rows[an_id(query)] = row
        for name in CONTEXTS:
            for value in [] if row.get(name) is None else a_list(row[name]):
                if name.endswith("ids"):
                    an_id(value)
                elif a_text(value) is None:
                    refuse("null in a list of texts")
    return rows


def ragas_gold(records: list[Any]) -> PlainGold:
    rows = ragas_rows(records)
    by_id = any(row.get("reference_context_ids") is not None for row in rows.values())
    if not by_id and all(row.get("reference_contexts") is None for row in rows.values()):
        refuse("no reference contexts")
    gold = PlainGold(queries=set(rows), texts={})
    for query, row in rows.items():
        if "[" * 33 in repr(row):
            refuse("a field that is nested too deep")
        if "\0" in str(row.get("results")):
            raise UncheckedError("NUL in a field that may hold ids")
        assert gold.texts is not None
        gold.texts[query] = row.get("user_input")
        texts, ids = row.get("reference_contexts"), row.get("reference_context_ids")
        if not by_id and texts is not None:
            ids = [hashed(text) for text in texts]
        if ids is not None:
            gold.judged.add(query)
        gold.judgments += [(query, item, 1) for item in dict.fromkeys(map(an_id, ids or []))]
        gold.evidence += [(query, text) for text in texts or []]
    return gold


def ragas_run(records: list[Any]) -> PlainRun:
    rows = ragas_rows(records)
    by_id = any(row.get("retrieved_context_ids") is not None for row in rows.values())
    run = PlainRun()
    for query, row in rows.items():
        texts, ids = row.get("retrieved_contexts"), row.get("retrieved_context_ids")
        if texts is None and ids is None:
            refuse("no retrieved contexts")
        if ids is None:
            ids = [None if by_id else hashed(text) for text in texts]
        elif texts is not None and len(texts) != len(ids):
            refuse("as many ids as texts")
        names = [None if item is None else an_id(item) for item in ids]
        run.lists[query] = [
            PlainItem(name, text=text)
            for name, text in zip(names, texts or [None] * len(ids), strict=True)
        ]
    return run


# All readers of gold and runs, by the name of the format.


def read_gold(path: Path, name: str) -> PlainGold:
    if name == "beir":
        return beir_gold(path)
    data = content_of(path)
    if name in ("csv", "tsv"):
        return table_gold(delimited_table(data, "," if name == "csv" else "\t"))
    if name in ("parquet", "arrow"):
        return table_gold(arrow_table(data, name))
    if name == "jsonl":
        return native_gold(without_header(json_records(data, keys_once=True), "gold"))
    if name == "ragas":
        return ragas_gold(json_records(data, keys_once=False))
    readers = {"trec": trec_gold, "json": nested_gold, "ir_datasets": ir_datasets_gold}
    return readers[name](data)


def read_run(path: Path, name: str) -> PlainRun:
    data = content_of(path)
    if name in ("csv", "tsv"):
        return table_run(delimited_table(data, "," if name == "csv" else "\t"))
    if name in ("parquet", "arrow"):
        return table_run(arrow_table(data, name))
    if name == "jsonl":
        return native_run(without_header(json_records(data, keys_once=False), "run"))
    if name == "ragas":
        return ragas_run(json_records(data, keys_once=False))
    if name == "beir":
        refuse("a BEIR folder holds no run")
    readers = {"trec": trec_run, "json": nested_run, "ir_datasets": ir_datasets_run}
    return readers[name](data)


def beir_gold(split: Path) -> PlainGold:
    gold = table_gold(delimited_table(content_of(split), "\t"))
    folder = split.parent.parent
    texts: dict[str, str | None] = {}
    for record in json_records((folder / "queries.jsonl").read_bytes(), keys_once=False):
        if "TooLong" in repr(record) or "[" * 33 in repr(record):
            refuse("a field that is too large or nested too deep")
        if any("\0" in str(value) for key, value in an_object(record).items() if key != "_id"):
            raise UncheckedError("NUL in a field that may hold ids")
        query = an_id(record.get("_id"))
        if query in texts:
            refuse("a query is repeated")
        texts[query] = a_text(record.get("text"))
    gold.texts = {query: texts.get(query) for query in gold.queries}
    gold.spans, gold.evidence = [], []
    return gold


# Chunks, corpora, queries, settings.


def rows_table(path: Path, keys: dict[str, tuple[str, ...]]) -> Table:
    """Read a table from JSON Lines, CSV, TSV, Parquet or Arrow; `keys` are those of JSON Lines."""
    data = content_of(path)
    if data.startswith(b"PAR1"):
        return arrow_table(data, "parquet")
    if data.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return arrow_table(data, "arrow")
    ending = Path(path.stem).suffix if path.suffix in (".gz", ".zst") else path.suffix
    if not data.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{") and ending != ".jsonl":
        if ending in (".csv", ".tsv"):
            return delimited_table(data, "," if ending == ".csv" else "\t")
        refuse("no format")
    rows = []
    for record in json_records(data, keys_once=False):
        row = an_object(record)
        given = {
            name: next((row[k] for k in spelled if row.get(k) is not None), None)
            for name, spelled in keys.items()
        }
        for name in {"start", "end"} & set(keys):
            json_whole(given[name], 0, LARGEST_OFFSET)
        for key in (key for name in {"text", "title"} & set(keys) for key in keys[name]):
            a_text(row.get(key))
        for key in (key for name, spelled in keys.items() if "_id" in name for key in spelled):
            if row.get(key) is not None:
                an_id(row[key])
        if "query_id" in keys and given["query_id"] is None and given["text"] is not None:
            raise UncheckedError("a query without an id")
        rows.append(list(given.values()))
    return Table(list(keys), rows)


def same(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: (name,) for name in names}


def read_chunks(path: Path) -> list[tuple[str, str, int, int, str | None]]:
    keys = same("doc_id", "start", "end", "text")
    table = rows_table(path, {"item_id": OWN_ID, **keys})
    item, document = table.need(OWN_ID), table.need(DOC_ID)
    start, end, text = table.need(["start"]), table.need(["end"]), table.find(["text"])
    chunks = []
    for row in table.rows:
        cells = dict(zip(reversed(table.names), reversed(row), strict=True))
        low, high = an_offset(cells[start]), an_offset(cells[end])
        if high < low:
            refuse("the end is before the start")
        words = cell_text(cells[text]) if text else None
        chunks.append((an_id(cells[item]), an_id(cells[document]), low, high, words))
    if len({chunk[0] for chunk in chunks}) < len(chunks):
        refuse("a chunk is repeated")
    if not chunks:
        refuse("no rows")
    return chunks


def read_corpus(path: Path) -> list[tuple[str, str]]:
    if path.is_dir():
        names = [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()]
        seen = sorted(name for name in names if not any(p.startswith(".") for p in name.split("/")))
        documents = [(name, document_text((path / name).read_bytes())) for name in seen]
        return documents or refuse("no document")
    ids = ("doc_id", "_id", "id", *DOC_ID[1:])
    table = rows_table(path, {"doc_id": ("doc_id", "_id", "id"), **same("text", "title")})
    document, text = table.need(ids), table.need(["text"])
    documents = []
    for row in table.rows:
        cells = dict(zip(reversed(table.names), reversed(row), strict=True))
        words = cell_text(cells[text])
        title = table.find(["title"])
        if title:
            cell_text(cells[title])
        if words is None and (".csv" in path.suffixes or ".tsv" in path.suffixes):
            raise UncheckedError("a text that is missing or empty")
        documents.append((an_id(cells[document]), refuse("no text") if words is None else words))
    if len({name for name, _ in documents}) < len(documents):
        refuse("a document is repeated")
    if not documents:
        refuse("no rows")
    return documents


def document_text(data: bytes) -> str:
    bare = data.removeprefix(BYTE_ORDER_MARK)
    return text_of(data) if bare.strip() else bare.decode()


def read_queries(path: Path) -> dict[str, str | None]:
    """Read ids and texts: pairs with a tab, a table, JSON Lines or one object of texts."""
    data = content_of(path)
    if not data.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        text = text_of(data)
        lines = [line for line in text.split("\n") if line.strip()] or refuse("no line")
        names = {name.strip(' "\r').lower() for name in lines[0].split("\t")}
        ids = {*QUERY_ID, "_id", "id", "topic"}
        if all(line.count("\t") == 1 for line in lines) and not names & ids:
            pairs = [line.rstrip("\r").split("\t") for line in lines]
            return unique([(an_id(query.strip()), words) for query, words in pairs])
        if ".json" in path.suffixes or text.lstrip().startswith("["):
            raise UncheckedError("JSON that is not JSON Lines")
        if not text.lstrip().startswith("{") and not names & ids and "," not in lines[0]:
            raise UncheckedError("a format that has to be guessed")
        if (".csv" in path.suffixes and "\t" in lines[0]) or (
            ".tsv" in path.suffixes and "," in lines[0]
        ):
            raise UncheckedError("a separator that has to be guessed")
    spelled = ("query", "text", *QUERY_TEXT[1:], "title")
    given = {"query_id": ("query_id", "qid", "_id", "id"), "text": spelled}
    others = {*CONTEXTS, "relevant", "evidence", "spans", "karat", "any_of", "start"}
    if any(name.encode() in data for name in others):
        raise UncheckedError("gold")
    table = rows_table(path, given)
    judged = table.find((*OWN_ID, *DOC_ID), but=table.query) and table.find(GRADE)
    if judged or not table.rows:
        raise UncheckedError("gold")
    words = table.find(("query", "text", *QUERY_TEXT, "title"))
    query = table.find((*QUERY_ID, "_id", "id")) or table.query
    if query is None and words:
        raise UncheckedError("queries without ids")
    query = query or refuse("no column of ids")
    texts = [cell_text(value) for value in table.column(words)] if words else []
    ids_read = [an_id(value) for value in table.column(query)]
    return unique(list(zip(ids_read, texts or [None] * len(ids_read), strict=True)))


def unique(pairs: list[tuple[str, str | None]]) -> dict[str, str | None]:
    if len(dict(pairs)) < len(pairs):
        refuse("a query is repeated")
    return dict(pairs)


def read_saved_scores(path: Path) -> dict[str, dict[str, float | None]]:
    """Return the values of every query by measure, of a file with one run."""
    data = content_of(path)
    if ".json" in path.suffixes:
        document = an_object(json_value(data, keys_once=False))
        runs = document.get("runs")
        if not isinstance(runs, list) or len(runs) != 1:
            refuse("not one run")
        rows = an_object(runs[0]).get("per_query")
        if not isinstance(rows, list):
            refuse("no values of queries")
        names = list(an_object(runs[0].get("measures")))
    else:
        try:
            facts = json_value(
                pa.parquet.read_metadata(io.BytesIO(data)).metadata[b"karat"], keys_once=False
            )
        except (pa.ArrowException, OSError, KeyError, TypeError) as error:
            raise RefusedError(f"PyArrow: {error}") from error
        table = arrow_table(data, "parquet")
        rows = [dict(zip(table.names, row, strict=True)) for row in table.rows]
        counts = an_object(an_object(facts).get("counts"))
        if any(not isinstance(row.get("run"), str) for row in rows):
            raise UncheckedError("the names of the runs are not text")
        rows = [row for row in rows if row["run"] in counts]
        names = facts.get("measures")
    values: dict[str, dict[str, float | None]] = {}
    for row in rows:
        query = an_id(an_object(row).get("query_id"))
        values[query] = {}
        for name in a_list(names):
            number = None if row.get(name) is None else json_number(row[name], 0, 1 + 1e-9)
            values[query][name] = number
    return values


def read_settings(path: Path) -> dict[str, Any]:
    try:
        data = content_of(path)
        settings = tomllib.loads(text_of(data) if data.strip() else "")
    except (ValueError, RecursionError) as error:
        raise RefusedError(str(error)) from error
    if not set(settings) <= {"conventions", "gate"}:
        refuse("an unknown section")
    if not all(isinstance(table, dict) for table in settings.values()):
        refuse("not a table")
    for name, word in settings.get("conventions", {}).items():
        if word not in CONVENTIONS.get(name, ()):
            refuse("an unknown convention")
    return settings
