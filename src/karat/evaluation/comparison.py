"""Comparisons: runs are scored, then paired by query."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from karat.checks import did_you_mean
from karat.config import REPORT_TEXTS
from karat.conventions import Conventions
from karat.data import frames
from karat.data.data_file import PathSource, path_of
from karat.data.run import Run
from karat.engines.scoring_options import ScoringOptions
from karat.errors import InputError, KaratWarning
from karat.evaluation.baselines import differences
from karat.evaluation.calculation import Calculation, Change, Key, changes, trace
from karat.evaluation.evaluator import Evaluator, Measures, evaluator_of
from karat.evaluation.result import Result
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
from karat.stats.pairwise import PAIRS, ComparisonOptions


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
) -> Comparison:
    """Compare runs pair by pair, each pair on the queries that both have a value for.

    Parameters
    ----------
    gold : path, table, dict, records, Gold or None
        What should be found. A path may be a glob. None is allowed if all runs are scores.
    runs : {name: run} or list of runs
        Two or more runs. A run is whatever `evaluate` takes, or `Scores`, or the path of saved
        scores.
    measures : str, Measure or list of them, default None
        What to compute, such as "nDCG@10" or ["P@5", "AP"]. None means the measures of the preset,
        else the defaults of the most specific kind of gold that the run can answer: spans, then
        evidence, then judgments.
    baseline : str, default None
        Name or path of a run. All others are compared with it; None compares each with each.
    by : str, list of str or function, default None
        Compare also within each value of a field of the queries, as `Scores.by` does.
    test : "randomization", "t" or "wilcoxon", default "randomization"
        The significance test.
    correction : "holm", "bh", "bonferroni", "tukey" or "none", default "holm"
        How p-values are corrected for several pairs of runs.
    confidence : float, default 0.95
        The confidence level of the intervals.
    conventions : Conventions or dict, default None
        How corner cases are scored, such as {"missing": "skip"}. What is not given keeps the
        default of the preset, or of `Conventions`.
    preset : str, default None
        Name of a preset: measures and conventions that belong together. In the preset "coverage",
        MRR, MAP, Precision@5 and HitRate@10 are measures of evidence, and latency and cost are
        measured where the run has them.
    level : "item" or "doc", default "item"
        Score the retrieved items, or the documents that they come from.
    chunks : path, table or {run name: table}, default None
        All chunks the run was made with. They give offsets and texts to runs that have only ids;
        `span.precision_omega` needs them.
    corpus : path, table or dict, default None
        The documents. Spans are checked against them, and converted if gold or the run count in
        UTF-16 or UTF-8.
    matching : Matching, default None
        When a text covers an evidence text. None means a similarity of at least 0.7.
    top_k : int, default None
        Score only the first `top_k` items of each list. None scores all. With the preset
        "coverage", the environment variable RAG_TOP_K sets it too.
    score_threshold : float, default None
        Remove items with a lower score, before `top_k` applies. With the preset "coverage", the
        environment variable RAG_SCORE_THRESHOLD sets it too.
    fail_on_error : float, default 0.05
        Raise a RetrieverError if more than this share of the queries failed; 1 allows all to fail.
        Failed queries are scored as nothing retrieved, and are excluded from latency and cost.

    Examples
    --------
    >>> gold = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
    >>> old, new = {q: ["x", "a"] for q in gold}, {q: ["a"] for q in gold}
    >>> pairs = compare(gold, {"old": old, "new": new}, "RR").pairs
    >>> pairs.select("a", "b", "difference", "wins").row(0)
    ('old', 'new', 0.5, 3)
    """
    names, given = _listed(runs)
    choices = ComparisonOptions(test=test, correction=correction, confidence=confidence)
    fields = fields_of(by)
    if measures is not None:  # this may import a measure that saved scores are read with
        measures = preset_named(preset).parse_all(measures)
    sources = [_saved_or_run(source) for source in given]
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
        )
        evaluator = evaluator_of(gold, measures, options)
    scores = _scored(evaluator, names, sources, measures)
    _refuse_the_same_name([score.name for score in scores])
    _refuse_other_ways(scores)
    if baseline is not None:
        choices = replace(choices, baseline=_baseline(baseline, scores, given))
    return Comparison(scores, choices, fields)


def _listed(runs: Mapping[str, Any] | Iterable[Any]) -> tuple[list[str] | None, list[Any]]:
    """Return the names, where they are given, and the runs."""
    one = isinstance(runs, (str, os.PathLike, PathSource, Run, Scores)) or frames.is_table(runs)
    given = [] if one else list(runs.values() if isinstance(runs, Mapping) else runs)
    if len(given) < 2:
        raise InputError(
            "a comparison takes two runs or more",
            field="runs",
            hint="give {name: run, name: run} or [run, run]; gold comes before them",
        )
    names = [str(name) for name in runs] if isinstance(runs, Mapping) else None
    _refuse_the_same_name(names or [])
    return names, given


def _saved_or_run(source: Any) -> Any:
    """Take saved scores as scores; a run is opened when it is scored."""
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
    """Score the runs that are not scored yet, one after the other; all in the order given."""
    at = [number for number, source in enumerate(sources) if not isinstance(source, Scores)]
    made: list[Scores] = []
    if evaluator is not None:
        unscored = [sources[number] for number in at]
        made = evaluator.all(
            unscored if names is None else {names[number]: sources[number] for number in at}
        )
    wanted = parse_all(measures or ()) if evaluator is None else evaluator.measures
    saved = [source for source in sources if isinstance(source, Scores)]
    if made and all(set(made[0].table.measures) <= set(each.table.measures) for each in saved):
        wanted = made[0].table.measures
    elif made:  # saved scores may lack latency and cost, which a preset adds where runs have them
        made = [of_measures(score, wanted, score.name) for score in made]
    scores = dict(zip(at, made, strict=True))
    return [
        scores[number]
        if number in scores
        else of_measures(source, wanted, None if names is None else names[number])
        for number, source in enumerate(sources)
    ]


def of_measures(scores: Scores, measures: tuple[Measure, ...], name: str | None) -> Scores:
    """Return scores under a name, of some of their measures."""
    absent = [measure.name for measure in measures if measure not in scores.table.measures]
    if absent:
        raise InputError(
            f"the scores of {scores.name!r} hold no {', '.join(absent)}",
            field="runs",
            hint=f"they hold {', '.join(scores.keys())}; score the run again for others",
        )
    return replace(
        scores,
        table=scores.table.only(measures),
        name=name or scores.name,
    )


def _refuse_the_same_name(names: list[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"two runs are called {twice[0]!r}", field="runs", hint="give {name: run, name: run}"
        )


def _refuse_other_ways(scores: list[Scores]) -> None:
    """Refuse scores that were made in another way than the first: they would not compare."""
    first = scores[0]
    for score in scores[1:]:
        if differing := list(differences(score, first, first.keys())):
            raise InputError(
                f"the scores of {score.name!r} were made in another way than those of "
                f"{first.name!r} here: {'; '.join(differing)}",
                field="runs",
                hint="score both with the same settings",
            )


def _baseline(wanted: str, scores: list[Scores], given: list[Any]) -> str:
    """Return the name of the run that is called so, or was given by that path."""
    names = [score.name for score in scores]
    if wanted in names:
        return wanted
    for name, source in zip(names, given, strict=True):
        if path_of(source) == os.fspath(wanted):
            return name
    raise InputError(
        f"no run is called {wanted!r}",
        field="baseline",
        hint=did_you_mean(wanted, names) or f"there are {', '.join(map(repr, names))}",
    )


@dataclass(frozen=True)
class Moved:
    """A query that moved, and what changed in its list."""

    a: str
    b: str
    measure: str
    query_id: str
    value_a: float
    value_b: float
    difference: float
    changes: list[Change] | None
    """None if the lists are not available."""
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
    """Runs compared pair by pair; each difference is the value of b less that of a."""

    scores: Sequence[Scores]
    choices: ComparisonOptions
    by: Sequence[Field] = ()

    def __post_init__(self) -> None:
        # Whatever cannot be compared is an error here, not when the result is read.
        _ = self.pairs, self.groups

    @cached_property
    def _tables(self) -> dict[str, ScoreTable]:
        return {score.name: score.table for score in self.scores}

    @cached_property
    def _queries(self) -> pl.DataFrame:
        # All scores of one gold know the same of its queries; saved ones may know less.
        return max((score.queries for score in self.scores), key=lambda known: known.width)

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """One row per pair and measure: the difference, its interval, the tests, the power."""
        return statistics.compared(self._tables, self.choices)

    @cached_property
    def groups(self) -> pl.DataFrame | None:
        """The same for each group of queries, if groups were asked for."""
        if not self.by:
            return None
        return statistics.compared_by(self._tables, self._queries, self.by, self.choices)

    @property
    def pair_names(self) -> list[tuple[str, str]]:
        """The pairs, each as the names of a and b."""
        return list(self.pairs.select("a", "b").unique(maintain_order=True).iter_rows())

    @property
    def baseline(self) -> str | None:
        """The run that all others are compared with; None if all are compared with all."""
        return self.choices.baseline

    @property
    def test(self) -> str:
        """The significance test of `p`: randomization, t or wilcoxon."""
        return self.choices.test

    @property
    def correction(self) -> str:
        """How `p_corrected` is corrected: holm, bh, bonferroni, tukey or none."""
        return self.choices.correction

    @property
    def confidence(self) -> float:
        """The confidence level of the intervals."""
        return self.choices.confidence

    def moved(self, measure: AnyMeasure | None = None, n: int = 5) -> pl.DataFrame:
        """Return the queries that rose most and fell most, at most n each, for every pair.

        One row per pair, measure and query: a, b, measure, query_id, text if it is known, value_a,
        value_b, difference.
        """
        if n < 1:
            raise InputError(f"{n} queries cannot be shown", field="n", hint="ask for 1 or more")
        first = self.scores[0].table
        measures = first.measures
        if measure is not None:
            measures = (first.measure(self.scores[0].parse(measure)),)
        parts = []
        for a, b in self.pair_names:
            for each in measures:
                labels = {"a": a, "b": b, "measure": each.name}
                rows = moved_queries(pair(self._tables[a], self._tables[b], each), n)
                names = [pl.lit(value).alias(name) for name, value in labels.items()]
                parts.append(rows.select(*names, pl.all()))
        whole = pl.concat(parts)
        if "text" not in self._queries.columns:
            return whole
        texts = self._queries.select("query_id", "text")
        named = ["a", "b", "measure", "query_id", "text"]
        return whole.join(texts, on="query_id", how="left", maintain_order="left").select(
            *named, pl.all().exclude(named)
        )

    def changes(self, query: str | int, measure: AnyMeasure, a: str, b: str) -> pl.DataFrame:
        """Return what changed in the list of a query from run a to run b, most telling first.

        One row per item: item, grade, rank_a, rank_b, and what it adds to the measure in each. A
        rank is null if the item is too far down to count, or not in the list.
        """
        self._known(a, b)
        if str(query) not in self._tables[a].frame["query_id"]:
            raise InputError(f"there is no query {query!r}", field="query", hint="check its id")
        known = self._tables[a].measure(self.scores[0].parse(measure))
        (found,) = self._changes(known, [_Place(a, b, str(query))])
        if found is None:
            raise InputError(
                f"the lists of {a!r} and {b!r} are not both at hand",
                field="run",
                hint="compare runs, not saved scores, which hold no lists",
            )
        return pl.DataFrame([asdict(change) for change in found], schema=_CHANGES)

    def _known(self, *runs: str) -> None:
        """Refuse a run that is not compared."""
        for run in runs:
            if run not in self._tables:
                raise InputError(
                    f"no run is called {run!r}",
                    field="run",
                    hint=f"there are {', '.join(map(repr, self._tables))}",
                )

    def queries_needed(self, difference: float) -> pl.DataFrame:
        """Return how many queries would show a difference, one row per pair and measure."""
        if not math.isfinite(difference) or difference == 0:
            raise InputError(
                f"{difference} is no difference that queries could show",
                field="difference",
                hint="such as 0.05",
            )
        return statistics.queries_needed(self._tables, difference, self.choices)

    def moved_queries(self, n: int) -> list[Moved]:
        """Return the queries that moved most by the first measure, and what changed in the lists.

        At most n that rose and n that fell, for every pair.
        """
        measure = self.scores[0].table.measures[0]
        rows = self.moved(measure, n).to_dicts()
        places = [_Place(row["a"], row["b"], row["query_id"]) for row in rows]
        changes = self._changes(measure, places, keep=True)
        return [Moved(**row, changes=each) for row, each in zip(rows, changes, strict=True)]

    def plot(
        self,
        kind: str = "values",
        *,
        by: Field | Sequence[Field] | None = None,
        measure: AnyMeasure | None = None,
        a: str | None = None,
        b: str | None = None,
    ) -> Any:
        """Draw an Altair chart of all runs, as `Scores.plot` does of one; or scatter and tradeoff.

        `scatter` sets run b against run a by a measure: the first, if none is said, and of every
        pair, if no run is said.
        """
        self._known(*(run for run in (a, b) if run is not None))
        if kind != "scatter" and (a, b) != (None, None):
            raise InputError(f"{kind} is not of a pair", field="plot", hint="leave a and b out")
        return self._plot(kind, by=by, measure=measure, pairs=self._pairs(a, b))

    def _pairs(self, a: str | None, b: str | None) -> list[tuple[str, str]]:
        if a is not None and b is not None:
            return [(a, b)]
        pairs = self.pair_names
        return [(one, other) for one, other in pairs if a in (None, one) and b in (None, other)]

    def report(self, path: str | os.PathLike[str], *, texts: int = REPORT_TEXTS) -> None:
        """Write an HTML page that shows everything down to each query.

        It holds the texts of the lists and the calculations of the `texts` most telling queries.
        """
        self._write_page(path, texts=texts)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison in the format of the extension: json, csv, md, tex.

        For csv, the queries are in a second file next to it.
        """
        self._write(path)

    def _changes(
        self, measure: Measure, places: Sequence[_Place], *, keep: bool = False
    ) -> list[list[Change] | None]:
        """Return for each place what changed, the most telling change first.

        None if a run cannot be read, since it was given as saved scores. `keep` stores the
        calculations, for a page or a second table.
        """
        scores = {score.name: score for score in self.scores}
        readable = {name for name, score in scores.items() if score.scored_run is not None}
        if not measure.declaration.reads_gold:  # no item makes a query slow or expensive
            return [[] if {place.a, place.b} <= readable else None for place in places]
        queries: dict[str, dict[str, None]] = {}
        for place in places:
            if {place.a, place.b} <= readable:
                queries.setdefault(place.a, {})[place.query] = None
                queries.setdefault(place.b, {})[place.query] = None
        known = {run: _calculated(scores[run], measure, list(ids)) for run, ids in queries.items()}
        if keep:
            for run, calculations in known.items():
                scores[run].traced.update(calculations)
        return [
            _changed(*(known[run][place.query, measure] for run in (place.a, place.b)))
            if {place.a, place.b} <= readable
            else None
            for place in places
        ]

    def __repr__(self) -> str:
        names = ", ".join(repr(score.name) for score in self.scores)
        return f"<Comparison of {names}: {', '.join(self.scores[0].keys())}>"


class _Place(NamedTuple):
    """A query to look at, from which run to which."""

    a: str
    b: str
    query: str


def _calculated(scores: Scores, measure: Measure, query_ids: list[str]) -> dict[Key, Calculation]:
    """Return how some values come about; warnings were given when the run was scored."""
    if all((query, measure) in scores.traced for query in query_ids):
        return scores.traced
    assert scores.scored_run is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KaratWarning)
        source, session = scores.scored_run.source, scores.scored_run.session
        run = session.as_scored(source.read(), query_ids)
        return dict(trace(scores, run, query_ids, [measure]))


def _changed(first: Calculation, second: Calculation) -> list[Change]:
    return [change for change in changes(first, second) if change.moved]


def tests(frame: pl.DataFrame) -> int:
    """Return how many tests of a measure there are, at most: what it was corrected over."""
    return max(part["p_corrected"].count() for part in frame.partition_by("measure"))


def comparison_document(
    comparison: Comparison, moved: Sequence[Moved] = (), needed: pl.DataFrame | None = None
) -> dict[str, Any]:
    """Return the numbers as plain data; absent: not asked; null: undefined.

    `moved` holds queries that moved, `needed` what `comparison.queries_needed` returned.
    """
    choices = comparison.choices
    whole = document(comparison.scores) | {
        "baseline": choices.baseline,
        "test": choices.test,
        "correction": choices.correction,
        "tests": tests(comparison.pairs),
        "confidence": choices.confidence,
        "pairs": _labelled(comparison, comparison.pairs.to_dicts()),
    }
    if comparison.groups is not None:
        numbers = _labelled(comparison, comparison.groups.select(PAIRS.keys()).to_dicts())
        labels = comparison.groups.select(pl.exclude(PAIRS.keys())).to_dicts()
        whole["groups"] = [{"by": by, **row} for by, row in zip(labels, numbers, strict=True)]
        whole["group_tests"] = tests(comparison.groups)
    if moved:
        whole["moved"] = _labelled(comparison, [_moved(each) for each in moved])
    if needed is not None:
        whole["queries_needed"] = _labelled(comparison, needed.to_dicts())
    return whole


def _labelled(comparison: Comparison, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    label = comparison.scores[0].label
    return [row | {"measure": label(row["measure"])} for row in rows]


def _moved(moved: Moved) -> dict[str, Any]:
    plain = asdict(moved)
    if moved.text is None:
        del plain["text"]
    return plain
