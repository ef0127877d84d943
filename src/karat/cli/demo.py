"""`karat demo`: the main job on example data."""

from __future__ import annotations

from importlib.util import find_spec
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
    outputs = [folder / "scores.json"]
    if find_spec("altair") and find_spec("vl_convert"):  # karat[report]
        outputs.append(folder / "report.html")
    print(f"The files are in {folder}:")
    print(f"  {gold.name}  what should be found")
    for run in runs:
        print(f"  {run.name.ljust(len(gold.name))}  what was found")
    written = " ".join(f"-o {path}" for path in outputs)
    command = [f"$ karat eval {gold}", *names, f"--by category {written}"]
    print("\n" + " \\\n    ".join(command) + "\n", flush=True)
    evaluate_command(str(gold), names, by=["category"], output=outputs)
