"""TREC qrels and run files are read as trec_eval reads them, with any white space."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from karat import files
from karat.data import Gold, Run
from karat.data.data_file import DataFile
from karat.data.formats import trec
from karat.data.ranking import ranked_by_score
from karat.errors import InputError
from support.effort import examples
from support.errors import refused

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return one folder for all examples, because making a folder for each takes long."""
    return tmp_path_factory.mktemp("trec")


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def judgments(folder: Path, content: bytes) -> list[tuple[str, str, int]]:
    return Gold.read(put(folder, "gold.qrels", content)).judgments.rows()


def ranking(folder: Path, content: bytes) -> list[tuple[str, str]]:
    run = Run.read(put(folder, "bm25.run", content))
    return run.results.select("query_id", "item_id").rows()


# The gap between fields, and the layout of two lines.
SPACINGS = {
    "single spaces": (" ", "{}\n{}\n"),
    "tabs": ("\t", "{}\n{}\n"),
    "tabs and spaces": (" \t  ", "{}\n{}\n"),
    "form feeds and vertical tabs": ("\x0b\x0c", "{}\n{}\n"),
    "stray carriage returns": ("\r", "{}\n{}\n"),
    "leading and trailing spaces": (" ", "  {}  \n\t{}\t\n"),
    "CRLF": (" ", "{}\r\n{}\r\n"),
    "tabs and CRLF": ("\t", "{}\r\n{}\r\n"),
    "blank lines": (" ", "\n\n{}\n  \n\t\n\r\n{}\n\n"),
    "no newline at the end": (" ", "{}\n{}"),
    "CRLF and no newline at the end": (" ", "{}\r\n{}"),
    "a space at the end": (" ", "{}\n{} "),
    "a byte order mark": (" ", "\ufeff{}\n{}\n"),
    "a comment first": (" ", "# judged in 2019\n{}\n{}\n"),
    "a comment after a byte order mark": (" ", "\ufeff# judged\n{}\n{}\n"),
    "a comment between": (" ", "{}\n#q9 0 d9 1\n{}\n"),
    "an indented comment": (" ", "{}\n  \t# no\n{}\n"),
    "a comment last": (" ", "{}\n{}\n# end"),
    "a comment with CRLF": (" ", "{}\r\n# no\r\n\r\n{}\r\n"),
}


@pytest.mark.parametrize(("gap", "layout"), SPACINGS.values(), ids=SPACINGS.keys())
def test_qrels_are_the_same_with_any_white_space(tmp_path, gap, layout):
    content = layout.format(gap.join(["q1", "0", "d1", "1"]), gap.join(["q2", "0", "d2", "0"]))
    assert judgments(tmp_path, content.encode()) == [("q1", "d1", 1), ("q2", "d2", 0)]


@pytest.mark.parametrize(("gap", "layout"), SPACINGS.values(), ids=SPACINGS.keys())
def test_a_run_is_the_same_with_any_white_space(tmp_path, gap, layout):
    first, second = ["q1", "Q0", "d1", "1", "0.5", "tag"], ["q2", "Q0", "d2", "1", "7", "tag"]
    content = layout.format(gap.join(first), gap.join(second))
    assert ranking(tmp_path, content.encode()) == [("q1", "d1"), ("q2", "d2")]


def test_a_hash_inside_an_id_does_not_start_a_comment(tmp_path):
    content = b"q#1 0 d#1 1\nq2 0 #d2 1\n"
    assert judgments(tmp_path, content) == [("q#1", "d#1", 1), ("q2", "#d2", 1)]


def test_quotes_and_commas_are_parts_of_ids(tmp_path):
    content = b'"q1" 0 d"1 1\nq,2 0 \'d2\' 1\n'
    assert judgments(tmp_path, content) == [('"q1"', 'd"1', 1), ("q,2", "'d2'", 1)]


@pytest.mark.parametrize("query", ["{q1}", "[q1]"])
def test_an_id_may_look_like_the_start_of_another_format(tmp_path, query):
    assert judgments(tmp_path, f"{query} 0 d1 1\n".encode()) == [(query, "d1", 1)]


def test_ids_that_look_like_numbers_stay_text(tmp_path):
    content = b"007 0 1e5 1\n7.0 0 null 1\n"
    assert judgments(tmp_path, content) == [("007", "1e5", 1), ("7.0", "null", 1)]


def test_ids_of_any_script_are_kept(tmp_path):
    content = "frage-ü 0 文档① 1\n".encode()
    assert judgments(tmp_path, content) == [("frage-ü", "文档①", 1)]


def test_grades_may_have_a_sign(tmp_path):
    content = b"q1 0 d1 -2\nq1 0 d2 +3\n"
    assert judgments(tmp_path, content) == [("q1", "d1", -2), ("q1", "d2", 3)]


@pytest.mark.parametrize(
    "content", [b"q1 0 d1 1\nq2 0 d2 0\n", b"q1\t0\td1 1\r\nq2  0 d2 0"], ids=["tidy", "untidy"]
)
@pytest.mark.parametrize(("ending", "compress"), [(".gz", gzip.compress), (".zst", zstd.compress)])
def test_compressed_qrels_are_read_as_they_are(tmp_path, content, ending, compress):
    gold = Gold.read(put(tmp_path, f"gold.qrels{ending}", compress(content)))
    assert gold.judgments.rows() == [("q1", "d1", 1), ("q2", "d2", 0)]


@pytest.mark.parametrize(("ending", "compress"), [(".gz", gzip.compress), (".zst", zstd.compress)])
def test_a_compressed_run_is_read_as_it_is(tmp_path, ending, compress):
    content = compress(b"q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 0.7 tag\n")
    run = Run.read(put(tmp_path, f"bm25.run{ending}", content))
    assert run.results["item_id"].to_list() == ["d2", "d1"]


@pytest.mark.parametrize(("ending", "compress"), [(".gz", gzip.compress), (".zst", zstd.compress)])
def test_compressed_parts_that_were_joined_are_read_to_the_end(tmp_path, ending, compress):
    content = compress(b"q1 0 d1 1\n") + compress(b"q2 0 d2 0\n")
    gold = Gold.read(put(tmp_path, f"gold.qrels{ending}", content))
    assert gold.judgments["query_id"].to_list() == ["q1", "q2"]


def test_a_run_is_named_after_its_file(tmp_path):
    path = put(tmp_path, "bm25.run.gz", gzip.compress(b"q1 Q0 d1 1 0.5 tag\n"))
    assert Run.read(path).name == "bm25"


def test_the_rank_column_is_ignored(tmp_path):
    content = b"q1 Q0 d1 1 0.1 t\nq1 Q0 d2 1 0.9 t\nq1 Q0 d3 none 0.5 t\n"
    assert ranking(tmp_path, content) == [("q1", "d2"), ("q1", "d3"), ("q1", "d1")]


def test_ties_are_ordered_by_id_descending_as_bytes(tmp_path):
    items = ["a", "B", "10", "9", "é", "z", "ab", "文", "\U0001f600", "\uffee"]
    content = "".join(f"q1 Q0 {item} 1 0.5 t\n" for item in items).encode()
    expected = sorted(items, key=lambda item: item.encode(), reverse=True)
    assert ranking(tmp_path, content) == [("q1", item) for item in expected]


def test_scores_are_compared_as_64_bit_floats(tmp_path):
    content = b"q1 Q0 z 1 0.1234567890123456 t\nq1 Q0 a 2 0.1234567890123457 t\n"
    assert ranking(tmp_path, content) == [("q1", "a"), ("q1", "z")]


def test_zero_and_minus_zero_tie(tmp_path):
    content = b"q1 Q0 a 1 0.0 t\nq1 Q0 c 1 -0.0 t\nq1 Q0 b 1 0 t\n"
    assert ranking(tmp_path, content) == [("q1", "c"), ("q1", "b"), ("q1", "a")]


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), ("1.", 1.0), (".5", 0.5), ("+1e2", 100.0), ("-1E-3", -0.001), ("1e-400", 0.0)],
)
def test_a_score_is_any_decimal_number(tmp_path, text, number):
    run = Run.read(put(tmp_path, "bm25.run", f"q1 Q0 d1 1 {text} t\n".encode()))
    assert run.results["score"].to_list() == [number]


@examples(30, 600)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_a_score_keeps_every_bit(folder, scores):
    lines = [f"q{n:02} Q0 d1 1 {score!r} t\n" for n, score in enumerate(scores)]
    run = Run.read(put(folder, "bits.run", "".join(lines).encode()))
    assert list(map(repr, run.results["score"].to_list())) == list(map(repr, scores))


def test_the_rows_of_a_query_need_not_be_adjacent(tmp_path):
    content = b"q2 Q0 a 1 1 t\nq1 Q0 b 1 1 t\nq2 Q0 c 1 2 t\nq1 Q0 d 1 2 t\n"
    assert ranking(tmp_path, content) == [("q1", "d"), ("q1", "b"), ("q2", "c"), ("q2", "a")]


def test_a_repeated_item_is_kept_twice(tmp_path):
    content = b"q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 a 3 1 t\n"
    assert ranking(tmp_path, content) == [("q1", "a"), ("q1", "b"), ("q1", "a")]


GAPS = st.sampled_from([b" "] * 12 + [b"\t", b"  ", b" \t", b"\r", b"\x0b", b"\x0c ", b"\x01", b""])
ENDS = st.sampled_from([b"\n"] * 8 + [b"\r\n", b" \n", b"\n\n", b"\n# c\n", b"\n #\n", b"\n \t\n"])
WORDS = st.sampled_from(
    [
        b"q1",
        b"q2",
        b"#q",
        b"d#1",
        b'"d',
        b"d,1",
        b"0",
        b"Q0",
        "é".encode(),
        b"\xe9",
        b"d\x00",
        b"tag",
        b"0.4",
        b"e",
    ]
)
NUMBERS = st.sampled_from(
    [b"1"] * 6 + [b"0", b"-1", b"+2", b"007", b"0.5", b"1e3", b".5", b"1.", b"1e400"]
    + [b"nan", b"inf", b"-Infinity", b"+INF", b"1.0", b"-2.00", b"1.0e0"]
    + [b"-", b"x", b"1_0", b"1d5", b"0x1"]
    + [b"1234567890123456789", b"12345678901234567890", b"0" * 20 + b"1"]
    + [b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808"]
)  # fmt: skip
QRELS_FIELDS = [WORDS, WORDS, WORDS, NUMBERS]
RUN_FIELDS = [WORDS, WORDS, WORDS, NUMBERS, NUMBERS, WORDS]


@st.composite
def spaced_file(draw, fields) -> bytes:
    """A file of a few lines, most of them tidy, some with unusual white space."""
    content = draw(st.sampled_from([b""] * 6 + [b"\xef\xbb\xbf", b"# c\n", b" ", b"\n"]))
    for _ in range(draw(st.integers(1, 4))):
        values = [draw(field) for field in fields]
        odd = draw(st.integers(0, 15))
        if odd in (0, 2):
            values.insert(draw(st.integers(0, len(values))), draw(WORDS))
        elif odd == 1:
            values.pop(draw(st.integers(0, len(values) - 1)))
        line = b"".join(value + draw(GAPS) for value in values[:-1]) + values[-1]
        content += line + draw(ENDS)
    return content.rstrip(b"\n") if draw(st.booleans()) else content


def read_or_refused(read) -> pl.DataFrame | None:
    """Return the table that a reader makes of a file, or None if it refuses the file."""
    try:
        return read()
    except InputError:
        return None


def read_in_blocks(size: int, read) -> pl.DataFrame | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", size)
        return read_or_refused(read)


def assert_same(fast: pl.DataFrame | None, plain: pl.DataFrame | None) -> None:
    if fast is None or plain is None:
        assert fast is plain, "one reads what the other refuses"
    else:
        assert_frame_equal(fast.select(plain.columns), plain, check_exact=True)


@examples(150, 3_000)
@given(content=spaced_file(QRELS_FIELDS), block=st.integers(4, 40))
@example(content=b"q1 0 d1 1\nq2 0 d2 1234567890123456789\n", block=40)
def test_the_fast_path_reads_qrels_as_the_plain_parser_does(folder, content, block):
    source = DataFile(put(folder, "any.qrels", content))
    fast = read_in_blocks(block, lambda: Gold.read(source.path, format="trec").judgments)
    assert_same(fast, read_or_refused(lambda: trec.parse(source, trec.QRELS)))


def plain_parser_is_not_used(monkeypatch) -> None:
    def refuse(*_):
        raise AssertionError("the plain parser is slow")

    monkeypatch.setattr(trec, "parse", refuse)


def test_grades_written_as_decimals_are_read_fast(tmp_path, monkeypatch):
    plain_parser_is_not_used(monkeypatch)
    content = b"q1 0 d1 1.0\nq1 0 d2 2.\nq1 0 d3 -1.00\nq1 0 d4 0\n"
    grades = [grade for _, _, grade in judgments(tmp_path, content)]
    assert grades == [1, 2, -1, 0]


@pytest.mark.parametrize("tag", [b"my own tag", b"caf\xe9", b"a \xe9", b"tag  x\t y "])
def test_tags_of_several_words_and_of_any_bytes_are_read_fast(tmp_path, monkeypatch, tag):
    plain_parser_is_not_used(monkeypatch)
    lines = [b"q1 Q0 d1 1 0.5 t", b"q1 Q0 d2 2 0.7 " + tag, b"q2 Q0 d3 1 1 " + tag]
    for content in (b"\n".join(lines), b"\r\n".join(lines) + b"\r\n"):
        assert ranking(tmp_path, content) == [("q1", "d2"), ("q1", "d1"), ("q2", "d3")]


def test_infinite_scores_are_read_fast_and_order_the_list(tmp_path, monkeypatch):
    plain_parser_is_not_used(monkeypatch)
    content = b"".join(
        b"q1 Q0 d%d 1 %s t\n" % (number, score)
        for number, score in enumerate([b"-inf", b"-1e300", b"Infinity", b"-INF", b"0"])
    )
    items = [item for _, item in ranking(tmp_path, content)]
    assert items == ["d2", "d4", "d1", "d3", "d0"]  # of two that tie, the higher id comes first


@pytest.mark.parametrize("first", [b"q1 Q0 d1 1 0.5 t", b"q1 Q0 d1 1 0.5 my tag"])
@pytest.mark.parametrize(
    ("second", "field"),
    [
        (b"q1 Q0 d\xe9 2 0.4 t", "encoding"),
        (b"q\xe9 Q0 d2 2 0.4 t", "encoding"),
        (b"q1 Q0 d2 2 0.4", "tag"),
        (b"q1 Q0 an id 2 0.4 t", None),
        (b"q1 Q0 d 2 2 0.4 t", None),
        (b"a query Q0 d2 2 0.4 t", None),
        (b"q1 Q0 d2 2 nan t", "score"),
        (b"q1 Q0 d2 2 1e999 t", "score"),
    ],
)
def test_a_bad_line_of_a_run_is_named(tmp_path, first, second, field):
    path = put(tmp_path, "a.run", first + b"\n" + second + b"\n")
    with refused(InputError, path=path, line=2, field=field):
        Run.read(path)


def test_text_of_many_words_is_not_taken_for_a_run(tmp_path):
    path = put(tmp_path, "notes.txt", b"when will my next refund be paid\n")
    with refused(InputError, path=path, line=1):
        Run.read(path)


@examples(150, 3_000)
@given(content=spaced_file(RUN_FIELDS), block=st.integers(4, 40))
@example(content=b"q1 Q0 d\x01x 1 0.5\n", block=40)
@example(content=b"q1 Q0 d1 1 0.5 ", block=40)
@example(content=b"q1 Q0 d1 1 0.5 t\nq1 Q0\x00d2 2 0.4 7\n", block=40)
@example(content=b"q1 Q0 d1 1 0.5 t more\nq1 Q0 d2 2 0.4\n", block=40)
@example(content=b"q1 Q0 d1 1 0.5 my own tag\nq1 Q0 d2 2 -inf caf\xe9 no", block=80)
@example(content=b"q1 Q0 d1 1 0.5 a b\nq1 Q0 d\xe9 2 0.4 t\n", block=80)
@example(content=b"q1 Q0 d1 1 inf t\nq1 Q0 d2 2 1e400 t\n", block=80)
def test_the_fast_path_reads_a_run_as_the_plain_parser_does(folder, content, block):
    source = DataFile(put(folder, "any.run", content))
    fast = read_in_blocks(block, lambda: Run.read(source.path, format="trec").results)
    plain = read_or_refused(lambda: ranked_by_score(trec.parse(source, trec.RUN)))
    assert_same(fast, plain)


@pytest.mark.parametrize("ends", ["\r", "\r\r\n"])
def test_carriage_return_inside_a_line_is_refused(tmp_path, ends):
    path = tmp_path / "old.run"
    lines = ["q1 Q0 d1 1 9 t", "q1 Q0 d2 2 8 t", "q2 Q0 d2 2 8 t"]
    path.write_bytes("\r".join(lines).encode() + ends.encode())
    with refused(path=path, line=1):
        Run.read(path)


def test_long_line_does_not_hide_behind_a_short_one(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d3 3 0.5 tag\nq1 Q0 my doc 1 2.0 tag\nq1 Q0 d2 4 1.0\n")
    with refused(path=path, line=2):
        Run.read(path)
