"""`tune_fusion`: choose the parameters of a fusion, and estimate their value on other queries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from karat import checks
from karat.arrays import Flags, Ints
from karat.conventions import Conventions
from karat.data.fusion.candidates import Candidates
from karat.data.fusion.fused_run import (
    check_depth,
    fused_run,
    named_runs,
    warn_of_missing_queries,
    warn_of_separate_runs,
)
from karat.data.fusion.methods import PARAMETERS, FusionSettings, tuning_grid
from karat.data.run import Run
from karat.errors import InputError, MeasureError, counted, without_warnings
from karat.evaluation.evaluator import Evaluator
from karat.evaluation.result import Result
from karat.live.failures import MAX_FAILED
from karat.measures import Measure, ScoreTable
from karat.measures.name_parser import AnyMeasure, parse_all


@dataclass(frozen=True, eq=False, repr=False)
class FusionTuning(Result):
    """The result of `tune_fusion`: the chosen parameters and what to expect of them.

    Parameters
    ----------
    measure : Measure
        The measure that was optimized.
    run : Run
        The run fused with the chosen parameters.
    parameters : dict
        The chosen parameters, such as {"weights": (0.7, 0.3)}.
    tuned : float
        The value with the chosen parameters on all queries. It is optimistic, because the same
        queries were used to choose them.
    cross_validated : float
        The value if the parameters for each query are chosen on the queries of the other folds.
    default : float
        The value with the default parameters, on the same queries.
    default_parameters : dict
        The default parameters; equal weights for methods with weights.
    single : dict
        The value of each run on its own.
    folds : DataFrame
        One row per fold: fold, queries, the parameter that was chosen on the other folds, and the
        value of this and of the default on the queries of the fold.
    grid : DataFrame
        One row per setting that was tried: the parameter, and the value on all queries.
    n_queries : int
        The number of queries with a value.
    seed : int
        The seed of the folds.

    Examples
    --------
    >>> gold = {f"q{n}": ["a"] for n in range(10)}
    >>> good, bad = {q: {"a": 2, "b": 1} for q in gold}, {q: {"b": 3, "a": 1} for q in gold}
    >>> tuning = tune_fusion(gold, {"good": good, "bad": bad}, "RR", method="weighted", folds=2)
    >>> tuning.parameters, tuning.tuned, tuning.cross_validated, tuning.default
    ({'weights': (0.55, 0.45)}, 1.0, 1.0, 0.5)
    """

    measure: Measure
    run: Run
    parameters: dict[str, Any]
    tuned: float
    cross_validated: float
    default: float
    default_parameters: dict[str, Any]
    single: dict[str, float | None]
    folds: pl.DataFrame
    grid: pl.DataFrame
    n_queries: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """Return the values, the parameters, the folds and the grid as plain data."""
        return {
            "measure": self.measure.name,
            "queries": self.n_queries,
            "seed": self.seed,
            "settings": self.run.settings,
            "tuned": {"value": self.tuned, "parameters": self.parameters},
            "cross_validated": {"value": self.cross_validated, "folds": self.folds.to_dicts()},
            "default": {"value": self.default, "parameters": self.default_parameters},
            "single": self.single,
            "grid": self.grid.to_dicts(),
        }

    def __repr__(self) -> str:
        values = (self.tuned, self.cross_validated, self.default)
        tuned, cross_validated, default = map(self.measure.format, values)
        return (
            f"<FusionTuning {self.measure}: {tuned} with {format_parameters(self.parameters)}, "
            f"{cross_validated} cross-validated, {default} by default>"
        )


def tune_fusion(
    gold: Any,
    runs: Mapping[str, Any] | Iterable[Any],
    measure: AnyMeasure = "nDCG@10",
    *,
    method: str = "rrf",
    normalization: str | None = None,
    folds: int = 5,
    seed: int = 0,
    depth: int | None = None,
    name: str | None = None,
    conventions: Conventions | dict[str, Any] | None = None,
    fail_on_error: float = MAX_FAILED,
) -> FusionTuning:
    """Choose the parameters of a fusion that are best for gold, with cross-validation.

    All settings of a grid are tried: weights with the sum 1 (in steps of 0.05 for two runs, 0.1 for
    three, 0.2 for four), or values of k, sigma, phi or gamma. If several settings are equally
    good, the default is preferred, then the first of the grid.

    The value of the best setting on the same queries is optimistic. For an honest estimate, the
    queries are divided into folds. For the queries of each fold, the setting is chosen on the
    queries of all other folds. The folds depend only on the query ids and the seed.

    Parameters
    ----------
    gold : path, table, dict, records or Gold
        What should be found.
    runs : {name: run} or list of runs
        At least two runs: paths, tables, dicts, records or `Run` objects.
    measure : str, Measure or function, default "nDCG@10"
        The measure to optimize.
    method : str, default "rrf"
        The method: "rrf" (k), "logn_isr" (sigma), "rbc" (phi), "combgmnz" (gamma), or "weighted",
        "wmnz", "mixed", "borda" or "condorcet" (weights).
    normalization : str, default None
        How scores are made comparable, as for `karat.fuse`.
    folds : int, default 5
        The number of folds, at least 2.
    seed : int, default 0
        The seed that assigns queries to folds.
    depth : int, default None
        The number of items to keep per query in the fused run. None keeps all.
    name : str, default None
        The name of the fused run. None makes one from the method and the names of the runs.
    conventions : Conventions or dict, default None
        How corner cases are scored, such as {"missing": "skip"}.
    fail_on_error : float, default 0.05
        Raise a RetrieverError if more than this share of the queries failed in a run; 1 allows all
        to fail. A query that failed in all runs is scored as if nothing was retrieved.

    Returns
    -------
    FusionTuning
        The chosen parameters, the fused run, and the tuned, cross-validated and default values.

    Raises
    ------
    InputError
        If the method has nothing to tune, or if there are fewer queries than folds.

    Examples
    --------
    >>> gold = {f"q{n}": ["a"] for n in range(10)}
    >>> one = {q: ["a", "b", "c"] for q in gold}
    >>> two = {q: ["c", "b", "a"] for q in gold}
    >>> tuning = tune_fusion(gold, [one, two], "RR", method="borda", folds=2)
    >>> tuning
    <FusionTuning RR: 1.000 with weights 0.55, 0.45, 1.000 cross-validated, 0.333 by default>
    """
    checks.integer(folds, "folds", least=2, hint="for example 5")
    checks.integer(seed, "seed", least=0, hint="for example 0")
    check_depth(depth)
    target = _checked_measure(measure)
    named = named_runs(runs)
    grid = tuning_grid(method, len(named))
    settings = [_settings(method, len(named), normalization, point) for point in grid]
    evaluator = Evaluator(gold, target, conventions=conventions, fail_on_error=fail_on_error)
    warn_of_missing_queries(named)
    candidates = Candidates.of(named)
    warn_of_separate_runs(candidates)
    tables = _tables(evaluator, candidates, settings, _needed_depth(target, depth))
    with _without_warnings():
        single = {run: evaluator(named[run], name=run).table.value(target) for run in named}
    in_fold = _folds(tables[0], target, folds, seed)
    is_used = in_fold >= 0
    values = [_value(table, is_used, target) for table in tables]
    best = _best(values, target)
    chosen = []
    for fold in range(folds):
        others = is_used & (in_fold != fold)
        chosen.append(_best([_value(table, others, target) for table in tables], target))
    held_out = [tables[index].rows(_rows(in_fold == fold)) for fold, index in enumerate(chosen)]
    run = fused_run(candidates, settings[best], depth=depth, name=name)
    tuning = {"measure": target.name, "folds": folds, "seed": seed}
    return FusionTuning(
        measure=target,
        run=replace(run, settings=run.settings | {"tuned": tuning}),
        parameters=grid[best],
        tuned=values[best],
        cross_validated=_value_of(ScoreTable.concat(held_out), target),
        default=values[0],
        default_parameters=grid[0],
        single=single,
        folds=pl.DataFrame(
            {
                "fold": range(1, folds + 1),
                "queries": [table.frame.height for table in held_out],
                **_columns([grid[index] for index in chosen]),
                "value": [_value_of(table, target) for table in held_out],
                "default": [_value(tables[0], in_fold == fold, target) for fold in range(folds)],
            }
        ),
        grid=pl.DataFrame({**_columns(grid), "value": values}),
        n_queries=int(np.count_nonzero(is_used)),
        seed=seed,
    )


def format_parameters(parameters: Mapping[str, Any]) -> str:
    """Return parameters as text.

    >>> format_parameters({"k": 60}), format_parameters({"weights": (0.7, 0.3)})
    ('k 60', 'weights 0.7, 0.3')
    """
    parts = []
    for name, value in parameters.items():
        numbers = value if isinstance(value, Sequence) else [value]
        parts.append(f"{name} {', '.join(f'{number:.3g}' for number in numbers)}")
    return ", ".join(parts)


def _columns(points: Sequence[Mapping[str, Any]]) -> dict[str, pl.Series]:
    """Return a column for each parameter; a list of weights is one value."""
    return {
        name: pl.Series(name, [point[name] for point in points], strict=False) for name in points[0]
    }


def _checked_measure(measure: AnyMeasure) -> Measure:
    measures = parse_all(measure)
    if len(measures) > 1:
        raise MeasureError(
            f"a fusion is tuned for one measure, got {', '.join(map(str, measures))}",
            hint="name the most important measure; evaluate the fused run for the others",
        )
    if not measures[0].declaration.reads.reads_gold:
        raise MeasureError(
            f"a fusion cannot be tuned for {measures[0]}, which does not depend on gold",
            hint="use a measure such as nDCG@10",
        )
    return measures[0]


def refuse_fixed_parameters(parameters: Mapping[str, float], weights: Any) -> None:
    """Raise an error if parameters are set although they are to be tuned."""
    fixed = [name for name, value in parameters.items() if value != PARAMETERS[name].default]
    if weights is not None:
        fixed.append("weights")
    if fixed:
        raise InputError(
            "tuning chooses the parameters of the method, so they cannot be set",
            field=fixed[0],
            hint=f"remove {fixed[0]}, or do not tune",
        )


def _settings(
    method: str, n_runs: int, normalization: str | None, point: Mapping[str, Any]
) -> FusionSettings:
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return FusionSettings.of(method, n_runs, normalization, **{**defaults, **point})


def _needed_depth(measure: Measure, depth: int | None) -> int | None:
    """Return how many items of each list the measure reads; None if it may read all."""
    if not isinstance(measure.cutoff, int):
        return depth
    return measure.cutoff if depth is None else min(depth, measure.cutoff)


def _tables(
    evaluator: Evaluator,
    candidates: Candidates,
    settings: Sequence[FusionSettings],
    depth: int | None,
) -> list[ScoreTable]:
    """Score each setting; warnings are shown only once, since they are the same for all."""
    first = evaluator(fused_run(candidates, settings[0], depth=depth)).table
    with _without_warnings():
        others = [
            evaluator(fused_run(candidates, setting, depth=depth)).table for setting in settings[1:]
        ]
    return [first, *others]


@contextmanager
def _without_warnings() -> Iterator[None]:
    with without_warnings():
        yield


def _folds(table: ScoreTable, measure: Measure, n_folds: int, seed: int) -> Ints:
    """Return the fold of each query, from 0; -1 if the query has no value.

    The queries are sorted by a hash of their id and the seed, and then dealt out in turn, so that
    the folds have equal sizes.
    """
    has_value = table.frame[measure.name].is_not_null().to_numpy()
    query_ids = table.frame["query_id"].to_list()
    keys = {
        row: hashlib.sha256(f"{seed}\0{query_ids[row]}".encode()).digest()
        for row in np.flatnonzero(has_value).tolist()
    }
    if len(keys) < n_folds:
        raise InputError(
            f"{counted(len(keys), 'query')} cannot be divided into {n_folds} folds",
            field="folds",
            hint="use fewer folds, or more queries with gold",
        )
    folds = np.full(len(query_ids), -1)
    folds[sorted(keys, key=keys.__getitem__)] = np.arange(len(keys)) % n_folds
    return folds


def _value(table: ScoreTable, is_used: Flags, measure: Measure) -> float:
    return _value_of(table.rows(_rows(is_used)), measure)


def _value_of(table: ScoreTable, measure: Measure) -> float:
    value = table.value(measure)
    assert value is not None, "queries without a value are in no fold"
    return value


def _rows(is_used: Flags) -> pl.Series:
    return pl.Series(np.flatnonzero(is_used))


def _best(values: Sequence[float], measure: Measure) -> int:
    """Return the index of the best value, the first if several are equal."""
    best = 0
    for index, value in enumerate(values):
        if measure.is_better(value, values[best]):
            best = index
    return best
