"""Failed queries of a run: how many may fail before its numbers are worthless."""

from __future__ import annotations

from collections import Counter

from karat.data.run import Run
from karat.errors import InputError, counted, printable

MAX_FAILED = 0.05
"""The share of the queries that may fail, unless another limit is given."""


def too_many_failed(run: Run, share: float, name: str | None = None) -> str | None:
    """Return a message if more than this share of the queries of a run failed."""
    # Divided, since 0.29 * 100 is less than 29.
    if not run.failed or run.failed / run.query_ids.len() <= share:
        return None
    problem = failures(run, f"more than the {share * 100:g}% that may fail")
    hint = (
        "run the failed queries again (the same karat run command does that), or allow more "
        "failures: --fail-on-error SHARE, fail_on_error="
    )
    return f"{f'{printable(name)}: ' if name else ''}{problem}\n  hint: {hint}"


def failures(run: Run, remark: str) -> str:
    """Return how many queries of a run failed, with a remark and an example."""
    assert run.errors is not None
    kinds = Counter(run.errors["type"]).most_common()
    by_kind = ", ".join(f"{count:,} {printable(kind)}" for kind, count in kinds)
    example = run.errors.select("query_id", "type", "message").row(0)
    return (
        f"{run.failed:,} of {counted(run.query_ids.len(), 'query')} failed ({by_kind}), {remark}\n"
        f"  for example {': '.join(printable(part) for part in example if part)}"
    )


def checked_share(share: float) -> float:
    """Return the share of the queries that may fail; refuse a number outside 0 to 1."""
    if not 0 <= share <= 1:
        raise InputError(
            f"{share!r} is not between 0 and 1", field="fail_on_error", hint="0.05 is 5%"
        )
    return share
