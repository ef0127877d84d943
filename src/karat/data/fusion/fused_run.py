"""`fuse`: combine the ranked lists of several runs into one run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from karat import checks
from karat.arrays import Floats
from karat.data.data_file import path_of
from karat.data.frames import is_table
from karat.data.fusion.candidates import Candidates
from karat.data.fusion.methods import FusionSettings
from karat.data.run import NO_RESULTS, Run
from karat.errors import InputError, counted, for_example, warn

_NAMES_IN_NAME = 3
_EXAMPLES = 3


def fuse(
    runs: Mapping[str, Any] | Iterable[Any],
    method: str = "rrf",
    *,
    normalization: str | None = None,
    weights: Sequence[float] | None = None,
    k: float = 60,
    sigma: float = 0.01,
    phi: float = 0.9,
    gamma: float = 2,
    depth: int | None = None,
    name: str | None = None,
) -> Run:
    """Combine the ranked lists of several runs into one run.

    Items are the same if they have the same id. A query that some runs do not have is fused from
    the runs that have it, with a warning. Items with equal fused scores are ordered by item id,
    descending, as in trec_eval. The result does not depend on the order of rows in files.

    Parameters
    ----------
    runs : {name: run} or list of runs
        At least two runs: paths, tables, dicts, records or `Run` objects.
    method : str, default "rrf"
        How the lists are combined. n is the number of runs that have the item, w the weight of a
        run, and sums are over the runs that have the item.

        ============= ================================== ==========================
        method        score of an item                   reference
        ============= ================================== ==========================
        "rrf"         Σ w / (k + rank)                   Cormack et al. 2009
        "combsum"     Σ score                            Fox and Shaw 1994
        "combmnz"     n · Σ score                        Fox and Shaw 1994
        "combanz"     Σ score / n                        Fox and Shaw 1994
        "combmed"     median of the scores               Fox and Shaw 1994
        "combmin"     lowest score                       Fox and Shaw 1994
        "combmax"     highest score                      Fox and Shaw 1994
        "combgmnz"    n^gamma · Σ score                  Lee 1997
        "isr"         n · Σ 1 / rank²                    Mourão et al. 2014
        "log_isr"     ln(n) · Σ 1 / rank²                Mourão et al. 2014
        "logn_isr"    ln(n + sigma) · Σ 1 / rank²        Mourão et al. 2014
        "borda"       Σ w · Borda points                 Aslam and Montague 2001
        "condorcet"   order preferred by most runs       Montague and Aslam 2002
        "weighted"    Σ w · score                        Wu and Crestani 2002
        "wmnz"        Σ score · Σ w                      Wu and Crestani 2002
        "mixed"       √n · Σ w · score                   Wu and Crestani 2002
        "rbc"         Σ w · (1 - phi) · phi^(rank - 1)   Bailey et al. 2017
        ============= ================================== ==========================
    normalization : str, default None
        How the scores of each list are made comparable, for methods that use scores: "min-max"
        (the default of these methods), "max", "z-score", "sum", "rank", "borda" or "none". The
        normalizations "rank" and "borda" do not need scores.
    weights : sequence of float, default None
        One weight per run, in the order of the runs, such as [0.7, 0.3]. Required by "weighted",
        "wmnz" and "mixed"; optional for "rrf", "borda", "condorcet" and "rbc".
    k : float, default 60
        The constant of "rrf", at least 0. A larger k gives less weight to the first ranks.
    sigma : float, default 0.01
        The constant of "logn_isr", at least 0. A larger sigma gives more weight to items that only
        one run has.
    phi : float, default 0.9
        The persistence of "rbc", above 0 and below 1. A larger phi gives more weight to late ranks.
    gamma : float, default 2
        The exponent of "combgmnz", at least 0; 0 gives CombSUM and 1 gives CombMNZ.
    depth : int, default None
        The number of items to keep per query. None keeps all.
    name : str, default None
        The name of the new run. None makes one from the method and the names of the runs.

    Returns
    -------
    Run
        The fused run, with queries in the order of their ids. Its settings contain the method, the
        parameters and the names of the runs. Documents, offsets and texts are those of the first
        run that has them. Latencies and model calls are not part of it.

    Raises
    ------
    InputError
        If there are fewer than two runs, if a file is given twice, if a setting is invalid or not
        used by the method, or if a method needs scores and a run does not have them.

    Examples
    --------
    >>> bm25 = {"q1": {"a": 12.0, "b": 9.5, "c": 3.0}}
    >>> dense = {"q1": {"b": 0.9, "d": 0.8}}
    >>> run = fuse({"bm25": bm25, "dense": dense})
    >>> run
    <Run 'rrf(bm25,dense)': 1 query, 4 results>
    >>> run.results["item_id"].to_list()
    ['b', 'a', 'd', 'c']
    >>> run.settings
    {'method': 'rrf', 'k': 60, 'runs': ['bm25', 'dense']}
    >>> fuse([bm25, dense], "weighted", weights=[0.7, 0.3]).results["item_id"].to_list()
    ['b', 'a', 'd', 'c']
    """
    named = named_runs(runs)
    settings = FusionSettings.of(
        method, len(named), normalization, weights, k=k, sigma=sigma, phi=phi, gamma=gamma
    )
    check_depth(depth)
    warn_of_missing_queries(named)
    candidates = Candidates.of(named)
    warn_of_separate_runs(candidates)
    return fused_run(candidates, settings, depth=depth, name=name)


def named_runs(runs: Mapping[str, Any] | Iterable[Any]) -> dict[str, Run]:
    """Open runs and return them by their names.

    Runs in a list use their own names; the path or a number is used if two names are the same.

    >>> list(named_runs([{"q1": ["a"]}, {"q1": ["b"]}]))
    ['run 1', 'run 2']
    """
    if isinstance(runs, (Run, str, bytes, os.PathLike)) or is_table(runs):
        raise _too_few()
    sources = list(runs.values() if isinstance(runs, Mapping) else runs)
    if len(sources) < 2:
        raise _too_few()
    paths = [path_of(source) for source in sources]
    _refuse_repeated_file(paths)
    opened = [Run.open(source) for source in sources]
    if isinstance(runs, Mapping):
        return dict(zip(map(str, runs), opened, strict=True))
    names = [run.name or "run" for run in opened]
    names = [
        path if names.count(name) > 1 and path is not None else name
        for name, path in zip(names, paths, strict=True)
    ]
    numbered = [
        f"{name} {names[:at].count(name) + 1}" if names.count(name) > 1 else name
        for at, name in enumerate(names)
    ]
    return dict(zip(numbered, opened, strict=True))


def _refuse_repeated_file(paths: Sequence[str | None]) -> None:
    files: set[str] = set()
    for path in filter(None, paths):
        file = os.path.realpath(path)
        if file in files:
            raise InputError(
                "the same file is given twice",
                path=path,
                field="runs",
                hint="pass each run once; a weight lets a run count more (--weights, weights=)",
            )
        files.add(file)


def check_depth(depth: int | None) -> None:
    """Raise an InputError for an invalid depth."""
    if depth is not None:
        checks.integer(depth, "depth", least=1, hint="for example 100; by default all are kept")


def warn_of_missing_queries(runs: Mapping[str, Run]) -> None:
    """Warn of queries that are not in all runs, and of queries that failed."""
    query_ids = {name: set(run.query_ids) for name, run in runs.items()}
    all_ids = set().union(*query_ids.values())
    if all_ids and not set.intersection(*query_ids.values()):
        warn(
            "no query is in all runs, so each is fused from only some of them; check that the "
            "runs use the same query ids",
            stacklevel=3,
        )
        return
    for name, run in runs.items():
        if missing := sorted(all_ids - query_ids[name]):
            warn(
                f"run {name!r} lacks {len(missing):,} of {counted(len(all_ids), 'query')}"
                f"{for_example(len(missing), repr(missing[0]))}; "
                f"{'it is' if len(missing) == 1 else 'they are'} fused from the other runs",
                stacklevel=3,
            )
        if run.failed:
            warn(
                f"run {name!r}: {counted(run.failed, 'query')} failed; "
                f"{'it is' if run.failed == 1 else 'they are'} fused from the other runs",
                stacklevel=3,
            )


def warn_of_separate_runs(candidates: Candidates) -> None:
    """Warn of runs that have no item in common with any other run.

    Only queries for which several runs have results are compared.
    """
    if not candidates.pairs.height:
        return
    has_item = candidates.rows >= 0
    is_comparable = (np.count_nonzero(candidates.lengths, axis=1) > 1)[candidates.query]
    is_shared = np.count_nonzero(has_item, axis=1) > 1
    compared = np.flatnonzero(has_item[is_comparable].any(axis=0)).tolist()
    separate = [run for run in compared if not has_item[is_shared, run].any()]
    if not separate:
        return
    others = [run for run in compared if run not in separate]
    problem = "no item is in more than one run"
    if others:
        names = ", ".join(repr(candidates.names[run]) for run in separate)
        subject = f"run {names} has" if len(separate) == 1 else f"runs {names} have"
        problem = f"{subject} no item in common with any other run"
    examples = [_example_ids(candidates, run) for run in (*separate, *others)[:_EXAMPLES]]
    problem += ", so lists are only interleaved; check that all runs use the same item ids"
    warn("\n  ".join([problem, *examples]), stacklevel=3)


def _example_ids(candidates: Candidates, run: int) -> str:
    items = candidates.pairs["item_id"].filter(pl.Series(candidates.rows[:, run] >= 0))
    first = items.unique().sort().head(_EXAMPLES)
    return f"in {candidates.names[run]!r}: {', '.join(map(repr, first))}"


def fused_run(
    candidates: Candidates,
    settings: FusionSettings,
    *,
    depth: int | None = None,
    name: str | None = None,
) -> Run:
    """Return the run in which the candidates are ordered by their fused scores."""
    if candidates.pairs.height:
        results = _ranked(candidates, settings.scores(candidates), depth)
    else:
        results = NO_RESULTS
    names = candidates.names
    listed = ",".join(names) if len(names) <= _NAMES_IN_NAME else f"{len(names)} runs"
    in_any = pl.concat([run.query_ids for run in candidates.runs]).unique().sort()
    empty = in_any.filter(~in_any.is_in(candidates.query_ids.implode()))
    return Run(
        results,
        empty=empty.to_list(),
        errors=_errors(candidates.runs, empty),
        offsets=_unit_of_offsets(candidates),
        name=name or f"{settings.method}({listed})",
        settings=settings.as_dict()
        | ({} if depth is None else {"depth": int(depth)})
        | {"runs": list(names)},
    )


def _ranked(candidates: Candidates, scores: Floats, depth: int | None) -> pl.DataFrame:
    """Return the results in rank order; the candidates are already in the order of ties."""
    order = np.lexsort((-scores, candidates.query))
    if depth is not None:
        counts = candidates.counts
        position = np.arange(order.size) - np.repeat(np.cumsum(counts) - counts, counts)
        order = order[position < depth]
    table = candidates.pairs.with_columns(score=pl.Series(scores, dtype=pl.Float64))
    return table.hstack(candidates.contents())[order]


def _errors(runs: Sequence[Run], empty: pl.Series) -> pl.DataFrame | None:
    """Return the first error of each query for which no run has results."""
    tables = [run.errors for run in runs if run.errors is not None]
    if not tables:
        return None
    errors = pl.concat(tables, how="diagonal_relaxed").unique(
        "query_id", keep="first", maintain_order=True
    )
    errors = errors.filter(pl.col("query_id").is_in(empty.implode())).sort("query_id")
    return errors if errors.height else None


def _unit_of_offsets(candidates: Candidates) -> str:
    runs = zip(candidates.names, candidates.runs, strict=True)
    units = {run.offsets: name for name, run in runs if "start" in run.results.columns}
    if len(units) > 1:
        listed = " and ".join(f"{unit} ({name})" for unit, name in units.items())
        raise InputError(
            f"the runs count offsets in different units: {listed}",
            field="offsets",
            hint="convert the runs to code points first: Run.in_code_points(corpus)",
        )
    return next(iter(units), "codepoint")


def _too_few() -> InputError:
    return InputError(
        "fusion needs at least two runs",
        field="runs",
        hint="pass two or more runs, as a list or as {name: run} in Python",
    )
