"""The last line that a command prints: a command to run next, ready to copy."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from karat.cli.options import PRESET, Scoring
from karat.cli.parameters import is_project_setting
from karat.cli.project import CONFIG, listed_runs, project_config

if TYPE_CHECKING:
    from karat.data.data_file import PathSource
    from karat.data.gold import Gold
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.scores import Scores
    from karat.evaluation.verdict import Verdict

Words = list[str]
LONGEST_WORD = 1000


def advise(words: Words | None) -> None:
    """Print a command to standard error, after all results.

    Nothing is printed if the command contains unprintable characters or a very long id.
    """
    line = "" if words is None else shlex.join(words)
    if not line.isprintable() or any(len(word) > LONGEST_WORD for word in words or ()):
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return  # nobody reads the output any more; the exit code stays the same
    if line:
        from karat.report.renderers.terminal import print_hint

        print_hint(f"next: {line}")


def after_run(queries: PathSource, gold: Gold | None, run: str, *, is_part: bool) -> Words | None:
    """Return the command that scores a new run; `gold` is that of the file of queries, if any."""
    part = ["--missing", "skip"] if is_part else []
    config = project_config()
    if is_project_setting("queries") and config.settings.get("gold") is not None:
        runs = map(config.located, listed_runs(config))
        words = [] if run in runs else [_path(run)]
        return ["karat", "eval", *words, *CONFIG.words(None), *part]
    if gold is None:
        return None
    words = ["karat", "eval", _path(str(queries.path)), _path(run)]
    words += ["--gold-format", queries.format] if queries.format else []
    for ours, theirs in queries.columns.names.items():
        words += ["--column", f"{ours}={theirs}"]
    return [*words, *CONFIG.words(None), *part]


def gold_of_queries(queries: PathSource) -> Gold | None:
    """Return the gold in a file of queries that was read before, or None if it has none."""
    from karat.data.gold import Gold
    from karat.errors import InputError, without_warnings

    if not _readable_again(str(queries.path)):
        return None
    with without_warnings():  # shown when the queries were read
        try:
            gold = Gold.open(queries)
        except InputError:
            return None
    has_gold = gold.judgments.height or gold.spans is not None or gold.evidence is not None
    return gold if has_gold else None


def after_eval(
    settings: Scoring,
    gold: str,
    runs: Sequence[str],
    preset: str | None,
    shared_flags: Words,
    scores: Sequence[Scores],
) -> Words | None:
    """Return the command after `karat eval`: compare several runs, or explain the worst query.

    `shared_flags` are the flags for measures and groups, which eval and compare share.
    """
    from karat.evaluation.next_query import worst_query

    if not _readable_again(gold, *runs):
        return None
    if len(runs) > 1:
        is_project = is_project_setting("gold") and is_project_setting("runs")
        files = [] if is_project else [_path(path) for path in (gold, *runs)]
        words = ["karat", "compare", *files, *shared_flags]
        return [*words, *PRESET.words(preset), *settings.flags]
    (score,) = scores
    if (query := worst_query(score)) is None:
        return None
    words = _explain(
        query.measure, gold, None if is_project_setting("runs") else runs[0], query.query_id
    )
    return [*words, *PRESET.words(preset), *settings.flags]


def after_compare(
    settings: Scoring, gold: str, runs: Sequence[str], preset: str | None, comparison: Comparison
) -> Words | None:
    """Return the command after `karat compare`: explain the query that changed most."""
    from karat.evaluation.next_query import most_moved_query

    if (query := most_moved_query(comparison)) is None:
        return None
    names = [score.name for score in comparison.scores]
    first, second = (runs[names.index(name)] for name in query.runs)
    if not _readable_again(gold, first, second):
        return None
    words = _explain(query.measure, gold, first, query.query_id, second)
    return [*words, *PRESET.words(preset), *settings.flags]


def after_gate(
    settings: Scoring,
    gold: str,
    run: str,
    preset: str | None,
    baseline: str | None,
    verdict: Verdict,
) -> Words | None:
    """Return the command after a failed `karat gate`: explain the worst query."""
    from karat.evaluation.saved_scores import holds_scores

    failures = [check for check in verdict.failures if check.blamed]
    if not failures or not _readable_again(gold, run):
        return None
    check, runs = failures[0], [run]
    if check.rule.compares and baseline is not None and not holds_scores(settings.run(baseline)):
        runs = [baseline, run] if _readable_again(baseline) else runs
    is_only = is_project_setting("run") and len(runs) == 1
    shown_run = None if is_only else runs[0]
    words = _explain(check.rule.measure, gold, shown_run, check.blamed[0].query_id, *runs[1:])
    return [*words, *PRESET.words(preset), *settings.flags]


def _explain(
    measure: str, gold: str, run: str | None, query: str, other: str | None = None
) -> Words:
    """Return the command that explains a value; files of the project need not be given."""
    from karat.measures import parse

    words = ["karat", "explain", parse(measure).command_name]
    words += [] if is_project_setting("gold") else ["--gold", gold]
    words += [] if run is None else ["--run", run]
    if other is not None:
        words += ["--other", other]
    return [*words, "--query", query]


def _path(path: str) -> str:
    """Return a path that cannot be mistaken for an option."""
    return f"./{path}" if path.startswith("-") else path


def _readable_again(*paths: str) -> bool:
    """Return whether paths can be read a second time. Pipes cannot."""
    from karat.files import is_pipe

    return not any(map(is_pipe, paths))
