"""Compare runs: score each, then pair them by query."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from karat.checks import did_you_mean
from karat.conventions import Conventions
from karat.data import frames
from karat.data.files import Unopened, flows, path_of
from karat.data.run import Run
from karat.errors import InputError
from karat.evaluation.baselines import differences
from karat.evaluation.comparison import Comparison
from karat.evaluation.evaluator import Evaluator, Measures
from karat.evaluation.scores import Scores
from karat.live.failures import MAX_FAILED
from karat.match.texts import Matching
from karat.measures import Measure, parse_all
from karat.report import files
from karat.stats.comparison import Choices
from karat.stats.groups import Field, fields_of


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

    `runs` is `{name: run}` or a list; a run is whatever `evaluate` takes, or `Scores`, or the path
    of saved ones. Gold may be None where all are scores. With a `baseline`, by name or path, every
    other run is compared with it, else all with all. `by` is a field of the queries to compare by
    as well, several of them, or a function, as `scores.by` takes them. `test` is randomization, t
    or wilcoxon; `correction` is holm, bh, bonferroni, tukey or none.

    >>> gold = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
    >>> old, new = {q: ["x", "a"] for q in gold}, {q: ["a"] for q in gold}
    >>> pairs = compare(gold, {"old": old, "new": new}, "RR").pairs
    >>> pairs.select("a", "b", "difference", "wins").row(0)
    ('old', 'new', 0.5, 3)
    """
    names, given = _listed(runs)
    choices = Choices(test=test, correction=correction, confidence=confidence)
    fields = fields_of(by)
    sources = [_saved_or_run(source) for source in given]
    saved = [source for source in sources if isinstance(source, Scores)]
    if measures is None and saved and (preset is None or len(saved) == len(sources)):
        measures = saved[0].table.measures
    evaluator = None
    if len(saved) < len(sources):
        evaluator = Evaluator(
            gold,
            measures,
            conventions=conventions,
            preset=preset,
            level=level,
            chunks=chunks,
            corpus=corpus,
            matching=matching,
            top_k=top_k,
            score_threshold=score_threshold,
            fail_on_error=fail_on_error,
        )
    scores = _scored(evaluator, names, sources, measures)
    _refuse_the_same_name([score.name for score in scores])
    _refuse_other_ways(scores)
    if baseline is not None:
        choices = replace(choices, baseline=_baseline(baseline, scores, given))
    return Comparison(scores, choices, fields)


def _listed(runs: Mapping[str, Any] | Iterable[Any]) -> tuple[list[str] | None, list[Any]]:
    """Return the names, where they are given, and the runs."""
    one = isinstance(runs, (str, os.PathLike, Unopened, Run, Scores)) or frames.is_table(runs)
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
    if path is None or flows(path):
        return source
    return Scores.read(path) if files.holds_scores(source) else source


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
    same = copy.copy(scores)
    same.table = scores.table.only(measures)
    same.origin = None if scores.origin is None else scores.origin.only(measures)
    same.name = name or scores.name
    return same


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
