"""Whether a run holds the stages and models that measures ask for."""

from __future__ import annotations

from difflib import get_close_matches

from karat.data.run import Run
from karat.errors import InputError
from karat.measures.declare import spelled
from karat.measures.plan import Plan

_SHOWN = 5


def check_run(run: Run, plan: Plan) -> None:
    """Refuse a stage or a model that stands nowhere in a run; of a part it could not be told."""
    tables = {"latency": run.timings, "cost": run.calls}
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
