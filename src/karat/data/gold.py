"""Gold: what should be found for each query."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from karat.data import frames
from karat.data.columns import Columns
from karat.data.corpus import Corpus
from karat.data.data_file import PathSource
from karat.data.dict_runs import text_id
from karat.data.gold_tables import (
    GRADE_HINT,
    NO_CONTRADICTIONS,
    NO_EVIDENCE,
    NO_JUDGMENTS,
    NO_SPANS,
    SPAN_NAMES,
    constant_fields,
    evidence_from_mapping,
    evidence_table,
    fill_query_fields,
    judgments_frame,
    list_columns,
    parse_judgments,
    queries_table,
    reject_run_table,
    require_gold_column,
    require_rows,
    spans_table,
)
from karat.data.notebook import gold_html
from karat.data.offsets import check_unit
from karat.data.ranking import QuerySegments
from karat.data.span_checks import in_code_points
from karat.errors import InputError, counted


@dataclass(frozen=True, eq=False, repr=False)
class Gold:
    """What should be found for each query: judgments, spans or evidence texts.

    The constructor expects tables that were already checked. Use `Gold.of` for Python objects and
    tables, and `Gold.read` for files.

    Parameters
    ----------
    judgment_data : pl.DataFrame or {query: {item: grade}}, optional
        The judgments as they were given. `judgments` is the table that is built from them.
    query_data : pl.DataFrame, optional
        The texts and fields of the queries, by `query_id`. `queries` is the table of all queries,
        including those that have neither.
    empty_judgments : sequence of str, default ()
        Ids of the queries with an empty list of judgments.
    spans : pl.DataFrame, optional
        The table (query_id, doc_id, start, end, text, grade).
    empty_spans : sequence of str, default ()
        Ids of the queries with an empty list of spans.
    evidence : pl.DataFrame, optional
        The table (query_id, text) of evidence texts.
    empty_evidence : sequence of str, default ()
        Ids of the queries with an empty list of evidence texts.
    any_of : pl.DataFrame, optional
        The table (query_id, group, item_id) of groups of interchangeable relevant items.
    offsets : {"codepoint", "utf16", "utf8"}, default "codepoint"
        The unit in which the spans count their offsets.
    name : str, optional
        The name of the gold, such as the name of its file.
    settings : dict, optional
        Settings from the header of a native file.
    recognised : dict, optional
        The columns or keys that were read, as {karat's name: name in the input}.

    Examples
    --------
    >>> gold = Gold.of({"q1": {"a": 2, "b": 0}, "q2": ["c"]})
    >>> gold
    <Gold: 2 queries, 3 judgments>
    >>> gold.judgments.rows()
    [('q1', 'a', 2), ('q1', 'b', 0), ('q2', 'c', 1)]
    """

    judgment_data: pl.DataFrame | Mapping[str, Mapping[str, int]] | None = None
    _: KW_ONLY
    query_data: pl.DataFrame | None = None
    empty_judgments: Sequence[str] = ()
    spans: pl.DataFrame | None = None
    empty_spans: Sequence[str] = ()
    evidence: pl.DataFrame | None = None
    empty_evidence: Sequence[str] = ()
    any_of: pl.DataFrame | None = None
    offsets: str = "codepoint"
    name: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    recognised: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("empty_judgments", "empty_spans", "empty_evidence"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        queries = self.query_data
        if queries is not None and queries.schema.get("answerable", pl.Boolean) != pl.Boolean:
            is_answerable = frames.flags(queries["answerable"], "answerable")
            object.__setattr__(self, "query_data", queries.with_columns(is_answerable))
        if self.spans is None and self.empty_spans:
            object.__setattr__(self, "spans", NO_SPANS)
        if self.evidence is None and self.empty_evidence:
            object.__setattr__(self, "evidence", NO_EVIDENCE)

    @property
    def mapping(self) -> Mapping[str, Mapping[str, int]] | None:
        """The judgments as dicts, or None if they were given as a table.

        Examples
        --------
        >>> Gold.of({"q1": ["a"]}).mapping
        {'q1': {'a': 1}}
        """
        return None if isinstance(self.judgment_data, pl.DataFrame) else self.judgment_data

    @cached_property
    def judgments(self) -> pl.DataFrame:
        """The table (query_id, item_id, grade).

        Examples
        --------
        >>> Gold.of({"q1": {"a": 2}}).judgments.rows()
        [('q1', 'a', 2)]
        """
        if self.judgment_data is None:
            return NO_JUDGMENTS
        if isinstance(self.judgment_data, pl.DataFrame):
            return self.judgment_data
        return judgments_frame(self.judgment_data)

    @cached_property
    def queries(self) -> pl.DataFrame:
        """One row per query: query_id, text if known, and all fields; sorted by id as bytes.

        Examples
        --------
        >>> Gold.of({"q2": ["a"], "q1": ["b"]}).queries["query_id"].to_list()
        ['q1', 'q2']
        """
        parts = [self.query_ids_judged, pl.Series("query_id", self.empty_judgments, pl.String)]
        parts += [
            pl.Series("query_id", empty, pl.String)
            for empty in (self.empty_spans, self.empty_evidence)
        ]
        parts += [t["query_id"] for t in (self.spans, self.evidence) if t is not None]
        if self.query_data is not None:
            parts.append(self.query_data["query_id"])
        queries = pl.concat(parts).unique().sort().to_frame()
        if self.query_data is None:
            return queries
        return queries.join(self.query_data, on="query_id", how="left", maintain_order="left")

    @cached_property
    def query_ids(self) -> pl.Series:
        """The ids of all queries, sorted as bytes.

        Examples
        --------
        >>> Gold.of({"q2": ["a"], "q1": ["b"]}).query_ids.to_list()
        ['q1', 'q2']
        """
        if self.mapping is not None and self.query_data is self.spans is self.evidence is None:
            return pl.Series("query_id", sorted(self.mapping), pl.String)
        return self.queries["query_id"]

    @cached_property
    def query_ids_judged(self) -> pl.Series:
        """The ids of the queries that have judgments, or an empty list of judgments.

        Examples
        --------
        >>> Gold.of({"q1": ["a"]}, evidence={"q2": ["pay by card"]}).query_ids_judged.to_list()
        ['q1']
        """
        if self.mapping is not None:
            return pl.Series("query_id", list(self.mapping), pl.String)
        # The rows of a query are usually next to each other, so segments have few distinct ids.
        ids = QuerySegments.of(self.judgments["query_id"]).query_ids.unique()
        return pl.concat([ids, pl.Series("query_id", self.empty_judgments, pl.String)])

    @property
    def fields(self) -> list[str]:
        """The names of the query fields: columns of `queries` except id, text and `answerable`.

        Examples
        --------
        >>> Gold.of([{"query_id": "q1", "relevant": ["a"], "topic": "billing"}]).fields
        ['topic']
        """
        reserved = ("query_id", "text", "answerable")
        return [name for name in self.queries.columns if name not in reserved]

    @cached_property
    def unanswerable(self) -> pl.Series:
        """The ids of the queries without an answer (`answerable` is false), sorted as bytes.

        They are excluded from every measure.

        Examples
        --------
        >>> Gold.of([{"query_id": "q1", "answerable": False}]).unanswerable.to_list()
        ['q1']
        """
        if self.query_data is None or "answerable" not in self.query_data.columns:
            return pl.Series("query_id", [], pl.String)
        is_unanswerable = ~self.query_data["answerable"].fill_null(value=True)
        return self.query_data["query_id"].filter(is_unanswerable).sort()

    @property
    def unanswerable_with_gold(self) -> pl.DataFrame:
        """The contradictions: queries without an answer that still have something to find.

        The table (query_id, kind, n) has the kinds "relevant judgment", "span" and "evidence text".

        Examples
        --------
        >>> Gold.of([{"query_id": "q", "relevant": ["a"], "answerable": False}]
        ... ).unanswerable_with_gold.rows()
        [('q', 'relevant judgment', 1)]
        """
        if not self.unanswerable.len():
            return NO_CONTRADICTIONS
        kinds = {
            "relevant judgment": self.judgments.filter(pl.col("grade") > 0),
            "span": NO_SPANS if self.spans is None else self.spans,
            "evidence text": NO_EVIDENCE if self.evidence is None else self.evidence,
        }
        parts = [
            table.filter(pl.col("query_id").is_in(self.unanswerable.implode()))
            .group_by("query_id")
            .len("n")
            .select("query_id", pl.lit(kind).alias("kind"), pl.col("n").cast(pl.Int64))
            for kind, table in kinds.items()
        ]
        return pl.concat([NO_CONTRADICTIONS, *parts]).sort("query_id", maintain_order=True)

    @classmethod
    def of(
        cls,
        source: Any = None,
        *,
        judgments: Any = None,
        spans: Any = None,
        evidence: Any = None,
        queries: Any = None,
        offsets: str | None = None,
        name: str | None = None,
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Gold:
        """Make gold from Python objects or tables.

        Parameters
        ----------
        source : dict, table, list or Gold, optional
            One of `{query: {item: grade}}`, `{query: [item, …]}` (each with grade 1), a table,
            a list of native records or of Ragas rows, or a list of (question, id) pairs.
        judgments : same as source, optional
            Another name for `source`. Only one of the two can be given.
        spans : table, optional
            Spans as a table with query_id, doc_id, start and end, and optionally text and grade.
        evidence : table or dict, optional
            Evidence texts as a table with query_id and text, or as `{query: [text, …]}`.
        queries : table, optional
            A table with query_id, and optionally text and any fields.
        offsets : {"codepoint", "utf16", "utf8"}, optional
            The unit in which the spans count their offsets. The default is "codepoint".
        name : str, optional
            The name of the gold.
        columns : dict, optional
            Maps karat's names to the names in the table or in the records, for example
            `{"query": "question"}`.

        Returns
        -------
        Gold
            The checked gold.

        Raises
        ------
        InputError
            If the input is invalid.

        Examples
        --------
        >>> Gold.of({"q1": {"a": 2, "b": 0}, "q2": ["c"]}).judgments.height
        3
        >>> Gold.of([("How do I pay?", "chunk-3")]).queries["text"].to_list()
        ['How do I pay?']
        """
        if source is not None and judgments is not None:
            raise InputError(
                "judgments are given twice", hint="pass them as source or as judgments=, not both"
            )
        judgment_source = judgments if source is None else source
        has_other_gold = spans is not None or evidence is not None
        mapping = Columns.of(columns)
        with mapping.checked() if mapping is not columns else nullcontext():
            if judgment_source is None and has_other_gold:
                gold = cls(name=name)
            else:
                gold = cls._from_python(judgment_source, name, mapping)
        if evidence is not None:
            gold = gold.with_evidence(evidence)
        if spans is not None:
            gold = gold.with_spans(spans)
        if offsets is not None:
            gold = gold.counted_in(offsets)
        return gold if queries is None else gold.with_queries(queries)

    @classmethod
    def _from_python(cls, source: Any, name: str | None, columns: Columns) -> Gold:
        if isinstance(source, Gold):
            return source
        frames.check_no_splits(source)
        if isinstance(source, Mapping):
            return cls(parse_judgments(source), name=name)
        if frames.is_table(source):
            return gold_of_table(columns.table(frames.to_frame(source)), name=name)
        if isinstance(source, Sequence) and not isinstance(source, (str, bytes)):
            if is_list_of_pairs(source):
                return _gold_of_pairs(source, name)
            records = [columns.record(record) for record in source]
            if frames.are_ragas_rows(records):
                from karat.data.formats.ragas import gold_of_rows

                return gold_of_rows(enumerate(records, 1), name=name)
            from karat.data.formats.native_gold import gold_of_records

            return gold_of_records(records, name=name)
        raise InputError(
            f"expected gold, got a value of type {type(source).__name__}",
            hint="pass {query: {item: grade}}, a table, a list of records as in karat's JSON "
            "Lines format, or (question, id) pairs; use Gold.read for a path",
        )

    def with_spans(self, spans: Any) -> Gold:
        """Return a copy in which a table of spans replaces the spans.

        Parameters
        ----------
        spans : table
            A table with query_id, doc_id, start and end, and optionally text and grade.

        Returns
        -------
        Gold
            The copy.

        Examples
        --------
        >>> spans = pl.DataFrame({"query_id": "q", "doc_id": "d", "start": [0], "end": [3]})
        >>> Gold.of({"q": ["a"]}).with_spans(spans).spans.height
        1
        """
        return replace(self, spans=spans_table(frames.to_frame(spans)), empty_spans=())

    def with_evidence(self, evidence: Any) -> Gold:
        """Return a copy in which the given evidence texts replace the evidence texts.

        Parameters
        ----------
        evidence : table or dict
            A table with query_id and text, or `{query: [text, …]}`.

        Returns
        -------
        Gold
            The copy.

        Examples
        --------
        >>> Gold.of({"q": ["a"]}).with_evidence({"q": ["pay by card"]}).evidence.rows()
        [('q', 'pay by card')]
        """
        if isinstance(evidence, Mapping):
            return replace(self, **evidence_from_mapping(evidence))
        table = frames.to_frame(evidence)
        text = frames.require_column(table, ("text", "evidence"), "the evidence text")
        return replace(self, evidence=evidence_table(table, text), empty_evidence=())

    def with_judgments(self, judgments: pl.DataFrame, *, empty: Sequence[str] = ()) -> Gold:
        """Return a copy in which checked judgments replace the judgments.

        Groups of interchangeable items (`any_of`) are dropped, because they refer to the replaced
        judgments.

        Parameters
        ----------
        judgments : pl.DataFrame
            The table (query_id, item_id, grade). It is not checked again.
        empty : sequence of str, default ()
            Ids of the queries with an empty list of judgments.

        Returns
        -------
        Gold
            The copy.

        Examples
        --------
        >>> judgments = pl.DataFrame({"query_id": ["q"], "item_id": ["b"], "grade": [2]})
        >>> Gold.of({"q": ["a"]}).with_judgments(judgments).judgments.rows()
        [('q', 'b', 2)]
        """
        return replace(self, judgment_data=judgments, empty_judgments=empty, any_of=None)

    def with_queries(self, queries: Any) -> Gold:
        """Return a copy with the texts and fields of a table of queries.

        If both this gold and the table have a value, the value in the table is used.
        `with_query_texts` does the opposite: it keeps the existing values.

        Parameters
        ----------
        queries : table
            A table with query_id, and optionally text and any fields.

        Returns
        -------
        Gold
            The copy.

        Examples
        --------
        >>> queries = pl.DataFrame({"query_id": ["q"], "topic": ["billing"]})
        >>> Gold.of({"q": ["a"]}).with_queries(queries).queries.rows()
        [('q', 'billing')]
        """
        table = queries_table(frames.to_frame(queries))
        if self.query_data is None:
            return replace(self, query_data=table)
        shared = [name for name in table.columns if name in self.query_data.columns[1:]]
        joined = self.query_data.join(
            table, on="query_id", how="full", coalesce=True, suffix=":new"
        )
        merged = joined.with_columns(
            pl.coalesce(f"{name}:new", name).alias(name) for name in shared
        ).drop(f"{name}:new" for name in shared)
        return replace(self, query_data=merged)

    def with_query_texts(
        self, queries: Any, *, columns: Columns | Mapping[str, str] | None = None
    ) -> Gold:
        """Return a copy with the missing texts and fields filled in from a file or a table.

        Existing values are kept; `with_queries` replaces them. Queries that are not in this gold
        are ignored. A warning states their number, and how many queries have another text here.

        Parameters
        ----------
        queries : path, table, dict or list
            Query ids with texts and any fields; a dict is `{query: text}`.
        columns : dict, optional
            Maps karat's names to the names in the file or the table, for example
            `{"query": "question"}`.

        Returns
        -------
        Gold
            The copy.

        Examples
        --------
        >>> Gold.of({"q1": ["a"]}).with_query_texts({"q1": "pay by card"}).queries.rows()
        [('q1', 'pay by card')]
        """
        from karat.data.queries import read_queries

        return replace(
            self,
            query_data=fill_query_fields(self.queries, read_queries(queries, columns=columns)),
        )

    def counted_in(self, unit: str) -> Gold:
        """Return a copy whose offsets are declared to be in another unit.

        The offsets themselves do not change; `in_code_points` converts them.

        Parameters
        ----------
        unit : {"codepoint", "utf16", "utf8"}
            The unit in which the spans count their offsets.

        Returns
        -------
        Gold
            The copy.

        Examples
        --------
        >>> Gold.of({"q": ["a"]}).counted_in("utf16").offsets
        'utf16'
        """
        return replace(self, offsets=check_unit(unit))

    def shifted(self, *, start: int = 0, end: int = 0) -> Gold:
        """Return a copy with a number added to the starts and ends of all spans.

        `end=1` converts inclusive ends. `start=-1` converts offsets that count from 1 and have
        inclusive ends.

        Parameters
        ----------
        start : int, default 0
            The number to add to each start.
        end : int, default 0
            The number to add to each end.

        Returns
        -------
        Gold
            The copy.

        Raises
        ------
        InputError
            If there are no spans, or if a shifted span is invalid.

        Examples
        --------
        >>> spans = pl.DataFrame({"query_id": "q", "doc_id": "d", "start": [0], "end": [3]})
        >>> Gold.of(spans=spans).shifted(end=1).spans["end"].item()
        4
        """
        if self.spans is None:
            raise InputError(
                "gold has no spans to shift", field="spans", hint="remove the shift options"
            )
        spans = self.spans.with_columns(pl.col("start") + start, pl.col("end") + end)
        frames.check_offsets(spans)
        return replace(self, spans=spans)

    def in_code_points(self, corpus: Any) -> Gold:
        """Return a copy with all spans in code points, checked against their documents.

        Parameters
        ----------
        corpus : Corpus, path, dict or table
            The documents of the spans; a dict is `{doc_id: text}`.

        Returns
        -------
        Gold
            The copy.

        Raises
        ------
        InputError
            If a span does not fit its document.

        Examples
        --------
        >>> spans = pl.DataFrame({"query_id": "q", "doc_id": "d", "start": [3], "end": [4]})
        >>> gold = Gold.of(spans=spans, offsets="utf16").in_code_points({"d": "a😀b"})
        >>> gold.spans["start"].item(), gold.offsets
        (2, 'codepoint')
        """
        spans = self.spans
        if spans is not None:
            spans = in_code_points(spans, Corpus.open(corpus), self.offsets, "spans")
        return replace(self, spans=spans, offsets="codepoint")

    def without(self, query_ids: Iterable[str]) -> Gold:
        """Return a copy without the given queries.

        Parameters
        ----------
        query_ids : iterable of str
            The ids of the queries to remove. Unknown ids are ignored.

        Returns
        -------
        Gold
            The copy.

        Examples
        --------
        >>> Gold.of({"q1": ["a"], "q2": ["b"]}).without(["q1"]).query_ids.to_list()
        ['q2']
        """
        removed = set(query_ids)
        return self._filter_queries(
            lambda query: query not in removed, ~pl.col("query_id").is_in(removed)
        )

    def only(self, *query_ids: str) -> Gold:
        """Return a copy with only the given queries.

        Parameters
        ----------
        *query_ids : str
            The ids of the queries to keep. Unknown ids are ignored.

        Returns
        -------
        Gold
            The copy.

        Examples
        --------
        >>> Gold.of({"q1": ["a"], "q2": ["b"]}).only("q1").query_ids.to_list()
        ['q1']
        """
        selected = set(query_ids)
        return self._filter_queries(
            lambda query: query in selected, pl.col("query_id").is_in(selected)
        )

    def _filter_queries(self, is_selected: Callable[[str], bool], condition: pl.Expr) -> Gold:
        def filtered(table: pl.DataFrame | None) -> pl.DataFrame | None:
            return None if table is None else table.filter(condition)

        judgment_data = self.judgment_data
        if isinstance(judgment_data, pl.DataFrame):
            judgment_data = judgment_data.filter(condition)
        elif judgment_data is not None:
            judgment_data = {
                query: grades for query, grades in judgment_data.items() if is_selected(query)
            }
        return replace(
            self,
            judgment_data=judgment_data,
            query_data=filtered(self.query_data),
            spans=filtered(self.spans),
            evidence=filtered(self.evidence),
            any_of=filtered(self.any_of),
            empty_judgments=tuple(filter(is_selected, self.empty_judgments)),
            empty_spans=tuple(filter(is_selected, self.empty_spans)),
            empty_evidence=tuple(filter(is_selected, self.empty_evidence)),
        )

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        columns: Columns | Mapping[str, str] | None = None,
        queries: Any = None,
    ) -> Gold:
        """Read gold from a file, or from all files that match a glob pattern.

        Parameters
        ----------
        path : path
            The file, a BEIR folder, or a glob pattern such as "gold/*.jsonl".
        format : str, optional
            The name of the format, such as "trec". It is detected by default.
        columns : dict, optional
            Maps karat's names to the names in the file, for example
            `{"query": "question", "evidence": "answer_quote"}`.
        queries : path, table, dict or list, optional
            Texts and fields of the queries; see `with_query_texts`.

        Returns
        -------
        Gold
            The checked gold.

        Raises
        ------
        InputError
            If the file cannot be read. The error states the file, the line and the field.

        Examples
        --------
        >>> gold = Gold.read("gold.jsonl", columns={"query": "question"})  # doctest: +SKIP
        """
        from karat.data.formats.registry import read_gold

        mapping = Columns.of(columns)
        with mapping.checked() if mapping is not columns else nullcontext():
            gold = read_gold(path, format, mapping)
            return gold if queries is None else gold.with_query_texts(queries, columns=mapping)

    def write(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write gold to a file.

        Parameters
        ----------
        path : path
            The file to write. An existing file is replaced.
        format : str, optional
            The name of the format. The default follows from the file name extension.

        Examples
        --------
        >>> Gold.of({"q1": ["a"]}).write("gold.qrels")  # doctest: +SKIP
        """
        from karat.data.formats.registry import write_gold

        write_gold(self, path, format)

    @classmethod
    def open(cls, source: Any) -> Gold:
        """Return gold from any supported source: `read` for a path, `of` for anything else.

        Parameters
        ----------
        source : Gold, path, dict, table or list
            The gold. A path may be a glob pattern.

        Returns
        -------
        Gold
            The checked gold.

        Examples
        --------
        >>> Gold.open({"q1": ["a"]})
        <Gold: 1 query, 1 judgment>
        """
        if isinstance(source, PathSource):
            return cls.read(
                source.path, format=source.format, columns=source.columns, queries=source.queries
            )
        return cls.read(source) if isinstance(source, (str, os.PathLike)) else cls.of(source)

    def _repr_html_(self) -> str:
        return gold_html(self)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        tables = {"judgment": self.judgments, "span": self.spans, "evidence text": self.evidence}
        parts = [counted(self.queries.height, "query")]
        heights = {noun: 0 if table is None else table.height for noun, table in tables.items()}
        parts += [counted(height, noun) for noun, height in heights.items() if height]
        if n_unanswerable := self.unanswerable.len():
            parts.append(f"{counted(n_unanswerable, 'query')} without an answer")
        return f"<Gold{name}: {', '.join(parts)}>"


def gold_of_table(
    table: pl.DataFrame,
    *,
    name: str | None = None,
    locate: frames.Locate = frames.row_error,
) -> Gold:
    """Make gold from a table with one row per judgment, per span or per evidence text.

    Other columns become query fields if their value is the same in all rows of each query. A row
    whose `answerable` is false may have no judgment, span or evidence text.
    """
    if frames.has_ragas_columns(table.columns):
        from karat.data.formats.ragas import gold_of_rows, rows_of_table

        table = _with_flags(table, locate)
        return gold_of_rows(*rows_of_table(table, locate), name=name)
    table = checked_gold_columns(table, locate)
    if lists := list_columns(table):
        return _gold_of_lists(table, lists, name, locate)
    gold, fields = gold_with_fields(table, name=name, locate=locate)
    return replace(gold, query_data=constant_fields(fields, frames.query_id_column(table)))


def checked_gold_columns(table: pl.DataFrame, locate: frames.Locate) -> pl.DataFrame:
    """Return a table that is not a run, with true and false in its column `answerable`."""
    table = _with_flags(table, locate)
    reject_run_table(table)
    return table


def _with_flags(table: pl.DataFrame, locate: frames.Locate) -> pl.DataFrame:
    name = frames.column(table, ("answerable",))
    if name is None:
        return table
    return table.drop(name).with_columns(frames.flags(table[name], "answerable", locate))


def gold_with_fields(
    table: pl.DataFrame, *, name: str | None, locate: frames.Locate
) -> tuple[Gold, pl.DataFrame]:
    """Make gold without fields from rows of judgments, spans or evidence texts.

    Also return the other columns, from which the fields are made: a table (query_id, …) with a row
    for each row of the table, which may be a part of a larger table.
    """
    text = frames.column(table, ("evidence",))
    if frames.has_span_columns(table):
        read = _read_spans
    elif text is not None and frames.column(table, frames.GRADE) is None:
        read = _read_evidence
    else:
        require_gold_column(table)
        read = _read_judgments
    query_ids = frames.query_ids(table, locate)
    gold, columns = read(table, query_ids, locate)
    used = [frames.query_id_column(table), *columns.values()]
    unused = [column for column in table.columns if column not in used]
    recognised = frames.recognised_columns(table, **columns)
    return replace(gold, name=name, recognised=recognised), table.select(query_ids, *unused)


_Columns = dict[str, str | None]
"""The columns with gold, by karat's name."""


def _read_judgments(
    table: pl.DataFrame, query_ids: pl.Series, locate: frames.Locate
) -> tuple[Gold, _Columns]:
    item = frames.require_item_id_column(table)
    grade = frames.require_column(table, frames.GRADE, "the grade")
    require_rows(table, "judgment")
    rows, locate_row = _rows_with_gold(table.with_columns(query_ids), item, locate)
    columns = [
        rows["query_id"],
        frames.ids(rows[item], "item_id", locate_row),
        frames.whole_numbers(rows[grade], "grade", locate_row, hint=GRADE_HINT),
    ]
    return Gold(pl.DataFrame(columns)), {"item_id": item, "grade": grade}


def _read_spans(
    table: pl.DataFrame, query_ids: pl.Series, locate: frames.Locate
) -> tuple[Gold, _Columns]:
    columns = {names[0]: frames.column(table, names) for names in SPAN_NAMES}
    rows, locate_row = _rows_with_gold(table.with_columns(query_ids), columns["doc_id"], locate)
    spans = spans_table(rows, locate_row)
    require_rows(table, "span")
    return Gold(spans=spans), columns


def _read_evidence(
    table: pl.DataFrame, query_ids: pl.Series, locate: frames.Locate
) -> tuple[Gold, _Columns]:
    text = frames.require_column(table, ("evidence",), "the evidence text")
    rows, locate_row = _rows_with_gold(table.with_columns(query_ids), text, locate)
    evidence = evidence_table(rows, text, locate_row)
    require_rows(table, "evidence text")
    return Gold(evidence=evidence), {"evidence": text}


def _rows_with_gold(
    table: pl.DataFrame, column: str | None, locate: frames.Locate
) -> tuple[pl.DataFrame, frames.Locate]:
    """Return the rows without those of unanswerable queries that have nothing in a column.

    Also return the function that makes errors for the remaining rows, with their original numbers.
    """
    if column is None or "answerable" not in table.columns:
        return table, locate
    has_nothing = table[column].is_null()
    if table[column].dtype == pl.String:
        has_nothing |= table[column] == ""
    is_kept = ~has_nothing | table["answerable"].fill_null(value=True)
    numbers = is_kept.arg_true()

    def locate_row(row: int, field: str, problem: str, hint: str | None) -> InputError:
        return locate(numbers[row - 1] + 1, field, problem, hint)

    return table.filter(is_kept), locate_row


def _gold_of_lists(
    table: pl.DataFrame, lists: Mapping[str, str], name: str | None, locate: frames.Locate
) -> Gold:
    """Make gold from a table with one row per query, in which columns hold lists."""
    from karat.data.formats.native_gold import gold_of_records

    require_rows(table, "query")
    records, error = frames.query_records(table, lists, ("relevant",), locate)
    gold = gold_of_records(records, name=name, error=error)
    return replace(gold, recognised=frames.recognised_columns(table, **lists))


def is_list_of_pairs(items: Sequence[Any]) -> bool:
    """Return whether a list is not empty and holds only (question, id) pairs."""
    return bool(items) and all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in items)


def _gold_of_pairs(pairs: Sequence[Any], name: str | None) -> Gold:
    from karat.data.formats.native_gold import gold_of_records

    relevant_ids: dict[str, list[Any]] = {}
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair[0], str) or not pair[0].strip():
            raise InputError(
                f"pair {number}: expected a question and an id, got {pair!r}",
                hint='pass [("How do I pay?", "chunk-3"), …]',
            )
        relevant_ids.setdefault(pair[0], []).append(text_id(pair[1], "item_id"))
    records = [
        {"query_id": generated_query_id(question), "query": question, "relevant": item_ids}
        for question, item_ids in relevant_ids.items()
    ]
    return gold_of_records(records, name=name)


def generated_query_id(question: str) -> str:
    """Return an id for a query without one.

    Lone surrogates are replaced here, because they are reported where the text is stored.
    """
    return frames.generated_id(question.encode("utf-8", "replace").decode())
