"""What a case is, and how it is run.

A case has a plain name and a function that provokes exactly one message: an error of karat, a
KaratWarning, or a text that the function returns because karat stores it instead of raising it.
Each case runs in an empty folder of its own, which is also the current one.
"""

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import karat.errors
from karat.errors import KaratError, KaratWarning

SOURCE = Path(karat.errors.__file__).parent

Site = tuple[str, int | None, int | None]
"""A call: its file below src/karat, and the line and column where it ends."""


@dataclass(frozen=True)
class Case:
    """One message: what is wrong, and how to provoke it."""

    name: str
    provoke: Callable[[], Any]
    volatile: str | None = None
    """A pattern for what other libraries say, which differs from version to version."""


@dataclass
class Section:
    """The cases of one package."""

    package: str
    cases: list[Case] = field(default_factory=list)

    def case(self, name: str, provoke: Callable[[], Any], *, volatile: str | None = None) -> None:
        """Add a case."""
        assert name not in {case.name for case in self.cases}, name
        self.cases.append(Case(name, provoke, volatile))

    def file(
        self,
        name: str,
        read: Callable[[str], Any],
        path: str,
        content: str | bytes,
        *,
        volatile: str | None = None,
    ) -> None:
        """Add a case of a file that cannot be read; `read` gets its path."""
        self.case(name, lambda: read(written(path, content)), volatile=volatile)


def written(path: str, content: str | bytes) -> str:
    """Write a file below the current folder and return its path."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def result(case: Case) -> str:
    """Run a case and return the kind and the text of its message."""
    with _own_folder() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        messages = []
        try:
            returned = case.provoke()
        except KaratError as error:
            messages.append(f"{type(error).__name__}: {error}")
        else:
            messages += [returned] if isinstance(returned, str) else []
    for warning in caught:
        assert issubclass(warning.category, KaratWarning), f"{case.name}: {warning.message}"
        messages.append(f"KaratWarning: {warning.message}")
    assert len(messages) == 1, f"{case.name}: one message is expected, got {messages}"
    text = messages[0].replace(folder, "FOLDER")
    return text if case.volatile is None else re.sub(case.volatile, "…", text)


@contextmanager
def _own_folder() -> Iterator[str]:
    before, paths = Path.cwd(), sys.path.copy()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield os.path.realpath(folder)
        finally:
            os.chdir(before)
            sys.path[:] = paths


@contextmanager
def recorded_sites(kinds: Iterable[type]) -> Iterator[set[Site]]:
    """Collect the calls within karat that were under way when a message was made."""
    sites: set[Site] = set()

    def recording(original: Callable[..., None]) -> Callable[..., None]:
        def record(self: Any, *arguments: Any, **options: Any) -> None:
            sites.update(_calls(sys._getframe(1)))
            original(self, *arguments, **options)

        return record

    own = [kind for kind in kinds if "__init__" in vars(kind)]
    inherited = [kind for kind in kinds if not any(issubclass(kind, other) for other in own)]
    with ExitStack() as stack:
        for kind in (*own, *inherited):
            stack.enter_context(patch.object(kind, "__init__", recording(kind.__init__)))
        yield sites


def _calls(frame: FrameType | None) -> Iterator[Site]:
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            positions = islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
            _, line, _, column = next(positions)
            yield path.relative_to(SOURCE).as_posix(), line, column
        frame = frame.f_back
