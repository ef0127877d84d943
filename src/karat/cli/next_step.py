"""The last line of a command: what to run next, so that it can be run as it is printed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from karat.cli.options import PRESET, Scoring

if TYPE_CHECKING:
    from karat.data.data_file import PathSource
    from karat.evaluation.comparison import Comparison
    from karat.evaluation.scores import Scores
    from karat.evaluation.verdict import Verdict

Words = list[str]
LONGEST_WORD = 1000


def advise(words: Words | None) -> None:
    """Print a command to standard error, after all results; not one that no terminal can show.

    An id must be complete in a command, so a command with a very long one is not printed either.
    """
    line = "" if words is None else shlex.join(words)
    if not line.isprintable() or any(len(word) > LONGEST_WORD for word in words or ()):
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return  # nobody reads any more; the command still ends as its answer says
    if line:
        print(f"next: {line}", file=sys.stderr)


def after_run(queries: PathSource, run: str, *, is_part: bool) -> Words | None:
    """Return how a run that was asked for is scored, if the queries came with what is right."""
    from karat.data.gold import Gold
    from karat.errors import InputError

    path = str(queries.path)
    if not _readable_again(path):
        return None
    try:
        gold = Gold.open(queries)
    except InputError:
        return None
    if not gold.judgments.height and gold.spans is None and gold.evidence is None:
        return None
    words = ["karat", "eval", _path(path), _path(run)]
    words += ["--gold-format", queries.format] if queries.format else []
    for ours, theirs in queries.columns.names.items():
        words += ["--column", f"{ours}={theirs}"]
    return [*words, "--missing", "skip"] if is_part else words


def after_eval(
    how: Scoring,
    gold: str,
    runs: Sequence[str],
    preset: str | None,
    shared: Words,
    scores: Sequence[Scores],
) -> Words | None:
    """Return what to do after scores: compare several runs, or explain the worst query of one.

    `shared` are the measures and groups, which eval and compare share.
    """
    from karat.evaluation.next_query import worst

    if not _readable_again(gold, *runs):
        return None
    if len(runs) > 1:
        words = ["karat", "compare", *map(_path, [gold, *runs]), *shared]
        return [*words, *PRESET.words(preset), *how.flags]
    (score,) = scores
    if (query := worst(score)) is None:
        return None
    words = _explain(query.measure, gold, runs[0], query.query_id)
    return [*words, *PRESET.words(preset), *how.flags]


def after_compare(
    how: Scoring, gold: str, runs: Sequence[str], preset: str | None, comparison: Comparison
) -> Words | None:
    """Return what to do after a comparison: explain the query that moved most."""
    from karat.evaluation.next_query import most_moved

    if (query := most_moved(comparison)) is None:
        return None
    names = [score.name for score in comparison.scores]
    one, other = (runs[names.index(name)] for name in query.runs)
    if not _readable_again(gold, one, other):
        return None
    words = _explain(query.measure, gold, one, query.query_id, other)
    return [*words, *PRESET.words(preset), *how.flags]


def after_gate(
    how: Scoring,
    gold: str,
    run: str,
    preset: str | None,
    baseline: str | None,
    verdict: Verdict,
) -> Words | None:
    """Return what to do after a gate that failed: explain the query that is most to blame."""
    from karat.evaluation.saved_scores import holds_scores

    blamed = [check for check in verdict.failures if check.blamed]
    if not blamed or not _readable_again(gold, run):
        return None
    check, runs = blamed[0], [run]
    if check.rule.compares and baseline is not None and not holds_scores(how.run(baseline)):
        runs = [baseline, run] if _readable_again(baseline) else runs
    words = _explain(check.rule.measure, gold, runs[0], check.blamed[0].query_id, *runs[1:])
    return [*words, *PRESET.words(preset), *how.flags]


def _explain(measure: str, gold: str, run: str, query: str, other: str | None = None) -> Words:
    from karat.measures import parse

    words = ["karat", "explain", parse(measure).command_name, "--gold", gold, "--run", run]
    return [*words, *([] if other is None else ["--other", other]), "--query", query]


def _path(path: str) -> str:
    """Return a path that is taken for none of the options."""
    return f"./{path}" if path.startswith("-") else path


def _readable_again(*paths: str) -> bool:
    """Tell whether paths can be read a second time, as pipes cannot."""
    from karat.files import is_pipe

    return not any(map(is_pipe, paths))
