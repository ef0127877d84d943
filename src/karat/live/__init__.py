"""Run retrievers, and record their results, latencies and model calls.

`karat.live.otel` and `karat.live.retrievers` are imported on first use: retrievers in production
import `karat.stage`, which must stay cheap.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("otel", "retrievers"):
        return import_module(f"karat.live.{name}")
    raise AttributeError(f"module 'karat.live' has no attribute {name!r}")
