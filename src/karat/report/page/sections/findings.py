"""The key findings of a report: what to look at first, each in one sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import and_
from typing import Any

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.errors import counted
from karat.evaluation.loaded_run import LoadedRun
from karat.evaluation.remarks import main_measure, n_missing
from karat.evaluation.scores import Scores
from karat.match.align import query_and_rank
from karat.measures import Measure
from karat.measures.families import FAILED, REPEATS, UNANSWERABLE
from karat.measures.scoring import UNANSWERABLE_RETURNED
from karat.report.cells import format_value, measure_named
from karat.report.page.model import KeyFinding, Queries, Quote
from karat.report.page.queries.gold_kinds import GOLD_KINDS, MissedGold
from karat.report.page.queries.query_status import ANSWERED, SCORES_ONLY
from karat.report.renderers.terminal import shorten
from karat.stats.groups import FEW, outlying_groups

_MAX_PER_KIND = 3  # with 37 runs, nobody reads 37 sentences of one kind
_MAX_LABELS = 20  # a field with more values does not group the queries
_MIN_UNJUDGED = 0.1
_MIN_REPEATED = 0.1
_NAME_WIDTH = 60
_QUOTE_LENGTH = 220


def findings(
    scores: Sequence[Scores],
    opened: Sequence[LoadedRun | None],
    queries: Queries,
    pair: tuple[int, int] | None = None,
    significant: Collection[tuple[str, str, str]] = (),
) -> list[KeyFinding]:
    """Return the findings, the most important first; a run without ranked lists is None.

    `pair` are the indices of the two runs that the report compares at first: the second best run or
    the baseline, and the best run. `significant` are the significant differences: the better run,
    the other run and the measure.
    """
    main = main_measure(scores)
    measure = next((m for m in (main, *scores[0].table.measures) if _is_mean(m)), None)
    lead = None if pair is None else _lead(scores[pair[0]], scores[pair[1]], measure)
    kinds: list[Iterable[KeyFinding]] = [
        _unanswered(scores),
        [] if lead is None else _deciding(lead),
        _unanswerable(scores),
        # If the lead may be chance, so may its reversal in a part of the queries.
        [] if lead is None or lead.key not in significant else _reversing(lead, queries),
        _missed_by_all(opened, queries),
        _unjudged(scores),
        _nothing_found(scores, queries),
        _groups(scores, measure, queries),
        _repeats(scores, opened),
    ]
    return [finding for kind in kinds for finding in islice(kind, _MAX_PER_KIND)]


@dataclass(frozen=True)
class _Lead:
    """The lead of one run over another in a measure."""

    ahead: Scores
    behind: Scores
    measure: Measure
    gains: Floats
    """By how much `ahead` is better, for each query that has a value in both runs."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The better run, the other run and the measure."""
        return self.ahead.name, self.behind.name, self.measure.name


def _lead(a: Scores, b: Scores, measure: Measure | None) -> _Lead | None:
    """Return which of two runs leads; None if their means are equal."""
    if measure is None:
        return None
    values = pl.DataFrame({"a": a.per_query[measure.name], "b": b.per_query[measure.name]})
    values = values.drop_nulls()
    gains = _sign(measure) * (values["b"] - values["a"]).to_numpy()
    total = float(gains.sum())
    if total == 0:
        return None
    return _Lead(b, a, measure, gains) if total > 0 else _Lead(a, b, measure, -gains)


def _sign(measure: Measure) -> int:
    return 1 if measure.declaration.higher_is_better else -1


def _deciding(lead: _Lead) -> Iterator[KeyFinding]:
    """Yield how few queries decide the difference: without them, there would be no lead."""
    total = float(lead.gains.sum())
    largest = np.sort(lead.gains)[::-1]
    n = int(np.searchsorted(np.cumsum(largest), total * (1 - 1e-12))) + 1
    size, ahead = lead.gains.size, lead.ahead.name
    them = "this one" if n == 1 else "the ones where it gains most"
    text = (
        f"The lead of {ahead} over {lead.behind.name} in {lead.measure.name} depends on "
        f"{n:,} of {counted(size, 'query')}: without {them}, {ahead} would not be ahead."
    )
    show = {
        "run": ahead,
        "against": lead.behind.name,
        "measure": lead.measure.name,
        "movement": "better",
    }
    yield KeyFinding("decides", text, show, f"{n:,} of {size:,}")


def _reversing(lead: _Lead, queries: Queries) -> Iterator[KeyFinding]:
    """Yield the groups in which the run that is behind overall is ahead."""
    name = lead.measure.name
    reversed_groups = []
    for field in categorical_fields(queries.fields):
        values = {
            "label": queries.fields[field],
            "ahead": lead.ahead.per_query[name],
            "behind": lead.behind.per_query[name],
        }
        groups = pl.DataFrame(values).drop_nulls().group_by("label", maintain_order=True)
        means = groups.agg(pl.len().alias("n"), pl.col("ahead", "behind").mean())
        for label, n, ahead, behind in means.iter_rows():
            gap = _sign(lead.measure) * (behind - ahead)
            if n >= FEW and gap > 0:
                reversed_groups.append((-gap, field, label, n, ahead, behind))
    for _, field, label, n, ahead, behind in sorted(reversed_groups):
        text = (
            f"In {field} {shorten(repr(label), _NAME_WIDTH)} the order is reversed: "
            f"{lead.behind.name} leads {lead.ahead.name} in {name}, {format_value(behind, name)} "
            f"to {format_value(ahead, name)} over {counted(n, 'query')}. "
            "The significance was not tested."
        )
        yield KeyFinding("reverses", text, {"field": field, "value": label}, counted(n, "query"))


def _unanswered(scores: Sequence[Scores]) -> Iterator[KeyFinding]:
    for score in scores:
        counts = score.table.counts
        if n := counts[FAILED.key]:
            queries = _share_of(n, counts["queries"], "query")
            text = f"The retriever failed on {queries} in {score.name}."
            yield KeyFinding("failed", text, {"run": score.name, "outcome": "failed"}, f"{n:,}")
        if n := n_missing(counts):
            queries = _share_of(n, counts["queries"], "gold query")
            text = f"{queries} {_is_or_are(n)} not in {score.name}."
            show = {"run": score.name, "outcome": "missing"}
            yield KeyFinding("missing", text, show, f"{n:,}")


def _unanswerable(scores: Sequence[Scores]) -> Iterator[KeyFinding]:
    """Yield how often runs returned something for queries without an answer."""
    returned = [score.table.counts[UNANSWERABLE_RETURNED] for score in scores]
    is_same = len(scores) > 1 and len(set(returned)) == 1
    for score, n in zip(scores[:1] if is_same else scores, returned, strict=False):
        if not n:
            continue
        total = score.table.counts[UNANSWERABLE.key]
        queries = _share_of(n, total, "query")
        subject = "Every run" if is_same else score.name
        text = f"{subject} returned something for {queries} without an answer."
        show = {"run": score.name, "outcome": "left_out"}
        yield KeyFinding("unanswerable", text, show, f"{n:,} of {total:,}")


def _unjudged(scores: Sequence[Scores]) -> Iterator[KeyFinding]:
    """Yield the cases in which unjudged items could change which run is best."""
    rows = [score.summary(intervals=False).to_dicts() for score in scores]
    for run_rows in zip(*rows, strict=True):
        if all(row["judged"] is not None and row["value"] is not None for row in run_rows):
            break
    else:
        return
    measure = measure_named(run_rows[0]["measure"])
    best = 0
    for at, row in enumerate(run_rows):
        if measure.is_better(row["value"], run_rows[best]["value"]):
            best = at
    if len(scores) == 1 and run_rows[0]["judged"] <= 1 - _MIN_UNJUDGED:
        unjudged = f"{1 - run_rows[0]['judged']:.0%}"
        text = f"{unjudged} of the items that {measure} reads are unjudged"
        yield KeyFinding("unjudged", f"{text}; they count as irrelevant.", number=unjudged)
    for at, (score, row) in enumerate(zip(scores, run_rows, strict=True)):
        if at != best and (doubt := _lead_doubt(run_rows[best], row, score.name)):
            lead = f"{scores[best].name} is ahead of {score.name} in {measure}, but"
            yield KeyFinding("unjudged", f"{lead} {doubt}", number=f"{1 - row['judged']:.0%}")


def _lead_doubt(best: dict[str, Any], other: dict[str, Any], name: str) -> str | None:
    """Return why a lead over another run may be due to unjudged items, or None.

    The reason is the upper bound of the other run; without a bound, the shares of unjudged items.
    """
    if best["value"] == other["value"] or other["judged"] == 1:
        return None
    if other["bound_high"] is not None and other["bound_high"] >= best["value"]:
        most, lead = format_value(other["bound_high"]), format_value(best["value"])
        return f"the unjudged items of {name} could raise its value to {most}, at least {lead}."
    if other["bound_high"] is None and best["judged"] - other["judged"] >= _MIN_UNJUDGED:
        share = f"{1 - other['judged']:.0%} of the items of {name} are unjudged"
        return f"{share}, compared with {1 - best['judged']:.0%}."
    return None


def _nothing_found(scores: Sequence[Scores], queries: Queries) -> Iterator[KeyFinding]:
    if not queries.outcomes:
        return
    has_gold = queries.n_relevant > 0
    total = int(has_gold.sum())
    found_by_none = reduce(and_, (run.found == 0 for run in queries.outcomes), has_gold)
    has_lists = not any((run.status == SCORES_ONLY).any() for run in queries.outcomes)
    reported = found_by_none & (len(scores) > 1 and has_lists)
    if n := int(reported.sum()):
        share = _share_of(n, total, "query")
        text = f"No run retrieved anything relevant for {share}, at any rank."
        yield KeyFinding("nothing", text, {"outcome": "unfound"}, f"{n:,}")
    empty = [has_gold & (run.status == ANSWERED) & (run.found == 0) for run in queries.outcomes]
    by_count = sorted(zip(scores, empty, strict=True), key=lambda pair: -int(pair[1].sum()))
    for score, is_empty in by_count:
        if (is_empty & ~reported).any():
            n = int(is_empty.sum())
            text = f"{score.name} retrieved nothing relevant for {_share_of(n, total, 'query')}"
            text += ", at any rank."
            show = {"run": score.name, "outcome": "nothing"}
            yield KeyFinding("nothing", text, show, f"{n:,}")


def _missed_by_all(opened: Sequence[LoadedRun | None], queries: Queries) -> Iterator[KeyFinding]:
    runs = [run for run in opened if run is not None]
    if len(runs) < len(opened):  # the lists of the other runs are unknown
        return
    quoted: set[str] = set()
    for kind in missed_gold(runs):
        if not kind.left.height:
            continue
        n = kind.left.height
        subject = "No run retrieved"
        if len(runs) == 1:
            subject = f"{runs[0].scores.name} did not retrieve"
        text = f"{subject} {_share_of(n, kind.total, kind.what)}."
        # Each card quotes another query, if possible: several kinds of gold may be the same text.
        other = kind.left.filter(~pl.col("query_id").is_in(quoted))
        query_id, name = (other if other.height else kind.left).row(0)
        quoted.add(query_id)
        at = queries.ids.index_of(query_id)
        query = None if queries.texts is None or at is None else queries.texts[at]
        missed = " ".join((kind.text(query_id, name) or name).split())
        if len(missed) > _QUOTE_LENGTH:
            missed = f"{missed[: _QUOTE_LENGTH - 1]}…"
        quote = Quote(query_id, query, missed)
        yield KeyFinding("unfound", text, None, f"{n:,} of {kind.total:,}", quote)


def _groups(
    scores: Sequence[Scores], measure: Measure | None, queries: Queries
) -> Iterator[KeyFinding]:
    """Yield the groups that are worse than the rest, by the first measure that is a mean."""
    # The test of a group against the others treats queries as independent.
    if measure is None or any(score.cluster is not None for score in scores):
        return
    higher = measure.declaration.higher_is_better
    worse_groups = [
        (score.name, field, group)
        for score in scores
        for field, groups in _values_by_label(score, measure, queries)
        for group in outlying_groups(groups)
        if (group.difference < 0) == higher
    ]
    for run, field, group in sorted(worse_groups, key=lambda item: -abs(item[2].difference)):
        gap = f"{format_value(abs(group.difference))} {'below' if higher else 'above'} the rest"
        value = f"{measure.name} is {format_value(group.mean)} over {counted(group.n, 'query')}"
        label = f"{field} {shorten(repr(group.label), _NAME_WIDTH)}"
        text = f"{run} is weaker on queries with {label}: {value}, {gap}."
        show = {"field": field, "value": group.label, "run": run}
        yield KeyFinding("group", text, show, format_value(group.mean))


def _is_mean(measure: Measure) -> bool:
    declaration = measure.declaration
    return declaration.reads_gold and declaration.combine == "mean"


def _values_by_label(
    score: Scores, measure: Measure, queries: Queries
) -> Iterator[tuple[str, dict[str, Floats]]]:
    """Yield the values per label, for every field with few labels."""
    values = score.per_query[measure.name]
    for field in categorical_fields(queries.fields):
        labelled = pl.DataFrame({"label": queries.fields[field], "value": values}).drop_nulls()
        parts = labelled.partition_by("label", as_dict=True, maintain_order=True)
        yield field, {str(key[0]): part["value"].to_numpy() for key, part in parts.items()}


def categorical_fields(fields: pl.DataFrame) -> list[str]:
    """Return the fields that group the queries: those with at least two values, but few."""
    return [
        column.name
        for column in fields.iter_columns()
        if column.name != "answerable" and 2 <= column.n_unique() <= _MAX_LABELS
    ]


def _repeats(scores: Sequence[Scores], opened: Sequence[LoadedRun | None]) -> Iterator[KeyFinding]:
    """Yield runs whose lists repeat items or text."""
    for score, run in zip(scores, opened, strict=True):
        if n := score.table.counts[REPEATS.key]:
            total = "" if run is None else f" of {_n_results(run):,}"
            text = f"{n:,}{total} results of {score.name} repeat an item of a higher rank."
            yield KeyFinding("duplicates", text, number=f"{n:,}")
        for share in [] if run is None else _repeated_shares(run):
            if share >= _MIN_REPEATED:
                text = f"{share:.0%} of the characters that {score.name} returned"
                yield KeyFinding(
                    "duplicates", f"{text} repeat earlier results.", number=f"{share:.0%}"
                )


def _repeated_shares(opened: LoadedRun) -> Iterator[float]:
    for family, kind in GOLD_KINDS.items():
        if family in opened.families and kind.repeated is not None:
            yield kind.repeated(opened.readings[family])


def _n_results(opened: LoadedRun) -> int:
    """Return the number of results of all queries in gold."""
    number, _ = query_and_rank(opened.query_ids, opened.run)
    return int(np.count_nonzero(number >= 0))


def _is_or_are(n: int) -> str:
    return "is" if n == 1 else "are"


def _share_of(n: int, total: int, word: str) -> str:
    """Return a count with its total and its share.

    >>> _share_of(3, 40, "query"), _share_of(1, 300, "query")
    ('3 of 40 queries (8%)', '1 of 300 queries (0.3%)')
    """
    digits = 0 if 100 * n >= total else 1
    return f"{n:,} of {counted(total, word)} ({n / total:.{digits}%})"


def missed_gold(runs: Sequence[LoadedRun]) -> list[MissedGold]:
    """Return what every run missed, per kind of gold; all runs share one gold."""
    families = runs[0].families
    return [kind.missed(runs) for family, kind in GOLD_KINDS.items() if family in families]
