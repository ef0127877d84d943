"""`Scores`: the result of `evaluate`, with values per query, summaries, groups and reports."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.config import REPORT_TEXTS
from karat.conventions import Conventions
from karat.data.list_cut import ListCut
from karat.engines.local import ScoredRun
from karat.errors import InputError
from karat.evaluation.provenance import Provenance
from karat.evaluation.remarks import counted_notes, left_out
from karat.evaluation.result import Result, to_pandas
from karat.match.evidence import EvidenceMatches, evidence_table
from karat.measures import Measure, ScoreTable
from karat.measures.families import EVIDENCE
from karat.measures.name_parser import AnyMeasure
from karat.measures.presets import preset_named
from karat.stats import groups
from karat.stats.clusters import ClusterCounts, cluster_labels, count_clusters
from karat.stats.groups import Field
from karat.stats.summary import summary

if TYPE_CHECKING:
    from karat.evaluation.calculation import Calculation
    from karat.evaluation.reranking import Reranking


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Result):
    """The scores of one run: a value per query and measure, and their means.

    `evaluate` returns it. It behaves like a mapping of measures: `scores["nDCG@10"]`,
    `"AP" in scores`, `dict(scores)`.

    Parameters
    ----------
    table : ScoreTable
        The values per query and measure.
    name : str
        The name of the run.
    conventions : Conventions
        How corner cases were scored.
    queries : DataFrame
        The queries of gold with their fields.
    level : "item" or "doc", default "item"
        Whether items or their documents were scored.
    matching : str, default None
        When a text covers an evidence text, in words. None if evidence was not measured.
    settings : ListCut, default no cut
        Which part of each ranked list was scored (`top_k`, `score_threshold`).
    load : str, default None
        How many queries ran at a time, in words. None if it was one.
    notes : tuple of str, default ()
        Notes to print with the scores, such as which kind of gold the default measures use.
    delivered : dict, default {}
        For measures of spans or evidence at rank k: the mean number of characters up to rank k.
    scored_run : ScoredRun, default None
        The run and the session that scored it. None for scores that were read from a file.
    path : str, default None
        The file that the scores were read from.
    preset : str, default None
        The preset that was used. Reports print its names for measures.
    cluster : str, default None
        The field of the queries whose values are clusters, as `clustered` sets it. None treats all
        queries as independent.
    saved : Provenance, default None
        When scores that were read from a file were saved, and the commit of that time.
    make_frame : function, default None
        Makes `frame` for scores of another engine. None if `frame` is the same as `per_query`.

    Examples
    --------
    >>> from karat import evaluate
    >>> scores = evaluate({"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["c", "b"]}, "RR")
    >>> scores
    <Scores 'run': RR 0.750>
    >>> scores["RR"]
    0.75
    >>> scores.per_query.rows()
    [('q1', 1.0), ('q2', 0.5)]
    """

    table: ScoreTable
    _: KW_ONLY
    name: str
    conventions: Conventions
    queries: pl.DataFrame
    level: str = "item"
    matching: str | None = None
    settings: ListCut = field(default_factory=ListCut)
    load: str | None = None
    notes: tuple[str, ...] = ()
    delivered: dict[str, float] = field(default_factory=dict)
    scored_run: ScoredRun | None = None
    path: str | None = None
    preset: str | None = None
    cluster: str | None = None
    saved: Provenance | None = None
    make_frame: Callable[[], Any] | None = None
    traced: dict[tuple[str, Measure], Calculation] = field(default_factory=dict, init=False)
    """A cache of calculations that are shown several times, by query and measure."""

    def summary(self, *, intervals: bool = True) -> pl.DataFrame:
        """Return one row per measure: value, 95% confidence interval, spread, number of queries.

        Parameters
        ----------
        intervals : bool, default True
            Compute confidence intervals. If False, `low`, `high` and `method` are absent.
        """
        return self._with_intervals if intervals else self._without_intervals

    @cached_property
    def _with_intervals(self) -> pl.DataFrame:
        return summary(self.table)

    @cached_property
    def _without_intervals(self) -> pl.DataFrame:
        return summary(self.table, intervals=False)

    def clustered(self, field: str | None) -> Scores:
        """Return the same scores, with intervals for clusters of queries.

        Several queries of one user, or about one document, are not independent. The intervals and
        tests then use one unit per cluster. The values do not change.

        Parameters
        ----------
        field : str or None
            The field of the queries whose values are the clusters, such as "user_id". A query
            without a value is a cluster of its own. None treats all queries as independent.

        Examples
        --------
        >>> from karat import evaluate
        >>> gold = [{"query_id": q, "relevant": ["a"], "user": q[0]} for q in ("a1", "a2", "b1")]
        >>> scores = evaluate(gold, {"a1": ["a"], "a2": ["a"]}, "RR").clustered("user")
        >>> scores.cluster_counts.clusters
        2
        """
        labels = None
        if field is not None:
            fields = self.queries.with_columns(cluster=cluster_labels(self.queries, field))
            rows = self.table.frame.select("query_id").join(
                fields.select("query_id", "cluster"),
                on="query_id",
                how="left",
                maintain_order="left",
            )
            labels = rows["cluster"]
        return replace(self, table=replace(self.table, clusters=labels), cluster=field)

    @cached_property
    def provenance(self) -> Provenance:
        """When the scores were first saved, and the commit of that time; else the present."""
        return self.saved or Provenance.current()

    @property
    def cluster_counts(self) -> ClusterCounts | None:
        """How many clusters the queries form; None without clusters."""
        if self.cluster is None or self.table.clusters is None:
            return None
        return count_clusters(self.table.clusters, self.cluster)

    @property
    def per_query(self) -> pl.DataFrame:
        """One row per query: query_id, then one column per measure; null if it is left out."""
        return self.table.frame

    @property
    def frame(self) -> Any:
        """The table `per_query` in the type of the engine: a Spark or a Polars data frame.

        The rows of a Spark data frame are not collected and have no order. Spark scores the run
        again when the data frame is used, so `cache()` it before you use it several times.
        """
        return self.per_query if self.make_frame is None else self.make_frame()

    @cached_property
    def matches(self) -> pl.DataFrame:
        """One row per evidence text: the rank of the item that covers it, or the nearest text.

        Not available for scores that were read from a file.
        """
        return evidence_table(self._evidence, self.table.frame["query_id"])

    def matches_of(self, query: str | int) -> pl.DataFrame:
        """Return the rows of `matches` for one query, with the additional column `nearest_ratio`.

        For a missed evidence text, `nearest_ratio` is the similarity of the nearest item by the
        matching rule. `matches` does not have this column, because it is slow to compute.

        Parameters
        ----------
        query : str or int
            The id of the query.
        """
        matches, query_ids = self._evidence, self.table.frame["query_id"]
        number = query_ids.index_of(str(query))
        if number is None:
            examples = ", ".join(map(repr, query_ids.head(3)))
            raise InputError(
                f"gold has no query {query!r}", field="query", hint=f"its queries are {examples}, …"
            )
        return evidence_table(matches, query_ids, number, exactly=math.inf)

    @property
    def _evidence(self) -> EvidenceMatches:
        readings = {} if self.scored_run is None else self.scored_run.readings
        if self.scored_run is not None and (what := self.scored_run.too_large):
            raise InputError(
                f"evidence matches are not available, because {what} needs more memory than the "
                "limit",
                field="matches",
                hint="raise the limit (memory=), or pass gold that contains only the queries of "
                "interest",
            )
        if self.make_frame is not None:
            raise InputError(
                "evidence matches are not available for a run that was scored by Spark, because "
                "its lists stay on the cluster",
                field="matches",
                hint="collect the queries of interest, and evaluate them with engine='local'",
            )
        if EVIDENCE.name not in readings:
            raise InputError(
                "these scores do not include evidence matches",
                field="matches",
                hint="evaluate the run with an evidence measure, such as evidence.recall@10",
            )
        return readings[EVIDENCE.name].data_as(EvidenceMatches)

    def by(self, *fields: Field, intervals: bool = True) -> pl.DataFrame:
        """Return the summary for each group of queries.

        Parameters
        ----------
        *fields : str or function
            Fields of the queries. Queries with the same values are a group. A function gets the
            fields of a query, including `query_id` and `text`, and returns its group.
        intervals : bool, default True
            Compute 95% confidence intervals.

        Returns
        -------
        DataFrame
            One row per group and measure. `small` marks groups of fewer than 5 queries.

        Examples
        --------
        >>> from karat import evaluate
        >>> gold = [{"query_id": "q1", "relevant": ["a"], "topic": "billing"}]
        >>> scores = evaluate(gold, {"q1": ["a"]}, "RR")
        >>> scores.by("topic").select("topic", "measure", "value", "small").rows()
        [('billing', 'RR', 1.0, True)]
        """
        return groups.summary_by(self.table, self.queries, fields, intervals=intervals)

    def __getitem__(self, measure: str) -> float | None:
        """Return the value of a measure; any spelling of its name is accepted."""
        return self.table.value(self.table.measure(self.parse(measure)))

    def parse(self, measure: AnyMeasure) -> Measure:
        """Return the measure for a name. A preset may define names of its own."""
        return preset_named(self.preset).parse(measure)

    def label(self, measure: str) -> str:
        """Return the name that reports print for a measure. A preset may define its own."""
        return preset_named(self.preset).label(measure)

    def keys(self) -> list[str]:
        """Return the names of the measures, so that `dict(scores)` works."""
        return [measure.name for measure in self.table.measures]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, measure: str) -> bool:
        return self.parse(measure) in self.table.measures

    @property
    def left_out(self) -> dict[str, int]:
        """The number of queries that are left out, by reason."""
        return left_out(self.table.counts, self.conventions)

    @property
    def noted(self) -> dict[str, int]:
        """The number of queries or items that were scored in a special way, by reason."""
        return counted_notes(self.table.counts, self.conventions)

    @property
    def has_candidates(self) -> bool:
        """Whether the run has lists before reranking, so that `reranking` is available."""
        return self.scored_run is not None and self.scored_run.facts.candidates is not None

    def reranking(self, measure: AnyMeasure | None = None) -> Reranking:
        """Return what the reranker did with its candidates, and which stage lost each query.

        The run must have candidates: the lists before reranking.

        Parameters
        ----------
        measure : str or Measure, default None
            The nDCG to compare by, such as "nDCG@20" or "evidence.nDCG@5". Its cutoff is the k
            of the stages. None uses the first nDCG that was scored, or nDCG at the first cutoff.

        Examples
        --------
        >>> from karat import evaluate
        >>> lists = {"results": ["b", "a"], "candidates": ["a", "b"]}
        >>> evaluate({"q1": ["a"]}, {"q1": lists}, "RR@1").reranking().lost_by("rerank")
        ['q1']
        """
        return self._reranking if measure is None else self._reranking_by(measure)

    @cached_property
    def _reranking(self) -> Reranking:
        return self._reranking_by(None)

    def _reranking_by(self, measure: AnyMeasure | None) -> Reranking:
        from karat.evaluation.reranking import reranking

        return reranking(self, measure)

    def plot(
        self,
        kind: str = "values",
        *,
        by: Field | Sequence[Field] | None = None,
        measure: AnyMeasure | None = None,
    ) -> Any:
        """Return an Altair chart.

        Parameters
        ----------
        kind : str, default "values"
            The kind of chart, such as "values", "distribution", "curves", "precision_recall",
            "groups", "latency" or "cost". The last two need a run with timings or model calls.
        by : str, function or list of them, default None
            The fields of the queries that define the groups. Required for "groups".
        measure : str or Measure, default None
            Draw only this measure. None draws all that the chart can show.
        """
        return self._plot(kind, by=by, measure=measure)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        by: Field | Sequence[Field] | None = None,
        texts: int = REPORT_TEXTS,
        title: str | None = None,
        full_paths: bool = False,
    ) -> None:
        """Write an HTML report with the summary, the charts and every query.

        Parameters
        ----------
        path : path
            The .html file to write, or a .png or .svg file for a picture of the main result.
        by : str, function or list of them, default None
            The fields that define the groups. None uses all fields with few values.
        texts : int, default 500
            For how many queries the report includes texts and calculations. The most informative
            queries are chosen.
        title : str, default None
            The title. None makes one from the names of gold and runs.
        full_paths : bool, default False
            Whether the report shows the full paths of the files, and not only their names.
        """
        self._write_page(
            path, by=groups.fields_of(by), texts=texts, title=title, full_paths=full_paths
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the scores to a file.

        Parameters
        ----------
        path : path
            The file to write. Its extension decides the format: .json, .parquet, .csv, .md or
            .tex. All except .md and .tex include the values of each query; for .csv they are in a
            second file next to it.
        """
        self._write(path)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, run: str | None = None) -> Scores:
        """Read scores that `write` or `karat eval -o` saved.

        Parameters
        ----------
        path : path
            A .json or .parquet file.
        run : str, default None
            The name of the run. Required if the file contains several runs.
        """
        from karat.evaluation.saved_scores import read_scores

        return read_scores(path, run=run)

    def to_pandas(self) -> Any:
        """Return the values of each query as a pandas DataFrame: query_id, one column per measure.

        Examples
        --------
        >>> import karat
        >>> scores = karat.evaluate({"q1": {"a": 1}}, {"q1": ["b", "a"]}, "RR")
        >>> scores.to_pandas().loc[0, "RR"]
        np.float64(0.5)

        """
        return to_pandas(self.per_query)

    def __repr__(self) -> str:
        table = self.table
        values = [f"{self.label(m.name)} {m.format(table.value(m))}" for m in table.measures]
        return f"<Scores {self.name!r}: {', '.join(values)}>"
