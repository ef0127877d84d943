"""Where in src/karat messages are made, found in the source text."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from karat.errors import (
    ConventionError,
    InputError,
    KaratWarning,
    MeasureError,
    RetrieverError,
)
from karat.live.protocol import AttemptError
from messages.cases import SOURCE, Site

KINDS = (InputError, MeasureError, ConventionError, RetrieverError, KaratWarning, AttemptError)
"""What a person is shown; an AttemptError is recorded in the run."""
NAMES = {kind.__name__ for kind in KINDS}


@dataclass(frozen=True)
class Made:
    """A call that makes a message: an error's class, or a function that returns an error."""

    path: str
    function: str
    ordinal: int
    """Which of the calls in the function it is, from 1."""
    line: int
    end: Site

    def is_named(self, names: set[str]) -> bool:
        """Return whether a list names this call, or all calls of its function."""
        return bool({f"{self.path}:{self.function}", str(self)} & names)

    def __str__(self) -> str:
        return f"{self.path}:{self.function}#{self.ordinal}"


def found_sites() -> list[Made]:
    """Return all calls that make a message, in the order of the source."""
    trees = {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "errors.py"
    }
    factories = {path: set(_factories(tree)) for path, tree in trees.items()}
    public = {name for names in factories.values() for name in names if not name.startswith("_")}
    found = []
    for path, tree in trees.items():
        others = {
            name for name, home in _imported(tree) if name not in factories.get(home, set())
        } - NAMES
        found += _made_in(path, tree, ({*NAMES, *public} - others) | factories[path])
    return found


def _factories(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions that return an error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            returned = {name.id for name in ast.walk(node.returns) if isinstance(name, ast.Name)}
            if returned & NAMES:
                yield node.name


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that a module imports from karat, and the file it is from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("karat."):
            home = f"{(node.module or '').removeprefix('karat.').replace('.', '/')}.py"
            yield from ((alias.asname or alias.name, home) for alias in node.names)


def _made_in(path: str, tree: ast.Module, makers: set[str]) -> Iterator[Made]:
    counts: Counter[str] = Counter()

    def visit(node: ast.AST, outer: tuple[str, ...]) -> Iterator[Made]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            outer = (*outer, node.name)
        if isinstance(node, ast.Call) and _called(node) in makers:
            function = ".".join(outer)
            counts[function] += 1
            end = (path, node.end_lineno, node.end_col_offset)
            yield Made(path, function, counts[function], node.lineno, end)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, outer)

    return visit(tree, ())


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def source_line(site: Made) -> str:
    """Return the line where a call begins, for a report."""
    return Path(SOURCE, site.path).read_text(encoding="utf-8").splitlines()[site.line - 1].strip()
