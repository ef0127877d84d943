"""The scripts of a page are typed: the TypeScript compiler checks them against the page's data."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_scripts_pass_the_type_checker() -> None:
    if (npx := shutil.which("npx")) is None:
        pytest.skip("no npx found: install Node.js")
    command = [npx, "--yes", "--package", "typescript@5", "tsc", "--project", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
