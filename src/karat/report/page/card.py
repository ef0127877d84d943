"""The card of a page: a picture of its verdict and its main measure."""

from __future__ import annotations

import os

from karat.report.page.model import Page


def write_card(page: Page, path: str | os.PathLike[str]) -> None:
    """Write the card as .png or .svg."""
    raise NotImplementedError
