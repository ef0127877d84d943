"""Writing pages: as HTML, or as a card; the extension selects the format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import warn
from karat.format import file_size

if TYPE_CHECKING:
    from karat.report.page.model import Page

PAGES = (".html", ".htm")
CARDS = (".png", ".svg")
"""Pictures of the main result."""
LARGE = 20_000_000
"""The size in bytes above which a page is slow to open and to send."""


def write(page: Page, path: str | os.PathLike[str]) -> None:
    """Write a page, or its card; warn if the file is large."""
    from karat.report.page import build
    from karat.report.page.sections import card

    if Path(path).suffix.lower() in CARDS:
        card.write_card(page, path)
        return
    build.write(page, path)
    size = Path(path).stat().st_size
    if size > LARGE:
        message = (
            f"{os.fspath(path)} has {file_size(size)} and opens slowly; lower --report-texts "
            "(in Python: texts)"
        )
        warn(message, stacklevel=5)
