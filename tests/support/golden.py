"""Comparison with a file under tests/golden, and how to rewrite that file."""

import difflib
import os
from pathlib import Path

import pytest


def check_golden(path: Path, text: str) -> None:
    """Compare a text with a golden file; with KARAT_UPDATE=1, write the file instead."""
    if os.environ.get("KARAT_UPDATE"):
        path.write_text(text, encoding="utf-8")
        return
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    if text != expected:
        lines = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), f"golden/{path.name}", "now", lineterm="", n=2
        )
        pytest.fail(
            "\n".join([*lines, "", "If this is intended, `make messages` rewrites the file."]),
            pytrace=False,
        )
