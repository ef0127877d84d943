"""Asking a live retriever, and what that took.

Nothing is imported before it is needed: retrievers that go to work import `karat.stage`.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "otel":
        return import_module("karat.live.otel")
    raise AttributeError(f"module 'karat.live' has no attribute {name!r}")
