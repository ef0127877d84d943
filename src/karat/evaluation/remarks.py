"""Remarks on scores: what was left out, what was counted, and how it was scored, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from karat.conventions import Conventions
from karat.errors import counted
from karat.measures import parse
from karat.measures.declare import OF_THE_RUN
from karat.stats.groups import FEW

if TYPE_CHECKING:
    from karat.evaluation.scores import Scores

WORDS = {
    "unknown": "{} of the run not in gold",
    "missing": "{} of gold not in the run",
    "no_judgments": "{} of gold without judgments",
    "no_spans": "{} of gold without spans",
    "no_evidence": "{} of gold without evidence",
    "no_texts": "{} with no text in gold's evidence",
    "no_characters": "{} with no characters in gold's spans",
    "no_relevant": "{} with nothing relevant in gold",
    "not_run": "{} of gold not in the run",
    "no_timings": "{} without the timing asked for",
    "unpriced": "{} without a price or its tokens",
    "no_tokens": "{} with items of unknown tokens",
    "failed": "{} that the retriever failed on",
    "repeats": "{} that stand again in a list",
}


_NOTHING_TO_FIND = {"one": " scored 1", "recall": " scored 1 by recall, 0 by other measures"}


_REPEATS = {"count": " counted each time", "set": " removed"}


def remarks(scores: Scores, groups: pl.DataFrame | None = None) -> list[str]:
    """Return what was left out and what was counted, and which values rest on few queries.

    `groups` is what `scores.by` returned, if groups are shown.
    """
    counts, conventions = scores.table.counts, scores.conventions
    of_what = {
        "not_run": " of latency, cost and context",
        "no_timings": " of latency",
        "no_tokens": " of context",
    }
    out = [
        f"{_counted(reason, n)} left out{of_what.get(reason, '')}"
        for reason, n in left_out(counts, conventions).items()
    ]
    scored = any(measure.declaration.reads_gold for measure in scores.table.measures)
    families = {measure.declaration.family for measure in scores.table.measures}
    outcome = {
        "missing": " scored as nothing retrieved",
        "failed": _failed_outcome(scored=scored, timed=bool(families & set(OF_THE_RUN))),
        "no_relevant": _NOTHING_TO_FIND.get(conventions.no_gold, " scored 0"),
        "no_texts": _NOTHING_TO_FIND.get(conventions.no_gold, " scored 0"),
        "no_characters": " scored as nothing to find",
        "unpriced": "; cost of their queries unknown",
        "repeats": _REPEATS.get(conventions.duplicates, " counted once"),
    }
    out += [
        _counted(reason, n) + outcome[reason] for reason, n in noted(counts, conventions).items()
    ]
    if scores.load is not None and "latency" in families:
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
        if rests_on_few(measure, n):
            yield f"{scores.label(measure)} of fewer than {least} samples ({n})"
        elif groups is not None:
            sizes = groups.filter(pl.col("measure") == measure)["n"]
            if few := sum(rests_on_few(measure, size) for size in sizes):
                some = counted(few, "group")
                yield f"{scores.label(measure)} of fewer than {least} samples in {some}"
    if groups is not None and groups["small"].any():
        yield f"groups marked * have fewer than {FEW} queries: they say little"


def _failed_outcome(*, scored: bool, timed: bool) -> str:
    parts = [
        "scored as nothing retrieved" if scored else "",
        "excluded from latency, cost and context" if timed else "",
    ]
    return " " + ", ".join(part for part in parts if part)


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


def rests_on_few(measure: str, n: int) -> bool:
    """Return whether a value over n queries says less than its name promises."""
    return 0 < n < parse(measure).declaration.least_queries


def left_out(counts: dict[str, int], conventions: Conventions) -> dict[str, int]:
    """Return how many queries count nowhere, by reason."""
    reasons = ["unknown", "no_judgments", "no_spans", "no_evidence", "not_run", "no_timings"]
    reasons.append("no_tokens")
    if conventions.missing == "skip":
        reasons.append("missing")
    if conventions.no_gold in ("family", "skip"):
        reasons.append("no_texts")
    if conventions.no_gold == "skip":
        reasons += ["no_relevant", "no_characters"]
    return {reason: counts[reason] for reason in reasons if counts.get(reason)}


def noted(counts: dict[str, int], conventions: Conventions) -> dict[str, int]:
    """Return what was scored and should be known, by reason."""
    reasons = (
        "missing",
        "failed",
        "no_relevant",
        "no_characters",
        "no_texts",
        "unpriced",
        "repeats",
    )
    gone = left_out(counts, conventions)
    return {reason: counts[reason] for reason in reasons if counts[reason] and reason not in gone}


def _counted(reason: str, n: int) -> str:
    word = {"repeats": "item", "unpriced": "call"}.get(reason, "query")
    return WORDS[reason].format(counted(n, word))
