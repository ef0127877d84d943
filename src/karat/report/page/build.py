"""Building and writing the HTML report of scores, of a comparison or of a verdict."""

from __future__ import annotations

import gc
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from karat.errors import InputError, counted, warn
from karat.evaluation.comparison import Comparison, select_measures
from karat.evaluation.loaded_run import LoadedRun, scores_of_queries
from karat.evaluation.reranking import available_rerankings
from karat.evaluation.scores import Scores
from karat.evaluation.verdict import Verdict
from karat.files import check_writable, writing
from karat.live.redaction import safe_command
from karat.report.comparison import ComparisonSheet, significant_differences
from karat.report.options import ReportOptions
from karat.report.page import html
from karat.report.page.chart_data import load_chart_data
from karat.report.page.model import FindingKind, KeyFinding, Page, Queries
from karat.report.page.queries.query_sample import QuerySample
from karat.report.page.queries.query_table import load_queries
from karat.report.page.sections.findings import categorical_fields, findings
from karat.report.page.sections.method import inputs, shareable_command
from karat.report.page.sections.reranking import with_stage_fields
from karat.report.sheet import Sheet
from karat.report.writers import duplicate_path_error
from karat.stats.groups import Field, groupable
from karat.stats.pairwise import ComparisonOptions
from karat.steps import step

Opened = Sequence[LoadedRun | None]
Differences = Collection[tuple[str, str, str]]
"""Significant differences: the better run, the other run and the measure."""
_OF_LISTS: tuple[FindingKind, ...] = ("unfound", "nothing")
"""The key findings that need ranked lists."""
_MAX_FIELDS = 3
_MAX_TESTED = 2_000_000
"""Above this number of pairs of runs times queries, `eval` does not test differences."""


@step("building the report")
def build_page(
    scores: Sequence[Scores],
    *,
    comparison: Comparison | None = None,
    verdict: Verdict | None = None,
    by: Sequence[Field] = (),
    options: ReportOptions | None = None,
) -> Page:
    """Build a page; for saved scores, which have no ranked lists, it shows only values."""
    options = options or ReportOptions()
    if comparison is not None:
        by = comparison.by
    elif len(scores) > 1:
        comparison = _tested(scores, by)
    pairs = None if comparison is None else ComparisonSheet(comparison)
    lists = _load_lists(scores, options.texts)
    queries, opened = lists.queries, lists.opened
    groupings = [tuple(by)] if by else []
    if not by:
        fields = [
            name for name in categorical_fields(lists.fields) if groupable(scores[0].queries, name)
        ]
        groupings = [(field,) for field in fields[:_MAX_FIELDS]]
    rerankings, reranking_problems = available_rerankings(scores)
    stages = with_stage_fields(queries.fields, queries.ids, rerankings, len(scores))
    page = Page(
        title=options.title or _title(scores, verdict),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=_command(options),
        sheets=[Sheet(score) for score in scores],
        groups=[Sheet(score, by=fields) for fields in groupings for score in scores],
        comparison=pairs,
        verdict=verdict,
        inputs=inputs(scores, settings=options.settings),
        run_settings={
            score.name: loaded.run.settings
            for score, loaded in zip(scores, opened, strict=True)
            if loaded is not None and loaded.run.settings
        },
        findings=[],
        chart_data=load_chart_data(scores, lists.representative),
        queries=replace(queries, fields=stages),
        full_paths=options.full_paths,
        rerankings=rerankings,
        reranking_problems=reranking_problems,
        history=options.history,
    )
    significant: Differences = () if pairs is None else set(significant_differences(pairs))
    return replace(page, findings=lists.findings(scores, page.pair, significant))


def _tested(scores: Sequence[Scores], by: Sequence[Field]) -> Comparison | None:
    """Return a comparison of all runs; with many runs and queries, it would take too long."""
    n_pairs = len(scores) * (len(scores) - 1) // 2
    if n_pairs * scores[0].per_query.height > _MAX_TESTED:
        return None
    return Comparison(scores, ComparisonOptions(), tuple(by))


def _command(options: ReportOptions) -> str | None:
    """Return the command line that made the report, without secrets."""
    if options.command is None:
        return None
    words = shlex.split(options.command)
    return shlex.join(safe_command(words)) if options.full_paths else shareable_command(words)


def verdict_page(verdict: Verdict, options: ReportOptions) -> Page:
    """Build a page that starts with a verdict; it includes the baseline if that is comparable."""
    scores, baseline = verdict.scores, verdict.baseline_scores
    if scores is None:
        raise InputError("this verdict has no scores", hint="run the gate again")
    runs, comparison = [scores], None
    if baseline is not None and baseline.per_query["query_id"].equals(scores.per_query["query_id"]):
        measures = tuple(one for one in scores.table.measures if one.name in baseline)
        # The same retriever before and after a change often has the same name.
        name = f"{baseline.name} (baseline)" if baseline.name == scores.name else None
        runs = [select_measures(baseline, measures, name), select_measures(scores, measures, None)]
        comparison = Comparison(runs, ComparisonOptions(baseline=runs[0].name), ())
    return build_page(runs, comparison=comparison, verdict=verdict, options=options)


@dataclass(frozen=True)
class _Lists:
    """The queries of a page and the ranked lists of its runs: all of them, or a sample."""

    queries: Queries
    opened: Opened
    representative: Opened
    """The runs that charts and findings about lists are made from."""
    fields: pl.DataFrame
    """The fields of all queries."""

    def findings(
        self, scores: Sequence[Scores], pair: tuple[int, int] | None, significant: Differences
    ) -> list[KeyFinding]:
        """Return the key findings; those about lists are about the sample, if there is one."""
        return findings(scores, self.opened, self.queries, pair, significant)


@dataclass(frozen=True)
class _SampledLists(_Lists):
    sample: QuerySample
    unlisted: Queries
    """All queries, without lists."""

    def findings(
        self, scores: Sequence[Scores], pair: tuple[int, int] | None, significant: Differences
    ) -> list[KeyFinding]:
        exact = findings(scores, [None] * len(scores), self.unlisted, pair, significant)
        some = [scores_of_queries(score, self.sample.random_ids(score)) for score in scores]
        queries = load_queries(some, self.representative, texts=0)
        of_lists = [
            # A filter would show the queries of the list, which are others.
            replace(finding, text=f"In {self.sample.of_charts}: {finding.text}", show=None)
            for finding in findings(some, self.representative, queries, pair)
            if finding.kind in _OF_LISTS
        ]
        return [*exact, *of_lists]


def _load_lists(scores: Sequence[Scores], texts: int) -> _Lists:
    """Load the lists of a page; with very many queries or large runs, those of a sample."""
    sample = QuerySample.of(scores)
    if sample is None:
        opened = _load_runs(scores)
        queries = load_queries(scores, opened, texts=texts)
        return _Lists(queries, opened, opened, queries.fields)
    warn(
        f"the report lists {sample.selection}; values, intervals and tests are over all queries",
        stacklevel=2,
    )
    unlisted = load_queries(scores, [None] * len(scores), texts=0)
    some = [scores_of_queries(score, sample.ids(score)) for score in scores]
    opened = _load_runs(scores, sample)
    queries = replace(load_queries(some, opened, texts=texts), sample=sample)
    representative = [
        None if run is None else run.only(sample.random_ids(score))
        for score, run in zip(scores, opened, strict=True)
    ]
    return _SampledLists(queries, opened, representative, unlisted.fields, sample, unlisted)


def _load_runs(scores: Sequence[Scores], sample: QuerySample | None = None) -> Opened:
    """Load the runs that can be shown side by side: those that were scored against one gold."""
    runs = [score.scored_run for score in scores]
    first = next((run for run in runs if run is not None), None)
    return [
        None
        if run is None or first is None or not run.session.prepared.equals(first.session.prepared)
        else LoadedRun.of(score, None if sample is None else sample.ids(score))
        for score, run in zip(scores, runs, strict=True)
    ]


def check(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Raise InputError if a page cannot be written, before anything is computed."""
    html.check_installed()
    written: set[Path] = set()
    for path in map(Path, paths):
        check_writable(path)
        if path.absolute() in written:
            raise duplicate_path_error(path)
        written.add(path.absolute())


def write(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page atomically."""
    with step("writing the report"), writing(path) as file, _fewer_collections():
        html.write(page, file)


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Run the garbage collector less often: a page consists of many small lists without cycles."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _title(scores: Sequence[Scores], verdict: Verdict | None) -> str:
    """Return the name of the gold set with the numbers of runs and queries."""
    queries = counted(scores[0].per_query.height, "query")
    if verdict is not None:
        return f"Gate: {verdict.run}, {queries}"
    counts = f"{counted(len(scores), 'run')}, {queries}"
    name = next((run.session.gold.name for score in scores if (run := score.scored_run)), None)
    return counts if name is None else f"{name}: {counts}"


def write_failure(title: str, problem: str, path: str | os.PathLike[str]) -> None:
    """Write a page that shows why a gate could not be checked."""
    with writing(path) as file:
        html.write_failure(title, problem, file)
