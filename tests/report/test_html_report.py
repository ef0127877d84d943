"""The HTML report as written by the commands and by Python."""

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
from support.commands import check_refused
from support.errors import refused

EXAMPLES = Path(karat.__file__).parent / "examples"
GOLD = str(EXAMPLES / "support-faq.jsonl")
RUNS = [str(EXAMPLES / "bm25.run"), str(EXAMPLES / "hybrid.jsonl")]


def data(path: Path) -> dict[str, Any]:
    """Return the data of a page; `block` unpacks the blocks that it refers to."""
    (content,) = re.findall(r'<script type="application/json" id="page">(.*?)</script>', text(path))
    return json.loads(content)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def block(path: Path, number: int) -> bytes:
    (packed,) = re.findall(rf'<script type="text/plain" id="b{number}">(.*?)</script>', text(path))
    return gzip.decompress(base64.b64decode(packed))


def test_eval_writes_a_page_with_the_same_numbers_as_the_json(command, tmp_path: Path):
    page, scores = tmp_path / "report.html", tmp_path / "scores.json"
    code, _, err = command("eval", GOLD, *RUNS, "--per-query", "-o", str(page), "-o", str(scores))
    assert code == 0
    assert f"wrote {page}" in err
    document = json.loads(scores.read_text())
    shown = [float(value) for value in re.findall(r'data-value="([^"]+)"', text(page))]
    for run in document["runs"]:
        for measure in run["measures"].values():
            assert measure["value"] in shown
    packed = data(page)
    assert packed["runs"] == [run["name"] for run in document["runs"]]
    for at, run in enumerate(document["runs"]):
        for column, measure in enumerate(packed["measures"]):
            raw = block(page, packed["values"][at][column])
            values = struct.unpack(f"<{packed['n']}d", raw)
            assert list(values) == [row[measure["name"]] for row in run["per_query"]]


def test_compare_writes_a_page_of_differences(command, tmp_path: Path):
    page = tmp_path / "report.html"
    code, _, _ = command("compare", GOLD, *RUNS, "-m", "nDCG@10", "-o", str(page))
    assert code == 0
    assert 'id="pairs"' in text(page)
    assert "+0.085" in text(page)


def test_gate_writes_a_page_with_the_verdict(command, tmp_path: Path):
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
    assert "nDCG@10 is 0.900, 0.050 below 0.95" in text(page)
    assert data(page)["runs"] == ["bm25", "hybrid"]


@pytest.mark.usefixtures("without_charts")
def test_gate_page_shows_a_baseline_with_the_same_name_and_more_measures(tmp_path: Path):
    gold, page = {f"q{at}": [f"a{at}"] for at in range(5)}, tmp_path / "r.html"
    before = karat.evaluate(gold, gold | {"q2": ["x"]}, ["RR", "R@5"])
    karat.gate(gold, gold, {"R@5": {"max_drop": 0}}, baseline=before).report(page)
    assert data(page)["runs"] == ["run (baseline)", "run"]
    assert [measure["name"] for measure in data(page)["measures"]] == ["R@5"]


@pytest.mark.usefixtures("without_charts")
def test_gate_page_omits_a_baseline_with_other_queries(tmp_path: Path):
    fewer, page = {f"q{at}": [f"a{at}"] for at in range(5)}, tmp_path / "r.html"
    before, gold = karat.evaluate(fewer, fewer, "R@5"), fewer | {"q5": ["a5"]}
    verdict = karat.gate(gold, gold, {"R@5": {"max_drop": 0}}, baseline=before)
    verdict.report(page)
    assert data(page)["runs"] == ["run"]


def lists(path: Path) -> list[int]:
    """Return the length of the list of the first query in each run."""
    (listed,) = json.loads(block(path, data(path)["lists"]["blocks"][0]))
    return listed["n"]


def spanned(*starts: int) -> list[dict[str, Any]]:
    spans = [{"doc_id": "d", "start": start, "end": start + 5} for start in starts]
    return [{"query_id": "q1", "relevant": ["a"], "spans": spans}]


RUN = [{"query_id": "q1", "results": [{"id": "a", "doc_id": "d", "start": 0, "end": 9}]}]


@pytest.mark.usefixtures("without_charts")
def test_scores_with_different_measures_share_a_page(tmp_path: Path):
    more = karat.evaluate(spanned(0), RUN, ["RR", "span.recall@5"])
    less = karat.evaluate(spanned(0), RUN, ["RR"])
    karat.compare(None, {"more": more, "less": less}, ["RR"]).report(tmp_path / "r.html")
    assert lists(tmp_path / "r.html") == [1, 1]


@pytest.mark.usefixtures("without_charts")
def test_scores_against_another_gold_show_only_values(tmp_path: Path):
    one, other = (karat.evaluate(gold, RUN, ["RR"]) for gold in (spanned(0), spanned(0, 20)))
    karat.compare(None, {"one": one, "other": other}).report(tmp_path / "r.html")
    assert lists(tmp_path / "r.html") == [1, 0]


def test_error_of_a_gate_replaces_an_older_page(command, tmp_path: Path):
    page = tmp_path / "report.html"
    page.write_text("all is well")
    code, _, _ = command("gate", GOLD, RUNS[1], "--require", "R@10 max_drop 0.1", "-o", str(page))
    assert code == 2
    assert "max_drop" in text(page)
    assert "all is well" not in text(page)
    assert "<script" not in text(page)


@pytest.mark.usefixtures("without_charts")
def test_texts_are_kept_for_the_requested_number_of_queries(command, tmp_path: Path):
    page = tmp_path / "report.html"
    command("eval", GOLD, *RUNS, "-o", str(page), "--report-texts", "3")
    assert len(data(page)["details"]) == 3
    command("eval", GOLD, *RUNS, "-o", str(page))
    assert len(data(page)["details"]) == 12


@pytest.mark.usefixtures("without_charts")
def test_page_without_texts_contains_no_chunk(tmp_path: Path):
    gold = [{"query_id": "q1", "relevant": ["a"]}]
    run = [{"query_id": "q1", "results": [{"id": "a", "text": "a very secret text"}]}]
    scores = karat.evaluate(gold, run, "RR")

    def has_text(texts: int) -> bool:
        scores.report(tmp_path / "r.html", texts=texts)
        blocks = re.findall(r'<script type="text/plain" id="b(\d+)">', text(tmp_path / "r.html"))
        return any(b"very secret" in block(tmp_path / "r.html", int(n)) for n in blocks)

    assert has_text(1)
    assert not has_text(0)


def test_groups_are_the_requested_ones_or_all_fields_with_few_values(tmp_path: Path):
    scores = karat.evaluate(GOLD, RUNS[0], "RR")
    page = tmp_path / "r.html"
    scores.report(page)
    assert {"By category", "By difficulty"} <= set(
        re.findall(r"By (?:category|difficulty)", text(page))
    )
    scores.report(page, by="category")
    assert "By difficulty" not in text(page)
    scores.report(page, by=lambda query: query["difficulty"])
    assert "By difficulty" not in text(page)
    assert "<h3><bdi>By group</bdi></h3>" in text(page)


def test_fields_unsuitable_for_groups_are_skipped(tmp_path: Path):
    gold = [
        {"query_id": f"q{n}", "relevant": ["a"], "n": n % 2, "tags": [f"t{n % 2}"], "kind": n % 2}
        for n in range(4)
    ]
    karat.evaluate(gold, {"q0": ["a"]}, "RR").report(tmp_path / "r.html")
    assert set(re.findall(r"By (n|tags|kind)\b", text(tmp_path / "r.html"))) == {"kind"}


@pytest.mark.usefixtures("without_charts")
def test_page_shows_how_it_was_made(command, tmp_path: Path, monkeypatch):
    (tmp_path / "karat.toml").write_text('[conventions]\nmissing = "skip"\n')
    monkeypatch.chdir(tmp_path)
    code, _, _ = command("eval", GOLD, RUNS[0], "-o", "r.html")
    assert code == 0
    page = text(tmp_path / "r.html")
    for word in ("missing", "skip", "karat.toml", "bm25.run", karat.__version__, "20261115"):
        assert word in page
    assert re.search(r"karat eval .*-o r\.html", page)


@pytest.mark.usefixtures("without_charts")
def test_saved_scores_have_a_page_of_values(tmp_path: Path):
    karat.evaluate(GOLD, RUNS[0], ["RR", "R@10"]).write(tmp_path / "scores.json")
    karat.Scores.read(tmp_path / "scores.json").report(tmp_path / "r.html")
    packed = data(tmp_path / "r.html")
    assert packed["n"] == 12
    assert packed["details"] == {}


def test_unwritable_page_is_refused_before_anything_is_read(command, tmp_path: Path):
    page = tmp_path / "no" / "r.html"
    check_refused(command("eval", "nowhere.jsonl", RUNS[0], "-o", page), str(page))


def test_missing_altair_is_reported_with_the_install_command(command, tmp_path: Path, monkeypatch):
    from karat.report.page import scripts

    monkeypatch.setattr(scripts, "find_spec", lambda _: None)
    result = command("eval", GOLD, RUNS[0], "-o", str(tmp_path / "r.html"))
    check_refused(result, None, "altair", "pip install 'karat[report]'")
    assert not (tmp_path / "r.html").exists()


def test_negative_number_of_texts_is_refused(tmp_path: Path):
    with refused(path=None, field="texts"):
        karat.evaluate({"q": ["a"]}, {"q": ["a"]}).report(tmp_path / "r.html", texts=-1)


def test_run_that_changed_after_scoring_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("karat.data.run_source.CACHE_BYTES", 0)  # as if it were too large to keep
    run = tmp_path / "a.run"
    run.write_text("q1 Q0 a 1 2 r\nq1 Q0 b 2 1 r\n")
    scores = karat.evaluate({"q1": ["a"]}, run, "RR")
    run.write_text("q1 Q0 b 1 2 r\nq1 Q0 a 2 1 r\n")
    with refused(field="runs") as error:
        scores.report(tmp_path / "r.html")
    assert "'a'" in str(error.value)
    assert not (tmp_path / "r.html").exists()


def test_same_page_cannot_be_written_twice(command, tmp_path: Path):
    page = str(tmp_path / "r.html")
    check_refused(command("eval", GOLD, RUNS[0], "-o", page, "-o", page), page)
    assert not Path(page).exists()
