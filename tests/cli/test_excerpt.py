"""Errors in files: the line that an error is about, with carets below the wrong value."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from karat import InputError
from karat.cli.excerpt import with_excerpt

GOLD = '{"query_id": "q1", "relevant": ["a"]}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def excerpt(path: str, content: str | bytes, **where) -> list[str]:
    """Return the lines between the message and the hint."""
    Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    problem = where.pop("problem", "wrong")
    text = with_excerpt(InputError(problem, path=path, hint="correct it", **where))
    first, *lines, hint = text.splitlines()
    assert first.startswith(path)
    assert hint == "  hint: correct it"
    return lines


def marked(path: str, content: str | bytes, **where) -> str | None:
    """Return the part of the line that has carets below it."""
    lines = excerpt(path, content, **where)
    if len(lines) < 2:
        return None
    line, carets = lines
    return "".join(
        character for character, caret in zip(line, carets, strict=False) if caret == "^"
    )


RESULTS = '{"query_id": "q1", "results": [{"id": "a"}, {"id": "b", "score": "high"}], "x": {}}'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query_id", '"q1"'),
        ("results[1].score", '"high"'),
        ("results[0]", '{"id": "a"}'),
        ("results[0].score", '{"id": "a"}'),  # missing: the object that should contain it
        ("results[...]", '[{"id": "a"}, {"id": "b", "score": "high"}]'),
        ("x", "{}"),
        ("absent", None),
        (None, None),
    ],
)
def test_value_of_a_field_in_json_lines_is_marked(field, value):
    assert marked("run.jsonl", f"{GOLD}{RESULTS}\n", line=2, field=field) == value


def test_position_where_json_is_wrong_is_marked():
    assert marked("run.jsonl", '{"query_id": q1}\n', line=1) == "q"
    assert excerpt("run.jsonl", '{"query_id": "q1"\n', line=1)[1].endswith(" ^")  # after the end


@pytest.mark.parametrize(
    ("path", "content", "field", "value"),
    [
        ("a.run", "q1 Q0 a 1 0.5 t\nq1 Q0 q1 2 1 t\n", "rank", "2"),
        ("a.run", "q1 Q0 a 1 0.5 t\nq1\tQ0\tq1\t2\thigh\tt\n", "score", "high"),
        ("a.qrels", "q1 0 a 1\nq1  0  b   1.5\n", "grade", "1.5"),
        ("a.qrels", "q1 0 a 1\nq1 0 b\n", "grade", None),
        ("a.csv", "query_id,item_id,Grade\nq1,a,1.5\n", "grade", "1.5"),
        ("a.csv", 'query_id,note,grade\nq1,"x, ""y"" 1.5",1.5\n', "grade", "1.5"),
        ("a.tsv", "query_id\titem_id\tgrade\nq1\ta b\t1.5\n", "item_id", "a b"),
        ("a.csv", "query_id,item_id,grade\nq1,a\n", "grade", None),
    ],
)
def test_field_of_a_table_is_marked(path, content, field, value):
    assert marked(path, content, line=2, field=field) == value


def test_member_of_an_object_is_marked_by_its_key():
    line = '{"relevant": {"a": 1, "b \\"c\\".md": "high"}}'
    field = r'relevant["b \"c\".md"]'
    assert marked("gold.jsonl", line, line=1, field=field) == '"high"'


@pytest.mark.parametrize("line", ['{"a": [1, 2,]}', '{"a": [1, 2 , ]}', '{"a": [1, 2],}'])
def test_comma_after_the_last_value_is_marked(line):
    shown, carets = excerpt("gold.jsonl", line, line=1)
    assert carets.count("^") == 1
    assert shown[carets.index("^") :].rstrip("]} ") == ","


def test_value_that_the_message_quotes_is_marked_in_a_file_of_json():
    content = '[{"id": "a"},\n {"id": "b",\n  "score": "high"}]'
    problem = 'must be a number, got "high"'
    assert marked("run.json", content, line=3, field="score", problem=problem) == '"high"'
    assert marked("run.json", '{"a": 1,}', line=1) is None


def test_quoted_value_is_marked_only_where_it_occurs_once():
    assert marked("a.csv", "x y\n", line=1, problem="'y' is wrong") == "y"
    assert marked("a.csv", "x xy x\n", line=1, problem="'x' is wrong") is None
    assert marked("a.csv", "xy\n", line=1, problem="'x' is wrong") is None


@pytest.mark.parametrize(
    ("content", "field", "problem", "line", "value"),
    [
        ('a = 1\n[gate]\n"RR" = "high"\n', 'gate."RR"', "'high' is not a threshold", 3, "high"),
        ('[gate]\n"P(rel=2)@5" = 7 \n', 'gate."P(rel=2)@5"', "wrong", 2, "7"),
        ("[conventions]\nmising = 1\n", "conventions", "unknown 'mising'", 2, "mising"),
        ("x = 1\n\n[gates]\n", "gates", "unknown setting", 3, "gates"),
        ("[tool.karat.gates]\n", "tool.karat.gates", "unknown setting", 1, "tool.karat.gates"),
        ('a = "x # y" # note\n', "a", "wrong", 1, '"x # y"'),
        ('m = [\n  "RR", # note\n  "RX",\n]\nb = "RX"\n', "m", "'RX' not found", 3, "RX"),
        ('m = [\n  "RR",\n]\n', "m", "wrong", 1, "["),
        ('a = 1\nb = { c = "x" }\n', "b.c", "unknown 'x'", 2, "x"),
    ],
)
def test_setting_in_toml_is_found_and_marked(content, field, problem, line, value):
    lines = excerpt("karat.toml", content, field=field, problem=problem)
    assert lines[0].split(" | ")[0].strip() == str(line)
    assert marked("karat.toml", content, field=field, problem=problem) == value


@pytest.mark.parametrize(
    "content",
    [
        'api_key = "s3cret\n',
        '[run.headers]\nX-Mine = "s3cret\n',
        'headers = { X-Mine = "s3cret\n',
    ],
)
def test_line_with_a_secret_is_not_shown(content):
    assert excerpt("karat.toml", content, line=content.count("\n")) == []
    assert excerpt("notes.txt", content, line=1, field="--header-file") == []


def test_long_line_is_cut_around_the_value():
    line = json.dumps(
        {"a": "x" * 300, "b": "日本語", "c": "wrong", "d": "y" * 300}, ensure_ascii=False
    )
    shown, carets = excerpt("run.jsonl", line, line=1, field="c")
    assert shown.count("…") == 2
    assert "日本語" in shown
    # Three wide characters before the value: the carets are three columns to the right.
    assert shown[carets.index("^") - 3 :].startswith('"wrong"')
    assert carets.count("^") == len('"wrong"')
    assert len(shown) + 3 <= 80
    assert len(excerpt("run.jsonl", line, line=1, field="a")[1]) <= 80


@pytest.mark.parametrize("length", [1, 10, 60])
@pytest.mark.parametrize("last", ["x", "日本語", "e\u0301" * 80])
def test_value_after_wide_characters_is_marked(length, last):
    results = [{"id": "日本語" * length}, {"id": "b", "score": last}]
    line = json.dumps({"query_id": "q1", "results": results}, ensure_ascii=False)
    shown, carets = excerpt("run.jsonl", line, line=1, field="results[1].score")
    before = cell_len(shown[: shown.rindex(f'"{last[0]}')])
    assert carets.index("^") == before
    assert carets.count("^") == min(cell_len(f'"{last}"'), cell_len(shown.rstrip("…")) - before)
    assert cell_len(shown) <= 80


def test_control_characters_are_replaced():
    shown, carets = excerpt("a.run", "q1 Q0 \x1b[2J\u202e 1 x\x07 t\n", line=1, field="score")
    assert shown == "  1 | q1 Q0 �[2J� 1 x� t"
    assert carets[shown.index("x�") :] == "^^"


def test_byte_that_is_not_utf8_is_marked():
    assert marked("a.csv", b"a\nq1,caf\xe9,1\n", line=2, field="encoding") == "�"


def test_lines_that_cannot_be_shown_leave_the_message_alone():
    assert excerpt("gold.qrels", "q1 0 a\n", line=7) == []
    assert excerpt("gold.qrels", "q1 0 a\n") == []
    assert excerpt("gold.qrels", "q1 0 a 1\n".encode("utf-16"), line=1) == []
    assert excerpt("gold.qrels.gz", gzip.compress(b"q1 0 a\n"), line=1) == []
    assert excerpt("gold", gzip.compress(b"q1 0 a\n"), line=1) == []
    error = InputError("wrong", path="absent.csv", line=1)
    assert with_excerpt(error) == str(error)
    assert with_excerpt(InputError("wrong", hint="x")) == "wrong\n  hint: x"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe_is_not_read_again():
    os.mkfifo("pipe")
    error = InputError("wrong", path="pipe", line=1)
    assert with_excerpt(error) == str(error)  # reading it would wait forever


@given(
    st.binary(max_size=200) | st.text('{}[]":,\\ab1\t ', max_size=60).map(str.encode),
    st.sampled_from([None, "encoding", "a", "a[0].b", "grade", "[...]", "gate.a"]),
    st.sampled_from(["x.jsonl", "x.csv", "x.run", "x.toml"]),
)
def test_no_content_breaks_the_message(content, field, path):
    error = InputError("wrong 'a'", path=path, line=1, field=field)
    Path(path).write_bytes(content)
    first, *lines = with_excerpt(error).split("\n")
    assert first == str(error)
    assert len(lines) <= 2
    assert all(line.isprintable() and len(line) <= 80 for line in lines)


def test_command_line_shows_the_line(command):
    Path("gold.jsonl").write_text(GOLD)
    Path("a.run").write_text("q1 Q0 a 1 high t\n")
    code, out, err = command("eval", "gold.jsonl", "a.run")
    assert (code, out) == (2, "")
    assert err.splitlines()[1:3] == ["  1 | q1 Q0 a 1 high t", "    |           ^^^^"]
