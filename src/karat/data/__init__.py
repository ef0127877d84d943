"""What comes in: gold and runs as values, and the readers and writers, one file a format."""

from karat.data.gold import Gold
from karat.data.run import Run

__all__ = ["Gold", "Run"]
