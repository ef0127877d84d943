"""The baseline of a gate: a run that is scored now, or scores that were saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from karat.data.data_file import path_of
from karat.errors import InputError
from karat.evaluation.evaluator import Evaluator
from karat.evaluation.saved_scores import holds_scores
from karat.evaluation.scores import Scores
from karat.measures import parse, parse_all


def baseline_scores(
    baseline: Any, evaluator: Evaluator, ours: Scores, measures: Sequence[str]
) -> Scores:
    """Return the scores of a baseline, which must have been made as ours were."""
    path = path_of(baseline)
    if path is not None and holds_scores(baseline):
        baseline = Scores.read(path)
    if not isinstance(baseline, Scores):
        # What is not compared, such as latency, the baseline need not hold.
        return evaluator.only(parse_all(measures))(baseline)
    differing = list(differences(baseline, ours, measures))
    if differing:
        raise InputError(
            f"the scores of the baseline were made in another way: {'; '.join(differing)}",
            path=path,
            field="baseline",
            hint="score it again with the same settings, or give its run",
        )
    return baseline


def differences(baseline: Scores, ours: Scores, measures: Sequence[str]) -> Iterator[str]:
    """Say in what scores differ other than in their run."""
    theirs, mine = baseline.conventions.as_dict(), ours.conventions.as_dict()
    for name, word in mine.items():
        if theirs[name] != word:
            yield f"{name}={theirs[name]} there, {name}={word} here"
    if baseline.level != ours.level:
        yield f"level {baseline.level} there, {ours.level} here"
    absent = [name for name in dict.fromkeys(measures) if name not in baseline]
    compared = [parse(name) for name in measures if name not in absent]
    about_texts = any(measure.declaration.reads.compares_texts for measure in compared)
    if about_texts and baseline.matching != ours.matching:
        yield f"evidence by {baseline.matching} there, by {ours.matching} here"
    for name in ("top_k", "score_threshold"):
        there, here = getattr(baseline.settings, name), getattr(ours.settings, name)
        if there != here:
            yield f"{name}={there} there, {name}={here} here"
    if absent:
        yield f"no {', '.join(absent)} there"
