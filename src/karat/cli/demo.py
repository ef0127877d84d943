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
    from karat.evaluation.example import copy_example

    gold, runs = copy_example(folder)
    names = " ".join(str(run) for run in runs)
    print(f"$ karat eval {gold} {names} --by category\n")
    results = folder / "scores.json"
    evaluate_command(str(gold), [str(run) for run in runs], by=["category"], output=[results])
    print(f"\nThe files are in {folder}: {gold.name} (what should be found), ", end="")
    print(f"{', '.join(run.name for run in runs)} (what was found), {results.name}.")
    print(f"Next: karat eval {gold} {names} -m nDCG@10,RR,R@5 --per-query")
