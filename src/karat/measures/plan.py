"""The plan of an evaluation: measures, conventions, and facts about the whole gold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import polars as pl

from karat.conventions import Conventions
from karat.data.chunks import Chunks
from karat.data.run import Run
from karat.errors import InputError
from karat.match.text import Matching
from karat.measures.families import COST, EVIDENCE, FAMILIES, LATENCY, RANK, SPAN, FamilyName
from karat.measures.name_parser import AnyMeasure, parse, parse_all
from karat.measures.registry import REGISTRY, Measure, format_value

DEFAULT_MEASURES = RANK.defaults
DEFAULT_SPAN_MEASURES = SPAN.defaults
DEFAULT_EVIDENCE_MEASURES = EVIDENCE.defaults
LEVELS = ("item", "doc")


@dataclass(frozen=True)
class Plan:
    """The measures to compute, and everything that `score` needs besides gold and run.

    Use `Plan.of` to make a plan from names. A plan also holds facts about the whole gold, so that
    parts of gold can be scored separately.

    Parameters
    ----------
    measures : tuple of Measure
        The measures, in the order of the columns of the score table.
    conventions : Conventions, default Conventions()
        How missing, unknown, repeated and unjudged items and queries are scored.
    level : {"item", "doc"}, default "item"
        What is ranked. "doc" keeps only the first item of each `doc_id` in a list.
    largest_grade : int, optional
        The largest grade of the whole gold. Required by ERR, nERR and RBP(gain=linear), unless
        their parameter max_grade is set.
    chunks : Chunks, optional
        The table of all chunks, which span.precision_omega requires, and which provides texts and
        offsets to runs that have only ids.
    matching : Matching, optional
        When a text covers an evidence text. Default: `Matching()`.

    Examples
    --------
    >>> from karat import Plan
    >>> plan = Plan.of("nDCG@10 RR", conventions={"missing": "skip"})
    >>> plan.measures
    (nDCG@10, RR)
    >>> plan.conventions.missing
    'skip'
    """

    measures: tuple[Measure, ...]
    conventions: Conventions = field(default_factory=Conventions)
    level: str = "item"
    largest_grade: int | None = None
    chunks: Chunks | None = None
    matching: Matching | None = None

    @property
    def families(self) -> set[FamilyName]:
        """The names of the families that the measures belong to."""
        return {measure.declaration.family for measure in self.measures}

    def of_family(self, family: FamilyName) -> list[Measure]:
        """Return the measures of one family, in the order of the plan."""
        return [measure for measure in self.measures if measure.declaration.family == family]

    @property
    def rule(self) -> str | None:
        """When a text covers an evidence text, in words; None without evidence measures."""
        compares = any(FAMILIES[name].compares_texts for name in self.families)
        return str(self.matching or Matching()) if compares else None

    @property
    def compares_documents(self) -> bool:
        """Whether spans of documents are compared, so that document ids must agree."""
        return any(FAMILIES[name].compares_documents for name in self.families)

    @classmethod
    def of(
        cls,
        measures: AnyMeasure | Iterable[AnyMeasure] | None = None,
        *,
        conventions: Conventions | dict[str, Any] | None = None,
        level: str = "item",
        largest_grade: int | None = None,
        chunks: Any = None,
        has_chunks: bool = False,
        matching: Matching | None = None,
    ) -> Plan:
        """Make a plan from the names of measures.

        Parameters
        ----------
        measures : str, Measure, function, or a list of these, optional
            The measures, such as `"nDCG@10"` or `["P@5", "RR"]`. A text may contain several names,
            separated by commas or blanks. Default: the measures in `DEFAULT_MEASURES`.
        conventions : Conventions or dict, optional
            The conventions, such as `{"missing": "skip"}`. Default: `Conventions()`.
        level : {"item", "doc"}, default "item"
            What is ranked. "doc" keeps only the first item of each `doc_id` in a list.
        largest_grade : int, optional
            The largest grade of the whole gold. Required by ERR, nERR and RBP(gain=linear), unless
            their parameter max_grade is set.
        chunks : path, table, records or Chunks, optional
            The table of all chunks, as `karat.evaluate` accepts it.
        has_chunks : bool, default False
            Whether every run will come with its own table of chunks.
        matching : Matching, optional
            When a text covers an evidence text. Default: `Matching()`.

        Raises
        ------
        MeasureError
            If a measure is not found, or its cutoff or a parameter is not valid.
        InputError
            If the level or `matching` is not valid, or a measure requires chunks and there are
            none.

        Examples
        --------
        >>> Plan.of(["P@5", "map(rel=2)"]).measures
        (P@5, AP(rel=2))
        """
        if level not in LEVELS:
            raise InputError(
                f"{level!r} is not supported",
                field="level",
                hint=f"choose one of {', '.join(LEVELS)}",
            )
        if not isinstance(matching, Matching | None):
            raise InputError(
                f"expected karat.Matching, got {matching!r}",
                field="matching",
                hint="write matching=karat.Matching(fuzzy_threshold=0.8), for example",
            )
        parsed = parse_all(DEFAULT_MEASURES if measures is None else measures)
        for measure in parsed:
            if measure.declaration.needs_chunks and chunks is None and not has_chunks:
                raise InputError(
                    f"{measure} requires the table of all chunks",
                    field="chunks",
                    hint="pass chunks=…, or --chunks FILE on the command line",
                )
        return cls(
            parsed,
            Conventions.of(conventions),
            level,
            largest_grade,
            None if chunks is None else Chunks.open(chunks),
            matching,
        )


_NAMES_SHOWN = 5
LATENCIES = ("latency.mean", "latency.p50", "latency.p90", "latency.p99")
COSTS = ("cost.sum", "cost.mean")


@dataclass(frozen=True, eq=False)
class UsageNames:
    """The stages and models that the timings and the model calls of a run, or of a part, contain.

    Parameters
    ----------
    names : dict
        For each table that the run has ("timings" or "calls"), the sorted names by column.
    empty : dict
        For each table that the run has, the same table without rows.
    """

    names: dict[str, dict[str, list[str]]]
    empty: dict[str, pl.DataFrame]

    @classmethod
    def of(cls, run: Run) -> UsageNames:
        """Collect the names of a run."""
        tables = {"timings": run.timings, "calls": run.calls}
        existing = {name: table for name, table in tables.items() if table is not None}
        return cls(
            {
                name: {
                    column: table[column].drop_nulls().unique().sort().to_list()
                    for column in ("stage", "model")
                    if column in table.columns
                }
                for name, table in existing.items()
            },
            {name: table.clear() for name, table in existing.items()},
        )

    def merge(self, other: UsageNames) -> UsageNames:
        """Return the names in either part of a run."""
        names = {
            table: {
                column: sorted(
                    {*self._of(table).get(column, ()), *other._of(table).get(column, ())}
                )
                for column in self._of(table) | other._of(table)
            }
            for table in self.names | other.names
        }
        return UsageNames(names, other.empty | self.empty)

    def _of(self, table: str) -> dict[str, list[str]]:
        return self.names.get(table, {})

    @property
    def stages(self) -> list[str]:
        """The names of the stages that the run has timings for."""
        return self._of("timings").get("stage", [])

    @property
    def has_calls(self) -> bool:
        """Whether the run has model calls."""
        return "calls" in self.names


def latencies(stage: str) -> list[Measure]:
    """Return the default latency measures of a stage."""
    # Not parsed from a text, because a stage may have any name.
    return [Measure(REGISTRY[name], None, {"stage": stage}) for name in LATENCIES]


def usage_measures(runs: Sequence[UsageNames]) -> tuple[Measure, ...]:
    """Return the measures of latency and cost that all runs have data for.

    Latency is measured for the stage `total` if all runs have it, otherwise for every stage that
    they have in common.
    """
    stages = set.intersection(*(set(run.stages) for run in runs))
    measured_stages = ["total"] if "total" in stages else sorted(stages)
    measures = [measure for stage in measured_stages for measure in latencies(stage)]
    if all(run.has_calls for run in runs):
        measures += map(parse, COSTS)
    return tuple(measures)


def usage_notes(runs: Sequence[UsageNames]) -> Iterator[str]:
    """Yield why latency or cost is not shown although some runs have it."""
    stages = [set(run.stages) for run in runs]
    if any(stages) and not set.intersection(*stages):
        yield "latency is not shown: the runs have no timed stage in common"
    has_calls = [run.has_calls for run in runs]
    if any(has_calls) and not all(has_calls):
        yield "cost is not shown: not all runs have model calls"


def check_usage(usage: UsageNames, plan: Plan) -> None:
    """Raise an error if a measure names a stage or a model that is not in the run.

    The names must be those of the whole run: a part may lack a stage that other parts have.
    """
    tables = {LATENCY.name: "timings", COST.name: "calls"}
    for measure in plan.measures:
        names_by_column = usage.names.get(tables.get(measure.declaration.family, ""))
        if names_by_column is None:
            continue
        for column, name in measure.params.items():
            names = names_by_column[column]
            if name is not None and name not in names:
                raise _not_in_run(measure, column, name, names)


def _not_in_run(measure: Measure, column: str, name: str, names: list[str]) -> InputError:
    listed = ", ".join(map(repr, names[:_NAMES_SHOWN])) or "none"
    if len(names) > _NAMES_SHOWN:
        listed += f" and {len(names) - _NAMES_SHOWN} more"
    hint = f"omit {column}"
    if names:
        suggestion = (get_close_matches(name, names, n=1) or names)[0]
        hint = f"write {measure.declaration.name}({column}={format_value(suggestion)})"
    return InputError(
        f"{column} {name!r} is not in the run, which has {listed}", field=str(measure), hint=hint
    )
