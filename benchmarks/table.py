"""The results as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.goal import Goal
from benchmarks.jobs import Job, Row

NOTES = """\
- Each timing is a process of its own. The tools take turns, and the best round counts; a tool with
  a star ran once. `slowest` is the slowest round: if it is far from the best, the machine was busy
  with other work.
- `seconds` of a library is the time of its first call in a new process, including reading the
  files. `seconds` of a command is the time of the whole process.
- `setup, s` is the time before the clock starts: imports, and building input that is in memory.
- `peak MB` is the largest resident size of the whole process, including imports and input.
- `× karat` is the time of the tool ÷ the time of karat for the same work.
- `difference` is the largest difference of a value from karat's. Commands print four digits. All
  scores are distinct, even in 32 bits, so it does not matter how a tool breaks ties."""

_COLUMNS = (
    "queries × results",
    "tool",
    "seconds",
    "slowest",
    "setup, s",
    "peak MB",
    "ns per row",
    "× karat",
    "difference",
)


def section(job: Job, measured_on: str = "") -> str:
    """Return the section of a job: its goals, its table, notes and commands."""
    parts = [
        f"## {job.title}",
        measured_on,
        goals_table(job.goals),
        _table(job),
        job.notes,
        _commands(job),
    ]
    return "\n\n".join(filter(None, parts))


def goals_table(goals: Sequence[Goal]) -> str:
    """Return the goals next to what was measured."""
    return markdown(("goal", "bound", "measured", "met"), map(_goal_cells, goals)) if goals else ""


def replace_section(page: str, text: str) -> str:
    """Return the page with the section that has the same heading replaced, or added at the end."""
    heading = text.partition("\n")[0]
    sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    for number, old in enumerate(sections):
        if old.partition("\n")[0] == heading:
            sections[number] = f"{text}\n\n"
            break
    else:
        sections.append(f"\n{text}\n")
    return "".join(sections).rstrip() + "\n"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with aligned columns, which is readable as plain text, too."""
    table = [head, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in table
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def number(value: float, unit: str) -> str:
    """Return a value with its unit."""
    if unit == "MB":
        return f"{value:,.0f} MB"
    return f"{value:.3f} s" if unit == "s" else f"{value:.2f} {unit}"


def _goal_cells(goal: Goal) -> tuple[str, ...]:
    sign = "≥" if goal.at_least else "≤"
    met = {True: "yes", False: "**no**", None: "–"}[goal.is_met]
    measured = "not measured" if goal.measured is None else number(goal.measured, goal.unit)
    return goal.text, f"{sign} {goal.bound:,g} {goal.unit}", measured, met


def _table(job: Job) -> str:
    """Return the rows of a job, without columns that are empty everywhere."""
    rows = [_row_cells(row) for row in job.rows]
    kept = [number for number in range(len(_COLUMNS)) if any(row[number] for row in rows)]
    head, *cells = ([row[number] for number in kept] for row in [_COLUMNS, *rows])
    return markdown(head, cells)


def _row_cells(row: Row) -> tuple[str, ...]:
    work = row.work.name if row.work else ""
    measured = row.measured
    if measured is None:
        return work, row.tool.name, row.tool.reason_to_skip or "", *[""] * (len(_COLUMNS) - 3)
    return (
        work,
        row.tool.name + ("*" if row.tool.rounds == 1 else ""),
        f"{measured.seconds:.3f}",
        f"{measured.slowest:.3f}",
        "" if measured.setup is None else f"{measured.setup:.2f}",
        f"{measured.megabytes:,.0f}",
        f"{measured.seconds / row.work.rows * 1e9:,.0f}" if row.work else "",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.difference is None else f"{row.difference:.0e}",
    )


def _commands(job: Job) -> str:
    """Return the commands that were measured."""
    tools = {row.tool: row.work for row in job.rows if row.measured}
    lines = []
    for tool, work in tools.items():
        executable, *arguments = tool.command_line(None)
        line = " ".join([Path(executable).name, *arguments])
        lines.append(f"- {tool.name}: `{line}{' GOLD RUN' if work else ''}`")
    return "\n".join(["Commands:", "", *lines])
