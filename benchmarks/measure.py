"""Measuring: every timing in a fresh process, tools in turn, the best of several rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from time import perf_counter

from benchmarks.peers import MEASURES, TREC_EVAL
from benchmarks.work import Work

EXACT = 1e-6
BY_CHANCE = 0.01  # six standard errors of p from 100,000 draws, on both sides
PRINTED = 0.51e-4  # what a value printed with four digits may be off by


@dataclass(frozen=True)
class Tool:
    """One way of doing the work."""

    name: str
    task: str | None = None
    """A function in `peers`, timed inside its process; imports apart."""
    command: tuple[str, ...] = ()
    """Or a command, timed from start to end of its process."""
    needs: str | None = None
    """The Python package without which there is nothing to measure."""
    rounds: int | None = None
    """Fewer rounds than the others, for what is slow."""

    @property
    def absent(self) -> str | None:
        """Why the tool cannot be measured here, if so."""
        if self.command and not Path(self.command[0]).exists():
            return f"no executable ({self.command[0]})"
        if self.needs and find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        return None

    def line(self, work: Work | None) -> list[str]:
        """Return the command that does the work."""
        files = [str(work.gold), str(work.run)] if work else []
        if self.task:
            return [sys.executable, "-m", "benchmarks.peers", self.task, *files]
        return [*self.command, *files]


@dataclass(frozen=True)
class Measurement:
    """The best that was seen of a tool."""

    seconds: float
    megabytes: float
    imports: float | None = None
    """Seconds for its imports, which `seconds` leaves out; None: a command, nothing left out."""
    values: dict[str, float] = field(default_factory=dict)
    slowest: float = 0.0
    """Seconds of the slowest round: far from the best means that the machine was busy."""


def measure(
    tools: Sequence[Tool], work: Work | None = None, *, rounds: int
) -> dict[Tool, Measurement]:
    """Measure tools in turn, so that a busy moment of the machine does not hit only one."""
    if work:
        work.make()
    best: dict[Tool, Measurement] = {}
    for turn in range(rounds):
        for tool in tools:
            if tool.absent or turn >= (tool.rounds or rounds):
                continue
            measured = _once(tool, work)
            print(
                f"  {work.name if work else '':>15}  {tool.name:<28}{measured.seconds:9.3f} s"
                f"{measured.megabytes:9,.0f} MB",
                file=sys.stderr,
            )
            before = best.get(tool, measured)
            slowest = max(before.slowest, measured.seconds)
            faster = min(before, measured, key=attrgetter("seconds"))
            best[tool] = replace(faster, slowest=slowest)
    return best


def largest_difference(
    tool: Tool, one: Measurement, other: Measurement, *, allowed: float | None = None
) -> float:
    """Return how far two tools' values lie apart; more than rounding explains is an error.

    No tool may differ by how it breaks ties, since the work has none.
    """
    if set(one.values) != set(other.values):
        raise SystemExit(f"{tool.name} gives {set(one.values)}, not {set(other.values)}")
    apart = max(abs(one.values[name] - other.values[name]) for name in one.values)
    if apart > (allowed or (PRINTED if tool.command else EXACT)):
        raise SystemExit(f"{tool.name} gives other values: {one.values} for {other.values}")
    return apart


def _once(tool: Tool, work: Work | None) -> Measurement:
    line = tool.line(work)
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as complaints:
        start = perf_counter()
        process = subprocess.Popen(line, stdout=output, stderr=complaints)
        # wait4 tells the peak of this child alone. It starts from what the parent holds when it
        # starts the child, which is why this process imports neither karat nor any peer.
        _, status, usage = os.wait4(process.pid, 0)
        wall = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        complaints.seek(0)
        if process.returncode:
            raise SystemExit(f"{' '.join(line)} failed:\n{complaints.read()}")
        printed = output.read()
    megabytes = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)
    if tool.task:
        told = json.loads(printed)
        return Measurement(told["seconds"], megabytes, told["imports"], told["values"])
    return Measurement(wall, megabytes, values=_printed_values(printed) if work else {})


def _printed_values(table: str) -> dict[str, float]:
    """Read the means from the table that karat (name, value, n) or trec_eval prints."""
    ours = dict(zip(TREC_EVAL, MEASURES, strict=True)) | {name: name for name in MEASURES}
    values = {}
    for name, *cells in map(str.split, table.splitlines()):
        if name in ours and len(cells) == 2:  # what stands below is of unjudged items
            values[ours[name]] = float(cells[1] if cells[0] == "all" else cells[0])
    return values
