"""Evaluate a run against gold; or prepare gold once and evaluate many."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from karat.conventions import Conventions
from karat.data.files import Unopened, flows, path_of
from karat.data.frames import is_table
from karat.data.run import Run
from karat.engines.local import LocalSession, Outcome
from karat.errors import InputError, KaratWarning
from karat.evaluation.opened import Origin
from karat.evaluation.saved_scores import holds_scores
from karat.evaluation.scores import Scores
from karat.evaluation.settings import settings_of
from karat.evaluation.usage import loaded
from karat.live.exchange import Search
from karat.live.failures import MAX_FAILED, failures
from karat.match.texts import Matching
from karat.measures import Measure
from karat.measures.names import AnyMeasure
from karat.measures.presets import preset_named

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
) -> Scores:
    """Score a run against gold.

    Both may be a path, a glob, a table, a dict, native records, or a `Gold` and a `Run`. A run may
    also be a retriever, as `retrieve` takes it: it is asked as deep as the measures look, for 20
    items at least. `measures` are names, or functions that `karat.measure` declared. Without them,
    the defaults of the most specific kind of gold that the run can answer are used: spans, then
    evidence, then judgments. `chunks` is the table of all chunks
    the run was made with, or `{run name: table}`: `span.precision_omega` reads it, and it gives
    offsets and texts to runs that have only ids.
    `corpus` holds the documents: places are checked against them, and converted if gold or run
    count in UTF-16 or UTF-8. `matching` says when a text covers an evidence.
    Items that score below `score_threshold` are left out of each list first, then all but the
    first `top_k`; with the preset coverage, both may also come from the environment. `preset` names
    measures and conventions that belong together; inside the preset coverage, `MRR`, `MAP`,
    `Precision@5` and `HitRate@10` are measures of evidence, and latency and cost are measured too
    where the run has them.
    If more than the share `fail_on_error` of the run's queries failed, a RetrieverError is raised;
    1 allows all to fail. Failed queries are scored as nothing retrieved, and are excluded from
    latency and cost.

    >>> scores = evaluate({"q1": {"a": 1, "b": 1}}, {"q1": ["a", "x", "b"]}, ["P@2", "AP"])
    >>> scores["P@2"], round(scores["AP"], 4)
    (0.5, 0.8333)
    """
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
    return evaluator(run)


class Evaluator:
    """Gold prepared once, for many runs.

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
    ) -> None:
        self.preset = preset
        chosen = preset_named(preset)
        adds_usage = chosen.adds_usage and measures is None
        if preset is not None:
            measures = chosen.parse_all(chosen.measures if measures is None else measures)
        self.conventions = _conventions(preset, conventions)
        settings = settings_of(top_k, score_threshold, chosen.environment)
        self._session = LocalSession(
            gold,
            measures,
            self.conventions,
            level,
            chunks,
            corpus,
            matching,
            settings,
            fail_on_error,
            adds_usage,
        )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is measured, in the order asked."""
        return self._session.plan.measures

    def only(self, measures: Iterable[Measure]) -> Evaluator:
        """Return an evaluator of some of the measures, with gold as it is prepared."""
        other = copy(self)
        other._session = self._session.only(measures)  # noqa: SLF001
        return other

    def __call__(self, run: Any, *, name: str | None = None) -> Scores:
        """Score one run."""
        source = self.opened(run)
        outcome = self._outcomes([source], [name])[0]
        self._warn_of_strangers([outcome])
        return self._scores(outcome, source, name)

    def all(self, runs: Mapping[str, Any] | Iterable[Any]) -> list[Scores]:
        """Score runs one after the other, so that only one is in memory at a time.

        Of runs measured by evidence, the texts stay, for `scores.matches`. A run that was given as
        a path is opened again when its lists are asked for, as by `scores.report`.

        Names are the keys, or else the runs' own, made distinct by path or number. Gold ids
        count as known if any of the runs holds them.
        """
        given = runs.values() if isinstance(runs, Mapping) else runs
        sources = [self.opened(source) for source in given]
        keys = list(runs) if isinstance(runs, Mapping) else [None] * len(sources)
        outcomes = self._outcomes(sources, keys)
        self._warn_of_strangers(outcomes)
        names = list(runs) if isinstance(runs, Mapping) else _names(sources, outcomes)
        each = zip(outcomes, sources, names, strict=True)
        return [self._scores(outcome, source, name) for outcome, source, name in each]

    def _outcomes(self, sources: Sequence[Any], names: Sequence[str | None]) -> list[Outcome]:
        """Score runs; what is measured where no measure was named may depend on all of them."""
        for source in sources:
            if holds_scores(source):
                raise InputError(
                    "these are scores that karat saved, not a run",
                    path=path_of(source),
                    hint="give the run that they are of; compare and --baseline take saved scores",
                )
        session, opened = self._session, sources
        paths = [path_of(source) for source in sources]
        if session.depends_on_runs:
            opened = [Run.open(source) for source in sources]
            session = session.with_defaults_for(opened)
        each = zip(opened, names, paths, strict=True)
        return [session.score(run, name, path) for run, name, path in each]

    def opened(self, run: Any) -> Any:
        """Run a retriever; open what can be read only once; leave all else until it is scored."""
        path = path_of(run)
        if path is not None:
            return Run.open(run) if flows(path) else run
        if isinstance(run, (Run, Mapping, Sequence)) or is_table(run):
            return run
        from karat.live.adapters.python import can_be_asked
        from karat.live.retrieve import retrieve

        if not can_be_asked(run):
            return run
        fail_on_error = self._session.fail_on_error
        asked = retrieve(run, self._session.gold, top_k=self._depth, fail_on_error=fail_on_error)
        if asked.failed:
            remark = failures(asked, "scored as nothing retrieved")
            warnings.warn(KaratWarning(remark), stacklevel=4)
        return asked

    @property
    def _depth(self) -> int:
        """How many items a retriever is asked for: as deep as any measure looks, 20 at least."""
        if self._session.settings.top_k is not None:
            return self._session.settings.top_k
        cutoffs = [measure.cutoff for measure in self.measures]
        return max([Search.top_k, *(cutoff for cutoff in cutoffs if isinstance(cutoff, int))])

    def _scores(self, outcome: Outcome, source: Any, name: str | None) -> Scores:
        return Scores(
            outcome.table,
            name=name or outcome.name or "run",
            preset=self.preset,
            conventions=self.conventions,
            level=outcome.session.plan.level,
            matching=outcome.session.plan.rule,
            settings=outcome.session.settings,
            load=loaded(outcome.settings),
            notes=outcome.notes,
            delivered=outcome.delivered,
            queries=outcome.session.gold.queries,
            origin=Origin(outcome.session, source, outcome.found),
        )

    def _warn_of_strangers(self, outcomes: Sequence[Outcome]) -> None:
        """Warn if under half of gold's ids occur in any run: most likely they are spelled wrong."""
        for kind in ("relevant ids", "document ids"):
            overlaps = [outcome.overlaps.get(kind) for outcome in outcomes]
            doubtful = [overlap for overlap in overlaps if overlap is not None]
            if len(doubtful) < len(overlaps) or not any(overlap.sample for overlap in doubtful):
                continue
            found = np.logical_or.reduce([overlap.found for overlap in doubtful])
            sample = next(overlap.sample for overlap in doubtful if overlap.sample)
            if 2 * np.count_nonzero(found) >= found.size:
                continue
            absent = doubtful[0].ids.filter(~found).head(3).to_list()
            warnings.warn(
                KaratWarning(
                    f"only {np.count_nonzero(found)} of {found.size} {kind} of gold appear "
                    f"anywhere in the run{'s' if len(overlaps) > 1 else ''}\n"
                    f"  in gold only: {', '.join(map(repr, absent))}\n"
                    f"  in the run: {', '.join(map(repr, sample))}\n"
                    "  if the ids are spelled differently, the scores are too low"
                ),
                stacklevel=3,
            )


def _conventions(preset: str | None, given: Conventions | dict[str, Any] | None) -> Conventions:
    """Take the preset's conventions, with the words that are given put in their place."""
    if preset is None or isinstance(given, Conventions):
        return Conventions.of(given)
    return Conventions.of(preset_named(preset).conventions.as_dict() | (given or {}))


def _names(sources: list[Any], outcomes: list[Outcome]) -> list[str]:
    """Name runs by themselves, by path where two names are alike, by number where still so."""
    names = [outcome.name or "run" for outcome in outcomes]
    names = [
        str(source.path) if names.count(name) > 1 and isinstance(source, Unopened) else name
        for name, source in zip(names, sources, strict=True)
    ]
    return [
        f"{name} ({names[:at].count(name) + 1})" if names.count(name) > 1 else name
        for at, name in enumerate(names)
    ]
