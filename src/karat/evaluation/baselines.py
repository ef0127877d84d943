"""The baseline of a gate: a run, or saved scores that must have the same settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from karat.data.data_file import path_of
from karat.errors import InputError
from karat.evaluation.evaluator import Evaluator
from karat.evaluation.saved_scores import holds_scores
from karat.evaluation.scores import Scores
from karat.measures import parse, parse_all


def load_baseline(
    baseline: Any, evaluator: Evaluator, run: Scores, measures: Sequence[str]
) -> Scores:
    """Return the scores of a baseline; raise an error if its settings differ from the run's."""
    path = path_of(baseline)
    if path is not None and holds_scores(baseline):
        baseline = Scores.read(path)
    if not isinstance(baseline, Scores):
        data = evaluator.source(baseline).data  # a retriever runs only once
        try:
            return evaluator(data)
        except InputError:  # such as no timings: only measures that are compared are required
            return evaluator.only(parse_all(measures))(data)
    changed = list(setting_differences(baseline, run, measures))
    if changed:
        raise InputError(
            f"the baseline was scored with different settings: {'; '.join(changed)}",
            path=path,
            field="baseline",
            hint="score the baseline again with the same settings, or pass its run instead",
        )
    # Pairs of values have the clusters of the run.
    return baseline if baseline.cluster == run.cluster else baseline.clustered(None)


def setting_differences(baseline: Scores, run: Scores, measures: Sequence[str]) -> Iterator[str]:
    """Yield how the settings of two scores differ, in words."""
    baseline_conventions = baseline.conventions.as_dict()
    for name, word in run.conventions.as_dict().items():
        if baseline_conventions[name] != word:
            yield f"{name}={baseline_conventions[name]} instead of {name}={word}"
    if baseline.level != run.level:
        yield f"level {baseline.level} instead of {run.level}"
    missing = [name for name in dict.fromkeys(measures) if name not in baseline]
    compared = [parse(name) for name in measures if name not in missing]
    compares_texts = any(measure.declaration.reads.compares_texts for measure in compared)
    if compares_texts and baseline.matching != run.matching:
        yield f"evidence by {baseline.matching} instead of {run.matching}"
    for name in ("top_k", "score_threshold"):
        baseline_value, run_value = getattr(baseline.settings, name), getattr(run.settings, name)
        if baseline_value != run_value:
            yield f"{name}={baseline_value} instead of {name}={run_value}"
    if missing:
        yield f"without {', '.join(missing)}"
