"""Chunking of documents."""

from types import SimpleNamespace

from karat import chunk
from messages.cases import Section

SECTION = Section("chunk")
case = SECTION.case

DOCUMENTS = {"d1": "one two  three"}


def split(name: str, splitter) -> None:
    case(name, lambda: chunk.with_splitter(DOCUMENTS, splitter))


case("a size is 0", lambda: chunk.fixed(DOCUMENTS, size=0))
case("an overlap is as large as the size", lambda: chunk.fixed(DOCUMENTS, size=5, overlap=5))
case("a level of headings is 0", lambda: chunk.markdown(DOCUMENTS, level=0))
case("separators are not a list", lambda: chunk.recursive(DOCUMENTS, separators=" "))
split("a splitter is not a splitter", 7)
split("a splitter makes something without text", lambda text: [SimpleNamespace(n=1)])
split("a splitter changes the text", lambda text: ["one", "zwei"])
split("a splitter changes white space", lambda text: ["one", "two three"])
