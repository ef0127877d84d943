"""The methods of fusion: each is declared once, with its formula and the paper it comes from.

A kernel gets all queries at once and returns one score per candidate. Values of different runs are
added in ascending order, so that the result does not depend on the order of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from karat import checks
from karat.arrays import Floats, Ints
from karat.data.fusion.candidates import Candidates
from karat.data.fusion.normalization import NORMALIZATIONS, borda_points, normalized
from karat.data.fusion.pairwise_majority import majority_order
from karat.errors import InputError, counted

_FOX = "Fox and Shaw 1994, Combination of multiple searches, TREC-2"
_MOURAO = (
    "Mourão, Martins and Magalhães 2014, Multimodal medical information retrieval with "
    "unsupervised rank fusion, Computerized Medical Imaging and Graphics 39"
)
_WU = "Wu and Crestani 2002, Data fusion with estimated weights, CIKM"


@dataclass(frozen=True)
class Parameter:
    """A number that a method depends on: its default, its limits and the values to tune over."""

    name: str
    default: float
    is_valid: Callable[[float], bool]
    limits: str
    grid: tuple[float, ...]

    def check(self, value: Any) -> float:
        """Return the number, or raise an InputError."""
        number = checks.finite(value, self.name, hint=f"use {self.limits}")
        if not self.is_valid(number):
            raise InputError(
                f"must be {self.limits}, got {value!r}",
                field=self.name,
                hint=f"the default is {self.default:g}",
            )
        # 60 and 60.0 are the same setting, and are written to files in the same way.
        return int(number) if float(number).is_integer() else number


_AT_LEAST_0 = "a number of at least 0"
PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            "k",
            60,
            lambda k: k >= 0,
            _AT_LEAST_0,
            (60, 0, 1, 2, 5, 10, 20, 30, 40, 50, 80, 100, 150, 200, 300, 500, 1000),
        ),
        Parameter(
            "sigma",
            0.01,
            lambda sigma: sigma >= 0,
            _AT_LEAST_0,
            (0.01, 0.001, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
        ),
        Parameter(
            "phi",
            0.9,
            lambda phi: 0 < phi < 1,
            "a number above 0 and below 1",
            (0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.95, 0.98, 0.99, 0.995),
        ),
        Parameter(
            "gamma",
            2,
            lambda gamma: gamma >= 0,
            _AT_LEAST_0,
            (2, 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2.5, 3),
        ),
    )
}


@dataclass(frozen=True, eq=False)
class FusionInput:
    """What a kernel reads."""

    candidates: Candidates
    values: Floats
    """Ranks or normalized scores: one row per candidate and one column per run, NaN if absent."""
    weights: Floats
    """One weight per run; all 1 if none were set."""

    @property
    def n_runs(self) -> Ints:
        """The number of runs that have a value for each candidate."""
        counts: Ints = np.sum(~np.isnan(self.values), axis=1, dtype=np.int64)
        return counts


Kernel = Callable[..., Floats]


@dataclass(frozen=True)
class Method:
    """A method of fusion."""

    name: str
    formula: str
    """The score of an item; sums are over the runs that retrieved it."""
    reference: str
    reads: Literal["ranks", "scores"]
    kernel: Kernel
    parameters: tuple[str, ...] = ()
    weights: Literal["none", "optional", "required"] = "none"


METHODS: dict[str, Method] = {}


def _method(
    name: str,
    formula: str,
    reference: str,
    reads: Literal["ranks", "scores"],
    *,
    parameters: tuple[str, ...] = (),
    weights: Literal["none", "optional", "required"] = "none",
) -> Callable[[Kernel], Kernel]:
    """Return a decorator that declares a method."""

    def declare(kernel: Kernel) -> Kernel:
        METHODS[name] = Method(name, formula, reference, reads, kernel, parameters, weights)
        return kernel

    return declare


@_method(
    "rrf",
    "Σ w / (k + rank)",
    "Cormack, Clarke and Büttcher 2009, Reciprocal rank fusion outperforms Condorcet and "
    "individual rank learning methods, SIGIR",
    "ranks",
    parameters=("k",),
    weights="optional",
)
def _rrf(data: FusionInput, k: float) -> Floats:
    return reciprocal_rank_scores(data.values, data.weights, k)


@_method("combsum", "Σ score", _FOX, "scores")
def _combsum(data: FusionInput) -> Floats:
    return _sum(data.values)


@_method("combmnz", "n · Σ score, where n is the number of runs that have the item", _FOX, "scores")
def _combmnz(data: FusionInput) -> Floats:
    return _sum(data.values) * data.n_runs


@_method("combanz", "Σ score / n", _FOX, "scores")
def _combanz(data: FusionInput) -> Floats:
    return _sum(data.values) / data.n_runs


@_method("combmed", "median of the scores", _FOX, "scores")
def _combmed(data: FusionInput) -> Floats:
    ordered = np.sort(data.values, axis=1)  # NaN comes last
    n_runs, rows = data.n_runs, np.arange(data.values.shape[0])
    return (ordered[rows, (n_runs - 1) // 2] + ordered[rows, n_runs // 2]) / 2


@_method("combmin", "lowest score", _FOX, "scores")
def _combmin(data: FusionInput) -> Floats:
    lowest: Floats = np.fmin.reduce(data.values, axis=1)
    return lowest


@_method("combmax", "highest score", _FOX, "scores")
def _combmax(data: FusionInput) -> Floats:
    highest: Floats = np.fmax.reduce(data.values, axis=1)
    return highest


@_method(
    "combgmnz",
    "n^gamma · Σ score",
    "Lee 1997, Analyses of multiple evidence combination, SIGIR",
    "scores",
    parameters=("gamma",),
)
def _combgmnz(data: FusionInput, gamma: float) -> Floats:
    factor: Floats = data.n_runs.astype(np.float64) ** gamma
    return _sum(data.values) * factor


@_method("isr", "n · Σ 1 / rank²", _MOURAO, "ranks")
def _isr(data: FusionInput) -> Floats:
    return _sum(1 / data.values**2) * data.n_runs


@_method("log_isr", "ln(n) · Σ 1 / rank²", _MOURAO, "ranks")
def _log_isr(data: FusionInput) -> Floats:
    return _sum(1 / data.values**2) * np.log(data.n_runs)


@_method("logn_isr", "ln(n + sigma) · Σ 1 / rank²", _MOURAO, "ranks", parameters=("sigma",))
def _logn_isr(data: FusionInput, sigma: float) -> Floats:
    factor: Floats = np.log(data.n_runs + sigma)
    return _sum(1 / data.values**2) * factor


@_method(
    "borda",
    "Σ w · (number of candidates − rank + 1); the candidates that a run did not retrieve share "
    "its remaining points",
    "Aslam and Montague 2001, Models for metasearch, SIGIR",
    "ranks",
    weights="optional",
)
def _borda(data: FusionInput) -> Floats:
    return _sum(data.weights * borda_points(data.candidates))


@_method(
    "condorcet",
    "number of candidates − position + 1, in the order that the majority of the runs prefers",
    "Montague and Aslam 2002, Condorcet fusion for improved retrieval, CIKM",
    "ranks",
    weights="optional",
)
def _condorcet(data: FusionInput) -> Floats:
    candidates = data.candidates
    # Where the majority does not decide, for example between two runs, the order is that of Borda.
    start = np.lexsort((-_borda(data), candidates.query))
    order = majority_order(start, candidates.ranks, data.weights, candidates.counts)
    counts = candidates.counts
    position = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
    scores = np.empty(order.size)
    scores[order] = np.repeat(counts, counts) - position
    return scores


@_method("weighted", "Σ w · score", _WU, "scores", weights="required")
def _weighted(data: FusionInput) -> Floats:
    return weighted_sums(data.values, data.weights)


@_method("wmnz", "Σ score · Σ w", _WU, "scores", weights="required")
def _wmnz(data: FusionInput) -> Floats:
    weights = np.where(np.isnan(data.values), np.nan, data.weights)
    return _sum(data.values) * _sum(weights)


@_method("mixed", "√n · Σ w · score", _WU, "scores", weights="required")
def _mixed(data: FusionInput) -> Floats:
    return _sum(data.weights * data.values) * np.sqrt(data.n_runs)


@_method(
    "rbc",
    "Σ w · (1 − phi) · phi^(rank − 1)",
    "Bailey, Moffat, Scholer and Thomas 2017, Retrieval consistency in the presence of query "
    "variations, SIGIR",
    "ranks",
    parameters=("phi",),
    weights="optional",
)
def _rbc(data: FusionInput, phi: float) -> Floats:
    return _sum(data.weights * (1 - phi) * phi ** (data.values - 1))


def reciprocal_rank_scores(ranks: Floats, weights: Floats, k: float) -> Floats:
    """Return Σ w / (k + rank) of each row: one column per list, NaN if it does not have the item.

    The hybrid retriever fuses its two lists with this function, too.
    """
    return _sum(weights / (k + ranks))


def weighted_sums(values: Floats, weights: Floats) -> Floats:
    """Return Σ w · value of each row; the hybrid retriever uses this function, too."""
    return _sum(weights * values)


def _sum(values: Floats) -> Floats:
    """Return the sum of each row without NaN, added in ascending order."""
    ordered = np.sort(np.where(np.isnan(values), 0.0, values), axis=1)
    total = np.zeros(values.shape[0])
    for column in ordered.T:
        total += column
    return total


@dataclass(frozen=True)
class FusionSettings:
    """A method with its normalization, weights and parameters, checked."""

    method: str = "rrf"
    normalization: str | None = None
    weights: tuple[float, ...] | None = None
    parameters: Mapping[str, float] = field(default_factory=dict, hash=False)

    @classmethod
    def of(
        cls,
        method: str,
        n_runs: int,
        normalization: str | None = None,
        weights: Sequence[float] | None = None,
        **parameters: float,
    ) -> FusionSettings:
        """Check the settings for a number of runs.

        Parameters that the method does not have must be at their defaults.
        """
        declared = METHODS[checks.one_of(method, "method", METHODS)]
        for name, value in parameters.items():
            if name not in declared.parameters and value != PARAMETERS[name].default:
                users = [other.name for other in METHODS.values() if name in other.parameters]
                raise _unused(method, name, users)
        return cls(
            method,
            _checked_normalization(declared, normalization),
            _checked_weights(declared, weights, n_runs),
            {name: PARAMETERS[name].check(parameters[name]) for name in declared.parameters},
        )

    def scores(self, candidates: Candidates) -> Floats:
        """Return the fused score of each candidate."""
        method = METHODS[self.method]
        if self.normalization is None:
            values = candidates.ranks
        else:
            need = self.method
            if self.normalization != "none":
                need += f" with the normalization {self.normalization}"
            values = normalized(candidates, self.normalization, need)
        weights = np.ones(len(candidates.runs)) if self.weights is None else np.array(self.weights)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = method.kernel(FusionInput(candidates, values, weights), **self.parameters)
        if not np.isfinite(scores).all():
            query = candidates.pairs["query_id"][int(np.isfinite(scores).argmin())]
            raise InputError(
                f"query {query!r}: the scores are too large to be combined",
                field="score",
                hint="use a method that needs only ranks, such as rrf",
            )
        return scores + 0.0  # -0.0 and 0.0 are a tie

    def as_dict(self) -> dict[str, Any]:
        """Return the settings that the method uses, as plain data."""
        values: dict[str, Any] = {"method": self.method, **self.parameters}
        if self.normalization is not None:
            values["normalization"] = self.normalization
        if self.weights is not None:
            values["weights"] = list(self.weights)
        return values


def _checked_normalization(method: Method, normalization: str | None) -> str | None:
    if method.reads == "scores":
        return checks.one_of(normalization or NORMALIZATIONS[0], "normalization", NORMALIZATIONS)
    if normalization is not None and (
        checks.one_of(normalization, "normalization", NORMALIZATIONS) != "none"
    ):
        raise InputError(
            f"{method.name} uses ranks, not scores, so there is nothing to normalize",
            field="normalization",
            hint="remove the normalization, or choose a method that uses scores, such as combsum",
        )
    return None


def _checked_weights(
    method: Method, weights: Sequence[float] | None, n_runs: int
) -> tuple[float, ...] | None:
    if weights is None:
        if method.weights == "required":
            raise InputError(
                f"{method.name} needs one weight per run",
                field="weights",
                hint="for example 0.7,0.3 for two runs, or tune the weights",
            )
        return None
    if method.weights == "none":
        weighted = [other.name for other in METHODS.values() if other.weights != "none"]
        raise _unused(method.name, "weights", weighted)
    if len(weights) != n_runs:
        raise InputError(
            f"expected one weight per run ({n_runs}), got {len(weights)}",
            field="weights",
            hint="give the weights in the order of the runs",
        )
    numbers = tuple(
        float(checks.finite(weight, "weights", hint="use numbers such as 0.7"))
        for weight in weights
    )
    if min(numbers) < 0 or max(numbers) == 0:
        problem = "must not be negative" if min(numbers) < 0 else "must not all be 0"
        raise InputError(
            f"{problem}, got {', '.join(f'{number:g}' for number in numbers)}",
            field="weights",
            hint="use a weight of 0 for a run that should not count, and a positive one for others",
        )
    return numbers


def _unused(method: str, setting: str, methods: Sequence[str]) -> InputError:
    return InputError(
        f"{method} does not use {setting}",
        field=setting,
        hint=f"remove the setting, or choose the method {' or '.join(methods)}",
    )


def tuning_grid(method: str, n_runs: int) -> list[dict[str, Any]]:
    """Return the settings to tune a method over, the defaults first.

    Weights are on a grid of the simplex: their sum is 1, and they are multiples of 0.05 for two
    runs, of 0.1 for three and of 0.2 for four.
    """
    declared = METHODS[checks.one_of(method, "method", METHODS)]
    if declared.parameters:
        (name,) = declared.parameters
        return [{name: value} for value in PARAMETERS[name].grid]
    if declared.weights == "none":
        tunable = [m.name for m in METHODS.values() if m.parameters or m.weights != "none"]
        raise InputError(
            f"{method} has no parameters to tune",
            field="method",
            hint=f"choose one of {', '.join(tunable)}",
        )
    if n_runs not in _STEPS:
        raise InputError(
            f"weights can be tuned for at most {max(_STEPS)} runs, got {counted(n_runs, 'run')}",
            field="runs",
            hint="fuse fewer runs, or choose a method without weights, such as rrf",
        )
    equal = (1 / n_runs,) * n_runs
    weights = [tuple(part / _STEPS[n_runs] for part in parts) for parts in _compositions(n_runs)]
    return [{"weights": weight} for weight in dict.fromkeys([equal, *weights])]


_STEPS = {2: 20, 3: 10, 4: 5}
"""For each number of runs, the number of steps of the weights between 0 and 1."""


def _compositions(n_runs: int) -> list[tuple[int, ...]]:
    """Return all ways to split the steps between runs."""
    steps = _STEPS[n_runs]
    parts = np.indices((steps + 1,) * n_runs).reshape(n_runs, -1).T
    return [tuple(row) for row in parts[parts.sum(axis=1) == steps].tolist()]
