"""What to compute, settled before any partition is scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from karat.conventions import Conventions
from karat.data.chunks import Chunks
from karat.data.run import Run
from karat.errors import InputError
from karat.match.text import Matching
from karat.measures.families import COST, EVIDENCE, FAMILIES, LATENCY, RANK, SPAN, FamilyName
from karat.measures.name_parser import AnyMeasure, parse, parse_all
from karat.measures.registry import REGISTRY, Measure, spelled

DEFAULT_MEASURES = RANK.defaults
DEFAULT_SPAN_MEASURES = SPAN.defaults
DEFAULT_EVIDENCE_MEASURES = EVIDENCE.defaults
LEVELS = ("item", "doc")


@dataclass(frozen=True)
class Plan:
    """Measures, conventions, and what must be known of the whole gold.

    `level="doc"` scores documents: a list of chunks is cut to the first of each doc_id.
    `chunks` is the table of all that could be retrieved, for the measures that read it.
    `matching` says when a text covers an evidence, where that is not the default rule.
    `largest_grade` scales ERR, nERR and RBP(gain=linear); a part of gold cannot know it.
    """

    measures: tuple[Measure, ...]
    conventions: Conventions = field(default_factory=Conventions)
    level: str = "item"
    largest_grade: int | None = None
    chunks: Chunks | None = None
    matching: Matching | None = None

    @property
    def families(self) -> set[FamilyName]:
        """What the measures ask gold for."""
        return {measure.declaration.family for measure in self.measures}

    def of_family(self, family: FamilyName) -> list[Measure]:
        """Return the measures of one family, in the order asked."""
        return [measure for measure in self.measures if measure.declaration.family == family]

    @property
    def rule(self) -> str | None:
        """When a text covers an evidence, in words, where evidence is measured."""
        compares = any(FAMILIES[name].compares_texts for name in self.families)
        return str(self.matching or Matching()) if compares else None

    @property
    def compares_documents(self) -> bool:
        """Whether places in documents are compared, so that document ids must agree."""
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
        """Parse names and words into a plan; `has_chunks` promises a table of chunks per run."""
        if level not in LEVELS:
            raise InputError(
                f"{level!r} is no level", field="level", hint=f"choose one of {', '.join(LEVELS)}"
            )
        if not isinstance(matching, Matching | None):
            raise InputError(
                f"{matching!r} does not say how texts are compared",
                field="matching",
                hint="give karat.Matching(fuzzy_threshold=0.8), for example",
            )
        asked = parse_all(DEFAULT_MEASURES if measures is None else measures)
        for measure in asked:
            if measure.declaration.needs_chunks and chunks is None and not has_chunks:
                raise InputError(
                    f"{measure} needs the table of all chunks",
                    field="chunks",
                    hint="give chunks=…, on the command line --chunks FILE",
                )
        return cls(
            asked,
            Conventions.of(conventions),
            level,
            largest_grade,
            None if chunks is None else Chunks.open(chunks),
            matching,
        )


_SHOWN = 5
LATENCIES = ("latency.mean", "latency.p50", "latency.p90", "latency.p99")
COSTS = ("cost.sum", "cost.mean")


def timed_stages(run: Run) -> list[str]:
    """Return the stages that a run has timings of, sorted."""
    return [] if run.timings is None else run.timings["stage"].unique().sort().to_list()


def latencies(stage: str) -> list[Measure]:
    """Return the usual measures of a stage's latency."""
    # Made, not parsed: a stage may have any name.
    return [Measure(REGISTRY[name], None, {"stage": stage}) for name in LATENCIES]


def usage_measures(runs: Sequence[Run]) -> tuple[Measure, ...]:
    """Return measures of latency and cost that all of the runs can answer.

    Latency is that of the whole query (`total`) where it was timed, else of every stage.
    """
    stages = set.intersection(*(set(timed_stages(run)) for run in runs))
    shown = ["total"] if "total" in stages else sorted(stages)
    measures = [measure for stage in shown for measure in latencies(stage)]
    if all(run.calls is not None for run in runs):
        measures += map(parse, COSTS)
    return tuple(measures)


def usage_notes(runs: Sequence[Run]) -> Iterator[str]:
    """State why latency or cost is not shown although some of the runs have it."""
    stages = [set(timed_stages(run)) for run in runs]
    if any(stages) and not set.intersection(*stages):
        yield "latency is not shown: the runs have no timed stage in common"
    has_calls = [run.calls is not None for run in runs]
    if any(has_calls) and not all(has_calls):
        yield "cost is not shown: not all of the runs have calls"


def check_run(run: Run, plan: Plan) -> None:
    """Refuse a stage or a model that stands nowhere in a run; of a part it could not be told."""
    tables = {LATENCY.name: run.timings, COST.name: run.calls}
    for measure in plan.measures:
        table = tables.get(measure.declaration.family)
        if table is None:
            continue
        for column, word in measure.params.items():
            held = table[column].drop_nulls().unique().sort().to_list()
            if word is None or word in held:
                continue
            near = get_close_matches(word, held, n=1)
            names = ", ".join(map(repr, held[:_SHOWN])) or "none at all"
            more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
            known = spelled((near or held)[0]) if held else ""
            hint = f"write {measure.declaration.name}({column}={known})" if held else ""
            raise InputError(
                f"the run has no {column} {word!r}; it has {names}{more}",
                field=str(measure),
                hint=hint or f"leave {column} out",
            )
