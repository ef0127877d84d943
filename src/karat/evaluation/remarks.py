"""Remarks on scores: what was left out, what was counted, and how it was scored, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from karat.conventions import Conventions
from karat.errors import counted
from karat.measures import parse
from karat.measures.families import LATENCY, MISSING, NOT_RUN, REASONS
from karat.stats.groups import FEW

if TYPE_CHECKING:
    from karat.evaluation.scores import Scores


def remarks(scores: Scores, groups: pl.DataFrame | None = None) -> list[str]:
    """Return what was left out and what was counted, and which values rest on few queries.

    `groups` is what `scores.by` returned, if groups are shown.
    """
    counts, conventions = scores.table.counts, scores.conventions
    families = {measure.declaration.reads for measure in scores.table.measures}
    out = [
        f"{_counted(reason, n)} left out{REASONS[reason].excluded_from}"
        for reason, n in left_out(counts, conventions).items()
    ]
    out += [
        _counted(reason, n) + REASONS[reason].outcome(conventions, families)
        for reason, n in counted_notes(counts, conventions).items()
    ]
    if scores.load is not None and LATENCY in families:
        out.append(f"latency while {scores.load}")
    return [*out, *scores.notes, *_few_queries(scores, groups)]


def scoring_notes(scores: Scores) -> list[str]:
    """Return how it was scored, where that is not the default."""
    departures = scores.conventions.departures()
    lines = {
        "conventions": ", ".join(f"{name}={word}" for name, word in departures.items()),
        "level": "" if scores.level == "item" else scores.level,
        "list": str(scores.settings),
        "evidence": scores.matching or "",
    }
    return [f"{name}: {words}" for name, words in lines.items() if words]


def _few_queries(scores: Scores, groups: pl.DataFrame | None) -> Iterator[str]:
    """Yield which values rest on too few queries, of all of them or of a group."""
    for measure in scores:
        least = parse(measure).declaration.least_queries
        n = scores.per_query[measure].count()
        if has_few_queries(measure, n):
            yield f"{scores.label(measure)} of fewer than {least} samples ({n})"
        elif groups is not None:
            sizes = groups.filter(pl.col("measure") == measure)["n"]
            if few := sum(has_few_queries(measure, size) for size in sizes):
                some = counted(few, "group")
                yield f"{scores.label(measure)} of fewer than {least} samples in {some}"
    if groups is not None and groups["small"].any():
        yield f"groups marked * have fewer than {FEW} queries: they say little"


UNEQUAL = 1.5
"""How many times as much text one run may return as another before that is stated."""


def unequal_texts(scores: Sequence[Scores], measure: str) -> tuple[Scores, Scores] | None:
    """Return the runs that return most and least text up to the rank of a measure, if unequal."""
    known = [each for each in scores if each.delivered.get(measure)]
    if len(known) < 2:
        return None
    most = max(known, key=lambda each: each.delivered[measure])
    least = min(known, key=lambda each: each.delivered[measure])
    is_unequal = most.delivered[measure] > UNEQUAL * least.delivered[measure]
    return (most, least) if is_unequal else None


def unequal_text_notes(scores: Sequence[Scores]) -> list[str]:
    """State where runs are compared at equal k although they return unequal amounts of text."""
    measures_by_note: dict[str, list[str]] = {}
    for measure in scores[0]:
        if (runs := unequal_texts(scores, measure)) is not None:
            most, least = runs
            note = (
                f"the runs return unequal amounts of text, {most.delivered[measure]:,.0f} "
                f"characters per query in {most.name}, {least.delivered[measure]:,.0f} in "
                f"{least.name}"
            )
            measures_by_note.setdefault(note, []).append(scores[0].label(measure))
    return [
        f"{', '.join(measures)}: {note}; larger chunks win at equal k, so compare at a budget of "
        "characters, such as span.recall@2000c"
        for note, measures in measures_by_note.items()
    ]


def has_few_queries(measure: str, n: int) -> bool:
    """Return whether a value over n queries says less than its name promises."""
    return 0 < n < parse(measure).declaration.least_queries


def left_out(counts: dict[str, int], conventions: Conventions) -> dict[str, int]:
    """Return how many queries count nowhere, by reason."""
    return {
        key: counts[key]
        for key, reason in REASONS.items()
        if counts.get(key) and reason.excluded(conventions)
    }


def counted_notes(counts: dict[str, int], conventions: Conventions) -> dict[str, int]:
    """Return what was scored and should be known, by reason."""
    return {
        key: counts[key]
        for key, reason in REASONS.items()
        if counts[key] and not reason.excluded(conventions)
    }


def n_missing(counts: dict[str, int]) -> int:
    """Return how many queries of gold are not in the run."""
    # Measures of gold count them as missing, those of latency, cost and context as not run.
    return max(counts[MISSING.key], counts[NOT_RUN.key])


def _counted(reason: str, n: int) -> str:
    return REASONS[reason].text.format(counted(n, REASONS[reason].noun))
