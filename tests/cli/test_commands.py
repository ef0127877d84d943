"""The command line: what it prints, where it prints it, and its exit codes."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat.report.writers import Writers
from support.commands import check_refused
from support.errors import refused


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


@pytest.fixture
def four_queries(files):
    """Add two queries: a run over fewer than three has no interval."""
    more = {
        "gold.jsonl": '{"query_id": "q3", "category": "shipping", "relevant": ["d"]}\n'
        '{"query_id": "q4", "category": "shipping", "relevant": ["e"]}\n',
        "one.run": "q3 Q0 d 1 0.9 t\nq4 Q0 x 1 0.9 t\n",
        "two.run": "q3 Q0 d 1 0.9 t\nq4 Q0 e 1 0.9 t\n",
    }
    for name, lines in more.items():
        Path(name).write_text(Path(name).read_text() + lines)
    return files


def test_judged_shares_are_sorted_by_cutoff(command, files):
    _, out, _ = command("eval", "gold.jsonl", "one.run", "-m", "R@10,R@5,R@20")
    assert re.findall(r"^Judged@\d+", out, re.MULTILINE) == ["Judged@5", "Judged@10", "Judged@20"]


def test_measures_may_be_separated_by_spaces(command, files):
    spaced = command("eval", "gold.jsonl", "one.run", "-m", "RR  P (rel=1)@5, R@10")
    assert spaced == command("eval", "gold.jsonl", "one.run", "-m", "RR,P@5,R@10")
    assert spaced[0] == 0


def test_eval_prints_measures_as_rows_and_runs_as_columns(command, four_queries):
    code, out, err = command("eval", "gold.jsonl", "one.run", "two.run", "-m", "RR,R@10")
    assert code == 0
    assert out == (
        "two has the best RR: 0.875 [0.156, 1.000]; karat compare shows whether the\n"
        "difference is significant\n\n"
        "measure                          one                   two  queries\n"
        "RR              0.500 [0.150, 0.850]  0.875 [0.156, 1.000]        4\n"
        "R@10            0.500 [0.150, 0.850]  0.875 [0.156, 1.000]        4\n"
        "Judged@10                      0.500                 0.875\n"
        "RR upper bound                 1.000                 1.000\n"
        "upper bound: the value if every unjudged item were relevant\n\n"
        "two: 1 query of the run not in gold: left out\n"
        "95% intervals of RR (one), R@10 (one): Wilson's score interval\n"
        "95% intervals of RR (two), R@10 (two): Student's t on the logit scale\n"
    )
    assert err == "next: karat compare gold.jsonl one.run two.run --measure RR,R@10\n"
    _, out, _ = command(
        "eval", "gold.jsonl", "one.run", "two.run", "-m", "RR,R@10", "--no-intervals"
    )
    assert out == (
        "two has the best RR: 0.875; karat compare shows whether the difference is\n"
        "significant\n\n"
        "measure           one    two  queries\n"
        "RR              0.500  0.875        4\n"
        "R@10            0.500  0.875        4\n"
        "Judged@10       0.500  0.875\n"
        "RR upper bound  1.000  1.000\n"
        "upper bound: the value if every unjudged item were relevant\n\n"
        "two: 1 query of the run not in gold: left out\n"
    )


def test_fewer_than_three_queries_have_no_interval(command, files):
    _, out, _ = command("eval", "gold.jsonl", "one.run", "two.run", "-m", "RR")
    assert out == (
        "two has the best RR: 0.750; karat compare shows whether the difference is\n"
        "significant\n\n"
        "measure             one      two  queries\n"
        "RR              0.500 –  0.750 –        2\n"
        "RR upper bound    1.000    1.000\n"
        "upper bound: the value if every unjudged item were relevant\n\n"
        "two: 1 query of the run not in gold: left out\n"
    )


def test_runs_with_another_interval_method_are_named(command, four_queries):
    Path("same.run").write_text(Path("two.run").read_text())
    runs = ("one.run", "two.run", "same.run")
    _, out, _ = command("eval", "gold.jsonl", *runs, "-m", "RR,Success@1")
    assert "95% intervals of RR (one), Success@1: Wilson's score interval\n" in out
    assert "95% intervals of RR: Student's t on the logit scale\n" in out


def test_interval_method_of_groups_is_shown_where_it_differs(command, four_queries):
    words = ("eval", "gold.jsonl", "one.run", "-m", "nDCG@2", "--by", "category")
    text = Path("one.run").read_text().replace("q1 Q0 b 2", "q1 Q0 x 2")
    Path("one.run").write_text(text)
    _, out, _ = command(*words)
    assert "95% intervals: Student's t on the logit scale\n" in out
    assert "95% intervals of some groups: Wilson's score interval\n" in out
    _, out, _ = command(*words, "--no-intervals")
    assert "95% intervals" not in out


def test_comma_separated_fields_get_a_hint_to_repeat_the_option(command, files):
    text = Path("gold.jsonl").read_text().replace('"category"', '"level": "easy", "category"')
    Path("gold.jsonl").write_text(text)
    result = command("eval", "gold.jsonl", "one.run", "--by", "level, category")
    check_refused(result, "by", "'level, category'", "--by level --by category\n")


def test_eval_shows_groups_queries_and_changed_conventions(command, files):
    code, out, _ = command(
        *("eval", "gold.jsonl", "one.run", "-m", "RR", "-m", "Hits", "--by", "category"),
        *("--per-query", "--missing", "skip", "--unjudged", "skip", "--no-intervals"),
    )
    assert code == 0
    assert out == (
        "one: RR 0.500 over 2 queries\n"
        "\n"
        "measure    one  0 … 1                 queries\n"
        "RR       0.500            ●                 2\n"
        "Hits         1                              2\n"
        "\n"
        "one by category\n"
        "category     RR  Hits  queries\n"
        "billing   1.000     2       1*\n"
        "shipping  0.000     0       1*\n"
        "\n"
        "one\n"
        "query     RR  Hits\n"
        "q1     1.000     2\n"
        "q2     0.000     0\n"
        "\n"
        "one: groups marked * have fewer than 5 queries: values are unreliable\n"
        "conventions: missing=skip, unjudged=skip\n"
    )


def test_json_has_the_documented_content(command, four_queries):
    code, out, _ = command(
        "eval", "gold.jsonl", "one.run", "two.run", "-m", "RR", "--json", "--by", "category",
        "--per-query",
    )  # fmt: skip
    assert code == 0
    document = json.loads(out)
    assert document["karat"] == karat.__version__
    assert document["conventions"]["missing"] == "zero"
    one, two = document["runs"]
    assert one["name"] == "one"
    assert one["measures"]["RR"] == {
        "value": 0.5,
        "low": pytest.approx(0.1500390),
        "high": pytest.approx(0.8499610),
        "method": "wilson",
        "sd": pytest.approx(3**-0.5),
        "median": 0.5,
        "n": 4,
        "left_out": 0,
        "bounds": {"low": 0.5, "high": 1.0},
    }
    assert one["left_out"] == {}
    assert two["left_out"] == {"unknown": 1}
    billing, shipping = one["groups"]
    assert billing["by"] == {"category": "billing"}
    assert billing["measures"]["RR"] == {
        "value": 1.0,
        "low": None,
        "high": None,
        "method": None,
        "sd": None,
        "median": 1.0,
        "n": 1,
        "left_out": 0,
        "bounds": {"low": 1.0, "high": 1.0},
        "small": True,
    }
    assert shipping["measures"]["RR"]["value"] == 1 / 3
    values = {"q1": 1.0, "q2": 0.0, "q3": 1.0, "q4": 0.0}
    assert one["per_query"] == [{"query_id": query, "RR": rr} for query, rr in values.items()]


def test_json_omits_what_was_not_requested(command, files):
    _, out, _ = command("eval", "gold.jsonl", "one.run", "-m", "FirstRelevant@1", "--json")
    run = json.loads(out)["runs"][0]
    assert "groups" not in run
    assert "per_query" not in run
    _, out, _ = command("eval", "gold.jsonl", "two.run", "-m", "FirstRelevant(rel=2)@1", "--json")
    assert json.loads(out)["runs"][0]["measures"]["FirstRelevant(rel=2)@1"]["value"] is None


def test_output_format_follows_the_file_extension(command, files):
    code, out, err = command(
        "eval", "gold.jsonl", "one.run", "two.run", "-m", "RR", "-o", "s.json", "-o", "s.csv",
        "-o", "s.parquet", "-o", "s.md", "--no-intervals",
    )  # fmt: skip
    assert code == 0
    assert out.startswith("two has the best RR: 0.750; ")
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
        "**two has the best RR: 0.750; karat compare shows whether the difference is "
        "significant**\n\n"
        "| measure | one | two | queries |\n| --- | ---: | ---: | ---: |\n"
        "| RR | 0.500 | **0.750** | 2 |\n| RR upper bound | 1.000 | 1.000 |  |\n\n"
        "- upper bound: the value if every unjudged item were relevant\n\n"
        "- two: 1 query of the run not in gold: left out\n"
    )
    assert karat.Scores.read("s.parquet", run="two")["RR"] == 0.75
    with refused(path="s.parquet", line=None, field=None) as error:
        karat.Scores.read("s.parquet")
    assert all(name in error.value.hint for name in ("'one'", "'two'"))
    with refused(path="s.parquet", line=None, field=None) as error:
        karat.Scores.read("s.parquet", run="three")
    assert "'three'" in str(error.value)
    with refused(path="s.json", line=None) as error:
        karat.Scores.read("s.json", run="two")
    assert "--per-query" in str(error.value)


def test_remark_about_every_run_is_shown_once(command, files):
    Path("three.run").write_text(Path("two.run").read_text())
    _, out, _ = command("eval", "gold.jsonl", "two.run", "three.run", "-m", "RR")
    assert out.splitlines()[-1] == "every run: 1 query of the run not in gold: left out"
    assert out.count("not in gold") == 1


def test_csv_and_markdown_contain_queries_and_groups(command, files):
    words = ("eval", "gold.jsonl", "one.run", "-m", "RR", "--by", "category")
    command(*words, "--per-query", "-o", "q.csv", "-o", "q.md")
    assert "one,billing,RR,1.0,,,,,1.0,1,0,,1.0,1.0,true" in Path("q.csv").read_text()
    assert Path("q.queries.csv").read_text() == "run,query_id,RR\none,q1,1.0\none,q2,0.0\n"
    assert "| q2 | 0.000 |" in Path("q.md").read_text()
    command(*words, "-o", "same.csv")
    for ending in ("csv", "queries.csv"):
        assert Path(f"same.{ending}").read_text() == Path(f"q.{ending}").read_text()


def test_csv_keeps_text_unchanged(command, files):
    ids = ["=1+1", "+2", "-3", "@a", "\tb", "c\rd", 'e"f', "g,h"]
    karat.Gold.of({query: ["a"] for query in ids}).write("gold.json")
    karat.Run.of({query: ["a"] for query in ids}).write("odd.json")
    command("eval", "gold.json", "odd.json", "-m", "RR", "-o", "s.csv")
    with Path("s.queries.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert sorted(row[1] for row in rows[1:]) == sorted(ids)


def test_nothing_is_computed_if_the_second_csv_file_cannot_be_written(command, files):
    Path("s.queries.csv").mkdir()
    check_refused(command("eval", "gold.jsonl", "one.run", "-o", "s.csv"), "s.queries.csv")
    assert not Path("s.csv").exists()


def test_two_files_are_written_completely_or_not_at_all(files):
    def full(_, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    endings = Writers("x", {".csv": lambda _, file: file.write(b"new")}, queries={".csv": full})
    Path("s.csv").write_text("before")
    listed = sorted(files.iterdir())
    with refused(path="s.queries.csv") as error:
        endings.write(None, "s.csv")
    assert "No space left" in str(error.value)  # as the system says it
    assert Path("s.csv").read_text() == "before"
    assert sorted(files.iterdir()) == listed


def test_same_file_cannot_be_written_twice(command, files):
    outputs = ("-o", "s.csv", "-o", "./s.queries.csv")
    check_refused(command("eval", "gold.jsonl", "one.run", *outputs), "s.queries.csv")
    assert not Path("s.csv").exists()


def test_unknown_extension_is_refused_before_anything_is_read(command, files):
    result = command("eval", "nowhere.jsonl", "one.run", "-o", "s.json", "-o", "s.xlsx")
    check_refused(result, "s.xlsx", "'.xlsx'")
    assert not Path("s.json").exists()


def test_runs_with_the_same_name_are_shown_by_path(command, files):
    Path("other").mkdir()
    Path("other/one.run").write_text(Path("two.run").read_text())
    _, out, _ = command("eval", "gold.jsonl", "one.run", "other/one.run", "-m", "RR")
    assert ["measure", "one.run", "other/one.run", "queries"] in map(str.split, out.splitlines())


def test_quoted_glob_is_one_run_in_several_files(command, files):
    Path("part-1.run").write_text("q1 Q0 a 1 0.9 t\n")
    Path("part-2.run").write_text("q2 Q0 c 1 0.9 t\n")
    _, out, _ = command("eval", "gold.jsonl", "part-*.run", "-m", "RR")
    assert out.splitlines()[3].split() == ["RR", "1.000", "–", "●", "2"]


def test_presets_levels_and_formats_are_options(command, files):
    code, out, _ = command("eval", "gold.jsonl", "one.run", "--preset", "benchmark")
    assert code == 0
    assert "conventions: duplicates=count" in out
    words = ("eval", "gold.jsonl", "one.run")
    check_refused(command(*words, "--level", "doc"), "one.run: doc_id")
    assert command(*words, "--gold-format", "jsonl", "--format", "trec", "-m", "RR")[0] == 0
    check_refused(command(*words, "--format", "tsv"), "one.run:1: query_id")
    known = "parquet, arrow, ragas, jsonl, json, beir, csv, tsv, ir_datasets, trec"
    check_refused(command(*words, "--format", "xml"), "format", "'xml'", known)


@pytest.mark.parametrize(
    ("words", "place", "values"),
    [
        (["gold.jsonl", "nowhere.run"], "nowhere.run", ["one.run"]),
        (["gold.jsonl", "one.run", "-m", "nDGC@10"], None, ["'nDGC@10'", "nDCG "]),
        (["gold.jsonl", "one.run", "--by", "categry"], "by", ["'categry'", "'category'"]),
        (
            ["gold.jsonl", "one.run", "--missing", "drop"],
            "missing",
            ["'drop'", "zero, skip, error"],
        ),
        (
            ["gold.jsonl", "one.run", "--no-gold", "drop"],
            "no_gold",
            ["'drop'", "family, zero, one, recall, skip"],
        ),
        (
            ["gold.jsonl", "one.run", "--duplicates", "x"],
            "duplicates",
            ["'x'", "first, count, set, error"],
        ),
        (["gold.jsonl", "one.run", "--unjudged", "x"], "unjudged", ["'x'", "irrelevant, skip"]),
        (["gold.jsonl", "two.run", "--unknown", "error"], "two.run: unknown", ["1 ", "ignore"]),
        (["one.run", "gold.jsonl"], "one.run:1", ["6", "hint: "]),
        (
            ["gold.jsonl", "one.run", "-o", "no/such/folder.json"],
            "no/such/folder.json",
            ["no/such "],
        ),
    ],
)
def test_mistake_ends_with_one_message_and_exit_code_2(command, files, words, place, values):
    check_refused(command("eval", *words), place, *values)


def test_debug_raises_the_error(command, files):
    with pytest.raises(karat.InputError):
        command("--debug", "eval", "gold.jsonl", "nowhere.run")


def test_wrong_usage_is_exit_code_2(command):
    code, _, err = command("eval", "--nonsense")
    assert code == 2
    assert "nonsense" in err


def test_interrupt_is_exit_code_130(command, files, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("karat.evaluation.evaluator.Evaluator", interrupted)
    code, out, err = command("eval", "gold.jsonl", "one.run")
    assert (code, out, err) == (130, "", "interrupted\n")


def test_warnings_go_to_stderr(command, files):
    Path("strange.run").write_text("q1 Q0 A 1 0.9 t\nq2 Q0 C 1 0.8 t\n")
    code, out, err = command("eval", "gold.jsonl", "strange.run", "-m", "RR")
    assert code == 0
    assert err.startswith("warning: ")
    assert "relevant ids" in err.splitlines()[0]
    assert "warning" not in out


def test_no_file_is_written_if_one_of_them_cannot_be(command, files):
    code, out, _ = command("eval", "gold.jsonl", "one.run", "-o", "a.json", "-o", "nowhere/b.json")
    assert (code, out) == (2, "")
    assert not Path("a.json").exists()


def test_error_names_the_affected_run(command, files):
    Path("twice.run").write_text("q1 Q0 a 1 0.9 t\nq1 Q0 a 2 0.8 t\n")
    result = command("eval", "gold.jsonl", "one.run", "twice.run", "--duplicates", "error")
    check_refused(result, "twice.run: duplicates", "'q1'", "rank 2")


def test_native_run_has_the_name_in_its_header(command, files):
    karat.Run.of({"q1": ["a"]}, name="hybrid").write("out-2024.jsonl")
    _, out, _ = command("eval", "gold.jsonl", "out-2024.jsonl", "-m", "RR")
    assert out.splitlines()[0] == "hybrid: RR 0.500 over 2 queries"
    assert out.splitlines()[2].split()[:2] == ["measure", "hybrid"]


def test_the_same_run_twice_has_two_names(command, files):
    _, out, _ = command("eval", "gold.jsonl", "one.run", "one.run", "-m", "RR", "-o", "s.parquet")
    assert "one.run (1)" in out.splitlines()[0]
    assert "one.run (2)" in out.splitlines()[0]
    assert karat.Scores.read("s.parquet", run="one.run (2)").per_query.height == 2


def test_long_measures_and_queries_stay_distinct(command, files):
    names = [f"nDCG(gain={{1: 1, 2: {gain}, 3: 7}})@10" for gain in (3, 5)]
    _, out, _ = command("eval", "gold.jsonl", "one.run", "-m", names[0], "-m", names[1])
    assert all(name in out for name in names)


def test_level_of_documents_is_shown(command, files):
    Path("chunks.csv").write_text("query_id,chunk_id,docid\nq1,a#1,a\nq1,a#2,a\nq2,c#1,c\n")
    _, out, _ = command("eval", "gold.jsonl", "chunks.csv", "-m", "NumRet", "--level", "doc")
    assert out.splitlines()[3].split()[:2] == ["NumRet", "2"]
    assert out.splitlines()[-1] == "level: doc"
    _, out, _ = command("eval", "gold.jsonl", "chunks.csv", "--level", "doc", "--json")
    assert json.loads(out)["level"] == "doc"


def test_many_runs_are_rows_of_a_table_of_80_columns(command, files):
    names = [f"a-rather-long-name-of-run-{i}.run" for i in range(7)]
    for name in names:
        Path(name).write_text(Path("one.run").read_text())
    _, out, _ = command("eval", "gold.jsonl", *names, "-m", "RR", "--per-query")
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[3].split()[:2] == ["run", "RR"]
    rows = [line.split()[:2] for line in out.splitlines()[4:11]]
    assert rows == [[name.removesuffix(".run"), "0.500"] for name in names]


def test_many_measures_are_split_into_tables_of_80_columns(command, files):
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
    assert "evil⟨U+001B⟩[2J\\|" in Path("e.md").read_text()


def test_terminal_shows_bold_answer_and_complete_tables(command, files, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    _, out, _ = command("eval", "gold.jsonl", "one.run", "-m", "RR")
    assert out.startswith("\x1b[1mone: RR 0.500 over 2 queries\x1b[0m\n")
    for count in (1, 2, 3, 5, 8, 11):
        measures = [f"nDCG@{k}" for k in range(10, 10 + count)]
        _, out, _ = command(
            "eval", "gold.jsonl", *["one.run"] * count, "-m", ",".join(measures), "--per-query"
        )
        plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
        assert max(map(len, plain.splitlines())) <= 80
        assert "…" not in plain.replace("0 … 1", "")
        assert plain.count("nDCG@10") >= count


def test_measures_are_listed_with_one_line_each(command):
    code, out, _ = command("measures")
    assert code == 0
    listed = [re.split(r"[@[ ]", line)[0] for line in out.splitlines()]
    assert {name: listed.count(name) for name in karat.measures.REGISTRY} == dict.fromkeys(
        karat.measures.REGISTRY, 1
    )
    assert max(map(len, out.splitlines())) <= 80
    assert "karat explain NAME shows the formula and the parameters of a measure" in out
    code, out, _ = command("measures", "hit rate")
    assert code == 0
    assert re.search(r"^Success\[@k\] +Success, .* hit_rate", out, re.MULTILINE)
    assert "nDCG" not in out
    _, out, _ = command("measures", "--json")
    by_name = {row["name"]: row for row in json.loads(out)}
    assert by_name["RBP"]["parameters"]["p"]["default"] == 0.8
    assert by_name["FirstRelevant"]["higher_is_better"] is False


def test_version_and_help(command):
    assert command("--version")[1] == f"karat {karat.__version__}\n"
    code, out, _ = command("--help")
    assert code == 0
    assert "eval" in out


def test_import_loads_no_large_packages():
    words = (
        "import sys, karat, karat.cli.main; "
        "print([m for m in ('polars', 'numpy', 'rich', 'msgspec', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_package_can_be_run_as_a_module(files):
    done = subprocess.run([sys.executable, "-m", "karat", "--version"], capture_output=True)
    assert done.stdout.decode() == f"karat {karat.__version__}\n"


def test_terminated_process_leaves_no_partial_file(files):
    Path("stopped.py").write_text(
        "import os, signal\n"
        "from karat.cli import main as command\n"
        "from karat.files import writing\n"
        "def stopped(context):\n"
        "    with writing('x.run') as file:\n"
        "        file.write(b'half')\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        file.write(b'more')\n"
        "command.app.invoke = stopped\n"
        "command.main()\n"
    )
    before = sorted(files.iterdir())
    assert subprocess.run([sys.executable, "stopped.py", "measures"]).returncode == 143
    assert sorted(files.iterdir()) == before


def test_trec_eval_prints_ids_unchanged_in_any_locale(files):
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
def test_saved_scores_are_refused_as_a_run(command, files, ending):
    command("eval", "gold.jsonl", "one.run", "-m", "RR", "--per-query", "-o", f"s.{ending}")
    result = command("eval", "gold.jsonl", f"s.{ending}", "-m", "RR")
    check_refused(result, f"s.{ending}", "--baseline")  # which takes saved scores


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["eval", "g", "r", "--unknown-option"], "no such option"),
        (["eval", "g", "r", "--top-k", "x\x1b[2J"], "'--top-k'"),
        (["unknown"], "no such command"),
        (["compare", "g", "r", "s", "--moved", "-1"], "'--moved'"),
    ],
)
def test_wrong_command_line_is_one_error_that_points_to_the_help(command, words, problem):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert problem in err
    assert "\x1b" not in err
    name = "karat" if words == ["unknown"] else f"karat {words[0]}"
    assert err.endswith(f"\n  hint: see {name} --help\n")


@pytest.mark.parametrize("words", [["convert"]])
def test_no_words_show_the_help_page(command, words):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.startswith(" ".join(["Usage: karat", *words]))


def test_options_without_a_panel_are_listed_last(command):
    out = command("eval", "--help")[1]
    assert out.index("Arguments:") < out.index("Measures:") < out.index("Help:")
