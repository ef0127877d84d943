"""`karat init`: write a starter project."""

from __future__ import annotations

from pathlib import Path

from karat.cli.options import FILE
from karat.cli.parameters import Argument, command

_CONTENTS = {
    "karat.toml": "the settings; start here",
    "gold.jsonl": "three questions, with the documents that answer them",
    "my_retriever.py": "a retriever to replace by yours",
    "corpus/": "five documents that it searches",
    ".github/workflows/karat.yml": "checks every pull request on GitHub",
}
_NEXT = {
    "karat run": "run the retriever on all questions",
    "karat eval": "score what it returned",
    "karat gate --update-baseline": "check the thresholds, and save the scores as the baseline",
    "karat compare": "after a change: compare the new run with the baseline",
}


@command(
    "init",
    Argument(
        "folder",
        metavar="FOLDER",
        type=FILE,
        default=Path(),
        text="The folder for the files.  [default: the current folder]",
    ),
)
def init_command(folder: Path) -> None:
    """Write a starter project: settings, questions, a retriever and a workflow for CI.

    Files are never replaced. If one exists, nothing is written and the exit code is 2.
    """
    from karat.starter import write_starter

    paths = [path.relative_to(folder).as_posix() for path in write_starter(folder)]
    is_here = folder.resolve() == Path.cwd()
    print(f"wrote {len(paths)} files to {'this folder' if is_here else folder}:")
    width = max(map(len, [*_CONTENTS, *_NEXT]))
    for name, text in _CONTENTS.items():
        print(f"  {name:<{width}}  {text}")
    print("\nnext:")
    if not is_here:
        print(f"  cd {folder}")
    for line, text in _NEXT.items():
        print(f"  {line:<{width}}  {text}")
    if (root := _other_root(folder)) is not None:
        print(f"\nGitHub reads workflows only from {root / '.github' / 'workflows'}: move it there")


def _other_root(folder: Path) -> Path | None:
    """Return the root of the git repository if it is not the folder itself."""
    path = folder.resolve()
    if (path / ".git").exists():
        return None
    return next((parent for parent in path.parents if (parent / ".git").exists()), None)
