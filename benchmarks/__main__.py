"""`python -m benchmarks [--quick]`: measure everything, print it, save it as RESULTS.md."""

from __future__ import annotations

import argparse
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
    quick = parser.parse_args().quick
    busy = machine.load()
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


if __name__ == "__main__":
    main()
