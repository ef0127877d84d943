"""`karat convert`: what it tells of a file by itself, what it writes, and what it says is lost."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import polars as pl
import pytest

from karat.cli.main import main
from karat.data import Gold, Run
from karat.errors import KaratWarning

GOLD = '{"query_id": "q1", "query": "how?", "relevant": {"a": 2, "b": 0}}\n'
RUN = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq2 Q0 x 1 0.5 t\n"


@pytest.fixture
def convert(tmp_path, monkeypatch, capsys):
    """Run `karat convert` in an empty folder; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["karat", "convert", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return run


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


# What it does


def test_one_line_says_what_was_written(convert):
    Path("a.run").write_text(RUN)
    assert convert("a.run", "b.jsonl") == (
        0,
        "",
        "wrote b.jsonl: run as jsonl, 2 queries, 3 results\n",
    )
    assert Run.read("b.jsonl").results.equals(Run.read("a.run").results)


def test_what_is_lost_is_said_before(convert):
    Path("a.jsonl").write_text(GOLD)
    code, _, err = convert("a.jsonl", "b.qrels")
    assert (code, Path("b.qrels").read_text()) == (0, "q1 0 a 2\nq1 0 b 0\n")
    assert err == (
        "warning: a qrels file cannot hold text\n"
        "wrote b.qrels: gold as trec, 1 query, 2 judgments\n"
    )


def test_json_tells_the_same_to_programs(convert):
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
    assert json.loads(out)["lost"] == ["1 grades other than 1"]
    assert Gold.read("b").judgments.rows() == [("q1", "12", 1), ("q1", "15", 1)]


def test_compression_goes_by_the_ending(convert):
    Path("a.run.gz").write_bytes(gzip.compress(RUN.encode()))
    assert convert("a.run.gz", "b.csv.zst")[0] == 0
    assert Run.read("b.csv.zst").results.height == 3


def test_the_parts_that_a_glob_names_become_one_file(convert):
    Path("part-1.run").write_text("q1 Q0 a 1 0.9 t\n")
    Path("part-2.csv").write_text("query_id,item_id,rank\nq2,b,1\n")
    _, out, _ = convert("part-*", "all.json", "--json")
    told = json.loads(out)
    assert (told["from"], told["queries"]) == ("trec, csv", 2)


def test_a_beir_folder_is_made_and_read(convert):
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
def test_gold_and_runs_are_told_apart_by_what_is_in_them(convert, name):
    content, kind = KNOWN[name]
    put(name, content)
    code, out, _ = convert(name, "out.jsonl", "--json")
    assert (code, json.loads(out)["kind"]) == (0, kind)


@pytest.mark.parametrize("name", EITHER)
def test_what_may_be_either_is_asked_for(convert, name):
    put(name, EITHER[name])
    code, out, err = convert(name, "out.arrow")
    assert (code, out, names()) == (2, "", [name])
    assert err == (
        f"error: {name}: kind: this may be gold or a run\n  hint: say --kind gold or --kind run\n"
    )


@pytest.mark.parametrize("kind", ["gold", "run"])
@pytest.mark.parametrize(
    "name", ["whole.json", "lists.json", "score.csv", "three.tsv", "rows.jsonl"]
)
def test_what_is_asked_for_may_be_said(convert, name, kind):
    put(name, EITHER[name])
    code, out, _ = convert(name, "out.arrow", "--kind", kind, "--json")
    assert (code, json.loads(out)["kind"]) == (0, kind)


# What it refuses, before any work


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.run", "a.run"], "a.run: this file is read"),
        (["a.run", "./x/../a.run"], "this file is read"),
        (["a.*", "a.run"], "this file is read"),
        (["a.run", "b.xyz"], "'.xyz' names no format"),
        (["a.run", "b.jsonl", "--to", "xml"], "there is no format 'xml'"),
        (["a.run", "b.jsonl", "--from", "xml"], "there is no format 'xml'"),
        (["a.run", "no/b.jsonl"], "does not exist"),
        (["a.run", "x"], "this is a directory"),
        (["a.run", ".", "--to", "beir"], "names no new folder"),
        (["a.run", "b.jsonl", "--kind", "both"], "'both' is no kind"),
        (["a.run", "b.jsonl", "--kind", "gold"], "this is a run"),
        (["a.run", "b", "--to", "beir"], "no run"),
        (["none.run", "b.jsonl"], "no such file"),
    ],
)
def test_a_mistake_ends_with_one_message_and_leaves_nothing(convert, words, said):
    Path("a.run").write_text(RUN)
    Path("x").mkdir()
    code, out, err = convert(*words)
    assert (code, out, names()) == (2, "", ["a.run", "x"])
    assert err.startswith("error: ")
    assert said in err
    assert Path("a.run").read_text() == RUN


def test_a_file_that_is_not_whole_leaves_the_old_one(convert):
    Path("a.run").write_text(RUN + "q3 Q0 a\n")
    Path("b.jsonl").write_text("old")
    assert convert("a.run", "b.jsonl")[0] == 2
    assert (names(), Path("b.jsonl").read_text()) == (["a.run", "b.jsonl"], "old")


def test_a_folder_that_may_not_be_written_into_is_named(convert, monkeypatch):
    Path("a.run").write_text(RUN)
    monkeypatch.setattr("os.access", lambda *_: False)
    code, _, err = convert("a.run", "b.jsonl")
    assert (code, "may not be written into" in err) == (2, True)


# What is lost, everywhere


@pytest.mark.parametrize(
    "name", ["trec", "json", "csv", "parquet", "arrow", "ir_datasets", "ragas"]
)
def test_settings_of_a_run_are_not_dropped_in_silence(tmp_path, name):
    run = Run.of({"q1": ["a"]})
    run.settings = {"top_k": 20}
    with pytest.warns(KaratWarning, match="cannot hold settings$"):
        run.write(tmp_path / "run", format=name)


@pytest.mark.parametrize("name", ["trec", "json", "csv", "arrow", "ir_datasets", "ragas", "beir"])
def test_settings_of_gold_are_not_dropped_in_silence(tmp_path, name):
    gold = Gold.of({"q1": ["a"]})
    gold.settings = {"assessors": 3}
    with pytest.warns(KaratWarning, match="cannot hold settings$"):
        gold.write(tmp_path / "gold", format=name)


@pytest.mark.parametrize("name", ["csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize(
    ("some", "lost"),
    [({"score": 0.5}, "score where"), ({"doc_id": "d", "start": 0, "end": 1}, "start .*, end ")],
)
def test_numbers_that_only_some_items_have_are_left_out_of_tables_and_said(
    tmp_path, name, some, lost
):
    run = Run.of([{"query_id": "q1", "results": ["b", {"id": "a", **some}]}])
    with pytest.warns(KaratWarning, match=f"cannot hold {lost}"):
        run.write(tmp_path / "run", format=name)
    assert Run.read(tmp_path / "run", format=name).results["item_id"].to_list() == ["b", "a"]


def test_a_document_that_is_the_item_is_not_said_to_be_lost(tmp_path):
    Run.of([{"query_id": "q1", "results": [{"doc_id": "a"}]}]).write(tmp_path / "x.run")
    assert Run.read(tmp_path / "x.run").results["item_id"].to_list() == ["a"]


def test_a_field_with_a_name_that_means_something_in_json_lines_is_refused(convert):
    Path("a.csv").write_text("query_id,item_id,grade,evidence\nq1,a,1,x\n")
    code, _, err = convert("a.csv", "b.jsonl")
    assert (code, names()) == (2, ["a.csv"])
    assert "evidence" in err


def test_the_tag_of_a_run_is_kept_where_it_can_be(convert):
    Path("a.run").write_text("q1 Q0 a 1 2 old\nq1 Q0 b 2 1 tag-7\n")
    assert convert("a.run", "b.jsonl")[0] == 0
    assert convert("b.jsonl", "c.run")[0] == 0
    assert Path("c.run").read_text() == "q1 Q0 a 1 2.0 tag-7\nq1 Q0 b 2 1.0 tag-7\n"
    _, out, err = convert("a.run", "d.csv", "--json")
    assert json.loads(out)["lost"] == ["the tag"]
    assert "warning: a table in CSV cannot hold the tag\n" in err


def test_the_iterations_of_qrels_are_not_dropped_in_silence(convert):
    Path("a.qrels").write_text("q1 0 a 1\nq1 0 b 1\n")
    assert "iterations" not in convert("a.qrels", "b.csv")[2]
    Path("a.qrels").write_text("q1 0 a 1\nq1 7 b 1\n")
    _, out, err = convert("a.qrels", "c.csv", "--json")
    assert json.loads(out)["lost"] == ["iterations"]
    assert "warning: gold cannot hold the iterations of qrels\n" in err


@pytest.mark.parametrize(("words", "stream"), [("- b.jsonl", "stdin"), ("a.run -", "stdout")])
def test_a_dash_is_no_file(convert, words, stream):
    Path("a.run").write_text(RUN)
    code, _, err = convert(*words.split())
    assert (code, names()) == (2, ["a.run"])
    assert f"write /dev/{stream}" in err


def test_a_file_of_neither_kind_is_told_by_its_fields(convert):
    Path("a.qrels").write_text("q1 0 a 1 extra\n")
    code, _, err = convert("a.qrels", "b.jsonl")
    assert code == 2
    assert "a.qrels:1: 5 fields where TREC qrels have 4 and a run has 6" in err


def test_a_kind_that_does_not_fit_is_told(convert):
    Path("a.qrels").write_text("q1 0 a 1\n")
    code, _, err = convert("a.qrels", "b.jsonl", "--kind", "run")
    assert code == 2
    assert "leave --kind out" in err
