"""Gold: what should be found."""

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
    NO_EVIDENCE,
    NO_JUDGMENTS,
    NO_SPANS,
    SPAN_NAMES,
    evidence_from_mapping,
    evidence_table,
    fill_query_fields,
    judgments_frame,
    list_columns,
    parse_judgments,
    queries_table,
    query_fields,
    reject_run_table,
    require_gold_column,
    require_rows,
    spans_table,
)
from karat.data.notebook import gold_html
from karat.data.offsets import check_unit
from karat.data.span_checks import in_code_points
from karat.errors import InputError, counted


@dataclass(frozen=True, eq=False, repr=False)
class Gold:
    """What should be found for each query: judgments, spans, evidence texts, and query fields.

    The constructor takes checked tables; `Gold.of` and `Gold.read` make them from anything else.
    """

    judgment_data: pl.DataFrame | Mapping[str, Mapping[str, int]] | None = None
    """The judgments as a table or as dicts; `judgments` is always the table."""
    _: KW_ONLY
    query_data: pl.DataFrame | None = None
    """Texts and fields of queries; `queries` also lists the queries without any."""
    empty_judgments: Sequence[str] = ()
    """Queries with an empty list of judgments."""
    spans: pl.DataFrame | None = None
    empty_spans: Sequence[str] = ()
    """Queries with an empty list of spans."""
    evidence: pl.DataFrame | None = None
    empty_evidence: Sequence[str] = ()
    """Queries with an empty list of evidence texts."""
    any_of: pl.DataFrame | None = None
    """The table (query_id, group, item_id) of groups of interchangeable relevant items."""
    offsets: str = "codepoint"
    """The unit of the offsets of spans: codepoint, utf16 or utf8."""
    name: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    recognised: dict[str, str] = field(default_factory=dict)
    """Which column or key of a table or of records was read as what: {ours: theirs}."""

    def __post_init__(self) -> None:
        for name in ("empty_judgments", "empty_spans", "empty_evidence"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.spans is None and self.empty_spans:
            object.__setattr__(self, "spans", NO_SPANS)
        if self.evidence is None and self.empty_evidence:
            object.__setattr__(self, "evidence", NO_EVIDENCE)

    @property
    def mapping(self) -> Mapping[str, Mapping[str, int]] | None:
        """The judgments as dicts, if they were given so."""
        return None if isinstance(self.judgment_data, pl.DataFrame) else self.judgment_data

    @cached_property
    def judgments(self) -> pl.DataFrame:
        """The table (query_id, item_id, grade)."""
        if self.judgment_data is None:
            return NO_JUDGMENTS
        if isinstance(self.judgment_data, pl.DataFrame):
            return self.judgment_data
        return judgments_frame(self.judgment_data)

    @cached_property
    def queries(self) -> pl.DataFrame:
        """One row a query: query_id, text where known, and any fields; sorted by id as bytes."""
        parts = [self.query_ids_judged, pl.Series("query_id", self.empty_judgments, pl.String)]
        parts += [
            pl.Series("query_id", empty, pl.String)
            for empty in (self.empty_spans, self.empty_evidence)
        ]
        parts += [t["query_id"] for t in (self.spans, self.evidence) if t is not None]
        if self.query_data is not None:
            parts.append(self.query_data["query_id"])
        every = pl.concat(parts).unique().sort().to_frame()
        if self.query_data is None:
            return every
        return every.join(self.query_data, on="query_id", how="left", maintain_order="left")

    @cached_property
    def query_ids(self) -> pl.Series:
        """The ids of all queries, sorted as bytes."""
        if self.mapping is not None and self.query_data is self.spans is self.evidence is None:
            return pl.Series("query_id", sorted(self.mapping), pl.String)
        return self.queries["query_id"]

    @property
    def query_ids_judged(self) -> pl.Series:
        """The ids of the queries that judgments were given for."""
        if self.mapping is not None:
            return pl.Series("query_id", list(self.mapping), pl.String)
        return pl.concat(
            [
                self.judgments["query_id"].unique(),
                pl.Series("query_id", self.empty_judgments, pl.String),
            ]
        )

    @property
    def fields(self) -> list[str]:
        """What is known of the queries besides id and text."""
        return [name for name in self.queries.columns if name not in ("query_id", "text")]

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
        """Make gold from a dict, a table, native records or Ragas rows, or from separate tables.

        `source` may also be a list of (question, id) pairs: each id is relevant to its question.
        `columns` maps karat's names to those of the table or the records, such as
        `{"query": "question"}`.

        `spans` is a table (query_id, doc_id, start, end, text?, grade?). `offsets` says in what
        its places are counted: codepoint, utf16 or utf8. `evidence` is a table (query_id, text),
        or {query: [text, …]}.

        >>> Gold.of({"q1": {"a": 2, "b": 0}, "q2": ["c"]}).judgments.height
        3
        """
        if source is not None and judgments is not None:
            raise InputError("judgments are given twice", hint="give one thing, or judgments=")
        given = judgments if source is None else source
        apart = spans is not None or evidence is not None
        mapping = Columns.of(columns)
        with mapping.checked() if mapping is not columns else nullcontext():
            gold = cls(name=name) if given is None and apart else cls._of(given, name, mapping)
        if evidence is not None:
            gold = gold.with_evidence(evidence)
        if spans is not None:
            gold = gold.with_spans(spans)
        if offsets is not None:
            gold = gold.counted_in(offsets)
        return gold if queries is None else gold.with_queries(queries)

    @classmethod
    def _of(cls, given: Any, name: str | None, columns: Columns) -> Gold:
        if isinstance(given, Gold):
            return given
        frames.check_no_splits(given)
        if isinstance(given, Mapping):
            return cls(parse_judgments(given), name=name)
        if frames.is_table(given):
            return gold_of_table(columns.table(frames.to_frame(given)), name=name)
        if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
            if is_list_of_pairs(given):
                return _gold_of_pairs(given, name)
            records = [columns.record(record) for record in given]
            if frames.are_ragas_rows(records):
                from karat.data.formats.ragas import gold_of_rows

                return gold_of_rows(enumerate(records, 1), name=name)
            from karat.data.formats.native_gold import gold_of_records

            return gold_of_records(records, name=name)
        raise InputError(
            f"a {type(given).__name__} is no gold",
            hint="give {query: {item: grade}}, a table, native records or (question, id) pairs; "
            "Gold.read takes a path",
        )

    def with_spans(self, spans: Any) -> Gold:
        """Return this gold with the spans of a table in place of its own."""
        return replace(self, spans=spans_table(frames.to_frame(spans)), empty_spans=())

    def with_evidence(self, evidence: Any) -> Gold:
        """Return this gold with the evidence of a table, or of {query: [text, …]}, for its own."""
        if isinstance(evidence, Mapping):
            return replace(self, **evidence_from_mapping(evidence))
        table = frames.to_frame(evidence)
        text = frames.require_column(table, ("text", "evidence"), "the evidence")
        return replace(self, evidence=evidence_table(table, text), empty_evidence=())

    def with_judgments(self, judgments: pl.DataFrame, *, empty: Sequence[str] = ()) -> Gold:
        """Return this gold with checked judgments in place of its own."""
        return replace(self, judgment_data=judgments, empty_judgments=empty, any_of=None)

    def with_queries(self, queries: Any) -> Gold:
        """Return this gold with what a table of queries knows; it is right where both know."""
        told = queries_table(frames.to_frame(queries))
        known = self.query_data
        if known is not None:
            shared = [name for name in told.columns if name in known.columns[1:]]
            both = known.join(told, on="query_id", how="full", coalesce=True, suffix=":new")
            told = both.with_columns(
                pl.coalesce(f"{name}:new", name).alias(name) for name in shared
            ).drop(f"{name}:new" for name in shared)
        return replace(self, query_data=told)

    def with_query_texts(
        self, queries: Any, *, columns: Columns | Mapping[str, str] | None = None
    ) -> Gold:
        """Return this gold with the texts and fields of a file or a table of queries.

        Only what this gold does not know is added. Queries that it does not have are ignored and
        counted in a warning, and so are texts that differ from those it has.

        >>> Gold.of({"q1": ["a"]}).with_query_texts({"q1": "pay by card"}).queries.rows()
        [('q1', 'pay by card')]
        """
        from karat.data.queries import read_queries

        return replace(
            self, query_data=fill_query_fields(self.queries, read_queries(queries, columns=columns))
        )

    def counted_in(self, unit: str) -> Gold:
        """Return this gold, its places said to be counted in a unit: codepoint, utf16 or utf8."""
        return replace(self, offsets=check_unit(unit))

    def shifted(self, *, start: int = 0, end: int = 0) -> Gold:
        """Return this gold with a number added to the starts and ends of all spans.

        `end=1` converts inclusive ends, `start=-1` offsets that count from 1 with inclusive ends.

        >>> spans = pl.DataFrame({"query_id": "q", "doc_id": "d", "start": [0], "end": [3]})
        >>> Gold.of(spans=spans).shifted(end=1).spans["end"].item()
        4
        """
        if self.spans is None:
            raise InputError(
                "gold has no spans to shift", field="spans", hint="leave the shift out"
            )
        spans = self.spans.with_columns(pl.col("start") + start, pl.col("end") + end)
        frames.check_offsets(spans)
        return replace(self, spans=spans)

    def in_code_points(self, corpus: Any) -> Gold:
        """Return this gold with its spans in code points, each checked against its document.

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
        """Return this gold without some queries, such as those that are not complete."""
        out = set(query_ids)
        return self._kept(lambda query: query not in out, ~pl.col("query_id").is_in(out))

    def only(self, *query_ids: str) -> Gold:
        """Return what this gold knows of some queries."""
        kept = set(query_ids)
        return self._kept(lambda query: query in kept, pl.col("query_id").is_in(kept))

    def _kept(self, is_kept: Callable[[str], bool], rows: pl.Expr) -> Gold:
        def kept(table: pl.DataFrame | None) -> pl.DataFrame | None:
            return None if table is None else table.filter(rows)

        judged = self.judgment_data
        if isinstance(judged, pl.DataFrame):
            judged = judged.filter(rows)
        elif judged is not None:
            judged = {query: items for query, items in judged.items() if is_kept(query)}
        return replace(
            self,
            judgment_data=judged,
            query_data=kept(self.query_data),
            spans=kept(self.spans),
            evidence=kept(self.evidence),
            any_of=kept(self.any_of),
            empty_judgments=tuple(filter(is_kept, self.empty_judgments)),
            empty_spans=tuple(filter(is_kept, self.empty_spans)),
            empty_evidence=tuple(filter(is_kept, self.empty_evidence)),
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
        """Read gold from a file, or from all files that a glob names.

        `format` names the format if it is not to be detected. `columns` maps karat's names to
        those of the file: `{"query": "question", "evidence": "answer_quote"}`. `queries` gives
        the queries their texts: a file or a table with ids and texts; see `with_query_texts`.
        """
        from karat.data.formats.registry import read_gold

        mapping = Columns.of(columns)
        with mapping.checked() if mapping is not columns else nullcontext():
            gold = read_gold(path, format, mapping)
            return gold if queries is None else gold.with_query_texts(queries, columns=mapping)

    def write(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write gold in the format that the ending names."""
        from karat.data.formats.registry import write_gold

        write_gold(self, path, format)

    @classmethod
    def open(cls, source: Any) -> Gold:
        """Take gold however it is given: gold, path, glob, dict, table, records."""
        if isinstance(source, PathSource):
            return cls.read(
                source.path, format=source.format, columns=source.columns, queries=source.queries
            )
        return cls.read(source) if isinstance(source, (str, os.PathLike)) else cls.of(source)

    def _repr_html_(self) -> str:
        return gold_html(self)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        queries = counted(self.queries.height, "query")
        return f"<Gold{name}: {queries}, {counted(self.judgments.height, 'judgment')}>"


def gold_of_table(
    table: pl.DataFrame,
    *,
    name: str | None = None,
    locate: frames.Locate = frames.row_error,
) -> Gold:
    """Make gold from a table with a row for each judgment, for each span or for each evidence.

    Further columns that are the same in all rows of a query become fields of the query.
    """
    if frames.has_ragas_columns(table.columns):
        from karat.data.formats.ragas import gold_of_rows, rows_of_table

        return gold_of_rows(*rows_of_table(table, locate), name=name)
    reject_run_table(table)
    if lists := list_columns(table):
        return _gold_of_lists(table, lists, name, locate)
    if frames.has_span_columns(table):
        spans = spans_table(table, locate)
        require_rows(table, "span")
        found = {names[0]: frames.column(table, names) for names in SPAN_NAMES}
        used = [frames.query_id_column(table), *found.values()]
        known = query_fields(table, spans["query_id"], used)
        read = frames.recognised_columns(table, **found)
        return Gold(spans=spans, query_data=known, name=name, recognised=read)
    text = frames.column(table, ("evidence",))
    if text is not None and frames.column(table, frames.GRADE) is None:
        evidence = evidence_table(table, text, locate)
        require_rows(table, "evidence")
        used = [frames.query_id_column(table), text]
        known = query_fields(table, evidence["query_id"], used)
        read = frames.recognised_columns(table, evidence=text)
        return Gold(evidence=evidence, query_data=known, name=name, recognised=read)
    require_gold_column(table)
    query_ids = frames.query_ids(table, locate)
    item = frames.require_item_id_column(table)
    grade = frames.require_column(table, frames.GRADE, "the grade")
    require_rows(table, "judgment")
    judgments = pl.DataFrame(
        [
            query_ids,
            frames.ids(table[item], "item_id", locate),
            frames.whole_numbers(table[grade], "grade", locate, hint=GRADE_HINT),
        ]
    )
    used = [frames.query_id_column(table), item, grade]
    known = query_fields(table, judgments["query_id"], used)
    read = frames.recognised_columns(table, item_id=item, grade=grade)
    return Gold(judgments, query_data=known, name=name, recognised=read)


def _gold_of_lists(
    table: pl.DataFrame, lists: Mapping[str, str], name: str | None, locate: frames.Locate
) -> Gold:
    """Make gold from a table with one row per query, whose columns hold lists."""
    from karat.data.formats.native_gold import gold_of_records

    require_rows(table, "query")
    records, error = frames.query_records(table, lists, ("relevant",), locate)
    gold = gold_of_records(records, name=name, error=error)
    return replace(gold, recognised=frames.recognised_columns(table, **lists))


def is_list_of_pairs(given: Sequence[Any]) -> bool:
    """Tell whether a list holds (question, id) pairs."""
    return bool(given) and all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in given)


def _gold_of_pairs(pairs: Sequence[Any], name: str | None) -> Gold:
    """Make gold from (question, id) pairs; the query's id is made of its text."""
    from karat.data.formats.native_gold import gold_of_records

    relevant: dict[str, list[Any]] = {}
    for at, pair in enumerate(pairs, 1):
        if not isinstance(pair[0], str) or not pair[0].strip():
            raise InputError(
                f"pair {at}: {pair!r} is not a question and an id",
                hint='give [("How do I pay?", "chunk-3"), …]',
            )
        relevant.setdefault(pair[0], []).append(text_id(pair[1], "item_id"))
    records = [
        {"query_id": generated_query_id(question), "query": question, "relevant": items}
        for question, items in relevant.items()
    ]
    return gold_of_records(records, name=name)


def generated_query_id(question: str) -> str:
    """Return the id of a query that has none; half a character is refused where it is kept."""
    return frames.generated_id(question.encode("utf-8", "replace").decode())
