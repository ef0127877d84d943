"""Hold a run against thresholds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from karat.config import Config
from karat.conventions import Conventions
from karat.errors import counted
from karat.evaluation.baselines import baseline_scores
from karat.evaluation.checking import Checking
from karat.evaluation.comparing import of_measures
from karat.evaluation.evaluator import Evaluator
from karat.evaluation.scores import Scores
from karat.evaluation.thresholds import Thresholds, asked
from karat.live.failures import MAX_FAILED
from karat.match.texts import Matching
from karat.measures import parse
from karat.measures.presets import preset_named
from karat.report.checks import Check
from karat.report.making import Making
from karat.report.sheet import unequal_text_notes
from karat.report.verdict import Verdict


def gate(
    gold: Any,
    run: Any,
    thresholds: Thresholds | None = None,
    *,
    baseline: Any = None,
    config: Config | str | os.PathLike[str] | None = None,
    conventions: Conventions | dict[str, Any] | None = None,
    preset: str | None = None,
    level: str = "item",
    chunks: Any = None,
    corpus: Any = None,
    matching: Matching | None = None,
    top_k: int | None = None,
    score_threshold: float | None = None,
    fail_on_error: float = MAX_FAILED,
) -> Verdict:
    """Tell whether a run keeps to its thresholds; the verdict is true if it does.

    `thresholds` are texts such as "nDCG@10 >= 0.6", or a mapping as in karat.toml. Without them,
    thresholds and conventions come from `config`, and else from the nearest karat.toml or
    pyproject.toml; with both, they go before the file's for the same measure. The `baseline` of
    max_drop and max_rise is a run, or scores, or a path to either. The other options are those of
    `evaluate`. What cannot be judged is an error.

    >>> gold, run = {"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["c", "b"]}
    >>> verdict = gate(gold, run, "RR >= 0.8")
    >>> verdict.passed, verdict.failures[0].reason
    (False, 'RR is 0.7500, 0.0500 below 0.8')
    """
    settings = _config(config, thresholds)
    rules = asked(settings, thresholds, preset_named(preset))
    if baseline is None:
        for rule in rules:
            if rule.compares:
                raise rule.error(
                    f"{rule.kind} needs a baseline",
                    hint="give baseline=…, on the command line --baseline RUN",
                )
    if not isinstance(conventions, Conventions):
        conventions = {**settings.conventions, **(conventions or {})}
    evaluator = Evaluator(
        gold,
        [parse(rule.measure) for rule in rules],
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
    scores = evaluator(run)
    compared = [rule.measure for rule in rules if rule.compares]
    before = baseline_scores(baseline, evaluator, scores, compared) if compared else None
    checks = tuple(map(Checking(scores, before).check, rules))
    counts = scores.table.counts
    return Verdict(
        run=scores.name,
        baseline=None if before is None else before.name,
        checks=checks,
        failed=counts["failed"],
        missing=max(counts["missing"], counts["not_run"]),
        remarks=tuple(_remarks(scores, before, checks, baseline)),
        scored=_scored(scores),
        basis=Judged(scores, before),
    )


@dataclass(frozen=True)
class Judged:
    """The scores that a verdict rests on."""

    scores: Scores
    before: Scores | None

    def report(self, verdict: Verdict, path: str | os.PathLike[str], making: Making) -> None:
        """Write a page that opens with the verdict; the baseline stands beside where it can."""
        from karat.evaluation import reporting

        runs = [*self._beside(), self.scores]
        reporting.write(reporting.page(runs, verdict=verdict, making=making), path)

    def _beside(self) -> Iterator[Scores]:
        """Yield the baseline if it holds the same measures of the same queries."""
        before, ours = self.before, self.scores
        if before is None or not set(ours.keys()) <= set(before.keys()):
            return
        if before.per_query["query_id"].equals(ours.per_query["query_id"]):
            # One retriever before and after often goes by one name.
            name = f"{before.name} (baseline)" if before.name == ours.name else None
            yield of_measures(before, ours.table.measures, name)


def _config(given: Config | str | os.PathLike[str] | None, thresholds: Thresholds | None) -> Config:
    """Take settings from what is given; the nearest file speaks only where nothing else does."""
    if isinstance(given, Config):
        return given
    if given is not None:
        return Config.read(given)
    return Config.find() if thresholds is None else Config()


def _remarks(
    scores: Scores, before: Scores | None, checks: tuple[Check, ...], baseline: Any
) -> Iterator[str]:
    sheet = scores.sheet(intervals=False)
    for remark in sheet.remarks():
        yield f"{scores.name}: {remark}"
    if before is not None:
        for remark in before.sheet(intervals=False).remarks():
            yield f"baseline {before.name}: {remark}"
    alone = {
        f"{check.rule.measure} is compared over {counted(check.n, 'query')}; {check.only_run:,} "
        f"only in the run, {check.only_baseline:,} only in the baseline": None
        for check in checks
        if check.only_run or check.only_baseline
    }
    yield from alone
    for check in checks:
        if check.passed and check.method == "few":
            yield f"{check.name}: {check.reason}"
    if baseline is not None and before is None:
        yield "the baseline was not looked at: no threshold is a max_drop or a max_rise"
    if before is not None:
        yield from unequal_text_notes([before.sheet(intervals=False), sheet])
    yield from sheet.way()


def _scored(scores: Scores) -> dict[str, Any]:
    """Say how it was scored, as the JSON of scores does."""
    told: dict[str, Any] = {"conventions": scores.conventions.as_dict(), "level": scores.level}
    if scores.matching is not None:
        told["matching"] = scores.matching
    if scores.settings:
        told["settings"] = scores.settings.as_dict()
    return told
