"""The results as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.jobs import Claim, Job, Row

_NOTES = """\
- Every timing is a process of its own; tools take turns, the best round counts, a tool with a
  star ran once. `seconds` of a library is its first call in a fresh process, reading the files
  included; its imports stand apart. `seconds` of a command is the whole process, from start to
  end. From dicts, the dicts are built before the clock starts. `slowest` is the worst round: far
  from the best, it says that the machine was busy with other things.
- Peak memory is the largest resident size of the whole process, imports included.
- `× karat` is the tool's time ÷ karat's on the same work: libraries against `karat.evaluate`,
  commands against `karat eval --no-intervals`, since no other command computes intervals.
- `apart` is the largest difference of a mean from karat's; commands print four digits. Scores
  are distinct even in 32 bits, so that nobody's way to break ties matters.
- ranx compiles on its first call and keeps the result for later processes: both are shown.
- The work: grades 0–3; 50 judged items a query at depth 1,000 and 10 at depth 100, 60% of them
  retrieved (40% in the untidy work), likelier the higher they stand; rows in order of score and
  one space between fields (except in the untidy work).
- Text evidence: chunks of 1,000 characters of made-up words as frequent as Zipf's law says;
  evidence of 200, 500 and 1,000 characters, a quarter verbatim in a retrieved chunk, a tenth with
  a tenth of its words changed. difflib is timed on 300 pairs drawn by lot and scaled to all.
- Asking a retriever: karat times every query, watches over timeouts and retries, and writes a line
  down; the bare loops only ask. Own a query is what is over the time that waiting alone takes.
"""

BM25_NOTE = """\
- BM25: the abstracts of SciFact, and generated texts of 50 to 250 words. The corpus is in memory
  before the clock starts; for search, the index too. karat and bm25s stem and remove stop words;
  rank_bm25 only splits at spaces, as its documentation shows. karat sorts by id, breaks ties by id
  and returns the texts. Loading hashes the corpus and checks the stored files. Peak memory contains
  the corpus and imports; that of a search contains building the index."""
NOTES = _NOTES + BM25_NOTE


def claims_table(jobs: list[Job]) -> str:
    """Set what is wanted beside what was measured."""
    claims = [claim for job in jobs for claim in job.claims]
    return _markdown(("wanted of karat", "wanted", "measured", "met"), map(_claim_cells, claims))


def job_table(job: Job) -> str:
    """Show every row of a job."""
    head = (
        "work",
        "tool",
        "seconds",
        "slowest",
        "imports, s",
        "peak MB",
        "ns a row",
        "× karat",
        "apart",
    )
    return f"## {job.title}\n\n{_markdown(head, map(_row_cells, job.rows))}"


def commands_list(jobs: list[Job]) -> str:
    """List how each tool was called."""
    tools = {row.tool: row.work for job in jobs for row in job.rows if row.measured}
    lines = []
    for tool, work in tools.items():
        executable, *arguments = tool.line(None)
        line = " ".join([Path(executable).name, *arguments])
        lines.append(f"- {tool.name}: `{line}{' QRELS RUN' if work else ''}`")
    return "\n".join(lines)


def _claim_cells(claim: Claim) -> tuple[str, ...]:
    bound = "≥" if claim.at_least else "≤"
    met = {True: "yes", False: "**no**", None: "–"}[claim.met]
    measured = "not measured" if claim.measured is None else _number(claim.measured, claim.unit)
    return claim.text, f"{bound} {claim.wanted:g} {claim.unit}", measured, met


def _row_cells(row: Row) -> tuple[str, ...]:
    work = row.work.name if row.work else ""
    measured = row.measured
    if measured is None:
        return work, row.tool.name, f"absent: {row.tool.absent}", "", "", "", "", "", ""
    return (
        work,
        row.tool.name + ("*" if row.tool.rounds == 1 else ""),
        f"{measured.seconds:.3f}",
        f"{measured.slowest:.3f}",
        "" if measured.imports is None else f"{measured.imports:.2f}",
        f"{measured.megabytes:,.0f}",
        f"{measured.seconds / row.work.rows * 1e9:,.0f}" if row.work else "",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.apart is None else f"{row.apart:.0e}",
    )


def _number(value: float, unit: str) -> str:
    return f"{value:.3f} s" if unit == "s" else f"{value:.2f} {unit}"


def _markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Write a table whose columns line up, so that it reads well unrendered too."""
    table = [head, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in table
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
