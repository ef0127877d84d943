"""`gate`: check a run against thresholds. Returns a `Verdict`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from glob import has_magic
from typing import Any

from karat.config import REPORT_TEXTS, Config
from karat.conventions import Conventions
from karat.data.data_file import path_of
from karat.engines.scoring_options import ScoringOptions
from karat.errors import InputError, counted, without_warnings
from karat.evaluation.baselines import load_baseline
from karat.evaluation.evaluator import evaluator_of
from karat.evaluation.gate_checks import Check, check_rule
from karat.evaluation.remarks import n_missing, remarks, scoring_notes, unequal_text_notes
from karat.evaluation.result import Result
from karat.evaluation.scores import Scores
from karat.evaluation.thresholds import Rule, Thresholds, all_rules
from karat.files import check_writable
from karat.live.failures import MAX_FAILED
from karat.match.text import Matching
from karat.measures import Measure, parse
from karat.measures.families import FAILED
from karat.measures.presets import preset_named
from karat.version import __version__


@dataclass(frozen=True)
class Verdict(Result):
    """The result of `gate`. It is true if the run meets every threshold.

    Parameters
    ----------
    run : str
        The name of the run.
    baseline : str or None
        The name of the baseline. None if no threshold compares with one.
    checks : tuple of Check
        One check per threshold, with the numbers that were compared.
    failed : int, default 0
        The number of queries that the retriever failed on.
    missing : int, default 0
        The number of queries of gold that are not in the run.
    remarks : tuple of str, default ()
        Notes on queries left out, special cases and settings.
    scored : dict, default {}
        The conventions, level, matching rule and settings that were used.
    scores : Scores, default None
        The scores of the run.
    baseline_scores : Scores, default None
        The scores of the baseline. None if no threshold compares with one.
    baseline_updated : bool, default None
        Whether the baseline was replaced by the scores of this run. None if that was not requested.

    Examples
    --------
    >>> gold, run = {"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["c", "b"]}
    >>> verdict = gate(gold, run, ["RR >= 0.7", "P@1 >= 0.9"])
    >>> bool(verdict), verdict.summary
    (False, 'run failed 1 of 2 thresholds')
    >>> [check.passed for check in verdict.checks]
    [True, False]
    """

    run: str
    baseline: str | None
    checks: tuple[Check, ...]
    failed: int = 0
    missing: int = 0
    remarks: tuple[str, ...] = ()
    scored: dict[str, Any] = field(default_factory=dict)
    scores: Scores | None = field(default=None, repr=False, compare=False)
    baseline_scores: Scores | None = field(default=None, repr=False, compare=False)
    baseline_updated: bool | None = None

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
        """The number of failed and missing queries, in words; None if there are none."""
        parts = [
            f"{counted(self.failed, 'query')} that the retriever failed on" if self.failed else "",
            f"{counted(self.missing, 'query')} not in the run" if self.missing else "",
        ]
        return " and ".join(filter(None, parts)) or None

    @property
    def doubts(self) -> list[str]:
        """The changes above a limit that may be chance, so that the run passed."""
        return [check.doubt for check in self.checks if check.doubt]

    @property
    def summary(self) -> str:
        """The verdict in one line, including failed and missing queries."""
        if not self.checks:  # all thresholds compare with a baseline that does not exist yet
            return f"{self.run}: no threshold was checked"
        total = counted(len(self.checks), "threshold")
        outcome = (
            f"{self.run} passed {total}"
            if self.passed
            else f"{self.run} failed {len(self.failures)} of {total}"
        )
        if self.baseline is not None:
            outcome += f" (baseline {self.baseline})"
        outcome = "; ".join([outcome, *self.doubts])
        return outcome if self.unanswered is None else f"{outcome}; {self.unanswered}"

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
        if self.baseline is not None:
            plain["baseline"] = self.baseline
        if self.baseline_updated is not None:
            plain["baseline_updated"] = self.baseline_updated
        return plain

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the verdict to a file.

        Parameters
        ----------
        path : path
            The file to write. Its extension decides the format: .xml (JUnit), .md or .json.
        """
        self._write(path)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        texts: int = REPORT_TEXTS,
        title: str | None = None,
        full_paths: bool = False,
    ) -> None:
        """Write an HTML report with the verdict and the scores that it is based on.

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


@dataclass(frozen=True)
class GateEntry:
    """One gate of a report: its verdict, or the error that prevented one."""

    title: str
    verdict: Verdict | None
    error: str | None = None
    seconds: float | None = None
    """The time that the gate took, including the time of its retriever."""
    page: bytes | None = field(default=None, repr=False)
    """The HTML report of the gate, if one was requested."""

    @property
    def passed(self) -> bool | None:
        """Whether the gate passed; None if there was an error."""
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
    update_baseline: bool = False,
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
    cluster: str | None = None,
    engine: str = "local",
    memory: str | int | None = None,
) -> Verdict:
    """Check a run against thresholds.

    An error is raised if a threshold cannot be checked, for example because too few queries have
    a value.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        What should be found. A path may be a glob.
    run : path, table, dict, records, Run or retriever
        What was found.
    thresholds : str, list of str or mapping, default None
        Texts such as "nDCG@10 >= 0.6", or a mapping as in karat.toml. They replace the thresholds
        of `config` for the same measures.
    baseline : run, Scores or path of either, default None
        What max_drop and max_rise compare with. Saved scores must have the same settings.
    update_baseline : bool, default False
        Replace the file of the baseline, which must be a .parquet or .json path, by the scores of
        this run if it passes. If the file does not exist yet, thresholds that compare with it are
        not checked. The file contains the measures of all thresholds, and the `measures` of the
        settings file or else the default measures.
    config : Config or path, default None
        The settings file. None uses the nearest karat.toml or pyproject.toml; if `thresholds` are
        given, it uses no file.
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
    Verdict
        It is true if the run meets all thresholds.

    Examples
    --------
    >>> gold, run = {"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["c", "b"]}
    >>> verdict = gate(gold, run, "RR >= 0.8")
    >>> verdict.passed, verdict.failures[0].reason
    (False, 'RR is 0.750, 0.050 below 0.8')
    """
    settings = _config(config, thresholds)
    rules = all_rules(settings, thresholds, preset_named(preset))
    unchecked: list[Rule] = []
    if update_baseline and not os.path.exists(_saved_scores_path(baseline)):
        unchecked = [rule for rule in rules if rule.compares]
        rules = [rule for rule in rules if not rule.compares]
    _require_baseline(rules, baseline)
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
        cluster,
        engine,
        memory,
    )
    gated = [parse(rule.measure) for rule in (*rules, *unchecked)]
    evaluator = evaluator_of(gold, gated, options)
    if update_baseline:
        run = evaluator.source(run).data  # a retriever runs only once
    scores = evaluator(run)
    compared = [rule.measure for rule in rules if rule.compares]
    baseline_scores = None
    if compared:
        baseline_scores = load_baseline(baseline, evaluator, scores, compared)
    checks = tuple(check_rule(rule, scores, baseline_scores) for rule in rules)
    unused = None if compared or update_baseline or _is_new(baseline, settings) else baseline
    counts = scores.table.counts
    verdict = Verdict(
        run=scores.name,
        baseline=None if baseline_scores is None else baseline_scores.name,
        checks=checks,
        failed=counts[FAILED.key],
        missing=n_missing(counts),
        remarks=(
            *(f"{rule} was not checked: there is no baseline yet" for rule in unchecked),
            *_remarks(scores, baseline_scores, checks, unused),
        ),
        scored=_settings(scores),
        scores=scores,
        baseline_scores=baseline_scores,
    )
    if not update_baseline:
        return verdict
    path = _saved_scores_path(baseline)
    if not verdict.passed:
        remark = f"{path} was not replaced, because the run did not pass"
    else:
        _further_scores(gold, run, gated, settings, options).write(path)
        remark = f"{path} now contains the scores of {verdict.run}"
    return replace(verdict, remarks=(*verdict.remarks, remark), baseline_updated=verdict.passed)


def _require_baseline(rules: Sequence[Rule], baseline: Any) -> None:
    """Raise an error if a rule compares with a baseline, and there is none."""
    path = path_of(baseline)
    for rule in rules:
        if rule.compares and baseline is None:
            raise rule.error(
                f"{rule.kind} needs a baseline",
                hint="pass baseline=…, or --baseline FILE on the command line",
            )
        if rule.compares and path is not None and not (has_magic(path) or os.path.exists(path)):
            raise InputError(
                f"the baseline does not exist, but {rule} compares with it",
                path=path,
                field="baseline",
                hint="check the path, or write the baseline from a run that passes the other "
                "thresholds: karat gate --update-baseline",
            )


def _is_new(baseline: Any, config: Config) -> bool:
    """Return whether a baseline is the file of the project, and was not written yet."""
    path, setting = path_of(baseline), config.settings.get("baseline")
    if path is None or setting is None:
        return False
    return path == config.located(setting) and not os.path.exists(path)


def _saved_scores_path(baseline: Any) -> str:
    """Return the path of a baseline that can be replaced by the scores of a run."""
    path = path_of(baseline)
    if path is None:
        raise InputError(
            "only a baseline in a file can be updated",
            field="baseline",
            hint='set baseline = "baseline.parquet" in karat.toml, or pass --baseline FILE (in '
            "Python: baseline=…)",
        )
    if os.path.splitext(path)[1].lower() not in (".parquet", ".json"):
        raise InputError(
            "only saved scores can be updated, not a run",
            path=path,
            field="baseline",
            hint="use a .parquet or .json file as the baseline",
        )
    check_writable(path)
    return path


def _further_scores(
    gold: Any, run: Any, gated: Sequence[Measure], config: Config, options: ScoringOptions
) -> Scores:
    """Score a run by the measures of the gate, and by those that eval and compare would show."""
    shown = config.settings.get("measures")
    with without_warnings():  # they were shown with the verdict
        further = evaluator_of(gold, shown, options)(run).table.measures
        return evaluator_of(gold, list(dict.fromkeys([*gated, *further])), options)(run)


def _config(
    config: Config | str | os.PathLike[str] | None, thresholds: Thresholds | None
) -> Config:
    if isinstance(config, Config):
        return config
    if config is not None:
        return Config.read(config)
    return Config.find() if thresholds is None else Config()


def _remarks(
    scores: Scores, baseline_scores: Scores | None, checks: tuple[Check, ...], unused: Any
) -> Iterator[str]:
    for remark in remarks(scores):
        yield f"{scores.name}: {remark}"
    if baseline_scores is not None:
        for remark in remarks(baseline_scores):
            yield f"baseline {baseline_scores.name}: {remark}"
    unpaired = [
        f"{check.rule.measure} is compared over {counted(check.n, 'query')}; {check.only_run:,} "
        f"more have a value only in the run, {check.only_baseline:,} only in the baseline"
        for check in checks
        if check.only_run or check.only_baseline
    ]
    yield from dict.fromkeys(unpaired)
    for check in checks:
        if check.passed and check.method == "few":
            yield f"{check.name}: {check.reason}"
    if unused is not None:
        yield "the baseline was not used: no threshold is a max_drop or a max_rise"
    if baseline_scores is not None:
        yield from unequal_text_notes([baseline_scores, scores])
    yield from scoring_notes(scores)


def _settings(scores: Scores) -> dict[str, Any]:
    """Return the settings of scores with the same keys as in their JSON document."""
    plain: dict[str, Any] = {"conventions": scores.conventions.as_dict(), "level": scores.level}
    if scores.matching is not None:
        plain["matching"] = scores.matching
    if scores.settings:
        plain["settings"] = scores.settings.as_dict()
    if (clusters := scores.cluster_counts) is not None:
        plain["cluster"] = asdict(clusters)
    return plain


def document(entries: Sequence[GateEntry]) -> dict[str, Any]:
    """Return a report of gates as plain data; `passed` is null if a gate had an error."""
    outcomes = [entry.passed for entry in entries]
    passed: bool | None = True
    if False in outcomes:
        passed = False
    elif None in outcomes or not outcomes:
        passed = None
    return {
        "karat": __version__,
        "passed": passed,
        "gates": [entry.as_dict() for entry in entries],
    }
