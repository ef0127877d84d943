"""`karat demo`: the main job on example data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo_command(
    folder: Annotated[Path, typer.Argument(help="Where to put the example files.")] = Path(
        "karat-demo"
    ),
) -> None:
    """Copy example data into a folder, score it, and say what to try next."""
    from karat.cli.evaluate import evaluate_command
    from karat.cli.example import copy_example

    gold, runs = copy_example(folder)
    names = [str(run) for run in runs]
    results = folder / "scores.json"
    print(" \\\n    ".join([f"$ karat eval {gold}", *names, f"--by category -o {results}"]), "\n")
    evaluate_command(str(gold), names, by=["category"], output=[results])
    print(f"\nThe files are in {folder}:")
    print(f"  {gold.name}  what should be found")
    for run in runs:
        print(f"  {run.name.ljust(len(gold.name))}  what was found")
    print(f"  {results.name.ljust(len(gold.name))}  the scores")
    print(f"Next:\n  karat eval {gold} {names[-1]} --per-query")
    print(" \\\n    ".join([f"  karat compare {gold}", *names]))
