"""Bad input gives one clear message, from Python and from the command line, and nothing else."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.cli.main import main
from karat.data import Gold, Run
from karat.errors import InputError, KaratWarning
from support.effort import FULL

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MUTATIONS = 500 * (100 if FULL else 1)

DIRECTORY = object()
MISSING = object()


def parquet(**columns: list) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


def arrow(**columns: list) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_ipc(file, compat_level=pl.CompatLevel.oldest())
    return file.getvalue()


def arrow_stream(**columns: list) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_ipc_stream(file, compat_level=pl.CompatLevel.oldest())
    return file.getvalue()


QRELS = b"".join(b"q%d 0 d%d %d\n" % (n % 50, n, n % 3) for n in range(5_000))
JSONL = b'{"query_id":"q1","relevant":{"d1":1}}\n'


@dataclass(frozen=True)
class Bad:
    """A file that cannot be used, and what a person must be told."""

    what: str
    name: str
    content: bytes | object
    problem: str
    hint: str
    line: int | None = None
    field: str | None = None
    kind: type[Gold] | type[Run] = Gold
    others: tuple[str, ...] = ()

    def put(self, folder: Path) -> Path:
        path = folder / self.name
        for other in self.others:
            (folder / other).write_bytes(b"q1 0 d1 1\n")
        if self.content is DIRECTORY:
            path.mkdir()
            (path / "test.qrels").write_bytes(b"q1 0 d1 1\n")
        elif isinstance(self.content, bytes):
            path.write_bytes(self.content)
        return path


BAD = [
    # A missing column
    Bad("qrels without a grade", "g.qrels", b"q1 0 d1 1\nq1 0 d2\n",
        "3 fields where a TREC qrels line has 4", "query 0 item grade", 2, "grade"),
    Bad("a run without a tag", "r.run", b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.4\n",
        "5 fields where a TREC run line has 6", "query Q0 item rank score tag", 2, "tag", Run),
    Bad("a run with an id of two words", "r.run", b"q1 Q0 d1 1 0.5 t\nq1 Q0 d 2 2 0.4 t\n",
        "7 fields", "query Q0 item rank score tag", 2, None, Run),
    Bad("a CSV without a grade", "g.csv", b"query_id,item_id\nq1,d1\n",
        "no column for the grade", "grade", 1, "grade"),
    Bad("a CSV whose grade is misspelled", "g.csv", b"query_id,item_id,grades\nq1,d1,1\n",
        "no column for the grade", "rename grades to grade", 1, "grade"),
    Bad("a CSV without an item", "r.csv", b"query_id,score\nq1,0.5\n",
        "no column for the item's id", "item_id", 1, "item_id", Run),
    Bad("a CSV without a header", "g.csv", b"q1,d1,1\n",
        "no column for the query's id", "query_id", 1, "query_id"),
    Bad("a Parquet file without a query", "g.parquet", parquet(item_id=["a"], grade=[1]),
        "no column for the query's id", "query_id", None, "query_id"),
    Bad("a line of JSON without a query", "g.jsonl", JSONL + b'{"relevant":["a"]}\n',
        "query_id", "", 2, "query_id"),
    # A grade that is no integer
    Bad("a grade that is a word", "g.qrels", b"q1 0 d1 1\nq1 0 d2 high\n",
        "'high' is no integer", "whole number", 2, "grade"),
    Bad("a grade that is a fraction", "g.qrels", b"q1 0 d1 1\n\n# c\nq1 0 d2 1.5\n",
        "'1.5' is no integer", "whole number", 4, "grade"),
    Bad("a grade that is a fraction in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,1.5\n",
        "'1.5' is no integer", "whole number", 2, "grade"),
    Bad("a grade that is missing in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,\n",
        "an empty value is no integer", "whole number", 2, "grade"),
    Bad("a grade that is a fraction in JSONL", "g.jsonl",
        JSONL + b'{"query_id":"q2","relevant":{"d1":1.5}}\n', "int", "whole number", 2, "relevant"),
    Bad("a grade that is a word in JSONL", "g.jsonl",
        JSONL + b'{"query_id":"q2","relevant":{"d1":"x"}}\n', "int", "whole number", 2, "relevant"),
    Bad("a grade that is a fraction in JSON", "g.json", b'{"q1": {"d1": 1.5}}',
        "query 'q1', item 'd1': 1.5 is no integer", "whole number", None, "grade"),
    Bad("a grade that is a fraction in Parquet", "g.parquet",
        parquet(query_id=["q1"], item_id=["a"], grade=[1.5]),
        "row 1: 1.5 is no integer", "whole number", None, "grade"),
    # NaN and infinite scores
    Bad("a NaN score", "r.run", b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 nan t\n",
        "'nan' is not finite", "finite number", 2, "score", Run),
    Bad("an infinite score", "r.run", b"q1\tQ0\td1\t1\t-Infinity\tt\n",
        "'-Infinity' is not finite", "finite number", 1, "score", Run),
    Bad("a score past the floats", "r.run", b"q1 Q0 d1 1 1e999 t\n",
        "'1e999' is not finite", "finite number", 1, "score", Run),
    Bad("a score that is a word", "r.run", b"q1 Q0 d1 1 high t\n",
        "'high' is no number", "finite number", 1, "score", Run),
    Bad("a NaN score in CSV", "r.csv", b"query_id,item_id,score\nq1,d1,NaN\n",
        "'NaN' is not finite", "finite number", 2, "score", Run),
    Bad("an infinite score in CSV", "r.csv", b"query_id,item_id,score\nq1,d1,1\nq1,d2,inf\n",
        "'inf' is not finite", "finite number", 3, "score", Run),
    Bad("a missing score in CSV", "r.csv", b"query_id,item_id,score\nq1,d1,\n",
        "an empty value is no number", "finite number", 2, "score", Run),
    Bad("a NaN score in JSONL", "r.jsonl", b'{"query_id":"q1","results":[{"id":"a","score":NaN}]}',
        "", "NaN", 1, "score", Run),
    Bad("a score past the floats in JSONL", "r.jsonl",
        b'{"query_id":"q1","results":[{"id":"a","score":1e999}]}', "", "", 1, "score", Run),
    Bad("a NaN score in JSON", "r.json", b'{\n"q1": {"d1": 1,\n"d2": NaN}}', "", "NaN", 3, None,
        Run),
    Bad("a NaN score in Parquet", "r.parquet",
        parquet(query_id=["q1"], item_id=["a"], score=[float("nan")]),
        "row 1: nan is not finite", "finite number", None, "score", Run),
    # Nothing there
    *(Bad(f"an empty file called {name}", name, b"", "the file is empty", "command that wrote it")
      for name in ("g.qrels", "g.csv", "g.tsv", "g.jsonl", "g.json", "g.parquet", "g")),
    *(Bad(f"a file of white space called {name}", name, b" \n\t\r\n\n", "the file is empty",
          "command that wrote it")
      for name in ("g.qrels", "g.csv", "g.tsv", "g.jsonl", "g.json")),
    *(Bad(f"a byte order mark alone in {name}", name, b"\xef\xbb\xbf\n", "", "")
      for name in ("g.qrels", "g.csv", "g.tsv", "g.jsonl", "g.json")),
    Bad("an empty file that was compressed", "g.qrels.gz", gzip.compress(b""),
        "the file is empty", "command that wrote it"),
    Bad("comments alone", "g.qrels", b"# a\n  # b\n", "only comments", "command that wrote it"),
    Bad("a CSV of a header alone", "g.csv", b"query_id,item_id,grade\n", "no rows", "at least one",
        1),
    Bad("a header of JSONL alone", "g.jsonl", b'{"karat":1,"kind":"gold"}\n', "no query", "", 1),
    # Encodings
    Bad("Latin-1 in qrels", "g.qrels", "q1 0 d1 1\nq1 0 dé 1\n".encode("latin-1"),
        "0xe9 is not valid UTF-8", "iconv", 2, "encoding"),
    Bad("Latin-1 in CSV", "g.csv", "query_id,item_id,grade\nq1,dé,1\n".encode("latin-1"),
        "0xe9 is not valid UTF-8", "iconv", 2, "encoding"),
    Bad("Latin-1 in JSONL", "g.jsonl", JSONL + '{"query_id":"é","relevant":[]}'.encode("latin-1"),
        "0xe9 is not valid UTF-8", "iconv", 2, "encoding"),
    Bad("Latin-1 in JSON", "g.json", '{\n"q1": {"dé": 1}}'.encode("latin-1"),
        "0xe9 is not valid UTF-8", "iconv", 2, "encoding"),
    *(Bad(f"UTF-16 in {name}", name, content.encode("utf-16"), "the file is UTF-16", "iconv", 1,
          "encoding")
      for name, content in (("g.qrels", "q1 0 d1 1\n"), ("g.csv", "query_id,item_id,grade\n"),
                            ("g.jsonl", JSONL.decode()), ("g.json", '{"q1":{"d1":1}}'))),
    # Compression
    *(Bad(f"gzip cut off after {size} bytes", "g.qrels.gz", gzip.compress(QRELS)[:size],
          "damaged or cut off", "compress the file again") for size in (5, 100, 9_000, -1)),
    *(Bad(f"zst cut off after {size} bytes", "g.qrels.zst", zstd.compress(QRELS)[:size],
          "damaged or cut off", "compress the file again") for size in (5, 100, -1)),
    Bad("gzip that is none", "g.qrels.gz", b"q1 0 d1 1\n", "damaged or cut off", "compress"),
    Bad("zst that is none", "g.qrels.zst", b"q1 0 d1 1\n", "damaged or cut off", "compress"),
    Bad("gzip whose middle was overwritten", "g.qrels.gz",
        gzip.compress(QRELS)[:2_000] + bytes(50) + gzip.compress(QRELS)[2_050:],
        "damaged or cut off", "compress"),
    Bad("Parquet cut off", "g.parquet", parquet(query_id=["q1"], item_id=["a"], grade=[1])[:-20],
        "no Parquet file", "written to the end"),
    Bad("Parquet that is none", "g.parquet", b"hello", "no Parquet file", "written to the end"),
    *(Bad(f"Arrow cut off at {size}", "g.arrow",
          arrow(query_id=["q1"], item_id=["a"], grade=[1])[:size],
          "no Arrow file", "written to the end") for size in (6, 20, 300, -1)),
    *(Bad(f"an Arrow stream cut off at {size}", "g.arrow",
          arrow_stream(query_id=["q1"], item_id=["a"], grade=[1])[:size],
          "no Arrow file", "written to the end") for size in (4, 20, 300)),
    Bad("Arrow that is none", "g.arrow", b"hello", "no Arrow file", "written to the end"),
    Bad("an Arrow file without a grade", "g.arrow", arrow(query_id=["q1"], item_id=["a"]),
        "no column for the grade", "grade", None, "grade"),
    # Ragas rows
    Bad("Ragas rows without references as gold", "g.jsonl",
        b'{"user_input":"x","retrieved_contexts":["a"]}\n', "no reference contexts",
        "reference_contexts", 1, "reference_contexts"),
    Bad("Ragas rows without retrieved contexts as a run", "r.jsonl",
        b'{"user_input":"x","reference_contexts":["a"]}\n', "no retrieved contexts", "gold", 1,
        "retrieved_contexts", Run),
    Bad("the same user_input twice", "g.jsonl",
        b'{"user_input":"x","reference_contexts":["a"]}\n\n' * 2, "on line 1 already", "query_id",
        3, "user_input"),
    Bad("the same id of a Ragas row twice", "g.jsonl",
        b'{"id":5,"reference_contexts":["a"]}\n' * 2, "'5' stands on line 1 already", "one row", 2,
        "id"),
    Bad("the same user_input twice in CSV", "g.csv",
        b'user_input,reference_contexts\nx,"[""a""]"\nx,"[""b""]"\n', "on line 2 already",
        "query_id", 3, "user_input"),
    Bad("a Ragas row of several turns", "g.jsonl",
        b'{"user_input":[{"content":"x"}],"reference_contexts":["a"]}\n', "several turns",
        "one row", 1, "user_input"),
    Bad("a Ragas row without a query", "g.jsonl", b'{"reference_contexts":["a"]}\n',
        "neither a query_id nor a user_input", "one query", 1, "user_input"),
    Bad("a Ragas context that is no text", "g.jsonl",
        b'{"user_input":"x","reference_contexts":["a",5]}\n', "str", "", 1,
        "reference_contexts"),
    Bad("more ids than contexts", "r.jsonl",
        b'{"id":"q","retrieved_contexts":["a"],"retrieved_context_ids":["1","2"]}\n',
        "2 ids for 1 contexts", "one id", 1, "retrieved_context_ids", Run),
    Bad("a list that NumPy printed", "g.csv", b"user_input,reference_contexts\nx,['a' 'b']\n",
        "no list of contexts", "JSON list", 2, "reference_contexts"),
    Bad("Ragas columns without rows", "g.csv", b"user_input,reference_contexts\n", "no rows",
        "at least one", 1),
    # ir_datasets
    Bad("ranks where scores are meant", "r.tsv", b"q1\ta\t1\nq1\tb\t2\nq2\ta\t1\n",
        "ranks and not scores", "rank", None, "score", Run),
    Bad("a grade that is a fraction without column names", "g.tsv", b"q1\ta\t1\nq1\tb\t0.5\n",
        "'0.5' is no integer", "whole number", 2, "relevance"),
    # No file
    Bad("a directory", "data", DIRECTORY, "this is a directory", "test.qrels"),
    Bad("a directory as a run", "data", DIRECTORY, "this is a directory", "test.qrels", kind=Run),
    Bad("a missing file", "tset.qrels", MISSING, "no such file", "did you mean",
        others=("test.qrels",)),
    Bad("a missing file unlike any", "x", MISSING, "no such file", "check the path", kind=Run,
        others=("test.qrels",)),
    Bad("a file in a missing folder", "nowhere/g.qrels", MISSING, "no such file", "no folder"),
    Bad("a name too long", "g" * 300, MISSING, "", ""),
    Bad("a pattern that matches nothing", "part-*.run", MISSING, "no file matches this pattern",
        "folder", kind=Run),
    # Swapped
    Bad("a TREC run as gold", "r.run", b"q1 Q0 d1 1 0.5 t\n", "this is a run", "swapped", 1),
    Bad("qrels as a run", "g.qrels", b"q1 0 d1 1\n", "this is qrels", "swapped", 1, kind=Run),
    Bad("a native run with header as gold", "r.jsonl",
        b'{"karat":1,"kind":"run"}\n{"query_id":"q1","results":["a"]}\n',
        "this is a run", "swapped", 1, "kind"),
    Bad("native gold with header as a run", "g.jsonl", b'{"karat":1,"kind":"gold"}\n' + JSONL,
        "gold", "swapped", 1, "kind", Run),
    Bad("a native run without header as gold", "r.jsonl", b'{"query_id":"q1","results":["a"]}\n',
        "line of a run", "swapped", 1, "results"),
    Bad("native gold without header as a run", "g.jsonl", JSONL,
        "no results", "swapped", 1, "results", Run),
    Bad("a CSV run with ranks as gold", "r.csv", b"query_id,item_id,rank,score\nq1,d1,1,0.5\n",
        "looks like a run", "swapped", 1),
    Bad("a CSV run with scores as gold", "r.csv", b"query_id,item_id,score\nq1,d1,0.5\n",
        "0.5", "swapped", 2),
    Bad("a CSV of grades as a run", "g.csv", b"query_id,item_id,grade\nq1,d1,1\n",
        "looks like gold", "swapped", 1, kind=Run),
    Bad("a JSON run as gold", "r.json", b'{"q1": {"d1": 0.5}}', "0.5 is no integer", "swapped",
        field="grade"),
    # Torn and ragged
    Bad("a torn last line of JSON", "g.jsonl", JSONL + b'{"query_id":"q2","rel',
        "no complete JSON", "one object a line", 2),
    Bad("a torn line of JSON in the middle", "g.jsonl", JSONL + b'{"query_id":"q2"\n' + JSONL,
        "no complete JSON", "one object a line", 2),
    Bad("a torn first line of JSON", "g.jsonl", b'{"query_i', "no complete JSON", "", 1),
    Bad("a torn JSON", "g.json", b'{"q1": {"d1": 1},\n"q2": {"d', "no complete JSON", "", 2),
    Bad("JSON with a comma too many", "g.json", b'{"q1": {"d1": 1},\n\n"q2": {"d2": 1,}}',
        "JSON", "", 3),
    Bad("a row too long in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,1\nq1,d2,1,7\n",
        "4 values under 3 column names", "quote", 3),
    Bad("a row too short in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,1\nq1,d2\n", "", "", 3),
    Bad("a quote left open in CSV", "g.csv", b'query_id,item_id,grade\nq1,"d1,1\nq2,d2,1\n', "",
        "quote", 2),
    # Ids
    Bad("a query twice in JSONL", "g.jsonl", JSONL + JSONL,
        "'q1' stands there twice", "one line", 2, "query_id"),
    Bad("a missing id in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,1\nq1,,1\n",
        "the id is missing", "give every row an id", 3, "item_id"),
    Bad("a rank twice in CSV", "r.csv", b"query_id,item_id,rank\nq1,d1,1\nq1,d2,1\n",
        "two items at rank 1", "renumber", 3, "rank", Run),
]  # fmt: skip
every_bad_file = pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)


@every_bad_file
def test_python_raises_an_input_error_that_says_where_what_and_how_to_mend_it(tmp_path, bad):
    path = bad.put(tmp_path)
    with pytest.raises(InputError) as caught:
        bad.kind.read(path)
    assert_says(str(caught.value), bad, path)


@every_bad_file
def test_the_command_line_says_it_once_exits_2_and_writes_nothing(
    tmp_path, bad, monkeypatch, capsys
):
    path = bad.put(tmp_path)
    good = tmp_path / "good"
    good.write_bytes(b"q1 Q0 d1 1 0.5 t\n" if bad.kind is Gold else b"q1 0 d1 1\n")
    pair = [path, good] if bad.kind is Gold else [good, path]
    before = sorted(tmp_path.iterdir())
    code = karat_command(monkeypatch, "eval", *pair, "-o", tmp_path / "scores.json")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("error:") == 1
    assert "Traceback" not in printed.err
    assert_says(printed.err.removeprefix("error: "), bad, path)
    assert code == 2
    assert sorted(tmp_path.iterdir()) == before


def karat_command(monkeypatch, *arguments: object) -> object:
    """Run the command line in this process, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["karat", *map(str, arguments)])
    with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def assert_says(message: str, bad: Bad, path: Path) -> None:
    first, _, rest = message.partition("\n")
    place = str(path) if bad.line is None else f"{path}:{bad.line}"
    assert first.startswith(f"{place}: ")
    said = first.removeprefix(f"{place}: ")
    field, _, _ = said.partition(": ")
    assert (bad.field or "") in field
    assert bad.problem in said
    assert rest.startswith("  hint: ")
    assert bad.hint in rest


def test_the_near_name_that_is_suggested_is_the_path_of_a_file(tmp_path):
    (tmp_path / "bm25.run").write_bytes(b"q1 Q0 d1 1 0.5 t\n")
    with pytest.raises(InputError) as caught:
        Run.read(tmp_path / "bm52.run")
    assert caught.value.hint == f"did you mean {tmp_path / 'bm25.run'}?"


def test_a_query_in_two_parts_is_refused(tmp_path):
    for part in ("part-1.run", "part-2.run"):
        (tmp_path / part).write_bytes(b"q1 Q0 d1 1 0.5 t\n")
    with pytest.raises(InputError, match="'q1' stands in more than one of the files") as caught:
        Run.read(tmp_path / "part-*.run")
    assert caught.value.path == str(tmp_path / "part-*.run")


def test_a_bad_part_is_named_by_its_own_file(tmp_path):
    (tmp_path / "part-1.run").write_bytes(b"q1 Q0 d1 1 0.5 t\n")
    (tmp_path / "part-2.run").write_bytes(b"q2 Q0 d1 1 x t\n")
    with pytest.raises(InputError) as caught:
        Run.read(tmp_path / "part-*.run")
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "part-2.run"), 1)


def test_a_directory_among_the_parts_is_refused(tmp_path):
    (tmp_path / "part-1.run").mkdir()
    with pytest.raises(InputError, match="this is a directory"):
        Run.read(tmp_path / "part-*")


@pytest.mark.parametrize("kind", [Gold, Run])
def test_an_ending_that_names_no_format_is_refused_for_writing(tmp_path, kind):
    with pytest.raises(InputError, match=r"'.xyz' names no format") as caught:
        kind.of({"q1": {"a": 1}}).write(tmp_path / "out.xyz")
    assert caught.value.path == str(tmp_path / "out.xyz")
    assert ".jsonl" in caught.value.hint


def test_an_ending_that_names_no_format_leaves_no_file(tmp_path):
    with pytest.raises(InputError):
        Run.of({"q1": ["a"]}).write(tmp_path / "out.xyz")
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_does_not_exist_is_refused_for_writing(tmp_path):
    with pytest.raises(InputError, match="no format 'xml'") as caught:
        Run.of({"q1": ["a"]}).write(tmp_path / "out.run", format="xml")
    assert "trec" in caught.value.hint


@pytest.mark.parametrize("option", ["--format", "--gold-format"])
def test_a_format_that_does_not_exist_is_refused(tmp_path, option, monkeypatch, capsys):
    (tmp_path / "g.qrels").write_bytes(b"q1 0 d1 1\n")
    (tmp_path / "r.run").write_bytes(b"q1 Q0 d1 1 0.5 t\n")
    paths = (tmp_path / "g.qrels", tmp_path / "r.run")
    code = karat_command(monkeypatch, "eval", *paths, option, "xml")
    message = capsys.readouterr().err
    assert code == 2
    assert message.startswith("error: format: there is no format 'xml'\n  hint: known: ")


def test_writing_into_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(InputError, match="folder to write into does not exist") as caught:
        Run.of({"q1": ["a"]}).write(tmp_path / "nowhere" / "out.run")
    assert caught.value.hint == f"create {tmp_path / 'nowhere'} first"


def test_writing_over_a_directory_is_refused(tmp_path):
    (tmp_path / "out.run").mkdir()
    with pytest.raises(InputError, match="this is a directory"):
        Run.of({"q1": ["a"]}).write(tmp_path / "out.run")


def test_an_output_file_of_no_known_format_is_refused_before_anything_is_read(
    tmp_path, monkeypatch, capsys
):
    paths = (tmp_path / "missing.qrels", tmp_path / "missing.run")
    code = karat_command(monkeypatch, "eval", *paths, "-o", tmp_path / "out.xyz")
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert printed.err.startswith(f"error: {tmp_path / 'out.xyz'}: ")


def test_no_query_in_common_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "g.qrels").write_bytes(b"q1 0 d1 1\n")
    (tmp_path / "r.run").write_bytes(b"Q1 Q0 d1 1 0.5 t\n")
    code = karat_command(
        monkeypatch, "eval", tmp_path / "g.qrels", tmp_path / "r.run", "-o", tmp_path / "out.json"
    )
    printed = capsys.readouterr()
    assert (code, printed.out, (tmp_path / "out.json").exists()) == (2, "", False)
    assert "no query in common: gold has 'q1', the run has 'Q1'" in printed.err


def test_gold_ids_that_hardly_appear_in_the_run_give_a_warning_with_samples_of_both():
    gold = {"q1": {f"doc-{n}": 1 for n in range(5)}}
    run = {"q1": ["doc-0", "DOC-1", "DOC-2", "DOC-3"]}
    with pytest.warns(KaratWarning) as caught:
        karat.evaluate(gold, run, ["P@5"])
    message = str(caught[0].message)
    assert "only 1 of 5" in message
    assert sum(f"'doc-{n}'" in message.partition("there are")[0] for n in range(5)) == 3
    assert sum(f"'{item}'" in message.partition("there are")[2] for item in run["q1"]) == 3


# Whatever happens to a file, it is read or refused

VALID = {
    "g.qrels": b"q1 0 d1 1\nq1 0 d2 0\nq2\t0\td3\t2\r\n# c\n\nq#3 0 d-4 -1\n",
    "tidy.qrels": b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n",
    "r.run": b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 .25 t\nq2\tQ0 d3  1 -1e-3 t\r\n#\nq3 Q0 d4 1 7 t\n",
    "tidy.run": b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 .25 t\nq2 Q0 d3 1 -1e-3 t\nq3 Q0 d4 1 7 t\n",
    "g.jsonl": b'{"karat":1,"kind":"gold","name":"x","settings":{"a":[1,null]}}\n'
    b'{"query_id":"q1","query":"\xc3\xa4","level":1,"relevant":{"d1":2,"d2":-1},'
    b'"spans":[{"doc_id":"d1","start":0,"end":12,"text":"x"}],"evidence":["\\u00e4"]}\n'
    b'{"query_id":2,"relevant":["d1",7],"level":"hard","tags":["a"]}\n',
    "r.jsonl": b'{"karat":1,"kind":"run","name":"x"}\n'
    b'{"query_id":"q1","results":[{"id":"d1","score":0.5,"doc_id":"d","start":1,"end":2},"d2"],'
    b'"latency_ms":{"total":1.5},"calls":[{"stage":"x","prompt_tokens":5},{"model":"m"}]}\n'
    b'{"query_id":2,"error":{"type":"T","message":"","attempts":3},"results":[]}\n',
    "g.json": b'{"q1": {"d1": 2, "d2": 0}, "q2": {"d3": -1}}',
    "r.json": b'{"q1": {"d1": 0.5, "d2": 1e-3}, "q2": {"d3": -1}}',
    "g.csv": b'qid,docno,rel,level\r\nq1,d1,1,easy\r\n"q,2","d""2\n",0,\r\n',
    "r.csv": b"query_id,item_id,rank,score,text\nq1,d1,1,0.5,x\nq1,d2,2,.25,\nq2,d1,1,7,y\n",
    "g.tsv": b"query-id\tcorpus-id\tscore\n1\t2\t1\n3\t4\t0\n",
    "r.parquet": parquet(query_id=["q1", "q2"], item_id=["a", "b"], score=[0.5, 1.5]),
    "r.arrow": arrow(query_id=["q1", "q2"], item_id=["a", "b"], score=[0.5, 1.5]),
    "stream-r.arrow": arrow_stream(query_id=["q1", "q2"], item_id=["a", "b"], score=[0.5, 1.5]),
    "plain-g.tsv": b"q1\td1\t1\nq1\td2\t0\n\nq#2\td 3\t2\r\n",
    "plain-r.tsv": b"q1\td1\t0.5\nq1\td2\t.25\nq2\td1\t-1e3\n",
    "ragas-g.jsonl": b'{"user_input":"x","reference_contexts":["a","\xc3\xa4"],"level":1}\n'
    b'{"user_input":"y","reference_contexts":[],"reference":"z"}\n',
    "ragas-r.jsonl": b'{"id":1,"retrieved_contexts":["a","b"],"retrieved_context_ids":["1",2]}\n'
    b'{"id":2,"retrieved_contexts":["a"],"response":"x"}\n',
    "ragas-g.csv": b'user_input,reference_contexts,level\nx,"[\'a\', \'b\']",easy\ny,"[""c""]",\n',
    "ragas-r.json": b'[{"user_input":"x","retrieved_contexts":["a","b"]}]',
    "g.qrels.gz": gzip.compress(b"q1 0 d1 1\nq2 0 d2 0\n", mtime=0),
    "g.qrels.zst": zstd.compress(b"q1 0 d1 1\nq2 0 d2 0\n"),
}
PIECES = [
    b"\xff", b"\x00", b"\xef\xbb\xbf", b"\n", b"\r", b"\t", b" ", b'"', b"#", b",", b"{", b"}",
    b"[", b"]", b":", b"\\", b"\\ud800", b"0", b"9" * 25, b"1e999", b"-", b".", b"NaN", b"null",
    b"true", b"[[]]", b"{}", b"\xc3", b"q1", b"query_id", b"\x1f\x8b", b"PAR1",
    b"ARROW1", b"user_input",
]  # fmt: skip


def mutated(content: bytes, chance: random.Random) -> bytes:
    """A copy with a few bytes deleted, inserted, overwritten or repeated, or with its end cut."""
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(len(content) + 1)
        length = chance.choice([1, 1, 2, 8])
        what = chance.randrange(6)
        if what == 0:
            content = content[:at] + content[at + length :]
        elif what == 1:
            content = content[:at] + chance.randbytes(length) + content[at:]
        elif what == 2:
            content = content[:at] + chance.choice(PIECES) + content[at:]
        elif what == 3:
            content = content[:at] + chance.choice(PIECES) + content[at + length :]
        elif what == 4:
            content = content[:at] + content[max(0, at - 4 * length) :]
        else:
            content = content[:at]
    return content


@pytest.mark.slow
@pytest.mark.parametrize("name", VALID)
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path, name):
    chance = random.Random(name)
    path = tmp_path / name
    kind = Gold if "g." in name or "qrels" in name else Run
    surprises: dict[str, bytes] = {}
    # Polars ends the whole process on one in some ten thousand damaged Parquet files; of Arrow
    # only what is not compressed inside is damaged here, since a damaged length of compressed
    # data makes it ask for all the memory there is.
    for _ in range(min(MUTATIONS, 500) if name.endswith((".parquet", ".arrow")) else MUTATIONS):
        content = mutated(VALID[name], chance)
        path.write_bytes(content)
        try:
            read = kind.read(path)
            _ = read.judgments if isinstance(read, Gold) else read.results
        except InputError as error:
            assert error.path == str(path)  # noqa: PT017
        except (Exception, pl.exceptions.PanicException) as error:
            kept = surprises.get(type(error).__name__, content)
            surprises[type(error).__name__] = min(kept, content, key=len)
    assert surprises == {}


@pytest.mark.parametrize("name", VALID)
@pytest.mark.filterwarnings("ignore:.*hash of their text")
def test_the_files_that_are_damaged_are_sound_at_first(tmp_path, name):
    (tmp_path / name).write_bytes(VALID[name])
    kind = Gold if "g." in name or "qrels" in name else Run
    assert kind.read(tmp_path / name).name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["queries.jsonl", "qrels/test.tsv"])
def test_a_beir_folder_with_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path, name):
    chance = random.Random(name)
    (tmp_path / "qrels").mkdir()
    sound = {
        "queries.jsonl": b'{"_id":"1","text":"\xc3\xa4","metadata":{"a":1,"b":["x"]}}\n'
        b'{"_id":2,"text":"y","metadata":{"a":"x"},"level":"easy"}\n',
        "qrels/test.tsv": VALID["g.tsv"],
    }
    for other, content in sound.items():
        (tmp_path / other).write_bytes(content)
    assert Gold.read(tmp_path).queries["text"][0] == "ä"
    for _ in range(MUTATIONS):
        (tmp_path / name).write_bytes(mutated(sound[name], chance))
        with contextlib.suppress(InputError), warnings.catch_warnings(action="ignore"):
            assert Gold.read(tmp_path).judgments.height


def test_utf_16_without_a_mark_is_known_by_its_zero_bytes(tmp_path):
    path = tmp_path / "g.qrels"
    path.write_bytes("q1 0 d1 1\n".encode("utf-16-le"))
    with pytest.raises(InputError, match="full of zero bytes"):
        Gold.read(path)


@pytest.mark.parametrize("content", ["{}", "[]"])
def test_json_that_holds_nothing_says_which_file_that_is(tmp_path, content):
    path = tmp_path / "g.json"
    path.write_text(content)
    with pytest.raises(InputError, match="holds no query") as caught:
        Gold.read(path)
    assert caught.value.path == str(path)
