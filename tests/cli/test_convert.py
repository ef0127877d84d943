"""`karat convert`: what it detects, what it writes, and which losses it reports."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from karat.data import Gold, Run
from karat.data.convert import convert as convert_file
from karat.errors import KaratWarning
from support.errors import refused

GOLD = '{"query_id": "q1", "query": "how?", "relevant": {"a": 2, "b": 0}}\n'
RUN = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq2 Q0 x 1 0.5 t\n"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def convert(command):
    """Run `karat convert`; return exit code, stdout and stderr."""
    return lambda *words: command("convert", *words)


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


# What it writes


def test_one_line_states_what_was_written(convert):
    Path("a.run").write_text(RUN)
    assert convert("a.run", "b.jsonl") == (
        0,
        "",
        "wrote b.jsonl: run as jsonl, 2 queries, 3 results\n",
    )
    assert Run.read("b.jsonl").results.equals(Run.read("a.run").results)


def test_losses_are_reported_first(convert):
    Path("a.jsonl").write_text(GOLD)
    code, _, err = convert("a.jsonl", "b.qrels")
    assert (code, Path("b.qrels").read_text()) == (0, "q1 0 a 2\nq1 0 b 0\n")
    warning, result = err.splitlines()
    assert warning.startswith("warning: ")
    assert "text" in warning
    assert result == "wrote b.qrels: gold as trec, 1 query, 2 judgments"


def test_json_reports_the_same_to_programs(convert):
    Path("a.jsonl").write_text(GOLD + '{"query_id": "q2", "query": "why?"}\n')
    _, out, _ = convert("a.jsonl", "b.csv", "--json")
    assert json.loads(out) == {
        "kind": "gold",
        "from": "jsonl",
        "to": "csv",
        "queries": 1,
        "rows": 2,
        "lost": ["1 query without judgments"],
    }


def test_formats_may_be_named(convert):
    Path("a").write_text("q1\t12\t1\t0\nq1\t15\t2\t0\n")
    code, out, _ = convert("a", "b", "--from", "ir_datasets", "--to", "ragas", "--json")
    assert code == 0
    assert json.loads(out)["lost"] == ["1 grade other than 1"]
    assert Gold.read("b").judgments.rows() == [("q1", "12", 1), ("q1", "15", 1)]


def test_the_ending_decides_about_compression(convert):
    Path("a.run.gz").write_bytes(gzip.compress(RUN.encode()))
    assert convert("a.run.gz", "b.csv.zst")[0] == 0
    assert Run.read("b.csv.zst").results.height == 3


def test_the_parts_that_match_a_pattern_become_one_file(convert):
    Path("part-1.run").write_text("q1 Q0 a 1 0.9 t\n")
    Path("part-2.csv").write_text("query_id,item_id,rank\nq2,b,1\n")
    _, out, _ = convert("part-*", "all.json", "--json")
    output = json.loads(out)
    assert (output["from"], output["queries"]) == ("trec, csv", 2)


def test_a_beir_folder_is_written_and_read(convert):
    Path("a.jsonl").write_text(GOLD)
    assert convert("a.jsonl", "folder", "--to", "beir")[0] == 0
    assert convert("folder", "b.jsonl")[2] == "wrote b.jsonl: gold as jsonl, 1 query, 2 judgments\n"
    assert Gold.read("b.jsonl").queries["text"].to_list() == ["how?"]


# Gold or run

JUDGED = {"query_id": ["q1"], "item_id": ["a"], "grade": [1]}
KNOWN = {
    "a.qrels": ("q1 0 a 1\n", "gold"),
    "a.run": (RUN, "run"),
    "header.jsonl": ('{"karat":1,"kind":"run"}\n{"query_id":"q1","results":["a"]}\n', "run"),
    "gold.jsonl": ('{"query_id":"q1","evidence":["a"],"relevant":["a"]}\n', "gold"),
    "run.jsonl": ('{"query_id":"q1","results":["a"]}\n', "run"),
    "scores.json": ('{"q1": {"a": 0.5}}', "run"),
    "records.json": ('[{"query_id":"q1","relevant":["a"]}]', "gold"),
    "rows.json": ('[{"id":"q1","retrieved_context_ids":["a"]}]', "run"),
    "grades.csv": ("query_id,item_id,grade\nq1,a,1\n", "gold"),
    "ranks.csv": ("query_id,item_id,rank,score\nq1,a,1,3\n", "run"),
    "scores.csv": ("query_id,item_id,score\nq1,a,0.5\n", "run"),
    "listed.tsv": ("query_id\titem_id\nq1\ta\n", "run"),
    "rows.csv": ('id,reference_context_ids\nq1,"[""a""]"\n', "gold"),
    "grades.arrow": (JUDGED, "gold"),
    "plain.tsv": ("q1\ta\t0.5\n", "run"),
    "four.tsv": ("q1\ta\t1\tQ0\n", "gold"),
    "rows.jsonl": ('{"id":"q1","reference_context_ids":["a"]}\n', "gold"),
}
EITHER = {
    "whole.json": '{"q1": {"a": 1, "b": 2.0}}',
    "lists.json": '{"q1": ["a"]}',
    "score.csv": "query-id,corpus-id,score\nq1,a,1\n",
    "both.csv": "query_id,item_id,grade,rank\nq1,a,1,1\n",
    "three.tsv": "q1\ta\t1\n",
    "rows.jsonl": '{"id":"q1","reference_context_ids":["a"],"retrieved_context_ids":["a"]}\n',
    "header.jsonl": '{"query_id":"q1"}\n{"query_id":"q2","relevant":["a"]}\n',
}


def put(name: str, content: object) -> None:
    if isinstance(content, dict):
        pl.DataFrame(content).write_ipc(name)
    else:
        Path(name).write_text(content)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_gold_and_runs_are_distinguished_by_their_content(name):
    content, kind = KNOWN[name]
    put(name, content)
    assert convert_file(name, "out.jsonl").kind == kind
    reader = {"gold": Gold, "run": Run}[kind]
    assert reader.read("out.jsonl").query_ids.to_list()[0] == "q1"


@pytest.mark.parametrize("name", EITHER)
def test_a_file_that_may_be_either_needs_the_option_kind(name):
    put(name, EITHER[name])
    with refused(path=name, line=None, field="kind") as caught:
        convert_file(name, "out.arrow")
    assert "--kind gold" in caught.value.hint
    assert "--kind run" in caught.value.hint
    assert names() == [name]


@pytest.mark.parametrize("kind", ["gold", "run"])
@pytest.mark.parametrize(
    "name", ["whole.json", "lists.json", "score.csv", "three.tsv", "rows.jsonl"]
)
def test_the_option_kind_decides_between_gold_and_run(name, kind):
    put(name, EITHER[name])
    assert convert_file(name, "out.arrow", kind=kind).kind == kind


def test_the_command_line_needs_and_uses_the_option_kind(convert):
    put("lists.json", EITHER["lists.json"])
    code, out, err = convert("lists.json", "out.arrow")
    assert (code, out, names()) == (2, "", ["lists.json"])
    assert err.startswith("error: lists.json: kind: ")
    code, out, _ = convert("lists.json", "out.arrow", "--kind", "gold", "--json")
    assert (code, json.loads(out)["kind"]) == (0, "gold")


# What it refuses, before any work


@pytest.mark.parametrize(
    ("source", "target", "options", "path", "field", "value"),
    [
        ("a.run", "a.run", {}, "a.run", None, ""),
        ("a.run", "./x/../a.run", {}, "./x/../a.run", None, ""),
        ("a.*", "a.run", {}, "a.run", None, ""),
        ("a.run", "b.xyz", {}, "b.xyz", None, "'.xyz'"),
        ("a.run", "b.jsonl", {"target_format": "xml"}, None, "format", "'xml'"),
        ("a.run", "b.jsonl", {"source_format": "xml"}, None, "format", "'xml'"),
        ("a.run", "no/b.jsonl", {}, "no/b.jsonl", None, ""),
        ("a.run", "x", {}, "x", None, ""),
        ("a.run", ".", {"target_format": "beir"}, ".", None, ""),
        ("a.run", "b.jsonl", {"kind": "both"}, None, "kind", "'both'"),
        ("a.run", "b.jsonl", {"kind": "gold"}, "a.run", None, "6"),
        ("a.run", "b", {"target_format": "beir"}, None, "format", "BEIR"),
        ("none.run", "b.jsonl", {}, "none.run", None, ""),
    ],
)
def test_a_mistake_is_refused_and_leaves_nothing(source, target, options, path, field, value):
    Path("a.run").write_text(RUN)
    Path("x").mkdir()
    with refused(path=path, field=field) as caught:
        convert_file(source, target, **options)
    assert value in caught.value.problem
    assert names() == ["a.run", "x"]
    assert Path("a.run").read_text() == RUN


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["a.run", "a.run"], "a.run: "),
        (["a.run", "b.jsonl", "--to", "xml"], "format: "),
        (["a.run", "b.jsonl", "--from", "xml"], "format: "),
        (["a.run", "b.jsonl", "--kind", "gold"], "a.run:1: "),
    ],
)
def test_the_command_line_prints_one_error_and_leaves_nothing(convert, words, place):
    Path("a.run").write_text(RUN)
    code, out, err = convert(*words)
    assert (code, out, names()) == (2, "", ["a.run"])
    assert err.startswith(f"error: {place}")
    assert err.count("error:") == 1


def test_a_torn_file_leaves_the_old_target(convert):
    Path("a.run").write_text(RUN + "q3 Q0 a\n")
    Path("b.jsonl").write_text("old")
    code, _, err = convert("a.run", "b.jsonl")
    assert (code, err.startswith("error: a.run:4: ")) == (2, True)
    assert (names(), Path("b.jsonl").read_text()) == (["a.run", "b.jsonl"], "old")


def test_a_folder_without_write_permission_is_refused(monkeypatch):
    Path("a.run").write_text(RUN)
    monkeypatch.setattr("os.access", lambda *_: False)
    with refused(path="b.jsonl"):
        convert_file("a.run", "b.jsonl")
    assert names() == ["a.run"]


# Losses


@pytest.mark.parametrize(
    "name", ["trec", "json", "csv", "parquet", "arrow", "ir_datasets", "ragas"]
)
def test_lost_settings_of_a_run_are_reported(tmp_path, name):
    run = replace(Run.of({"q1": ["a"]}), settings={"top_k": 20})
    with pytest.warns(KaratWarning, match="settings$"):
        run.write(tmp_path / "run", format=name)


@pytest.mark.parametrize("name", ["trec", "json", "csv", "arrow", "ir_datasets", "ragas", "beir"])
def test_lost_settings_of_gold_are_reported(tmp_path, name):
    gold = replace(Gold.of({"q1": ["a"]}), settings={"assessors": 3})
    with pytest.warns(KaratWarning, match="settings$"):
        gold.write(tmp_path / "gold", format=name)


@pytest.mark.parametrize("name", ["csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize(
    ("some", "lost"),
    [({"score": 0.5}, "score"), ({"doc_id": "d", "start": 0, "end": 1}, "start.*, end")],
)
def test_numbers_of_only_some_items_are_left_out_of_tables_and_reported(tmp_path, name, some, lost):
    run = Run.of([{"query_id": "q1", "results": ["b", {"id": "a", **some}]}])
    with pytest.warns(KaratWarning, match=lost):
        run.write(tmp_path / "run", format=name)
    assert Run.read(tmp_path / "run", format=name).results["item_id"].to_list() == ["b", "a"]


def test_a_document_that_is_the_item_is_not_reported_as_lost(tmp_path):
    Run.of([{"query_id": "q1", "results": [{"doc_id": "a"}]}]).write(tmp_path / "x.run")
    assert Run.read(tmp_path / "x.run").results["item_id"].to_list() == ["a"]


def test_a_field_with_the_name_of_a_native_key_is_refused():
    Path("a.csv").write_text("query_id,item_id,grade,evidence\nq1,a,1,x\n")
    with refused() as caught:
        convert_file("a.csv", "b.jsonl")
    assert "evidence" in str(caught.value)
    assert names() == ["a.csv"]


def test_the_tag_of_a_run_is_kept_where_it_can_be(convert):
    Path("a.run").write_text("q1 Q0 a 1 2 old\nq1 Q0 b 2 1 tag-7\n")
    assert convert("a.run", "b.jsonl")[0] == 0
    assert convert("b.jsonl", "c.run")[0] == 0
    assert Path("c.run").read_text() == "q1 Q0 a 1 2.0 tag-7\nq1 Q0 b 2 1.0 tag-7\n"
    _, out, err = convert("a.run", "d.csv", "--json")
    assert json.loads(out)["lost"] == ["the tag"]
    assert re.search("^warning: .*tag", err, re.MULTILINE)


def test_lost_iterations_of_qrels_are_reported():
    Path("a.qrels").write_text("q1 0 a 1\nq1 0 b 1\n")
    assert convert_file("a.qrels", "b.csv").written.lost == ()
    Path("a.qrels").write_text("q1 0 a 1\nq1 7 b 1\n")
    with pytest.warns(KaratWarning, match="iterations"):
        assert convert_file("a.qrels", "c.csv").written.lost == ("iterations",)


@pytest.mark.parametrize(
    ("source", "target", "stream"), [("-", "b.jsonl", "/dev/stdin"), ("a.run", "-", "/dev/stdout")]
)
def test_a_dash_is_refused_with_the_name_of_the_stream(source, target, stream):
    Path("a.run").write_text(RUN)
    with refused(path=None, field=None) as caught:
        convert_file(source, target)
    assert stream in caught.value.hint
    assert names() == ["a.run"]


def test_a_trec_file_of_neither_kind_is_refused_by_its_number_of_fields():
    Path("a.qrels").write_text("q1 0 a 1 extra\n")
    with refused(path="a.qrels", line=1) as caught:
        convert_file("a.qrels", "b.jsonl")
    assert [number for number in "546" if number not in caught.value.problem] == []


def test_a_kind_that_does_not_fit_is_refused():
    Path("a.qrels").write_text("q1 0 a 1\n")
    with refused(path="a.qrels", line=1) as caught:
        convert_file("a.qrels", "b.jsonl", kind="run")
    assert "--kind" in caught.value.hint
