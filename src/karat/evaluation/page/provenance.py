"""What went into scores: which files, and what tells them from others of the same name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from karat.data.files import expand, flows, path_of
from karat.errors import InputError
from karat.evaluation.scores import Scores
from karat.report.page.model import Input


def inputs(scores: Sequence[Scores], *, settings: str | None = None) -> list[Input]:
    """Return every file that went in, each once, and what was given in memory.

    `settings` is the path of the karat.toml that was heeded.
    """
    given: dict[tuple[str, str | None, str], None] = {}
    for origin in filter(None, (score.origin for score in scores)):
        for role, path in origin.session.paths.items():
            given[role, path, "in memory"] = None
    for score in scores:
        if score.origin is None:
            given["scores", score.path, score.name] = None
        else:
            given["run", path_of(score.origin.source), score.name] = None
    if settings is not None:
        given["settings", settings, settings] = None
    return [each for told in given for each in _inputs(*told)]


def _inputs(role: str, path: str | None, name: str) -> Iterator[Input]:
    """Yield the files that a path or a glob leads to; what changed or went away has no digest."""
    if path is None or flows(path):
        yield Input(role, name if path is None else path)
    elif Path(path).is_dir():
        files = sorted(file for file in Path(path).rglob("*") if file.is_file())
        size = sum(file.stat().st_size for file in files)
        yield Input(role, f"{path.rstrip('/')}/", size, _digest_of_all(Path(path), files))
    else:
        try:
            names = [source.path for source in expand(path)]
        except InputError:
            yield Input(role, path)
            return
        for file in names:
            yield Input(role, str(file), file.stat().st_size, _digest(file))


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _digest_of_all(folder: Path, files: list[Path]) -> str:
    """Return one digest of a folder: of what `sha256sum` says of its files, in order of path."""
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{_digest(file)}  {file.relative_to(folder).as_posix()}\n".encode())
    return whole.hexdigest()
