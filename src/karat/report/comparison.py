"""A comparison together with the choice of what to show, independent of the output format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_letters
from typing import Any, NamedTuple

import polars as pl

from karat.errors import counted
from karat.evaluation.comparison import Comparison, Moved, comparison_document, count_tests
from karat.evaluation.remarks import main_measure
from karat.format import DIGITS, probability
from karat.report.cells import BETTER, declaration_of, significance_mark
from karat.report.sheet import Sheet
from karat.stats.corrections import TITLES
from karat.stats.inference import FEW_GEOMETRIC
from karat.stats.power import ALPHA

PairRow = dict[str, Any]
"""A row of the table of pairs: two runs and one measure."""

FEW_PAIRS = 10
"""More pairs than this share one table per measure, and changed queries are not listed."""
_MOVED_SHOWN = 3


@dataclass(frozen=True, eq=False)
class ComparisonSheet:
    """A comparison, and which parts of it are shown."""

    comparison: Comparison
    n_moved: int | None = None
    """How many improved and how many degraded queries are listed per pair, by the main measure;
    None: 3, or 0 if there are more than 10 pairs."""
    difference: float | None = None
    """If set, show how many queries are needed to detect a difference of this size."""
    show_all_pairs: bool = False
    """With three or more runs, show every pair, not only the best run against each other run."""
    digits: int = DIGITS
    """How many decimals are shown."""
    caption: str | None = None
    """The caption of a LaTeX table; None for the default."""
    tex_label: str = ""
    """The label of a LaTeX table."""
    wide: bool = False
    """Show further columns: p before correction, effect size, smallest detectable difference."""

    def __post_init__(self) -> None:
        _ = self.moved, self.needed  # raises for wrong options before anything is shown

    @cached_property
    def runs(self) -> list[Sheet]:
        """The scores of each run."""
        return [Sheet(score, digits=self.digits) for score in self.comparison.scores]

    @cached_property
    def moved(self) -> list[Moved]:
        """The queries with the largest changes."""
        n = self.n_moved
        if n is None:
            n = 0 if self.many else _MOVED_SHOWN
        return self.comparison.moved_queries(n) if n else []

    @cached_property
    def needed(self) -> pl.DataFrame | None:
        """How many queries are needed to detect the difference, if requested."""
        if self.difference is None:
            return None
        return self.comparison.queries_needed(self.difference)

    @property
    def pairs(self) -> pl.DataFrame:
        """One row per pair and measure."""
        return self.comparison.pairs

    @property
    def groups(self) -> pl.DataFrame | None:
        """One row per pair, measure and group, if there are groups."""
        return self.comparison.groups

    @cached_property
    def names(self) -> list[tuple[str, str]]:
        """The pairs, each as the names of a and b."""
        return self.comparison.pair_names

    @property
    def many(self) -> bool:
        """Whether there are too many pairs to show one table per pair."""
        return len(self.names) > FEW_PAIRS

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in the requested order."""
        return self.pairs["measure"].unique(maintain_order=True).to_list()

    @cached_property
    def main_measure(self) -> str:
        """The measure that decides which run is best."""
        return main_measure(self.comparison.scores).name

    def as_dict(self) -> dict[str, Any]:
        """Return what is shown as JSON-compatible data."""
        return comparison_document(self.comparison, self.moved, self.needed)

    def label(self, measure: str) -> str:
        """Return the printed name of a measure."""
        return self.runs[0].label(measure)

    @property
    def group_fields(self) -> list[str]:
        """The fields that queries are grouped by."""
        columns = [] if self.groups is None else self.groups.columns
        return [name for name in columns if name not in self.pairs.columns]

    def remarks(self, names: Sequence[tuple[str, str]], measures: Sequence[str]) -> Iterator[str]:
        """Yield sentences about some pairs and measures.

        They state which queries were excluded, and which differences were not tested.
        """
        for a, b in names:
            rows = self.pairs.filter(
                pl.col("a") == a, pl.col("b") == b, pl.col("measure").is_in(measures)
            )
            excluding = rows.filter(pl.col("left_out") > 0)
            for n, part in sorted(excluding.partition_by("left_out", as_dict=True).items()):
                labels = ", ".join(map(self.label, part["measure"]))
                scope = "" if part.height == rows.height else f" of {labels}"
                queries = counted(int(n[0]), "query")
                reason = "value in only one of the two runs"
                yield f"{b} − {a}: {queries} left out{scope} ({reason})"
            yield from self._untested_notes(a, b, rows)
            yield from self._uncorrected_notes(a, b, rows)
        yield from self.ratio_notes(names, measures)
        if any(moved.changes is None for moved in self.moved):
            scores = self.comparison.scores
            by_spark = any(score.scored_run is None and score.path is None for score in scores)
            origin = "scored by Spark" if by_spark else "read as saved scores"
            yield f"changes within lists are unknown for runs that were {origin}"

    def _untested_notes(self, a: str, b: str, rows: pl.DataFrame) -> Iterator[str]:
        """Yield sentences about measures for which too few queries differ to test."""
        labels_of: dict[str, list[str]] = {}
        for row in rows.filter(pl.col("method") == "few").iter_rows(named=True):
            labels_of.setdefault(differing_units(row), []).append(self.label(row["measure"]))
        for differing, labels in labels_of.items():
            only = f"{differing} in {', '.join(labels)}"
            too_few = "" if differing.startswith("no ") else ", too few to test"
            yield f"{b} − {a}: {only}{too_few}"

    def _uncorrected_notes(self, a: str, b: str, rows: pl.DataFrame) -> Iterator[str]:
        """Yield sentences about differences that are significant only before correction."""
        for row in rows.filter(pl.col("p") < ALPHA, pl.col("p_corrected") >= ALPHA).iter_rows(
            named=True
        ):
            yield f"{b} − {a}, {self.label(row['measure'])}: {self.uncorrected_note(row)}"

    def uncorrected_note(self, row: PairRow) -> str:
        """Return the sentence for a difference that is significant only before correction."""
        correction = TITLES[self.comparison.correction]
        return (
            f"significant on its own (p {probability(row['p'])}), but not after {correction} "
            f"correction over {count_tests(self.pairs):,} pairs "
            f"(p {probability(row['p_corrected'])})"
        )

    def ratio_notes(
        self, names: Sequence[tuple[str, str]], measures: Sequence[str]
    ) -> Iterator[str]:
        """Yield differences of geometric means as ratios, with their intervals."""
        for row in self.pairs.drop_nulls("low").iter_rows(named=True):
            if (row["a"], row["b"]) not in names or row["measure"] not in measures:
                continue
            if declaration_of(row["measure"]).combine == "geometric" and row["value_a"]:
                ratio, low, high = (
                    1 + row[name] / row["value_a"] for name in ("difference", "low", "high")
                )
                few = "" if row["n"] >= FEW_GEOMETRIC else " (too narrow: few queries)"
                yield (
                    f"{self.label(row['measure'])} of {row['b']} / {row['a']}: {ratio:.3f} "
                    f"[{low:.3f}, {high:.3f}]{few}"
                )


def differing_units(row: PairRow) -> str:
    """Return how few queries, or clusters of queries, differ between the runs of a pair."""
    differing, n, noun = row["wins"] + row["losses"], row["n"], "queries"
    if not differing:
        return "no query differs"
    if row.get("clusters") is not None:
        differing, n, noun = row["clusters_differing"], row["clusters"], "clusters"
        if not differing:
            return "no cluster differs"
    return f"only {differing:,} of {n:,} {noun} {'differs' if differing == 1 else 'differ'}"


class SignificantDifference(NamedTuple):
    """A significant difference: winner, loser and measure."""

    winner: str
    loser: str
    measure: str


def significant_differences(sheet: ComparisonSheet) -> Iterator[SignificantDifference]:
    """Yield the significant differences, in the order of the pairs."""
    for row in sheet.pairs.iter_rows(named=True):
        if mark := significance_mark(row):
            a, b = row["a"], row["b"]
            winner, loser = (b, a) if mark == BETTER else (a, b)
            yield SignificantDifference(winner, loser, row["measure"])


def run_letter(at: int) -> str:
    """Return the letter of the run at an index: a, b, … z, A, … Z, aa, ab, …."""
    more, last = divmod(at, len(ascii_letters))
    return (run_letter(more - 1) if more else "") + ascii_letters[last]
