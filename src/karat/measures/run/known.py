"""Whether a run holds the stages and models that measures ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from karat.data.run import Run
from karat.errors import InputError
from karat.measures.declare import REGISTRY, Measure, spelled
from karat.measures.families import COST, LATENCY
from karat.measures.names import parse
from karat.measures.plan import Plan

_SHOWN = 5
LATENCIES = ("latency.mean", "latency.p50", "latency.p90", "latency.p99")
COSTS = ("cost.sum", "cost.mean")


def stages_timed(run: Run) -> list[str]:
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
    stages = set.intersection(*(set(stages_timed(run)) for run in runs))
    shown = ["total"] if "total" in stages else sorted(stages)
    measures = [measure for stage in shown for measure in latencies(stage)]
    if all(run.calls is not None for run in runs):
        measures += map(parse, COSTS)
    return tuple(measures)


def usage_notes(runs: Sequence[Run]) -> Iterator[str]:
    """State why latency or cost is not shown although some of the runs have it."""
    stages = [set(stages_timed(run)) for run in runs]
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
