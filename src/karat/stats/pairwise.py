"""Runs compared pair by pair: one row a pair and measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from karat.arrays import Floats
from karat.errors import InputError
from karat.measures.registry import Measure
from karat.measures.score_table import ScoreTable
from karat.stats.corrections import CORRECTIONS, correct, tukey
from karat.stats.groups import Field, group_queries, select_queries
from karat.stats.inference import TESTS, infer
from karat.stats.intervals import CONFIDENCE
from karat.stats.paired_tests import effect_size
from karat.stats.pairs import Pair, pair
from karat.stats.power import detectable_difference, required_queries
from karat.stats.samples import Sample, deviation

PAIRS = {
    "a": pl.String,
    "b": pl.String,
    "measure": pl.String,
    "n": pl.Int64,
    "left_out": pl.Int64,
    "value_a": pl.Float64,
    "value_b": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "method": pl.String,
    "relative": pl.Float64,
    "wins": pl.Int64,
    "ties": pl.Int64,
    "losses": pl.Int64,
    "effect": pl.Float64,
    "p": pl.Float64,
    "p_corrected": pl.Float64,
    "p_randomization": pl.Float64,
    "p_t": pl.Float64,
    "p_wilcoxon": pl.Float64,
    "detectable": pl.Float64,
}
Tables = Mapping[str, ScoreTable]


@dataclass(frozen=True)
class ComparisonOptions:
    """Which pairs are compared, by which test, corrected how."""

    baseline: str | None = None
    test: str = "randomization"
    correction: str = "holm"
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        for field, words in (("test", TESTS), ("correction", CORRECTIONS)):
            if getattr(self, field) not in words:
                raise InputError(
                    f"there is no {field} {getattr(self, field)!r}",
                    field=field,
                    hint=f"choose one of {', '.join(words)}",
                )
        if not 0 < self.confidence < 1:
            raise InputError(
                f"{self.confidence!r} does not lie between 0 and 1",
                field="confidence",
                hint="0.95 is usual",
            )

    def pairs(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return which runs are compared: all with the baseline, or all with each other."""
        if self.baseline is None:
            return list(combinations(names, 2))
        return [(self.baseline, name) for name in names if name != self.baseline]


def compare_pairs(tables: Tables, choices: ComparisonOptions | None = None) -> pl.DataFrame:
    """Compare runs: a row a pair and measure, p corrected over the pairs of a measure."""
    choices = choices or ComparisonOptions()
    rows = _rows(tables, choices)
    if choices.correction == "tukey":
        return _tukey(rows, tables)
    return _corrected(rows, choices.correction)


def compare_groups(
    tables: Tables,
    queries: pl.DataFrame,
    fields: Sequence[Field],
    choices: ComparisonOptions | None = None,
) -> pl.DataFrame:
    """Compare runs in each group of queries; p is corrected over the groups as well."""
    choices = choices or ComparisonOptions()
    if choices.correction == "tukey":
        raise InputError(
            "randomized Tukey HSD corrects over the pairs of all queries, not over groups",
            field="correction",
            hint="choose holm, bh or bonferroni where queries are grouped",
        )
    frames = []
    for group, members in group_queries(queries, fields, taken=PAIRS):
        some = {name: select_queries(table, members) for name, table in tables.items()}
        frames.append(_rows(some, choices).select(*group, pl.all()))
    return _corrected(pl.concat(frames), choices.correction)


def queries_needed(
    tables: Tables, difference: float, choices: ComparisonOptions | None = None
) -> pl.DataFrame:
    """Return for each pair and measure how many queries it takes to show a difference."""
    rows = [
        {
            "a": a,
            "b": b,
            "measure": p.measure.name,
            "difference": difference,
            "queries": None
            if (spread := _spread(p)) is None
            else required_queries(spread, difference),
        }
        for a, b, p in _pairs(tables, choices or ComparisonOptions())
    ]
    schema = {key: PAIRS[key] for key in ("a", "b", "measure", "difference")}
    return pl.DataFrame(rows, schema=schema | {"queries": pl.Int64})


def _pairs(tables: Tables, choices: ComparisonOptions) -> list[tuple[str, str, Pair]]:
    measures: tuple[Measure, ...] = next(iter(tables.values())).measures
    return [
        (a, b, pair(tables[a], tables[b], measure, (a, b)))
        for a, b in choices.pairs(list(tables))
        for measure in measures
    ]


def _rows(tables: Tables, choices: ComparisonOptions) -> pl.DataFrame:
    named = _pairs(tables, choices)
    pairs = [p for _, _, p in named]
    rows = []
    for (a, b, p), found in zip(named, infer(pairs, choices.test, choices.confidence), strict=True):
        apart = p.differences
        wins, ties, losses = p.counts()
        one, other, difference = p.a.value, p.b.value, p.difference
        spread = _spread(p)
        rows.append(
            {
                "a": a,
                "b": b,
                "measure": p.measure.name,
                "n": p.n,
                "left_out": p.left_out,
                "value_a": one,
                "value_b": other,
                "difference": difference,
                "low": found.interval.low,
                "high": found.interval.high,
                "method": found.interval.method,
                "relative": difference / abs(one) if difference is not None and one else None,
                "wins": wins,
                "ties": ties,
                "losses": losses,
                "effect": effect_size(apart) if p.a.summed else None,
                "p": found.p[choices.test],
                "p_corrected": None,
                **{f"p_{test}": value for test, value in found.p.items()},
                "detectable": None if spread is None else detectable_difference(spread, p.n),
            }
        )
    return pl.DataFrame(rows, schema=PAIRS)


def _spread(p: Pair) -> float | None:
    """Return the standard deviation of what queries add to the difference, if they differ in it."""
    if not p.a.summed or p.n < 2 or p.difference is None:
        return None
    # The sum over n queries is n times their mean, and so is its spread.
    spread = deviation(p.influence())
    rounding = p.a.rounding * p.a.slope + p.b.rounding * p.b.slope
    return spread if spread > rounding else None


def _corrected(rows: pl.DataFrame, how: str) -> pl.DataFrame:
    """Fill in the corrected p, each measure by itself; a p that is undefined is no test."""
    p = rows["p"].to_numpy().copy()
    for measure in rows["measure"].unique():
        own = ((rows["measure"] == measure) & rows["p"].is_not_null()).to_numpy()
        p[own] = correct(p[own], how)
    return rows.with_columns(pl.Series("p_corrected", p, nan_to_null=True))


def _tukey(rows: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Put the p of Tukey's test beside the raw one, over the queries that all runs have."""
    names, corrected = list(tables), []
    of_measure: dict[str, Floats] = {}
    for measure in next(iter(tables.values())).measures:
        known = [
            t.frame.filter(pl.col(measure.name).is_not_null())["query_id"] for t in tables.values()
        ]
        common = pl.concat(known).value_counts().filter(pl.col("count") == len(names))["query_id"]
        samples = [Sample.of(select_queries(table, common), measure) for table in tables.values()]
        if samples[0].summed and samples[0].n:
            of_measure[measure.name] = tukey(np.column_stack([sample.x for sample in samples]))
    for a, b, name in rows.select("a", "b", "measure").iter_rows():
        p = of_measure.get(name)
        corrected.append(None if p is None else p[names.index(a), names.index(b)])
    return rows.with_columns(pl.Series("p_corrected", corrected, pl.Float64))
