"""`karat demo`: score example data."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import click

from karat.cli.options import FILE
from karat.cli.parameters import Argument, command
from karat.errors import InputError
from karat.files import writing

GOLD = "support-faq.jsonl"
RUNS = ("bm25.run", "hybrid.jsonl")


def copy_example(folder: Path) -> tuple[Path, list[Path]]:
    """Copy gold and runs into a folder, and return their paths."""
    if folder.exists() and not folder.is_dir():
        raise InputError("expected a folder, got a file", path=folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder cannot be created ({error.strerror})", path=folder) from error
    for name in (GOLD, *RUNS):
        content = files("karat").joinpath("docs", "faq", name).read_bytes()
        with writing(folder / name) as file:
            file.write(content)
    return folder / GOLD, [folder / name for name in RUNS]


@command(
    "demo",
    Argument(
        "folder",
        metavar="FOLDER",
        type=FILE,
        default=Path("karat-demo"),
        text="The folder for the example files.  [default: karat-demo]",
    ),
)
def demo_command(folder: Path) -> None:
    """Copy example data into a folder and score it."""
    from karat.cli.evaluate import evaluate_command
    from karat.report.page.scripts import REQUIRED

    gold, runs = copy_example(folder)
    names = [str(run) for run in runs]
    outputs = [folder / "scores.json"]
    if all(map(find_spec, REQUIRED)):
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
