"""What is shown of a comparison, whatever shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from karat.errors import counted
from karat.format import probability
from karat.report.calculation import Change
from karat.report.document import document
from karat.report.sheet import Sheet
from karat.report.tables import BETTER, WORSE, declaration, measure_named
from karat.stats.comparison import PAIRS, Choices
from karat.stats.corrections import TITLES
from karat.stats.inference import FEW_GEOMETRIC
from karat.stats.power import ALPHA

Row = dict[str, Any]
"""A row of pairs: a pair of runs, and a measure."""

FEW_PAIRS = 10
"""More pairs are shown below each other, and without the queries that moved."""


@dataclass(frozen=True)
class Moved:
    """A query that moved, and what changed in its list."""

    a: str
    b: str
    measure: str
    query_id: str
    value_a: float
    value_b: float
    difference: float
    changes: list[Change] | None
    """None where the lists are not at hand."""
    text: str | None = None


@dataclass(frozen=True)
class ComparisonSheet:
    """The numbers of a comparison, and what must stand beside them."""

    runs: list[Sheet]
    choices: Choices
    pairs: pl.DataFrame
    groups: pl.DataFrame | None
    moved: list[Moved] = field(default_factory=list)
    difference: float | None = None
    needed: pl.DataFrame | None = None
    """How many queries it would take to show the difference, where that was asked."""

    @property
    def names(self) -> list[tuple[str, str]]:
        """The pairs, each as the names of a and b."""
        return list(self.pairs.select("a", "b").unique(maintain_order=True).iter_rows())

    @property
    def many(self) -> bool:
        """Whether there are too many pairs to show a table of each."""
        return len(self.names) > FEW_PAIRS

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in the order asked."""
        return self.pairs["measure"].unique(maintain_order=True).to_list()

    def label(self, measure: str) -> str:
        """Return the name that is printed for a measure."""
        return self.runs[0].label(measure)

    @property
    def group_fields(self) -> list[str]:
        """The fields that the groups are made by."""
        return [] if self.groups is None else [c for c in self.groups.columns if c not in PAIRS]

    def corrects(self, frame: pl.DataFrame) -> bool:
        """Tell whether there is more than one test to correct for."""
        return self.choices.correction != "none" and tests(frame) > 1

    def remarks(self) -> Iterator[str]:
        """Say of each pair which queries it does not rest on, and what cannot be shown."""
        for a, b in self.names:
            own = self.pairs.filter(pl.col("a") == a, pl.col("b") == b)
            apart = own.filter(pl.col("left_out") > 0)
            for n, part in sorted(apart.partition_by("left_out", as_dict=True).items()):
                labels = ", ".join(map(self.label, part["measure"]))
                named = "" if part.height == own.height else f" of {labels}"
                only = f"{counted(int(n[0]), 'query')} with a value in only one of the two left out"
                yield f"{b} − {a}: {only}{named}"
            yield from self._of_few(a, b, own)
            yield from self._alone(a, b, own)
        yield from self._ratios()
        if any(moved.changes is None for moved in self.moved):
            yield "what changed in lists is not known where scores were given for a run"

    def _of_few(self, a: str, b: str, rows: pl.DataFrame) -> Iterator[str]:
        """State where so few queries differ that no test can show anything."""
        few = rows.filter(pl.col("method") == "few").with_columns(
            differing=pl.col("wins") + pl.col("losses")
        )
        parts = few.partition_by("differing", "n", as_dict=True, maintain_order=True)
        for (differing, n), part in parts.items():
            labels = ", ".join(map(self.label, part["measure"]))
            if differing:
                only = f"only {differing} of {n} queries differ by {labels}"
                yield f"{b} − {a}: {only}, too few to test"
            else:
                yield f"{b} − {a}: no query differs by {labels}"

    def _alone(self, a: str, b: str, rows: pl.DataFrame) -> Iterator[str]:
        """State which differences are significant alone, but not after correction."""
        for row in rows.filter(pl.col("p") < ALPHA, pl.col("p_corrected") >= ALPHA).iter_rows(
            named=True
        ):
            yield f"{b} − {a}, {self.label(row['measure'])}: {self.alone(row)}"

    def alone(self, row: Row) -> str:
        """Return the sentence for a difference that is significant only before correction."""
        how = TITLES[self.choices.correction]
        return (
            f"significant alone (p {probability(row['p'])}), not after {how} over "
            f"{tests(self.pairs):,} pairs (p {probability(row['p_corrected'])})"
        )

    def _ratios(self) -> Iterator[str]:
        """Show differences of geometric means as ratios, with their intervals."""
        for row in self.pairs.drop_nulls("low").iter_rows(named=True):
            if declaration(row["measure"]).combine == "geometric" and row["value_a"]:
                ratio, low, high = (
                    1 + row[name] / row["value_a"] for name in ("difference", "low", "high")
                )
                few = "" if row["n"] >= FEW_GEOMETRIC else ", too narrow with so few queries"
                yield (
                    f"{self.label(row['measure'])} of {row['b']} / {row['a']}: {ratio:.3f} "
                    f"[{low:.3f}, {high:.3f}]{few}"
                )


def tests(frame: pl.DataFrame) -> int:
    """Return how many tests of a measure there are, at most: what it was corrected over."""
    return max(part["p_corrected"].count() for part in frame.partition_by("measure"))


def comparison_document(sheet: ComparisonSheet) -> dict[str, Any]:
    """Return the numbers as plain data; absent: not asked; null: undefined."""
    whole = document(sheet.runs) | {
        "baseline": sheet.choices.baseline,
        "test": sheet.choices.test,
        "correction": sheet.choices.correction,
        "tests": tests(sheet.pairs),
        "confidence": sheet.choices.confidence,
        "pairs": _labelled(sheet, sheet.pairs.to_dicts()),
    }
    if sheet.groups is not None:
        numbers = _labelled(sheet, sheet.groups.select(PAIRS.keys()).to_dicts())
        labels = sheet.groups.select(sheet.group_fields).to_dicts()
        whole["groups"] = [{"by": by, **row} for by, row in zip(labels, numbers, strict=True)]
        whole["group_tests"] = tests(sheet.groups)
    if sheet.moved:
        whole["moved"] = _labelled(sheet, [_moved(moved) for moved in sheet.moved])
    if sheet.needed is not None:
        whole["queries_needed"] = _labelled(sheet, sheet.needed.to_dicts())
    return whole


def _labelled(sheet: ComparisonSheet, rows: list[Row]) -> list[Row]:
    return [row | {"measure": sheet.label(row["measure"])} for row in rows]


def _moved(moved: Moved) -> dict[str, Any]:
    told = asdict(moved)
    if moved.text is None:
        del told["text"]
    return told


def mark(row: Row) -> str:
    """Return what stands before a difference that is shown: whether b is better or worse."""
    difference, p = row["difference"], row["p_corrected"]
    # Signed ranks may tell runs apart whose means are the same.
    if p is None or p >= ALPHA or not difference:
        return ""
    return BETTER if measure_named(row["measure"]).is_better(difference, 0.0) else WORSE
