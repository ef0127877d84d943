"""What to look at first: computed from the numbers, each in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import and_
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.errors import counted
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.remarks import n_missing
from karat.evaluation.scores import Scores
from karat.match.align import query_and_rank
from karat.measures import Measure
from karat.measures.families import FAILED, REPEATS
from karat.report.page.gold_kinds import GOLD_KINDS, MissedGold
from karat.report.page.model import Notice, Queries
from karat.report.page.query_status import ANSWERED, SCORES_ONLY
from karat.report.tables import format_value, measure_named
from karat.report.terminal import shorten
from karat.stats.groups import groups_apart

_MAX_PER_KIND = 3  # of one kind: whoever has 37 runs does not read 37 sentences
_MAX_LABELS = 20  # a field with more values names queries rather than kinds of them
_MIN_UNJUDGED = 0.1
_MIN_REPEATED = 0.1
_NAME_WIDTH = 60


def notices(
    scores: Sequence[Scores], opened: Sequence[LoadedRun | None], queries: Queries
) -> list[Notice]:
    """Return what stands out, the most severe first; a run that cannot be opened is None."""
    kinds: list[Iterable[Notice]] = [
        _unanswered(scores),
        _unjudged(scores),
        _nothing_found(scores, queries),
        _missed_by_all(opened),
        _groups(scores, queries),
        _repeats(scores, opened),
    ]
    return [notice for kind in kinds for notice in islice(kind, _MAX_PER_KIND)]


def _unanswered(scores: Sequence[Scores]) -> Iterator[Notice]:
    for score in scores:
        counts = score.table.counts
        if n := counts[FAILED.key]:
            text = f"The retriever failed on {_share_of(n, counts['queries'], 'query')} in {score.name}."
            yield Notice("failed", text, {"run": score.name, "outcome": "failed"})
        if n := n_missing(counts):
            text = f"{_share_of(n, counts['queries'], 'query')} of gold {_is_or_are(n)} not in {score.name}."
            yield Notice("missing", text, {"run": score.name, "outcome": "missing"})


def _unjudged(scores: Sequence[Scores]) -> Iterator[Notice]:
    """Say where items that nobody judged leave open which run is best."""
    rows = [score.summary(intervals=False).to_dicts() for score in scores]
    for same in zip(*rows, strict=True):
        if all(row["judged"] is not None and row["value"] is not None for row in same):
            break
    else:
        return
    measure = same[0]["measure"]
    best = reduce(
        lambda a, b: (
            b if measure_named(measure).is_better(same[b]["value"], same[a]["value"]) else a
        ),
        range(len(scores)),
    )
    if len(scores) == 1 and same[0]["judged"] <= 1 - _MIN_UNJUDGED:
        share = f"{1 - same[0]['judged']:.0%} of the items that {measure} looks at"
        yield Notice("unjudged", f"{share} were never judged; they count as irrelevant.")
    for at in range(len(scores)):
        if why := _lead_doubt(same[best], same[at]) if at != best else None:
            names = f"{scores[best].name} is ahead of {scores[at].name} in {measure}, but "
            yield Notice("unjudged", names + why.format(name=scores[at].name))


def _lead_doubt(best: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Say why a lead may be one of judging: by a bound where there is one, else by shares."""
    if best["value"] == other["value"] or other["judged"] == 1:
        return None
    if other["bound_high"] is not None and other["bound_high"] >= best["value"]:
        most, lead = format_value(other["bound_high"]), format_value(best["value"])
        return f"its unjudged items could lift {{name}} to {most}, not below {lead}."
    if other["bound_high"] is None and best["judged"] - other["judged"] >= _MIN_UNJUDGED:
        shares = f"{1 - other['judged']:.0%} of what {{name}} returned there was never judged"
        return f"{shares}, against {1 - best['judged']:.0%} of the other."
    return None


def _nothing_found(scores: Sequence[Scores], queries: Queries) -> Iterator[Notice]:
    if not queries.outcomes:
        return
    wanted = queries.wanted > 0
    total = int(wanted.sum())
    nowhere = reduce(and_, (own.found == 0 for own in queries.outcomes), wanted)
    at_hand = not any((own.status == SCORES_ONLY).any() for own in queries.outcomes)
    told = nowhere & (len(scores) > 1 and at_hand)
    if n := int(told.sum()):
        text = f"No run found anything for {_share_of(n, total, 'query')}."
        yield Notice("nothing", text, {"outcome": "unfound"})
    empty = [wanted & (own.status == ANSWERED) & (own.found == 0) for own in queries.outcomes]
    for score, own in sorted(zip(scores, empty, strict=True), key=lambda pair: -int(pair[1].sum())):
        if (own & ~told).any():
            n = int(own.sum())
            text = f"{score.name} found nothing for {_share_of(n, total, 'query')}."
            yield Notice("nothing", text, {"run": score.name, "outcome": "nothing"})


def _missed_by_all(opened: Sequence[LoadedRun | None]) -> Iterator[Notice]:
    at_hand = [each for each in opened if each is not None]
    if len(at_hand) < len(opened):  # nobody knows what the lists of the others held
        return
    for kind in missed_gold(at_hand):
        if not kind.left.height:
            continue
        query, piece = kind.left.row(0)
        piece = " ".join(piece.split())  # evidence may go over lines
        such = f"such as {shorten(repr(piece), _NAME_WIDTH)} for query {shorten(repr(query), 24)}"
        n = kind.left.height
        where = "in any list" if len(opened) == 1 else "in any list of any run"
        text = f"{_share_of(n, kind.wanted, kind.what)} {_is_or_are(n)} not {where}, {such}."
        yield Notice("unfound", text)


def _groups(scores: Sequence[Scores], queries: Queries) -> Iterator[Notice]:
    """Say which groups lie below the rest in the first measure that is a mean."""
    measure = next((m for m in scores[0].table.measures if _is_mean(m)), None)
    if measure is None:
        return
    higher = measure.declaration.higher_is_better
    found = [
        (score.name, field, group)
        for score in scores
        for field, groups in _values_by_label(score, measure, queries)
        for group in groups_apart(groups)
        if (group.difference < 0) == higher
    ]
    for run, field, group in sorted(found, key=lambda each: -abs(each[2].difference)):
        gap = f"{format_value(abs(group.difference))} {'below' if higher else 'above'} the rest"
        value = f"{measure.name} is {format_value(group.mean)} over {counted(group.n, 'query')}"
        text = f"{field} {shorten(repr(group.label), _NAME_WIDTH)} in {run}: {value}, {gap}."
        yield Notice("group", text, {"field": field, "value": group.label, "run": run})


def _is_mean(measure: Measure) -> bool:
    declaration = measure.declaration
    return declaration.reads_gold and declaration.combine == "mean"


def _values_by_label(
    score: Scores, measure: Measure, queries: Queries
) -> Iterator[tuple[str, dict[str, Floats]]]:
    """Yield the values of each group of queries, for every field with a few labels."""
    values = score.per_query[measure.name]
    for field in categorical_fields(queries.fields):
        known = pl.DataFrame({"label": queries.fields[field], "value": values}).drop_nulls()
        parts = known.partition_by("label", as_dict=True, maintain_order=True)
        yield field, {str(key[0]): part["value"].to_numpy() for key, part in parts.items()}


def categorical_fields(fields: pl.DataFrame) -> list[str]:
    """Return the fields that tell kinds of queries apart: of two values or more, but few."""
    return [each.name for each in fields.iter_columns() if 2 <= each.n_unique() <= _MAX_LABELS]


def _repeats(scores: Sequence[Scores], opened: Sequence[LoadedRun | None]) -> Iterator[Notice]:
    """Say where lists hold again what they hold above already."""
    for score, one in zip(scores, opened, strict=True):
        if n := score.table.counts[REPEATS.key]:
            total = "" if one is None else f" of {_n_results(one):,}"
            text = f"{n:,}{total} places of {score.name} hold an item that stands above already."
            yield Notice("duplicates", text)
        for share in [] if one is None else _repeated_shares(one):
            if share >= _MIN_REPEATED:
                text = f"{share:.0%} of the characters that {score.name} returned for a query"
                yield Notice("duplicates", f"{text} stand in an item above already.")


def _repeated_shares(opened: LoadedRun) -> Iterator[float]:
    for family, kind in GOLD_KINDS.items():
        if family in opened.families and kind.repeated is not None:
            yield kind.repeated(opened.readings[family])


def _n_results(opened: LoadedRun) -> int:
    """Count the places of the lists that gold asks for."""
    number, _ = query_and_rank(opened.query_ids, opened.run)
    return int(np.count_nonzero(number >= 0))


def _is_or_are(n: int) -> str:
    return "is" if n == 1 else "are"


def _share_of(n: int, total: int, word: str) -> str:
    """Say how many of how many, and what share that is.

    >>> _of(3, 40, "query"), _of(1, 300, "query")
    ('3 of 40 queries (8%)', '1 of 300 queries (0.3%)')
    """
    digits = 0 if 100 * n >= total else 1
    return f"{n:,} of {counted(total, word)} ({n / total:.{digits}%})"


def missed_gold(opened: Sequence[LoadedRun]) -> list[MissedGold]:
    """Return for each kind of gold what every run missed; all were scored against one gold."""
    families = opened[0].families
    return [kind.unfound(opened) for family, kind in GOLD_KINDS.items() if family in families]
