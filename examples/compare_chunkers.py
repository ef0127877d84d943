"""Compare ways to split documents, with the same search: karat's handbook and its questions.

    python examples/compare_chunkers.py

For your own documents, set PAGES to a folder of text files and GOLD to questions with spans.
`karat locate` turns quotes into spans.
"""

from importlib.resources import files

import karat
from karat.live.retrievers import BM25

HANDBOOK = files("karat") / "docs" / "handbook"
PAGES, GOLD = str(HANDBOOK), str(HANDBOOK / "gold.jsonl")
# At equal k, larger chunks would win: compare at an equal number of characters.
MEASURES = ["span.recall@2000c", "span.precision@2000c"]

pages = karat.Corpus.read(PAGES)
retrievers = {
    "fixed-1600": BM25(pages, chunker="fixed", chunk_size=1600, cache=False),
    "markdown-800": BM25(pages, chunker="markdown", chunk_size=800, cache=False),
    "recursive-400": BM25(pages, chunker="recursive", chunk_size=400, cache=False),
}
runs = {
    name: karat.retrieve(retriever, GOLD, top_k=20, name=name)
    for name, retriever in retrievers.items()
}
print(karat.compare(GOLD, runs, MEASURES))
