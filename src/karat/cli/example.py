"""The example data that ships with the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from karat.errors import InputError
from karat.files import writing

GOLD = "support-faq.jsonl"
RUNS = ("bm25.run", "hybrid.jsonl")


def copy_example(folder: Path) -> tuple[Path, list[Path]]:
    """Copy gold and runs into a folder; return their paths."""
    if folder.exists() and not folder.is_dir():
        raise InputError("this is a file where a folder is meant", path=folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder cannot be made ({error.strerror})", path=folder) from error
    for name in (GOLD, *RUNS):
        content = files("karat").joinpath("examples", name).read_bytes()
        with writing(folder / name) as file:
            file.write(content)
    return folder / GOLD, [folder / name for name in RUNS]
