"""The HTML report as the commands and Python write it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.errors import InputError

EXAMPLES = Path(karat.__file__).parent / "examples"
GOLD = str(EXAMPLES / "support-faq.jsonl")
RUNS = [str(EXAMPLES / "bm25.run"), str(EXAMPLES / "hybrid.jsonl")]


def data(path: Path) -> dict[str, Any]:
    """Return the data of a page, its blocks unpacked on demand as by its own script."""
    (found,) = re.findall(r'<script type="application/json" id="page">(.*?)</script>', text(path))
    return json.loads(found)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def block(path: Path, number: int) -> bytes:
    (found,) = re.findall(rf'<script type="text/plain" id="b{number}">(.*?)</script>', text(path))
    return gzip.decompress(base64.b64decode(found))


def test_eval_writes_a_page_whose_numbers_are_those_of_the_json(command, tmp_path: Path):
    page, scores = tmp_path / "report.html", tmp_path / "scores.json"
    code, _, err = command("eval", GOLD, *RUNS, "--per-query", "-o", str(page), "-o", str(scores))
    assert code == 0
    assert f"wrote {page}" in err
    told = json.loads(scores.read_text())
    shown = [float(value) for value in re.findall(r'data-value="([^"]+)"', text(page))]
    for run in told["runs"]:
        for measure in run["measures"].values():
            assert measure["value"] in shown
    packed = data(page)
    assert packed["runs"] == [run["name"] for run in told["runs"]]
    for at, run in enumerate(told["runs"]):
        for column, measure in enumerate(packed["measures"]):
            raw = block(page, packed["values"][at][column])
            values = struct.unpack(f"<{packed['n']}d", raw)
            assert list(values) == [row[measure["name"]] for row in run["per_query"]]


def test_compare_writes_a_page_of_differences(command, tmp_path: Path):
    page = tmp_path / "report.html"
    code, _, _ = command("compare", GOLD, *RUNS, "-m", "nDCG@10", "-o", str(page))
    assert code == 0
    assert 'id="pairs"' in text(page)
    assert "+0.0848" in text(page)


def test_gate_writes_a_page_that_opens_with_the_verdict(command, tmp_path: Path):
    page = tmp_path / "report.html"
    code, _, err = command(
        "gate",
        GOLD,
        RUNS[1],
        "--baseline",
        RUNS[0],
        "--require",
        "nDCG@10 >= 0.95",
        "--require",
        "nDCG@10 max_drop 0.1",
        "-o",
        str(page),
    )
    assert code == 1
    assert f"wrote {page}" in err
    assert "nDCG@10 is 0.8999, 0.0501 below 0.95" in text(page)
    assert data(page)["runs"] == ["bm25", "hybrid"]


def test_a_gate_shows_a_baseline_of_the_same_name_and_of_more_measures(tmp_path: Path):
    gold, page = {"q1": ["a"], "q2": ["b"]}, tmp_path / "r.html"
    before = karat.evaluate(gold, {"q1": ["a"], "q2": ["x"]}, ["RR", "R@5"])
    karat.gate(gold, {"q1": ["a"], "q2": ["b"]}, {"R@5": {"max_drop": 0}}, baseline=before).report(
        page
    )
    assert data(page)["runs"] == ["run (baseline)", "run"]
    assert [measure["name"] for measure in data(page)["measures"]] == ["R@5"]


def test_a_gate_whose_baseline_has_other_queries_shows_the_run_alone(tmp_path: Path):
    gold, page = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}, tmp_path / "r.html"
    before = karat.evaluate({"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["b"]}, "R@5")
    verdict = karat.gate(gold, gold, {"R@5": {"max_drop": 0}}, baseline=before)
    verdict.report(page)
    assert data(page)["runs"] == ["run"]


def lists(path: Path) -> list[int]:
    """Return how long the list of the first query is in each run."""
    (listed,) = json.loads(block(path, data(path)["lists"]["blocks"][0]))
    return listed["n"]


def spanned(*starts: int) -> list[dict[str, Any]]:
    spans = [{"doc_id": "d", "start": start, "end": start + 5} for start in starts]
    return [{"query_id": "q1", "relevant": ["a"], "spans": spans}]


RUN = [{"query_id": "q1", "results": [{"id": "a", "doc_id": "d", "start": 0, "end": 9}]}]


def test_scores_of_other_measures_besides_stand_on_one_page(tmp_path: Path):
    more = karat.evaluate(spanned(0), RUN, ["RR", "span.recall@5"])
    less = karat.evaluate(spanned(0), RUN, ["RR"])
    karat.compare(None, {"more": more, "less": less}, ["RR"]).report(tmp_path / "r.html")
    assert lists(tmp_path / "r.html") == [1, 1]


def test_of_scores_against_another_gold_only_values_are_shown(tmp_path: Path):
    one, other = (karat.evaluate(gold, RUN, ["RR"]) for gold in (spanned(0), spanned(0, 20)))
    karat.compare(None, {"one": one, "other": other}).report(tmp_path / "r.html")
    assert lists(tmp_path / "r.html") == [1, 0]


def test_a_gate_that_cannot_be_judged_leaves_no_older_page(command, tmp_path: Path):
    page = tmp_path / "report.html"
    page.write_text("all is well")
    code, _, _ = command("gate", GOLD, RUNS[1], "--require", "R@10 max_drop 0.1", "-o", str(page))
    assert code == 2
    assert "max_drop needs a baseline" in text(page)
    assert "all is well" not in text(page)
    assert "<script" not in text(page)


def test_texts_are_kept_for_as_many_queries_as_asked(command, tmp_path: Path):
    page = tmp_path / "report.html"
    command("eval", GOLD, *RUNS, "-o", str(page), "--report-texts", "3")
    assert len(data(page)["details"]) == 3
    command("eval", GOLD, *RUNS, "-o", str(page))
    assert len(data(page)["details"]) == 12


def test_without_texts_no_chunk_is_in_the_file(tmp_path: Path):
    gold = [{"query_id": "q1", "relevant": ["a"]}]
    run = [{"query_id": "q1", "results": [{"id": "a", "text": "a very secret text"}]}]
    scores = karat.evaluate(gold, run, "RR")

    def held(texts: int) -> bool:
        scores.report(tmp_path / "r.html", texts=texts)
        blocks = re.findall(r'<script type="text/plain" id="b(\d+)">', text(tmp_path / "r.html"))
        return any(b"very secret" in block(tmp_path / "r.html", int(n)) for n in blocks)

    assert held(1)
    assert not held(0)


def test_groups_are_those_asked_for_or_every_field_of_few_values(tmp_path: Path):
    scores = karat.evaluate(GOLD, RUNS[0], "RR")
    page = tmp_path / "r.html"
    scores.report(page)
    assert {"by category", "by difficulty"} <= set(
        re.findall(r"by (?:category|difficulty)", text(page))
    )
    scores.report(page, by="category")
    assert "by difficulty" not in text(page)
    scores.report(page, by=lambda query: query["difficulty"])
    assert "by difficulty" not in text(page)
    assert "Groups by group" in text(page)


def test_fields_that_cannot_make_groups_keep_no_report_from_being_written(tmp_path: Path):
    gold = [
        {"query_id": f"q{n}", "relevant": ["a"], "n": n % 2, "tags": [f"t{n % 2}"], "kind": n % 2}
        for n in range(4)
    ]
    karat.evaluate(gold, {"q0": ["a"]}, "RR").report(tmp_path / "r.html")
    assert set(re.findall(r"by (n|tags|kind)\b", text(tmp_path / "r.html"))) == {"kind"}


def test_the_way_it_was_made_is_told(command, tmp_path: Path, monkeypatch):
    (tmp_path / "karat.toml").write_text('[conventions]\nmissing = "skip"\n')
    monkeypatch.chdir(tmp_path)
    code, _, _ = command("eval", GOLD, RUNS[0], "-o", "r.html")
    assert code == 0
    page = text(tmp_path / "r.html")
    for told in ("missing", "skip", "karat.toml", "bm25.run", karat.__version__, "20261115"):
        assert told in page
    assert re.search(r"karat eval .*-o r\.html", page)


def test_saved_scores_have_a_page_of_values(tmp_path: Path):
    karat.evaluate(GOLD, RUNS[0], ["RR", "R@10"]).write(tmp_path / "scores.json")
    karat.Scores.read(tmp_path / "scores.json").report(tmp_path / "r.html")
    packed = data(tmp_path / "r.html")
    assert packed["n"] == 12
    assert packed["details"] == {}


def test_what_keeps_a_page_from_being_written_is_said_before_scoring(command, tmp_path: Path):
    code, out, err = command("eval", GOLD, RUNS[0], "-o", str(tmp_path / "no" / "r.html"))
    assert (code, out) == (2, "")
    assert "the folder to write into does not exist" in err


def test_without_altair_the_remedy_is_named(command, tmp_path: Path, monkeypatch):
    from karat.report.page import scripts

    monkeypatch.setattr(scripts, "find_spec", lambda _: None)
    code, out, err = command("eval", GOLD, RUNS[0], "-o", str(tmp_path / "r.html"))
    assert (code, out) == (2, "")
    assert "pip install 'karat[report]'" in err
    assert not (tmp_path / "r.html").exists()


def test_a_negative_number_of_texts_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be kept"):
        karat.evaluate({"q": ["a"]}, {"q": ["a"]}).report(tmp_path / "r.html", texts=-1)


def test_a_run_that_changed_since_it_was_scored_is_refused(tmp_path: Path):
    run = tmp_path / "a.run"
    run.write_text("q1 Q0 a 1 2 r\nq1 Q0 b 2 1 r\n")
    scores = karat.evaluate({"q1": ["a"]}, run, "RR")
    run.write_text("q1 Q0 b 1 2 r\nq1 Q0 a 2 1 r\n")
    with pytest.raises(InputError, match="has changed since it was scored"):
        scores.report(tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_page_is_not_written_twice(command, tmp_path: Path):
    page = str(tmp_path / "r.html")
    code, out, err = command("eval", GOLD, RUNS[0], "-o", page, "-o", page)
    assert (code, out) == (2, "")
    assert "would be written twice" in err
