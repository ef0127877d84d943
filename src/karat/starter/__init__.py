"""The starter project of `karat init`: settings, three questions, a retriever and a CI workflow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from importlib.resources import files
from pathlib import Path

from karat.config import PYPROJECT, Config
from karat.errors import InputError
from karat.files import path_is, system_reason, writing

FILES = {
    "karat.toml": "karat.toml",
    "gold.jsonl": "gold.jsonl",
    "my_retriever.py": "my_retriever.py",
    "corpus/account.md": "corpus/account.md",
    "corpus/password.md": "corpus/password.md",
    "corpus/refunds.md": "corpus/refunds.md",
    "corpus/returns.md": "corpus/returns.md",
    "corpus/shipping.md": "corpus/shipping.md",
    ".github/workflows/karat.yml": "workflow.yml",
}
"""The files of the project, and where their contents are in this package."""


def write_starter(folder: str | os.PathLike[str] = ".") -> list[Path]:
    """Write the starter project to a folder, which is created if it does not exist.

    Files are never replaced: if one exists, an error lists all that do, and nothing is written.

    Returns
    -------
    list of Path
        The paths of the written files.
    """
    target = Path(folder)
    if existing := list(_existing_files(target)):
        raise InputError(
            f"nothing was written, because these files exist: {', '.join(existing)}",
            path=folder,
            hint="choose a new folder: karat init FOLDER",
        )
    contents = {
        target / name: files(__name__).joinpath("files", *source.split("/")).read_bytes()
        for name, source in FILES.items()
    }
    created: list[Path] = []
    try:
        for path in contents:
            _create_folder(path.parent, created)
        with ExitStack() as stack:
            # All files are written before the first one is renamed to its final path.
            for path, content in contents.items():
                stack.enter_context(writing(path)).write(content)
    except BaseException:
        for path in reversed(created):
            with suppress(OSError):
                path.rmdir()
        raise
    return list(contents)


def _create_folder(folder: Path, created: list[Path]) -> None:
    """Create a folder and its parents, and add those that did not exist to a list."""
    if path_is(Path.is_dir, folder):
        return
    if path_is(Path.exists, folder):
        raise InputError(
            "expected a folder, got a file",
            path=folder,
            hint="choose a new folder: karat init FOLDER",
        )
    _create_folder(folder.parent, created)
    try:
        folder.mkdir()
    except OSError as error:
        raise InputError(
            f"the folder cannot be created: {system_reason(error)}",
            path=folder,
            hint="choose another folder: karat init FOLDER",
        ) from error
    created.append(folder)


def _existing_files(target: Path) -> Iterator[str]:
    """Yield the files that the project would replace, or that contain settings already."""
    yield from (name for name in FILES if os.path.lexists(target / name))
    try:
        Config.read(target / PYPROJECT)
    except InputError:  # there is none, or it has no settings for karat
        return
    yield f"{PYPROJECT} with [tool.karat]"
