"""`python -m benchmarks [--quick]`: measure everything, print it, save it as RESULTS.md.

With `--only retrieval`, only the section about BM25 is measured and replaced.
"""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import jobs, machine, table

RESULTS = Path(__file__).parent / "RESULTS.md"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer rounds, without ranx and the ten million rows; prints only",
    )
    parser.add_argument(
        "--only", choices=["retrieval"], help="measure only this, and replace its section"
    )
    options = parser.parse_args()
    quick = options.quick
    busy = machine.load()
    if options.only:
        write_section(jobs.of_retrieval(quick=quick), busy)
        return
    done = jobs.every(quick=quick)
    text = "\n\n".join(
        [
            "# Benchmark",
            "`make bench` writes this page.",
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine.machine()}; "
            f"load by others at the start {busy}.\n\n{machine.versions(jobs.TREC_EVAL)}.",
            table.claims_table(done),
            table.NOTES,
            *map(table.job_table, done),
            "## Commands",
            table.commands_list(done),
        ]
    )
    print(text)
    if not quick:
        RESULTS.write_text(text + "\n", encoding="utf-8")
        print(f"\nwrote {RESULTS}")


def write_section(job: jobs.Job, busy: str) -> None:
    """Replace the section of a job in RESULTS.md, and state when and where it was measured."""
    heading, rows = table.job_table(job).split("\n", 1)
    text = "\n\n".join(
        [
            heading,
            f"Measured apart from the other sections: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, "
            f"{machine.machine()}; load by others at the start {busy}, at the end including this "
            f"benchmark {machine.load()}.",
            table.claims_table([job]),
            table.BM25_NOTE,
            rows.strip(),
        ]
    )
    sections = re.split(r"^(?=## )", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    kept = [section for section in sections if not section.startswith(heading)]
    kept.insert(-2, text + "\n\n")  # before "Start" and "Commands"
    RESULTS.write_text("".join(kept), encoding="utf-8")
    print(f"{text}\n\nwrote {RESULTS}")


if __name__ == "__main__":
    main()
