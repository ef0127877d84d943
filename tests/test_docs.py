"""The examples in README, docs and docstrings run and give what they show."""

import doctest
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

from karat.cli.main import main
from support.golden import check_golden
from support.paths import ROOT
from support.recorded_search import ANSWER, playing

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = ROOT / "docs" / "api"  # its examples are those of the docstrings
HOWTO = ROOT / "docs" / "howto"
NEEDING_PACKAGES = [
    HOWTO / f"{name}.md" for name in ("langchain", "llamaindex", "haystack", "ranx", "ir_measures")
]
"""Pages whose examples run in tests/integration, which has the packages that they need."""
NEEDING_JAVA = ROOT / "docs" / "spark.md"
"""Its examples run in tests/integration/test_spark.py."""
NOT_HERE = {ROOT / "CONTRIBUTING.md", NEEDING_JAVA, *NEEDING_PACKAGES}
WITH_EXAMPLES = [p for p in PAGES if p not in NOT_HERE and p.parent != GENERATED]
BLOCK = re.compile(
    r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$(?:\n\n?```text\n(.*?)^```$)?',
    re.MULTILINE | re.DOTALL,
)
"""A block of code: language, file name, text, and the output if a block of text follows it."""
NOT_EXECUTED = {"bash", "yaml", "text"}
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
"""A command, which a backslash continues on the next line, and its output."""
LEFT_OUT = "…\n"
"""A line of shown output that stands for any lines."""
TIMES = re.compile(
    r"^latency \[ms\].*(?:\n\w.*)*|^time  about .*|^latency\.\w+ \[.*"
    r"|^.* passed in .*s$",
    re.MULTILINE,
)
DATES = re.compile(r"\d{4}-\d\d-\d\d(\s\d\d:\d\d)?|finished .* ago")
SETTING = re.compile(r"[A-Z_]+=")


def name_of(page):
    return str(page.relative_to(ROOT))


class Shell:
    """Runs the commands of console blocks in this process, and remembers the last exit code."""

    def __init__(self, monkeypatch, capsys):
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        self.exit_code = 0
        self.error = ""

    def output(self, line):
        if line == "echo $?":
            code, self.exit_code = self.exit_code, 0
            return f"{code}\n"
        assert not self.exit_code, f"show `echo $?` if this is intended: {self.error}"
        words = shlex.split(os.path.expandvars(line.replace("\\\n", " ")))
        if words[0] == "cat":
            return Path(words[1]).read_text(encoding="utf-8")
        if words[0] == "pytest":
            return self.pytest(words[1:])
        with self.monkeypatch.context() as patch:
            while SETTING.match(words[0]):
                patch.setenv(*words.pop(0).split("=", 1))
            assert words[0] == "karat", line
            has_errors = words[-1] == "2>&1"
            patch.setattr(sys, "argv", words[:-1] if has_errors else words)
            self.capsys.readouterr()
            with pytest.raises(SystemExit) as stop:
                main()
        self.exit_code = stop.value.code or 0
        printed = self.capsys.readouterr()
        self.error = printed.err
        has_errors = has_errors or self.exit_code == 2
        return printed.out + printed.err if has_errors else printed.out

    def pytest(self, words):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
        # pytest prints more if CI is set.
        environment = {name: text for name, text in os.environ.items() if name != "CI"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        self.exit_code, self.error = done.returncode, done.stderr
        return done.stdout


def copy_data(folder):
    """Copy the example data to where pages use them, and to where `karat demo` writes them."""
    shutil.copytree(ROOT / "docs" / "faq", folder / "faq")
    shutil.copytree(ROOT / "docs" / "faq", folder / "docs" / "faq")  # its path in README
    handbook = shutil.copytree(ROOT / "docs" / "handbook", folder / "karat-demo" / "handbook")
    shutil.copytree(ROOT / "docs" / "faq", folder / "karat-demo" / "faq")
    (handbook / "questions.jsonl").unlink()
    (handbook / "gold.jsonl").rename(folder / "karat-demo" / "gold.jsonl")


@pytest.fixture(scope="module")
def cache_home(tmp_path_factory):
    """Return a cache that all pages share, so that scripts of reports are built once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def search_server():
    """Run a stub of Elasticsearch, whose address is in ES_URL."""
    with playing(ANSWER) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ES_URL", server.url.removesuffix("/search"))
        yield


@pytest.mark.usefixtures("search_server")
@pytest.mark.filterwarnings("ignore::karat.KaratWarning")  # as for a reader, not an error
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_on_page_run_and_print_what_it_shows(
    page, tmp_path, cache_home, monkeypatch, capsys
):
    copy_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    is_about_cache = page.name == "retrievers.md"
    for variable in ("GITHUB_SHA", "CI_COMMIT_SHA"):  # saved scores contain the commit
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache" if is_about_cache else cache_home))
    shell = Shell(monkeypatch, capsys)
    monkeypatch.syspath_prepend(tmp_path)
    loaded = set(sys.modules)
    names = {}
    source = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(source):
        language, file_name, text, shown = block.groups()
        if file_name is not None:
            (tmp_path / file_name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file_name).write_text(text, encoding="utf-8")
            continue
        if language == "python":
            with redirect_stdout(StringIO()) as output:
                exec(compile(text, page.name, "exec"), names)
            printed, shown = output.getvalue(), shown or ""
            updated = f"```python\n{text}```" + f"\n\n```text\n{printed}```" * bool(printed)
        elif language == "console":
            shown = text
            printed = COMMAND.sub(lambda found: shown_again(shell, *found.groups()), text)
            updated = f"```console\n{printed}```"
        else:
            assert language in NOT_EXECUTED, f"what to do with blocks of {language}?"
            continue
        if os.environ.get("KARAT_UPDATE"):
            if without_times(printed) != without_times(shown):
                source = source.replace(block[0], updated)
        else:
            assert without_times(printed) == without_times(shown)
    for name in set(sys.modules) - loaded:  # modules that the page has written
        if (tmp_path / f"{name}.py").exists():
            del sys.modules[name]
    assert not shell.exit_code, f"the last command failed: {shell.error}"
    if os.environ.get("KARAT_UPDATE"):
        page.write_text(source, encoding="utf-8")


def shown_again(shell, command, shown):
    """Run a command, and return it with its output; lines that the page leaves out stay out."""
    printed = shell.output(command)
    parts = f"\n{shown}".split(f"\n{LEFT_OUT}")
    pattern = r"\n(?:.*\n)*".join(re.escape(without_times(part)) for part in parts)
    is_excerpt = len(parts) > 1 and re.fullmatch(pattern, f"\n{without_times(printed)}")
    return f"$ {command}\n{shown if is_excerpt else printed}"


def without_times(printed):
    """Replace every number that depends on the time, since it differs each time."""
    without_latency = TIMES.sub(
        lambda table: re.sub(r" +", " ", re.sub(r"[\d,.]+\*?", "#", table[0])), printed
    )
    return DATES.sub("#", without_latency)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_on_page_lead_to_existing_files_and_headings(page):
    without_code = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    for path, anchor in re.findall(r"\]\(([^)#: ]*)#?([^):]*)\)", without_code):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_on_page_have_a_language_and_commands_are_in_console_blocks(page):
    text = page.read_text("utf-8")
    fences = re.findall(r"^ *```(.*)$", text, re.MULTILINE)
    assert all(fences[::2]), "a block without a language is not tested: use console or text"
    without_blocks = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    assert not re.findall(r"^    (?:\$ |error:).*$", without_blocks, re.MULTILINE)


@cache
def anchors(page):
    """Return the anchors of the headings of a page, as GitHub and Zensical make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    names = [re.sub(r"\]\([^)]*\)", "]", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in names}


@pytest.mark.parametrize("tool_name", ["build_measures_page", "build_cli_page", "build_api_pages"])
def test_generated_pages_are_up_to_date(tool_name, monkeypatch):
    spec = importlib.util.spec_from_file_location(tool_name, ROOT / "tools" / f"{tool_name}.py")
    tool = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, tool_name, tool)  # dataclasses look their module up there
    spec.loader.exec_module(tool)
    for path, text in tool.pages().items():
        check_golden(path, text)


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in PAGES[2:]}


def test_files_named_in_contributing_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w/]+/\w+\.py)`", text)
    assert "data/formats/base.py" in paths
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "src" / "karat" / path).exists(), path


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
