"""Bad input gives one error that points to its place, in Python and on the command line."""

from __future__ import annotations

import gzip
import io
import random
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.data import Chunks, Corpus, Gold, Run
from karat.data.queries import read_queries
from karat.errors import SWAPPED, InputError, KaratWarning
from support.effort import FULL
from support.errors import refused

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MUTATIONS = 2_000 if FULL else 100

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
    """A file that cannot be used, and where the error points.

    `values` appear in the problem and `hint_values` in the hint: values of the file, names and
    numbers, never the sentence around them. `hint` is for hints that are constants of karat.
    """

    what: str
    name: str
    content: bytes | object
    line: int | None = None
    field: str | None = None
    kind: type[Gold] | type[Run] = Gold
    values: tuple[str, ...] = ()
    hint_values: tuple[str, ...] = ()
    hint: str | None = None
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

    @property
    def shape(self) -> tuple[object, ...]:
        """What the command line can treat differently: the kind, the ending and the place."""
        return self.kind, Path(self.name).suffix, self.line is None, self.field is None


BAD = [
    # A missing column
    Bad("qrels without a grade", "g.qrels", b"q1 0 d1 1\nq1 0 d2\n", 2, "grade",
        values=("3", "4")),
    Bad("a run without a tag", "r.run", b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.4\n", 2, "tag", Run,
        values=("5", "6")),
    Bad("a run with an id of two words", "r.run", b"q1 Q0 d1 1 0.5 t\nq1 Q0 d 2 2 0.4 t\n",
        2, None, Run, values=("7", "6")),
    Bad("a CSV without a grade", "g.csv", b"query_id,item_id\nq1,d1\n", 1, "grade",
        values=("query_id", "item_id"), hint_values=("grade",)),
    Bad("a CSV whose grade is misspelled", "g.csv", b"query_id,item_id,grades\nq1,d1,1\n",
        1, "grade", values=("grades",), hint_values=("grades to grade",)),
    Bad("a CSV without an item", "r.csv", b"query_id,score\nq1,0.5\n", 1, "item_id", Run,
        values=("query_id", "score"), hint_values=("item_id",)),
    Bad("a CSV without a header", "g.csv", b"q1,d1,1\n", 1, "query_id",
        values=("q1", "d1"), hint_values=("query_id",)),
    Bad("a Parquet file without a query", "g.parquet", parquet(item_id=["a"], grade=[1]),
        None, "query_id", values=("item_id", "grade"), hint_values=("query_id",)),
    Bad("a line of JSON without a query", "g.jsonl", JSONL + b'{"relevant":["a"]}\n',
        2, "query_id"),
    # A grade that is not an integer
    Bad("a grade that is a word", "g.qrels", b"q1 0 d1 1\nq1 0 d2 high\n", 2, "grade",
        values=("'high'",), hint_values=("4",)),
    Bad("a grade that is a fraction", "g.qrels", b"q1 0 d1 1\n\n# c\nq1 0 d2 1.5\n", 4, "grade",
        values=("'1.5'",), hint_values=("4",)),
    Bad("a grade that is a fraction in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,1.5\n",
        2, "grade", values=("'1.5'",)),
    Bad("a grade that is missing in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,\n",
        2, "grade"),
    Bad("a grade that is a fraction in JSONL", "g.jsonl",
        JSONL + b'{"query_id":"q2","relevant":{"d1":1,"d2":1.5}}\n', 2, 'relevant["d2"]',
        values=("1.5",)),
    Bad("a grade that is a word in JSONL", "g.jsonl",
        JSONL + b'{"query_id":"q2","expected":{"d1":1,"a.b c":"x"}}\n', 2, 'expected["a.b c"]',
        values=('"x"',)),
    Bad("a grade that is a word in a list of records", "g.json",
        b'[{"query_id":"q1","relevant":{"d1":1}},\n{"query_id":"q2",\n"relevant":{"d1":"x"}}]', 3,
        'relevant["d1"]', values=('"x"', "record 2")),
    Bad("a record without an id", "g.json",
        b'[{"query_id":"q1","relevant":{"d1":1}},\n{"relevant":{"d1":1}}]', 2, "query_id",
        values=("record 2",)),
    Bad("a grade that is a fraction in JSON", "g.json", b'{"q1": {"d1": 1.5}}', None, "grade",
        values=("'q1'", "'d1'", "1.5")),
    Bad("a grade that is a fraction in Parquet", "g.parquet",
        parquet(query_id=["q1"], item_id=["a"], grade=[1.5]), None, "grade",
        values=("row 1", "1.5")),
    # Scores that are not numbers, or too large
    Bad("a NaN score", "r.run", b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 nan t\n", 2, "score", Run,
        values=("'nan'",), hint_values=("5",)),
    Bad("a score past the floats", "r.run", b"q1 Q0 d1 1 1e999 t\n", 1, "score", Run,
        values=("'1e999'",)),
    Bad("a score that is a word", "r.run", b"q1 Q0 d1 1 high t\n", 1, "score", Run,
        values=("'high'",)),
    Bad("a NaN score in CSV", "r.csv", b"query_id,item_id,score\nq1,d1,NaN\n", 2, "score", Run,
        values=("'NaN'",)),
    Bad("a score past the floats in CSV", "r.csv",
        b"query_id,item_id,score\nq1,d1,-inf\nq1,d2,1e999\n", 3, "score", Run,
        values=("'1e999'",)),
    Bad("a score past the floats in JSON", "r.json", b'{"q1": {"d1": 1, "d2": 1e999}}', None,
        "score", Run, values=("'q1'", "'d2'")),
    Bad("a missing score in CSV", "r.csv", b"query_id,item_id,score\nq1,d1,\n", 2, "score", Run),
    Bad("a NaN score in JSONL", "r.jsonl", b'{"query_id":"q1","results":[{"id":"a","score":NaN}]}',
        1, "results[0].score", Run, values=("NaN",)),
    Bad("a score past the floats in JSONL", "r.jsonl",
        b'{"query_id":"q1","results":[{"id":"a","score":1e999}]}', 1, "results[0].score", Run),
    Bad("a NaN score in JSON", "r.json", b'{\n"q1": {"d1": 1,\n"d2": NaN}}', 3, None, Run,
        values=("NaN",)),
    Bad("a NaN score in Parquet", "r.parquet",
        parquet(query_id=["q1"], item_id=["a"], score=[float("nan")]), None, "score", Run,
        values=("row 1", "nan")),
    # Empty files
    *(Bad(f"an empty file called {name}", name, b"")
      for name in ("g.qrels", "g.csv", "g.tsv", "g.jsonl", "g.json", "g.parquet", "g")),
    *(Bad(f"a file of white space called {name}", name, b" \n\t\r\n\n")
      for name in ("g.qrels", "g.csv", "g.tsv", "g.jsonl", "g.json")),
    *(Bad(f"a byte order mark alone in {name}", name, b"\xef\xbb\xbf\n")
      for name in ("g.qrels", "g.csv", "g.tsv", "g.jsonl", "g.json")),
    Bad("an empty file that was compressed", "g.qrels.gz", gzip.compress(b"")),
    Bad("comments alone", "g.qrels", b"# a\n  # b\n"),
    Bad("a CSV of a header alone", "g.csv", b"query_id,item_id,grade\n", 1),
    Bad("a header of JSONL alone", "g.jsonl", b'{"karat":1,"kind":"gold"}\n', 1),
    # Encodings
    Bad("Latin-1 in qrels", "g.qrels", "q1 0 d1 1\nq1 0 dé 1\n".encode("latin-1"),
        2, "encoding", values=("0xe9",)),
    Bad("Latin-1 in CSV", "g.csv", "query_id,item_id,grade\nq1,dé,1\n".encode("latin-1"),
        2, "encoding", values=("0xe9",)),
    Bad("Latin-1 in JSONL", "g.jsonl", JSONL + '{"query_id":"é","relevant":[]}'.encode("latin-1"),
        2, "encoding", values=("0xe9",)),
    Bad("Latin-1 in JSON", "g.json", '{\n"q1": {"dé": 1}}'.encode("latin-1"),
        2, "encoding", values=("0xe9",)),
    *(Bad(f"UTF-16 in {name}", name, content.encode("utf-16"), 1, "encoding", values=("UTF-16",))
      for name, content in (("g.qrels", "q1 0 d1 1\n"), ("g.csv", "query_id,item_id,grade\n"),
                            ("g.jsonl", JSONL.decode()), ("g.json", '{"q1":{"d1":1}}'))),
    # Compression
    *(Bad(f"gzip cut off after {size} bytes", "g.qrels.gz", gzip.compress(QRELS)[:size])
      for size in (5, 100, 9_000, -1)),
    *(Bad(f"zst cut off after {size} bytes", "g.qrels.zst", zstd.compress(QRELS)[:size])
      for size in (5, 100, -1)),
    Bad("a .gz file that is not gzip", "g.qrels.gz", b"q1 0 d1 1\n"),
    Bad("a .zst file that is not zst", "g.qrels.zst", b"q1 0 d1 1\n"),
    Bad("gzip whose middle was overwritten", "g.qrels.gz",
        gzip.compress(QRELS)[:2_000] + bytes(50) + gzip.compress(QRELS)[2_050:]),
    Bad("Parquet cut off", "g.parquet", parquet(query_id=["q1"], item_id=["a"], grade=[1])[:-20],
        values=("Parquet",)),
    Bad("a .parquet file that is not Parquet", "g.parquet", b"hello", values=("Parquet",)),
    *(Bad(f"Arrow cut off at {size}", "g.arrow",
          arrow(query_id=["q1"], item_id=["a"], grade=[1])[:size], values=("Arrow",))
      for size in (6, 20, 300, -1)),
    *(Bad(f"an Arrow stream cut off at {size}", "g.arrow",
          arrow_stream(query_id=["q1"], item_id=["a"], grade=[1])[:size], values=("Arrow",))
      for size in (4, 20, 300)),
    Bad("an .arrow file that is not Arrow", "g.arrow", b"hello", values=("Arrow",)),
    Bad("an Arrow file without a grade", "g.arrow", arrow(query_id=["q1"], item_id=["a"]),
        None, "grade", values=("query_id", "item_id"), hint_values=("grade",)),
    # Ragas rows
    Bad("Ragas rows without references as gold", "g.jsonl",
        b'{"user_input":"x","retrieved_contexts":["a"]}\n', 1, "reference_contexts",
        hint_values=("reference_context_ids", "retrieved_contexts")),
    Bad("Ragas rows without retrieved contexts as a run", "r.jsonl",
        b'{"user_input":"x","reference_contexts":["a"]}\n', 1, "retrieved_contexts", Run,
        hint_values=("reference_contexts",)),
    Bad("the same user_input twice", "g.jsonl",
        b'{"user_input":"x","reference_contexts":["a"]}\n\n' * 2, 3, "user_input",
        values=("line 1",), hint_values=("query_id",)),
    Bad("the same id of a Ragas row twice", "g.jsonl",
        b'{"id":5,"reference_contexts":["a"]}\n' * 2, 2, "id", values=("'5'", "line 1")),
    Bad("the same user_input twice in CSV", "g.csv",
        b'user_input,reference_contexts\nx,"[""a""]"\nx,"[""b""]"\n', 3, "user_input",
        values=("line 2",), hint_values=("query_id",)),
    Bad("a Ragas row of several turns", "g.jsonl",
        b'{"user_input":[{"content":"x"}],"reference_contexts":["a"]}\n', 1, "user_input",
        hint_values=("user_input",)),
    Bad("a Ragas row without a query", "g.jsonl", b'{"reference_contexts":["a"]}\n',
        1, "user_input", values=("query_id",)),
    Bad("a Ragas context that is not text", "g.jsonl",
        b'{"user_input":"x","reference_contexts":["a",5]}\n', 1, "reference_contexts[1]",
        values=("text", "got 5")),
    Bad("more ids than contexts", "r.jsonl",
        b'{"id":"q","retrieved_contexts":["a"],"retrieved_context_ids":["1","2"]}\n',
        1, "retrieved_context_ids", Run, values=("2", "1")),
    Bad("a list that NumPy printed", "g.csv", b"user_input,reference_contexts\nx,['a' 'b']\n",
        2, "reference_contexts", values=("['a' 'b']",)),
    Bad("Ragas columns without rows", "g.csv", b"user_input,reference_contexts\n", 1),
    # ir_datasets
    Bad("ranks where scores are expected", "r.tsv", b"q1\ta\t1\nq1\tb\t2\nq2\ta\t1\n",
        None, "score", Run, hint_values=("query_id", "item_id", "rank")),
    Bad("a grade that is a fraction without column names", "g.tsv", b"q1\ta\t1\nq1\tb\t0.5\n",
        2, "relevance", values=("'0.5'",)),
    # Not a file
    Bad("a directory", "data", DIRECTORY, hint_values=("test.qrels",)),
    Bad("a missing file", "tset.qrels", MISSING, hint_values=("test.qrels",),
        others=("test.qrels",)),
    Bad("a missing file unlike any", "x", MISSING, kind=Run, others=("test.qrels",)),
    Bad("a file in a missing folder", "nowhere/g.qrels", MISSING, hint_values=("nowhere",)),
    Bad("a name too long", "g" * 300, MISSING),
    Bad("a pattern that matches nothing", "part-*.run", MISSING, kind=Run),
    # Gold and run swapped
    Bad("a TREC run as gold", "r.run", b"q1 Q0 d1 1 0.5 t\n", 1, values=("6",), hint=SWAPPED),
    Bad("qrels as a run", "g.qrels", b"q1 0 d1 1\n", 1, kind=Run, values=("4",), hint=SWAPPED),
    Bad("a native run with header as gold", "r.jsonl",
        b'{"karat":1,"kind":"run"}\n{"query_id":"q1","results":["a"]}\n',
        1, "kind", values=("run",), hint=SWAPPED),
    Bad("native gold with header as a run", "g.jsonl", b'{"karat":1,"kind":"gold"}\n' + JSONL,
        1, "kind", Run, values=("gold",), hint=SWAPPED),
    Bad("a native run without header as gold", "r.jsonl", b'{"query_id":"q1","results":["a"]}\n',
        1, "results", hint=SWAPPED),
    Bad("native gold without header as a run", "g.jsonl", JSONL, 1, "results", Run),
    Bad("a CSV run with ranks as gold", "r.csv", b"query_id,item_id,rank,score\nq1,d1,1,0.5\n",
        1, hint=SWAPPED),
    Bad("a CSV run with scores as gold", "r.csv", b"query_id,item_id,score\nq1,d1,0.5\n",
        2, "score", values=("'0.5'",)),
    Bad("a CSV of grades as a run", "g.csv", b"query_id,item_id,grade\nq1,d1,1\n",
        1, kind=Run, values=("grade",), hint=SWAPPED),
    Bad("a JSON run as gold", "r.json", b'{"q1": {"d1": 0.5}}', None, "grade",
        values=("'q1'", "'d1'", "0.5")),
    # Torn and ragged
    Bad("a torn last line of JSON", "g.jsonl", JSONL + b'{"query_id":"q2","rel', 2,
        values=("not complete JSON",)),
    Bad("a torn line of JSON in the middle", "g.jsonl", JSONL + b'{"query_id":"q2"\n' + JSONL, 2,
        values=("not complete JSON",)),
    Bad("a torn first line of JSON", "g.jsonl", b'{"query_i', 1, values=("not complete JSON",)),
    Bad("a torn JSON", "g.json", b'{"q1": {"d1": 1},\n"q2": {"d', 2),
    Bad("JSON with a comma too many", "g.json", b'{"q1": {"d1": 1},\n\n"q2": {"d2": 1,}}', 3,
        values=("comma",), hint_values=("}",)),
    Bad("a list in JSON with a comma too many", "g.json", b'{"q1": ["d1",\n"d2",\n]}', 2,
        values=("comma",), hint_values=("]",)),
    Bad("a line of JSON with a comma too many", "g.jsonl", JSONL + b'{"query_id":"q2", }\n', 2,
        values=("comma",), hint_values=("}",)),
    Bad("a line of JSON without quotes", "g.jsonl", JSONL + b'{"query_id":q2}\n', 2,
        values=("not valid JSON",)),
    Bad("a row too long in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,1\nq1,d2,1,7\n", 3,
        values=("4", "3")),
    Bad("a row too short in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,1\nq1,d2\n", 3,
        values=("2", "3")),
    Bad("a quote left open in CSV", "g.csv", b'query_id,item_id,grade\nq1,"d1,1\nq2,d2,1\n', 2),
    # Ids
    Bad("a query twice in JSONL", "g.jsonl", JSONL + JSONL, 2, "query_id", values=("'q1'",)),
    Bad("a missing id in CSV", "g.csv", b"query_id,item_id,grade\nq1,d1,1\nq1,,1\n", 3, "item_id"),
    Bad("a rank twice in CSV", "r.csv", b"query_id,item_id,rank\nq1,d1,1\nq1,d2,1\n",
        3, "rank", Run, values=("'q1'", "1")),
]  # fmt: skip
# The command line does the same for every InputError: by default one file of each shape.
BAD_BY_SHAPE = list({bad.shape: bad for bad in BAD}.values())


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.what)
def test_python_raises_an_input_error_that_points_to_the_problem(tmp_path, bad):
    path = bad.put(tmp_path)
    with refused(path=path, line=bad.line, field=bad.field) as caught:
        bad.kind.read(path)
    problem, hint = caught.value.problem, caught.value.hint
    assert [value for value in bad.values if value not in problem] == []
    assert hint
    assert [value for value in bad.hint_values if value not in hint] == []
    assert bad.hint in (None, hint)


@pytest.mark.parametrize("bad", BAD if FULL else BAD_BY_SHAPE, ids=lambda bad: bad.what)
def test_the_command_line_prints_one_error_exits_with_2_and_writes_nothing(tmp_path, bad, command):
    path = bad.put(tmp_path)
    good = tmp_path / "good"
    good.write_bytes(b"q1 Q0 d1 1 0.5 t\n" if bad.kind is Gold else b"q1 0 d1 1\n")
    pair = [path, good] if bad.kind is Gold else [good, path]
    before = sorted(tmp_path.iterdir())
    code, out, err = command("eval", *pair, "-o", tmp_path / "scores.json")
    first, _, rest = err.partition("\n")
    place = str(path) if bad.line is None else f"{path}:{bad.line}"
    assert (code, out) == (2, "")
    assert first.startswith(f"error: {place}: " + (f"{bad.field}: " if bad.field else ""))
    assert [value for value in bad.values if value not in first.partition(f"{place}: ")[2]] == []
    shown, _, hint = f"\n{rest}".partition("\n  hint: ")
    assert hint
    assert len(shown.split("\n")) <= 3  # the line of the file, and the carets
    assert err.count("error:") == 1
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_the_suggested_name_is_the_path_of_a_file(tmp_path):
    (tmp_path / "bm25.run").write_bytes(b"q1 Q0 d1 1 0.5 t\n")
    with refused(path=tmp_path / "bm52.run") as caught:
        Run.read(tmp_path / "bm52.run")
    assert str(tmp_path / "bm25.run") in caught.value.hint


def test_a_query_in_two_parts_is_refused(tmp_path):
    for part in ("part-1.run", "part-2.run"):
        (tmp_path / part).write_bytes(b"q1 Q0 d1 1 0.5 t\n")
    with refused(path=tmp_path / "part-*.run", line=None) as caught:
        Run.read(tmp_path / "part-*.run")
    assert "'q1'" in caught.value.problem


def test_a_bad_part_is_named_by_its_own_file(tmp_path):
    (tmp_path / "part-1.run").write_bytes(b"q1 Q0 d1 1 0.5 t\n")
    (tmp_path / "part-2.run").write_bytes(b"q2 Q0 d1 1 x t\n")
    with refused(path=tmp_path / "part-2.run", line=1, field="score"):
        Run.read(tmp_path / "part-*.run")


def test_a_directory_among_the_parts_is_refused(tmp_path):
    (tmp_path / "part-1.run").mkdir()
    with refused(path=tmp_path / "part-1.run", line=None, field=None):
        Run.read(tmp_path / "part-*")


@pytest.mark.parametrize("kind", [Gold, Run])
def test_an_ending_of_no_known_format_is_refused_for_writing_and_leaves_no_file(tmp_path, kind):
    with refused(path=tmp_path / "out.xyz") as caught:
        kind.of({"q1": {"a": 1}}).write(tmp_path / "out.xyz")
    assert "'.xyz'" in caught.value.problem
    assert ".jsonl" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused_for_writing(tmp_path):
    with refused(field="format") as caught:
        Run.of({"q1": ["a"]}).write(tmp_path / "out.run", format="xml")
    assert "'xml'" in caught.value.problem
    assert "trec" in caught.value.hint


@pytest.mark.parametrize("option", ["--format", "--gold-format"])
def test_an_unknown_format_is_refused_for_reading(tmp_path, option, command):
    (tmp_path / "g.qrels").write_bytes(b"q1 0 d1 1\n")
    (tmp_path / "r.run").write_bytes(b"q1 Q0 d1 1 0.5 t\n")
    code, out, err = command("eval", tmp_path / "g.qrels", tmp_path / "r.run", option, "xml")
    problem, hint = err.splitlines()
    assert (code, out) == (2, "")
    assert problem.startswith("error: format: ")
    assert "'xml'" in problem
    assert "trec" in hint


def test_writing_into_a_missing_folder_is_refused(tmp_path):
    with refused(path=tmp_path / "nowhere" / "out.run") as caught:
        Run.of({"q1": ["a"]}).write(tmp_path / "nowhere" / "out.run")
    assert str(tmp_path / "nowhere") in caught.value.hint


def test_writing_over_a_directory_is_refused(tmp_path):
    (tmp_path / "out.run").mkdir()
    with refused(path=tmp_path / "out.run"):
        Run.of({"q1": ["a"]}).write(tmp_path / "out.run")
    assert (tmp_path / "out.run").is_dir()


def test_an_output_file_of_no_known_format_is_refused_before_anything_is_read(tmp_path, command):
    paths = (tmp_path / "missing.qrels", tmp_path / "missing.run")
    code, out, err = command("eval", *paths, "-o", tmp_path / "out.xyz")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {tmp_path / 'out.xyz'}: ")


def test_no_query_in_common_is_refused(tmp_path, command):
    (tmp_path / "g.qrels").write_bytes(b"q1 0 d1 1\n")
    (tmp_path / "r.run").write_bytes(b"Q1 Q0 d1 1 0.5 t\n")
    target = tmp_path / "out.json"
    code, out, err = command("eval", tmp_path / "g.qrels", tmp_path / "r.run", "-o", target)
    assert (code, out, target.exists()) == (2, "", False)
    assert "'q1'" in err
    assert "'Q1'" in err


def test_gold_ids_that_are_rare_in_the_run_give_a_warning_with_samples_of_both():
    gold = {"q1": {f"doc-{n}": 1 for n in range(5)}}
    run = {"q1": ["doc-0", "DOC-1", "DOC-2", "DOC-3"]}
    with pytest.warns(KaratWarning) as caught:
        karat.evaluate(gold, run, ["P@5"])
    message = str(caught[0].message)
    assert "1 of 5" in message
    samples = re.findall(r"'([^']*)'", message)
    assert len(samples) == 6
    assert set(samples[:3]) < set(gold["q1"])
    assert set(samples[3:]) < set(run["q1"])


# A damaged file is read or refused

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


def kind_of(name: str) -> type[Gold] | type[Run]:
    return Gold if "g." in name or "qrels" in name else Run


@pytest.mark.parametrize("name", VALID)
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path, name):
    chance = random.Random(name)
    path = tmp_path / name
    kind = kind_of(name)
    path.write_bytes(VALID[name])
    assert kind.read(path).name  # not damaged yet
    surprises: dict[str, bytes] = {}
    # Polars ends the whole process on about one in ten thousand damaged Parquet files. Arrow files
    # are damaged only without internal compression, because Polars allocates whatever a damaged
    # length of compressed data asks for.
    for _ in range(min(MUTATIONS, 500) if name.endswith((".parquet", ".arrow")) else MUTATIONS):
        content = mutated(VALID[name], chance)
        path.write_bytes(content)
        try:
            read = kind.read(path)
            _ = read.judgments if isinstance(read, Gold) else read.results
        except InputError as error:
            assert error.path == str(path)  # noqa: PT017
        except (Exception, pl.exceptions.PanicException) as error:
            shortest = surprises.get(type(error).__name__, content)
            surprises[type(error).__name__] = min(shortest, content, key=len)
    assert surprises == {}


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
        try:
            with warnings.catch_warnings(action="ignore"):
                assert Gold.read(tmp_path).judgments.height
        except InputError as error:
            assert error.path.startswith(str(tmp_path))  # noqa: PT017


def test_utf_16_without_a_mark_is_recognised_by_its_zero_bytes(tmp_path):
    path = tmp_path / "g.qrels"
    path.write_bytes("q1 0 d1 1\n".encode("utf-16-le"))
    with refused(path=path, field="encoding"):
        Gold.read(path)


@pytest.mark.parametrize("content", ["{}", "[]"])
def test_json_without_queries_is_refused_with_its_path(tmp_path, content):
    path = tmp_path / "g.json"
    path.write_text(content)
    with refused(path=path):
        Gold.read(path)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        (
            "text after a closing quote.tsv",
            'query_id\titem_id\tgrade\n"q"\t"a"q"\t1\n"r"\tb"\t2\n',
            2,
        ),
        ("unclosed quote.csv", 'query_id,item_id,grade,query\nq1,a,1,x\nq1,b,1,"y\n', 3),
        ("short row after a carriage return.csv", "\rquery_id,item_id,grade,x\nq1,a,1\n", 2),
        ("one quote in a value.csv", 'query_id,item_id,grade\n\nq1,5" disk,1\nq2,a,1\n', 3),
        ("quote in a name.csv", 'query_id,item_id,grade,5"\nq1,a,1,3"\nq1,b,1,x\n', 1),
        ("names that differ in case.csv", "Query_ID,query_id,item_id,grade\nq1,q,a,1\n", 1),
        ("grade that is too large.csv", "query_id,item_id,grade\nq1,a,2147483648\n", 2),
        ("separator too many at the end.csv", "query_id,item_id,grade\nq1,a,1\nq1,b,2,", 3),
        ("comment that hides a line.qrels", "q1 0 a 1\n# x\rq1 0 b 1\nq1 0 c 1\n", 2),
        ("smallest integer.csv", "query_id,item_id,grade\nq1,a,-9223372036854775808\n", 2),
        ("smallest integer.qrels", "q1 0 a 1\nq1 0 b -9223372036854775808\n", 2),
        ("smallest decimal.qrels", "q1 0 a 1.0\nq1 0 b -9223372036854775808.0\n", 2),
        ("grade that is too large.qrels", "q1 0 a 1\nq1 0 b 2147483648\n", 2),
        ("decimal grade that is too large.qrels", "q1 0 a 1.0\nq1 0 b 2147483648.0\n", 2),
    ],
)
def test_gold_that_would_be_misread_is_refused(tmp_path, name, content, line):
    path = tmp_path / name
    path.write_text(content)
    with refused(path=path, line=line):
        Gold.read(path)


def test_unpaired_quote_is_found_after_values_with_pairs(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text('query_id,item_id,grade,query\nq1,a,1,is "b" c\nq2,a,1,5" disk\nq3,a,1,"x"\n')
    with refused(path=path, line=3) as caught:
        Gold.read(path)
    assert "quote" in caught.value.problem


def test_quotes_inside_unquoted_values_are_read_as_they_are(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text('query_id,item_id,grade,query\nq1,a,1,what is "foo" bar\nq2,b,1,"say ""hi"""\n')
    assert Gold.read(path).queries["text"].to_list() == ['what is "foo" bar', 'say "hi"']


@pytest.mark.parametrize("score", ['"0.5"', '"1_000"', "true"])
def test_score_in_json_that_is_not_a_number_is_refused(tmp_path, score):
    path = tmp_path / "run.json"
    path.write_text(f'{{"q1": {{"a": 1.5, "b": {score}}}}}')
    with refused(path=path, field="score"):
        Run.read(path)


@pytest.mark.parametrize("kind", [Chunks, Corpus])
def test_table_without_rows_is_refused(tmp_path, kind):
    path = tmp_path / "table.csv"
    path.write_text("item_id,doc_id,start,end,text\n")
    with refused(path=path):
        kind.read(path)


def test_query_text_must_be_text():
    table = pl.DataFrame({"query_id": ["q"], "query": [["a"]], "item_id": ["d"], "grade": [1]})
    with refused():
        Gold.of(table)


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "qrels", "parquet"])
def test_highest_grade_of_an_item_judged_twice_is_written(tmp_path, ending):
    gold = Gold.of(pl.DataFrame({"query_id": ["q"] * 3, "item_id": [*"aab"], "grade": [3, 0, 1]}))
    path = tmp_path / f"gold.{ending}"
    gold.write(path)
    run = {"q": {"a": 2.0, "b": 1.0}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KaratWarning)
        assert karat.evaluate(Gold.read(path), run, ["RR", "nDCG"])["RR"] == 1.0


@pytest.mark.parametrize("name", ["q.jsonl", "q.json"])
def test_queries_that_are_not_utf8_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b'{"query_id": "q1", "query": "caf\xe9"}\n')
    with refused(path=path):
        read_queries(path)


def test_results_nested_too_deep_are_refused(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"q1": ' + "[" * 700 + '"a"' + "]" * 700 + "}")
    with refused(path=path, field="results[0]"):
        Run.read(path)
