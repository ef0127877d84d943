"""The notes below a table of scores, and the measure that the headline above it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from karat.conventions import Conventions
from karat.errors import counted
from karat.match.spans import Budget
from karat.measures import Measure, parse
from karat.measures.families import LATENCY, MISSING, NOT_RUN, REASONS, SPAN
from karat.stats.clusters import FEW_CLUSTERS
from karat.stats.groups import FEW

if TYPE_CHECKING:
    from karat.evaluation.scores import Scores


def remarks(scores: Scores, groups: pl.DataFrame | None = None) -> list[str]:
    """Return notes on queries left out, special cases, and values of too few queries.

    `groups` is the result of `scores.by`, if groups are shown.
    """
    counts, conventions = scores.table.counts, scores.conventions
    families = {measure.declaration.reads for measure in scores.table.measures}
    notes = [
        f"{_counted(reason, n)}: left out{REASONS[reason].excluded_from}"
        for reason, n in left_out(counts, conventions).items()
    ]
    notes += [
        f"{_counted(reason, n)}: {REASONS[reason].outcome(conventions, families).lstrip(' ;')}"
        for reason, n in counted_notes(counts, conventions).items()
    ]
    if scores.load is not None and LATENCY in families:
        notes.append(f"latency under load: {scores.load}")
    return [*notes, *scores.notes, *few_query_notes(scores, groups)]


def scoring_notes(scores: Scores) -> list[str]:
    """Return the scoring settings that differ from their defaults."""
    departures = scores.conventions.departures()
    settings = {
        "conventions": ", ".join(f"{name}={word}" for name, word in departures.items()),
        "level": "" if scores.level == "item" else scores.level,
        "list": str(scores.settings),
        "evidence": scores.matching or "",
        "clusters": _clusters_note(scores),
    }
    return [f"{name}: {value}" for name, value in settings.items() if value]


def _clusters_note(scores: Scores) -> str:
    """Return how many clusters the queries form, or nothing without clusters."""
    if (counts := scores.cluster_counts) is None:
        return ""
    note = (
        f"{counted(counts.queries, 'query')} in {counted(counts.clusters, 'cluster')} by "
        f"{counts.field}; intervals and tests do not treat queries of a cluster as independent"
    )
    if counts.alone:
        note += f"; {counted(counts.alone, 'query')} without {counts.field} "
        note += "is a cluster" if counts.alone == 1 else "are a cluster each"
    return note


def few_query_notes(scores: Scores, groups: pl.DataFrame | None) -> Iterator[str]:
    """Yield notes on measures and groups with too few queries, and on too few clusters."""
    counts = scores.cluster_counts
    if counts is not None and counts.few:
        yield (
            f"only {counted(counts.clusters, 'cluster')} by {counts.field}: intervals may be too "
            f"narrow; {FEW_CLUSTERS} or more are needed"
        )
    for measure in scores:
        least = parse(measure).declaration.least_queries
        n = scores.per_query[measure].count()
        if has_few_queries(measure, n):
            yield (
                f"{scores.label(measure)} is based on only {counted(n, 'query')}; "
                f"{least} or more are needed"
            )
        elif groups is not None:
            sizes = groups.filter(pl.col("measure") == measure)["n"]
            if n_small := sum(has_few_queries(measure, size) for size in sizes):
                yield (
                    f"{scores.label(measure)} is based on fewer than {least} queries in "
                    f"{counted(n_small, 'group')}"
                )
    if groups is not None and groups["small"].any():
        yield f"groups marked * have fewer than {FEW} queries: values are unreliable"


UNEQUAL = 1.5
"""How many times as much text one run may return as another before a note is shown."""


def unequal_texts(scores: Sequence[Scores], measure: str) -> tuple[Scores, Scores] | None:
    """Return the runs with most and least text up to the cutoff of a measure, if unequal."""
    with_texts = [score for score in scores if score.delivered.get(measure)]
    if len(with_texts) < 2:
        return None
    most = max(with_texts, key=lambda score: score.delivered[measure])
    least = min(with_texts, key=lambda score: score.delivered[measure])
    is_unequal = most.delivered[measure] > UNEQUAL * least.delivered[measure]
    return (most, least) if is_unequal else None


def main_measure(scores: Sequence[Scores]) -> Measure:
    """Return the measure that decides which run is best and which queries changed most.

    It is the first measure. If the runs return unequal amounts of text at that one, it is a
    measure of the same family at a budget of characters, if there is one.
    """
    first = scores[0].table.measures[0]
    if unequal_texts(scores, first.name) is None:
        return first
    return _at_budget(scores, first) or first


def _at_budget(scores: Sequence[Scores], measure: Measure) -> Measure | None:
    """Return the same measure at a budget of characters, or else one of the same family."""
    at_budget = [
        other
        for other in scores[0].table.measures
        if isinstance(other.cutoff, Budget)
        and other.declaration.family == measure.declaration.family
    ]
    same = (other for other in at_budget if other.declaration is measure.declaration)
    return next(same, at_budget[0] if at_budget else None)


def unequal_text_notes(scores: Sequence[Scores]) -> list[str]:
    """Return notes on measures at rank k for which runs return unequal amounts of text."""
    measures_by_note: dict[str, list[str]] = {}
    for measure in scores[0].table.measures:
        if (runs := unequal_texts(scores, measure.name)) is not None:
            most, least = runs
            fair = _at_budget(scores, measure)
            if fair is not None:
                advice = f"compare by {scores[0].label(fair.name)} instead"
            elif measure.declaration.family == SPAN.name:
                advice = "compare within a number of characters instead: span.recall@2000c"
            else:
                advice = "compare runs that return a similar amount of text"
            note = (
                f"the runs return different amounts of text: {most.name} "
                f"{most.delivered[measure.name]:,.0f} characters per query, {least.name} "
                f"{least.delivered[measure.name]:,.0f}. At equal k, larger chunks have an "
                f"advantage; {advice}"
            )
            measures_by_note.setdefault(note, []).append(scores[0].label(measure.name))
    return [f"{', '.join(measures)}: {note}" for note, measures in measures_by_note.items()]


def has_few_queries(measure: str, n: int) -> bool:
    """Return whether n queries are too few for a measure, such as 20 for a 99th percentile."""
    return 0 < n < parse(measure).declaration.least_queries


def left_out(counts: dict[str, int], conventions: Conventions) -> dict[str, int]:
    """Return the number of queries that are left out, by reason."""
    return {
        key: counts[key]
        for key, reason in REASONS.items()
        if counts.get(key) and reason.excluded(conventions)
    }


def counted_notes(counts: dict[str, int], conventions: Conventions) -> dict[str, int]:
    """Return the number of queries or items scored in a special way, by reason."""
    return {
        key: counts[key]
        for key, reason in REASONS.items()
        if counts[key] and not reason.excluded(conventions)
    }


def n_missing(counts: dict[str, int]) -> int:
    """Return the number of queries of gold that are not in the run."""
    # Measures that read gold count them as missing, those of latency, cost and context as not run.
    return max(counts[MISSING.key], counts[NOT_RUN.key])


def _counted(reason: str, n: int) -> str:
    return REASONS[reason].text.format(counted(n, REASONS[reason].noun))
