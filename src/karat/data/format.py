"""What a format is; each file beside this one that reads and writes one declares it as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from karat.data.files import Source
from karat.data.gold import Gold
from karat.data.run import Run


@dataclass(frozen=True)
class Format:
    """One format: how to know it, read it and write it."""

    name: str
    endings: tuple[str, ...]
    sniff: Callable[[bytes, str], bool]
    """From the first bytes and the ending."""
    read_gold: Callable[[Source], Gold]
    read_run: Callable[[Source], Run]
    write_gold: Callable[[Gold, IO[bytes]], None]
    write_run: Callable[[Run, IO[bytes]], None]
