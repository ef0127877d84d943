"""`python -m benchmarks [--only NAME] [--quick]`: compare karat with other tools.

The results are saved as benchmarks/RESULTS.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import machine, processes, table
from benchmarks.jobs import JOBS, TREC_EVAL

RESULTS = Path(__file__).parent / "RESULTS.md"
PACKAGES = (
    "polars",
    "numpy",
    "scipy",
    "rapidfuzz",
    "cydifflib",
    "bm25s",
    "tantivy",
    "wordllama",
    "ir_measures",
    "pytrec_eval-terrier",
    "ranx",
    "numba",
    "rank-bm25",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="check that everything works: less work, fewer rounds, without ranx; "
        "prints the page and does not save it",
    )
    parser.add_argument(
        "--only", choices=JOBS, help="measure only this section, and replace it on the page"
    )
    options = parser.parse_args()
    processes.compile_karat()
    measured_on = machine.description()
    if options.only:
        measured_on += f" {machine.versions(())}."
        text = table.section(JOBS[options.only](options.quick), measured_on)
        page = table.replace_section(RESULTS.read_text(encoding="utf-8"), text)
    else:
        sections = [table.section(job(options.quick)) for job in JOBS.values()]
        versions = f"{machine.versions(PACKAGES)}, {machine.version_of_trec_eval(TREC_EVAL)}."
        head = [
            "# Benchmarks",
            "`make bench` writes this page. `python -m benchmarks --only NAME` measures one "
            f"section again; the names are {', '.join(JOBS)}.",
            measured_on,
            versions,
            table.NOTES,
        ]
        text = page = "\n\n".join([*head, *sections]) + "\n"
    print(text)
    if not options.quick:
        RESULTS.write_text(page, encoding="utf-8")
        print(f"\nsaved as {RESULTS}")


if __name__ == "__main__":
    main()
