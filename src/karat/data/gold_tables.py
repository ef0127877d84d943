"""The parts of gold, checked: judgments, spans, evidence texts, queries and their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from karat.data import frames
from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.data.dict_runs import repeat_query_ids, text_id, text_items, text_keys, text_list
from karat.data.formats.json_lines import table_of
from karat.data.frames import LARGEST_GRADE
from karat.errors import SWAPPED, InputError, counted, for_example, warn


def parse_judgments(source: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
    """Check `{query: {item: grade}}`, `{query: [item, …]}` (grade 1 each) or judgment objects."""
    by_query = text_keys(source, "query_id")
    if not set(map(type, by_query.values())) <= {dict}:
        by_query = {query: _grades_by_item(query, items) for query, items in by_query.items()}
    judgments = text_items(by_query)
    grades = list(chain.from_iterable(map(dict.values, judgments.values())))
    if set(map(type, grades)) <= {int}:
        unique_grades = set(grades)  # only a few, so that comparing them is fast
        lowest, highest = min(unique_grades, default=0), max(unique_grades, default=0)
        if lowest > -LARGEST_GRADE and highest < LARGEST_GRADE:
            return judgments
    return {
        query: {item: check_grade(query, item, grade) for item, grade in items.items()}
        for query, items in judgments.items()
    }


def _grades_by_item(query: str, items: Any) -> Mapping[Any, Any]:
    if isinstance(items, Mapping):
        return items
    if isinstance(items, (Sequence, Set)) and not isinstance(items, (str, bytes)):
        item_list = list(items)
        if item_list and all(map(_is_judgment, item_list)):
            return highest_grades(item_list)
        return dict.fromkeys(text_list(item_list), 1)
    raise InputError(
        f"query {query!r}: expected a dict or a list of judgments, got {type(items).__name__}",
        field="judgments",
        hint="pass {query: {item: grade}}, {query: [item, …]} or {query: [judgment, …]}",
    )


def _is_judgment(item: Any) -> bool:
    return hasattr(item, "chunk_id") and hasattr(item, "grade")


def highest_grades(judgments: Iterable[Any]) -> dict[str, int]:
    """Return the grades of judgment objects such as `karat.presets.graded.RelevanceJudgment`.

    If a chunk has several judgments, the highest grade is used, with a warning.
    """
    grades: dict[str, int] = {}
    repeated_chunks = []
    for judgment in judgments:
        chunk = text_id(judgment.chunk_id, "chunk_id")
        grade = check_grade(None, chunk, judgment.grade)
        if chunk in grades:
            repeated_chunks.append(chunk)
        grades[chunk] = max(grade, grades.get(chunk, grade))
    if repeated_chunks:
        warn(
            f"{counted(len(repeated_chunks), 'duplicate judgment')}, for example of chunk "
            f"{repeated_chunks[0]!r}; the highest grade is used",
            stacklevel=4,
        )
    return grades


def check_grade(query: str | None, item: str, grade: Any) -> int:
    """Return a grade as an integer, or raise an error if it is not one or is too large."""
    is_whole = isinstance(grade, (int, np.integer)) or (
        isinstance(grade, float) and grade.is_integer()
    )
    if is_whole and abs(grade) < LARGEST_GRADE:
        return int(grade)
    location = "" if query is None else f"query {query!r}, "
    problem = "is too large for a grade" if is_whole else "is not an integer"
    raise InputError(
        f"{location}item {item!r}: {grade!r} {problem}",
        field="grade",
        hint=GRADE_HINT,
    )


def judgments_frame(judgments: Mapping[str, Mapping[str, int]]) -> pl.DataFrame:
    """Return checked judgments as a table."""
    lengths = np.fromiter(map(len, judgments.values()), np.int64, len(judgments))
    return pl.DataFrame(
        {
            "query_id": repeat_query_ids(judgments, lengths),
            "item_id": pl.Series(list(chain.from_iterable(judgments.values())), dtype=pl.String),
            "grade": pl.Series(
                list(chain.from_iterable(map(dict.values, judgments.values()))),  # type: ignore[arg-type]
                dtype=pl.Int64,
            ),
        }
    )


GRADE_HINT = (
    "use whole numbers such as 0, 1 or 2; if this is a run, check whether you swapped gold and run"
)
NO_JUDGMENTS = pl.DataFrame(schema={"query_id": pl.String, "item_id": pl.String, "grade": pl.Int64})
SPANS = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "text": pl.String,
    "grade": pl.Int64,
}
NO_SPANS = pl.DataFrame(schema=SPANS)
NO_EVIDENCE = pl.DataFrame(schema={"query_id": pl.String, "text": pl.String})
NO_CONTRADICTIONS = pl.DataFrame(schema={"query_id": pl.String, "kind": pl.String, "n": pl.Int64})
TEXT_COLUMNS = ("query", "text", *frames.QUERY_TEXT, "title")
"""The columns that may hold the text of a query. The first existing one is used."""
ANY_OF = {"query_id": pl.String, "group": pl.Int64, "item_id": pl.String}
NO_ALTERNATIVES = pl.DataFrame(schema=ANY_OF)
SPAN_NAMES = (
    frames.DOC_ID,
    ("start",),
    ("end",),
    ("text",),
    ("grade", "rel", "relevance"),
)


def constant_fields(fields: pl.DataFrame, id_column: str | None) -> pl.DataFrame | None:
    """Return the columns of a table (query_id, …) with only one value per query.

    `id_column` is the column with the query ids in the input.
    """
    unused = fields.columns[1:]
    _check_one_text_per_query(fields, id_column)
    _check_one_flag_per_query(fields)
    value_counts = (
        fields.group_by("query_id").agg(pl.col(unused).n_unique()).select(pl.col(unused).max())
    )
    constant = [column for column in unused if value_counts[column].item() == 1]
    if not constant:
        return None
    return queries_table(fields.select("query_id", *constant).unique("query_id"))


class FieldsByQuery:
    """The columns of a table that is read in blocks, as far as they may be fields of queries.

    `constant_fields` gets the same values as from the whole table, in about as much memory as the
    fields take: equal rows are kept once, and columns with several values per query are dropped.
    """

    def __init__(self) -> None:
        self._id_column: str | None = None
        self._query_ids = NO_JUDGMENTS.select("query_id")
        self._text: str | None = None
        self._columns: dict[str, pl.DataFrame] | None = None
        self._added: list[pl.DataFrame] = []

    def add(self, fields: pl.DataFrame, id_column: str | None) -> None:
        """Add the rows (query_id, …) of a block; `id_column` is their column in the input."""
        self._id_column = id_column
        if self._columns is None:
            self._columns = {name: fields.select("query_id", name) for name in fields.columns[1:]}
            self._text = frames.column(fields, frames.QUERY_TEXT)
        self._added.append(fields.select("query_id", *self._columns).unique(maintain_order=True))
        if sum(table.height for table in self._added) > self._query_ids.height:
            self._merge()

    def _merge(self) -> None:
        added, self._added = self._added, []
        ids = [table.select("query_id") for table in added]
        self._query_ids = pl.concat([self._query_ids, *ids]).unique(maintain_order=True)
        columns = {}
        for name, rows in (self._columns or {}).items():
            parts = [table.select("query_id", name) for table in added]
            merged = pl.concat([rows, *parts]).unique(maintain_order=True)
            if merged.height == self._query_ids.height or name in (self._text, "answerable"):
                columns[name] = merged
        self._columns = columns

    def table(self) -> pl.DataFrame | None:
        """Return the fields of all queries."""
        self._merge()
        # A column with several values per query is a text or a flag, for which that is an error.
        columns = [] if self._columns is None else list(self._columns.values())
        for rows in columns:
            if rows.height > self._query_ids.height:
                constant_fields(rows, self._id_column)
        fields = self._query_ids
        for rows in columns:
            fields = fields.join(rows, on="query_id", how="left", maintain_order="left")
        return constant_fields(fields, self._id_column)


def _check_one_text_per_query(fields: pl.DataFrame, id_column: str | None) -> None:
    """Raise an error for different texts with the same id, which is then not a query id."""
    text = frames.column(fields, frames.QUERY_TEXT)
    if text is None or id_column is None:
        return
    texts = fields.select("query_id", text).unique(maintain_order=True)
    duplicates = texts.filter(pl.col("query_id").is_duplicated())
    if duplicates.height:
        query = duplicates["query_id"][0]
        first, second = duplicates.filter(pl.col("query_id") == query)[text].head(2)
        raise InputError(
            f"query {query!r} has different texts: {first!r} and {second!r}"
            f"{frames.in_id_column(id_column)}",
            field=text,
            hint="use a different id for each query; "
            f"{frames.MAP_ID_COLUMN} reads the ids of another column",
        )


def _check_one_flag_per_query(fields: pl.DataFrame) -> None:
    """Raise an error for a query that is answerable in one row but not in another."""
    if "answerable" not in fields.columns:
        return
    flags = fields.select("query_id", "answerable").unique(maintain_order=True)
    if (is_repeated := flags["query_id"].is_duplicated()).any():
        raise InputError(
            f"query {flags['query_id'].filter(is_repeated)[0]!r} has different values",
            field="answerable",
            hint="write the same value in all rows of a query",
        )


def evidence_table(
    table: pl.DataFrame, text: str, locate: frames.Locate = frames.row_error
) -> pl.DataFrame:
    """Check a table with one evidence text per row, in the column `text`."""
    query_ids = frames.query_ids(table, locate)
    texts = frames.texts(table[text], "text", locate)
    if texts.null_count():
        row = frames.first_row_number(texts.is_null())
        raise locate(row, text, "the evidence text is missing", "remove the row")
    return pl.DataFrame([query_ids, texts])


def evidence_from_mapping(evidence: Mapping[Any, Any]) -> dict[str, Any]:
    """Check {query: [text, …]} and return the fields `evidence` and `empty_evidence` of gold."""
    rows: list[tuple[str, str]] = []
    empty: list[str] = []
    for query, texts in evidence.items():
        is_list = isinstance(texts, Sequence) and not isinstance(texts, (str, bytes, Mapping))
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise InputError(
                f"query {query!r}: expected a list of evidence texts, got {type(texts).__name__}",
                field="evidence",
                hint="pass {query: [text, …]}",
            )
        if isinstance(query, bool) or not isinstance(query, (str, int)):
            raise InputError(
                f"an id must be text or a whole number, got {query!r}", field="query_id"
            )
        rows += [(str(query), text) for text in texts]
        if not texts:
            empty.append(str(query))
    table = table_of(rows, dict(NO_EVIDENCE.schema), "evidence", orient="row")
    return {"evidence": table, "empty_evidence": empty}


def spans_table(table: pl.DataFrame, locate: frames.Locate = frames.row_error) -> pl.DataFrame:
    """Check a table with one span per row; text and grade are optional."""
    query_ids = frames.query_ids(table, locate)
    document = frames.require_column(table, frames.DOC_ID, "the document id")
    start = frames.require_column(table, ("start",), "the start of the span")
    end = frames.require_column(table, ("end",), "the end of the span")
    spans = pl.DataFrame(
        [
            query_ids,
            frames.ids(table[document], "doc_id", locate),
            frames.whole_numbers(table[start], "start", locate, hint=frames.OFFSETS_HINT),
            frames.whole_numbers(table[end], "end", locate, hint=frames.OFFSETS_HINT),
        ]
    )
    frames.check_offsets(spans, locate)
    text, grade = (frames.column(table, names) for names in SPAN_NAMES[-2:])
    if text is None:
        spans = spans.with_columns(text=pl.lit(None, pl.String))
    else:
        spans = spans.with_columns(frames.texts(table[text], "text", locate))
    if grade is None:
        return spans.with_columns(grade=pl.lit(1, pl.Int64))
    grades = frames.whole_numbers(table[grade], "grade", locate, hint=GRADE_HINT)
    return spans.with_columns(grades)


def queries_table(table: pl.DataFrame) -> pl.DataFrame:
    """Check a table of queries: one row per id, and the text in the column `text`."""
    query = frames.require_query_id_column(table)
    text = frames.column(table, TEXT_COLUMNS)
    queries = table.with_columns(frames.ids(table[query], "query_id"))
    if query != "query_id":
        queries = queries.drop(query)
    if text is not None:
        queries = queries.with_columns(frames.texts(table[text], text))
        if text != "text":
            queries = queries.rename({"text": "text_field"}, strict=False).rename({text: "text"})
    frames.check_unique_query_ids(queries["query_id"], query)
    fields = [column for column in queries.columns if column != "query_id"]
    return queries.select("query_id", *fields)


def fill_query_fields(queries: pl.DataFrame, additions: pl.DataFrame) -> pl.DataFrame:
    """Return the queries of gold with missing values filled in from another table of queries."""
    shared = additions.join(queries.select("query_id"), on="query_id", how="semi")
    if not shared.height:
        raise InputError(
            "gold and the queries file have no query id in common: gold has "
            f"{_format_first_ids(queries)}, the queries file has {_format_first_ids(additions)}",
            field="queries",
            hint="use the queries that belong to this gold",
        )
    if ignored := additions.height - shared.height:
        verb = "is" if ignored == 1 else "are"
        _warn(f"ignored {counted(ignored, 'query')} of the queries file that {verb} not in gold")
    joined = queries.join(shared, on="query_id", how="left", suffix=":new", maintain_order="left")
    if "text:new" in joined.columns:
        different = joined.filter(pl.col("text") != pl.col("text:new"))
        if different.height:
            _warn(
                f"{counted(different.height, 'query')} "
                f"{'has' if different.height == 1 else 'have'} different texts in gold and in the "
                f"queries file{for_example(different.height, repr(different['query_id'][0]))}; "
                "the text in gold is used"
            )
    in_both = [name for name in shared.columns if f"{name}:new" in joined.columns]
    filled = [
        pl.coalesce(name, f"{name}:new").alias(name)
        for name in in_both
        if queries[name].dtype == shared[name].dtype
    ]
    return joined.with_columns(filled).drop(f"{name}:new" for name in in_both)


def _format_first_ids(queries: pl.DataFrame) -> str:
    return ", ".join(map(repr, queries["query_id"].head(3)))


def _warn(text: str) -> None:
    warn(text, stacklevel=5)


def list_columns(
    table: pl.DataFrame, has_one_row_per_query: Callable[[], bool] | None = None
) -> dict[str, str]:
    """Return {key of a gold record: column} for the columns that hold lists, one row per query.

    Such columns are used if no other column is gold, or next to one evidence text per query. If
    the table is a part of a larger table, `has_one_row_per_query` is asked about that one.
    """
    relevant = frames.column(table, RELEVANT)
    evidence = frames.column(table, ("evidence", *EVIDENCE_LISTS))
    if frames.item_id_column(table) is not None or frames.has_span_columns(table):
        return {}
    is_text = evidence is not None and not table[evidence].dtype.is_nested()
    if evidence is not None and is_text and evidence not in EVIDENCE_LISTS:
        ids = frames.column(table, ("relevant", "relevant_ids", "expected_ids"))
        if ids is None or table[ids].dtype not in (pl.String, pl.List):
            return {}
        has_one_row = has_one_row_per_query or partial(are_distinct_queries, [table])
        return {"relevant": ids, "evidence": evidence} if has_one_row() else {}
    columns = {"relevant": relevant, "evidence": evidence}
    return {key: name for key, name in columns.items() if name is not None}


def are_distinct_queries(blocks: Iterable[pl.DataFrame]) -> bool:
    """Return whether each query is in only one row of a table, which is given in blocks."""
    ids = []
    for block in blocks:
        name = frames.query_id_column(block) or frames.column(block, frames.QUERY_TEXT)
        if name is None:
            return False
        ids.append(block[name])
    return not pl.concat(ids).is_duplicated().any()


def require_gold_column(table: pl.DataFrame) -> None:
    """Raise an error for a table without a column of gold, and suggest a column mapping."""
    item, grade = frames.item_id_column(table), frames.column(table, frames.GRADE)
    if item is not None or grade is not None:
        return
    if (results := frames.column(table, RESULTS)) is not None:
        raise InputError(
            f"the table has a column {results!r} but no gold; it looks like a run", hint=SWAPPED
        )
    if frames.query_id_column(table) is None:  # report a missing query id first
        frames.query_ids(table)
    used = (frames.query_id_column(table), frames.column(table, frames.QUERY_TEXT))
    unused = [
        name for name in table.columns if name not in used and name.lower() not in frames.ANSWERS
    ]
    name = unused[0] if len(unused) == 1 else "COLUMN"
    raise InputError(
        f"no column contains gold; the columns are {frames.format_column_names(table)}",
        hint="gold needs one of: item_id with grade, relevant (a list of ids), evidence (a text), "
        f"or doc_id with start and end; map a column with --column evidence={name}, "
        f'or in Python with columns={{"evidence": "{name}"}}',
    )


def require_rows(table: pl.DataFrame, what: str) -> None:
    """Raise an error for a table without rows."""
    if not table.height:
        raise InputError("the table has no rows", hint=f"add at least one {what}")


def reject_run_table(table: pl.DataFrame) -> None:
    """Raise an error for a table that looks like a run."""
    grade = frames.column(table, frames.GRADE)
    if grade not in (None, "score"):
        return
    has_ranks = frames.column(table, ("rank",)) is not None
    if has_ranks or (grade == "score" and frames.has_span_columns(table)):
        what = "ranks" if has_ranks else "scores"
        raise InputError(f"the table has {what} but no grades; it looks like a run", hint=SWAPPED)
