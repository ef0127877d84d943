"""Run: what was retrieved for each query."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import polars as pl

from karat import checks
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

_RESULTS_HINT = "use {item: score}, or a list of ids, (id, score) pairs, dicts or objects"
NO_RESULTS = pl.DataFrame(schema={"query_id": pl.String, "item_id": pl.String})


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What was retrieved for each query: a ranked list of items.

    In `results`, the rows of a query are contiguous and in rank order, so that the position in
    the list is the rank.

    The constructor expects tables that were already checked. Use `Run.of` for Python objects and
    tables, and `Run.read` for files.

    Parameters
    ----------
    result_data : pl.DataFrame or DictRun
        The results as they were given, in rank order. `results` is the table that is built from
        them.
    empty : sequence of str, default ()
        Ids of the queries for which nothing was retrieved, including failed queries.
    errors : pl.DataFrame, optional
        The table (query_id, type, message, …) of the errors of failed queries.
    timings : pl.DataFrame, optional
        The table (query_id, stage, ms). None if the run has no timings.
    calls : pl.DataFrame, optional
        The table of model calls. None if the run has none.
    attempts : pl.DataFrame, optional
        The table (query_id, attempts, varied) of the queries that needed more than one attempt.
    responses : pl.DataFrame, optional
        The table (query_id, response) of the answers generated from the results, for reports.
    candidates : Run, optional
        The lists before reranking, as a run of the queries that have such a list. None if the run
        has none.
    offsets : {"codepoint", "utf16", "utf8"}, default "codepoint"
        The unit in which the results count their offsets.
    name : str, optional
        The name of the run, such as the name of its file.
    settings : dict, optional
        Settings of the retriever, from the header of a native file.
    recognised : dict, optional
        The columns or keys that were read, as {karat's name: name in the input}.

    Examples
    --------
    >>> run = Run.of({"q1": {"a": 0.5, "b": 0.9}})
    >>> run
    <Run: 1 query, 2 results>
    >>> run.results.rows()
    [('q1', 'b', 0.9), ('q1', 'a', 0.5)]
    """

    result_data: pl.DataFrame | DictRun
    _: KW_ONLY
    empty: Sequence[str] = ()
    errors: pl.DataFrame | None = None
    timings: pl.DataFrame | None = None
    calls: pl.DataFrame | None = None
    attempts: pl.DataFrame | None = None
    responses: pl.DataFrame | None = None
    candidates: Run | None = None
    offsets: str = "codepoint"
    name: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    recognised: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        empty = self.empty
        if isinstance(self.result_data, DictRun):
            empty = [query for query, items in self.result_data.by_query.items() if not items]
        object.__setattr__(self, "empty", tuple(empty))

    @property
    def lists(self) -> DictRun | None:
        """The results as dicts, or None if they were given as a table.

        Examples
        --------
        >>> Run.of({"q1": ["a", "b"]}).lists.by_query
        {'q1': ['a', 'b']}
        """
        return self.result_data if isinstance(self.result_data, DictRun) else None

    @cached_property
    def results(self) -> pl.DataFrame:
        """The table (query_id, item_id, score, …) in rank order.

        Examples
        --------
        >>> Run.of({"q1": {"a": 0.5, "b": 0.9}}).results["item_id"].to_list()
        ['b', 'a']
        """
        if isinstance(self.result_data, DictRun):
            return self.result_data.to_frame()
        return self.result_data

    @cached_property
    def segments(self) -> QuerySegments:
        """The position and the number of each query's rows in `results`.

        Examples
        --------
        >>> Run.of({"q1": ["a", "b"], "q2": ["c"]}).segments.lengths.tolist()
        [2, 1]
        """
        return QuerySegments.of(self.results["query_id"])

    @cached_property
    def query_ids(self) -> pl.Series:
        """The ids of all queries in the run, including those without results.

        Examples
        --------
        >>> Run.of({"q1": ["a"], "q2": []}).query_ids.to_list()
        ['q1', 'q2']
        """
        if self.lists is not None:
            return pl.Series("query_id", list(self.lists.by_query), pl.String)
        return pl.concat(
            [self.segments.query_ids, pl.Series("query_id", self.empty, pl.String)]
        ).unique(maintain_order=True)

    @property
    def failed(self) -> int:
        """The number of queries on which the retriever failed.

        Examples
        --------
        >>> Run.of({"q1": ["a"]}).failed
        0
        """
        return 0 if self.errors is None else self.errors.height

    @property
    def score_threshold(self) -> float | None:
        """The `score_threshold` in the settings of the retriever; None if it had none.

        Examples
        --------
        >>> Run.of({"q1": ["a"]}).score_threshold is None
        True
        """
        threshold = self.settings.get("score_threshold")
        if threshold is None:
            return None
        return checks.finite(
            threshold,
            "settings.score_threshold",
            hint="write a number in the header of the run, or remove the setting",
        )

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        offsets: str | None = None,
        name: str | None = None,
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Run:
        """Make a run from Python objects or a table.

        Parameters
        ----------
        source : dict, table, list or Run
            A dict with the results of each query, a table, or a list of native records or of
            Ragas rows. In a dict, the results are `{item: score}`, a list of ids, or anything
            else that a retriever may return: (id, score) pairs, a NumPy array of ids, LangChain
            documents, a table.
        offsets : {"codepoint", "utf16", "utf8"}, optional
            The unit in which the results count their offsets. The default is "codepoint".
        name : str, optional
            The name of the run.
        columns : dict, optional
            Maps karat's names to the names in the table or in the records, for example
            `{"item_id": "passage"}`.

        Returns
        -------
        Run
            The checked run.

        Raises
        ------
        InputError
            If the input is invalid.

        Examples
        --------
        >>> Run.of({"q1": {"a": 0.5, "b": 0.9}}).results["item_id"].to_list()
        ['b', 'a']
        """
        mapping = Columns.of(columns)
        with mapping.checked() if mapping is not columns else nullcontext():
            run = cls._from_python(source, name, mapping)
        return run if offsets is None else run.counted_in(offsets)

    @classmethod
    def _from_python(cls, source: Any, name: str | None, columns: Columns) -> Run:
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
            f"expected a run, got a value of type {type(source).__name__}",
            hint="pass {query: {item: score}}, {query: [item, …]}, a table, or a list of records "
            "as in karat's JSON Lines format; "
            "use Run.read for a path",
        )

    def renamed(self, name: str) -> Run:
        """Return a copy with another name.

        Parameters
        ----------
        name : str
            The new name.

        Returns
        -------
        Run
            The copy.

        Examples
        --------
        >>> Run.of({"q1": ["a"]}).renamed("bm25")
        <Run 'bm25': 1 query, 1 result>
        """
        return replace(self, name=name)

    def counted_in(self, unit: str) -> Run:
        """Return a copy whose offsets are declared to be in another unit.

        The offsets themselves do not change; `in_code_points` converts them.

        Parameters
        ----------
        unit : {"codepoint", "utf16", "utf8"}
            The unit in which the results count their offsets.

        Returns
        -------
        Run
            The copy.

        Examples
        --------
        >>> Run.of({"q1": ["a"]}).counted_in("utf16").offsets
        'utf16'
        """
        candidates = None if self.candidates is None else self.candidates.counted_in(unit)
        return replace(self, offsets=check_unit(unit), candidates=candidates)

    def in_code_points(self, corpus: Any) -> Run:
        """Return a copy with all offsets in code points, checked against the documents.

        Parameters
        ----------
        corpus : Corpus, path, dict or table
            The documents of the results; a dict is `{doc_id: text}`.

        Returns
        -------
        Run
            The copy.

        Raises
        ------
        InputError
            If the offsets of a result do not fit its document.

        Examples
        --------
        >>> row = {"query_id": ["q"], "doc_id": ["d"], "start": [3], "end": [4]}
        >>> run = Run.of(pl.DataFrame(row), offsets="utf16").in_code_points({"d": "a😀b"})
        >>> run.results["start"].item(), run.offsets
        (2, 'codepoint')
        """
        if self.lists is not None:
            return replace(self, offsets="codepoint")
        documents, candidates = Corpus.open(corpus), self.candidates
        results = in_code_points(self.results, documents, self.offsets, "results")
        if candidates is not None:
            lists = in_code_points(candidates.results, documents, self.offsets, "candidates")
            candidates = replace(candidates, result_data=lists, offsets="codepoint")
        return replace(self, result_data=results, candidates=candidates, offsets="codepoint")

    def shaped(self, top_k: int | None = None, score_threshold: float | None = None) -> Run:
        """Return a copy with shorter lists: first a score threshold is applied, then a length.

        A query without any remaining items is listed in `empty`.

        Parameters
        ----------
        top_k : int, optional
            The number of items to keep per query. All are kept by default.
        score_threshold : float, optional
            The lowest score to keep. All items are kept by default.

        Returns
        -------
        Run
            The copy.

        Raises
        ------
        InputError
            If a value is invalid, or if `score_threshold` is set and an item has no score.

        Examples
        --------
        >>> run = Run.of({"q1": {"a": 0.9, "b": 0.5, "c": 0.4}, "q2": {"a": 0.1}})
        >>> cut = run.shaped(top_k=2, score_threshold=0.4)
        >>> cut.results["item_id"].to_list(), cut.empty
        (['a', 'b'], ('q2',))
        """
        cut = ListCut(top_k, score_threshold)
        if not cut:
            return self
        results = cut_lists(self.results, cut)
        query_ids = self.segments.query_ids
        emptied = query_ids.filter(~query_ids.is_in(results["query_id"].unique().implode()))
        return replace(self, result_data=results, empty=[*self.empty, *emptied])

    def distinct(self, *identity: str) -> Run:
        """Return a copy without items that repeat an earlier item of the same list.

        Later items move up. Items without a value in one of the columns are kept.

        Parameters
        ----------
        *identity : str
            The columns of `results` that identify an item. If the run does not have all of them,
            it is returned unchanged.

        Returns
        -------
        Run
            The copy.

        Examples
        --------
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
        """Return a copy with item ids generated from the texts, for a run without item ids.

        Items without a text get no id.

        Returns
        -------
        Run
            The copy.

        Examples
        --------
        >>> run = Run.of(pl.DataFrame({"query_id": ["q1"], "text": ["pay by card"]}))
        >>> run.with_item_ids().results["item_id"].to_list()
        ['7ef27e16b36a1f31']
        """
        item_ids = [
            None if text is None else frames.generated_id(text) for text in self.results["text"]
        ]
        column = pl.Series("item_id", item_ids, pl.String)
        candidates = self.candidates
        if candidates is not None and "text" in candidates.results.columns:
            candidates = candidates.with_item_ids()
        results = self.results.with_columns(column)
        return replace(self, result_data=results, candidates=candidates)

    def only(self, query_ids: Iterable[str]) -> Run:
        """Return a copy with only the given queries.

        Parameters
        ----------
        query_ids : iterable of str
            The ids of the queries to keep. Unknown ids are ignored.

        Returns
        -------
        Run
            The copy.

        Examples
        --------
        >>> Run.of({"q1": ["a"], "q2": ["b"]}).only(["q2", "q3"]).results["item_id"].to_list()
        ['b']
        """
        selected = set(query_ids)

        def filtered(table: pl.DataFrame | None) -> pl.DataFrame | None:
            return None if table is None else table.filter(pl.col("query_id").is_in(selected))

        result_data: pl.DataFrame | DictRun
        if self.lists is None:
            result_data = self.results.filter(pl.col("query_id").is_in(selected))
        else:
            result_data = self.lists.only(selected)
        return replace(
            self,
            result_data=result_data,
            empty=[query for query in self.empty if query in selected],
            errors=filtered(self.errors),
            timings=filtered(self.timings),
            calls=filtered(self.calls),
            attempts=filtered(self.attempts),
            responses=filtered(self.responses),
            candidates=None if self.candidates is None else self.candidates.only(selected),
        )

    def with_results(self, results: pl.DataFrame) -> Run:
        """Return a copy with another table of results.

        Parameters
        ----------
        results : pl.DataFrame
            The table (query_id, item_id, score, …) in rank order. It is not checked again.

        Returns
        -------
        Run
            The copy.

        Examples
        --------
        >>> run = Run.of({"q1": ["a", "b"]})
        >>> run.with_results(run.results.head(1)).results["item_id"].to_list()
        ['a']
        """
        return replace(self, result_data=results)

    def with_usage(self, *, timings: pl.DataFrame | None, calls: pl.DataFrame | None) -> Run:
        """Return a copy with other tables of timings and model calls.

        Parameters
        ----------
        timings : pl.DataFrame or None
            The table (query_id, stage, ms).
        calls : pl.DataFrame or None
            The table of model calls.

        Returns
        -------
        Run
            The copy.

        Examples
        --------
        >>> timings = pl.DataFrame({"query_id": ["q1"], "stage": ["total"], "ms": [12.5]})
        >>> Run.of({"q1": ["a"]}).with_usage(timings=timings, calls=None).timings["ms"].item()
        12.5
        """
        return replace(self, timings=timings, calls=calls)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        columns: Columns | Mapping[str, str] | None = None,
    ) -> Run:
        """Read a run from a file, or from its parts: all files in a folder or of a pattern.

        Parameters
        ----------
        path : path
            The file, a folder with parts of the run, or a glob pattern such as
            "runs/bm25-*.jsonl".
        format : str, optional
            The name of the format, such as "trec". It is detected by default.
        columns : dict, optional
            Maps karat's names to the names in the file, for example
            `{"item_id": "passage", "score": "similarity"}`.

        Returns
        -------
        Run
            The checked run.

        Raises
        ------
        InputError
            If the file cannot be read. The error states the file, the line and the field.

        Examples
        --------
        >>> run = Run.read("run.csv", columns={"item_id": "passage"})  # doctest: +SKIP
        """
        from karat.data.formats.registry import read_run

        mapping = Columns.of(columns)
        with mapping.checked() if mapping is not columns else nullcontext():
            return read_run(path, format, mapping)

    def write(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:  # noqa: A002
        """Write the run to a file.

        Parameters
        ----------
        path : path
            The file to write. An existing file is replaced.
        format : str, optional
            The name of the format. The default follows from the file name extension.

        Examples
        --------
        >>> Run.of({"q1": ["a"]}).write("bm25.run")  # doctest: +SKIP
        """
        from karat.data.formats.registry import write_run

        write_run(self, path, format)

    @classmethod
    def open(cls, source: Any) -> Run:
        """Return a run from any supported source: `read` for a path, `of` for anything else.

        Parameters
        ----------
        source : Run, path, dict, table or list
            The run. A path may be a folder of parts or a glob pattern.

        Returns
        -------
        Run
            The checked run.

        Examples
        --------
        >>> Run.open({"q1": ["a"]})
        <Run: 1 query, 1 result>
        """
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
    may_be_empty: bool = False,
) -> Run:
    """Make a run from a table with one row per result.

    The rows are ranked by `rank` if there is such a column, otherwise by `score`, otherwise in
    the order of the table. A table that may be empty is checked for wrong types, too.
    """
    run, ranked = unranked_run_of_table(table, name=name, locate=locate, may_be_empty=may_be_empty)
    return run if ranked is None else run.with_results(ranked(run.results))


Ranking = Callable[[pl.DataFrame], pl.DataFrame]


def unranked_run_of_table(
    table: pl.DataFrame,
    *,
    name: str | None = None,
    locate: frames.Locate = frames.row_error,
    may_be_empty: bool = False,
) -> tuple[Run, Ranking | None]:
    """Check a table, and return the run and the function that ranks the results of whole queries.

    The function is None if the results are ranked already, since there is one row per query.
    """
    if frames.has_ragas_columns(table.columns):
        from karat.data.formats.ragas import rows_of_table, run_of_rows

        return run_of_rows(*rows_of_table(table, locate), name=name), None
    columns = _result_columns(table)
    if lists := _list_columns(table, columns):
        return _run_of_lists(table, lists, name, locate), None
    _reject_gold_table(table)
    query_ids = frames.query_ids(table, locate)
    item = _item_column(table, columns)
    if not table.height and not may_be_empty:
        raise InputError("the table has no rows", hint="add at least one result")
    checked = [query_ids]
    if item is not None:
        checked.append(frames.ids(table[item], "item_id", locate))
    for result_column, column in columns.items():
        if column is not None and (column != item or column == "doc_id"):
            checked.append(_check_column(table[column], result_column, locate))
    results = pl.DataFrame(checked)
    frames.check_offsets(results, locate)
    recognised = frames.recognised_columns(table, item_id=item, **columns)
    run = Run(results, name=name, recognised=recognised)
    if columns["rank"] is not None:
        return run, partial(ranked_by_rank, locate=locate)
    return run, ranked_as_listed if columns["score"] is None else ranked_by_score


def columns_of_results(table: pl.DataFrame) -> list[str]:
    """Return the columns of a table with one row per result that `run_of_table` reads."""
    columns = _result_columns(table)
    names = [frames.require_query_id_column(table), _item_column(table, columns)]
    return list(dict.fromkeys(name for name in (*names, *columns.values()) if name is not None))


def has_one_row_per_query(table: pl.DataFrame) -> bool:
    """Return whether a table has a column with the list of results of each query."""
    return bool(_list_columns(table, _result_columns(table)))


def _result_columns(table: pl.DataFrame) -> dict[str, str | None]:
    columns = {column: frames.column(table, (column,)) for column in frames.RESULT_COLUMNS}
    columns["doc_id"] = frames.column(table, frames.DOC_ID)
    return columns


def _check_column(values: pl.Series, name: str, locate: frames.Locate) -> pl.Series:
    if name == "score":
        return frames.scores(values, name, locate)
    if name in ("rank", "start", "end"):
        return frames.whole_numbers(values, name, locate)
    if name == "tokens":
        return frames.counts(values, name, locate)
    return frames.texts(values, name, locate)


def _run_of_retriever_output(source: Mapping[Any, Any], name: str | None) -> Run:
    """Make a run from what a retriever returned for each query."""
    from karat.data.formats.json_lines import Header
    from karat.data.formats.native_run import RunLine, run_of_lines
    from karat.data.results import parse_candidates, parse_returned

    lines = []
    for query, returned in text_keys(source, "query_id").items():
        if returned is None or isinstance(returned, (str, bytes, int, float, Set)):
            raise InputError(
                f"query {query!r}: expected a list of results, got {type(returned).__name__}",
                field="results",
                hint=_RESULTS_HINT,
            )
        try:
            line = RunLine(query, list(parse_returned(returned)))
            if (candidates := parse_candidates(returned)) is not None:
                line.candidates = list(candidates)
            lines.append(line)
        except InputError as error:
            raise InputError(
                f"query {query!r}: {error.problem}",
                field=error.field or "results",
                hint=_RESULTS_HINT,
            ) from error
    return run_of_lines(lines, Header(1, "run", name))


def _list_columns(table: pl.DataFrame, columns: Mapping[str, str | None]) -> dict[str, str]:
    """Return the column with the results of a query, if the table has one row per query."""
    if frames.item_id_column(table) or columns["text"] or columns["start"]:
        return {}
    results = frames.column(table, RESULTS)
    if results is not None:
        return {"results": results}
    contexts = frames.column(table, ("retrieved_contexts", frames.OLD_CONTEXTS))
    return {} if contexts is None else {"retrieved_contexts": contexts}


def _run_of_lists(
    table: pl.DataFrame, lists: Mapping[str, str], name: str | None, locate: frames.Locate
) -> Run:
    """Make a run from a table with one row per query; an empty cell means no results."""
    from karat.data.formats.native_run import run_of_records

    if not table.height:
        raise InputError("the table has no rows", hint="add at least one query")
    records, error = frames.query_records(table, lists, ("results",), locate)
    for record in records:
        for key in lists:
            record[key] = [] if record[key] is None else record[key]
    run = run_of_records(records, name=name, error=error)
    return replace(run, recognised=frames.recognised_columns(table, **lists))


def _item_column(table: pl.DataFrame, columns: Mapping[str, str | None]) -> str | None:
    """Return the column of item ids; None if the items are identified by offsets or texts.

    Next to a start, a document id is part of a span and does not identify an item.
    """
    if columns["start"] is not None:
        return frames.item_id_column(table, [n for n in frames.ITEM_ID if n not in frames.DOC_ID])
    item = frames.item_id_column(table)
    if item is None and columns["text"] is None:
        return frames.require_item_id_column(table)
    return item


def _reject_gold_table(table: pl.DataFrame) -> None:
    gold_column = frames.column(table, ("grade", "rel", "relevance", "label"))
    if frames.item_id_column(table) is None and frames.column(table, ("text",)) is None:
        gold_column = gold_column or frames.column(table, ("evidence", *RELEVANT, *EVIDENCE_LISTS))
    if gold_column and frames.column(table, ("score", "rank")) is None:
        raise InputError(
            f"the table has a column {gold_column!r} but neither score nor rank; "
            "it looks like gold",
            hint=SWAPPED,
        )
