"""The file of a run: written as it goes, held by one process, gone on with after a stop."""

from karat.live.file.journal import Journal

__all__ = ["Journal"]
