"""Ragas rows: a query, the contexts that were retrieved for it and those that should have been.

Ragas knows contexts by their text. Where its optional columns of ids are not there, an item goes
by a hash of its text, and a query by a hash of its own: the same text is the same item.
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
    Format,
    Kind,
    WriteReport,
    kind_of_contexts,
    need_ids,
    warn_of_gold_losses,
    warn_of_run_losses,
)
from karat.data.formats.json_lines import (
    Id,
    MakeError,
    Numbered,
    check_depth,
    converted,
    decoded,
    grouped,
    numbered,
    record_error,
    table_of,
)
from karat.data.formats.native import first_line
from karat.data.formats.native_gold import EVIDENCE, queries_of
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

RESULTS = {"query_id": pl.String, "item_id": pl.String, "text": pl.String}


class RagasRow(msgspec.Struct):
    """What karat reads of a row; further columns are fields of the query."""

    query_id: Id | None = None
    id: Id | None = None
    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    retrieved_context_ids: list[Id] | None = None
    reference_contexts: list[str] | None = None
    reference_context_ids: list[Id] | None = None


class Rows:
    """Checked rows under the ids of their queries, and how to say where one stands."""

    def __init__(self, records: Iterable[tuple[int, Any]], error: MakeError) -> None:
        self._make_error = error
        self._theirs: dict[str, str] = {}
        self.rows: dict[str, tuple[int, RagasRow, Mapping[str, Any]]] = {}
        self.queries_hashed = False
        for number, given in records:
            record = self._known_record(given)
            row = self._row(number, record)
            query = self._query_id(number, row)
            self._refuse_nul(number, query, row)
            if query in self.rows:
                raise self._twice(number, query, row)
            self.rows[query] = (number, row, record)

    def __iter__(self) -> Iterator[tuple[str, int, RagasRow, Mapping[str, Any]]]:
        for query, (number, row, record) in self.rows.items():
            yield query, number, row, record

    def any(self, field: str) -> bool:
        """Tell whether any row has this."""
        return any(getattr(row, field) is not None for _, _, row, _ in self)

    def error(self, problem: str, *, line: int, field: str, hint: str | None = None) -> InputError:
        """Make the error for a row; it names columns as the file does."""
        return self._make_error(problem, line=line, field=self.named(field), hint=hint)

    def recognised(self, *read: str) -> dict[str, str]:
        """Return which column was read as what."""
        ours = {"query_id": "query_id", "id": "query_id", "user_input": "query"}
        ours |= {name: "results" if "retrieved" in name else "evidence" for name in read}
        ours |= {"reference_context_ids": "relevant", "retrieved_context_ids": "item_id"}
        return {
            ours[name]: self.named(name)
            for name in ("query_id", "id", "user_input", *read)
            if self.any(name)
        }

    def named(self, field: str) -> str:
        """Return what the file calls a column."""
        return self._theirs.get(field, field)

    @property
    def columns(self) -> list[str]:
        """The names of all columns, as the file has them."""
        names = dict.fromkeys(name for _, _, _, record in self for name in record)
        return [self.named(name) for name in names]

    def _known_record(self, record: Any) -> Any:
        """Return a row with the names of today: those of Ragas 0.1 are read, too."""
        if not isinstance(record, Mapping):
            return record
        renamed: dict[str, str] = {}
        wanted: dict[str, tuple[str, ...]] = {"retrieved_contexts": (OLD_CONTEXTS,)}
        if "user_input" not in record:
            wanted |= {"user_input": QUERY_TEXT, "query_id": QUERY_ID}
        for known, others in wanted.items():
            used = next((name for name in others if name in record), known)
            if known not in record and used != known:
                renamed[used] = known
                self._theirs[known] = used
        return {renamed.get(name, name): value for name, value in record.items()}

    def _row(self, number: int, record: Any) -> RagasRow:
        if isinstance(record, Mapping) and isinstance(record.get("user_input"), list):
            raise self.error(
                "this row is a conversation of several turns",
                line=number,
                field="user_input",
                hint="give one row for each question; user_input is its text",
            )
        return converted(number, record, RagasRow, self._make_error, self._theirs)

    def _query_id(self, number: int, row: RagasRow) -> str:
        given = row.id if row.query_id is None else row.query_id
        if given is not None:
            return str(given)
        if row.user_input is None:
            raise self.error(
                "the row has neither a query_id nor a question",
                line=number,
                field="user_input",
                hint="give it a query_id, or its question as user_input or question",
            )
        self.queries_hashed = True
        return self.text_id(row.user_input, number, "user_input")

    def _refuse_nul(self, number: int, query: str, row: RagasRow) -> None:
        ids = {
            "id" if row.query_id is None else "query_id": [query],
            "retrieved_context_ids": row.retrieved_context_ids,
            "reference_context_ids": row.reference_context_ids,
        }
        for field, given in ids.items():
            if has_nul(given or ()):
                raise self.error(
                    f"an id {HAS_NUL}", line=number, field=field, hint="use another id"
                )

    def text_id(self, text: str, number: int, field: str) -> str:
        """Return the id of a text: 16 hexadecimal digits of BLAKE2b over its UTF-8 bytes."""
        try:
            return generated_id(text)
        except UnicodeEncodeError as error:
            raise self.error(
                f"{text!a} holds a lone surrogate",
                line=number,
                field=field,
                hint="decode the text as UTF-8 before it comes here",
            ) from error

    def _twice(self, number: int, query: str, row: RagasRow) -> InputError:
        first = self._make_error("", line=self.rows[query][0])
        place = first.problem.rstrip(": ") if first.line is None else f"line {first.line}"
        if row.id is None and row.query_id is None:
            return self.error(
                f"{place} has the same question, and neither row has an id",
                line=number,
                field="user_input",
                hint="give each row its own query_id, or drop one of them",
            )
        return self.error(
            f"query {query!r} is already on {place}",
            line=number,
            field="id" if row.query_id is None else "query_id",
            hint="a query is one row; put all of it there",
        )


def gold_of_rows(
    records: Iterable[tuple[int, Any]], error: MakeError = record_error, *, name: str | None = None
) -> Gold:
    """Make gold from rows: reference contexts are judged 1, and their texts are evidence."""
    rows = Rows(records, error)
    by_id = rows.any("reference_context_ids")
    if not by_id and not rows.any("reference_contexts"):
        answers = [name for name in rows.columns if name in ANSWERS]
        kept = f"; {' and '.join(answers)} are kept as fields" if answers else ""
        raise rows.error(
            "gold needs evidence, and these rows have none; "
            f"the columns are {', '.join(rows.columns)}",
            line=next(iter(rows))[1],
            field="reference_contexts",
            hint="name the texts that should be retrieved reference_contexts (their ids "
            "reference_context_ids), or map their column: --column evidence=COLUMN; "
            f"{rows.named('retrieved_contexts')} alone are a run{kept}",
        )
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
        fields = _fields(row, record)
        check_depth(fields, number, rows.error)
        queries[query] = {"text": row.user_input} | fields
    Hashed(rows.queries_hashed, not by_id).warn("gold")
    return Gold(
        table_of(judgments, dict(NO_JUDGMENTS.schema), "reference_context_ids", orient="row"),
        query_data=queries_of(queries),
        empty_judgments=empty,
        evidence=table_of(evidence, EVIDENCE, "reference_contexts", orient="row")
        if evidence
        else None,
        empty_evidence=empty_evidence,
        name=name,
        recognised=rows.recognised("reference_contexts", "reference_context_ids"),
    )


def run_of_rows(
    records: Iterable[tuple[int, Any]], error: MakeError = record_error, *, name: str | None = None
) -> Run:
    """Make a run from rows: retrieved contexts in the order listed."""
    rows = Rows(records, error)
    by_id = rows.any("retrieved_context_ids")
    results: list[tuple[str, str | None, str | None]] = []
    empty: list[str] = []
    for query, number, row, _ in rows:
        texts: Sequence[str | None] | None = row.retrieved_contexts
        ids: Sequence[Id | None] | None = row.retrieved_context_ids
        if texts is None and ids is None:
            raise rows.error(
                "there are no retrieved contexts",
                line=number,
                field="retrieved_contexts",
                hint="write [] for nothing retrieved; reference_contexts alone are gold",
            )
        if ids is None:
            ids = [
                None if by_id else rows.text_id(text, number, "retrieved_contexts")
                for text in row.retrieved_contexts or ()
            ]
        texts = [None] * len(ids) if texts is None else texts
        if len(ids) != len(texts):
            raise rows.error(
                f"{len(ids)} ids for {len(texts)} contexts",
                line=number,
                field="retrieved_context_ids",
                hint="give every context one id",
            )
        if not ids:
            empty.append(query)
        results += [
            (query, None if item is None else str(item), text)
            for item, text in zip(ids, texts, strict=True)
        ]
    Hashed(rows.queries_hashed, not by_id).warn("the run")
    table = table_of(results, RESULTS, "retrieved_contexts", orient="row")
    held = [column for column in table.columns if table[column].null_count() < table.height]
    return Run(
        table.select(held) if table.height else NO_RESULTS,
        empty=empty,
        name=name,
        recognised=rows.recognised("retrieved_contexts", "retrieved_context_ids"),
    )


def rows_of_table(table: pl.DataFrame, locate: Locate) -> tuple[list[tuple[int, Any]], MakeError]:
    """Return the rows of a table of Ragas columns, and the function that says where one stands."""

    def error(
        problem: str, *, line: int, field: str | None = None, hint: str | None = None
    ) -> InputError:
        return locate(line, field or "user_input", problem, hint)

    if not table.height:
        raise InputError("the table has no rows", hint="give at least one query")
    names = (*CONTEXTS, OLD_CONTEXTS)
    written = [name for name in names if name in table and table[name].dtype == pl.String]
    rows = []
    for number, row in enumerate(table.iter_rows(named=True), 1):
        row |= {name: _list(row[name], number, name, error) for name in written}
        rows.append((number, row))
    return rows, error


def _list(text: str | None, number: int, field: str, error: MakeError) -> Any:
    """Read a list that stands in a cell of a CSV, as JSON or as Python prints it."""
    if text is None or not text.strip():
        return None
    if (found := parse_list_cell(text)) is not None:
        return found
    raise error(
        f"{text[:40]!r} is no list of contexts",
        line=number,
        field=field,
        hint='write a JSON list such as ["…", "…"]',
    )


def _fields(row: RagasRow, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the further columns of a row; `text` is where the query itself stands."""
    own = "id" if row.query_id is None and row.id is not None else "query_id"
    fields = {
        key: value for key, value in record.items() if key not in (*CONTEXTS, "user_input", own)
    }
    if "text" in fields:
        fields["text_field"] = fields.pop("text")
    return fields


TARGET = "a file of Ragas rows"
# A quote inside a text has a backslash before it, so that no text looks like a key.
_KEY = re.compile(rb'"(\w+)"\s*:')
_OTHERS = (
    table_files.PARQUET,
    table_files.ARROW,
    table_files.CSV,
    table_files.TSV,
    pytrec_json.FORMAT,
)


def sniff(source: DataFile) -> bool:
    """Tell whether the first line is an object with contexts, and no line of karat's own."""
    first = first_line(source)
    return first.startswith(b"{") and has_ragas_columns(
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


def write_gold(gold: Gold, file: IO[bytes]) -> WriteReport:
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
    return warn_of_run_losses(run, TARGET, holds=("text",), empty=True, also=lost)


def _other(source: DataFile) -> Format | None:
    """Return the format of rows that were called Ragas rows and are not in JSON Lines."""
    if first_line(source).startswith(b"{"):
        return None
    return next((known for known in _OTHERS if known.sniff(source)), None)


def _rows(source: DataFile) -> Numbered[Any]:
    rows = decoded(numbered(source), msgspec.json.Decoder().decode, source)
    return ((number, source.columns.record(row)) for number, row in rows)


FORMAT = Format("ragas", (), sniff, kind, read_gold, read_run, write_gold, write_run)
