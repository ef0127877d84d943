"""The command line: what it prints, where, and how it ends."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.report.endings import Endings


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gold.jsonl").write_text(
        '{"query_id": "q1", "category": "billing", "relevant": {"a": 2, "b": 1}}\n'
        '{"query_id": "q2", "category": "shipping", "relevant": ["c"]}\n'
    )
    Path("one.run").write_text("q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq2 Q0 x 1 0.5 t\n")
    Path("two.run").write_text("q1 Q0 x 1 0.9 t\nq1 Q0 a 2 0.8 t\nq2 Q0 c 1 0.5 t\nq7 Q0 c 1 1 t\n")
    return tmp_path


def test_how_much_was_judged_is_shown_from_the_shortest_list_to_the_longest(command, files):
    _, out, _ = command("eval", "gold.jsonl", "one.run", "-m", "R@10,R@5,R@20")
    assert re.findall(r"^Judged@\d+", out, re.MULTILINE) == ["Judged@5", "Judged@10", "Judged@20"]


def test_eval_prints_measures_as_rows_and_runs_as_columns(command, files):
    code, out, err = command("eval", "gold.jsonl", "one.run", "two.run", "-m", "RR,R@10")
    assert code == 0
    assert out == (
        "measure                       one                    two  n\n"
        "RR          0.5000 [0.095, 0.905]  0.7500 [0.500, 1.000]  2\n"
        "R@10        0.5000 [0.095, 0.905]  0.7500 [0.500, 1.000]  2\n"
        "Judged@10                  0.5000                 0.7500\n"
        "RR at most                 1.0000                 1.0000\n"
        "95% intervals of RR (one), R@10 (one): Wilson's score interval\n"
        "95% intervals of RR (two), R@10 (two): BCa bootstrap over queries, 10,000\n"
        "  resamples\n"
        "two: 1 query of the run not in gold left out\n"
    )
    assert err == "next: karat compare gold.jsonl one.run two.run --measure RR,R@10\n"
    _, out, _ = command(
        "eval", "gold.jsonl", "one.run", "two.run", "-m", "RR,R@10", "--no-intervals"
    )
    assert out == (
        "measure        one     two  n\n"
        "RR          0.5000  0.7500  2\n"
        "R@10        0.5000  0.7500  2\n"
        "Judged@10   0.5000  0.7500\n"
        "RR at most  1.0000  1.0000\n"
        "two: 1 query of the run not in gold left out\n"
    )


def test_runs_are_named_whose_intervals_are_made_in_another_way_than_most(command, files):
    Path("same.run").write_text(Path("two.run").read_text())
    runs = ("one.run", "two.run", "same.run")
    _, out, _ = command("eval", "gold.jsonl", *runs, "-m", "RR,Success@1")
    assert "95% intervals of RR (one), Success@1: Wilson's score interval\n" in out
    assert "95% intervals of RR: BCa bootstrap over queries, 10,000 resamples\n" in out


def test_how_the_intervals_of_groups_came_about_is_said_where_it_differs(command, files):
    words = ("eval", "gold.jsonl", "two.run", "-m", "RR", "--by", "category")
    _, out, _ = command(*words)
    assert "95% intervals of some groups: all values are equal\n" in out
    _, out, _ = command(*words, "--no-intervals")
    assert "95% intervals" not in out


def test_fields_with_commas_between_them_are_told_how_to_be_named(command, files):
    text = Path("gold.jsonl").read_text().replace('"category"', '"level": "easy", "category"')
    Path("gold.jsonl").write_text(text)
    code, _, err = command("eval", "gold.jsonl", "one.run", "--by", "level, category")
    assert code == 2
    assert "hint: name each by itself: --by level --by category\n" in err


def test_eval_groups_and_shows_queries_and_names_departing_conventions(command, files):
    code, out, _ = command(
        *("eval", "gold.jsonl", "one.run", "-m", "RR", "-m", "Hits", "--by", "category"),
        *("--per-query", "--missing", "skip", "--unjudged", "skip", "--no-intervals"),
    )
    assert code == 0
    assert out == (
        "measure     one  n\n"
        "RR       0.5000  2\n"
        "Hits          1  2\n"
        "\n"
        "one by category\n"
        "category      RR  Hits   n\n"
        "billing   1.0000     2  1*\n"
        "shipping  0.0000     0  1*\n"
        "\n"
        "one\n"
        "query_id      RR  Hits\n"
        "q1        1.0000     2\n"
        "q2        0.0000     0\n"
        "one: groups marked * have fewer than 5 queries: they say little\n"
        "conventions: missing=skip, unjudged=skip\n"
    )


def test_json_holds_what_the_design_says(command, files):
    code, out, _ = command(
        "eval", "gold.jsonl", "one.run", "two.run", "-m", "RR", "--json", "--by", "category",
        "--per-query",
    )  # fmt: skip
    assert code == 0
    told = json.loads(out)
    assert told["karat"] == karat.__version__
    assert told["conventions"]["missing"] == "zero"
    one, two = told["runs"]
    assert one["name"] == "one"
    assert one["measures"]["RR"] == {
        "value": 0.5,
        "low": pytest.approx(0.0945312),
        "high": pytest.approx(0.9054688),
        "method": "wilson",
        "sd": pytest.approx(0.5**0.5),
        "median": 0.5,
        "n": 2,
        "left_out": 0,
        "bounds": {"low": 0.5, "high": 1.0},
    }
    assert one["left_out"] == {}
    assert two["left_out"] == {"unknown": 1}
    billing, shipping = one["groups"]
    assert billing["by"] == {"category": "billing"}
    assert billing["measures"]["RR"] == {
        "value": 1.0,
        "low": 1.0,
        "high": 1.0,
        "method": "equal",
        "sd": None,
        "median": 1.0,
        "n": 1,
        "left_out": 0,
        "bounds": {"low": 1.0, "high": 1.0},
        "small": True,
    }
    assert shipping["measures"]["RR"]["value"] == 0.0
    assert one["per_query"] == [{"query_id": "q1", "RR": 1.0}, {"query_id": "q2", "RR": 0.0}]


def test_json_leaves_out_what_was_not_asked(command, files):
    _, out, _ = command("eval", "gold.jsonl", "one.run", "-m", "FirstRelevant@1", "--json")
    run = json.loads(out)["runs"][0]
    assert "groups" not in run
    assert "per_query" not in run
    _, out, _ = command("eval", "gold.jsonl", "two.run", "-m", "FirstRelevant(rel=2)@1", "--json")
    assert json.loads(out)["runs"][0]["measures"]["FirstRelevant(rel=2)@1"]["value"] is None


def test_output_files_are_written_by_their_ending(command, files):
    code, out, err = command(
        "eval", "gold.jsonl", "one.run", "two.run", "-m", "RR", "-o", "s.json", "-o", "s.csv",
        "-o", "s.parquet", "-o", "s.md", "--no-intervals",
    )  # fmt: skip
    assert code == 0
    assert out.startswith("measure")
    names = ["s.json", "s.csv", "s.queries.csv", "s.parquet", "s.md"]
    assert err.startswith("".join(f"wrote {name}\n" for name in names))
    assert json.loads(Path("s.json").read_text())["runs"][1]["measures"]["RR"]["value"] == 0.75
    assert Path("s.csv").read_text() == (
        "run,measure,value,sd,median,n,left_out,judged,bound_low,bound_high\n"
        "one,RR,0.5,0.7071067811865476,0.5,2,0,,0.5,1.0\n"
        "two,RR,0.75,0.3535533905932738,0.75,2,0,,0.75,1.0\n"
    )
    assert Path("s.queries.csv").read_text() == (
        "run,query_id,RR\none,q1,1.0\none,q2,0.0\ntwo,q1,0.5\ntwo,q2,1.0\n"
    )
    assert Path("s.md").read_text() == (
        "**two is best by RR: 0.7500; karat compare tells whether that is real**\n\n"
        "| measure | one | two | n |\n| --- | ---: | ---: | ---: |\n"
        "| RR | 0.5000 | 0.7500 | 2 |\n| RR at most | 1.0000 | 1.0000 |  |\n\n"
        "- two: 1 query of the run not in gold left out\n"
    )
    assert karat.Scores.read("s.parquet", run="two")["RR"] == 0.75
    with pytest.raises(karat.InputError, match="several runs in it"):
        karat.Scores.read("s.parquet")
    with pytest.raises(karat.InputError, match="no run 'three'"):
        karat.Scores.read("s.parquet", run="three")
    with pytest.raises(karat.InputError, match="--per-query"):
        karat.Scores.read("s.json", run="two")


def test_what_is_true_of_every_run_is_said_once(command, files):
    Path("three.run").write_text(Path("two.run").read_text())
    _, out, _ = command("eval", "gold.jsonl", "two.run", "three.run", "-m", "RR")
    assert out.splitlines()[4:] == ["every run: 1 query of the run not in gold left out"]


def test_queries_and_groups_reach_csv_and_markdown(command, files):
    words = ("eval", "gold.jsonl", "one.run", "-m", "RR", "--by", "category")
    command(*words, "--per-query", "-o", "q.csv", "-o", "q.md")
    assert "one,billing,RR,1.0,1.0,1.0,equal,,1.0,1,0,,1.0,1.0,true" in Path("q.csv").read_text()
    assert Path("q.queries.csv").read_text() == "run,query_id,RR\none,q1,1.0\none,q2,0.0\n"
    assert "| q2 | 0.0000 |" in Path("q.md").read_text()
    command(*words, "-o", "same.csv")
    for ending in ("csv", "queries.csv"):
        assert Path(f"same.{ending}").read_text() == Path(f"q.{ending}").read_text()


def test_text_in_a_csv_is_as_it_is_in_the_data(command, files):
    ids = ["=1+1", "+2", "-3", "@a", "\tb", "c\rd", 'e"f', "g,h"]
    karat.Gold.of({query: ["a"] for query in ids}).write("gold.json")
    karat.Run.of({query: ["a"] for query in ids}).write("odd.json")
    command("eval", "gold.json", "odd.json", "-m", "RR", "-o", "s.csv")
    with Path("s.queries.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert sorted(row[1] for row in rows[1:]) == sorted(ids)


def test_both_files_of_a_csv_can_be_written_or_nothing_is_computed(command, files):
    Path("s.queries.csv").mkdir()
    code, out, err = command("eval", "gold.jsonl", "one.run", "-o", "s.csv")
    assert (code, out) == (2, "")
    assert err.startswith("error: s.queries.csv: this is a directory")
    assert not Path("s.csv").exists()


def test_both_files_are_written_whole_or_not_at_all(files):
    def full(_, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    endings = Endings("x", {".csv": lambda _, file: file.write(b"new")}, queries={".csv": full})
    Path("s.csv").write_text("before")
    listed = sorted(files.iterdir())
    with pytest.raises(karat.InputError, match="No space left"):
        endings.write(None, "s.csv")
    assert Path("s.csv").read_text() == "before"
    assert sorted(files.iterdir()) == listed


def test_one_file_is_not_written_twice(command, files):
    outputs = ("-o", "s.csv", "-o", "./s.queries.csv")
    code, out, err = command("eval", "gold.jsonl", "one.run", *outputs)
    assert (code, out) == (2, "")
    assert err.startswith("error: s.queries.csv: this file would be written twice")
    assert not Path("s.csv").exists()


def test_an_ending_that_cannot_be_written_stops_before_anything_is_read(command, files):
    code, out, err = command("eval", "gold.jsonl", "one.run", "-o", "s.json", "-o", "s.xlsx")
    assert (code, out) == (2, "")
    assert "'.xlsx'" in err
    assert not Path("s.json").exists()


def test_runs_of_the_same_name_are_told_apart_by_their_path(command, files):
    Path("other").mkdir()
    Path("other/one.run").write_text(Path("two.run").read_text())
    _, out, _ = command("eval", "gold.jsonl", "one.run", "other/one.run", "-m", "RR")
    assert out.splitlines()[0].split() == ["measure", "one.run", "other/one.run", "n"]


def test_a_quoted_glob_is_one_run_in_parts(command, files):
    Path("part-1.run").write_text("q1 Q0 a 1 0.9 t\n")
    Path("part-2.run").write_text("q2 Q0 c 1 0.9 t\n")
    _, out, _ = command("eval", "gold.jsonl", "part-*.run", "-m", "RR")
    assert out.splitlines()[1].split() == ["RR", "1.0000", "[1.000,", "1.000]", "2"]


def test_presets_levels_and_formats_are_options(command, files):
    code, out, _ = command("eval", "gold.jsonl", "one.run", "--preset", "benchmark")
    assert code == 0
    assert "conventions: duplicates=count" in out
    code, _, err = command("eval", "gold.jsonl", "one.run", "--level", "doc")
    assert code == 2
    assert "doc_id" in err
    code, out, _ = command(
        "eval", "gold.jsonl", "one.run", "--gold-format", "jsonl", "--format", "trec", "-m", "RR"
    )
    assert code == 0
    code, _, err = command("eval", "gold.jsonl", "one.run", "--format", "tsv")
    assert code == 2
    code, _, err = command("eval", "gold.jsonl", "one.run", "--format", "xml")
    known = "parquet, arrow, ragas, jsonl, json, beir, csv, tsv, ir_datasets, trec"
    assert f"known: {known}" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gold.jsonl", "nowhere.run"], "nowhere.run: there is no such file"),
        (["gold.jsonl", "one.run", "-m", "nDGC@10"], "did you mean nDCG"),
        (["gold.jsonl", "one.run", "--by", "categry"], "did you mean 'category'"),
        (["gold.jsonl", "one.run", "--missing", "drop"], "choose one of zero, skip, error"),
        (["gold.jsonl", "one.run", "--no-gold", "drop"], "choose one of family, zero, one, skip"),
        (["gold.jsonl", "one.run", "--duplicates", "x"], "choose one of first, count, error"),
        (["gold.jsonl", "one.run", "--unjudged", "x"], "choose one of irrelevant, skip"),
        (["gold.jsonl", "two.run", "--unknown", "error"], "queries of the run are not in gold"),
        (["one.run", "gold.jsonl"], "were they swapped?"),
        (["gold.jsonl", "one.run", "-o", "no/such/folder.json"], "does not exist"),
    ],
)
def test_a_mistake_ends_with_one_message_and_exit_code_two(command, files, words, said):
    code, out, err = command("eval", *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert said in err
    assert "Traceback" not in err


def test_debug_shows_where_the_error_arose(command, files):
    with pytest.raises(karat.InputError):
        command("--debug", "eval", "gold.jsonl", "nowhere.run")


def test_wrong_usage_is_exit_code_two(command):
    code, _, err = command("eval", "--nonsense")
    assert code == 2
    assert "nonsense" in err


def test_an_interrupt_is_exit_code_130(command, files, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("karat.evaluation.Evaluator", interrupted)
    code, out, err = command("eval", "gold.jsonl", "one.run")
    assert (code, out, err) == (130, "", "interrupted\n")


def test_warnings_go_to_stderr(command, files):
    Path("strange.run").write_text("q1 Q0 A 1 0.9 t\nq2 Q0 C 1 0.8 t\n")
    code, out, err = command("eval", "gold.jsonl", "strange.run", "-m", "RR")
    assert code == 0
    assert err.startswith("warning: only 0 of 3 relevant ids")
    assert "warning" not in out


def test_no_output_is_written_if_any_of_them_cannot_be(command, files):
    code, out, _ = command("eval", "gold.jsonl", "one.run", "-o", "a.json", "-o", "nowhere/b.json")
    assert (code, out) == (2, "")
    assert not Path("a.json").exists()


def test_the_run_at_fault_is_named_among_several(command, files):
    Path("twice.run").write_text("q1 Q0 a 1 0.9 t\nq1 Q0 a 2 0.8 t\n")
    _, _, err = command("eval", "gold.jsonl", "one.run", "twice.run", "--duplicates", "error")
    assert err.startswith("error: twice.run: duplicates: query 'q1' has an item again")


def test_a_native_run_goes_by_the_name_in_its_header(command, files):
    karat.Run.of({"q1": ["a"]}, name="hybrid").write("out-2024.jsonl")
    _, out, _ = command("eval", "gold.jsonl", "out-2024.jsonl", "-m", "RR")
    assert out.splitlines()[0].split() == ["measure", "hybrid", "n"]


def test_the_same_run_twice_has_two_names(command, files):
    _, out, _ = command("eval", "gold.jsonl", "one.run", "one.run", "-m", "RR", "-o", "s.parquet")
    assert "one.run (1)" in out.splitlines()[0]
    assert "one.run (2)" in out.splitlines()[0]
    assert karat.Scores.read("s.parquet", run="one.run (2)").per_query.height == 2


def test_long_measures_and_queries_stay_distinct(command, files):
    names = [f"nDCG(gain={{1: 1, 2: {gain}, 3: 7}})@10" for gain in (3, 5)]
    _, out, _ = command("eval", "gold.jsonl", "one.run", "-m", names[0], "-m", names[1])
    assert all(name in out for name in names)


def test_scoring_documents_is_said(command, files):
    Path("chunks.csv").write_text("query_id,chunk_id,docid\nq1,a#1,a\nq1,a#2,a\nq2,c#1,c\n")
    _, out, _ = command("eval", "gold.jsonl", "chunks.csv", "-m", "NumRet", "--level", "doc")
    assert out.splitlines()[1].split()[:2] == ["NumRet", "2"]
    assert out.splitlines()[-1] == "level: doc"
    _, out, _ = command("eval", "gold.jsonl", "chunks.csv", "--level", "doc", "--json")
    assert json.loads(out)["level"] == "doc"


def test_many_runs_are_shared_out_over_tables_of_80_columns(command, files):
    names = [f"a-rather-long-name-of-run-{i}.run" for i in range(7)]
    for name in names:
        Path(name).write_text(Path("one.run").read_text())
    _, out, _ = command("eval", "gold.jsonl", *names, "-m", "RR", "--per-query")
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("measure") == 4
    assert "a-rather-lo…ame-of-run-6" in out


def test_many_measures_are_shared_out_likewise(command, files):
    names = [f"nDCG(gain=exp2)@{k}" for k in range(1, 13)]
    arguments = [word for name in names for word in ("-m", name)]
    _, out, _ = command("eval", "gold.jsonl", "one.run", *arguments, "--by", "category")
    assert max(map(len, out.splitlines())) <= 80
    for name in names:
        assert out.count(name + " ") + out.count(name + "\n") >= 2


def test_hostile_names_cannot_move_the_cursor_or_break_a_table(command, files):
    Path("evil\x1b[2J|.run").write_text(Path("one.run").read_text())
    _, out, _ = command(
        *("eval", "gold.jsonl", "evil\x1b[2J|.run", "-m", "RR", "-o", "e.md"),
        *("--per-query", "--by", "category"),
    )
    assert "\x1b" not in out
    assert "evil\x1b[2J\\|" in Path("e.md").read_text()


def test_a_terminal_gets_a_ruled_table(command, files, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    _, out, _ = command("eval", "gold.jsonl", "one.run", "-m", "RR")
    assert "───" in out
    assert "0.5000" in out
    for count in range(1, 12):
        measures = [f"nDCG@{k}" for k in range(10, 10 + count)]
        _, out, _ = command(
            "eval", "gold.jsonl", *["one.run"] * count, "-m", ",".join(measures), "--per-query"
        )
        plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
        assert max(map(len, plain.splitlines())) <= 80
        assert "…" not in plain
        assert plain.count("nDCG@10") >= count


def test_measures_lists_all_with_one_line_each(command):
    code, out, _ = command("measures")
    assert code == 0
    assert len(out.splitlines()) == len(karat.measures.REGISTRY)
    assert max(map(len, out.splitlines())) <= 80
    assert "nDCG(gain)[@k]                       Normalised discounted cumulative gain" in out
    _, out, _ = command("measures", "--json")
    by_name = {row["name"]: row for row in json.loads(out)}
    assert by_name["RBP"]["parameters"]["p"]["default"] == 0.8
    assert by_name["FirstRelevant"]["higher_is_better"] is False


def test_the_demo_scores_its_example_and_says_where_the_files_are(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("demo")
    assert code == 0
    assert "nDCG@10" in out
    assert "The files are in karat-demo:" in out
    assert max(map(len, out.splitlines())) <= 80
    *wrote, advice = err.splitlines()
    assert wrote == ["wrote karat-demo/scores.json", "wrote karat-demo/report.html"]
    assert advice.startswith("next: karat compare karat-demo/")
    assert len(pl.read_ndjson("karat-demo/support-faq.jsonl", infer_schema_length=None)) == 13
    code, _, err = command("demo", "karat-demo/bm25.run")
    assert code == 2
    assert "a folder is meant" in err


def test_version_and_help(command):
    assert command("--version")[1] == f"karat {karat.__version__}\n"
    code, out, _ = command("--help")
    assert code == 0
    assert "eval" in out


def test_a_closed_pipe_is_no_error(files):
    words = "; ".join(
        [
            "import sys",
            "from karat.cli.main import main",
            "sys.argv = ['karat', 'eval', 'gold.jsonl', 'one.run', '--per-query']",
            "main()",
        ]
    )
    process = subprocess.Popen(
        [sys.executable, "-c", words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


def test_nothing_heavy_is_loaded_by_import_or_help():
    words = (
        "import sys, karat, karat.cli.main; "
        "print([m for m in ('polars', 'numpy', 'rich', 'msgspec', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_package_is_the_command(files):
    done = subprocess.run([sys.executable, "-m", "karat", "--version"], capture_output=True)
    assert done.stdout.decode() == f"karat {karat.__version__}\n"


def test_a_process_that_is_asked_to_end_leaves_nothing_half_written(files):
    Path("stopped.py").write_text(
        "import os, signal\n"
        "from karat.cli import main as command\n"
        "from karat.data.files import writing\n"
        "def stopped():\n"
        "    with writing('x.run') as file:\n"
        "        file.write(b'half')\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        file.write(b'more')\n"
        "command.app = stopped\n"
        "command.main()\n"
    )
    before = sorted(files.iterdir())
    assert subprocess.run([sys.executable, "stopped.py"]).returncode == 143
    assert sorted(files.iterdir()) == before


def test_trec_eval_prints_ids_as_they_came_whatever_the_locale(files):
    Path("u.qrels").write_text("qé 0 a 1\n")
    Path("u.run").write_text("qé Q0 a 1 1 té\n")
    words = [sys.executable, "-m", "karat", "trec_eval", "-q", "-mmap", "-mrunid"]
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([*words, "u.qrels", "u.run"], capture_output=True, env=plain)
    assert done.stdout.decode("utf-8").splitlines() == [
        "map                   \tqé\t1.0000",
        "runid                 \tall\tté",
        "map                   \tall\t1.0000",
    ]


@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_saved_scores_are_not_taken_for_a_run(command, files, ending):
    command("eval", "gold.jsonl", "one.run", "-m", "RR", "--per-query", "-o", f"s.{ending}")
    code, out, err = command("eval", "gold.jsonl", f"s.{ending}", "-m", "RR")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: s.{ending}: these are scores that karat saved, not a run\n")
