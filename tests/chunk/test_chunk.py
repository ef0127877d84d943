"""Chunkers: every chunk is a substring of its document, and no text is lost."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat import chunk
from karat.errors import KaratWarning
from support.effort import examples
from support.errors import refused

PROSE = ["a", "Dr.", "word", "end. ", "So? ", "é𝄞", "e\u0301", "。"]
SPACE = [" ", "    ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "\u2003", "\x1c"]
MARKS = ["# T\n", "\n## U\n", "```\n", "~~~~\n", "---\n", "===\n", "- x\n"]
WORDS = st.sampled_from([*PROSE, *SPACE, *MARKS])
TEXTS = st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=60)
CORPORA = st.dictionaries(st.sampled_from(["a", "b#0-1", "c/d.md"]), TEXTS)
SIZES = st.integers(1, 30)


def texts(chunks: karat.Chunks) -> list[str]:
    return chunks.frame["text"].to_list()


def spans(chunks: karat.Chunks) -> list[tuple[int, int]]:
    return list(zip(chunks.frame["start"], chunks.frame["end"], strict=True))


def check_spans(chunks: karat.Chunks, corpus: dict[str, str]) -> None:
    """Check that every chunk is a substring at its offsets, and that ids are unique."""
    karat.Chunks.of(chunks.frame)
    assert chunks.frame["item_id"].is_unique().all()
    for item_id, doc_id, start, end, text in chunks.frame.iter_rows():
        assert corpus[doc_id][start:end] == text != ""
        assert item_id == f"{doc_id}#{start}-{end}"


def check_coverage(chunks: karat.Chunks, corpus: dict[str, str]) -> None:
    """Check that every non-space character is in exactly one chunk, in the original order."""
    for doc_id, text in corpus.items():
        parts = chunks.frame.filter(doc_id=doc_id)["text"]
        assert "".join("".join(parts).split()) == "".join(text.split())


@examples(60, 600)
@given(CORPORA, SIZES, st.integers(0, 29))
def test_fixed_chunks_overlap_by_the_given_number_and_reach_the_end(corpus, size, overlap):
    if overlap >= size:
        with refused(path=None, field="overlap") as caught:
            chunk.fixed(corpus, size=size, overlap=overlap)
        assert set(re.findall(r"\d+", caught.value.problem)) == {str(overlap), str(size)}
        return
    chunks = chunk.fixed(corpus, size=size, overlap=overlap)
    check_spans(chunks, corpus)
    for doc_id, text in corpus.items():
        parts = texts(karat.Chunks(chunks.frame.filter(doc_id=doc_id)))
        assert "".join(parts[:1] + [part[overlap:] for part in parts[1:]]) == text
        assert all(len(part) == size for part in parts[:-1])
        assert all(len(part) > overlap for part in parts[1:])


@examples(60, 600)
@given(CORPORA, SIZES)
def test_recursive_chunks_contain_everything_and_fit(corpus, size):
    chunks = chunk.recursive(corpus, size=size)
    check_spans(chunks, corpus)
    check_coverage(chunks, corpus)
    assert all(len(text) <= size and text == text.strip() for text in texts(chunks))


@examples(60, 600)
@given(CORPORA, SIZES, st.lists(st.sampled_from(["\n## ", ". ", "a", "aa", "\n", "no"])))
def test_any_separators_lose_nothing(corpus, size, separators):
    chunks = chunk.recursive(corpus, size=size, separators=separators)
    check_spans(chunks, corpus)
    check_coverage(chunks, corpus)


@examples(60, 600)
@given(CORPORA, SIZES)
def test_sentences_contain_everything_and_fit(corpus, size):
    chunks = chunk.sentences(corpus, size=size)
    check_spans(chunks, corpus)
    check_coverage(chunks, corpus)
    assert all(len(text) <= size for text in texts(chunks))


@examples(60, 600)
@given(CORPORA, SIZES | st.none(), st.integers(1, 6))
def test_markdown_sections_contain_everything(corpus, size, level):
    chunks = chunk.markdown(corpus, size=size, level=level)
    check_spans(chunks, corpus)
    check_coverage(chunks, corpus)
    assert size is None or all(len(text) <= size for text in texts(chunks))


def test_separator_ends_its_piece_unless_it_begins_with_white_space():
    cut = chunk.recursive({"d": "Aa. Bb. Cc.\n## D"}, size=4, separators=["\n## ", ". "])
    assert texts(cut) == ["Aa.", "Bb.", "Cc.", "## D"]


def test_without_the_empty_separator_a_long_piece_stays_whole():
    assert texts(chunk.recursive({"d": "abcdef gh"}, size=3, separators=[" "])) == ["abcdef", "gh"]


def test_paragraphs_are_separated_with_either_line_ending():
    for newline in ("\n", "\r\n"):
        text = f"one two{newline}three{newline}{newline}four five"
        parts = texts(chunk.recursive({"d": text}, size=16))
        assert parts == [f"one two{newline}three", "four five"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
        ("Dr. J. Low saw e.g. Mr. Who. Yes.", ["Dr. J. Low saw e.g. Mr. Who.", "Yes."]),
        ("Version 1.2 is out. it rose 3.4 percent", ["Version 1.2 is out. it rose 3.4 percent"]),
        ("A title\n\nText, etc.\n\nMore", ["A title", "Text, etc.", "More"]),
        ("一。二！三", ["一。", "二！", "三"]),
        ("एक। दो।", ["एक।", "दो।"]),
        ("no end", ["no end"]),
    ],
)
def test_sentence_boundaries(text, expected):
    alone = [texts(chunk.sentences({"d": text}, size=size)) for size in range(1, len(text) + 1)]
    assert expected in alone


@pytest.mark.parametrize("text", [".", " ", "\n", "x"])
def test_long_text_of_one_character_is_chunked_quickly(text):
    text *= 200_000
    begin = time.process_time()
    for cut in (chunk.recursive, chunk.sentences, chunk.markdown):
        check_coverage(cut({"d": text}), {"d": text})
    assert time.process_time() - begin < 10  # some 0.2 s; quadratic time would take minutes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\nx\n## B\ny", ["# A\nx", "## B\ny"]),
        ("#A\n####### B\n    # C\n   # D", ["#A\n####### B\n    # C", "# D"]),
        ("````\n```\n# a\n````\n# B", ["````\n```\n# a\n````", "# B"]),
        ("~~~ md\n# a\n```\n# b\n~~~\n# C", ["~~~ md\n# a\n```\n# b\n~~~", "# C"]),
        ("```\n# never closed", ["```\n# never closed"]),
        ("``` a`b\n# A", ["``` a`b", "# A"]),
        ("x\n\nA\nB\n===\ny\nC\n---\nz", ["x", "A\nB\n===", "y\nC\n---\nz"]),
        ("x\n\n---\n\ny\n***\n---", ["x\n\n---\n\ny\n***\n---"]),
        ("- a\nb\n---\n> c\n---\n| d |\n---", ["- a\nb\n---\n> c\n---\n| d |\n---"]),
        ("---\n# no\na: b\n---\n# Yes", ["---\n# no\na: b\n---", "# Yes"]),
        ("# A\r\nx\r\r# B\r\n\r\n", ["# A\r\nx", "# B"]),
        ("#\n\n#\n", ["#", "#"]),
        ("<!--\n# a\n-->\n# B", ["<!--\n# a\n-->", "# B"]),
        ("- a\n\n  # b\n\n# C", ["- a\n\n  # b", "# C"]),
        ("> # a\n\n# B", ["> # a", "# B"]),
        ("[a]: /url\n===\n\n===\n---", ["[a]: /url\n===", "===\n---"]),
    ],
)
def test_sections_begin_at_headings_only(text, expected):
    assert texts(chunk.markdown({"d": text})) == expected


def test_deeper_headings_stay_in_their_section():
    text = "# A\n## B\n### C\n## D"
    assert texts(chunk.markdown({"d": text}, level=2)) == ["# A", "## B\n### C", "## D"]


@pytest.mark.parametrize(
    ("cut", "field"),
    [
        (lambda: chunk.fixed({}, size=0), "size"),
        (lambda: chunk.fixed({}, size=2.5), "size"),
        (lambda: chunk.fixed({}, size=True), "size"),
        (lambda: chunk.fixed({}, size=5, overlap=-1), "overlap"),
        (lambda: chunk.recursive({}, separators="\n"), "separators"),
        (lambda: chunk.recursive({}, size="9"), "size"),
        (lambda: chunk.sentences({}, size=0), "size"),
        (lambda: chunk.markdown({}, level=0), "level"),
        (lambda: chunk.markdown({}, size=0), "size"),
    ],
)
def test_invalid_arguments_are_refused(cut, field):
    with refused(path=None, field=field):
        cut()


def test_corpus_may_be_a_path(tmp_path):
    (tmp_path / "a.md").write_bytes(b"x\r\ny")
    assert texts(chunk.fixed(tmp_path)) == ["x\r\ny"]


# Splitters of other libraries


class Overlapping:
    """A splitter that counts characters, with the attributes of LangChain's splitters."""

    _length_function = len

    def __init__(self, size: int, overlap: int) -> None:
        self.size, self._chunk_overlap = size, overlap

    def split_text(self, text: str) -> list[str]:
        return texts(chunk.fixed({"d": text}, size=self.size, overlap=self._chunk_overlap))


@given(st.text("ab", max_size=40), SIZES, st.integers(0, 29))
def test_spans_are_right_in_repetitive_text(text, size, overlap):
    if overlap < size:
        found = chunk.with_splitter({"d": text}, Overlapping(size, overlap))
        assert spans(found)[:1] == spans(chunk.fixed({"d": text}, size=size))[:1]
        check_spans(found, {"d": text})
        if overlap == 0:
            assert spans(found) == spans(chunk.fixed({"d": text}, size=size))


@examples(60, 600)
@given(CORPORA, SIZES)
def test_spans_of_chunks_by_karat_are_recovered(corpus, size):
    def splitter(text: str) -> list[str]:
        return texts(chunk.recursive({"d": text}, size=size))

    splitter.chunk_overlap = 0
    found = chunk.with_splitter(corpus, splitter)
    assert found.frame.equals(chunk.recursive(corpus, size=size).frame)


@examples(60, 600)
@given(CORPORA)
@pytest.mark.filterwarnings("ignore::karat.KaratWarning")
def test_chunk_with_changed_white_space_has_the_text_of_the_document(corpus):
    def splitter(text: str) -> list[str]:
        return [" ".join(part.split()) for part in texts(chunk.markdown({"d": text}))]

    splitter.chunk_overlap = 0
    assert chunk.with_splitter(corpus, splitter).frame.equals(chunk.markdown(corpus).frame)


def test_changed_white_space_is_reported():
    with pytest.warns(KaratWarning) as warned:
        found = chunk.with_splitter({"d": "a\r\nb. c"}, lambda _: ["a b.", "c"])
    assert texts(found) == ["a\r\nb.", "c"]
    [message] = [str(one.message) for one in warned]
    assert re.findall(r"\d+", message) == ["1", "2", "1"]  # of 2 chunks, the first piece
    assert "'d'" in message


def test_near_match_with_other_white_space_is_preferred_to_a_far_exact_one():
    with pytest.warns(KaratWarning):
        found = chunk.with_splitter({"d": "a\nb c a b"}, lambda _: ["a b", "c", "a b"])
    assert spans(found) == [(0, 3), (4, 5), (6, 9)]


def test_short_piece_is_not_matched_inside_the_previous_chunk():
    found = chunk.with_splitter({"d": "See Notes. Read on.\nNotes"}, str.splitlines)
    assert spans(found) == [(0, 19), (20, 25)]


def test_piece_may_start_where_the_previous_one_starts():
    found = chunk.with_splitter({"d": "\nfoo bar"}, lambda _: ["foo", "foo bar"])
    assert spans(found) == [(1, 4), (1, 8)]


def test_pieces_keep_their_white_space_and_blank_ones_are_dropped():
    found = chunk.with_splitter({"d": " a \n b ", "e": " "}, lambda _: [" a ", "\n", "", " b "])
    assert spans(found) == [(0, 3), (4, 7)]


def test_piece_that_is_not_in_the_text_is_refused():
    with refused(path=None, field="doc") as caught:
        chunk.with_splitter({"doc": "One two"}, lambda _: ["One", "TWO"])
    assert re.findall(r"\d+", caught.value.problem) == ["2"]
    assert "TWO" in caught.value.problem
    assert caught.value.hint


def test_invalid_splitter_is_refused():
    with refused(path=None, field=None) as caught:
        chunk.with_splitter({"d": "x"}, "splitter")
    assert re.search(r"\bstr\b", caught.value.problem)
    with refused(path=None, field=None) as caught:
        chunk.with_splitter({"d": "x"}, lambda _: [1])
    assert re.search(r"\bint\b", caught.value.problem)
