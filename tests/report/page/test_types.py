"""The scripts of a page know the same data as Python: the declarations are up to date."""

from __future__ import annotations

import runpy
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "build_page_types.py"


def test_declarations_for_the_scripts_follow_the_structs() -> None:
    tool = runpy.run_path(str(TOOL))
    assert tool["TARGET"].read_text(encoding="utf-8") == tool["declarations"](), (
        "run tools/build_page_types.py"
    )
