"""Gold in karat's own files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import IO, Annotated, Any

import msgspec
import polars as pl

from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.data.data_file import DataFile
from karat.data.formats.base import WriteReport
from karat.data.formats.json_lines import (
    Header,
    Id,
    MakeError,
    Numbered,
    Refuse,
    Text,
    check_depth,
    converted,
    decoded,
    grouped,
    held_once,
    new_query,
    opened,
    record_error,
    refused,
    table_of,
    warn_of_misspelled_keys,
    with_item_keys,
    with_known_keys,
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
GOLD_KEYS = {"query_id", "query", "relevant", "any_of", "spans", "evidence"}


ALIASES = {
    "query_id": QUERY_ID[1:],
    "query": QUERY_TEXT[1:],
    "relevant": RELEVANT[1:],
    "evidence": ("reference_contexts", *EVIDENCE_LISTS),
}
"""Other names of the keys of gold, as benchmark scripts and other tools use them."""
READ_KEYS = {*GOLD_KEYS, *(alias for aliases in ALIASES.values() for alias in aliases)}
"""All keys that mean something in a line of gold, so that a field cannot have such a name."""


Grade = Annotated[int, msgspec.Meta(gt=-LARGEST_GRADE, lt=LARGEST_GRADE)]


class Span(msgspec.Struct, omit_defaults=True):
    """A stretch of a document, half-open; `_gold` checks its place."""

    doc_id: Id
    start: int
    end: int
    text: str | None = None
    grade: Grade = 1


class Judgment(msgspec.Struct):
    """An item with its grade; an item without an id goes by a hash of its text."""

    id: Id | None = None
    doc_id: Id | None = None
    text: Text | None = None
    grade: Grade = 1


class GoldLine(msgspec.Struct, omit_defaults=True):
    """What should be found for one query; further keys are fields of the query."""

    query_id: Id
    query: str | None = None
    relevant: dict[Text, Grade] | list[Id | Judgment] | None = None
    any_of: list[list[Id]] | None = None
    spans: list[Span] | None = None
    evidence: list[str] | None = None


def read_gold(source: DataFile, refuse: Refuse = refused) -> Gold:
    """Read native gold; `refuse` may let spans and queries pass that cannot be."""
    header, lines = opened(source, "gold")
    decode = msgspec.json.Decoder().decode

    def decode_once(line: bytes) -> Any:
        record = decode(line)
        json.loads(line, object_pairs_hook=held_once)  # an item judged twice is no small thing
        return record

    records = decoded(lines, decode_once, source)
    mapped = ((number, source.columns.record(record)) for number, record in records)
    gold = _gold(mapped, header, source.error, refuse)
    return replace(gold, recognised=source.columns.in_their_names(gold.recognised))


def gold_of_records(
    records: Sequence[Any],
    *,
    name: str | None = None,
    refuse: Refuse = refused,
    error: MakeError = record_error,
) -> Gold:
    """Make gold from native records: dicts such as a native file has on its lines."""
    lines = ((number, _text_keys(record)) for number, record in enumerate(records, 1))
    return _gold(lines, Header(1, "gold", name), error, refuse)


def _text_keys(record: Any) -> Any:
    """Make whole numbers that are keys in `relevant` text, as they are elsewhere."""
    if isinstance(record, Mapping) and isinstance(record.get("relevant"), Mapping):
        relevant = {
            str(item) if type(item) is int else item: grade
            for item, grade in record["relevant"].items()
        }
        return {**record, "relevant": relevant}
    return record


def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
    """Write gold, one query a line, after a header."""
    taken = [name for name in gold.fields if name in READ_KEYS]
    if taken:
        raise InputError(
            f"a line of JSON Lines cannot hold the field {taken[0]!r}, which means something there",
            field=taken[0],
            hint="rename it",
        )
    encode = msgspec.json.Encoder().encode
    file.write(encode(Header(1, "gold", gold.name, gold.offsets, gold.settings)) + b"\n")
    relevant = grouped(gold.judgments)
    spans = grouped(gold.spans)
    evidence = grouped(gold.evidence)
    any_of = grouped(gold.any_of)
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
            line["evidence"] = [piece["text"] for piece in evidence.get(query, [])]
        file.write(encode(line) + b"\n")
    return WriteReport(gold.queries.height, gold.judgments.height)


def _highest_grades(judgments: list[dict[str, Any]]) -> dict[str, int]:
    """Return the grades of a query; of an item that is judged twice, the highest counts."""
    grades: dict[str, int] = {}
    for judgment in judgments:
        item, grade = judgment["item_id"], judgment["grade"]
        grades[item] = max(grade, grades.get(item, grade))
    return grades


def _gold(lines: Numbered[Any], header: Header, error: MakeError, refuse: Refuse) -> Gold:
    judgments: list[tuple[str, str, int]] = []
    spans: list[tuple[Any, ...]] = []
    evidence: list[tuple[str, str]] = []
    any_of: list[tuple[str, int, str]] = []
    queries: dict[str, dict[str, Any]] = {}
    empty: list[str] = []
    empty_spans: list[str] = []
    empty_evidence: list[str] = []
    hashed = Hashed()
    recognised: dict[str, str] = {}
    for number, given in lines:
        theirs: dict[str, str] = {}
        record = known_record(given, number, error, theirs)
        given_keys = GOLD_KEYS.intersection(record) if isinstance(record, dict) else ()
        recognised |= {key: theirs.get(key, key) for key in given_keys}
        hashed.queries |= with_query_id(record)
        line = _line(number, record, error, theirs)
        query = new_query(line.query_id, queries, number, error, refuse)
        fields = {key: value for key, value in record.items() if key not in GOLD_KEYS}
        if line.query is not None and "text" in fields:
            fields["text_field"] = fields.pop("text")  # `text` is where the query itself stands
        check_depth(fields, number, error)
        queries[query] = {"text": line.query} | fields
        listed = next((key for key in RESULTS if key in record), None)
        if listed and not record.keys() & {"relevant", "spans", "evidence"}:
            raise error(
                "this is the line of a run",
                line=number,
                field=listed,
                hint=SWAPPED,
            )
        judged = _judged(line, hashed, theirs.get("relevant", "relevant"), number, error)
        judgments += [(query, item, grade) for item, grade in judged]
        if not judged and line.relevant is not None:
            empty.append(query)
        any_of += _interchangeable(query, line, {item for item, _ in judged}, number, error)
        if line.spans == []:
            empty_spans.append(query)
        for at, span in enumerate(line.spans or ()):
            if 0 <= span.start <= span.end <= LARGEST_OFFSET:
                spans.append((query, str(span.doc_id), span.start, span.end, span.text, span.grade))
            else:
                _refuse_span(query, span, error, refuse, line=number, field=f"spans[{at}]")
        if line.evidence == []:
            empty_evidence.append(query)
        evidence += [(query, text) for text in line.evidence or ()]
    names = dict.fromkeys(name for fields in queries.values() for name in fields)
    warn_of_misspelled_keys(names, READ_KEYS - {"query"}, header.name)
    hashed.warn("gold")
    return Gold(
        table_of(judgments, dict(NO_JUDGMENTS.schema), "relevant", orient="row"),
        query_data=queries_of(queries),
        empty_judgments=empty,
        spans=table_of(spans, SPANS, "spans", orient="row") if spans else None,
        empty_spans=empty_spans,
        evidence=table_of(evidence, EVIDENCE, "evidence", orient="row") if evidence else None,
        empty_evidence=empty_evidence,
        any_of=table_of(any_of, ANY_OF, "any_of", orient="row") if any_of else None,
        offsets=header.offsets,
        name=header.name,
        settings=header.settings,
        recognised=recognised,
    )


def _line(number: int, record: Any, error: MakeError, theirs: dict[str, str]) -> GoldLine:
    """Check a record; a grade written as 1.0 is read as 1."""
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
    integral = isinstance(grade, float) and grade.is_integer() and abs(grade) < LARGEST_GRADE
    return int(grade) if integral else grade


def known_record(given: Any, number: int, error: MakeError, theirs: dict[str, str]) -> Any:
    """Return a record in karat's keys: evidence as a list of texts, judgments and spans too."""
    record = with_known_keys(given, ALIASES, number, error, theirs)
    if not isinstance(record, dict):
        return record
    evidence = record.get("evidence")
    if isinstance(evidence, (str, Mapping)):
        evidence = [evidence]
    if isinstance(evidence, list):
        record["evidence"] = [
            piece["text"] if isinstance(piece, Mapping) and "text" in piece else piece
            for piece in evidence
        ]
    # A span may have a label or a score of its own, which is not its grade.
    for name, wanted in (("relevant", ("id", "doc_id", "grade")), ("spans", ("doc_id",))):
        if isinstance(record.get(name), list):
            items = record[name]
            record[name] = [with_item_keys(item, wanted, theirs) for item in items]
    return record


def _judged(
    line: GoldLine, hashed: Hashed, field: str, number: int, error: MakeError
) -> list[tuple[str, int]]:
    """Return the judgments of a line; an item that is listed twice without grades counts once."""
    if not isinstance(line.relevant, list):
        return list((line.relevant or {}).items())
    judged: dict[tuple[str, int], None] = {}
    for at, item in enumerate(line.relevant):
        if not isinstance(item, Judgment):
            judged[str(item), 1] = None
            continue
        given = item.doc_id if item.id is None else item.id
        if given is None and item.text is None:
            raise error(
                "the judgment has neither an id nor a text",
                line=number,
                field=f"{field}[{at}]",
                hint='give it an "id"',
            )
        hashed.items |= given is None
        name = generated_id(item.text or "") if given is None else str(given)
        judged[name, item.grade] = None
    return list(judged)


def _interchangeable(
    query: str, line: GoldLine, judged: set[str], number: int, error: MakeError
) -> list[tuple[str, int, str]]:
    """Return the rows of groups of interchangeable items; each id must be judged in `relevant`."""
    rows = []
    for at, group in enumerate(line.any_of or ()):
        for item in map(str, group):
            if item not in judged:
                raise error(
                    f"{item!r} is in any_of but not in relevant",
                    line=number,
                    field=f"any_of[{at}]",
                    hint="list every id of any_of in relevant as well",
                )
            rows.append((query, at, item))
        if not group:
            raise error(
                "this group of interchangeable items is empty",
                line=number,
                field=f"any_of[{at}]",
                hint="remove it, or list the ids of which one is enough",
            )
    return rows


def _lists_by_group(rows: list[dict[str, Any]]) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row["item_id"])
    return list(groups.values())


def _refuse_span(query: str, span: Span, error: MakeError, refuse: Refuse, **where: Any) -> None:
    problem = error(describe_invalid_span(span.start, span.end), hint=OFFSETS_HINT, **where)
    kind = "too-far" if span.start <= span.end else "inverted"
    refuse(
        "negative" if span.start < 0 else kind,
        problem,
        query_id=query,
        doc_id=str(span.doc_id),
        start=span.start,
        end=span.end,
    )


def queries_of(queries: dict[str, dict[str, Any]]) -> pl.DataFrame:
    """Make the table of queries; a field of mixed types becomes text, JSON where it is nested."""
    names = list(dict.fromkeys(name for fields in queries.values() for name in fields))
    columns = [pl.Series("query_id", list(queries), pl.String)]
    for name in names:
        values = [fields.get(name) for fields in queries.values()]
        if all(value is None for value in values):
            continue
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            values = [_as_text(value) for value in values]
        series = _field(name, values, queries)
        if series.dtype == pl.Object or _has_lost(values, series):
            series = pl.Series(name, [_as_text(value) for value in values], pl.String)
        columns.append(series)
    return pl.DataFrame(columns)


def _field(name: str, values: list[Any], queries: Iterable[str]) -> pl.Series:
    try:
        return pl.Series(name, values, strict=False)
    except UnicodeEncodeError as error:
        held = (
            query for query, value in zip(queries, values, strict=True) if value == error.object
        )
        place = "".join(f"query {query!r}: " for query in islice(held, 1))
        raise InputError(
            f"{place}{error.object[error.start]!a} is half a character (a lone surrogate)",
            field="query" if name == "text" else name,
            hint="decode the text as UTF-8 before it comes here",
        ) from error


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _has_lost(values: list[Any], series: pl.Series) -> bool:
    """Tell whether a column has null in the place of a value that its type cannot hold."""
    if series.dtype.is_nested():
        return any(map(_is_lost, values, series.to_list()))
    return series.null_count() > values.count(None)


def _is_lost(given: Any, kept: Any) -> bool:
    if isinstance(given, Mapping):
        fields = kept if isinstance(kept, Mapping) else {}
        return any(_is_lost(value, fields.get(key)) for key, value in given.items())
    if isinstance(given, list) and isinstance(kept, list):
        return any(map(_is_lost, given, kept))
    return given is not None and kept is None
