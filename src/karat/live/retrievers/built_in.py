"""What the built-in retrievers have in common, and their names: bm25:CORPUS, dense:…, hybrid:…."""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

from karat.data.columns import Columns
from karat.data.data_file import PathSource
from karat.errors import InputError
from karat.live.retrievers.items import Items

CLASSES = {
    "bm25": ("karat.live.retrievers.bm25", "BM25"),
    "dense": ("karat.live.retrievers.dense", "Dense"),
    "hybrid": ("karat.live.retrievers.hybrid", "Hybrid"),
}
"""The module and the class of each kind."""


class BuiltIn(ABC):
    """A retriever over a corpus, which is ready to search."""

    kind: ClassVar[str]
    """The name before the colon in `--retriever`."""
    items: Items
    """What is searched."""
    settings: Mapping[str, Any]
    """Everything that influences the results, for the header of a run."""

    @property
    def name(self) -> str:
        """The name in the header of a run."""
        return f"{self.kind}:{self.items.source}"

    @abstractmethod
    def search(self, query: str, top_k: int = 20) -> list[dict[str, Any]]:
        """Return the best items for a query."""

    def common_settings(self) -> dict[str, Any]:
        """Return the settings that all built-in retrievers have."""
        corpus = {"items": len(self.items), "sha256": self.items.digest}
        return {"corpus": corpus, **self.items.chunking.as_settings()}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.items.about}>"


def is_built_in(target: Any) -> bool:
    """Return whether this is a text such as bm25:CORPUS."""
    return isinstance(target, str) and target.partition(":")[0] in CLASSES and ":" in target


def create_built_in(
    target: str, options: Mapping[str, Any] | None = None, columns: Columns | None = None
) -> BuiltIn:
    """Create the retriever for a text such as bm25:CORPUS.

    Parameters
    ----------
    target : str
        The kind, a colon and the path of the corpus.
    options : mapping, optional
        Parameters of the class. One that the class does not have is an error.
    columns : Columns, optional
        The names of the columns of the corpus.
    """
    kind, _, path = target.partition(":")
    retriever_class = built_in_class(kind)
    options = options or {}
    allowed = set(inspect.signature(retriever_class).parameters) - {"corpus"}
    for name in options:
        if name not in allowed:
            raise InputError(
                f"{kind} has no such option", field=name, hint=_kinds_with_option(name)
            )
    if not path:
        raise InputError(
            f"the corpus after {kind}: is missing",
            field="retriever",
            hint=f"write {kind}:PATH, with a folder of documents, a JSON Lines or a Parquet file",
        )
    _refuse_module(kind, path)
    corpus: Any = PathSource(path, columns=columns) if columns else path
    retriever: BuiltIn = retriever_class(corpus, **options)
    return retriever


def built_in_class(kind: str) -> Any:
    """Return the class of a kind of built-in retriever."""
    module, name = CLASSES[kind]
    return getattr(import_module(module), name)


def _refuse_module(kind: str, path: str) -> None:
    """Raise an error if this is not a corpus, but a function in a module such as bm25.py."""
    is_module = os.path.isfile(f"{kind}.py") or os.path.isfile(f"{kind}/__init__.py")
    if is_module and path.isidentifier() and not os.path.exists(path):
        raise InputError(
            f"{kind}:{path} is the built-in retriever {kind} with the corpus {path}, which was not "
            "found",
            field="retriever",
            hint=f"for {path} in the module {kind}, write python:{kind}:{path}",
        )


def _kinds_with_option(name: str) -> str:
    kinds = [kind for kind in CLASSES if name in inspect.signature(built_in_class(kind)).parameters]
    return "remove the option, or use --retriever " + " or ".join(f"{kind}:…" for kind in kinds)
