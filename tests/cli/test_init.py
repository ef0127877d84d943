"""`karat init` writes a project whose commands work at once, and never replaces a file."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from karat.starter import FILES, write_starter
from support.errors import refused


def snapshot(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file()
    }


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Another test, such as that of a page, may have imported the retriever of its project.
    elsewhere = [path for path in sys.path if not Path(path, "my_retriever.py").exists()]
    monkeypatch.setattr("sys.path", elsewhere)
    sys.modules.pop("my_retriever", None)
    yield tmp_path
    sys.modules.pop("my_retriever", None)


def test_commands_work_in_a_new_project_without_arguments(command, here, monkeypatch):
    code, out, err = command("init", "project")
    assert (code, err) == (0, "")
    assert set(snapshot("project")) == set(FILES)
    assert "  cd project\n" in out
    monkeypatch.chdir("project")
    assert command("validate", "--json")[0] == 0
    code, _, err = command("run", "--no-progress")
    assert code == 0
    assert err.splitlines()[-1] == "next: karat eval"
    code, out, err = command("eval", "--json")
    assert code == 0
    measures = json.loads(out)["runs"][0]["measures"]
    assert list(measures) == ["nDCG@10", "R@5", "RR@10"]
    # q1 and q2 find everything at the top; in q1 the less relevant document comes first.
    assert 0.5 < measures["nDCG@10"]["value"] < 1
    assert command("gate")[0] == 0
    assert command("gate", "--update-baseline")[0] == 0
    assert Path("baseline.parquet").exists()
    assert command("compare")[0] == 0


def test_current_folder_is_the_default(command, here):
    code, out, _ = command("init")
    assert (code, "cd " in out) == (0, False)
    assert set(snapshot(here)) == set(FILES)


def test_existing_files_are_listed_and_nothing_is_written(command, here):
    Path("gold.jsonl").write_text("mine")
    Path(".github/workflows").mkdir(parents=True)
    Path(".github/workflows/karat.yml").write_text("mine, too")
    before = snapshot(here)
    code, out, err = command("init")
    assert (code, out) == (2, "")
    assert "gold.jsonl, .github/workflows/karat.yml" in err
    assert "karat.toml" not in err
    assert snapshot(here) == before
    with refused(path="other.txt", line=None, field=None):
        Path("other.txt").write_text("a file")
        write_starter("other.txt")


def test_settings_in_pyproject_toml_are_not_hidden_by_a_new_file(here):
    Path("pyproject.toml").write_text("[tool.karat]\ngold = 'mine.jsonl'\n")
    with refused(path=".", line=None, field=None) as error:
        write_starter(".")
    assert "pyproject.toml" in str(error.value)
    Path("pyproject.toml").write_text("[project]\nname = 'karat-user'\n")
    assert len(write_starter(".")) == len(FILES)


def test_nothing_is_left_if_a_file_cannot_be_written(here, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with refused(line=None, field=None):
        write_starter("project")
    assert not snapshot("project")


def test_repository_root_is_named_if_the_workflow_must_be_moved(command, here):
    (here / ".git").mkdir()
    assert str(here / ".github" / "workflows") in command("init", "inner")[1]
    assert "GitHub" not in command("init")[1].split("next:")[1]


def test_commented_settings_are_valid_when_they_are_activated(command, here):
    write_starter(".")
    lines = Path("karat.toml").read_text().splitlines()
    active = [
        line.removeprefix("# ")
        if line.startswith(("# [", '# "')) or " = " in line.partition("#")[2][:25]
        else line
        for line in lines
    ]
    text = "\n".join(active)
    assert {"fields", "headers"} <= tomllib.loads(text)["retriever"].keys()
    assert "max_drop" in tomllib.loads(text)["gate"]["RR@10"]
    Path("karat.toml").write_text(text)
    assert command("validate")[0] in (0, 2)
    assert "unknown setting" not in command("validate")[2]


def test_workflow_runs_the_commands_of_the_project(here):
    write_starter(".")
    commands = re.findall(
        r"^      - run: (.*)$", Path(".github/workflows/karat.yml").read_text(), re.M
    )
    run = "karat run --overwrite --no-progress"
    assert commands[:3] == ["pip install karat", run, "karat gate -o gate.md"]
