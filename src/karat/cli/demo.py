"""`karat demo`: the main job on example data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from karat.cli.options import FILE
from karat.cli.parameters import Argument, command


@command(
    "demo",
    Argument(
        "folder",
        metavar="FOLDER",
        type=FILE,
        default=Path("karat-demo"),
        text="Where to put the example files.  [default: karat-demo]",
    ),
)
def demo_command(folder: Path) -> None:
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
    click.get_current_context().invoke(
        evaluate_command, gold=str(gold), runs=names, by=("category",), output=outputs
    )
