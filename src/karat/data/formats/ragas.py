"""Ragas rows: a query, the retrieved contexts, and the reference contexts (the gold).

Ragas identifies contexts by their texts; columns with ids are optional. Without them, the id of an
item or a query is a hash of its text, so that the same text is the same item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import msgspec
import polars as pl

from karat.data.data_file import DataFile
from karat.data.formats import pytrec_json, table_files
from karat.data.formats.base import (
    RESPONSES,
    Format,
    Kind,
    WriteReport,
    kind_of_contexts,
    require_ids,
    warn_of_gold_losses,
    warn_of_run_losses,
)
from karat.data.formats.json_lines import (
    DECODE_HINT,
    Id,
    MakeError,
    Numbered,
    check_depth,
    converted,
    decoded,
    numbered,
    record_error,
    rows_by_query,
    table_of,
    without_nulls,
)
from karat.data.formats.native import first_line
from karat.data.formats.native_gold import EVIDENCE, queries_table
from karat.data.frames import (
    ANSWERS,
    CONTEXTS,
    HAS_NUL,
    OLD_CONTEXTS,
    QUERY_ID,
    QUERY_TEXT,
    Hashed,
    Locate,
    generated_id,
    has_nul,
    has_ragas_columns,
    parse_list_cell,
)
from karat.data.gold import Gold
from karat.data.gold_tables import NO_JUDGMENTS
from karat.data.run import NO_RESULTS, Run
from karat.errors import InputError, counted

RESULT_SCHEMA = {"query_id": pl.String, "item_id": pl.String, "text": pl.String}


class RagasRow(msgspec.Struct):
    """The columns of a row that karat reads; other columns are fields of the query."""

    query_id: Id | None = None
    id: Id | None = None
    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    retrieved_context_ids: list[Id] | None = None
    reference_contexts: list[str] | None = None
    reference_context_ids: list[Id] | None = None


class RagasRows:
    """Checked rows by query id, with errors that name row and column as the file does."""

    def __init__(self, records: Iterable[tuple[int, Any]], error: MakeError) -> None:
        self._make_error = error
        self._theirs: dict[str, str] = {}
        self.rows: dict[str, tuple[int, RagasRow, Mapping[str, Any]]] = {}
        self.queries_hashed = False
        for number, original in records:
            record = self._with_current_names(original)
            row = self._convert(number, record)
            query = self._query_id(number, row)
            self._refuse_nul(number, query, row)
            if query in self.rows:
                raise self._duplicate_error(number, query, row)
            self.rows[query] = (number, row, record)

    def __iter__(self) -> Iterator[tuple[str, int, RagasRow, Mapping[str, Any]]]:
        for query, (number, row, record) in self.rows.items():
            yield query, number, row, record

    def any(self, field: str) -> bool:
        """Return whether any row has a value in this column."""
        return any(getattr(row, field) is not None for _, _, row, _ in self)

    def error(self, problem: str, *, line: int, field: str, hint: str | None = None) -> InputError:
        """Make the error for a row, with the name of the column in the file."""
        return self._make_error(problem, line=line, field=self.original_name(field), hint=hint)

    def recognised(self, *read: str) -> dict[str, str]:
        """Return karat's names of the columns that were read, with their names in the file."""
        ours = {"query_id": "query_id", "id": "query_id", "user_input": "query"}
        ours |= {name: "results" if "retrieved" in name else "evidence" for name in read}
        ours |= {"reference_context_ids": "relevant", "retrieved_context_ids": "item_id"}
        return {
            ours[name]: self.original_name(name)
            for name in ("query_id", "id", "user_input", *read)
            if self.any(name)
        }

    def original_name(self, field: str) -> str:
        """Return the name of a column in the file."""
        return self._theirs.get(field, field)

    @property
    def columns(self) -> list[str]:
        """The names of all columns in the file."""
        names = dict.fromkeys(name for _, _, _, record in self for name in record)
        return [self.original_name(name) for name in names]

    def _with_current_names(self, record: Any) -> Any:
        """Rename the columns of Ragas 0.1 and other tools to those of current Ragas versions."""
        if not isinstance(record, Mapping):
            return record
        renamed: dict[str, str] = {}
        aliases: dict[str, tuple[str, ...]] = {"retrieved_contexts": (OLD_CONTEXTS,)}
        if "user_input" not in record:
            aliases |= {"user_input": QUERY_TEXT, "query_id": QUERY_ID}
        for name, other_names in aliases.items():
            alias = next((other for other in other_names if other in record), name)
            if name not in record and alias != name:
                renamed[alias] = name
                self._theirs[name] = alias
        return {renamed.get(name, name): value for name, value in record.items()}

    def _convert(self, number: int, record: Any) -> RagasRow:
        if isinstance(record, Mapping) and isinstance(record.get("user_input"), list):
            raise self.error(
                "conversations with several turns are not supported",
                line=number,
                field="user_input",
                hint="write one row per query, with its text as user_input",
            )
        return converted(number, record, RagasRow, self._make_error, self._theirs)

    def _query_id(self, number: int, row: RagasRow) -> str:
        query_id = row.id if row.query_id is None else row.query_id
        if query_id is not None:
            return str(query_id)
        if row.user_input is None:
            raise self.error(
                "the row has neither a query_id nor a query text",
                line=number,
                field="user_input",
                hint="add a query_id, or the text of the query as user_input or question",
            )
        self.queries_hashed = True
        return self.text_id(row.user_input, number, "user_input")

    def _refuse_nul(self, number: int, query: str, row: RagasRow) -> None:
        ids = {
            "id" if row.query_id is None else "query_id": [query],
            "retrieved_context_ids": row.retrieved_context_ids,
            "reference_context_ids": row.reference_context_ids,
        }
        for field, field_ids in ids.items():
            if has_nul(field_ids or ()):
                raise self.error(
                    f"an id {HAS_NUL}", line=number, field=field, hint="use another id"
                )

    def text_id(self, text: str, number: int, field: str) -> str:
        """Return the id for a text: 16 hexadecimal digits of BLAKE2b over its UTF-8 bytes."""
        try:
            return generated_id(text)
        except UnicodeEncodeError as error:
            raise self.error(
                f"the text contains a lone surrogate: {text!a}",
                line=number,
                field=field,
                hint=DECODE_HINT,
            ) from error

    def _duplicate_error(self, number: int, query: str, row: RagasRow) -> InputError:
        # An error without a line starts with the number of the record, such as "record 1: ".
        first = self._make_error("", line=self.rows[query][0])
        location = first.problem.rstrip(": ") if first.line is None else f"line {first.line}"
        if row.id is None and row.query_id is None:
            return self.error(
                f"the query text is the same as in {location}, and the rows have no ids",
                line=number,
                field="user_input",
                hint="give each row its own query_id, or remove one of the rows",
            )
        return self.error(
            f"query {query!r} is already in {location}",
            line=number,
            field="id" if row.query_id is None else "query_id",
            hint="write one row per query, with all of its data",
        )


def gold_of_rows(
    records: Iterable[tuple[int, Any]], error: MakeError = record_error, *, name: str | None = None
) -> Gold:
    """Convert rows to gold: reference contexts have grade 1, and their texts are evidence texts."""
    rows = RagasRows(records, error)
    by_id = rows.any("reference_context_ids")
    if not by_id and not rows.any("reference_contexts"):
        raise _no_references(rows)
    judgments: list[tuple[str, str, int]] = []
    evidence: list[tuple[str, str]] = []
    queries: dict[str, dict[str, Any]] = {}
    empty: list[str] = []
    empty_evidence: list[str] = []
    for query, number, row, record in rows:
        texts = row.reference_contexts or []
        ids = row.reference_context_ids
        if not by_id and row.reference_contexts is not None:
            ids = [rows.text_id(text, number, "reference_contexts") for text in texts]
        if ids == []:
            empty.append(query)
        if row.reference_contexts == []:
            empty_evidence.append(query)
        judgments += [(query, item, 1) for item in dict.fromkeys(map(str, ids or ()))]
        evidence += [(query, text) for text in texts]
        fields = _query_fields(row, record)
        check_depth(fields, number, rows.error)
        queries[query] = {"text": row.user_input} | fields
    Hashed(rows.queries_hashed, not by_id).warn("gold")
    judgments_table = table_of(
        judgments, dict(NO_JUDGMENTS.schema), "reference_context_ids", orient="row"
    )
    known_queries = queries_table(queries)
    evidence_table = None
    if evidence:
        evidence_table = table_of(evidence, EVIDENCE, "reference_contexts", orient="row")
    return Gold(
        judgments_table,
        query_data=known_queries,
        empty_judgments=empty,
        evidence=evidence_table,
        empty_evidence=empty_evidence,
        name=name,
        recognised=rows.recognised("reference_contexts", "reference_context_ids"),
    )


def _no_references(rows: RagasRows) -> InputError:
    answers = [name for name in rows.columns if name in ANSWERS]
    hint = (
        "rename the column with the relevant texts to reference_contexts, or map it with "
        "--column evidence=COLUMN; if the file has ids instead of texts, rename their column to "
        "reference_context_ids; if it has only "
        f"{rows.original_name('retrieved_contexts')}, it is a run, not gold"
    )
    if answers:
        hint += f"; {' and '.join(answers)} are kept as fields"
    first_line = next(iter(rows))[1]
    return rows.error(
        f"gold requires reference contexts; the columns are {', '.join(rows.columns)}",
        line=first_line,
        field="reference_contexts",
        hint=hint,
    )


def run_of_rows(
    records: Iterable[tuple[int, Any]], error: MakeError = record_error, *, name: str | None = None
) -> Run:
    """Convert rows to a run: the retrieved contexts in the order of each list."""
    rows = RagasRows(records, error)
    by_id = rows.any("retrieved_context_ids")
    results: list[tuple[str, str | None, str | None]] = []
    empty: list[str] = []
    responses: list[tuple[str, str]] = []
    for query, number, row, record in rows:
        pairs = _retrieved(rows, number, row, by_id=by_id)
        response = record.get("response") or record.get("answer")
        if isinstance(response, str):
            responses.append((query, response))
        if not pairs:
            empty.append(query)
        results += [(query, item_id, text) for item_id, text in pairs]
    Hashed(rows.queries_hashed, not by_id).warn("the run")
    table = table_of(results, RESULT_SCHEMA, "retrieved_contexts", orient="row")
    columns = [column for column in table.columns if table[column].null_count() < table.height]
    return Run(
        table.select(columns) if table.height else NO_RESULTS,
        empty=empty,
        responses=table_of(responses, RESPONSES, "response", orient="row") if responses else None,
        name=name,
        recognised=rows.recognised("retrieved_contexts", "retrieved_context_ids"),
    )


def _retrieved(
    rows: RagasRows, number: int, row: RagasRow, *, by_id: bool
) -> list[tuple[str | None, str | None]]:
    """Return id and text of each retrieved context; without ids in the file, ids are hashes."""
    texts: Sequence[str | None] | None = row.retrieved_contexts
    ids: Sequence[Id | None] | None = row.retrieved_context_ids
    if texts is None and ids is None:
        raise rows.error(
            "the row has no retrieved contexts",
            line=number,
            field="retrieved_contexts",
            hint="write [] if nothing was retrieved; rows with only reference_contexts are gold",
        )
    if ids is None:
        ids = [
            None if by_id else rows.text_id(text, number, "retrieved_contexts")
            for text in row.retrieved_contexts or ()
        ]
    if texts is None:
        texts = [None] * len(ids)
    if len(ids) != len(texts):
        raise rows.error(
            "expected one id per context, "
            f"got {counted(len(ids), 'id')} and {counted(len(texts), 'context')}",
            line=number,
            field="retrieved_context_ids",
            hint="give every context one id",
        )
    text_ids = [None if item_id is None else str(item_id) for item_id in ids]
    return list(zip(text_ids, texts, strict=True))


def rows_of_table(table: pl.DataFrame, locate: Locate) -> tuple[list[tuple[int, Any]], MakeError]:
    """Return the numbered rows of a Ragas table, and the function that makes errors for them."""

    def error(
        problem: str, *, line: int, field: str | None = None, hint: str | None = None
    ) -> InputError:
        return locate(line, field or "user_input", problem, hint)

    if not table.height:
        raise InputError("the table has no rows", hint="add at least one query")
    names = (*CONTEXTS, OLD_CONTEXTS)
    text_columns = [name for name in names if name in table and table[name].dtype == pl.String]
    rows = []
    for number, row in enumerate(table.iter_rows(named=True), 1):
        row |= {name: _parse_list(row[name], number, name, error) for name in text_columns}
        rows.append((number, row))
    return rows, error


def _parse_list(text: str | None, number: int, field: str, error: MakeError) -> Any:
    """Parse a list in a cell of a CSV file, in JSON or as printed by Python."""
    if text is None or not text.strip():
        return None
    if (items := parse_list_cell(text)) is not None:
        return items
    raise error(
        f"must be a list of contexts, got {text[:40]!r}",
        line=number,
        field=field,
        hint='write a JSON list such as ["…", "…"]',
    )


def _query_fields(row: RagasRow, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row that karat does not read: the fields of the query."""
    id_column = "id" if row.query_id is None and row.id is not None else "query_id"
    read_columns = (*CONTEXTS, "user_input", id_column)
    fields = {key: value for key, value in record.items() if key not in read_columns}
    if "text" in fields:
        fields["text_field"] = fields.pop("text")  # the column `text` has the query itself
    return fields


TARGET = "a file of Ragas rows"
# Quotes inside texts are escaped with a backslash, so a text cannot look like a key.
_KEY = re.compile(rb'"(\w+)"\s*:')
_OTHER_FORMATS = (
    table_files.PARQUET,
    table_files.ARROW,
    table_files.CSV,
    table_files.TSV,
    pytrec_json.FORMAT,
)


def sniff(source: DataFile) -> bool:
    """Return whether the first line is a JSON object with contexts."""
    first = first_line(source)
    return first.startswith(b"{") and has_ragas_columns(
        source.columns.rename_names(key.decode() for key in _KEY.findall(first))
    )


def kind(source: DataFile) -> Kind | None:
    """Return the kind from the columns with contexts; None for rows with both kinds."""
    if other := _other_format(source):
        return other.kind(source)
    rows = (row for _, row in _read_rows(source) if isinstance(row, dict))
    return kind_of_contexts({key for row in rows for key in row if row[key] is not None})


def read_gold(source: DataFile) -> Gold:
    """Read reference contexts."""
    if other := _other_format(source):
        return other.read_gold(source)
    return gold_of_rows(_read_rows(source), source.error, name=source.name)


def read_run(source: DataFile) -> Run:
    """Read retrieved contexts, in the order of each list."""
    if other := _other_format(source):
        return other.read_run(source)
    return run_of_rows(_read_rows(source), source.error, name=source.name)


def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
    """Write the ids of relevant items, and the evidence texts."""
    encode = msgspec.json.Encoder().encode
    relevant = gold.judgments.filter(pl.col("grade") > 0)
    items, evidence = rows_by_query(relevant), rows_by_query(gold.evidence)
    judged = set(gold.query_ids_judged)
    reserved = [name for name in gold.fields if name in (*CONTEXTS, "user_input")]
    for row in gold.queries.drop(reserved).iter_rows(named=True):
        query = row.pop("query_id")
        line: dict[str, Any] = {"query_id": query, "user_input": row.pop("text", None)}
        if query in evidence:
            line["reference_contexts"] = [entry["text"] for entry in evidence[query]]
        ids = dict.fromkeys(judgment["item_id"] for judgment in items.get(query, ()))
        line["reference_context_ids"] = list(ids) if query in judged else None
        file.write(encode(line | without_nulls(row)) + b"\n")
    lost = list(reserved)
    if n_higher := relevant.filter(pl.col("grade") > 1).height:
        lost.append(f"{counted(n_higher, 'grade')} other than 1")
    if n_irrelevant := gold.judgments.height - relevant.height:
        lost.append(f"{counted(n_irrelevant, 'judgment')} with grade 0 or less")
    return warn_of_gold_losses(
        gold,
        TARGET,
        fields=True,
        empty=True,
        evidence=True,
        queries=gold.queries.height,
        rows=relevant.height,
        also=lost,
    )


def write_run(run: Run, file: IO[bytes]) -> WriteReport:
    """Write ids and texts of the retrieved items, in the order of their ranks."""
    encode = msgspec.json.Encoder().encode
    results = run.results
    has_all_texts = "text" in results.columns and not results["text"].null_count()
    require_ids(results, TARGET, of_all=not has_all_texts)
    has_ids = "item_id" in results.columns
    items_by_query = rows_by_query(results)
    n_without_texts = 0
    for query in run.query_ids:
        line: dict[str, Any] = {"query_id": query}
        items = items_by_query.get(query, [])
        texts = [item.get("text") for item in items]
        if None not in texts and "text" in results.columns:
            line["retrieved_contexts"] = texts
        elif any(text is not None for text in texts):
            n_without_texts += 1
        if has_ids:
            line["retrieved_context_ids"] = [item["item_id"] for item in items]
        file.write(encode(line) + b"\n")
    lost = ["scores"] if "score" in results.columns else []
    if n_without_texts:
        lists = counted(n_without_texts, "list")
        lost.append(f"the texts of {lists} in which some items have no text")
    return warn_of_run_losses(run, TARGET, stored=("text",), empty=True, also=lost)


def _other_format(source: DataFile) -> Format | None:
    """Return the format of a file with Ragas rows that is not JSON Lines."""
    if first_line(source).startswith(b"{"):
        return None
    return next((fmt for fmt in _OTHER_FORMATS if fmt.sniff(source)), None)


def _read_rows(source: DataFile) -> Numbered[Any]:
    rows = decoded(numbered(source), msgspec.json.Decoder().decode, source)
    return ((number, source.columns.record(row)) for number, row in rows)


FORMAT = Format("ragas", (), sniff, kind, read_gold, read_run, write_gold, write_run)
