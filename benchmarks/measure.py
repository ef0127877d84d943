"""Measuring: each timing in a fresh process, tools in turn, the best of several rounds."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

from benchmarks import processes
from benchmarks.peers import MEASURES, TREC_EVAL
from benchmarks.work import Work

TOLERANCE = 1e-6
TOLERANCE_OF_DRAWS = 0.01  # six standard errors of p-values from 100,000 draws, on both sides
TOLERANCE_OF_PRINTED_VALUES = 0.51e-4  # commands print four digits


@dataclass(frozen=True)
class Tool:
    """One way of doing the work."""

    name: str
    task: str | None = None
    """A function in `peers`, which is timed inside its process, without imports."""
    command: tuple[str, ...] = ()
    """Or a command, which is timed from the start to the end of its process."""
    needs: str | None = None
    """The Python package that must be installed."""
    rounds: int | None = None
    """The maximum number of rounds, for slow tools."""
    has_children: bool = False
    """Whether it starts other processes, whose memory counts."""

    @property
    def reason_to_skip(self) -> str | None:
        """Why the tool cannot be measured on this machine; None if it can."""
        if self.command and not Path(self.command[0]).exists():
            return f"{self.command[0]} is not installed"
        if self.needs and find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        return None

    def command_line(self, work: Work | None) -> list[str]:
        """Return the command that does the work."""
        files = [str(work.gold), str(work.run)] if work else []
        if self.task:
            return [sys.executable, "-m", "benchmarks.peers", self.task, *files]
        return [*self.command, *files]


@dataclass(frozen=True)
class Measurement:
    """The best round of a tool."""

    seconds: float
    megabytes: float
    process_seconds: float
    """Seconds of the whole process."""
    setup: float | None = None
    """Seconds before the clock starts, which `seconds` excludes; None for a command."""
    second_call: float | None = None
    """Seconds of a second call in the same process, if that was measured."""
    values: dict[str, float] = field(default_factory=dict)
    slowest: float = 0.0
    """Seconds of the slowest round: if it is far from the best, the machine was busy."""


def measure(
    tools: Sequence[Tool], work: Work | None = None, *, rounds: int
) -> dict[Tool, Measurement]:
    """Measure the tools in turn, so that a busy moment of the machine affects all of them."""
    if work:
        work.make()
    best: dict[Tool, Measurement] = {}
    for round_number in range(rounds):
        for tool in tools:
            if tool.reason_to_skip or round_number >= (tool.rounds or rounds):
                continue
            measured = _measure_once(tool, work)
            print(
                f"  {work.name if work else '':>15}  {tool.name:<28}{measured.seconds:9.3f} s"
                f"{measured.megabytes:9,.0f} MB",
                file=sys.stderr,
            )
            previous = best.get(tool, measured)
            slowest = max(previous.slowest, measured.seconds)
            faster = min(previous, measured, key=attrgetter("seconds"))
            second_call = measured.second_call
            if second_call and previous.second_call:
                second_call = min(second_call, previous.second_call)
            best[tool] = replace(faster, slowest=slowest, second_call=second_call)
    return best


def largest_difference(
    tool: Tool, measured: Measurement, reference: Measurement, *, tolerance: float | None = None
) -> float:
    """Return the largest difference of a value from the reference; stop if it is not rounding.

    The way in which a tool breaks ties is no excuse, since the generated scores have no ties.
    """
    if set(measured.values) != set(reference.values):
        raise SystemExit(
            f"{tool.name} returned {sorted(measured.values)} instead of {sorted(reference.values)}"
        )
    difference = max(abs(value - reference.values[name]) for name, value in measured.values.items())
    if tolerance is None:
        tolerance = TOLERANCE_OF_PRINTED_VALUES if tool.command else TOLERANCE
    if difference > tolerance:
        raise SystemExit(
            f"{tool.name} returned other values: {measured.values} instead of {reference.values}"
        )
    return difference


def _measure_once(tool: Tool, work: Work | None) -> Measurement:
    finished = processes.run(tool.command_line(work), children=tool.has_children)
    if tool.task:
        outcome = json.loads(finished.output)
        return Measurement(
            outcome["seconds"],
            finished.megabytes,
            finished.seconds,
            outcome["setup"],
            outcome.get("second_call"),
            outcome["values"],
        )
    values = _printed_values(finished.output) if work else {}
    return Measurement(finished.seconds, finished.megabytes, finished.seconds, values=values)


def _printed_values(output: str) -> dict[str, float]:
    """Return the mean of each measure that `karat eval` or trec_eval printed.

    karat prints name, value, bar and number of queries, trec_eval prints name, "all" and value. The
    second word of other rows, such as "P@10 upper bound", is not a number.
    """
    measures = dict(zip(TREC_EVAL, MEASURES, strict=True)) | {name: name for name in MEASURES}
    values = {}
    for line in output.splitlines():
        words = [word for word in line.split() if word != "all"]
        if len(words) > 1 and words[0] in measures and words[1].replace(".", "").isdecimal():
            values[measures[words[0]]] = float(words[1])
    return values
