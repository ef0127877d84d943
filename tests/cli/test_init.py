"""`karat init` writes a project whose commands work at once, and never replaces a file."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from karat.starter import FILES, write_starter
from support.errors import refused
from support.programs import write_karat, write_program


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


def test_commands_that_init_prints_work_without_arguments(command, here, monkeypatch):
    code, out, err = command("init", "project")
    assert (code, err) == (0, "")
    assert set(snapshot("project")) == set(FILES)
    first, *lines = [line[2:] for line in out.partition("next:\n")[2].splitlines()]
    assert first == "cd project"
    monkeypatch.chdir("project")
    commands = [line.split("  ")[0].split() for line in lines]
    for words in commands:
        assert words[0] == "karat"
        code, _, err = command(*words[1:])
        assert code == 0, err
    assert Path("baseline.parquet").exists()
    assert ["karat", "compare"] in commands
    assert command("gate")[0] == 0
    assert command("validate")[0] == 0


def test_questions_of_a_new_project_are_answered_but_not_perfectly(command, here):
    command("init")
    _, _, err = command("run", "--no-progress")
    assert err.splitlines()[-1] == "next: karat eval"
    _, out, _ = command("eval", "--json")
    measures = json.loads(out)["runs"][0]["measures"]
    assert list(measures) == ["nDCG@10", "R@5", "RR@10"]
    # q1 and q2 find everything at the top; in q1 the less relevant document comes first.
    assert 0.5 < measures["nDCG@10"]["value"] < 1


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
    Path("other.txt").write_text("a file")
    with refused(path="other.txt", line=None, field=None):
        write_starter("other.txt")


def test_settings_in_pyproject_toml_are_not_hidden_by_a_new_file(here):
    Path("pyproject.toml").write_text("[tool.karat]\ngold = 'mine.jsonl'\n")
    with refused(path=".", line=None, field=None) as error:
        write_starter(".")
    assert "pyproject.toml" in str(error.value)
    Path("pyproject.toml").write_text("[project]\nname = 'karat-user'\n")
    assert len(write_starter(".")) == len(FILES)


@pytest.mark.parametrize("path", ["corpus", ".github", ".github/workflows"])
def test_file_in_place_of_a_folder_is_named_and_nothing_is_written(here, path):
    Path("project", path).parent.mkdir(parents=True)
    Path("project", path).write_text("mine")
    with refused(path=str(Path("project", path)), line=None, field=None):
        write_starter("project")
    assert snapshot("project") == {path: b"mine"}
    folders = [each.name for each in Path("project").rglob("*") if each.is_dir()]
    assert folders == ([".github"] if path == ".github/workflows" else [])


def test_folders_that_were_created_are_removed_after_an_error(here, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with refused(line=None, field=None):
        write_starter("new/project")
    assert not Path("new").exists()


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
    assert tomllib.loads(text)["gate"]["nDCG@10"] == {"min": 0.6, "max_drop": 0.02}
    Path("karat.toml").write_text(text)
    assert command("validate")[0] in (0, 2)
    assert "unknown setting" not in command("validate")[2]


def workflow_steps():
    workflow = yaml.safe_load(Path(".github/workflows/karat.yml").read_text())
    return workflow["jobs"]["karat"]["steps"]


def shell_steps(event, github, home):
    """Run the shell steps of the workflow for an event; return the exit code of the first to fail.

    `gh` is a program that knows one artifact of the main branch, or none.
    """
    temporary = home / "runner"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    programs = home / "programs"
    programs.mkdir(exist_ok=True)
    write_karat(programs)
    write_program(
        programs / "gh",
        f'case "$1" in api) test -f "{github}" && echo 9 || true;; '
        f'run) cp "{github}" "{temporary}/main.jsonl";; esac',
    )
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(temporary),
        "GITHUB_BASE_REF": "main",
        "GITHUB_REPOSITORY": "me/project",
        "GITHUB_STEP_SUMMARY": str(temporary / "summary.md"),
    }
    code = 0
    for step in workflow_steps():
        condition, script = step.get("if", ""), step.get("run", "")
        is_skipped = ("== 'pull_request'" in condition) and event != "pull_request"
        if not script or script.startswith("pip ") or is_skipped:
            continue
        if code and condition != "always()":
            continue
        done = subprocess.run(["bash", "-e", "-c", script], env=environment, check=False)
        code = code or done.returncode
    if not code and event != "pull_request":  # what the step with actions/upload-artifact does
        shutil.copy(temporary / "main.jsonl", github)
    return code, (temporary / "summary.md").read_text()


def test_workflow_fails_a_pull_request_that_drops(here, tmp_path_factory):
    write_starter(".")
    settings = Path("karat.toml")
    settings.write_text(
        settings.read_text()
        .replace('# "nDCG@10".max_drop', '"nDCG@10".max_drop')
        .replace(".min = 0.6", ".min = 0.1")
        .replace(".min = 0.8", ".min = 0.1")
    )
    answers = {f"q{number}": "refunds" for number in range(1, 9)}
    lines = [json.dumps({"query_id": q, "query": q, "relevant": [a]}) for q, a in answers.items()]
    Path("gold.jsonl").write_text("\n".join(lines))
    retriever = Path("my_retriever.py")
    retriever.write_text("def search(query):\n    return ['refunds', 'returns']\n")
    home = tmp_path_factory.mktemp("home")
    github = home / "artifact.jsonl"
    code, summary = shell_steps("pull_request", github, home)
    assert (code, "not checked" in summary) == (0, True)
    assert not github.exists()
    Path("baseline.parquet").unlink()  # every job starts with a new checkout
    assert shell_steps("push", github, home)[0] == 0
    stored = github.read_bytes()
    Path("baseline.parquet").unlink()
    code, summary = shell_steps("pull_request", github, home)
    assert (code, "(baseline run)" in summary) == (0, True)
    retriever.write_text("def search(query):\n    return ['returns', 'refunds']\n")
    code, summary = shell_steps("pull_request", github, home)
    assert code == 1
    assert "failed: nDCG@10 max_drop 0.02" in summary
    assert github.read_bytes() == stored


def test_workflow_stores_the_baseline_only_outside_of_pull_requests(here):
    write_starter(".")
    workflow = yaml.safe_load(Path(".github/workflows/karat.yml").read_text())
    assert {"pull_request", "push"} <= workflow[True].keys()  # YAML reads "on" as true
    (upload,) = [s for s in workflow_steps() if "upload-artifact" in s.get("uses", "")]
    assert upload["if"] == "github.event_name != 'pull_request'"
    assert upload["with"]["path"] == "${{ runner.temp }}/main.jsonl"
