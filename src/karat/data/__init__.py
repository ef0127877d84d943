"""Input data: gold, runs, corpora and chunks, with their readers and writers."""

from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from karat.data.gold import Gold
from karat.data.run import Run

__all__ = ["Chunks", "Corpus", "Gold", "Run"]
