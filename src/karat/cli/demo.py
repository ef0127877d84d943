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
    """Copy example data into a folder and score it."""
    from karat.cli.evaluate import evaluate_command
    from karat.cli.example import copy_example

    gold, runs = copy_example(folder)
    names = [str(run) for run in runs]
    results = folder / "scores.json"
    print(f"The files are in {folder}:")
    print(f"  {gold.name}  what should be found")
    for run in runs:
        print(f"  {run.name.ljust(len(gold.name))}  what was found")
    command = [f"$ karat eval {gold}", *names, f"--by category -o {results}"]
    print("\n" + " \\\n    ".join(command), "\n", flush=True)
    evaluate_command(str(gold), names, by=["category"], output=[results])
