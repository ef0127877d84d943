"""Parquet and Arrow files: sound ones are read, damaged and huge ones are refused before Polars."""

import gzip
import io
import os
import shutil
import threading
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat import Gold, Run
from karat.data.chunks import Chunks
from karat.data.corpus import Corpus
from karat.data.formats import arrow_layout, parquet_layout
from karat.data.formats.parquet_layout import DamagedLayoutError
from karat.data.queries import read_queries
from karat.evaluation.saved_scores import holds_scores
from karat.evaluation.scores import Scores
from karat.files import EXPANDED_LIMIT, Source, zstd
from support.effort import examples
from support.errors import refused
from support.paths import GOLDEN

DAMAGED = ["abort1.parquet", "abort3.arrow", "panic.arrow"]


def table(n: int) -> pl.DataFrame:
    numbers = range(n)
    return pl.DataFrame(
        {
            "text": [None if i % 7 == 0 else f"a text that is not short {i % 50}" for i in numbers],
            "number": pl.Series(numbers, dtype=pl.Int64),
            "share": [i / 3 for i in numbers],
            "flag": [i % 3 == 0 for i in numbers],
            "category": pl.Series([f"c{i % 5}" for i in numbers], dtype=pl.Categorical),
            "list": pl.Series([[str(i)] * (i % 3) for i in numbers], dtype=pl.List(pl.String)),
            "object": pl.Series(
                [{"a": i, "b": {"c": [i] * (i % 4)}} for i in numbers],
                dtype=pl.Struct({"a": pl.Int64, "b": pl.Struct({"c": pl.List(pl.Int64)})}),
            ),
            "array": pl.Series([[i, i] for i in numbers], dtype=pl.Array(pl.Int32, 2)),
            "nothing": pl.Series([None] * n, dtype=pl.Null),
        }
    )


def written(write, *arguments, **options) -> bytes:
    file = io.BytesIO()
    write(file, *arguments, **options)
    return file.getvalue()


def parquet_files(n: int):
    for compression in ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"):
        yield written(table(n).write_parquet, compression=compression)
    yield written(table(n).write_parquet, row_group_size=max(n // 3, 1), data_page_size=100)
    arrow = table(n).drop("nothing").to_arrow()
    for version in ("1.0", "2.0"):
        for use_dictionary in (True, False):
            options = {"data_page_version": version, "use_dictionary": use_dictionary}
            yield written(lambda file, **how: pq.write_table(arrow, file, **how), **options)
    plain = table(n).select("text", "number", "share").to_arrow()
    encoding = {"number": "DELTA_BINARY_PACKED", "share": "BYTE_STREAM_SPLIT"}
    yield written(
        lambda file: pq.write_table(plain, file, use_dictionary=False, column_encoding=encoding)
    )


def arrow_files(n: int):
    oldest = pl.CompatLevel.oldest()
    for compression in ("uncompressed", "lz4", "zstd"):
        yield written(table(n).write_ipc, compression=compression)
        yield written(table(n).write_ipc, compression=compression, compat_level=oldest)
        yield written(table(n).write_ipc_stream, compression=compression)
    for new in (pyarrow.ipc.new_file, pyarrow.ipc.new_stream):
        file = io.BytesIO()
        arrow = table(n).drop("nothing").to_arrow()
        with new(file, arrow.schema) as writer:
            writer.write_table(arrow, max_chunksize=max(n // 3, 1))
        yield file.getvalue()


@pytest.mark.parametrize("n", [0, 1, 9, 3_000])
def test_sound_files_are_accepted_with_about_their_size(n):
    for content in parquet_files(n):
        size = parquet_layout.expanded_size(content)
        assert size * 4 + 1_000 > pl.read_parquet(content).estimated_size()
    for content in arrow_files(n):
        size = arrow_layout.expanded_size(content)
        is_stream = content.startswith(b"\xff\xff\xff\xff")
        read = pl.read_ipc_stream(content) if is_stream else pl.read_ipc(content)
        assert size * 4 + 1_000 > read.estimated_size()


SMALL = [
    *((parquet_layout, content) for content in parquet_files(9)),
    *((arrow_layout, content) for content in arrow_files(9)),
]


@examples(2_000, 200_000)
@given(data=st.data(), file=st.sampled_from(SMALL))
def test_any_damage_is_refused_or_passed_on_to_polars(data, file):
    """Polars is not called: it may end the process."""
    layout, content = file
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    try:
        size = layout.expanded_size(bytes(damaged))
    except DamagedLayoutError:
        return
    assert size >= 0


def test_every_cut_is_refused_or_passed_on_to_polars():
    for layout, content in SMALL:
        for length in range(0, len(content), 7):
            cut = content[:length] + content[-8:]
            try:
                layout.expanded_size(cut)
            except DamagedLayoutError:
                continue


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("compress", [None, gzip.compress, zstd.compress])
def test_damaged_lengths_are_refused_by_every_reader(tmp_path, capfd, name, compress):
    content = (GOLDEN / "damaged" / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(content if compress is None else compress(content))
    for read in (Gold.read, Run.read, Chunks.read, Corpus.read, read_queries):
        with refused(path=path):
            read(path)
    if name.endswith("parquet"):
        with refused(path=path):
            Scores.read(path)
        assert holds_scores(str(path)) is False
    assert capfd.readouterr() == ("", "")


def test_values_of_a_page_beyond_its_column_are_refused():
    frame = pa.table({"a": [1] * 9})
    content = written(lambda file: pq.write_table(frame, file, use_dictionary=False))
    thrift = parquet_layout._Thrift(content, 4)
    thrift.struct()
    before = bytes([2 * 9])  # zigzag
    head = content[4 : thrift.position]
    assert before in head
    damaged = content[:4] + head.replace(before, bytes([2 * 7])) + content[thrift.position :]
    with pytest.raises(DamagedLayoutError):
        parquet_layout.expanded_size(damaged)


def test_panic_of_polars_is_one_error_without_its_text(tmp_path, monkeypatch, capfd):
    def panic(*_, **__):
        os.write(2, b"thread panicked at lib.rs")
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    path = tmp_path / "x.parquet"
    pl.DataFrame({"query_id": ["q"], "item_id": ["a"]}).write_parquet(path)
    monkeypatch.setattr(pl, "read_parquet", panic)
    # Threads that earlier tests have left would keep the output from being redirected.
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    with refused(path=path) as caught:
        Run.read(path)
    assert "unwrap" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_other_output_while_a_file_is_read_is_kept(tmp_path, monkeypatch, capfd):
    read = pl.read_parquet

    def speak(*arguments, **options):
        os.write(2, b"a message")
        return read(*arguments, **options)

    path = tmp_path / "x.parquet"
    pl.DataFrame({"query_id": ["q"], "item_id": ["a"]}).write_parquet(path)
    monkeypatch.setattr(pl, "read_parquet", speak)
    assert Run.read(path).results.height == 1
    assert capfd.readouterr().err == "a message"


# Content that is far larger than its file


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setenv(EXPANDED_LIMIT, "1M")


def test_limit_is_200_times_the_file_or_a_gibibyte(tmp_path, monkeypatch):
    path = tmp_path / "x.run"
    path.write_bytes(b"q Q0 a 1 1 t\n")
    assert Source(path).expanded_limit == 1 << 30
    with path.open("r+b") as file:
        file.truncate(10_000_000)
    assert Source(path).expanded_limit == 2_000_000_000
    for text, limit in (("7", 7), ("3k", 3 << 10), (" 20G ", 20 << 30), ("1T", 1 << 40)):
        monkeypatch.setenv(EXPANDED_LIMIT, text)
        assert Source(path).expanded_limit == limit
    monkeypatch.setenv(EXPANDED_LIMIT, "much")
    with refused(field=EXPANDED_LIMIT):
        Source(path).expanded_limit  # noqa: B018


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress])
@pytest.mark.parametrize(
    "content", [b"q Q0 a 1 1.5 t\n" * 99_999, b'{"query_id": "q", "x": "' + b"x" * 2_000_000]
)
def test_compressed_content_beyond_the_limit_is_refused(tmp_path, compress, content):
    path = tmp_path / "x.data"
    path.write_bytes(compress(content))
    with refused(path=path):
        Run.read(path)


def test_compressed_content_up_to_the_limit_is_read(tmp_path, monkeypatch):
    content = b"".join(b"q Q0 a%d 1 1.5 t\n" % number for number in range(999))
    path = tmp_path / "x.run.gz"
    path.write_bytes(gzip.compress(content))
    monkeypatch.setenv(EXPANDED_LIMIT, str(len(content)))
    assert Run.read(path).results.height == 999
    monkeypatch.setenv(EXPANDED_LIMIT, str(len(content) - 1))
    with refused(path=path):
        Run.read(path)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("kind", [pl.String, pl.Categorical])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_texts_that_rows_share_are_bounded(tmp_path, kind, nested, ending):
    text = pl.Series("text", ["x" * 50_000] * 100, dtype=kind)
    frame = pl.DataFrame({"query_id": "q", "item_id": range(100), "text": text})
    if nested:
        frame = frame.with_columns(pl.struct(pl.concat_list("text")).alias("text"))
    path = tmp_path / f"x.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path, compression="zstd")
    assert path.stat().st_size < 100_000
    with refused(path=path):
        Run.read(path)


@pytest.mark.usefixtures("small_limit")
def test_many_rows_of_one_value_are_bounded(tmp_path):
    path = tmp_path / "x.parquet"
    frame = pl.DataFrame({"query_id": ["q"] * 100_000, "item_id": ["a"] * 100_000})
    frame.write_parquet(path)
    assert path.stat().st_size < 10_000
    with refused(path=path):
        Run.read(path)


def test_small_file_with_one_huge_id_is_refused_at_once(tmp_path):
    path = shutil.copy(GOLDEN / "damaged" / "dict.parquet", tmp_path)
    with refused(path=path):
        Run.read(path)
    assert parquet_layout.expanded_size(Path(path).read_bytes()) > 2_000 * 49_000_000


def test_large_dictionary_of_arrow_counts_for_each_row():
    values = pa.array(["x" * 20_000_000])
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), values)
    file = io.BytesIO()
    batch = pa.table({"item_id": column})
    with pyarrow.ipc.new_file(file, batch.schema) as writer:
        writer.write_table(batch)
    assert arrow_layout.expanded_size(file.getvalue()) > 1_000 * 20_000_000
