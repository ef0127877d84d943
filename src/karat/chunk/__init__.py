"""Split documents into chunks with exact offsets.

Every chunk is a substring of its document: `corpus[doc_id][start:end] == text`. Its id is
`doc_id#start-end`, so the same chunk has the same id, whichever function created it.
"""

from karat.chunk.by_size import fixed, recursive
from karat.chunk.by_structure import markdown, sentences
from karat.chunk.splitters import with_splitter

__all__ = ["fixed", "markdown", "recursive", "sentences", "with_splitter"]
