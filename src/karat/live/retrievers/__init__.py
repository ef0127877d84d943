"""The kinds of retrievers that karat can run, one module per kind.

The public names are classes for retrievers that need no code of the user: `BM25`, `Dense` and
`Hybrid` search a corpus, the others are search engines. Each is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.live.retrievers.bm25 import BM25
    from karat.live.retrievers.dense import Dense
    from karat.live.retrievers.hybrid import Hybrid
    from karat.live.retrievers.search_engines.elasticsearch import Elasticsearch, OpenSearch
    from karat.live.retrievers.search_engines.pgvector import PgVector
    from karat.live.retrievers.search_engines.qdrant import Qdrant

__all__ = ["BM25", "Dense", "Elasticsearch", "Hybrid", "OpenSearch", "PgVector", "Qdrant"]
_MODULE_OF = {
    "BM25": "bm25",
    "Dense": "dense",
    "Elasticsearch": "search_engines.elasticsearch",
    "Hybrid": "hybrid",
    "OpenSearch": "search_engines.elasticsearch",
    "PgVector": "search_engines.pgvector",
    "Qdrant": "search_engines.qdrant",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'karat.live.retrievers' has no attribute {name!r}")
    return getattr(import_module(f"karat.live.retrievers.{_MODULE_OF[name]}"), name)
