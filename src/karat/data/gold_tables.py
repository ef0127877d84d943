"""The tables that gold is made of, checked: spans, evidence, queries and their fields."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from karat.data import frames
from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS
from karat.data.dict_runs import repeat_query_ids, text_id, text_items, text_keys, text_list
from karat.data.formats.json_lines import table_of
from karat.data.frames import LARGEST_GRADE
from karat.errors import SWAPPED, InputError, KaratWarning, counted


def parse_judgments(given: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
    """Check `{query: {item: grade}}`, `{query: [item, …]}` (grade 1 each) or judgment objects."""
    by_query = text_keys(given, "query_id")
    if not set(map(type, by_query.values())) <= {dict}:
        by_query = {query: _graded(query, items) for query, items in by_query.items()}
    judged = text_items(by_query)
    grades = list(chain.from_iterable(map(dict.values, judged.values())))
    if set(map(type, grades)) <= {int}:
        different = set(grades)  # few, so that they are quickly compared
        if -LARGEST_GRADE < min(different, default=0) <= max(different, default=0) < LARGEST_GRADE:
            return judged
    return {
        query: {item: check_grade(query, item, grade) for item, grade in items.items()}
        for query, items in judged.items()
    }


def _graded(query: str, items: Any) -> Mapping[Any, Any]:
    if isinstance(items, Mapping):
        return items
    if isinstance(items, (Sequence, Set)) and not isinstance(items, (str, bytes)):
        listed = list(items)
        if listed and all(map(_is_judgment, listed)):
            return highest_grades(listed)
        return dict.fromkeys(text_list(listed), 1)
    raise InputError(
        f"query {query!r} holds a {type(items).__name__}",
        field="judgments",
        hint="give {query: {item: grade}}, {query: [item, …]} or {query: [judgment, …]}",
    )


def _is_judgment(item: Any) -> bool:
    return hasattr(item, "chunk_id") and hasattr(item, "grade")


def highest_grades(judgments: Iterable[Any]) -> dict[str, int]:
    """Return the grades of judgment objects; of a chunk judged twice the highest, with a warning.

    A judgment has a chunk_id and a grade, such as `karat.presets.graded.RelevanceJudgment`.
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
        warnings.warn(
            KaratWarning(
                f"{counted(len(repeated_chunks), 'judgment')} repeat a chunk that is judged "
                f"already, such as {repeated_chunks[0]!r}; the highest grade counts"
            ),
            stacklevel=4,
        )
    return grades


def check_grade(query: str | None, item: str, grade: Any) -> int:
    """Return a grade as a whole number, or say which is not one."""
    whole = isinstance(grade, (int, np.integer)) or (
        isinstance(grade, float) and grade.is_integer()
    )
    if whole and abs(grade) < LARGEST_GRADE:
        return int(grade)
    place = "" if query is None else f"query {query!r}, "
    what = "is too large to be a grade" if whole else "is no integer"
    raise InputError(
        f"{place}item {item!r}: {grade!r} {what}",
        field="grade",
        hint="write grades as whole numbers; if this is a run, gold and run may be swapped",
    )


def judgments_frame(judged: Mapping[str, Mapping[str, int]]) -> pl.DataFrame:
    """Return checked judgments as a table."""
    lengths = np.fromiter(map(len, judged.values()), np.int64, len(judged))
    return pl.DataFrame(
        {
            "query_id": repeat_query_ids(judged, lengths),
            "item_id": pl.Series(list(chain.from_iterable(judged.values())), dtype=pl.String),
            "grade": pl.Series(
                list(chain.from_iterable(map(dict.values, judged.values()))),  # type: ignore[arg-type]
                dtype=pl.Int64,
            ),
        }
    )


GRADE_HINT = (
    "write grades as whole numbers such as 0, 1 or 2; if this is a run, were the two swapped?"
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
TEXT_COLUMNS = ("query", "text", *frames.QUERY_TEXT, "title")
"""The columns that may hold the text of a query, the first one that exists."""
ANY_OF = {"query_id": pl.String, "group": pl.Int64, "item_id": pl.String}
SPAN_NAMES = (
    frames.DOC_ID,
    ("start",),
    ("end",),
    ("text",),
    ("grade", "rel", "relevance"),
)


def query_fields(
    table: pl.DataFrame, query_ids: pl.Series, used: Sequence[str | None]
) -> pl.DataFrame | None:
    """Return the columns that are not used yet and have one value per query, as fields."""
    extra = [c for c in table.columns if c not in used]
    fields = table.select(query_ids, *extra)
    _check_one_text_per_query(fields, frames.column(fields, frames.QUERY_TEXT))
    varied = fields.group_by("query_id").agg(pl.col(extra).n_unique()).select(pl.col(extra).max())
    constant = [c for c in extra if varied[c].item() == 1]
    if not constant:
        return None
    return queries_table(fields.select("query_id", *constant).unique("query_id"))


def _check_one_text_per_query(fields: pl.DataFrame, text: str | None) -> None:
    """Refuse different query texts under one query id: the id column is not one of queries."""
    if text is None:
        return
    texts = fields.select("query_id", text).unique(maintain_order=True)
    twice = texts.filter(pl.col("query_id").is_duplicated())
    if twice.height:
        query = twice["query_id"][0]
        first, second = twice.filter(pl.col("query_id") == query)[text].head(2)
        raise InputError(
            f"query {query!r} has different texts: {first!r} and {second!r}",
            field=text,
            hint="give each query its own id, in a column query_id",
        )


def evidence_table(
    table: pl.DataFrame, text: str, locate: frames.Locate = frames.row_error
) -> pl.DataFrame:
    """Check a table of evidence, whose texts stand in a column."""
    query_ids = frames.query_ids(table, locate)
    texts = frames.texts(table[text], "text", locate)
    if texts.null_count():
        row = frames.first_row_number(texts.is_null())
        raise locate(row, text, "the evidence is missing", "leave the row out")
    return pl.DataFrame([query_ids, texts])


def evidence_from_mapping(evidence: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the evidence of {query: [text, …]} as a table, and the queries that have none."""
    rows: list[tuple[str, str]] = []
    empty: list[str] = []
    for query, texts in evidence.items():
        plain = not isinstance(texts, (str, bytes, Mapping)) and isinstance(texts, Sequence)
        if not plain or not all(isinstance(text, str) for text in texts):
            raise InputError(
                f"the evidence of {query!r} is no list of texts",
                field="evidence",
                hint="give {query: [text, …]}",
            )
        if isinstance(query, bool) or not isinstance(query, (str, int)):
            raise InputError(f"{query!r} is no id: ids are text or whole numbers", field="query_id")
        rows += [(str(query), text) for text in texts]
        empty += [] if texts else [str(query)]
    table = table_of(rows, dict(NO_EVIDENCE.schema), "evidence", orient="row")
    return {"evidence": table, "empty_evidence": empty}


def spans_table(table: pl.DataFrame, locate: frames.Locate = frames.row_error) -> pl.DataFrame:
    """Check a table of spans: where each stands in its document."""
    query_ids = frames.query_ids(table, locate)
    document = frames.require_column(table, frames.DOC_ID, "the document's id")
    start = frames.require_column(table, ("start",), "where it begins")
    end = frames.require_column(table, ("end",), "where it ends")
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
    return spans.with_columns(
        pl.lit(None, pl.String).alias("text")
        if text is None
        else frames.texts(table[text], "text", locate),
        pl.lit(1, pl.Int64).alias("grade")
        if grade is None
        else frames.whole_numbers(table[grade], "grade", locate, hint=GRADE_HINT),
    )


def queries_table(table: pl.DataFrame) -> pl.DataFrame:
    """Check a table of queries: one row an id, the text under `text`."""
    query = frames.require_query_id_column(table)
    text = frames.column(table, TEXT_COLUMNS)
    known = table.with_columns(frames.ids(table[query], "query_id"))
    known = known.drop(query) if query != "query_id" else known
    if text is not None:
        known = known.with_columns(frames.texts(table[text], text))
        if text != "text":
            known = known.rename({"text": "text_field"}, strict=False).rename({text: "text"})
    twice = known["query_id"].is_duplicated()
    if twice.any():
        raise InputError(
            f"query {known['query_id'].filter(twice)[0]!r} stands there twice",
            field="query_id",
            hint="give each query one row",
        )
    return known.select("query_id", *(c for c in known.columns if c != "query_id"))


def fill_query_fields(known: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """Return the queries of gold with what another table of queries knows of them."""
    shared = told.join(known.select("query_id"), on="query_id", how="semi")
    if not shared.height:
        raise InputError(
            "gold and the queries have no query id in common: "
            f"{_format_first_ids(known)} and {_format_first_ids(told)}",
            field="queries",
            hint="give the file of queries that belongs to this gold",
        )
    if others := told.height - shared.height:
        _warn(f"{counted(others, 'query')} in the file of queries, but not in gold: ignored")
    both = known.join(shared, on="query_id", how="left", suffix=":new", maintain_order="left")
    if "text:new" in both.columns:
        differs = both.filter(pl.col("text") != pl.col("text:new"))
        if differs.height:
            _warn(
                f"{counted(differs.height, 'query')} with another text in gold than in the file "
                f"of queries, such as {differs['query_id'][0]!r}: the text in gold is kept"
            )
    names = [name for name in shared.columns if f"{name}:new" in both.columns]
    unlike = [name for name in names if known[name].dtype != shared[name].dtype]
    filled = [pl.coalesce(name, f"{name}:new").alias(name) for name in names if name not in unlike]
    return both.with_columns(filled).drop(f"{name}:new" for name in names)


def _format_first_ids(queries: pl.DataFrame) -> str:
    return ", ".join(map(repr, queries["query_id"].head(3)))


def _warn(text: str) -> None:
    warnings.warn(KaratWarning(text), stacklevel=5)


def list_columns(table: pl.DataFrame) -> dict[str, str]:
    """Return the columns that hold lists, one row per query, by the key of gold that they are.

    They are used where nothing else is gold, or next to evidence with one row per query.
    """
    relevant = frames.column(table, RELEVANT)
    evidence = frames.column(table, ("evidence", *EVIDENCE_LISTS))
    if frames.item_id_column(table) is not None or frames.has_span_columns(table):
        return {}
    is_text = evidence is not None and not table[evidence].dtype.is_nested()
    if evidence is not None and is_text and evidence not in EVIDENCE_LISTS:
        ids = frames.column(table, ("relevant", "relevant_ids", "expected_ids"))
        is_ids = ids is not None and table[ids].dtype in (pl.String, pl.List)
        relevant = ids if is_ids and _one_row_per_query(table) else None
        return {} if relevant is None else {"relevant": relevant, "evidence": evidence}
    found = {"relevant": relevant, "evidence": evidence}
    return {key: name for key, name in found.items() if name is not None}


def _one_row_per_query(table: pl.DataFrame) -> bool:
    name = frames.query_id_column(table) or frames.column(table, frames.QUERY_TEXT)
    return name is not None and not table[name].is_duplicated().any()


def require_gold_column(table: pl.DataFrame) -> None:
    """Refuse a table in which no column is gold, and show how to name one."""
    item, grade = frames.item_id_column(table), frames.column(table, frames.GRADE)
    if item is not None or grade is not None:
        return
    if (results := frames.column(table, RESULTS)) is not None:
        raise InputError(
            f"this table has a column {results} and no gold: it looks like a run", hint=SWAPPED
        )
    if frames.query_id_column(table) is None:  # without it, evidence alone would be of no use
        frames.query_ids(table)
    used = (frames.query_id_column(table), frames.column(table, frames.QUERY_TEXT))
    free = [
        name for name in table.columns if name not in used and name.lower() not in frames.ANSWERS
    ]
    name = free[0] if len(free) == 1 else "COLUMN"
    raise InputError(
        "there is no column for what should be found; "
        f"the columns are {frames.format_column_names(table)}",
        hint="gold is item_id and grade, relevant (a list of ids), evidence (a text), or doc_id, "
        f"start and end; map yours: --column evidence={name}, "
        f'in Python columns={{"evidence": "{name}"}}',
    )


def require_rows(table: pl.DataFrame, what: str) -> None:
    """Refuse a table without a row."""
    if not table.height:
        raise InputError("the table has no rows", hint=f"give at least one {what}")


def reject_run_table(table: pl.DataFrame) -> None:
    """Refuse a table that looks like a run."""
    grades = frames.column(table, frames.GRADE)
    if grades not in (None, "score"):
        return
    ranks = frames.column(table, ("rank",)) is not None
    if ranks or (grades == "score" and frames.has_span_columns(table)):
        what = "ranks" if ranks else "scores"
        raise InputError(f"this table has {what} and no grades: it looks like a run", hint=SWAPPED)
