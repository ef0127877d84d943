"""TREC qrels and run files mean what trec_eval takes them to mean, however they are spaced."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karat.data import Gold, Run, files, trec
from karat.data.files import Source
from karat.data.order import ranked_by_score
from karat.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LONG = bool(os.environ.get("KARAT_SLOW"))
examples = settings(max_examples=20_000 if LONG else 400, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One folder for all examples of a property: making thousands is what takes the time."""
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


SPACINGS = {
    "single spaces": b"q1 0 d1 1\nq2 0 d2 0\n",
    "tabs": b"q1\t0\td1\t1\nq2\t0\td2\t0\n",
    "tabs and spaces": b"q1\t0 d1 \t 1\nq2  0\t\td2 0\n",
    "form feeds and vertical tabs": b"q1\x0b0 d1\x0c1\nq2 0 d2 0\n",
    "leading and trailing spaces": b"  q1 0 d1 1  \n\tq2 0 d2 0\t\n",
    "CRLF": b"q1 0 d1 1\r\nq2 0 d2 0\r\n",
    "CRLF and no newline at the end": b"q1 0 d1 1\r\nq2 0 d2 0",
    "a stray carriage return": b"q1 0 d1\r1\nq2 0 d2 0\n",
    "blank lines": b"\n\nq1 0 d1 1\n  \n\t\nq2 0 d2 0\n\n",
    "no newline at the end": b"q1 0 d1 1\nq2 0 d2 0",
    "a space at the end": b"q1 0 d1 1\nq2 0 d2 0 ",
    "a byte order mark": b"\xef\xbb\xbfq1 0 d1 1\nq2 0 d2 0\n",
    "a comment first": b"# judged in 2019\nq1 0 d1 1\nq2 0 d2 0\n",
    "a comment after a byte order mark": b"\xef\xbb\xbf# judged\nq1 0 d1 1\nq2 0 d2 0\n",
    "a comment between": b"q1 0 d1 1\n#q9 0 d9 1\nq2 0 d2 0\n",
    "an indented comment": b"q1 0 d1 1\n  \t# no\nq2 0 d2 0\n",
    "a comment last": b"q1 0 d1 1\nq2 0 d2 0\n# end",
    "a comment with CRLF": b"q1 0 d1 1\r\n# no\r\n\r\nq2 0 d2 0\r\n",
}


@pytest.mark.parametrize("content", SPACINGS.values(), ids=SPACINGS.keys())
def test_qrels_are_the_same_with_any_white_space(tmp_path, content):
    assert judgments(tmp_path, content) == [("q1", "d1", 1), ("q2", "d2", 0)]


@pytest.mark.parametrize("content", SPACINGS.values(), ids=SPACINGS.keys())
def test_a_run_is_the_same_with_any_white_space(tmp_path, content):
    as_run = content.replace(b"1\n", b"1 0.5 tag\n").replace(b" 0 d", b" Q0 d")
    lines = [line.split() for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    gaps = {b"d1": b"\t1  0.5 tag", b"d2": b" 2\t0.4 tag"}
    as_run = b"\n".join(
        b" ".join([line[0], b"Q0", line[2]]) + gaps[line[2]] if line and line[0] != b"#" else b""
        for line in [part for part in lines if len(part) == 4 or not part]
        if not line or not line[0].startswith(b"#")
    )
    assert ranking(tmp_path, as_run) == [("q1", "d1"), ("q2", "d2")]
