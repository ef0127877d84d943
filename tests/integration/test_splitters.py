"""Splitters of LangChain and LlamaIndex, also on real documents if they are available."""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import cache

import langchain_text_splitters as langchain
import pytest
from llama_index.core import node_parser as llama_index

import karat
from karat import chunk
from support.errors import refused
from support.paths import SHARED_DATA

MADE = {
    "empty": "",
    "blank": " \r\n ",
    "crlf": "# Title\r\n\r\nOne é.  Two 𝄞!\r\n\r\n## Code\r\n```\r\n# no\r\n```\r\n" * 20,
}


def words(text: str) -> list[str]:
    return text.split()


WHOLE = [
    langchain.RecursiveCharacterTextSplitter(chunk_size=800, chunk_overlap=0),
    langchain.RecursiveCharacterTextSplitter(chunk_size=200, chunk_overlap=50),
    langchain.RecursiveCharacterTextSplitter(
        chunk_size=80, chunk_overlap=20, length_function=lambda text: len(text.split())
    ),
    langchain.CharacterTextSplitter(separator=" ", chunk_size=100, chunk_overlap=20),
    langchain.CharacterTextSplitter(separator="\n", chunk_size=400, chunk_overlap=80),
    langchain.MarkdownTextSplitter(chunk_size=400, chunk_overlap=50),
    langchain.MarkdownHeaderTextSplitter([("#", "1"), ("##", "2")], strip_headers=False),
    llama_index.SentenceSplitter(chunk_size=100, chunk_overlap=0, tokenizer=words),
    llama_index.SentenceSplitter(chunk_size=100, chunk_overlap=20, tokenizer=words),
    llama_index.TokenTextSplitter(chunk_size=60, chunk_overlap=10, tokenizer=words),
    llama_index.MarkdownNodeParser(),
]


@cache
def real() -> karat.Corpus:
    folder = SHARED_DATA / "chunking-evaluation" / "corpora"
    if not folder.is_dir():
        pytest.skip(f"the real documents are not in {folder}")
    return karat.Corpus.read(folder)


def check(corpus: karat.Corpus, splitter) -> None:
    """Check that every chunk is where it claims to be, and that only white space is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", karat.KaratWarning)
        chunks = chunk.with_splitter(corpus, splitter)
    previous = dict.fromkeys(corpus.doc_ids, (0, 0))
    covered = dict.fromkeys(corpus.doc_ids, 0)
    for _, doc_id, start, end, text in chunks.frame.iter_rows():
        document = corpus[doc_id]
        assert document[start:end] == text
        assert (start, end) > previous[doc_id]
        assert document[covered[doc_id] : start].strip() == "", (doc_id, start)
        previous[doc_id] = (start, end)
        covered[doc_id] = max(covered[doc_id], end)
    for doc_id, end in covered.items():
        assert corpus[doc_id][end:].strip() == "", doc_id


@pytest.mark.parametrize("splitter", WHOLE, ids=lambda splitter: type(splitter).__name__)
def test_chunks_cover_real_documents(splitter):
    check(real(), splitter)


@pytest.mark.parametrize("splitter", WHOLE, ids=lambda splitter: type(splitter).__name__)
def test_chunks_cover_awkward_documents(splitter):
    check(karat.Corpus.of(MADE), splitter)


def test_changed_white_space_is_warned_about():
    splitter = langchain.MarkdownHeaderTextSplitter([("#", "1")])
    with pytest.warns(karat.KaratWarning):
        chunks = chunk.with_splitter({"d": "# A\none\n\n\ntwo\n# B\nthree"}, splitter)
    assert chunks.frame["text"].to_list() == ["one\n\n\ntwo", "three"]


def test_repetitive_text_is_covered_by_chunks_without_overlap():
    corpus = karat.Corpus.of({"d": "la " * 500 + "\n\n" + "la\n" * 300 + "." * 700})
    check(corpus, langchain.RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0))
    check(corpus, llama_index.SentenceSplitter(chunk_size=30, chunk_overlap=0, tokenizer=words))


def test_offsets_agree_with_langchain_except_where_it_searches_in_the_previous_chunk():
    corpus = real()
    splitter = langchain.RecursiveCharacterTextSplitter(
        chunk_size=400, chunk_overlap=60, add_start_index=True
    )
    for doc_id in corpus.doc_ids:
        documents = splitter.create_documents([corpus[doc_id]])
        langchain_starts = [document.metadata["start_index"] for document in documents]
        frame = chunk.with_splitter({doc_id: corpus[doc_id]}, splitter).frame
        before = frame["end"].shift(1, fill_value=0)
        for ours, theirs, text, end in zip(
            frame["start"], langchain_starts, frame["text"], before, strict=True
        ):
            assert ours == theirs or theirs + len(text) < end


def test_nodes_out_of_order_are_refused():
    parser = llama_index.HierarchicalNodeParser.from_defaults(
        node_parser_ids=["large", "small"],
        node_parser_map={
            "large": llama_index.SentenceSplitter(chunk_size=40, chunk_overlap=0, tokenizer=words),
            "small": llama_index.SentenceSplitter(chunk_size=10, chunk_overlap=0, tokenizer=words),
        },
    )
    text = "".join(f"Sentence {number} says so. " for number in range(100))
    with refused():
        chunk.with_splitter({"d": text}, parser)


def test_karat_imports_neither_library():
    code = "import sys, karat.chunk as c; c.with_splitter({'d': 'a b'}, str.split); "
    code += "print({'langchain_text_splitters', 'llama_index'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
