"""`compare`: score runs, pair them by query and test the differences. Returns a `Comparison`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from karat.checks import did_you_mean
from karat.config import REPORT_TEXTS
from karat.conventions import Conventions
from karat.data import frames
from karat.data.data_file import PathSource, path_of, plain_name
from karat.data.run import Run
from karat.engines.scoring_options import ScoringOptions
from karat.errors import InputError, without_warnings
from karat.evaluation.baselines import setting_differences
from karat.evaluation.calculation import Calculation, Change, Key, changes, trace
from karat.evaluation.evaluator import Evaluator, Measures, evaluator_of
from karat.evaluation.remarks import main_measure
from karat.evaluation.result import Result, to_pandas
from karat.evaluation.saved_scores import holds_scores
from karat.evaluation.scores import Scores
from karat.evaluation.scores_json import document
from karat.files import is_pipe
from karat.live.failures import MAX_FAILED
from karat.match.text import Matching
from karat.measures import Measure, ScoreTable, parse_all
from karat.measures.name_parser import AnyMeasure
from karat.measures.presets import preset_named
from karat.stats import pairwise as statistics
from karat.stats.groups import Field, fields_of
from karat.stats.pairs import moved_queries, pair
from karat.stats.pairwise import ComparisonOptions


def compare(
    gold: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measures: Measures | None = None,
    *,
    baseline: str | None = None,
    by: Field | Sequence[Field] | None = None,
    test: str = "randomization",
    correction: str = "holm",
    confidence: float = 0.95,
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
) -> Comparison:
    """Compare runs pair by pair, each pair on the queries that both have a value for.

    Parameters
    ----------
    gold : path, table, dict, records, Gold or None
        What should be found. A path may be a glob. None is allowed if all runs are saved scores.
    runs : {name: run} or list of runs
        Two or more runs. A run is whatever `evaluate` takes, or `Scores`, or the path of saved
        scores.
    measures : str, Measure or list of them, default None
        What to compute, such as "nDCG@10" or ["P@5", "AP"]. None uses the measures of the saved
        scores, if there are any, or of the preset. Without either, it uses the default measures
        for spans, evidence or judgments: the first of these that gold has and the runs support.
    baseline : str, default None
        Name or path of a run. All others are compared with it. None compares every pair of runs.
    by : str, list of str or function, default None
        Fields of the queries. The runs are also compared within each group, as in `Scores.by`.
    test : "randomization", "t" or "wilcoxon", default "randomization"
        The significance test for paired differences.
    correction : "holm", "bh", "bonferroni", "tukey" or "none", default "holm"
        How p-values are corrected for several pairs of runs.
    confidence : float, default 0.95
        The confidence level of the intervals.
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
        All chunks that the runs retrieve from. They provide the offsets and texts for runs that
        contain only ids. Required by `span.precision_omega`.
    corpus : path, table or dict, default None
        The documents. Spans are checked against them, and their offsets are converted if gold or
        a run counts in UTF-16 or UTF-8.
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
    >>> gold = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
    >>> old, new = {q: ["x", "a"] for q in gold}, {q: ["a"] for q in gold}
    >>> pairs = compare(gold, {"old": old, "new": new}, "RR").pairs
    >>> pairs.select("a", "b", "difference", "wins").row(0)
    ('old', 'new', 0.5, 3)
    """
    names, inputs = _names_and_runs(runs)
    choices = ComparisonOptions(test=test, correction=correction, confidence=confidence)
    fields = fields_of(by)
    if measures is not None:  # may import a measure that is needed to read saved scores
        measures = preset_named(preset).parse_all(measures)
    sources = [_saved_or_run(source) for source in inputs]
    saved = [source for source in sources if isinstance(source, Scores)]
    if measures is None and saved and (preset is None or len(saved) == len(sources)):
        measures = saved[0].table.measures
    evaluator = None
    if len(saved) < len(sources):
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
        evaluator = evaluator_of(gold, measures, options)
    scores = _with_file_names(_scored(evaluator, names, sources, measures))
    _require_unique_names([score.name for score in scores])
    _require_same_settings(scores)
    scores = _clustered(scores, cluster)
    if baseline is not None:
        choices = replace(choices, baseline=_baseline_name(baseline, scores, inputs))
    return Comparison(scores, choices, fields)


def _with_file_names(scores: list[Scores]) -> list[Scores]:
    """Add the names of their files to saved scores that have the name of another run.

    A retriever before and after a change often has the same name.
    """
    names = [score.name for score in scores]
    return [
        replace(score, name=f"{score.name} ({plain_name(score.path)})")
        if score.path is not None and names.count(score.name) > 1
        else score
        for score in scores
    ]


def _names_and_runs(
    runs: Mapping[str, Any] | Iterable[Any],
) -> tuple[list[str] | None, list[Any]]:
    """Return the names of the runs, if they have any, and the runs."""
    names: list[str] | None = None
    inputs: list[Any] = []
    if isinstance(runs, Mapping):
        names, inputs = [str(name) for name in runs], list(runs.values())
        _require_unique_names(names)
    elif not (
        isinstance(runs, (str, os.PathLike, PathSource, Run, Scores)) or frames.is_table(runs)
    ):
        inputs = list(runs)
    if len(inputs) < 2:
        raise InputError(
            "a comparison needs at least two runs",
            field="runs",
            hint="pass gold first, then two or more runs (in Python: {name: run, …} or [run, run])",
        )
    return names, inputs


def _saved_or_run(source: Any) -> Any:
    """Read saved scores; return anything else unchanged, since runs are opened when scored."""
    path = path_of(source)
    if path is None or is_pipe(path):
        return source
    return Scores.read(path) if holds_scores(source) else source


def _scored(
    evaluator: Evaluator | None,
    names: list[str] | None,
    sources: list[Any],
    measures: Measures | None,
) -> list[Scores]:
    """Score the runs that are not scored yet, one after the other; keep the order of the sources.

    All scores get the same measures. A preset adds latency and cost for runs that have them. If
    saved scores lack these measures, they are removed from the new scores, too.
    """
    saved = [source for source in sources if isinstance(source, Scores)]
    positions = [at for at, source in enumerate(sources) if not isinstance(source, Scores)]
    new_scores: list[Scores] = []
    if evaluator is not None:
        unscored = [sources[at] for at in positions]
        if names is None:
            new_scores = evaluator.all(unscored)
        else:
            new_scores = evaluator.all({names[at]: sources[at] for at in positions})
    common = parse_all(measures or ()) if evaluator is None else evaluator.measures
    if new_scores:
        new_measures = new_scores[0].table.measures
        if all(set(new_measures) <= set(score.table.measures) for score in saved):
            common = new_measures
        else:
            new_scores = [select_measures(score, common, score.name) for score in new_scores]
    scores = list(sources)
    for at, score in zip(positions, new_scores, strict=True):
        scores[at] = score
    for at, source in enumerate(sources):
        if isinstance(source, Scores):
            scores[at] = select_measures(source, common, None if names is None else names[at])
    return scores


def select_measures(scores: Scores, measures: tuple[Measure, ...], name: str | None) -> Scores:
    """Return scores with only these measures, and with a new name if one is given."""
    missing = [measure.name for measure in measures if measure not in scores.table.measures]
    if missing:
        raise InputError(
            f"the scores of {scores.name!r} do not contain {', '.join(missing)}",
            field="runs",
            hint=f"they contain {', '.join(scores.keys())}; score the run again for other measures",
        )
    return replace(
        scores,
        table=scores.table.only(measures),
        name=name or scores.name,
    )


def _require_unique_names(names: list[str]) -> None:
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"two runs have the name {repeated[0]!r}",
            field="runs",
            hint="give each run its own name: {name: run, name: run}",
        )


def _require_same_settings(scores: list[Scores]) -> None:
    first = scores[0]
    for score in scores[1:]:
        if changed := list(setting_differences(score, first, first.keys())):
            raise InputError(
                f"{score.name!r} was scored with different settings than {first.name!r}: "
                f"{'; '.join(changed)}",
                field="runs",
                hint="score both runs with the same settings",
            )


def _clustered(scores: list[Scores], cluster: str | None) -> list[Scores]:
    """Return the scores with the same clusters; without a field, those of the saved scores."""
    if cluster is None:
        cluster = next((score.cluster for score in scores if score.cluster is not None), None)
    return [score if score.cluster == cluster else score.clustered(cluster) for score in scores]


def _baseline_name(baseline: str, scores: list[Scores], inputs: list[Any]) -> str:
    """Return the name of the run that has this name or path."""
    names = [score.name for score in scores]
    if baseline in names:
        return baseline
    for name, source in zip(names, inputs, strict=True):
        if path_of(source) == os.fspath(baseline):
            return name
    raise InputError(
        f"no run has the name {baseline!r}",
        field="baseline",
        hint=did_you_mean(baseline, names) or f"the runs are {', '.join(map(repr, names))}",
    )


@dataclass(frozen=True)
class Moved:
    """A query with different values in two runs, and what changed in its list."""

    a: str
    b: str
    measure: str
    query_id: str
    value_a: float
    value_b: float
    difference: float
    changes: list[Change] | None
    """None if the ranked lists are not available, as for saved scores."""
    text: str | None = None


_CHANGES = {
    "item": pl.String,
    "grade": pl.Int64,
    "rank_a": pl.Int64,
    "rank_b": pl.Int64,
    "brought_a": pl.Float64,
    "brought_b": pl.Float64,
}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """The result of `compare`: runs compared pair by pair.

    Each difference is the value of run b minus the value of run a.

    Parameters
    ----------
    scores : sequence of Scores
        The scores of each run, with the same measures and settings.
    choices : ComparisonOptions
        The baseline, the significance test, the correction and the confidence level.
    by : sequence of str or function, default ()
        The fields of the queries that define groups.

    Examples
    --------
    >>> gold = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
    >>> old, new = {q: ["x", "a"] for q in gold}, {q: ["a"] for q in gold}
    >>> comparison = compare(gold, {"old": old, "new": new}, "RR")
    >>> comparison
    <Comparison of 'old', 'new': RR>
    >>> comparison.pairs["difference"].to_list()
    [0.5]
    >>> comparison.moved(n=1).select("query_id", "value_a", "value_b").rows()
    [('q1', 0.5, 1.0)]
    """

    scores: Sequence[Scores]
    choices: ComparisonOptions
    by: Sequence[Field] = ()

    def __post_init__(self) -> None:
        # Compute now, so that errors are raised by `compare` and not when the result is read.
        _ = self.pairs, self.groups

    @cached_property
    def _tables(self) -> dict[str, ScoreTable]:
        return {score.name: score.table for score in self.scores}

    @cached_property
    def _queries(self) -> pl.DataFrame:
        # Saved scores may lack fields of the queries, so use the most complete table.
        return max((score.queries for score in self.scores), key=lambda queries: queries.width)

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """One row per pair and measure: difference, confidence interval, tests and power."""
        return statistics.compare_pairs(self._tables, self.choices)

    @cached_property
    def groups(self) -> pl.DataFrame | None:
        """The same as `pairs` for each group of queries; None without `by`."""
        if not self.by:
            return None
        return statistics.compare_groups(self._tables, self._queries, self.by, self.choices)

    @property
    def pair_names(self) -> list[tuple[str, str]]:
        """The names (a, b) of each pair."""
        return list(self.pairs.select("a", "b").unique(maintain_order=True).iter_rows())

    @property
    def baseline(self) -> str | None:
        """The name of the run that all others are compared with; None if all pairs are compared."""
        return self.choices.baseline

    @property
    def test(self) -> str:
        """The significance test of `p`: randomization, t or wilcoxon."""
        return self.choices.test

    @property
    def correction(self) -> str:
        """The correction of `p_corrected`: holm, bh, bonferroni, tukey or none."""
        return self.choices.correction

    @property
    def confidence(self) -> float:
        """The confidence level of the intervals."""
        return self.choices.confidence

    def __getitem__(self, run: str) -> Scores:
        """Return the scores of a run by its name.

        Examples
        --------
        >>> import karat
        >>> runs = {"bm25": {"q1": ["a"]}, "hybrid": {"q1": ["b"]}}
        >>> karat.compare({"q1": {"a": 1}}, runs, "RR")["hybrid"]
        <Scores 'hybrid': RR 0.000>

        """
        self._require_runs(run)
        return next(score for score in self.scores if score.name == run)

    def to_pandas(self) -> Any:
        """Return `pairs` as a pandas DataFrame.

        Examples
        --------
        >>> import karat
        >>> runs = {"bm25": {"q1": ["a"]}, "hybrid": {"q1": ["b"]}}
        >>> float(karat.compare({"q1": {"a": 1}}, runs, "RR").to_pandas().loc[0, "difference"])
        -1.0

        """
        return to_pandas(self.pairs)

    def moved(self, measure: AnyMeasure | None = None, n: int = 5) -> pl.DataFrame:
        """Return the queries that rose most and those that fell most, for every pair.

        Parameters
        ----------
        measure : str or Measure, default None
            The measure to compare by. None returns the queries for each measure.
        n : int, default 5
            Return at most n queries that rose and n that fell.

        Returns
        -------
        DataFrame
            One row per pair, measure and query: a, b, measure, query_id, text (if gold has texts),
            value_a, value_b, difference.
        """
        if n < 1:
            raise InputError(f"n must be at least 1, got {n}", field="n", hint="pass 1 or more")
        first = self.scores[0].table
        measures = first.measures
        if measure is not None:
            measures = (first.measure(self.scores[0].parse(measure)),)
        parts = []
        for a, b in self.pair_names:
            for compared_by in measures:
                labels = {"a": a, "b": b, "measure": compared_by.name}
                rows = moved_queries(pair(self._tables[a], self._tables[b], compared_by), n)
                names = [pl.lit(value).alias(name) for name, value in labels.items()]
                parts.append(rows.select(*names, pl.all()))
        moved = pl.concat(parts)
        if "text" not in self._queries.columns:
            return moved
        texts = self._queries.select("query_id", "text")
        first_columns = ["a", "b", "measure", "query_id", "text"]
        return moved.join(texts, on="query_id", how="left", maintain_order="left").select(
            *first_columns, pl.all().exclude(first_columns)
        )

    def changes(self, query: str | int, measure: AnyMeasure, a: str, b: str) -> pl.DataFrame:
        """Return what changed in the list of a query from run a to run b.

        Parameters
        ----------
        query : str or int
            The id of the query.
        measure : str or Measure
            The measure to explain.
        a, b : str
            The names of the runs.

        Returns
        -------
        DataFrame
            One row per item, the largest change first: item, grade, rank_a, rank_b, and its
            contribution to the measure in each run (brought_a, brought_b). A rank is null if the
            item is not in the list, or too far down to count.
        """
        self._require_runs(a, b)
        if str(query) not in self._tables[a].frame["query_id"]:
            raise InputError(f"gold has no query {query!r}", field="query", hint="check its id")
        compared_by = self._tables[a].measure(self.scores[0].parse(measure))
        (item_changes,) = self._changes(compared_by, [_QueryPair(a, b, str(query))])
        if item_changes is None:
            raise InputError(
                f"the ranked lists of {a!r} and {b!r} are not both available",
                field="run",
                hint="compare runs instead of saved scores, which contain no lists",
            )
        return pl.DataFrame([asdict(change) for change in item_changes], schema=_CHANGES)

    def _require_runs(self, *runs: str) -> None:
        for run in runs:
            if run not in self._tables:
                raise InputError(
                    f"no run has the name {run!r}",
                    field="run",
                    hint=f"the runs are {', '.join(map(repr, self._tables))}",
                )

    def queries_needed(self, difference: float) -> pl.DataFrame:
        """Return how many queries are needed to detect a difference.

        Parameters
        ----------
        difference : float
            The difference to detect, such as 0.05.

        Returns
        -------
        DataFrame
            One row per pair and measure.
        """
        if not math.isfinite(difference) or difference == 0:
            raise InputError(
                f"the difference must be a finite number other than 0, got {difference}",
                field="difference",
                hint="pass a number such as 0.05",
            )
        return statistics.queries_needed(self._tables, difference, self.choices)

    def moved_queries(self, n: int) -> list[Moved]:
        """Return the queries that rose or fell most by the main measure, with their changes.

        Parameters
        ----------
        n : int
            Return at most n queries that rose and n that fell, for every pair.
        """
        measure = main_measure(self.scores)
        rows = self.moved(measure, n).to_dicts()
        query_pairs = [_QueryPair(row["a"], row["b"], row["query_id"]) for row in rows]
        all_changes = self._changes(measure, query_pairs, keep=True)
        return [
            Moved(**row, changes=changes) for row, changes in zip(rows, all_changes, strict=True)
        ]

    def plot(
        self,
        kind: str = "values",
        *,
        by: Field | Sequence[Field] | None = None,
        measure: AnyMeasure | None = None,
        a: str | None = None,
        b: str | None = None,
    ) -> Any:
        """Return an Altair chart of all runs.

        Parameters
        ----------
        kind : str, default "values"
            A kind of chart that `Scores.plot` draws, or "scatter" (each query in run a and run b)
            or "tradeoff" (quality and cost or latency of the runs).
        by : str, function or list of them, default None
            The fields of the queries that define the groups. Required for "groups".
        measure : str or Measure, default None
            Draw only this measure. For "scatter", None means the first measure.
        a, b : str, default None
            The names of the runs of a "scatter". None draws every pair.
        """
        self._require_runs(*(run for run in (a, b) if run is not None))
        if kind != "scatter" and (a, b) != (None, None):
            raise InputError(
                f"a chart of {kind} does not show a pair of runs",
                field="plot",
                hint='remove a and b, or use kind="scatter"',
            )
        return self._plot(kind, by=by, measure=measure, pairs=self._pairs(a, b))

    def _pairs(self, a: str | None, b: str | None) -> list[tuple[str, str]]:
        if a is not None and b is not None:
            return [(a, b)]
        pairs = self.pair_names
        return [(one, other) for one, other in pairs if a in (None, one) and b in (None, other)]

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        texts: int = REPORT_TEXTS,
        title: str | None = None,
        full_paths: bool = False,
    ) -> None:
        """Write an HTML report with the pairs, the charts and every query.

        Parameters
        ----------
        path : path
            The .html file to write, or a .png or .svg file for a picture of the main result.
        texts : int, default 500
            For how many queries the report includes texts and calculations. The most informative
            queries are chosen.
        title : str, default None
            The title. None makes one from the names of gold and runs.
        full_paths : bool, default False
            Whether the report shows the full paths of the files, and not only their names.
        """
        self._write_page(path, texts=texts, title=title, full_paths=full_paths)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison to a file.

        Parameters
        ----------
        path : path
            The file to write. Its extension decides the format: .json, .csv, .md or .tex. For
            .csv, the queries that changed most are in a second file next to it.
        """
        self._write(path)

    def _changes(
        self, measure: Measure, query_pairs: Sequence[_QueryPair], *, keep: bool = False
    ) -> list[list[Change] | None]:
        """Return what changed in each list, the largest change first.

        None if a run was given as saved scores, which contain no lists. `keep` caches the
        calculations for a page or a second table.
        """
        scores = {score.name: score for score in self.scores}
        readable = {name for name, score in scores.items() if score.scored_run is not None}
        if not measure.declaration.reads_gold:  # no item makes a query slow or expensive
            return [
                [] if {query_pair.a, query_pair.b} <= readable else None
                for query_pair in query_pairs
            ]
        queries: dict[str, dict[str, None]] = {}
        for query_pair in query_pairs:
            if {query_pair.a, query_pair.b} <= readable:
                queries.setdefault(query_pair.a, {})[query_pair.query] = None
                queries.setdefault(query_pair.b, {})[query_pair.query] = None
        calculations = {
            run: _calculations(scores[run], measure, list(ids)) for run, ids in queries.items()
        }
        if keep:
            for run, by_query in calculations.items():
                scores[run].traced.update(by_query)
        all_changes: list[list[Change] | None] = []
        for query_pair in query_pairs:
            if {query_pair.a, query_pair.b} <= readable:
                first = calculations[query_pair.a][query_pair.query, measure]
                second = calculations[query_pair.b][query_pair.query, measure]
                moved = [change for change in changes(first, second) if change.moved]
                all_changes.append(moved)
            else:
                all_changes.append(None)
        return all_changes

    def __repr__(self) -> str:
        names = ", ".join(repr(score.name) for score in self.scores)
        return f"<Comparison of {names}: {', '.join(self.scores[0].keys())}>"


class _QueryPair(NamedTuple):
    """A query in two runs."""

    a: str
    b: str
    query: str


def _calculations(scores: Scores, measure: Measure, query_ids: list[str]) -> dict[Key, Calculation]:
    """Return the calculations of some queries, without repeating warnings about the run."""
    if all((query, measure) in scores.traced for query in query_ids):
        return scores.traced
    assert scores.scored_run is not None
    with without_warnings():
        source, session = scores.scored_run.source, scores.scored_run.session
        run = session.as_scored(source.read_only(query_ids))
        return dict(trace(scores, run, query_ids, [measure]))


def count_tests(frame: pl.DataFrame) -> int:
    """Return the largest number of tests per measure, over which p-values were corrected."""
    return max(part["p_corrected"].count() for part in frame.partition_by("measure"))


def comparison_document(
    comparison: Comparison, moved: Sequence[Moved] = (), needed: pl.DataFrame | None = None
) -> dict[str, Any]:
    """Return a comparison as plain data.

    A key is absent if the value was not requested, and null if the value is undefined. `moved` are
    the queries that changed most, `needed` is the result of `comparison.queries_needed`.
    """
    choices = comparison.choices
    plain = document(comparison.scores) | {
        "baseline": choices.baseline,
        "test": choices.test,
        "correction": choices.correction,
        "tests": count_tests(comparison.pairs),
        "confidence": choices.confidence,
        "pairs": _labelled(comparison, comparison.pairs.to_dicts()),
    }
    if comparison.groups is not None:
        columns = comparison.pairs.columns
        numbers = _labelled(comparison, comparison.groups.select(columns).to_dicts())
        labels = comparison.groups.select(pl.exclude(columns)).to_dicts()
        plain["groups"] = [{"by": by, **row} for by, row in zip(labels, numbers, strict=True)]
        plain["group_tests"] = count_tests(comparison.groups)
    if moved:
        plain["moved"] = _labelled(comparison, [_moved_entry(query) for query in moved])
    if needed is not None:
        plain["queries_needed"] = _labelled(comparison, needed.to_dicts())
    return plain


def _labelled(comparison: Comparison, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    label = comparison.scores[0].label
    return [row | {"measure": label(row["measure"])} for row in rows]


def _moved_entry(moved: Moved) -> dict[str, Any]:
    entry = asdict(moved)
    if moved.text is None:
        del entry["text"]
    return entry
