"""`karat demo`: what it prints, what it writes, and what it never replaces."""

import hashlib
import importlib.util
import json
import shlex
import socket
import sys
from pathlib import Path

import pytest

import karat
import karat.cli.demo
import karat.demo
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
    *_, first, second, third = out.splitlines()
    return [shlex.split(line) for line in (first, second, third)]


def test_small_demo_prints_verdict_table_and_what_is_missing(
    command, small, offline, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("demo")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert len(lines) <= 20
    assert lines[0].startswith("Compared 3 ways to search ")
    assert any(line.startswith("Clear: bm25-") for line in lines)
    assert any(line.startswith("Too close to call: bm25-") for line in lines)
    assert any("pip install 'karat[dense]'" in line for line in lines)
    assert any("pip install 'karat[report]'" in line for line in lines)
    assert "file://" not in out
    assert not Path("karat-demo/report.html").exists()


def test_commands_that_the_demo_prints_work(command, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, out, _ = command("demo", "my demo")
    for words in printed_commands(out):
        assert words[0] == "karat"
        code, printed, err = command(*words[1:])
        assert code == 0, err
        assert printed
    assert Path("my demo/mine.jsonl").exists()


@pytest.mark.slow
def test_demo_with_all_extras(command, offline, tmp_path, monkeypatch):
    pytest.importorskip("wordllama")
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    code, out, err = command("demo", "--open")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert len(lines) == 20
    assert max(map(len, lines[:-5])) <= 80
    report = Path("karat-demo/report.html").resolve()
    assert f"Open {report.as_uri()}" in lines
    assert opened == [report.as_uri()]
    assert len(list(Path("karat-demo/runs").iterdir())) == 5
    for words in printed_commands(out):
        assert command(*words[1:])[0] == 0


@pytest.mark.slow
def test_one_difference_is_clear_and_one_is_not(tmp_path, without):
    pytest.importorskip("wordllama")
    without("jinja2")
    demo = build_demo(tmp_path)
    assert demo.p_of(demo.ranking[0], demo.clearly_worse[0]) < ALPHA
    assert demo.p_of(demo.ranking[0], demo.too_close[0]) > 0.2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(karat.demo, "find_spec", lambda _: None)
        demo = build_demo(folder)
    assert demo.p_of(demo.ranking[0], demo.clearly_worse[0]) < ALPHA
    assert demo.p_of(demo.ranking[0], demo.too_close[0]) > 0.2
    return folder


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


@pytest.mark.parametrize("name", ["gold.jsonl", "handbook/index.md", "runs/bm25-fixed.jsonl"])
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
    ("invoked", "on_path", "program"),
    [
        ("bin/karat", "bin/karat", "karat"),
        ("bin/karat", None, "bin/karat"),
        ("bin/karat", "other/karat", "bin/karat"),
        ("karat/__main__.py", None, f"{sys.executable} -m karat"),
        ("absent/karat", None, "karat"),
    ],
)
def test_commands_name_the_program_that_was_started(
    tmp_path, monkeypatch, invoked, on_path, program
):
    monkeypatch.chdir(tmp_path)
    for path in ("bin/karat", "other/karat", "karat/__main__.py"):
        Path(path).parent.mkdir()
        Path(path).touch()
    monkeypatch.setattr("shutil.which", lambda _: on_path)
    monkeypatch.setattr(sys, "argv", [invoked])
    assert karat.cli.demo._program() == program


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
