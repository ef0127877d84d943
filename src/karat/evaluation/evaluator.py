"""`evaluate` scores a run against gold; `Evaluator` prepares gold once for many runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import reduce
from typing import Any

import numpy as np

from karat.conventions import Conventions
from karat.data.data_file import PathSource, path_of
from karat.data.frames import is_table
from karat.data.run import Run
from karat.data.run_source import TABLE_EXPANSION, RunSource
from karat.engines.batches import local_engine
from karat.engines.local import LocalSession, ScoredRun
from karat.engines.parts import Engine, RunFacts
from karat.engines.scoring_options import ScoringOptions
from karat.engines.spark import SparkRun
from karat.engines.spark_session import collected_gold, is_spark_source, is_spark_table, spark_table
from karat.errors import InputError, warn
from karat.evaluation.saved_scores import holds_scores
from karat.evaluation.scores import Scores
from karat.evaluation.usage import load_note
from karat.files import is_pipe
from karat.live.failures import MAX_FAILED, failures
from karat.live.protocol import Search
from karat.match.gold_index import PreparedParts
from karat.match.id_overlap import Overlap
from karat.match.text import Matching
from karat.measures import Measure
from karat.measures.name_parser import AnyMeasure
from karat.stats.clusters import cluster_labels
from karat.steps import tracked

Measures = AnyMeasure | Iterable[AnyMeasure]


def evaluate(
    gold: Any,
    run: Any,
    measures: Measures | None = None,
    *,
    conventions: Conventions | dict[str, Any] | None = None,
    preset: str | None = None,
    level: str = "item",
    chunks: Any = None,
    corpus: Any = None,
    matching: Matching | None = None,
    top_k: int | None = None,
    score_threshold: float | None = None,
    fail_on_error: float = MAX_FAILED,
    cluster: str | None = None,
    engine: str = "local",
    memory: str | int | None = None,
) -> Scores:
    """Score a run against gold.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        What should be found. A path may be a glob.
    run : path, table, dict, records, Run or retriever
        What was found. A retriever (anything that `retrieve` accepts) is run on the queries of
        gold, with as many items per query as the measures need, at least 20.
    measures : str, Measure, function or list of them, default None
        What to compute, such as "nDCG@10" or ["P@5", "AP"], or a function that was declared with
        `karat.measure`. None uses the measures of the preset. Without a preset, it uses the default
        measures for spans, evidence or judgments: the first of these that gold has and the run
        supports.
    conventions : Conventions or dict, default None
        How corner cases are scored, such as {"missing": "skip"}. Unset conventions keep the
        default of the preset, or of `Conventions`.
    preset : str, default None
        Name of a preset: measures and conventions that belong together. In the preset "coverage",
        MRR, MAP, Precision@5 and HitRate@10 are measures of evidence, and latency and cost are
        measured where the run has them.
    level : "item" or "doc", default "item"
        Whether the retrieved items are scored, or the documents that they come from.
    chunks : path, table or {run name: table}, default None
        All chunks that the run retrieves from. They provide the offsets and texts for runs that
        contain only ids. Required by `span.precision_omega`.
    corpus : path, table or dict, default None
        The documents. Spans are checked against them, and their offsets are converted if gold or
        the run counts in UTF-16 or UTF-8.
    matching : Matching, default None
        The rule for when a text covers an evidence text. None requires a similarity of at least
        0.7.
    top_k : int, default None
        Score only the first `top_k` items of each list. None scores all. With the preset
        "coverage", the environment variable RAG_TOP_K sets it too.
    score_threshold : float, default None
        Remove items with a lower score, before `top_k` applies. With the preset "coverage", the
        environment variable RAG_SCORE_THRESHOLD sets it too.
    fail_on_error : float, default 0.05
        Raise a RetrieverError if more than this share of the queries failed; 1 allows all to fail.
        Failed queries are scored as if nothing was retrieved, and excluded from latency and cost.
    cluster : str, default None
        A field of the queries, such as "user_id". Queries with the same value are not independent,
        and intervals and tests take that into account. None treats all queries as independent.
    engine : "local" or "spark", default "local"
        Where runs are scored. With "spark", runs that are Spark data frames, tables
        ("table:catalog.name") or Parquet are scored by the active session of Spark, or by a new one
        on this computer. Other runs are scored in this process.
    memory : str or int, default None
        About how much memory to use, such as "2G" or a number of bytes. Gold and runs that need
        more are read in batches of whole queries, with the same result. None uses a quarter of the
        memory of the machine or container.

    Returns
    -------
    Scores
        The values per query and measure, with summaries and reports.

    Examples
    --------
    >>> scores = evaluate({"q1": {"a": 1, "b": 1}}, {"q1": ["a", "x", "b"]}, ["P@2", "AP"])
    >>> scores["P@2"], round(scores["AP"], 4)
    (0.5, 0.8333)
    """
    options = ScoringOptions(
        conventions,
        preset,
        level,
        chunks,
        corpus,
        matching,
        top_k,
        score_threshold,
        fail_on_error,
        cluster,
        engine,
        memory,
    )
    return evaluator_of(gold, measures, options)(run)


def evaluator_of(gold: Any, measures: Measures | None, options: ScoringOptions) -> Evaluator:
    """Return an evaluator with these options."""
    return Evaluator(gold, measures, **vars(options))


class Evaluator:
    """Score many runs against the same gold, which is prepared only once.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        What should be found. A path may be a glob.
    measures : str, Measure, function or list of them, default None
        What to compute, such as "nDCG@10" or ["P@5", "AP"], or a function that was declared with
        `karat.measure`. None uses the measures of the preset. Without a preset, it uses the default
        measures for spans, evidence or judgments: the first of these that gold has and the run
        supports.
    conventions : Conventions or dict, default None
        How corner cases are scored, such as {"missing": "skip"}. Unset conventions keep the
        default of the preset, or of `Conventions`.
    preset : str, default None
        Name of a preset: measures and conventions that belong together. In the preset "coverage",
        MRR, MAP, Precision@5 and HitRate@10 are measures of evidence, and latency and cost are
        measured where the run has them.
    level : "item" or "doc", default "item"
        Whether the retrieved items are scored, or the documents that they come from.
    chunks : path, table or {run name: table}, default None
        All chunks that the run retrieves from. They provide the offsets and texts for runs that
        contain only ids. Required by `span.precision_omega`.
    corpus : path, table or dict, default None
        The documents. Spans are checked against them, and their offsets are converted if gold or
        the run counts in UTF-16 or UTF-8.
    matching : Matching, default None
        The rule for when a text covers an evidence text. None requires a similarity of at least
        0.7.
    top_k : int, default None
        Score only the first `top_k` items of each list. None scores all. With the preset
        "coverage", the environment variable RAG_TOP_K sets it too.
    score_threshold : float, default None
        Remove items with a lower score, before `top_k` applies. With the preset "coverage", the
        environment variable RAG_SCORE_THRESHOLD sets it too.
    fail_on_error : float, default 0.05
        Raise a RetrieverError if more than this share of the queries failed; 1 allows all to fail.
        Failed queries are scored as if nothing was retrieved, and excluded from latency and cost.
    cluster : str, default None
        A field of the queries, such as "user_id". Queries with the same value are not independent,
        and intervals and tests take that into account. None treats all queries as independent.
    engine : "local" or "spark", default "local"
        Where runs are scored. With "spark", runs that are Spark data frames, tables
        ("table:catalog.name") or Parquet are scored by the active session of Spark, or by a new one
        on this computer. Other runs are scored in this process.
    memory : str or int, default None
        About how much memory to use, such as "2G" or a number of bytes. Gold and runs that need
        more are read in batches of whole queries, with the same result. None uses a quarter of the
        memory of the machine or container.

    Examples
    --------
    >>> evaluator = Evaluator({"q1": ["a"]}, ["RR"])
    >>> evaluator({"q1": ["a", "b"]})["RR"], evaluator({"q1": ["b", "a"]})["RR"]
    (1.0, 0.5)
    """

    def __init__(
        self,
        gold: Any,
        measures: Measures | None = None,
        *,
        conventions: Conventions | dict[str, Any] | None = None,
        preset: str | None = None,
        level: str = "item",
        chunks: Any = None,
        corpus: Any = None,
        matching: Matching | None = None,
        top_k: int | None = None,
        score_threshold: float | None = None,
        fail_on_error: float = MAX_FAILED,
        cluster: str | None = None,
        engine: str = "local",
        memory: str | int | None = None,
    ) -> None:
        options = ScoringOptions(
            conventions,
            preset,
            level,
            chunks,
            corpus,
            matching,
            top_k,
            score_threshold,
            fail_on_error,
            cluster,
            engine,
            memory,
        )
        self.preset = preset
        options.check()
        self.engine = engine
        if engine == "spark" or is_spark_table(gold):
            gold = collected_gold(gold)
        self._session = LocalSession(gold, measures, options)
        self.cluster = cluster
        if cluster is not None:  # raises an error for a wrong field, before any run is scored
            cluster_labels(self._session.gold.queries, cluster)
        self.conventions = self._session.plan.conventions

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures, in the order in which they were given."""
        return self._session.plan.measures

    def only(self, measures: Iterable[Measure]) -> Evaluator:
        """Return an evaluator for the given measures that shares the prepared gold.

        Parameters
        ----------
        measures : iterable of Measure
            The measures to keep.
        """
        evaluator = copy(self)
        evaluator._session = self._session.only(measures)  # noqa: SLF001
        return evaluator

    def __call__(self, run: Any, *, name: str | None = None) -> Scores:
        """Score one run.

        Parameters
        ----------
        run : path, table, dict, records, Run or retriever
            What was found.
        name : str, default None
            The name of the run. None uses the name in its file, or the name of the file.
        """
        scored = self._score([self.source(run)], [name])
        _warn_of_missing_ids(scored, _unique_names(scored))
        return self._scores(scored[0], name)

    def all(self, runs: Mapping[str, Any] | Iterable[Any]) -> list[Scores]:
        """Score several runs.

        Runs are read and scored one after the other, so that only one is in memory at a time. A
        large run that was given as a path is read again when its lists are needed (`RunSource`).
        If evidence is measured, the texts stay in memory for `Scores.matches`.

        Parameters
        ----------
        runs : {name: run} or list of runs
            What was found. Runs in a list use their own names; the path or a number is used if
            two names are the same.

        Returns
        -------
        list of Scores
            The scores in the order of the runs. A warning about ids of gold that are not retrieved
            is shown only if no run contains them, or if a run has them as document ids.
        """
        inputs = runs.values() if isinstance(runs, Mapping) else runs
        sources = [self.source(run) for run in inputs]
        keys = list(runs) if isinstance(runs, Mapping) else [None] * len(sources)
        scored = self._score(sources, keys)
        names = list(runs) if isinstance(runs, Mapping) else _unique_names(scored)
        _warn_of_missing_ids(scored, names)
        return [self._scores(run, name) for run, name in zip(scored, names, strict=True)]

    def _score(self, sources: Sequence[RunSource], names: Sequence[str | None]) -> list[ScoredRun]:
        """Score runs. Default measures may depend on what all of them contain."""
        for source in sources:
            if holds_scores(source.data):
                raise InputError(
                    "this file contains saved scores, not a run",
                    path=source.path,
                    hint="pass the run itself; only compare and --baseline accept saved scores",
                )
        session = self._session
        engines: Iterable[Engine] = map(self._engine, sources)
        facts: list[RunFacts | None] = [None] * len(sources)
        try:
            if session.depends_on_runs:
                engines = list(tracked(engines, "reading runs", len(sources)))
                known = [session.facts(engine) for engine in engines]
                session, facts = session.with_defaults_for(known), [*known]
            return [
                session.score(source, engine, name, facts_of_run)
                for source, engine, name, facts_of_run in tracked(
                    zip(sources, engines, names, facts, strict=True), "scoring runs", len(sources)
                )
            ]
        finally:
            for source in sources:
                source.close()

    def _engine(self, source: RunSource) -> Engine:
        prepared = self._session.prepared
        if self.engine == "spark" and (table := spark_table(source.data)) is not None:
            assert not isinstance(prepared, PreparedParts), "Spark gets the whole gold"
            return SparkRun.of(prepared, source.data, table)
        return local_engine(prepared, source, needs_facts=self._session.needs_facts)

    def _is_local(self, source: RunSource) -> bool:
        return self.engine == "local" or not is_spark_source(source.data)

    def source(self, run: Any) -> RunSource:
        """Run a retriever, or read a pipe. Other runs are opened later, when they are scored."""
        path = path_of(run)
        if path is not None:
            return RunSource(self._read_pipe(run) if is_pipe(path) else run, self._session.memory)
        if isinstance(run, (Run, Mapping, Sequence)) or is_table(run) or is_spark_table(run):
            return RunSource(run)
        from karat.live.retrieve import retrieve
        from karat.live.retrievers.python import is_retriever

        if not is_retriever(run):
            return RunSource(run)
        fail_on_error = self._session.fail_on_error
        result = retrieve(run, self._session.gold, top_k=self._depth, fail_on_error=fail_on_error)
        if result.failed:
            message = failures(result, "; failed queries are scored as if nothing was retrieved")
            warn(message, stacklevel=4)
        return RunSource(result)

    def _read_pipe(self, source: Any) -> Run:
        """Read a run from a pipe, which cannot be read again and is therefore held in memory."""
        run = Run.open(source)
        size = run.results.estimated_size()
        if size * TABLE_EXPANSION > self._session.memory:
            warn(
                f"{path_of(source)}: a run from a pipe cannot be read in batches, and this one "
                "needs more memory than the limit; write it to a file first",
                stacklevel=4,
            )
        return run

    @property
    def _depth(self) -> int:
        """How many items to request per query: the largest cutoff of the measures, at least 20."""
        if self._session.settings.top_k is not None:
            return self._session.settings.top_k
        cutoffs = [measure.cutoff for measure in self.measures]
        return max([Search.top_k, *(cutoff for cutoff in cutoffs if isinstance(cutoff, int))])

    def _scores(self, scored: ScoredRun, name: str | None) -> Scores:
        session = scored.session
        scores = Scores(
            scored.table,
            name=name or scored.name or "run",
            preset=self.preset,
            conventions=self.conventions,
            level=session.plan.level,
            matching=session.plan.rule,
            settings=session.settings,
            load=load_note(scored.facts.header.settings),
            notes=scored.notes,
            delivered=scored.delivered,
            queries=session.gold.queries,
            # The lists of a Spark table stay where they are.
            scored_run=scored if self._is_local(scored.source) else None,
            make_frame=scored.make_frame,
        )
        return scores if self.cluster is None else scores.clustered(self.cluster)


def _warn_of_missing_ids(scored: Sequence[ScoredRun], names: Sequence[str]) -> None:
    """Warn if fewer than half of the ids of gold occur in any of the runs.

    If they do, warn only of each run that has them as document ids instead of item ids.
    """
    for kind in ("relevant ids", "document ids"):
        overlaps = {
            name: run.overlaps[kind]
            for name, run in zip(names, scored, strict=True)
            if kind in run.overlaps
        }
        if not overlaps:
            continue
        in_all = reduce(Overlap.merge, overlaps.values())
        if len(overlaps) == len(scored) and in_all.is_small:
            places = {"the runs" if len(scored) > 1 else "the run": in_all}
        else:
            places = {
                f"run {name!r}": overlap
                for name, overlap in overlaps.items()
                if overlap.is_small and overlap.has_more_documents
            }
        for place, overlap in places.items():
            warn(_missing_ids(kind, overlap, place), stacklevel=3)


def _missing_ids(kind: str, overlap: Overlap, place: str) -> str:
    """Return a message about ids of gold that are missing in a place."""
    n_found, n_ids = np.count_nonzero(overlap.found), overlap.found.size
    missing = overlap.first_ids(~overlap.found)
    found = f"only {n_found} of {n_ids} {kind} of gold appear"
    if not n_found:
        found = f"none of the {n_ids} {kind} of gold appears"
    if n_ids == 1:
        found = f"the only {kind.removesuffix('s')} of gold does not appear"
    hint = "if gold and run spell the same ids differently, the scores are too low"
    if overlap.has_more_documents:
        hint = (
            "ids of gold are document ids (doc_id) of these items: score documents with "
            '--level doc (level="doc")'
        )
    return (
        f"{found} in {place}\n"
        f"  only in gold: {', '.join(map(repr, missing))}\n"
        f"  in {place}: {', '.join(map(repr, overlap.sample))}\n"
        f"  {hint}"
    )


def _unique_names(scored: Sequence[ScoredRun]) -> list[str]:
    """Return the names of runs; if a name is repeated, the path, or the name with a number."""
    names = [run.name or "run" for run in scored]
    sources = [run.source for run in scored]
    names = [
        str(source.path) if names.count(name) > 1 and isinstance(source.data, PathSource) else name
        for name, source in zip(names, sources, strict=True)
    ]
    return [
        f"{name} ({names[:at].count(name) + 1})" if names.count(name) > 1 else name
        for at, name in enumerate(names)
    ]
