"""Chunkers: every chunk is a stretch of its document, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat import chunk
from karat.errors import InputError, KaratWarning

PROSE = ["a", "Dr.", "word", "end. ", "So? ", "é𝄞", "e\u0301", "。"]
SPACE = [" ", "    ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "\u2003", "\x1c"]
MARKS = ["# T\n", "\n## U\n", "```\n", "~~~~\n", "---\n", "===\n", "- x\n"]
WORDS = st.sampled_from([*PROSE, *SPACE, *MARKS])
TEXTS = st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=60)
CORPORA = st.dictionaries(st.sampled_from(["a", "b#0-1", "c/d.md"]), TEXTS)
SIZES = st.integers(1, 30)


def texts(chunks: karat.Chunks) -> list[str]:
    return chunks.frame["text"].to_list()


def places(chunks: karat.Chunks) -> list[tuple[int, int]]:
    return list(zip(chunks.frame["start"], chunks.frame["end"], strict=True))


def check_places(chunks: karat.Chunks, corpus: dict[str, str]) -> None:
    """Every chunk is what its document has there, and the ids are apart."""
    karat.Chunks.of(chunks.frame)
    assert chunks.frame["item_id"].is_unique().all()
    for item_id, doc_id, start, end, text in chunks.frame.iter_rows():
        assert corpus[doc_id][start:end] == text != ""
        assert item_id == f"{doc_id}#{start}-{end}"


def check_coverage(chunks: karat.Chunks, corpus: dict[str, str]) -> None:
    """Every character that is not white space is in exactly one chunk, and in its order."""
    for doc_id, text in corpus.items():
        parts = chunks.frame.filter(doc_id=doc_id)["text"]
        assert "".join("".join(parts).split()) == "".join(text.split())


@given(CORPORA, SIZES, st.integers(0, 29))
def test_fixed_chunks_overlap_by_so_much_and_reach_the_end(corpus, size, overlap):
    if overlap >= size:
        with pytest.raises(InputError, match="leaves nothing new"):
            chunk.fixed(corpus, size=size, overlap=overlap)
        return
    chunks = chunk.fixed(corpus, size=size, overlap=overlap)
    check_places(chunks, corpus)
    for doc_id, text in corpus.items():
        parts = texts(karat.Chunks(chunks.frame.filter(doc_id=doc_id)))
        assert "".join(parts[:1] + [part[overlap:] for part in parts[1:]]) == text
        assert all(len(part) == size for part in parts[:-1])
        assert all(len(part) > overlap for part in parts[1:])


@given(CORPORA, SIZES)
def test_recursive_chunks_hold_everything_and_fit(corpus, size):
    chunks = chunk.recursive(corpus, size=size)
    check_places(chunks, corpus)
    check_coverage(chunks, corpus)
    assert all(len(text) <= size and text == text.strip() for text in texts(chunks))


@given(CORPORA, SIZES, st.lists(st.sampled_from(["\n## ", ". ", "a", "aa", "\n", "no"])))
def test_any_separators_lose_nothing(corpus, size, separators):
    chunks = chunk.recursive(corpus, size=size, separators=separators)
    check_places(chunks, corpus)
    check_coverage(chunks, corpus)


@given(CORPORA, SIZES)
def test_sentences_hold_everything_and_fit(corpus, size):
    chunks = chunk.sentences(corpus, size=size)
    check_places(chunks, corpus)
    check_coverage(chunks, corpus)
    assert all(len(text) <= size for text in texts(chunks))


@given(CORPORA, SIZES | st.none(), st.integers(1, 6))
def test_markdown_sections_hold_everything(corpus, size, level):
    chunks = chunk.markdown(corpus, size=size, level=level)
    check_places(chunks, corpus)
    check_coverage(chunks, corpus)
    assert size is None or all(len(text) <= size for text in texts(chunks))


def test_a_separator_ends_its_piece_unless_it_begins_with_white_space():
    cut = chunk.recursive({"d": "Aa. Bb. Cc.\n## D"}, size=4, separators=["\n## ", ". "])
    assert texts(cut) == ["Aa.", "Bb.", "Cc.", "## D"]


def test_without_the_empty_separator_a_long_piece_stays_whole():
    assert texts(chunk.recursive({"d": "abcdef gh"}, size=3, separators=[" "])) == ["abcdef", "gh"]


def test_paragraphs_are_kept_apart_whatever_ends_their_lines():
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
def test_sentences_end_where_they_end(text, expected):
    alone = [texts(chunk.sentences({"d": text}, size=size)) for size in range(1, len(text) + 1)]
    assert expected in alone


@pytest.mark.parametrize("text", ["." * 500_000, " " * 500_000, "\n" * 500_000, "x" * 500_000])
def test_text_of_one_character_takes_no_time_to_speak_of(text):
    for cut in (chunk.recursive, chunk.sentences, chunk.markdown):
        check_coverage(cut({"d": text}), {"d": text})


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
    ],
)
def test_sections_begin_at_headings_and_nothing_else(text, expected):
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
def test_what_cannot_be_asked_for_is_refused(cut, field):
    with pytest.raises(InputError) as caught:
        cut()
    assert caught.value.field == field


def test_a_corpus_may_be_a_path(tmp_path):
    (tmp_path / "a.md").write_bytes(b"x\r\ny")
    assert texts(chunk.fixed(tmp_path)) == ["x\r\ny"]


# Splitters of others


class Overlapping:
    """Cuts as a splitter that counts characters, and says so as LangChain does."""

    _length_function = len

    def __init__(self, size: int, overlap: int) -> None:
        self.size, self._chunk_overlap = size, overlap

    def split_text(self, text: str) -> list[str]:
        return texts(chunk.fixed({"d": text}, size=self.size, overlap=self._chunk_overlap))


@given(st.text("ab", max_size=40), SIZES, st.integers(0, 29))
def test_places_are_right_even_in_text_that_repeats_itself(text, size, overlap):
    if overlap < size:
        found = chunk.with_splitter({"d": text}, Overlapping(size, overlap))
        assert places(found)[:1] == places(chunk.fixed({"d": text}, size=size))[:1]
        check_places(found, {"d": text})
        if overlap == 0:
            assert places(found) == places(chunk.fixed({"d": text}, size=size))


@given(CORPORA, SIZES)
def test_the_places_of_our_own_chunkers_are_found_again(corpus, size):
    def splitter(text: str) -> list[str]:
        return texts(chunk.recursive({"d": text}, size=size))

    splitter.chunk_overlap = 0
    found = chunk.with_splitter(corpus, splitter)
    assert found.frame.equals(chunk.recursive(corpus, size=size).frame)


@given(CORPORA)
@pytest.mark.filterwarnings("ignore::karat.KaratWarning")
def test_changed_white_space_gives_the_stretch_of_the_document(corpus):
    def splitter(text: str) -> list[str]:
        return [" ".join(part.split()) for part in texts(chunk.markdown({"d": text}))]

    splitter.chunk_overlap = 0
    assert chunk.with_splitter(corpus, splitter).frame.equals(chunk.markdown(corpus).frame)


def test_changed_white_space_is_said():
    with pytest.warns(KaratWarning, match="in 1 chunk of 2, such as piece 1 of 'd'"):
        found = chunk.with_splitter({"d": "a\r\nb. c"}, lambda _: ["a b.", "c"])
    assert texts(found) == ["a\r\nb.", "c"]


def test_a_near_stretch_with_other_white_space_wins_over_a_far_one():
    with pytest.warns(KaratWarning):
        found = chunk.with_splitter({"d": "a\nb c a b"}, lambda _: ["a b", "c", "a b"])
    assert places(found) == [(0, 3), (4, 5), (6, 9)]


def test_a_short_piece_is_not_taken_for_the_same_words_in_the_chunk_before():
    found = chunk.with_splitter({"d": "See Notes. Read on.\nNotes"}, str.splitlines)
    assert places(found) == [(0, 19), (20, 25)]


def test_pieces_may_share_their_start_with_the_one_before():
    found = chunk.with_splitter({"d": "\nfoo bar"}, lambda _: ["foo", "foo bar"])
    assert places(found) == [(1, 4), (1, 8)]


def test_pieces_keep_the_white_space_they_have_and_blank_ones_are_left_out():
    found = chunk.with_splitter({"d": " a \n b ", "e": " "}, lambda _: [" a ", "\n", "", " b "])
    assert places(found) == [(0, 3), (4, 7)]


def test_a_piece_that_is_not_there_is_named():
    with pytest.raises(InputError) as caught:
        chunk.with_splitter({"doc": "One two"}, lambda _: ["One", "TWO"])
    assert caught.value.field == "doc"
    assert "piece 2, 'TWO'," in str(caught.value)
    assert "more than white space" in caught.value.hint


def test_what_is_no_splitter_is_refused():
    with pytest.raises(InputError, match="a str is no splitter"):
        chunk.with_splitter({"d": "x"}, "splitter")
    with pytest.raises(InputError, match="made a int"):
        chunk.with_splitter({"d": "x"}, lambda _: [1])
