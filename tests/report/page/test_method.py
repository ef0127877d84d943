"""The input files of scores, with size and digest."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import karat
from karat.report.options import ReportOptions
from karat.report.page.build import build_page, write
from karat.report.page.model import Input
from karat.report.page.sections.method import inputs, method_view, shareable_command

QRELS, RUN = "q1 0 a 1\nq2 0 b 1\n", "q1 Q0 a 1 0.5 r\nq2 Q0 x 1 0.5 r\n"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_files_are_named_with_size_and_digest(tmp_path: Path):
    gold, run = tmp_path / "gold.qrels", tmp_path / "bm25.run"
    gold.write_text(QRELS)
    run.write_text(RUN)
    assert inputs([karat.evaluate(gold, run)]) == [
        Input("gold", str(gold), len(QRELS), sha256(QRELS)),
        Input("run", str(run), len(RUN), sha256(RUN)),
    ]


def test_gold_of_several_runs_is_named_once(tmp_path: Path):
    gold = tmp_path / "gold.qrels"
    gold.write_text(QRELS)
    evaluator = karat.Evaluator(gold)
    scores = evaluator.all({"a": {"q1": ["a"]}, "b": {"q1": ["b"]}})
    assert [(source.role, source.name) for source in inputs(scores)] == [
        ("gold", str(gold)),
        ("run", "a"),
        ("run", "b"),
    ]


def test_inputs_in_memory_have_no_digest():
    scores = karat.evaluate({"q1": ["a"]}, {"q1": ["a"]}, corpus={"a": "text"})
    sources = inputs([scores])
    assert [source.role for source in sources] == ["gold", "corpus", "run"]
    assert all(source.sha256 is None and source.size is None for source in sources)


def test_every_file_of_a_glob_is_named(tmp_path: Path):
    for number, line in enumerate(RUN.splitlines(keepends=True)):
        (tmp_path / f"part-{number}.run").write_text(line)
    scores = karat.evaluate({"q1": ["a"], "q2": ["b"]}, str(tmp_path / "part-*.run"))
    names = [Path(source.name).name for source in inputs([scores]) if source.role == "run"]
    assert names == ["part-0.run", "part-1.run"]


def test_a_folder_has_one_digest_of_all_its_files(tmp_path: Path):
    corpus = tmp_path / "docs"
    (corpus / "deep").mkdir(parents=True)
    (corpus / "b.txt").write_text("two")
    (corpus / "deep" / "a.txt").write_text("one")
    scores = karat.evaluate({"q1": ["a"]}, {"q1": ["a"]}, corpus=corpus)
    (folder,) = [source for source in inputs([scores]) if source.role == "corpus"]
    listed = f"{sha256('two')}  b.txt\n{sha256('one')}  deep/a.txt\n"
    assert folder == Input("corpus", f"{corpus}/", 6, sha256(listed))


def test_a_file_that_is_gone_is_still_named(tmp_path: Path):
    run = tmp_path / "bm25.run"
    run.write_text(RUN)
    scores = karat.evaluate({"q1": ["a"]}, run)
    run.unlink()
    assert inputs([scores])[-1] == Input("run", str(run))


def test_saved_scores_and_settings_are_named(tmp_path: Path):
    karat.evaluate({"q1": ["a"]}, {"q1": ["a"]}).write(tmp_path / "scores.json")
    settings = tmp_path / "karat.toml"
    settings.write_text("")
    sources = inputs([karat.Scores.read(tmp_path / "scores.json")], settings=str(settings))
    assert [source.role for source in sources] == ["scores", "settings"]
    assert sources[0].sha256 == sha256((tmp_path / "scores.json").read_text())
    assert sources[1].sha256 == sha256("")


def test_paths_are_shown_by_their_last_parts(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    gold, one, two = tmp_path / "gold.qrels", tmp_path / "a" / "r.run", tmp_path / "b" / "r.run"
    gold.write_text(QRELS)
    one.write_text(RUN)
    two.write_text(RUN)
    scores = [karat.evaluate(gold, one), replace(karat.evaluate(gold, two), name="two")]
    page = build_page(scores)
    assert [row.name for row in method_view(page).inputs] == ["gold.qrels", "a/r.run", "b/r.run"]
    full = build_page(scores, options=ReportOptions(full_paths=True))
    assert [row.name for row in method_view(full).inputs] == [str(gold), str(one), str(two)]


def test_command_has_no_folders_and_no_secrets():
    words = ["karat", "eval", "/home/me/gold.qrels", "x=/srv/r.run", "--api-key", "s3cret"]
    assert shareable_command(words) == "karat eval gold.qrels x=r.run --api-key '***'"


def test_report_names_no_folder_of_its_inputs(tmp_path: Path):
    gold, run = tmp_path / "gold.qrels", tmp_path / "bm25.run"
    gold.write_text(QRELS)
    run.write_text(RUN)
    command = f"karat eval {gold} {run} -o {tmp_path}/report.html"
    page = build_page([karat.evaluate(gold, run)], options=ReportOptions(command=command))
    write(page, tmp_path / "report.html")
    assert str(tmp_path) not in (tmp_path / "report.html").read_text()
