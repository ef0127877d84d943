"""Datasets of Hugging Face, known without importing their package: whoever has one imported it."""

from __future__ import annotations

import sys
from typing import Any

from karat.errors import InputError


def is_dataset(value: Any) -> bool:
    """Tell whether a value is one whole dataset."""
    return _is_a("Dataset", value)


def arrow(value: Any) -> Any:
    """Return a dataset as an Arrow table, its selection of rows applied; anything else as it is."""
    return value.with_format("arrow")[:] if is_dataset(value) else value


def refuse_splits(value: Any) -> None:
    """Refuse a dataset in splits, or one that streams: neither is one table."""
    if _is_a("DatasetDict", value) or _is_a("IterableDatasetDict", value):
        raise InputError(
            f"this dataset has splits: {', '.join(map(str, value))}",
            hint=f"choose one of them, such as dataset[{next(iter(value), 'test')!r}]",
        )
    if _is_a("IterableDataset", value):
        raise InputError(
            "this dataset streams",
            hint="load it without streaming=True, or give list(dataset)",
        )


def _is_a(name: str, value: Any) -> bool:
    kind = getattr(sys.modules.get("datasets"), name, None)
    return isinstance(kind, type) and isinstance(value, kind)
