"""The GitHub Action: its shell steps run with fake events against a stub of GitHub's API.

The steps with `uses:` (uploading and downloading artifacts) cannot run here: the tests check when
they would run, and put in place what they would download.
"""

import json
import re
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from support.action_steps import ACTION, Job
from support.live_server import send, serving
from support.paths import ROOT

REPORT_URL = "https://github.example/artifacts/9"
GOLD = {
    f"q{number}": {"query_id": f"q{number}", "query": f"Question {number}?", "relevant": ["a"]}
    for number in range(1, 9)
}
GOOD, BAD = ["a"], ["x", "a"]
DEFAULTS = {"gold": "gold.jsonl", "run": "run.jsonl", "requirement": "none", "report": "false"}


class GitHub:
    """Comments and artifacts of a repository, behind the paths of GitHub's API."""

    def __init__(self):
        self.comments = []
        self.artifacts = []
        self.refused = 0
        self.calls = []

    def respond(self, handler, body):
        method, (path, _, query) = handler.command, handler.path.partition("?")
        self.calls.append((method, path))
        assert handler.headers["Authorization"] == "Bearer secret"
        assert path.startswith("/repos/me/project/")
        is_write = method in ("POST", "PATCH")
        if self.refused >= 500 or (self.refused and (is_write or "artifacts" in path)):
            answer = {"message": "Resource not accessible by integration"}
            send(handler, json.dumps(answer).encode(), self.refused)
            return
        answer = self.answer(method, path.removeprefix("/repos/me/project/"), query, body)
        send(handler, json.dumps(answer).encode(), 201 if method == "POST" else 200)

    def answer(self, method, path, query, body):
        if path == "actions/artifacts":
            assert re.match("name=[a-z%20-]+-baseline&", query)
            return {"artifacts": self.artifacts}
        if method == "GET":
            assert path == "issues/7/comments"
            page = int(re.search(r"\bpage=(\d+)", query)[1])
            return self.comments[100 * (page - 1) : 100 * page]
        assert len(body["body"]) <= 65_536
        if method == "POST":
            assert path == "issues/7/comments"
            self.comments.append({"id": len(self.comments) + 1, **body})
            return self.comments[-1]
        comment = self.comments[int(path.removeprefix("issues/comments/")) - 1]
        comment.update(body)
        return comment

    def store_baseline(self, run_id, branch="main", *, head=1, expired=False):
        workflow_run = {
            "id": run_id,
            "head_branch": branch,
            "repository_id": 1,
            "head_repository_id": head,
        }
        self.artifacts.append(
            {"id": run_id, "name": "karat-baseline", "expired": expired}
            | {"workflow_run": workflow_run}
        )


@pytest.fixture
def github():
    return GitHub()


@pytest.fixture
def job(github, tmp_path, monkeypatch):
    """Run the action in a project with gold.jsonl and run.jsonl."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    with serving(github.respond) as server:

        def job(lists=GOOD, records=GOLD, event="pull_request", fetched=None, files=(), **inputs):
            folder = tmp_path / f"job{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            write_lines(folder / "gold.jsonl", records.values())
            write_run(folder / "run.jsonl", lists, records)
            (folder / "sub").mkdir()
            for name, text in dict(files).items():
                (folder / name).write_text(text, encoding="utf-8")
            is_pull_request = event == "pull_request"
            content = {"pull_request": {"number": 7}} if is_pull_request else {}
            (folder / "event.json").write_text(json.dumps(content))
            environment = {
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_API_URL": server.url.removesuffix("/search"),
                "GITHUB_BASE_REF": "main" if is_pull_request else "",
                "GITHUB_EVENT_PATH": str(folder / "event.json"),
                "GITHUB_REF_NAME": "7/merge" if is_pull_request else "main",
                "GITHUB_REPOSITORY": "me/project",
                "GITHUB_RUN_ID": "42",
                "GITHUB_SERVER_URL": "https://github.example",
                "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            }
            values = {"event_name": event, "token": "secret"}
            values["base_ref"] = environment["GITHUB_BASE_REF"]
            started = Job(folder, DEFAULTS | inputs, values, environment)
            started.kept = {}

            def fetch(options):
                target = Path(options["path"])
                target.mkdir(parents=True)
                assert options["run-id"] == str(fetched[0])
                write_run(target / "run.jsonl", fetched[1], records)

            def keep(options):
                started.kept[options["name"]] = {
                    path: Path(path).read_bytes()
                    for pattern in options["path"].split()
                    for path in map(str, Path("/").glob(pattern.lstrip("/")))
                }
                return {"artifact-url": REPORT_URL}

            started.uses = {"Fetch the baseline": fetch}
            started.uses |= {"Keep the report": keep, "Keep the baseline": keep}
            return started.run()

        yield job


def write_lines(path, records):
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")


def write_run(path, lists, queries):
    lists = lists if isinstance(lists, dict) else dict.fromkeys(queries, lists)
    write_lines(path, ({"query_id": query, "results": lists[query]} for query in lists))


def test_gate_that_passes_creates_a_comment_and_succeeds(job, github):
    done = job(thresholds="RR >= 0.9\n\nR@10 >= 0.9\n")
    assert done.code == 0, done.output
    (comment,) = github.comments
    lines = comment["body"].splitlines()
    assert lines[:2] == ["<!-- karat gate: karat -->", "## karat"]
    assert "**✅ run passed 2 thresholds**" in lines
    assert "| passed | RR >= 0.9 | 1.000 | 8 |" in lines
    assert f"({REPORT_URL})" in lines[-1]
    assert "https://github.example/me/project/actions/runs/42" in lines[-1]
    assert done.summary.splitlines() == lines[1:]


def test_second_run_updates_the_comment(job, github):
    github.comments += [{"id": 1, "body": None}, {"id": 2, "body": "a person\n## karat"}]
    job(thresholds="RR >= 0.9")
    job(BAD, thresholds="RR >= 0.9")
    assert len(github.comments) == 3
    assert "**❌ run failed 1 of 1 threshold**" in github.comments[2]["body"]
    assert github.comments[1]["body"] == "a person\n## karat"


def test_comment_is_found_behind_a_hundred_others(job, github):
    github.comments += [{"id": number, "body": "talk"} for number in range(1, 101)]
    job(thresholds="RR >= 0.9")
    job(thresholds="RR >= 0.8")
    assert len(github.comments) == 101
    assert "RR >= 0.8" in github.comments[100]["body"]


def test_gates_with_different_names_have_a_comment_each(job, github):
    for name in ("karat", "search of docs"):
        job(thresholds="RR >= 0.9", name=name)
    assert [comment["body"].splitlines()[1] for comment in github.comments] == [
        "## karat",
        "## search of docs",
    ]


def test_failed_gate_comments_with_the_worst_queries_and_fails_the_job(job, github):
    lists = dict.fromkeys(GOLD, GOOD) | {"q3": BAD}
    done = job(lists, thresholds="RR >= 0.99")
    assert done.code == 1
    assert "| q3 | Question 3? | 0.500 |" in github.comments[0]["body"]
    assert done.ran[-1] == "Result"


def test_gate_without_a_result_comments_with_the_error_and_exits_with_2(job, github):
    done = job(records={}, thresholds="RR >= 0.99")
    assert done.code == 2
    assert "could not be decided" in github.comments[0]["body"]
    assert "gold.jsonl" in github.comments[0]["body"]


def test_usage_error_is_in_the_comment(job, github):
    done = job(arguments="--no-such-option")
    assert done.code == 2
    body = github.comments[0]["body"]
    assert "karat gate ended with exit code 2" in body
    assert "--no-such-option" in body.split("```")[1]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_without_the_right_to_comment_the_result_is_in_the_summary(job, github, status):
    github.refused = status
    assert job(thresholds="RR >= 0.9").code == 0
    done = job(BAD, thresholds="RR >= 0.9")
    assert done.code == 1
    assert github.comments == []
    assert "run failed 1 of 1 threshold" in done.summary
    assert "::notice title=karat::no comment: HTTP" in done.output
    assert "pull-requests: write" in done.output


def test_failing_api_does_not_fail_the_job(job, github):
    github.refused = 503
    done = job(thresholds="RR >= 0.9")
    assert done.code == 0
    assert "run passed 1 threshold" in done.summary


@pytest.mark.parametrize("event", ["push", "schedule"])
def test_other_events_write_the_summary_only(job, github, event):
    done = job(thresholds="RR >= 0.9", event=event)
    assert done.code == 0
    assert "run passed 1 threshold" in done.summary
    assert {path for _, path in github.calls} == {"/repos/me/project/actions/artifacts"}


def test_comment_may_be_switched_off(job, github):
    done = job(thresholds="RR >= 0.9", comment="false")
    assert "run passed 1 threshold" in done.summary
    assert github.comments == []


def test_query_texts_cannot_become_markup_or_notify_people(job, github):
    texts = {
        "q1": "<script>alert(1)</script> <img src=x>",
        "q2": "![x](http://example.org/x.png) [link](http://example.org)",
        "q3": "@octocat and @github/team fix #12",
        "q4": "a | b `c` **d** --> e",
    }
    records = {
        query: {"query_id": query, "query": text, "relevant": ["a"]}
        for query, text in texts.items()
    }
    job(BAD, records=records, thresholds="RR >= 0.9")
    body = github.comments[0]["body"]
    html = MarkdownIt("commonmark").enable("table").render(body.split("\n", 1)[1])
    assert not re.search("<script|<img|<code|<a [^>]*example.org", html)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x&gt;" in html
    assert "a | b `c` **d** --&gt; e" in html
    assert not re.search(r"(?<!\w)@\w|#\d", body)
    assert "@\u200boctocat and @\u200bgithub/team fix #\u200b12" in body


def test_long_result_is_shortened_to_the_limits_of_github(job, github):
    records = {
        query: record | {"query": f"{query} " + "word " * 8000} for query, record in GOLD.items()
    }
    done = job(BAD, records=records, thresholds="RR >= 0.9\nP@1 >= 0.9")
    body = github.comments[0]["body"]
    assert 30_000 < len(body) <= 65_536
    assert body.endswith("\n\n*Shortened: the job summary has the whole text.*")
    assert body.splitlines()[-3].endswith(" |")  # cut between two rows
    assert 200_000 < len(done.summary.encode()) < 2**20  # the limit of GitHub for summaries


def test_retriever_is_run_before_the_gate(job, github):
    search = "def search(query, top_k):\n    return ['a'] if '3' in query else ['x']\n"
    done = job(
        files={"my_search.py": search},
        run="",
        retriever="my_search:search",
        **{"run-arguments": "--top-k 3"},
        thresholds="RR >= 0.9",
    )
    assert done.code == 1
    assert "| q1 | Question 1? | 0.000 |" in github.comments[0]["body"]


STARTER = {
    "karat.toml": """gold = "gold.jsonl"
runs = ["run.jsonl"]
baseline = "baseline.parquet"
[retriever]
spec = "my_search:search"
output = "run.jsonl"
top_k = 3
[gate]
RR = ">= 0.9"
"R@10".max_drop = 0.1
""",
    "my_search.py": "def search(query, top_k):\n    return ['a', 'x'][:top_k]\n",
}
NO_INPUTS = {"gold": "", "run": ""}


def test_retriever_of_karat_toml_is_run_without_any_input(job, github):
    done = job(BAD, files=STARTER, event="push", **NO_INPUTS)
    assert done.code == 0, done.output
    ((path, content),) = done.kept["karat-baseline"].items()
    assert Path(path).name == "run.jsonl"
    assert content.count(b'"results":[{"id":"a"},{"id":"x"}]') == len(GOLD)


def test_retriever_of_karat_toml_is_compared_with_the_base_branch(job, github):
    github.store_baseline(31)
    worse = {"my_search.py": "def search(query):\n    return ['x']\n"}
    done = job(files=STARTER | worse, fetched=(31, GOOD), **NO_INPUTS)
    assert done.code == 1
    assert "failed: R@10 max_drop 0.1" in github.comments[0]["body"]


def test_baseline_of_karat_toml_is_used_if_the_base_branch_has_none(job, github):
    baseline = {"main.csv": "query_id,item_id,rank\n" + "".join(f"{q},a,1\n" for q in GOLD)}
    baseline["karat.toml"] = STARTER["karat.toml"].replace("baseline.parquet", "main.csv")
    worse = {"my_search.py": "def search(query):\n    return ['x']\n"}
    done = job(files=STARTER | worse | baseline, **NO_INPUTS)
    assert done.code == 1
    assert "(baseline main)" in github.comments[0]["body"]
    assert "No baseline" not in github.comments[0]["body"]


@pytest.mark.parametrize("config", ["settings.toml", "pyproject.toml"])
def test_retriever_of_the_named_settings_file_is_run(job, config):
    settings = STARTER["karat.toml"]
    if config == "pyproject.toml":
        settings = settings.replace("[retriever]", "[tool.karat.retriever]")
        settings = "[tool.karat]\n" + settings.replace("[gate]", "[tool.karat.gate]")
    files = {config: settings, "my_search.py": STARTER["my_search.py"]}
    done = job(BAD, files=files, config=config, **NO_INPUTS)
    assert done.code == 0, done.output


def test_run_takes_precedence_over_the_retriever_of_karat_toml(job, github):
    done = job(BAD, files=STARTER, gold="", run="run.jsonl")
    assert done.code == 1
    assert "| RR >= 0.9 | 0.500 |" in github.comments[0]["body"]


def test_settings_that_cannot_be_read_are_in_the_comment(job, github):
    done = job(files={"karat.toml": "[gate\n"}, **NO_INPUTS)
    assert done.code == 2
    assert "karat.toml:1: not valid TOML" in github.comments[0]["body"]


def test_retriever_that_fails_is_reported(job, github):
    search = "def search(query):\n    raise RuntimeError('the index is down')\n"
    done = job(
        files={"my_search.py": search},
        run="",
        retriever="my_search:search",
        **{"run-arguments": "--retries 0"},
        thresholds="RR >= 0.9",
    )
    assert done.code == 2
    assert "karat run ended with exit code 2" in github.comments[0]["body"]
    assert "the index is down" in github.comments[0]["body"]


def test_paths_are_relative_to_the_working_directory(job, github):
    paths = {"working-directory": "sub", "gold": "../gold.jsonl", "run": "../run.jsonl"}
    done = job(files={"sub/karat.toml": '[gate]\nRR = ">= 0.9"\n'}, event="push", **paths)
    assert done.code == 0
    (path,) = done.kept["karat-baseline"]
    assert Path(path) == (done.folder / "run.jsonl").resolve()


def test_thresholds_come_from_karat_toml(job, github):
    done = job(BAD, files={"karat.toml": '[gate]\nRR = ">= 0.9"\n'})
    assert done.code == 1
    assert "RR >= 0.9" in github.comments[0]["body"]


def test_report_is_kept_also_if_the_gate_fails(job):
    done = job(BAD, thresholds="RR >= 0.9", report="true")
    kept = {Path(path).name: content for path, content in done.kept["karat-report"].items()}
    assert set(kept) == {"gate.json", "gate.md", "gate.xml", "report.html"}
    assert json.loads(kept["gate.json"])["passed"] is False
    assert b"Question 1?" in kept["report.html"]
    assert "karat-baseline" not in done.kept


def test_baseline_of_the_base_branch_is_compared_with(job, github):
    github.store_baseline(31)
    done = job(BAD, thresholds="RR max_drop 0.1", fetched=(31, GOOD))
    assert done.code == 1
    body = github.comments[0]["body"]
    assert "run failed 1 of 1 threshold (baseline run)" in body
    assert "| q1 | Question 1? | 1.000 | 0.500 |" in body
    assert "No baseline" not in body


def test_newest_usable_baseline_is_fetched(job, github):
    github.store_baseline(30)
    github.store_baseline(33)
    github.store_baseline(32)
    github.store_baseline(34, head=2)  # a fork whose branch is called main, too
    github.store_baseline(35, "other")
    github.store_baseline(36, expired=True)
    assert job(thresholds="RR max_drop 0.1", fetched=(33, GOOD)).code == 0


def test_without_a_baseline_the_comment_says_what_was_not_checked(job, github):
    done = job(thresholds="RR max_drop 0.1")
    assert done.code == 0, done.output
    assert "Fetch the baseline" not in done.ran
    assert "No baseline of branch main was found" in github.comments[0]["body"]
    assert "could not fail" in github.comments[0]["body"]


def test_missing_baseline_is_no_topic_if_no_threshold_compares_with_it(job, github):
    assert job(thresholds="RR >= 0.9").code == 0
    assert "No baseline" not in github.comments[0]["body"]


def test_baseline_that_cannot_be_listed_is_a_warning(job, github):
    github.refused = 403
    done = job(thresholds="RR max_drop 0.1")
    assert done.code == 0
    assert "::warning title=karat::" in done.output
    assert "actions: read" in done.output


def test_named_baseline_takes_precedence(job, github):
    write = {"main.csv": "query_id,item_id,rank\n" + "".join(f"{query},a,1\n" for query in GOLD)}
    done = job(BAD, files=write, baseline="main.csv", thresholds="RR max_drop 0.1")
    assert done.code == 1
    assert "(baseline main)" in github.comments[0]["body"]
    assert "Find the baseline" not in done.ran


@pytest.mark.parametrize(
    ("event", "lists", "is_kept"),
    [
        ("push", GOOD, True),
        ("push", BAD, False),
        ("pull_request", GOOD, False),
        ("workflow_dispatch", GOOD, True),
        ("workflow_dispatch", BAD, True),  # accepts a lower level
    ],
)
def test_run_becomes_the_baseline(job, event, lists, is_kept):
    done = job(lists, event=event, thresholds="RR >= 0.9")
    assert ("karat-baseline" in done.kept) == is_kept
    if is_kept:
        ((path, content),) = done.kept["karat-baseline"].items()
        assert Path(path).name == "run.jsonl"
        assert content.count(b"query_id") == len(GOLD)


def test_default_requirement_is_the_version_of_the_action():
    (install,) = (step for step in ACTION["runs"]["steps"] if step["name"] == "Install karat")
    assert '"${REQUIREMENT:-$GITHUB_ACTION_PATH[report,live]}"' in install["run"]


def test_every_input_is_documented_and_used():
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    steps = json.dumps(ACTION["runs"])
    for name in ACTION["inputs"]:
        assert f"`{name}`" in page
        assert f"inputs.{name}" in steps
