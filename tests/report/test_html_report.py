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
from karat.format import file_size
from karat.report import page_files
from karat.report.options import ReportOptions
from karat.report.page import build, scripts
from karat.report.page.sections import card
from support.commands import check_refused
from support.errors import refused

EXAMPLES = Path(karat.__file__).parent / "docs" / "faq"
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
    assert 'id="comparison"' in text(page)
    (pair,) = data(page)["comparison"]["pairs"]
    assert f"{pair['differences'][0]['difference']:+.3f}" == "+0.085"


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


REPORTING = [
    ("eval", GOLD, *RUNS),
    ("compare", GOLD, *RUNS, "-m", "RR"),
    ("gate", GOLD, RUNS[0], "--require", "RR >= 0"),
]
"""The commands that write reports."""


@pytest.mark.parametrize("missing", ["altair", "jinja2", "vl_convert"])
@pytest.mark.parametrize("name", ["r.html", "card.png", "card.SVG"])
@pytest.mark.parametrize("words", REPORTING)
def test_missing_extra_is_reported_before_anything_is_read(
    words, name, missing, command, tmp_path: Path, monkeypatch
):
    installed = scripts.find_spec
    monkeypatch.setattr(
        scripts, "find_spec", lambda package: None if package == missing else installed(package)
    )
    words = [word if word != RUNS[0] else "nowhere.run" for word in words]
    check_refused(command(*words), None, "nowhere.run")
    monkeypatch.chdir(tmp_path)
    result = command(*words, "-o", name)
    check_refused(result, None, missing, "pip install 'karat[report]'")
    assert "nowhere" not in result[2]
    assert not (tmp_path / name).exists()
    with refused(path=None):
        karat.evaluate({"q": ["a"]}, {"q": ["a"]}).report(name)


def test_report_extra_lists_the_required_packages():
    lines = (Path(__file__).parents[2] / "pyproject.toml").read_text().splitlines()
    (extra,) = [line for line in lines if line.startswith("report = ")]
    assert all(package.replace("_", "-") in extra for package in scripts.REQUIRED)


@pytest.fixture
def cards(monkeypatch):
    """The titles and files of the cards that were written."""
    written = []

    def write(page, path):
        written.append((page, Path(path).name))
        Path(path).write_text("a picture")

    monkeypatch.setattr(card, "write_card", write)
    return written


@pytest.mark.usefixtures("without_charts")
@pytest.mark.parametrize("words", REPORTING)
def test_pictures_are_written_next_to_pages(words, command, tmp_path: Path, cards):
    names = ["a.png", "r.html", "B.SVG", "data.json"]
    outputs = [word for name in names for word in ("-o", tmp_path / name)]
    code, _, err = command(*words, *outputs)
    assert code == 0
    assert [name for _, name in cards] == ["a.png", "B.SVG"]
    assert cards[0][0] is cards[1][0]
    wrote = [line for line in err.splitlines() if line.startswith("wrote")]
    size = (tmp_path / "r.html").stat().st_size
    assert wrote == [
        f"wrote {tmp_path / 'data.json'}",
        f"wrote {tmp_path / 'a.png'}",
        f"wrote {tmp_path / 'r.html'} ({file_size(size)})",
        f"wrote {tmp_path / 'B.SVG'}",
    ]


def test_picture_in_python(tmp_path: Path, cards):
    gold = {"q1": ["a"], "q2": ["a"]}
    karat.evaluate(gold, gold, "RR").report(tmp_path / "a.png")
    karat.compare(gold, {"a": gold, "b": gold}, "RR").report(str(tmp_path / "b.svg"))
    karat.gate(gold, gold, "RR >= 0.5").report(tmp_path / "c.png")
    assert [name for _, name in cards] == ["a.png", "b.svg", "c.png"]
    with refused(path=tmp_path / "no" / "a.png"):
        karat.evaluate(gold, gold, "RR").report(tmp_path / "no" / "a.png")


def test_pictures_and_pages_are_written_once(command, tmp_path: Path):
    path = tmp_path / "a.png"
    check_refused(command("eval", GOLD, RUNS[0], "-o", path, "-o", path), str(path))


def test_error_of_a_gate_removes_an_older_picture(command, tmp_path: Path, cards):
    picture = tmp_path / "a.png"
    picture.write_text("all is well")
    words = ("gate", GOLD, RUNS[1], "--require", "R@10 max_drop 0.1", "-o", picture)
    assert command(*words)[0] == 2
    assert not picture.exists()
    assert command(*words)[0] == 2
    assert cards == []


@pytest.mark.usefixtures("without_charts")
def test_large_page_is_warned_about(command, tmp_path: Path, monkeypatch):
    page = tmp_path / "r.html"
    words = ("eval", GOLD, *RUNS, "-o", page)
    assert "warning" not in command(*words)[2]
    monkeypatch.setattr(page_files, "LARGE", 1000)
    code, _, err = command(*words)
    assert code == 0
    (line,) = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert str(page) in line
    assert "--report-texts" in line
    scores = karat.evaluate(GOLD, RUNS[0], "RR")
    with pytest.warns(karat.KaratWarning, match="texts") as caught:
        scores.report(page)
    assert caught[0].filename == __file__


def test_negative_number_of_texts_is_refused(tmp_path: Path):
    with refused(path=None, field="texts"):
        karat.evaluate({"q": ["a"]}, {"q": ["a"]}).report(tmp_path / "r.html", texts=-1)


@pytest.fixture
def options_used(monkeypatch):
    """The options of every page that is built."""
    used: list[ReportOptions] = []
    original = build.build_page

    def record(*arguments, **keywords):
        used.append(keywords["options"])
        return original(*arguments, **keywords)

    monkeypatch.setattr(build, "build_page", record)
    return used


@pytest.mark.usefixtures("without_charts")
@pytest.mark.parametrize("words", REPORTING)
def test_title_and_full_paths_are_options_of_the_report(words, command, tmp_path, options_used):
    page = str(tmp_path / "r.html")
    assert command(*words, "-o", page)[0] == 0
    assert command(*words, "-o", page, "--title", "Week 12", "--full-paths")[0] == 0
    assert [(used.title, used.full_paths) for used in options_used] == [
        (None, False),
        ("Week 12", True),
    ]


@pytest.mark.parametrize("words", REPORTING)
def test_empty_title_is_refused_before_anything_is_read(words, command, tmp_path):
    name, _, *more = words
    result = command(name, "nowhere.jsonl", *more, "-o", tmp_path / "r.html", "--title", " ")
    check_refused(result, "title")


@pytest.mark.usefixtures("without_charts")
def test_title_and_full_paths_in_python(tmp_path: Path, options_used):
    page, gold = tmp_path / "r.html", {"q1": ["a"], "q2": ["a"]}
    for result in (
        karat.evaluate(gold, gold, "RR"),
        karat.compare(gold, {"a": gold, "b": gold}, "RR"),
        karat.gate(gold, gold, "RR >= 0.5"),
    ):
        result.report(page)
        result.report(page, title="Week 12", full_paths=True)
        with refused(path=None, field="title"):
            result.report(page, title="")
    assert [(used.title, used.full_paths) for used in options_used] == [
        (None, False),
        ("Week 12", True),
    ] * 3


def test_title_of_a_gate_with_an_error(command, tmp_path: Path):
    page = tmp_path / "r.html"
    words = ("gate", GOLD, RUNS[1], "--require", "R@10 max_drop 0.1", "-o", page)
    assert command(*words, "--title", "Week 12")[0] == 2
    assert "Week 12" in text(page)


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
