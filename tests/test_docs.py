"""The examples in README, docs and docstrings run and give what they show."""

import doctest
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO
from operator import attrgetter

import pytest

from karat.cli.main import main
from support.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$(?:\n\n?```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
"""A block of code, and the output of Python code if a block of text follows it."""
LATENCIES = re.compile(r"^latency \[ms\].*(?:\n\w.*)*", re.MULTILINE)
name_of = attrgetter("name")


def karat_command(monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["karat", *words])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    return capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::karat.KaratWarning")  # as for a reader, not an error
@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CONTRIBUTING.md"], ids=name_of)
def test_examples_on_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "docs" / "faq", tmp_path / "faq")
    monkeypatch.chdir(tmp_path)
    if page.name == "retrievers.md":  # the indexes of its examples
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = {}
    source = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(source):
        language, text, shown = block.groups()
        if language == "python":
            with redirect_stdout(StringIO()) as output:
                exec(compile(text, page.name, "exec"), names)
            printed = output.getvalue()
            if shown is None:
                continue
            updated = block[0].replace(f"```text\n{shown}", f"```text\n{printed}")
        else:
            assert language == "console"
            command, _, shown = text.partition("\n")
            printed = karat_command(monkeypatch, capsys, shlex.split(command)[2:])
            updated = f"```console\n{command}\n{printed}```"
        if os.environ.get("KARAT_UPDATE") and without_times(printed) != without_times(shown):
            source = source.replace(block[0], updated)
        else:
            assert without_times(printed) == without_times(shown)
    if os.environ.get("KARAT_UPDATE"):
        page.write_text(source, encoding="utf-8")


def without_times(printed):
    """Replace every number in a table of latencies, since they differ each time."""
    return LATENCIES.sub(
        lambda table: re.sub(r" +", " ", re.sub(r"[\d,.]+\*?", "#", table[0])), printed
    )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_on_page_lead_to_existing_files(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_page_of_measures_is_made_from_the_declarations():
    path = ROOT / "tools" / "build_measures_page.py"
    spec = importlib.util.spec_from_file_location("build_measures_page", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run tools/build_measures_page.py"


def test_readme_starts_with_the_two_commands():
    top = (ROOT / "README.md").read_text(encoding="utf-8")[:700]
    assert "make demo" in top
    assert "make test" in top


def modules_with_examples():
    """Return the names of all modules with examples in docstrings."""
    package = ROOT / "src" / "karat"
    paths = [p for p in package.rglob("*.py") if "\n    >>> " in p.read_text(encoding="utf-8")]
    names = [".".join(p.relative_to(package.parent).with_suffix("").parts) for p in sorted(paths)]
    return [name.removesuffix(".__init__") for name in names]


MODULES = modules_with_examples()


def test_docstrings_have_examples():
    assert len(MODULES) > 30


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
