"""What README and docs show is what happens."""

import doctest
import importlib
import importlib.util
import re
import shlex
import sys

import pytest

from karat.cli.main import main
from support.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LATENCIES = re.compile(r"^latency \[ms\].*(?:\n\w.*)*", re.MULTILINE)


def karat_command(monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["karat", *words])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CONTRIBUTING.md"], ids=str)
def test_the_examples_of_a_page_run_and_print_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    karat_command(monkeypatch, capsys, ["demo"])
    names = {}
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, page.name, "exec"), names)
        else:
            assert language == "console"
            command, _, expected = text.partition("\n")
            printed = karat_command(monkeypatch, capsys, shlex.split(command)[2:])
            assert without_times(printed) == without_times(expected)


def without_times(printed):
    """Put one sign for every number of a table of latencies: they are others each time."""
    return LATENCIES.sub(
        lambda table: re.sub(r" +", " ", re.sub(r"[\d,.]+\*?", "#", table[0])), printed
    )


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_page_of_measures_is_made_from_the_declarations():
    path = ROOT / "tools" / "build_measures_page.py"
    spec = importlib.util.spec_from_file_location("build_measures_page", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run tools/build_measures_page.py"


def test_the_two_commands_stand_at_the_top_of_the_readme():
    top = (ROOT / "README.md").read_text(encoding="utf-8")[:700]
    assert "make demo" in top
    assert "make test" in top


@pytest.mark.parametrize(
    "name",
    [
        "chunk.characters",
        "chunk.headings",
        "chunk.sentence_ends",
        "chunk.separators",
        "chunk.splitters",
        "compat.pytrec_eval",
        "conventions",
        "data.chunks",
        "data.corpus",
        "data.dense",
        "data.gold",
        "data.offsets",
        "data.run",
        "data.shaping",
        "evaluation.comparing",
        "evaluation.evaluator",
        "evaluation.explaining",
        "evaluation.gating",
        "evaluation.thresholds",
        "evaluation.validating",
        "functional",
        "live.adapters.http_headers",
        "live.adapters.secrecy",
        "match.judging",
        "match.locate",
        "match.subsequences",
        "measures.names",
        "presets.benchmark",
        "presets.coverage",
        "presets.graded",
        "presets.spans",
        "report.tables",
        "stats.rules",
    ],
)
def test_the_examples_in_docstrings_hold(name):
    result = doctest.testmod(importlib.import_module(f"karat.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
