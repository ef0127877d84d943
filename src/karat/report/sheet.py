"""What is shown of one run, whatever shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from karat.conventions import Conventions
from karat.data.shaping import Settings
from karat.errors import counted
from karat.measures import parse
from karat.measures.declare import OF_THE_RUN
from karat.measures.presets import preset_named
from karat.stats.groups import FEW
from karat.stats.intervals import METHODS

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


@dataclass(frozen=True)
class Sheet:
    """The numbers of one run, and what must stand beside them."""

    name: str
    conventions: Conventions
    level: str
    matching: str | None
    settings: Settings
    load: str | None
    """How many questions shared the retriever while it was timed, in words."""
    notes: tuple[str, ...]
    """What a reader of the numbers must know about how they were made."""
    delivered: dict[str, float]
    """The mean number of characters that the run returns up to rank k, by measure."""
    summary: pl.DataFrame
    counts: dict[str, int]
    groups: pl.DataFrame | None
    per_query: pl.DataFrame
    weights: pl.DataFrame
    """The denominators of what is summed before it is divided, row by row."""
    holes: pl.DataFrame
    """What judgments that were never made leave open, row by row."""
    queries: pl.DataFrame
    show_queries: bool
    """Whether a person asked to see every query."""
    show_medians: bool = False
    """Whether a person asked to see medians."""
    preset: str | None = None
    """The preset that the scores were made with."""

    def label(self, measure: str) -> str:
        """Return the name that is printed for a measure: a preset may have its own."""
        return preset_named(self.preset).label(measure)

    def remarks(self) -> list[str]:
        """Say what was left out and what was counted, in sentences."""
        of_what = {
            "not_run": " of latency, cost and context",
            "no_timings": " of latency",
            "no_tokens": " of context",
        }
        out = [
            f"{_counted(reason, n)} left out{of_what.get(reason, '')}"
            for reason, n in left_out(self.counts, self.conventions).items()
        ]
        scored = any(parse(name).declaration.reads_gold for name in self.summary["measure"])
        families = {parse(name).declaration.family for name in self.summary["measure"]}
        outcome = {
            "missing": " scored as nothing retrieved",
            "failed": _failed_outcome(scored=scored, timed=bool(families & set(OF_THE_RUN))),
            "no_relevant": _NOTHING_TO_FIND.get(self.conventions.no_gold, " scored 0"),
            "no_texts": _NOTHING_TO_FIND.get(self.conventions.no_gold, " scored 0"),
            "no_characters": " scored as nothing to find",
            "unpriced": "; cost of their queries unknown",
            "repeats": _REPEATS.get(self.conventions.duplicates, " counted once"),
        }
        out += [
            _counted(reason, n) + outcome[reason]
            for reason, n in noted(self.counts, self.conventions).items()
        ]
        if self.load is not None and "latency" in families:
            out.append(f"latency while {self.load}")
        return [*out, *self.notes, *self._of_few()]

    def way(self) -> list[str]:
        """Say in which way it was scored, where that is not the usual one."""
        departures = self.conventions.departures()
        lines = {
            "conventions": ", ".join(f"{name}={word}" for name, word in departures.items()),
            "level": "" if self.level == "item" else self.level,
            "list": str(self.settings),
            "evidence": self.matching or "",
        }
        return [f"{name}: {words}" for name, words in lines.items() if words]

    def _of_few(self) -> Iterator[str]:
        """Say which values rest on too few queries, of all of them or of a group."""
        for measure, n in self.summary.select("measure", "n").iter_rows():
            least = parse(measure).declaration.least_queries
            if rests_on_few(measure, n):
                yield f"{self.label(measure)} of fewer than {least} samples ({n})"
            elif self.groups is not None:
                sizes = self.groups.filter(pl.col("measure") == measure)["n"]
                if few := sum(rests_on_few(measure, size) for size in sizes):
                    groups = counted(few, "group")
                    yield f"{self.label(measure)} of fewer than {least} samples in {groups}"
        if self.groups is not None and self.groups["small"].any():
            yield f"groups marked * have fewer than {FEW} queries: they say little"


def _failed_outcome(*, scored: bool, timed: bool) -> str:
    parts = [
        "scored as nothing retrieved" if scored else "",
        "excluded from latency, cost and context" if timed else "",
    ]
    return " " + ", ".join(part for part in parts if part)


UNEQUAL = 1.5
"""How many times as much text one run may return as another before that is stated."""


def unequal_texts(sheets: Sequence[Sheet], measure: str) -> tuple[Sheet, Sheet] | None:
    """Return the runs that return most and least text up to the rank of a measure, if unequal."""
    known = [sheet for sheet in sheets if sheet.delivered.get(measure)]
    if len(known) < 2:
        return None
    most = max(known, key=lambda sheet: sheet.delivered[measure])
    least = min(known, key=lambda sheet: sheet.delivered[measure])
    is_unequal = most.delivered[measure] > UNEQUAL * least.delivered[measure]
    return (most, least) if is_unequal else None


def unequal_text_notes(sheets: Sequence[Sheet]) -> list[str]:
    """State where runs are compared at equal k although they return unequal amounts of text."""
    measures_by_note: dict[str, list[str]] = {}
    for measure in sheets[0].summary["measure"]:
        if (runs := unequal_texts(sheets, measure)) is not None:
            most, least = runs
            told = (
                f"the runs return unequal amounts of text, {most.delivered[measure]:,.0f} "
                f"characters per query in {most.name}, {least.delivered[measure]:,.0f} in "
                f"{least.name}"
            )
            measures_by_note.setdefault(told, []).append(sheets[0].label(measure))
    return [
        f"{', '.join(measures)}: {told}; larger chunks win at equal k, so compare at a budget of "
        "characters, such as span.recall@2000c"
        for told, measures in measures_by_note.items()
    ]


def remarks(sheets: Sequence[Sheet]) -> list[str]:
    """Return the remarks on each run; those that hold for all of several runs once."""
    runs_of: dict[str, list[str]] = {}
    for sheet in sheets:
        for remark in sheet.remarks():
            runs_of.setdefault(remark, []).append(sheet.name)
    out = [
        f"{name}: {remark}"
        for remark, names in runs_of.items()
        for name in (["every run"] if 1 < len(sheets) == len(names) else names)
    ]
    return [*out, *unequal_text_notes(sheets)]


def methods(sheets: Sequence[Sheet]) -> list[str]:
    """Say how intervals came about: one sentence, or one for each way there is.

    Runs are named where their intervals were made in another way than those of most runs.
    """
    if "method" not in sheets[0].summary.columns:
        return []
    measures_of: dict[str, list[str]] = {}
    for measure in sheets[0].summary["measure"]:
        runs_of: dict[str, list[str]] = {}
        for sheet in sheets:
            if method := _methods(sheet)[measure]:
                runs_of.setdefault(method, []).append(sheet.name)
        for method, runs in runs_of.items():
            most = 2 * len(runs) > sum(map(len, runs_of.values()))
            label = sheets[0].label(measure)
            named = label if most else f"{label} ({', '.join(runs)})"
            measures_of.setdefault(method, []).append(named)
    if len(measures_of) == 1:
        said = [f"95% intervals: {METHODS[method]}" for method in measures_of]
    else:
        said = [
            f"95% intervals of {', '.join(measures)}: {METHODS[method]}"
            for method, measures in measures_of.items()
        ]
    if others := list(dict.fromkeys(METHODS[m] for sheet in sheets for m in _of_groups(sheet))):
        said.append(f"95% intervals of some groups: {', '.join(others)}")
    return said


def _of_groups(sheet: Sheet) -> Iterator[str]:
    """Yield how intervals of groups came about where those of all queries did not."""
    if sheet.groups is None:
        return
    of_all = _methods(sheet)
    used = sheet.groups.select("measure", "method").unique(maintain_order=True).drop_nulls()
    for measure, method in used.iter_rows():
        if method != of_all[measure]:
            yield method


def _methods(sheet: Sheet) -> dict[str, str | None]:
    return dict(sheet.summary.select("measure", "method").iter_rows())


def rests_on_few(measure: str, n: int) -> bool:
    """Tell whether a value over so many queries says less than its name promises."""
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
    """Return what was scored and should be known of, by reason."""
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
