"""Splitters of LangChain and LlamaIndex, on real documents where they are there."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import langchain_text_splitters as langchain
import pytest
from llama_index.core import node_parser as llama_index

import karat
from karat import chunk
from support.paths import ROOT

REAL = next(
    (
        folder
        for folder in (ROOT.parent / "shared/data", Path("/work/shared/data"))
        if folder.is_dir()
    ),
    ROOT / "shared/data",
)
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


def real() -> karat.Corpus:
    folder = REAL / "chunking-evaluation" / "corpora"
    if not folder.is_dir():
        pytest.skip("the real documents are not here")
    return karat.Corpus.read(folder)


def check(corpus: karat.Corpus, splitter) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", karat.KaratWarning)
        chunks = chunk.with_splitter(corpus, splitter)
    missing = {doc_id: set(range(len(corpus[doc_id]))) for doc_id in corpus.doc_ids}
    last = dict.fromkeys(corpus.doc_ids, (0, 0))
    for _, doc_id, start, end, text in chunks.frame.iter_rows():
        assert corpus[doc_id][start:end] == text
        assert (start, end) > last[doc_id]
        last[doc_id] = (start, end)
        missing[doc_id].difference_update(range(start, end))
    for doc_id, places in missing.items():
        assert "".join(corpus[doc_id][at] for at in places).strip() == "", doc_id


@pytest.mark.parametrize("splitter", WHOLE, ids=lambda splitter: type(splitter).__name__)
def test_chunks_are_where_they_are_and_cover_real_documents(splitter):
    check(real(), splitter)


@pytest.mark.parametrize("splitter", WHOLE, ids=lambda splitter: type(splitter).__name__)
def test_chunks_are_where_they_are_and_cover_awkward_documents(splitter):
    check(karat.Corpus.of(MADE), splitter)


def test_changed_white_space_is_said():
    splitter = langchain.MarkdownHeaderTextSplitter([("#", "1")])
    with pytest.warns(karat.KaratWarning, match="changed white space"):
        found = chunk.with_splitter({"d": "# A\none\n\n\ntwo\n# B\nthree"}, splitter)
    assert found.frame["text"].to_list() == ["one\n\n\ntwo", "three"]


def test_text_that_repeats_itself_is_covered_where_chunks_do_not_overlap():
    corpus = karat.Corpus.of({"d": "la " * 500 + "\n\n" + "la\n" * 300 + "." * 700})
    check(corpus, langchain.RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0))
    check(corpus, llama_index.SentenceSplitter(chunk_size=30, chunk_overlap=0, tokenizer=words))


def test_places_agree_with_langchain_but_where_it_looks_inside_the_chunk_before():
    corpus = real()
    splitter = langchain.RecursiveCharacterTextSplitter(
        chunk_size=400, chunk_overlap=60, add_start_index=True
    )
    for doc_id in corpus.doc_ids:
        told = [one.metadata["start_index"] for one in splitter.create_documents([corpus[doc_id]])]
        frame = chunk.with_splitter({doc_id: corpus[doc_id]}, splitter).frame
        before = frame["end"].shift(1, fill_value=0)
        for ours, theirs, text, end in zip(
            frame["start"], told, frame["text"], before, strict=True
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
    with pytest.raises(karat.InputError, match="not in the text after the piece before it"):
        chunk.with_splitter({"d": text}, parser)


def test_karat_imports_neither_library_by_itself():
    code = "import sys, karat.chunk as c; c.with_splitter({'d': 'a b'}, str.split); "
    code += "print({'langchain_text_splitters', 'llama_index'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
