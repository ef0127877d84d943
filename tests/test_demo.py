"""`karat demo`: what it prints, what it writes, and what it never replaces."""

import hashlib
import importlib.util
import json
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

import karat
import karat.cli.demo
import karat.demo
from karat.config import Config
from karat.demo import ANSWER_TEXT, MEASURES, Demo, build_demo
from karat.stats.power import ALPHA
from support.commands import check_refused
from support.paths import ROOT


@pytest.fixture
def offline(monkeypatch):
    def connect(*_):
        raise AssertionError("the demo must not use the network")

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def without(monkeypatch):
    """Pretend that packages are not installed."""

    def hide(*packages):
        def find_spec(name):
            return None if name in packages else importlib.util.find_spec(name)

        monkeypatch.setattr(karat.demo, "find_spec", find_spec)

    return hide


@pytest.fixture
def small(without):
    """The fastest demo: three runs and no report."""
    without("wordllama", "jinja2")


def printed_commands(out):
    """Return the folder that the printed lines change to, and the commands to try there."""
    enter, *lines = out.splitlines()[-4:]
    change, folder = shlex.split(enter)
    assert change == "cd"
    return folder, [part.split() for line in lines for part in line.split(" && ")]


def rows(out):
    """Return how many rows of a terminal with 80 columns the output needs."""
    return sum(max(1, -(-cell_len(line) // 80)) for line in out.splitlines())


def test_small_demo_prints_verdict_table_and_what_is_missing(
    command, small, offline, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("demo")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert rows(out) <= 20
    assert lines[0].startswith("Compared 3 ways to search ")
    assert any(line.startswith("Clear: bm25-") for line in lines)
    assert any(line.startswith("Too close to call: bm25-") for line in lines)
    assert any("pip install 'karat[dense]'" in line for line in lines)
    assert any("pip install 'karat[report]'" in line for line in lines)
    assert "file://" not in out
    assert not Path("karat-demo/report.html").exists()


def test_commands_that_the_demo_prints_work_again_and_again(command, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, out, _ = command("demo", "my demo")
    folder, commands = printed_commands(out)
    monkeypatch.chdir(folder)
    for words in [*commands, *commands]:
        assert words[0] == "karat"
        code, printed, err = command(*words[1:])
        assert code == 0, err
        assert printed
    headline = command(*commands[-1][1:])[1].splitlines()[0]
    assert "mine" in headline
    assert "bm25-" in headline


def test_folder_of_the_demo_is_a_project(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("validate", "eval", "compare"):
        code, out, err = command(name, "--json")
        assert code == 0, err
    leader = Path(Config.find().settings["baseline"]).stem
    assert json.loads(out)["baseline"] == leader


@pytest.mark.slow
def test_demo_with_all_extras(command, offline, tmp_path, monkeypatch):
    pytest.importorskip("wordllama")
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    code, out, err = command("demo", "--open")
    assert (code, err) == (0, "")
    assert rows(out) <= 20
    report = Path("karat-demo/report.html").resolve()
    assert f"Open {report.as_uri()}" in out.splitlines()
    assert max(cell_len(line) for line in out.splitlines() if "file://" not in line) <= 80
    assert opened == [report.as_uri()]
    assert len(list(Path("karat-demo/runs").iterdir())) == 5
    folder, commands = printed_commands(out)
    monkeypatch.chdir(folder)
    for words in commands:
        assert command(*words[1:])[0] == 0


@pytest.mark.slow
def test_one_difference_is_clear_and_one_is_not(tmp_path, without):
    pytest.importorskip("wordllama")
    without("jinja2")
    demo = build_demo(tmp_path)
    assert demo.p_of(demo.ranking[0], demo.clearly_worse[0]) < ALPHA
    assert demo.p_of(demo.ranking[0], demo.too_close[0]) > 0.2


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(karat.demo, "find_spec", lambda _: None)
        demo = build_demo(tmp_path_factory.mktemp("demo"))
    assert demo.p_of(demo.ranking[0], demo.clearly_worse[0]) < ALPHA
    assert demo.p_of(demo.ranking[0], demo.too_close[0]) > 0.2
    return demo


@pytest.fixture
def folder(demo):
    return demo.folder


def test_folder_has_the_example_files_of_the_documentation(folder):
    shipped = ROOT / "docs" / "faq"
    written = {path.name: path.read_bytes() for path in (folder / "faq").iterdir()}
    assert written == {path.name: path.read_bytes() for path in shipped.iterdir()}
    assert "support-faq.jsonl" in written


def test_folder_has_corpus_gold_runs_and_scores(folder):
    gold = karat.Gold.read(folder / "gold.jsonl")
    pages = {path.name for path in (folder / "handbook").iterdir()}
    assert set(gold.judgments["item_id"]) <= pages
    for name in ("bm25-fixed", "bm25-markdown", "bm25-recursive"):
        run = karat.Run.read(folder / "runs" / f"{name}.jsonl")
        assert run.query_ids.len() == gold.query_ids.len()
        assert run.timings is not None
        scores = karat.Scores.read(folder / "scores.json", run=name)
        assert list(scores) == list(MEASURES)
        assert scores.left_out == {"unanswerable": gold.unanswerable.len()}
        again = karat.evaluate(gold, run, ANSWER_TEXT, level="doc")
        assert again[ANSWER_TEXT] == scores[ANSWER_TEXT]


def test_demo_replaces_its_own_files_and_keeps_others(folder, without):
    without("wordllama", "jinja2")
    (folder / "notes.txt").write_text("mine")
    (folder / "runs" / "other.jsonl").write_text("mine")
    (folder / "runs" / "dense.jsonl").write_text("of an earlier demo")
    own = json.loads((folder / ".karat-demo.json").read_text())
    own["runs/dense.jsonl"] = hashlib.sha256(b"of an earlier demo").hexdigest()
    (folder / ".karat-demo.json").write_text(json.dumps(own))
    build_demo(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "runs" / "other.jsonl").read_text() == "mine"
    assert not (folder / "runs" / "dense.jsonl").exists()


@pytest.mark.parametrize(
    "name", ["gold.jsonl", "handbook/index.md", "runs/bm25-fixed.jsonl", "karat.toml"]
)
def test_foreign_file_is_not_replaced_and_nothing_is_written(command, small, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    check_refused(command("demo", tmp_path), str(tmp_path / name))
    assert (tmp_path / name).read_text() == "mine"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]


def test_changed_file_is_not_replaced(command, small, tmp_path):
    files = karat.demo._OwnFiles(tmp_path, ["gold.jsonl"])
    with files:
        (tmp_path / "gold.jsonl").write_text("of the demo")
    with files:
        (tmp_path / "gold.jsonl").write_text("of the demo again")
    (tmp_path / "gold.jsonl").write_text("changed")
    check_refused(command("demo", tmp_path), str(tmp_path / "gold.jsonl"))
    assert (tmp_path / "gold.jsonl").read_text() == "changed"


def test_interrupted_demo_can_be_started_again(tmp_path):
    files = karat.demo._OwnFiles(tmp_path, ["gold.jsonl"])
    files.__enter__()
    (tmp_path / "gold.jsonl").write_text("incomplete")
    files.__exit__(KeyboardInterrupt, None, None)
    with files:
        (tmp_path / "gold.jsonl").write_text("complete")
    (tmp_path / ".karat-demo.json").write_text("[]")  # not a list of files: nothing is replaced
    with pytest.raises(karat.InputError), files:
        pass


@pytest.mark.parametrize(
    ("invoked", "on_path", "ways"),
    [
        ("bin/karat", "bin/karat", []),
        ("bin/karat", None, ["alias karat=HERE/bin/karat"]),
        ("bin/karat", "other/karat", ["alias karat=HERE/bin/karat"]),
        ("my venv/karat", None, [". 'my venv/activate'"]),
        ("karat/__main__.py", None, ["alias karat='PYTHON -m karat'"]),
        ("absent/karat", None, []),
    ],
)
def test_shell_is_told_where_karat_is_unless_it_finds_it(
    tmp_path, monkeypatch, invoked, on_path, ways
):
    monkeypatch.chdir(tmp_path)
    for path in ("bin/karat", "other/karat", "karat/__main__.py", "my venv/karat"):
        Path(path).parent.mkdir()
        Path(path).touch()
    Path("my venv/activate").touch()
    monkeypatch.setattr("shutil.which", lambda _: on_path)
    monkeypatch.setattr(sys, "argv", [invoked])
    monkeypatch.setattr(sys, "executable", "PYTHON")
    expected = [way.replace("HERE", str(tmp_path)) for way in ways]
    assert karat.cli.demo._ways_to_find_karat() == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("has_environment", [True, False])
def test_printed_lines_work_in_a_shell_that_does_not_find_karat(
    demo, tmp_path, monkeypatch, has_environment
):
    """Like `make demo`, which starts .venv/bin/karat: paste the lines into a shell."""
    program = tmp_path / "bin" / "karat"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m karat "$@"\n')
    program.chmod(0o755)
    if has_environment:
        program.with_name("activate").write_text(f'PATH="{program.parent}:$PATH"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bin/karat"])
    monkeypatch.setattr("shutil.which", lambda _: None)
    ways = karat.cli.demo._ways_to_find_karat()
    enter, command, *_ = demo.next_steps(ways)[2:]
    script = f"shopt -s expand_aliases\n{enter}\n{command}"
    shown = subprocess.run(
        ["bash", "-c", script], check=True, capture_output=True, text=True
    ).stdout
    assert "by difficulty" in shown


def test_file_in_place_of_the_folder_is_refused(command, tmp_path):
    (tmp_path / "file").write_text("")
    check_refused(command("demo", tmp_path / "file"), str(tmp_path / "file"))


def test_runs_without_a_difference_have_no_winner(tmp_path):
    gold = [{"query_id": "q1", "relevant": ["d"], "spans": [{"doc_id": "d", "start": 0, "end": 4}]}]
    gold[0]["evidence"] = ["text"]
    item = {"id": "d#0-4", "doc_id": "d", "start": 0, "end": 4, "text": "text"}
    record = {"query_id": "q1", "results": [item], "latency_ms": 1.0}
    runs = {"hybrid": karat.Run.of([record]), "dense": karat.Run.of([record])}
    comparison = karat.compare(gold, runs, MEASURES, level="doc")
    text = str(Demo(tmp_path, 1, comparison, None).document().sections[0])
    assert "No clear winner" in text
    assert "Too close to call: hybrid (100%) and dense (100%)." in text
