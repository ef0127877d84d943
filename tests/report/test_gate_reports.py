"""Verdicts of gates in the terminal and as JSON, JUnit XML and Markdown, and exit codes."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import karat
from karat.evaluation.verdict import GateEntry
from karat.report import verdict_files
from support.commands import check_refused
from support.errors import refused

FAILURES = ("--fail-on-error", "0.2")
"""One of six queries failed, which is more than the share that is allowed by default."""
FAILED = {"results": [], "error": {"type": "Timeout", "message": "too slow"}}


def native(ranks):
    """Return records in which the relevant item has these ranks; rank 0 means a failure."""
    return [
        {"query_id": query}
        | (
            {"results": [{"id": f"x{i}"} for i in range(rank - 1)] + [{"id": "a"}]}
            if rank
            else FAILED
        )
        for query, rank in ranks.items()
    ]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gold.jsonl").write_text(
        "".join(
            json.dumps({"query_id": f"q{at}", "category": category, "relevant": ["a"]}) + "\n"
            for at, category in enumerate(["billing"] * 3 + ["shipping"] * 3)
        )
    )
    for name, ranks in {"new": [1, 2, 2, 2, 2, 0], "old": [1, 1, 1, 1, 1, 1]}.items():
        lines = native({f"q{at}": rank for at, rank in enumerate(ranks)})
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


TOML = """
[gate]
"recip_rank" = { min = 0.4, max_drop = 0.1 }
[gate.by.category."billing"]
"RR" = ">= 0.7"
"""


def test_failed_gate_shows_thresholds_margins_and_queries_to_blame(command, files):
    Path("karat.toml").write_text(TOML)
    words = ("gate", "gold.jsonl", "new.jsonl", "--baseline", "old.jsonl", *FAILURES)
    code, out, err = command(*words)
    assert code == 1
    assert err.startswith("using the thresholds in karat.toml\n")
    # At a drop of 0.1, 2 of the 2⁶ sign flips are as extreme; from 0.25 on, 6 or more.
    assert out == (
        "new failed 2 of 3 thresholds (baseline old); 1 query that the retriever failed\n"
        "on\n"
        "\n"
        "        threshold                     value  baseline   bound      p  queries\n"
        "passed  RR >= 0.4                     0.500         –       –      –        6\n"
        "FAILED  RR max_drop 0.1               0.500     1.000  -0.250  0.031        6\n"
        "FAILED  RR >= 0.7 [category=billing]  0.667         –       –      –        3\n"
        "max_drop and max_rise pass unless a larger change for the worse is shown with\n"
        "  the given confidence; with few queries, little can be shown\n"
        "bound: one-sided confidence bound of value − baseline; p: of the same test\n"
        "\n"
        "failed: RR max_drop 0.1\n"
        "RR fell by 0.500, from 1.000 to 0.500; a drop of at least 0.250 (95% confidence,\n"
        "  p 0.031), 0.150 more than 0.1\n"
        "\n"
        "queries that fell most\n"
        "query  baseline  value\n"
        "q5        1.000  0.000\n"
        "q1        1.000  0.500\n"
        "q2        1.000  0.500\n"
        "q3        1.000  0.500\n"
        "q4        1.000  0.500\n"
        "\n"
        "failed: RR >= 0.7 [category=billing]\n"
        "RR is 0.667, 0.033 below 0.7\n"
        "\n"
        "lowest queries\n"
        "query  value\n"
        "q1     0.500\n"
        "q2     0.500\n"
        "\n"
        "new: 1 query that the retriever failed on: scored as if nothing was retrieved\n"
    )


def test_exit_codes(command, files):
    gate = ("gate", "gold.jsonl", "new.jsonl", *FAILURES, "--require")
    assert command(*gate, "RR >= 0.4")[0] == 0
    assert command(*gate, "RR >= 0.9")[0] == 1
    code, out, err = command("gate", "gold.jsonl", "new.jsonl", "--require", "RR >= 0.4")
    assert (code, out) == (2, "")  # too many queries failed
    assert "1 of 6 queries" in err
    for words, place, values in [
        (["nDGC >= 0.5"], "'nDGC >= 0.5'", ["'nDGC'", "nDCG "]),
        (["RR max_drop 0.1"], "'RR max_drop 0.1'", ["max_drop", "--baseline"]),
        (["RR >= 0.5", "-o", "x.pdf"], "x.pdf", ["'.pdf'", ".xml, .md, .json", ".html"]),
        (["RR >= 0.5", "-o", "no/such.xml"], "no/such.xml", [" no "]),
        (["RR >= 0.5", "-c", "no.toml"], "no.toml", []),
    ]:
        check_refused(command(*gate, *words), place, *values)
    check_refused(command(*gate[:-1]), "gate", "--require")
    words = ("gate", "gold.jsonl", "nowhere.jsonl", "--require", "RR >= 0")
    check_refused(command(*words), "nowhere.jsonl")


def test_command_line_replaces_thresholds_of_the_file(command, files):
    Path("karat.toml").write_text(TOML)
    code, out, _ = command("gate", "gold.jsonl", "new.jsonl", *FAILURES, "--require", "mrr >= 0.1")
    assert code == 1
    assert [line[8:38].strip() for line in out.splitlines()[3:5]] == [
        "RR >= 0.7 [category=billing]",
        "RR >= 0.1",
    ]
    assert "max_drop" not in out


def test_every_format_reports_failed_queries_even_if_the_gate_passed(command, files):
    code, out, err = command(
        "gate", "gold.jsonl", "new.jsonl", *FAILURES, "--require", "RR >= 0.4",
        "-o", "v.xml", "-o", "v.md", "-o", "v.json",
    )  # fmt: skip
    assert code == 0
    assert err == "wrote v.xml\nwrote v.md\nwrote v.json\n"
    remark = "1 query that the retriever failed on"
    assert remark in out.split("\n\n")[0].replace("\n", " ")
    assert remark in Path("v.md").read_text().splitlines()[0]
    assert json.loads(Path("v.json").read_text())["gates"][0]["unanswered"] == {
        "failed": 1,
        "missing": 0,
    }
    root = ElementTree.parse("v.xml").getroot()
    (skipped,) = root.iter("skipped")
    assert skipped.get("message") == remark
    assert remark in root.find("testsuite/system-out").text


def test_too_few_differing_queries_for_a_test_are_counted(command, files):
    lines = native({f"q{at}": rank for at, rank in enumerate([1, 1, 2, 2, 2, 2])})
    Path("near.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ("gate", "gold.jsonl", "near.jsonl", "--baseline", "old.jsonl", "--json", "--require")
    code, out, _ = command(*words, "RR max_drop 0.02")
    (gate,) = json.loads(out)["gates"]
    (check,) = gate["checks"]
    assert (code, check["method"], check["p"], check["differing"]) == (0, "few", None, 4)
    (remark,) = gate["remarks"]
    assert remark.startswith("RR max_drop 0.02: ")
    assert "only 4 of 6 queries differ" in remark
    code, out, _ = command(*words, "RR max_drop 0.02 strict")
    (check,) = json.loads(out)["gates"][0]["checks"]
    assert (code, check["method"], check["p"], check["differing"]) == (1, "few", None, 4)
    assert "only 4 of 6 queries differ" in check["reason"]


def test_json_on_stdout_equals_the_json_file(command, files):
    Path("karat.toml").write_text(TOML)
    words = ("gate", "gold.jsonl", "new.jsonl", "--baseline", "old.jsonl", "--json")
    code, out, _ = command(*words, *FAILURES, "-o", "v.json")
    assert code == 1
    assert json.loads(out) == json.loads(Path("v.json").read_text())
    document = json.loads(out)
    assert document["karat"] == karat.__version__
    assert document["passed"] is False
    (gate,) = document["gates"]
    assert (gate["run"], gate["baseline"], gate["passed"]) == ("new", "old", False)
    assert gate["conventions"]["missing"] == "zero"
    value, change, group = gate["checks"]
    assert value == {
        "measure": "RR", "threshold": "RR >= 0.4", "kind": "min", "limit": 0.4, "passed": True,
        "value": 0.5, "n": 6, "reason": "RR is 0.500",
    }  # fmt: skip
    assert change["difference"] == -0.5
    assert change["bound"] == pytest.approx(-0.25)
    assert change["miss"] == -change["bound"] - 0.1
    assert (change["method"], change["p"], change["differing"]) == ("flips", 2 / 2**6, 5)
    assert (change["confidence"], change["strict"], change["baseline"]) == (0.95, False, 1.0)
    assert change["to_blame"] == 5
    assert change["blamed"][0] == {"query_id": "q5", "value": 0.0, "baseline": 1.0}
    assert group["by"] == {"category": "billing"}
    assert group["blamed"] == [{"query_id": "q1", "value": 0.5}, {"query_id": "q2", "value": 0.5}]


def test_junit_has_one_case_per_threshold(command, files):
    Path("karat.toml").write_text(TOML)
    words = ("gate", "gold.jsonl", "new.jsonl", "--baseline", "old.jsonl", *FAILURES)
    command(*words, "-o", "v.xml")
    root = ElementTree.parse("v.xml").getroot()
    assert root.tag == "testsuites"
    (suite,) = root
    for element in (root, suite):
        counts = [element.get(name) for name in ("tests", "failures", "errors", "skipped")]
        assert counts == ["4", "2", "0", "1"]
    assert suite.get("name") == "new"
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == [
        "RR >= 0.4",
        "RR max_drop 0.1",
        "RR >= 0.7 [category=billing]",
        "every query was answered",
    ]
    assert {case.get("classname") for case in cases} == {"new"}
    assert [[child.tag for child in case] for case in cases] == [
        ["properties"],
        ["properties", "failure"],
        ["properties", "failure"],
        ["skipped"],
    ]
    failure = cases[2].find("failure")
    assert failure.get("message") == "RR is 0.667, 0.033 below 0.7"
    assert failure.text.splitlines()[1] == "lowest queries: q1 0.500, q2 0.500"


def test_markdown_has_a_heading_a_table_and_remarks(command, files):
    Path("karat.toml").write_text(TOML)
    words = ("gate", "gold.jsonl", "new.jsonl", "--baseline", "old.jsonl", *FAILURES)
    command(*words, "-o", "v.md")
    lines = Path("v.md").read_text().splitlines()
    assert lines[0].startswith("**❌ new failed 2 of 3 thresholds (baseline old); 1 query")
    assert lines[2:5] == [
        "|  | threshold | value | baseline | bound | p | queries |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        "| passed | RR >= 0.4 | 0.500 | – | – | – | 6 |",
    ]
    failure = lines.index("### failed: RR >= 0.7 [category=billing]")
    assert lines[failure + 2 :][:8] == [
        "- RR is 0.667, 0.033 below 0.7",
        "",
        "**lowest queries**",
        "",
        "| query | value |",
        "| --- | ---: |",
        "| q1 | 0.500 |",
        "| q2 | 0.500 |",
    ]
    assert (
        lines[-1]
        == "- new: 1 query that the retriever failed on: scored as if nothing was retrieved"
    )


def test_error_replaces_an_older_report(command, files):
    outputs = ("-o", "v.xml", "-o", "v.md", "-o", "v.json")
    words = ("gate", "gold.jsonl", "new.jsonl", *FAILURES, *outputs)
    assert command(*words, "--require", "RR >= 0.4")[0] == 0
    code, _, err = command(*words, "--require", "RR max_drop 0.5")
    assert code == 2
    root = ElementTree.parse("v.xml").getroot()
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["1", "0", "1"]
    (error,) = root.iter("error")
    assert error.get("message").startswith("'RR max_drop 0.5': ")
    assert f"error: {error.text}\n" == err
    assert error.text.startswith(error.get("message"))
    assert error.get("message") in Path("v.md").read_text()
    document = json.loads(Path("v.json").read_text())
    assert document["passed"] is None
    assert document["gates"][0]["error"] == error.text


def hostile():
    """Return a verdict with names that could break a table, XML or a line."""
    names = [
        "a|b",
        "<b>&amp;",
        "x\x01\x1b[2J\ud800".encode("utf-8", "replace").decode(),
        "long" * 40,
    ]
    gold = {name: ["a"] for name in names}
    run = karat.Run.of({name: ["x"] for name in names}, name='r"]]><\x07\n|')
    with pytest.warns(karat.KaratWarning):
        return karat.gate(gold, run, "RR >= 0.5")


def test_hostile_names_are_escaped(tmp_path):
    verdict = hostile()
    for name in ("v.xml", "v.md", "v.json"):
        verdict.write(tmp_path / name)
    root = ElementTree.parse(tmp_path / "v.xml").getroot()
    assert "a|b 0.000" in next(root.iter("failure")).text
    assert all(character.isprintable() for line in str(verdict).split("\n") for character in line)
    markdown = (tmp_path / "v.md").read_text()
    assert "a\\|b" in markdown
    assert "<" not in markdown
    assert json.loads((tmp_path / "v.json").read_text())["gates"][0]["run"] == verdict.run


def test_verdict_fits_80_columns(files):
    verdict = hostile()
    assert max(map(len, str(verdict).splitlines())) <= 80
    stage = "a stage with a very long name, so that not all of it can be shown at once"
    record = {"results": [{"id": "a"}], "latency_ms": {stage: 5.0}}
    run = [{"query_id": f"q{at}", **record} for at in range(6)]
    threshold = f'latency.mean(stage="{stage}") max_rise 1 s confidence 0.99 strict'
    text = str(karat.gate("gold.jsonl", run, threshold, baseline=run))
    assert max(map(len, text.splitlines())) <= 80
    assert "passed 1 threshold" in text


def test_report_without_a_verdict_has_neither_passed_nor_failed():
    assert verdict_files.document([])["passed"] is None
    judged = GateEntry(
        "t", karat.gate({"q": ["a"], "p": ["a"]}, {"q": ["a"], "p": ["a"]}, "RR >= 1")
    )
    assert verdict_files.document([judged])["passed"] is True
    assert verdict_files.document([judged, GateEntry("u", None, "no")])["passed"] is None


def test_unknown_extension_is_refused(tmp_path):
    with refused(path=tmp_path / "v.txt") as error:
        hostile().write(tmp_path / "v.txt")
    assert "'.txt'" in str(error.value)
