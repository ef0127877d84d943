"""Expected errors: their kind and where they point, never their wording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from karat.errors import InputError

UNCHECKED: Any = object()


@contextmanager
def refused(
    kind: type[InputError] = InputError,
    *,
    path: Any = UNCHECKED,
    line: Any = UNCHECKED,
    field: Any = UNCHECKED,
) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect an error of exactly this kind that points to this path, line and field."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert type(error) is kind
    if path is not UNCHECKED:
        assert error.path == (None if path is None else str(path))
    if line is not UNCHECKED:
        assert error.line == line
    if field is not UNCHECKED:
        assert error.field == field
