"""The jobs on the page about CI work: their shell lines run in a small project with git."""

import json
import os
import re
import subprocess

import pytest
import yaml

from support.paths import ROOT
from support.programs import write_karat, write_program

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorials" / "gate-a-pull-request.md").read_text(encoding="utf-8")
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = [yaml.safe_load(text) for text in YAML.findall(PAGE)]
SCRIPTS = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.M | re.S)
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
SEARCH = "def hybrid(query):\n    return {}\n"
GOOD, BAD = SEARCH.format("['a', 'b']"), SEARCH.format("['b', 'a']")


def github_lines():
    """Return the shell lines of the job without the action, each with its folder."""
    (steps,) = (
        [step for step in file["jobs"]["gate"]["steps"] if "run" in step]
        for file in FILES
        if "jobs" in file and "OWNER/karat" not in json.dumps(file)
    )
    return [(step.get("working-directory", "."), step["run"]) for step in steps]


def gitlab_job():
    (job,) = (file["retrieval"] for file in FILES if "retrieval" in file)
    return job


JOBS = {"GitHub": github_lines(), "GitLab": [(".", line) for line in gitlab_job()["script"]]}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write a project with a retriever, whose branch `main` is on a remote, and enter it."""
    programs, remote, folder = (tmp_path / name for name in ("programs", "remote.git", "project"))
    programs.mkdir()
    write_karat(programs)
    write_program(programs / "pip", "")
    for name, value in {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_BASE_REF": "main",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    (folder / "my_package").mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / "my_package" / "search.py").write_text(GOOD)
    gold = [{"query_id": f"q{n}", "query": f"Question {n}?", "relevant": ["a"]} for n in range(9)]
    (folder / "gold.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in gold))
    for line in (
        f"git init -q --bare {remote}",
        "git init -q -b main",
        "git add .",
        "git -c user.name=me -c user.email=me@example.org commit -q -m first",
        f"git remote add origin {remote}",
        "git push -q origin main",
    ):
        assert shell(line) == 0
    return folder


def shell(line, folder="."):
    return subprocess.run(["bash", "-e", "-c", line], cwd=folder, check=False).returncode


def run_job(lines):
    """Run the lines of a job until one fails, and return its exit code."""
    for folder, line in lines:
        if code := shell(line, folder):
            return code
    return 0


@pytest.mark.parametrize("system", JOBS)
def test_job_passes_if_the_retriever_is_as_good_as_on_the_main_branch(project, system):
    assert run_job(JOBS[system]) == 0


@pytest.mark.parametrize("system", JOBS)
def test_job_fails_if_the_retriever_is_worse_than_on_the_main_branch(project, system):
    (project / "my_package" / "search.py").write_text(BAD)
    assert run_job(JOBS[system]) == 1


def test_gitlab_job_writes_its_artifacts_and_can_reuse_its_folder(project):
    assert run_job(JOBS["GitLab"]) == 0
    artifacts = gitlab_job()["artifacts"]
    for path in (*artifacts["paths"], artifacts["reports"]["junit"]):
        assert (project / path).stat().st_size
    assert shell("git clean -q -ffdx") == 0  # as the runner of GitLab does between jobs
    assert run_job(JOBS["GitLab"]) == 0


def test_script_for_other_systems_fails_if_the_retriever_is_worse(project):
    check, save = SCRIPTS
    assert shell("karat run gold.jsonl --retriever my_package.search:hybrid -o run.jsonl") == 0
    assert shell(save) == 0
    (project / "run.jsonl").unlink()
    (project / "karat.toml").write_text('[gate]\n"nDCG@10".max_drop = 0.02\n')
    assert shell(check) == 0
    (project / "run.jsonl").unlink()
    (project / "my_package" / "search.py").write_text(BAD)
    assert shell(check) == 1


def action_steps(file):
    """Yield the steps with the action of karat, of a workflow or of a list of steps."""
    steps = file if isinstance(file, list) else file.get("jobs", {}).get("gate", {}).get("steps")
    yield from (step for step in steps or () if "OWNER/karat@" in step.get("uses", ""))


def test_steps_with_the_action_set_only_inputs_that_it_has():
    texts = [*YAML.findall(PAGE), *YAML.findall(TUTORIAL)]
    steps = [step for text in texts for step in action_steps(yaml.safe_load(text))]
    assert len(steps) == 4
    for step in steps:
        assert set(step.get("with", {})) <= set(ACTION["inputs"])
