"""The kinds of retrievers that karat can run, one module per kind.

`BM25`, `Dense` and `Hybrid` are built-in retrievers over a corpus. They are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.live.retrievers.bm25 import BM25
    from karat.live.retrievers.dense import Dense
    from karat.live.retrievers.hybrid import Hybrid

__all__ = ["BM25", "Dense", "Hybrid"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'karat.live.retrievers' has no attribute {name!r}")
    from karat.live.retrievers.built_in import built_in_class

    return built_in_class(name.lower())
