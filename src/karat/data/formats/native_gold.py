"""Gold in the native format: read, check and write its lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import IO, Annotated, Any

import msgspec
import polars as pl

from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.data.data_file import DataFile
from karat.data.formats.base import WriteReport
from karat.data.formats.json_lines import (
    DECODE_HINT,
    Header,
    Id,
    MakeError,
    Numbered,
    Refuse,
    Text,
    check_depth,
    converted,
    decoded,
    header_of,
    new_query_id,
    numbered_blocks,
    raise_error,
    read_header,
    record_error,
    rows_by_query,
    table_of,
    unique_keys,
    warn_of_misspelled_keys,
    with_item_keys,
    with_karat_keys,
    with_query_id,
    without_nulls,
)
from karat.data.frames import (
    LARGEST_GRADE,
    LARGEST_OFFSET,
    OFFSETS_HINT,
    QUERY_ID,
    QUERY_TEXT,
    Hashed,
    describe_invalid_span,
    generated_id,
)
from karat.data.gold import Gold
from karat.data.gold_tables import ANY_OF, NO_EVIDENCE, NO_JUDGMENTS, SPANS
from karat.errors import SWAPPED, InputError

EVIDENCE = dict(NO_EVIDENCE.schema)
GOLD_KEYS = {"query_id", "query", "relevant", "any_of", "spans", "evidence", "answerable"}
ALIASES = {
    "query_id": QUERY_ID[1:],
    "query": QUERY_TEXT[1:],
    "relevant": RELEVANT[1:],
    "evidence": ("reference_contexts", *EVIDENCE_LISTS),
}
"""Other names for the keys of gold that benchmark scripts and other tools use."""
RESERVED_KEYS = {*GOLD_KEYS, *(alias for aliases in ALIASES.values() for alias in aliases)}
"""All keys with a meaning in a line of gold; a field of the queries cannot have such a name."""


RecordBlock = tuple[Numbered[Any], MakeError]
"""Numbered records, and the function that makes their errors."""
Grade = Annotated[int, msgspec.Meta(gt=-LARGEST_GRADE, lt=LARGEST_GRADE)]


class Span(msgspec.Struct, omit_defaults=True):
    """A part of a document; the end is exclusive. `_GoldRows` checks start and end."""

    doc_id: Id
    start: int
    end: int
    text: str | None = None
    grade: Grade = 1


class Judgment(msgspec.Struct):
    """An item with its grade; without an id, a hash of the text is the id."""

    id: Id | None = None
    doc_id: Id | None = None
    text: Text | None = None
    grade: Grade = 1


class GoldLine(msgspec.Struct, omit_defaults=True):
    """The gold of one query; all other keys are fields of the query."""

    query_id: Id
    query: str | None = None
    relevant: dict[Text, Grade] | list[Id | Judgment] | None = None
    any_of: list[list[Id]] | None = None
    spans: list[Span] | None = None
    evidence: list[str] | None = None
    answerable: bool | None = None


def read_gold(source: DataFile, refuse: Refuse = raise_error) -> Gold:
    """Read native gold; `refuse` handles invalid spans and duplicate queries."""
    header, lines = read_header(source, "gold")
    gold = _gold(_records(lines, source), header, source.error, refuse)
    return replace(gold, recognised=source.columns.in_their_names(gold.recognised))


def read_gold_pieces(source: DataFile) -> Iterator[Gold]:
    """Read native gold block by block; every query is on one line."""
    header, _, _ = header_of(next(numbered_blocks(source)), source, "gold")

    def read_blocks() -> Iterator[RecordBlock]:
        blocks = numbered_blocks(source)
        _, first, _ = header_of(next(blocks), source, "gold")
        for lines in chain([first], blocks):
            yield _records(lines, source), source.error

    n_queries = 0
    for piece in pieces_of_records(read_blocks, header):
        n_queries += 0 if piece.query_data is None else piece.query_data.height
        yield replace(piece, recognised=source.columns.in_their_names(piece.recognised))
    if not n_queries:
        read_gold(source)  # raises the error for a file without queries


def pieces_of_records(
    read_blocks: Callable[[], Iterator[RecordBlock]], header: Header
) -> Iterator[Gold]:
    """Yield the gold of each block of records, and then the texts and fields of all queries.

    The blocks are read again if a field has values of several types.
    """
    query_ids, names, hashed = dict[str, None](), dict[str, None](), Hashed()
    fields: list[pl.DataFrame] = []
    for records, error in read_blocks():
        rows = _GoldRows(error, raise_error, query_ids, hashed)
        for number, record in records:
            rows.add(number, record)
        gold = rows.to_gold(header)
        assert gold.query_data is not None, "native gold has a table of queries"
        names |= dict.fromkeys(rows.field_names)
        fields.append(gold.query_data)
        yield replace(gold, query_data=None)
    _warn_of_fields(names, header)
    hashed.warn("gold")
    mixed = _fields_of_several_types(fields)
    table = pl.concat([table.drop(mixed, strict=False) for table in fields], how="diagonal")
    if mixed:
        table = table.join(_read_fields(mixed, read_blocks), on="query_id", how="left")
    yield Gold(
        query_data=table.select("query_id", *(name for name in names if name in table.columns)),
        offsets=header.offsets,
        name=header.name,
        settings=header.settings,
    )


def _fields_of_several_types(tables: Iterable[pl.DataFrame]) -> list[str]:
    types: dict[str, set[pl.DataType]] = {}
    for table in tables:
        for name, dtype in table.schema.items():
            types.setdefault(name, set()).add(dtype)
    return [name for name in types if len(types[name]) > 1]


def _read_fields(
    names: Iterable[str], read_blocks: Callable[[], Iterator[RecordBlock]]
) -> pl.DataFrame:
    """Read some of the fields of all queries; values of several types become text."""
    queries: dict[str, dict[str, Any]] = {}
    for records, error in read_blocks():
        rows = _GoldRows(error, raise_error)
        for number, record in records:
            rows.add(number, record)
        for query, fields in rows.queries.items():
            queries[query] = {name: fields.get(name) for name in names}
    return queries_table(queries)


def _records(lines: Numbered[bytes], source: DataFile) -> Iterator[tuple[int, Any]]:
    decode = msgspec.json.Decoder().decode

    def decode_once(line: bytes) -> Any:
        record = decode(line)
        json.loads(line, object_pairs_hook=unique_keys)  # an item must not be judged twice
        return record

    for number, record in decoded(lines, decode_once, source):
        yield number, source.columns.record(record)


def gold_of_records(
    records: Sequence[Any],
    *,
    name: str | None = None,
    refuse: Refuse = raise_error,
    error: MakeError = record_error,
) -> Gold:
    """Convert native records, dicts like the lines of a native file, to gold."""
    return _gold(numbered_records(records), Header(1, "gold", name), error, refuse)


def numbered_records(records: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield records with their numbers, from 1."""
    for number, record in enumerate(records, 1):
        yield number, _with_text_keys(record)


def _with_text_keys(record: Any) -> Any:
    """Convert integer ids that are keys of `relevant` to text, as other ids are."""
    if isinstance(record, Mapping) and isinstance(record.get("relevant"), Mapping):
        relevant = {
            str(item) if type(item) is int else item: grade
            for item, grade in record["relevant"].items()
        }
        return {**record, "relevant": relevant}
    return record


def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
    """Write a header, and then one query per line."""
    reserved = [name for name in gold.fields if name in RESERVED_KEYS]
    if reserved:
        raise InputError(
            f"the field {reserved[0]!r} cannot be written: the name is reserved in this format",
            field=reserved[0],
            hint="rename the field",
        )
    encode = msgspec.json.Encoder().encode
    file.write(encode(Header(1, "gold", gold.name, gold.offsets, gold.settings)) + b"\n")
    relevant = rows_by_query(gold.judgments)
    spans = rows_by_query(gold.spans)
    evidence = rows_by_query(gold.evidence)
    any_of = rows_by_query(gold.any_of)
    empty = set(gold.empty_judgments)
    if gold.mapping is not None:
        empty |= {query for query, items in gold.mapping.items() if not items}
    for row in gold.queries.iter_rows(named=True):
        query = row.pop("query_id")
        line: dict[str, Any] = {"query_id": query}
        if row.get("text") is not None:
            line["query"] = row.pop("text")
        line |= {key: value for key, value in row.items() if value is not None}
        if query in relevant or query in empty:
            line["relevant"] = _highest_grades(relevant.get(query, []))
        if query in any_of:
            line["any_of"] = _lists_by_group(any_of[query])
        if query in spans or query in gold.empty_spans:
            line["spans"] = [without_nulls(span) for span in spans.get(query, [])]
        if query in evidence or query in gold.empty_evidence:
            line["evidence"] = [entry["text"] for entry in evidence.get(query, [])]
        file.write(encode(line) + b"\n")
    return WriteReport(gold.queries.height, gold.judgments.height)


def _highest_grades(judgments: list[dict[str, Any]]) -> dict[str, int]:
    """Return the grades of a query; an item that is judged twice has its highest grade."""
    grades: dict[str, int] = {}
    for judgment in judgments:
        item, grade = judgment["item_id"], judgment["grade"]
        grades[item] = max(grade, grades.get(item, grade))
    return grades


def _gold(records: Numbered[Any], header: Header, error: MakeError, refuse: Refuse) -> Gold:
    rows = _GoldRows(error, refuse)
    for number, record in records:
        rows.add(number, record)
    _warn_of_fields(rows.field_names, header)
    rows.hashed.warn("gold")
    return rows.to_gold(header)


def _warn_of_fields(names: Iterable[str], header: Header) -> None:
    fields = [name for name in names if name != "answerable"]
    warn_of_misspelled_keys(fields, RESERVED_KEYS - {"query"}, header.name)


class _GoldRows:
    """The rows of the tables of gold, collected record by record."""

    def __init__(
        self,
        error: MakeError,
        refuse: Refuse,
        query_ids: dict[str, None] | None = None,
        hashed: Hashed | None = None,
    ) -> None:
        self.error = error
        self.refuse = refuse
        self.queries: dict[str, dict[str, Any]] = {}
        self.query_ids: dict[str, None] = {} if query_ids is None else query_ids
        """The ids of all queries of the file so far."""
        self.hashed = Hashed() if hashed is None else hashed
        self.judgments: list[tuple[str, str, int]] = []
        self.any_of: list[tuple[str, int, str]] = []
        self.spans: list[tuple[Any, ...]] = []
        self.evidence: list[tuple[str, str]] = []
        self.empty_judgments: list[str] = []
        self.empty_spans: list[str] = []
        self.empty_evidence: list[str] = []
        self.recognised: dict[str, str] = {}

    def add(self, number: int, original: Any) -> None:
        """Check a record and add its rows."""
        theirs: dict[str, str] = {}
        record = normalize_record(original, number, self.error, theirs)
        if isinstance(record, dict):
            keys = GOLD_KEYS.intersection(record)
            self.recognised |= {key: theirs.get(key, key) for key in keys}
        self.hashed.queries |= with_query_id(record)
        line = _convert(number, record, self.error, theirs)
        query = self._add_query(number, line, record)
        self._refuse_run_line(number, record)
        judged = _judged_items(
            line, self.hashed, theirs.get("relevant", "relevant"), number, self.error
        )
        self.judgments += [(query, item, grade) for item, grade in judged]
        if not judged and line.relevant is not None:
            self.empty_judgments.append(query)
        item_ids = {item for item, _ in judged}
        self.any_of += _any_of_rows(query, line, item_ids, number, self.error)
        self._add_spans(number, query, line)
        if line.evidence == []:
            self.empty_evidence.append(query)
        self.evidence += [(query, text) for text in line.evidence or ()]

    def _add_query(self, number: int, line: GoldLine, record: Mapping[str, Any]) -> str:
        query = new_query_id(line.query_id, self.query_ids, number, self.error, self.refuse)
        self.query_ids[query] = None
        fields = {key: value for key, value in record.items() if key not in GOLD_KEYS}
        if line.query is not None and "text" in fields:
            fields["text_field"] = fields.pop("text")  # the column `text` has the query itself
        check_depth(fields, number, self.error)
        self.queries[query] = {"text": line.query} | fields | {"answerable": line.answerable}
        return query

    def _refuse_run_line(self, number: int, record: Mapping[str, Any]) -> None:
        results_key = next((key for key in RESULTS if key in record), None)
        if results_key and not record.keys() & {"relevant", "spans", "evidence"}:
            raise self.error(
                "expected gold, got a line of a run",
                line=number,
                field=results_key,
                hint=SWAPPED,
            )

    def _add_spans(self, number: int, query: str, line: GoldLine) -> None:
        if line.spans == []:
            self.empty_spans.append(query)
        for i, span in enumerate(line.spans or ()):
            if 0 <= span.start <= span.end <= LARGEST_OFFSET:
                self.spans.append(
                    (query, str(span.doc_id), span.start, span.end, span.text, span.grade)
                )
            else:
                self._refuse_span(query, span, line=number, field=f"spans[{i}]")

    def _refuse_span(self, query: str, span: Span, *, line: int, field: str) -> None:
        problem = self.error(
            describe_invalid_span(span.start, span.end), line=line, field=field, hint=OFFSETS_HINT
        )
        if span.start < 0:
            kind = "negative"
        elif span.start > span.end:
            kind = "inverted"
        else:
            kind = "too-far"
        self.refuse(
            kind,
            problem,
            query_id=query,
            doc_id=str(span.doc_id),
            start=span.start,
            end=span.end,
        )

    @property
    def field_names(self) -> list[str]:
        """The fields of all queries, in the order of their first query."""
        return list(dict.fromkeys(name for fields in self.queries.values() for name in fields))

    def to_gold(self, header: Header) -> Gold:
        """Build the tables."""
        spans = evidence = any_of = None
        judgments = table_of(self.judgments, dict(NO_JUDGMENTS.schema), "relevant", orient="row")
        known_queries = queries_table(self.queries)
        if self.spans:
            spans = table_of(self.spans, SPANS, "spans", orient="row")
        if self.evidence:
            evidence = table_of(self.evidence, EVIDENCE, "evidence", orient="row")
        if self.any_of:
            any_of = table_of(self.any_of, ANY_OF, "any_of", orient="row")
        return Gold(
            judgments,
            query_data=known_queries,
            empty_judgments=self.empty_judgments,
            spans=spans,
            empty_spans=self.empty_spans,
            evidence=evidence,
            empty_evidence=self.empty_evidence,
            any_of=any_of,
            offsets=header.offsets,
            name=header.name,
            settings=header.settings,
            recognised=self.recognised,
        )


def _convert(number: int, record: Any, error: MakeError, theirs: dict[str, str]) -> GoldLine:
    """Convert a record to a line of gold; a grade of 1.0 is read as 1."""
    try:
        return msgspec.convert(record, GoldLine)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return converted(number, _with_integer_grades(record), GoldLine, error, theirs)


def _with_integer_grades(record: Any) -> Any:
    if not isinstance(record, Mapping):
        return record
    changed = dict(record)
    relevant = record.get("relevant")
    if isinstance(relevant, Mapping):
        changed["relevant"] = {item: _integer(grade) for item, grade in relevant.items()}
    for name in ("relevant", "spans"):
        if isinstance(items := record.get(name), Sequence) and not isinstance(items, (str, bytes)):
            changed[name] = [
                {**item, "grade": _integer(item["grade"])}
                if isinstance(item, Mapping) and "grade" in item
                else item
                for item in items
            ]
    return changed


def _integer(grade: Any) -> Any:
    if isinstance(grade, float) and grade.is_integer() and abs(grade) < LARGEST_GRADE:
        return int(grade)
    return grade


def normalize_record(original: Any, number: int, error: MakeError, theirs: dict[str, str]) -> Any:
    """Rename the keys of a record, its judgments and spans; make evidence a list of texts."""
    record = with_karat_keys(original, ALIASES, number, error, theirs)
    if not isinstance(record, dict):
        return record
    evidence = record.get("evidence")
    if isinstance(evidence, (str, Mapping)):
        evidence = [evidence]
    if isinstance(evidence, list):
        record["evidence"] = [
            entry["text"] if isinstance(entry, Mapping) and "text" in entry else entry
            for entry in evidence
        ]
    # The label or the score of a span is not renamed: it need not be the grade.
    for name, keys in (("relevant", ("id", "doc_id", "grade")), ("spans", ("doc_id",))):
        if isinstance(record.get(name), list):
            items = record[name]
            record[name] = [with_item_keys(item, keys, theirs) for item in items]
    return record


def _judged_items(
    line: GoldLine, hashed: Hashed, field: str, number: int, error: MakeError
) -> list[tuple[str, int]]:
    """Return items and grades of a line; the same pair counts once."""
    if not isinstance(line.relevant, list):
        return list((line.relevant or {}).items())
    judged: dict[tuple[str, int], None] = {}
    for i, item in enumerate(line.relevant):
        if not isinstance(item, Judgment):
            judged[str(item), 1] = None
            continue
        item_id = item.doc_id if item.id is None else item.id
        if item_id is None and item.text is None:
            raise error(
                "the judgment has neither an id nor a text",
                line=number,
                field=f"{field}[{i}]",
                hint='add an "id"',
            )
        if item_id is None:
            hashed.items = True
            item_id = generated_id(item.text or "")
        judged[str(item_id), item.grade] = None
    return list(judged)


def _any_of_rows(
    query: str, line: GoldLine, judged_ids: set[str], number: int, error: MakeError
) -> list[tuple[str, int, str]]:
    """Return the rows for groups of interchangeable items; each must be judged in `relevant`."""
    rows = []
    for i, group in enumerate(line.any_of or ()):
        for item in map(str, group):
            if item not in judged_ids:
                raise error(
                    f"item {item!r} is in any_of but not in relevant",
                    line=number,
                    field=f"any_of[{i}]",
                    hint="add every id of any_of to relevant",
                )
            rows.append((query, i, item))
        if not group:
            raise error(
                "the group of interchangeable items is empty",
                line=number,
                field=f"any_of[{i}]",
                hint="remove the group, or list the ids of the items",
            )
    return rows


def _lists_by_group(rows: list[dict[str, Any]]) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row["item_id"])
    return list(groups.values())


def queries_table(queries: dict[str, dict[str, Any]]) -> pl.DataFrame:
    """Build the table of queries; a field with mixed types becomes text (JSON if it is nested)."""
    names = list(dict.fromkeys(name for fields in queries.values() for name in fields))
    columns = [pl.Series("query_id", list(queries), pl.String)]
    for name in names:
        values = [fields.get(name) for fields in queries.values()]
        if all(value is None for value in values):
            continue
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            values = [_as_text(value) for value in values]
        series = _field_column(name, values, queries)
        if series.dtype == pl.Object or _has_lost_values(values, series):
            series = pl.Series(name, [_as_text(value) for value in values], pl.String)
        columns.append(series)
    return pl.DataFrame(columns)


def _field_column(name: str, values: list[Any], queries: Iterable[str]) -> pl.Series:
    try:
        return pl.Series(name, values, strict=False)
    except UnicodeEncodeError as error:
        # A nested value is not equal to the text that cannot be encoded, so that no query is named.
        queries_of_text = (
            query for query, value in zip(queries, values, strict=True) if value == error.object
        )
        query = next(queries_of_text, None)
        prefix = "" if query is None else f"query {query!r}: "
        raise InputError(
            f"{prefix}the text contains a lone surrogate: {error.object[error.start]!a}",
            field="query" if name == "text" else name,
            hint=DECODE_HINT,
        ) from error


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _has_lost_values(values: list[Any], series: pl.Series) -> bool:
    """Return whether a column has null instead of a value that its type cannot store."""
    if series.dtype.is_nested():
        return any(map(_is_lost, values, series.to_list()))
    return series.null_count() > values.count(None)


def _is_lost(original: Any, stored: Any) -> bool:
    if isinstance(original, Mapping):
        fields = stored if isinstance(stored, Mapping) else {}
        return any(_is_lost(value, fields.get(key)) for key, value in original.items())
    if isinstance(original, list) and isinstance(stored, list):
        return any(map(_is_lost, original, stored))
    return original is not None and stored is None
