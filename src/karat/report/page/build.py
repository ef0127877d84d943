"""The HTML report: what a page shows of scores, of a comparison or of a verdict."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from karat.data.gold import Gold
from karat.errors import InputError
from karat.evaluation.comparison import Comparison, of_measures
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.scores import Scores
from karat.evaluation.verdict import Verdict
from karat.files import check_writable, writing
from karat.measures.families import BY_GOLD
from karat.report.comparison import ComparisonSheet
from karat.report.options import ReportOptions
from karat.report.page import html
from karat.report.page.chart_data import load_chart_data
from karat.report.page.model import Page
from karat.report.page.observations import categorical_fields, notices
from karat.report.page.provenance import inputs
from karat.report.page.query_table import load_queries
from karat.report.sheet import Sheet
from karat.report.writers import duplicate_path_error
from karat.stats.groups import Field, groupable
from karat.stats.pairwise import ComparisonOptions

_FEW_RUNS = 5
_MAX_FIELDS = 3


def build_page(
    scores: Sequence[Scores],
    *,
    comparison: Comparison | None = None,
    verdict: Verdict | None = None,
    by: Sequence[Field] = (),
    options: ReportOptions | None = None,
) -> Page:
    """Build a page; of runs that cannot be opened, such as saved scores, it shows values."""
    options = options or ReportOptions()
    if comparison is not None:
        by = comparison.by
    if comparison is None and 2 <= len(scores) <= _FEW_RUNS:
        comparison = Comparison(scores, ComparisonOptions(), by)
    pairs = None if comparison is None else ComparisonSheet(comparison)
    opened = _load_runs(scores)
    known = load_queries(scores, opened, texts=options.texts)
    ways = [tuple(by)] if by else []
    if not by and len(scores) <= _FEW_RUNS:
        fields = [
            name for name in categorical_fields(known.fields) if groupable(scores[0].queries, name)
        ]
        ways = [(field,) for field in fields[:_MAX_FIELDS]]
    return Page(
        title=_title(scores, verdict),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=options.command,
        sheets=[Sheet(score) for score in scores],
        groups=[Sheet(score, by=each) for each in ways for score in scores],
        comparison=pairs,
        verdict=verdict,
        inputs=inputs(scores, settings=options.settings),
        run_settings={
            score.name: each.run.settings
            for score, each in zip(scores, opened, strict=True)
            if each is not None and each.run.settings
        },
        notices=notices(scores, opened, known),
        picture=load_chart_data(scores, opened),
        queries=known,
    )


def verdict_page(verdict: Verdict, options: ReportOptions) -> Page:
    """Build a page that opens with a verdict; the baseline appears next to the run if it can."""
    scores, baseline = verdict.scores, verdict.baseline_scores
    if scores is None:
        raise InputError("the scores of this verdict are not at hand", hint="judge again")
    runs = [scores]
    if baseline is not None and _are_comparable(scores, baseline):
        # One retriever before and after often goes by one name.
        name = f"{baseline.name} (baseline)" if baseline.name == scores.name else None
        runs = [of_measures(baseline, scores.table.measures, name), scores]
    return build_page(runs, verdict=verdict, options=options)


def _are_comparable(scores: Scores, baseline: Scores) -> bool:
    """Return whether a baseline holds the same measures of the same queries."""
    if not set(scores.keys()) <= set(baseline.keys()):
        return False
    return baseline.per_query["query_id"].equals(scores.per_query["query_id"])


def _load_runs(scores: Sequence[Scores]) -> list[LoadedRun | None]:
    """Load the runs whose lists can be shown next to each other: those scored against one gold."""
    runs = [score.scored_run for score in scores]
    first = next((run for run in runs if run is not None), None)
    return [
        None
        if run is None or first is None or not _is_same_gold(run.session.gold, first.session.gold)
        else LoadedRun.of(score)
        for score, run in zip(scores, runs, strict=True)
    ]


def _is_same_gold(one: Gold, other: Gold) -> bool:
    """Tell whether two golds want the same."""
    if one is other:
        return True
    for family in BY_GOLD.values():
        own, theirs = family.table(one), family.table(other)
        if own is None or theirs is None:
            if own is not theirs:
                return False
        elif not own.equals(theirs):
            return False
    return True


def check(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse what would keep a page from being written, before anything is computed."""
    html.check_installed()
    written: set[Path] = set()
    for path in map(Path, paths):
        check_writable(path)
        if path.absolute() in written:
            raise duplicate_path_error(path)
        written.add(path.absolute())


def write(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page whole, or not at all."""
    with writing(path) as file, _fewer_collections():
        html.write(page, file)


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Look for garbage less often: a page is made of very many small lists, none of them cyclic."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _title(scores: Sequence[Scores], verdict: Verdict | None) -> str:
    names = ", ".join(score.name for score in scores[:_FEW_RUNS])
    more = f" and {len(scores) - _FEW_RUNS} more" if len(scores) > _FEW_RUNS else ""
    return f"{names}{more}" if verdict is None else f"Gate of {verdict.run}"


def write_failure(title: str, problem: str, path: str | os.PathLike[str]) -> None:
    """Write a page that states why there is no answer."""
    with writing(path) as file:
        html.write_failure(title, problem, file)
