"""Run: what was found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from karat.data import frames
from karat.data.columns import EVIDENCE_LISTS, RELEVANT, RESULTS, Columns
from karat.data.corpus import Corpus
from karat.data.data_file import PathSource
from karat.data.dict_runs import DictRun, has_plain_lists, text_keys
from karat.data.list_cut import ListCut, cut_lists
from karat.data.notebook import run_html
from karat.data.offsets import check_unit
from karat.data.ranking import QuerySegments, ranked_as_listed, ranked_by_rank, ranked_by_score
from karat.data.span_checks import in_code_points
from karat.errors import SWAPPED, InputError, counted

_RESULTS_HINT = "give {item: score}, or a list of ids, (id, score) pairs, dicts or objects"
NO_RESULTS = pl.DataFrame(schema={"query_id": pl.String, "item_id": pl.String})


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What was found for each query: a ranked list of items.

    `results` holds the rows of a query together and in rank order: position is rank.
    The constructor takes checked tables; `Run.of` and `Run.read` make them from anything else.
    """

    result_data: pl.DataFrame | DictRun
    """The results in rank order, as a table or as dicts; `results` is always the table."""
    _: KW_ONLY
    empty: Sequence[str] = ()
    """Queries that retrieved nothing, including failed ones."""
    errors: pl.DataFrame | None = None
    timings: pl.DataFrame | None = None
    """The table (query_id, stage, ms); None if the run has no timings."""
    calls: pl.DataFrame | None = None
    """The table of model calls; None if the run has none."""
    attempts: pl.DataFrame | None = None
    """The table (query_id, attempts, varied) of queries that took more than one attempt."""
    offsets: str = "codepoint"
    """The unit of the offsets of results: codepoint, utf16 or utf8."""
    name: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    recognised: dict[str, str] = field(default_factory=dict)
    """Which column or key of a table or of records was read as what: {ours: theirs}."""

    def __post_init__(self) -> None:
        empty = self.empty
        if isinstance(self.result_data, DictRun):
            empty = [query for query, items in self.result_data.by_query.items() if not items]
        object.__setattr__(self, "empty", tuple(empty))

    @property
    def lists(self) -> DictRun | None:
        """The results as dicts, if they were given so."""
        return self.result_data if isinstance(self.result_data, DictRun) else None

    @cached_property
    def results(self) -> pl.DataFrame:
        """The table (query_id, item_id, score, …) in rank order."""
        return (
            self.result_data.to_frame()
            if isinstance(self.result_data, DictRun)
            else self.result_data
        )

    @cached_property
    def segments(self) -> QuerySegments:
        """Where each query's rows stand in `results`."""
        return QuerySegments.of(self.results["query_id"])

    @property
    def query_ids(self) -> pl.Series:
        """The ids of all queries that were asked."""
        if self.lists is not None:
            return pl.Series("query_id", list(self.lists.by_query), pl.String)
        return pl.concat(
            [self.segments.query_ids, pl.Series("query_id", self.empty, pl.String)]
        ).unique(maintain_order=True)

    @property
    def failed(self) -> int:
        """How many queries the retriever failed on."""
        return 0 if self.errors is None else self.errors.height

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        offsets: str | None = None,
        name: str | None = None,
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Run:
        """Make a run from a dict, a table, native records or Ragas rows.

        In a dict, each query has a dict of scores, a list of ids, or whatever else a retriever
        may return: (id, score) pairs, a NumPy array of ids, documents of LangChain, a table.
        `offsets` says in what its places are counted: codepoint, utf16 or utf8. `columns` maps
        karat's names to those of the table or the records, such as `{"item_id": "passage"}`.

        >>> Run.of({"q1": {"a": 0.5, "b": 0.9}}).results["item_id"].to_list()
        ['b', 'a']
        """
        mapping = Columns.of(columns)
        with mapping.checked() if mapping is not columns else nullcontext():
            run = cls._of(source, name, mapping)
        return run if offsets is None else run.counted_in(offsets)

    @classmethod
    def _of(cls, source: Any, name: str | None, columns: Columns) -> Run:
        if isinstance(source, Run):
            return source if name is None else source.renamed(name)
        frames.check_no_splits(source)
        if isinstance(source, Mapping):
            if has_plain_lists(source):
                return cls(DictRun.of(source), name=name)
            return _run_of_retriever_output(source, name)
        if frames.is_table(source):
            return run_of_table(columns.table(frames.to_frame(source)), name=name)
        if isinstance(source, Sequence) and not isinstance(source, (str, bytes)):
            records = [columns.record(record) for record in source]
            if frames.are_ragas_rows(records):
                from karat.data.formats.ragas import run_of_rows

                return run_of_rows(enumerate(records, 1), name=name)
            from karat.data.formats.native_run import run_of_records

            return run_of_records(records, name=name)
        raise InputError(
            f"a {type(source).__name__} is no run",
            hint="give {query: {item: score}}, {query: [item, …]}, a table or records; "
            "Run.read takes a path",
        )

    def renamed(self, name: str) -> Run:
        """Return this run under another name."""
        return replace(self, name=name)

    def counted_in(self, unit: str) -> Run:
        """Return this run, its places said to be counted in a unit: codepoint, utf16 or utf8."""
        return replace(self, offsets=check_unit(unit))

    def in_code_points(self, corpus: Any) -> Run:
        """Return this run with its places in code points, each checked against its document."""
        if self.lists is not None:
            return replace(self, offsets="codepoint")
        results = in_code_points(self.results, Corpus.open(corpus), self.offsets, "results")
        return replace(self, result_data=results, offsets="codepoint")

    def shaped(self, top_k: int | None = None, score_threshold: float | None = None) -> Run:
        """Return this run without what scores below a threshold, then its lists cut to the top k.

        A query that has nothing left was asked, and retrieved nothing.

        >>> run = Run.of({"q1": {"a": 0.9, "b": 0.5, "c": 0.4}, "q2": {"a": 0.1}})
        >>> cut = run.shaped(top_k=2, score_threshold=0.4)
        >>> cut.results["item_id"].to_list(), cut.empty
        (['a', 'b'], ('q2',))
        """
        settings = ListCut(top_k, score_threshold)
        if not settings:
            return self
        results = cut_lists(self.results, settings)
        asked = self.segments.query_ids
        emptied = asked.filter(~asked.is_in(results["query_id"].unique().implode()))
        return replace(self, result_data=results, empty=[*self.empty, *emptied])

    def distinct(self, *identity: str) -> Run:
        """Return this run without items that repeat an earlier item of their list; ranks close up.

        `identity` names the columns that identify an item. Items without them are kept.

        >>> Run.of({"q1": ["a", "b", "a", "c"]}).distinct("item_id").results["item_id"].to_list()
        ['a', 'b', 'c']
        """
        results = self.results
        if not set(identity) <= set(results.columns):
            return self
        is_first = pl.struct("query_id", *identity).is_first_distinct()
        is_unknown = pl.any_horizontal(pl.col(name).is_null() for name in identity)
        return replace(self, result_data=results.filter(is_first | is_unknown))

    def with_item_ids(self) -> Run:
        """Return this run, whose items have texts and no ids, with ids made of the texts."""
        ids = [frames.generated_id(text) for text in self.results["text"]]
        return replace(
            self, result_data=self.results.with_columns(pl.Series("item_id", ids, pl.String))
        )

    def only(self, query_ids: Iterable[str]) -> Run:
        """Return what this run says of some queries, whether it was asked them or not.

        >>> Run.of({"q1": ["a"], "q2": ["b"]}).only(["q2", "q3"]).results["item_id"].to_list()
        ['b']
        """
        kept = set(query_ids)

        def rows(table: pl.DataFrame | None) -> pl.DataFrame | None:
            return None if table is None else table.filter(pl.col("query_id").is_in(kept))

        if self.lists is None:
            ranked: pl.DataFrame | DictRun = self.results.filter(pl.col("query_id").is_in(kept))
        else:
            ranked = self.lists.only(kept)
        return replace(
            self,
            result_data=ranked,
            empty=[query for query in self.empty if query in kept],
            errors=rows(self.errors),
            timings=rows(self.timings),
            calls=rows(self.calls),
            attempts=rows(self.attempts),
        )

    def with_results(self, results: pl.DataFrame) -> Run:
        """Return this run with another table of results, in rank order."""
        return replace(self, result_data=results)

    def with_usage(self, *, timings: pl.DataFrame | None, calls: pl.DataFrame | None) -> Run:
        """Return this run with other tables of its speed and its calls."""
        return replace(self, timings=timings, calls=calls)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Run:
        """Read a run from a file, or from all files that a glob names.

        `format` names the format if it is not to be detected. `columns` maps karat's names to
        those of the file: `{"item_id": "passage", "score": "similarity"}`.
        """
        from karat.data.formats.registry import read_run

        mapping = Columns.of(columns)
        with mapping.checked() if mapping is not columns else nullcontext():
            return read_run(path, format, mapping)

    def write(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write the run in the format that the ending names."""
        from karat.data.formats.registry import write_run

        write_run(self, path, format)

    @classmethod
    def open(cls, source: Any) -> Run:
        """Take a run however it is given: run, path, glob, dict, table, records."""
        if isinstance(source, PathSource):
            return cls.read(source.path, format=source.format, columns=source.columns)
        return cls.read(source) if isinstance(source, (str, os.PathLike)) else cls.of(source)

    def _repr_html_(self) -> str:
        return run_html(self)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        queries = counted(self.query_ids.len(), "query")
        return f"<Run{name}: {queries}, {counted(self.results.height, 'result')}>"


def run_of_table(
    table: pl.DataFrame,
    *,
    name: str | None = None,
    locate: frames.Locate = frames.row_error,
) -> Run:
    """Make a run from a table with a row for each result.

    Ranked by `rank` if there is such a column, else by `score`, else as the rows stand.
    """
    if frames.has_ragas_columns(table.columns):
        from karat.data.formats.ragas import rows_of_table, run_of_rows

        return run_of_rows(*rows_of_table(table, locate), name=name)
    found = {c: frames.column(table, (c,)) for c in frames.RESULT_COLUMNS}
    found["doc_id"] = frames.column(table, frames.DOC_ID)
    if lists := _list_columns(table, found):
        return _run_of_lists(table, lists, name, locate)
    _reject_gold_table(table)
    query_ids = frames.query_ids(table, locate)
    item = _item_column(table, found)
    if not table.height:
        raise InputError("the table has no rows", hint="give at least one result")
    columns = [query_ids]
    if item is not None:
        columns.append(frames.ids(table[item], "item_id", locate))
    for wanted, given in found.items():
        if given is None or (given == item and given != "doc_id"):
            continue
        if wanted == "score":
            columns.append(frames.scores(table[given], wanted, locate))
        elif wanted in ("rank", "start", "end"):
            columns.append(frames.whole_numbers(table[given], wanted, locate))
        elif wanted == "tokens":
            columns.append(frames.counts(table[given], wanted, locate))
        else:
            columns.append(frames.texts(table[given], wanted, locate))
    results = pl.DataFrame(columns)
    frames.check_offsets(results, locate)
    read = frames.recognised_columns(table, item_id=item, **found)
    if found["rank"] is not None:
        return Run(ranked_by_rank(results, locate), name=name, recognised=read)
    if found["score"] is not None:
        return Run(ranked_by_score(results), name=name, recognised=read)
    return Run(ranked_as_listed(results), name=name, recognised=read)


def _run_of_retriever_output(source: Mapping[Any, Any], name: str | None) -> Run:
    """Make a run from what a retriever returned for each query."""
    from karat.data.formats.json_lines import Header
    from karat.data.formats.native_run import RunLine, run_of_lines
    from karat.data.results import parse_returned

    lines = []
    for query, returned in text_keys(source, "query_id").items():
        if returned is None or isinstance(returned, (str, bytes, int, float, Set)):
            raise InputError(
                f"query {query!r} has a {type(returned).__name__}, and no list of results",
                field="results",
                hint=_RESULTS_HINT,
            )
        try:
            lines.append(RunLine(query, list(parse_returned(returned))))
        except InputError as error:
            raise InputError(
                f"query {query!r}: {error.problem}",
                field=error.field or "results",
                hint=_RESULTS_HINT,
            ) from error
    return run_of_lines(lines, Header(1, "run", name))


def _list_columns(table: pl.DataFrame, found: Mapping[str, str | None]) -> dict[str, str]:
    """Return the column that holds the results of a query, where a row is not one result."""
    if frames.item_id_column(table) or found["text"] or found["start"]:
        return {}
    results = frames.column(table, RESULTS)
    if results is not None:
        return {"results": results}
    contexts = frames.column(table, ("retrieved_contexts", frames.OLD_CONTEXTS))
    return {} if contexts is None else {"retrieved_contexts": contexts}


def _run_of_lists(
    table: pl.DataFrame, lists: Mapping[str, str], name: str | None, locate: frames.Locate
) -> Run:
    """Make a run from a table with one row per query; an empty cell is nothing retrieved."""
    from karat.data.formats.native_run import run_of_records

    if not table.height:
        raise InputError("the table has no rows", hint="give at least one query")
    records, error = frames.query_records(table, lists, ("results",), locate)
    for record in records:
        for key in lists:
            record[key] = [] if record[key] is None else record[key]
    run = run_of_records(records, name=name, error=error)
    return replace(run, recognised=frames.recognised_columns(table, **lists))


def _item_column(table: pl.DataFrame, found: dict[str, str | None]) -> str | None:
    """Find the item's id; a document with a start is a place in it, not an item.

    Places and texts tell what was retrieved without an id.
    """
    if found["start"] is not None:
        return frames.item_id_column(table, [n for n in frames.ITEM_ID if n not in frames.DOC_ID])
    item = frames.item_id_column(table)
    known = item is not None or found["text"] is not None
    return item if known else frames.require_item_id_column(table)


def _reject_gold_table(table: pl.DataFrame) -> None:
    grade = frames.column(table, ("grade", "rel", "relevance", "label"))
    if frames.item_id_column(table) is None and frames.column(table, ("text",)) is None:
        grade = grade or frames.column(table, ("evidence", *RELEVANT, *EVIDENCE_LISTS))
    if grade and frames.column(table, ("score", "rank")) is None:
        raise InputError(
            f"this table has a column {grade} and neither score nor rank: it looks like gold",
            hint=SWAPPED,
        )
