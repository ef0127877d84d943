"""Comparison of runs: one row per pair of runs and measure."""

from __future__ import annotations

import math
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

PAIRS: dict[str, type[pl.DataType]] = {
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
    "draws": pl.Int64,
}
CLUSTERS: dict[str, type[pl.DataType]] = {"clusters": pl.Int64, "clusters_differing": pl.Int64}
"""Further columns if queries are clustered: the clusters, and those on which the runs differ."""
Tables = Mapping[str, ScoreTable]


@dataclass(frozen=True)
class ComparisonOptions:
    """Which runs are compared, with which test and which correction."""

    baseline: str | None = None
    test: str = "randomization"
    correction: str = "holm"
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        for field, names in (("test", TESTS), ("correction", CORRECTIONS)):
            if getattr(self, field) not in names:
                raise InputError(
                    f"unknown {field} {getattr(self, field)!r}",
                    field=field,
                    hint=f"use one of {', '.join(names)}",
                )
        if not 0 < self.confidence < 1:
            raise InputError(
                f"must be above 0 and below 1, got {self.confidence!r}",
                field="confidence",
                hint="0.95 is the default",
            )

    def pairs(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return the pairs to compare: each run with the baseline, or all runs with each other."""
        if self.baseline is None:
            return list(combinations(names, 2))
        return [(self.baseline, name) for name in names if name != self.baseline]


def compare_pairs(
    tables: Tables,
    options: ComparisonOptions | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> pl.DataFrame:
    """Compare runs; p-values are corrected over the pairs of each measure.

    Without `pairs`, the options decide which runs are compared.
    """
    options = options or ComparisonOptions()
    rows = _comparison_rows(tables, options, pairs)
    if options.correction == "tukey":
        return _add_tukey(rows, tables)
    return _add_corrected(rows, options.correction)


def compare_groups(
    tables: Tables,
    queries: pl.DataFrame,
    fields: Sequence[Field],
    options: ComparisonOptions | None = None,
) -> pl.DataFrame:
    """Compare runs per group of queries; p-values are corrected over pairs and groups."""
    options = options or ComparisonOptions()
    if options.correction == "tukey":
        raise InputError(
            "the correction 'tukey' cannot be used with groups of queries",
            field="correction",
            hint="use holm, bh or bonferroni",
        )
    frames = []
    for labels, query_ids in group_queries(queries, fields, reserved=PAIRS | CLUSTERS):
        selected = {name: select_queries(table, query_ids) for name, table in tables.items()}
        frames.append(_comparison_rows(selected, options).select(*labels, pl.all()))
    return _add_corrected(pl.concat(frames), options.correction)


def queries_needed(
    tables: Tables, difference: float, options: ComparisonOptions | None = None
) -> pl.DataFrame:
    """Return for each pair and measure how many queries are needed to detect a difference.

    With clusters, these are queries in clusters of the same mean size.
    """
    rows = []
    for a, b, p in _pairs(tables, options or ComparisonOptions()):
        spread = _spread(p)
        rows.append(
            {
                "a": a,
                "b": b,
                "measure": p.measure.name,
                "difference": difference,
                "queries": None if spread is None else _required(p, spread, difference),
            }
        )
    schema = {key: PAIRS[key] for key in ("a", "b", "measure", "difference")}
    return pl.DataFrame(rows, schema=schema | {"queries": pl.Int64})


def _required(p: Pair, spread: float, difference: float) -> int | None:
    units = required_queries(spread, difference)
    return None if units is None else math.ceil(units * p.n / p.units)


def _pairs(
    tables: Tables,
    options: ComparisonOptions,
    names: Sequence[tuple[str, str]] | None = None,
) -> list[tuple[str, str, Pair]]:
    measures: tuple[Measure, ...] = next(iter(tables.values())).measures
    return [
        (a, b, pair(tables[a], tables[b], measure, (a, b)))
        for a, b in (options.pairs(list(tables)) if names is None else names)
        for measure in measures
    ]


def _comparison_rows(
    tables: Tables, options: ComparisonOptions, names: Sequence[tuple[str, str]] | None = None
) -> pl.DataFrame:
    named_pairs = _pairs(tables, options, names)
    inferences = infer([p for _, _, p in named_pairs], options.test, options.confidence)
    rows = []
    for (a, b, p), inference in zip(named_pairs, inferences, strict=True):
        wins, ties, losses = p.counts()
        value_a, value_b, difference = p.a.value, p.b.value, p.difference
        spread = _spread(p)
        rows.append(
            {
                "a": a,
                "b": b,
                "measure": p.measure.name,
                "n": p.n,
                "left_out": p.left_out,
                "value_a": value_a,
                "value_b": value_b,
                "difference": difference,
                "low": inference.interval.low,
                "high": inference.interval.high,
                "method": inference.interval.method,
                "relative": difference / abs(value_a)
                if difference is not None and value_a
                else None,
                "wins": wins,
                "ties": ties,
                "losses": losses,
                "effect": effect_size(p.differences) if p.a.summed else None,
                "p": inference.p[options.test],
                "p_corrected": None,
                **{f"p_{test}": value for test, value in inference.p.items()},
                "detectable": None if spread is None else detectable_difference(spread, p.units),
                "draws": inference.draws,
                "clusters": p.units,
                "clusters_differing": p.n_units_differing,
            }
        )
    clustered = any(table.clusters is not None for table in tables.values())
    return pl.DataFrame(rows, schema=PAIRS | CLUSTERS if clustered else PAIRS)


def _spread(p: Pair) -> float | None:
    """Return the standard deviation of the influences on the difference, None if it is 0."""
    if not p.a.summed or p.units < 2 or p.difference is None:
        return None
    # For a sum over n queries, the difference and its spread are n times those of the mean.
    spread = deviation(p.influence())
    rounding = p.a.rounding * p.a.slope + p.b.rounding * p.b.slope
    return spread if spread > rounding else None


def _add_corrected(rows: pl.DataFrame, how: str) -> pl.DataFrame:
    """Add the p-values corrected per measure; an undefined p-value does not count as a test."""
    p = rows["p"].to_numpy().copy()
    for measure in rows["measure"].unique():
        selected = ((rows["measure"] == measure) & rows["p"].is_not_null()).to_numpy()
        p[selected] = correct(p[selected], how)
    return rows.with_columns(pl.Series("p_corrected", p, nan_to_null=True))


def _add_tukey(rows: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Add the p-values of Tukey's test, over the queries that all runs have a value for."""
    names, corrected = list(tables), []
    p_by_measure: dict[str, Floats] = {}
    for measure in next(iter(tables.values())).measures:
        has_value = pl.col(measure.name).is_not_null()
        query_ids = pl.concat([t.frame.filter(has_value)["query_id"] for t in tables.values()])
        common = query_ids.value_counts().filter(pl.col("count") == len(names))["query_id"]
        samples = [Sample.of(select_queries(table, common), measure) for table in tables.values()]
        if samples[0].summed and samples[0].n:
            p_by_measure[measure.name] = tukey(
                np.column_stack([sample.totals[0] for sample in samples])
            )
    for a, b, name in rows.select("a", "b", "measure").iter_rows():
        p = p_by_measure.get(name)
        corrected.append(None if p is None else p[names.index(a), names.index(b)])
    return rows.with_columns(pl.Series("p_corrected", corrected, pl.Float64))
