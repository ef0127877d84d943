"""Gates: a run is checked against thresholds, and the verdict is the result."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from karat.config import REPORT_TEXTS, Config
from karat.conventions import Conventions
from karat.engines.scoring_options import ScoringOptions
from karat.errors import counted
from karat.evaluation.baselines import baseline_scores
from karat.evaluation.evaluator import evaluator_of
from karat.evaluation.gate_checks import Check, check_rule
from karat.evaluation.remarks import n_missing, remarks, scoring_notes, unequal_text_notes
from karat.evaluation.result import Result
from karat.evaluation.scores import Scores
from karat.evaluation.thresholds import Thresholds, measures_needed
from karat.live.failures import MAX_FAILED
from karat.match.text import Matching
from karat.measures import parse
from karat.measures.families import FAILED
from karat.measures.presets import preset_named
from karat.version import __version__


@dataclass(frozen=True)
class Verdict(Result):
    """The outcome of a gate; it is true if every check passed."""

    run: str
    baseline: str | None
    checks: tuple[Check, ...]
    failed: int = 0
    """How many queries the retriever failed on."""
    missing: int = 0
    """How many queries of gold are not in the run."""
    remarks: tuple[str, ...] = ()
    """What was left out or counted, and how it was scored, in sentences."""
    scored: dict[str, Any] = field(default_factory=dict)
    """By which conventions, level, matching rule and settings."""
    scores: Scores | None = field(default=None, repr=False, compare=False)
    """The scores of the run."""
    baseline_scores: Scores | None = field(default=None, repr=False, compare=False)
    """The scores of the baseline, if a threshold compares with it."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def unanswered(self) -> str | None:
        """Which queries have no answer in the run, in words, where there are any."""
        parts = [
            f"{counted(self.failed, 'query')} that the retriever failed on" if self.failed else "",
            f"{counted(self.missing, 'query')} not in the run" if self.missing else "",
        ]
        return " and ".join(filter(None, parts)) or None

    @property
    def summary(self) -> str:
        """Everything in one line; queries without an answer are never passed over."""
        total = counted(len(self.checks), "threshold")
        outcome = (
            f"{self.run} passed {total}"
            if self.passed
            else f"{self.run} failed {len(self.failures)} of {total}"
        )
        if self.baseline is not None:
            outcome += f" (baseline {self.baseline})"
        return outcome if self.unanswered is None else f"{outcome}; with {self.unanswered}"

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        plain: dict[str, Any] = {
            "run": self.run,
            "passed": self.passed,
            "unanswered": {"failed": self.failed, "missing": self.missing},
            **self.scored,
            "checks": [check.as_dict() for check in self.checks],
            "remarks": list(self.remarks),
        }
        return plain | ({} if self.baseline is None else {"baseline": self.baseline})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the verdict in the format of the extension: .xml for JUnit, .md, .json."""
        self._write(path)

    def report(self, path: str | os.PathLike[str], *, texts: int = REPORT_TEXTS) -> None:
        """Write an HTML page with the verdict and the scores that it is based on.

        It holds texts and calculations of the `texts` most telling queries.
        """
        self._write_page(path, texts=texts)


@dataclass(frozen=True)
class GateEntry:
    """One gate of a report: its verdict, or why there is none."""

    title: str
    verdict: Verdict | None
    error: str | None = None

    @property
    def passed(self) -> bool | None:
        """Whether it passed; None where it could not be judged."""
        return None if self.verdict is None else self.verdict.passed

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        if self.verdict is None:
            return {"title": self.title, "passed": None, "error": self.error}
        return {"title": self.title, **self.verdict.as_dict()}


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
    """Check a run against thresholds; the verdict is true if it passes all of them.

    What cannot be judged is an error.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        What should be found. A path may be a glob.
    run : path, table, dict, records, Run or retriever
        What was found.
    thresholds : str, list of str or mapping, default None
        Texts such as "nDCG@10 >= 0.6", or a mapping as in karat.toml. They replace the thresholds
        of `config` for the same measure.
    baseline : run, Scores or path of either, default None
        What max_drop and max_rise compare with.
    config : Config or path, default None
        The settings file. None means no file if `thresholds` are given, else the nearest karat.toml
        or pyproject.toml.
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
    >>> gold, run = {"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["c", "b"]}
    >>> verdict = gate(gold, run, "RR >= 0.8")
    >>> verdict.passed, verdict.failures[0].reason
    (False, 'RR is 0.7500, 0.0500 below 0.8')
    """
    settings = _config(config, thresholds)
    rules = measures_needed(settings, thresholds, preset_named(preset))
    if baseline is None:
        for rule in rules:
            if rule.compares:
                raise rule.error(
                    f"{rule.kind} needs a baseline",
                    hint="give baseline=…, on the command line --baseline RUN",
                )
    if not isinstance(conventions, Conventions):
        conventions = {**settings.conventions, **(conventions or {})}
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
    evaluator = evaluator_of(gold, [parse(rule.measure) for rule in rules], options)
    scores = evaluator(run)
    compared = [rule.measure for rule in rules if rule.compares]
    before = baseline_scores(baseline, evaluator, scores, compared) if compared else None
    checks = tuple(check_rule(rule, scores, before) for rule in rules)
    counts = scores.table.counts
    return Verdict(
        run=scores.name,
        baseline=None if before is None else before.name,
        checks=checks,
        failed=counts[FAILED.key],
        missing=n_missing(counts),
        remarks=tuple(_remarks(scores, before, checks, baseline)),
        scored=_scored(scores),
        scores=scores,
        baseline_scores=before,
    )


def _config(given: Config | str | os.PathLike[str] | None, thresholds: Thresholds | None) -> Config:
    """Return the settings: as given, else of the nearest file if no thresholds are given."""
    if isinstance(given, Config):
        return given
    if given is not None:
        return Config.read(given)
    return Config.find() if thresholds is None else Config()


def _remarks(
    scores: Scores, before: Scores | None, checks: tuple[Check, ...], baseline: Any
) -> Iterator[str]:
    for remark in remarks(scores):
        yield f"{scores.name}: {remark}"
    if before is not None:
        for remark in remarks(before):
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
        yield from unequal_text_notes([before, scores])
    yield from scoring_notes(scores)


def _scored(scores: Scores) -> dict[str, Any]:
    """Return how it was scored, as the JSON of scores does."""
    plain: dict[str, Any] = {"conventions": scores.conventions.as_dict(), "level": scores.level}
    if scores.matching is not None:
        plain["matching"] = scores.matching
    if scores.settings:
        plain["settings"] = scores.settings.as_dict()
    return plain


def document(entries: Sequence[GateEntry]) -> dict[str, Any]:
    """Return a report as plain data; `passed` is null where a gate could not be judged."""
    outcomes = [entry.passed for entry in entries]
    unknown = None in outcomes or not outcomes
    return {
        "karat": __version__,
        "passed": False if False in outcomes else None if unknown else True,
        "gates": [entry.as_dict() for entry in entries],
    }
