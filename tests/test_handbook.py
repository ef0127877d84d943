"""The handbook and its golden set: the quotes are in the pages, at the stored offsets."""

import importlib.util
import json
import re
import shutil

import pytest

import karat
from support.paths import ROOT

HANDBOOK = ROOT / "docs" / "handbook"


@pytest.fixture(scope="module")
def tool():
    path = ROOT / "tools" / "build_handbook_gold.py"
    spec = importlib.util.spec_from_file_location("build_handbook_gold", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copied(tmp_path):
    return shutil.copytree(HANDBOOK, tmp_path / "handbook")


def records():
    return [json.loads(line) for line in (HANDBOOK / "gold.jsonl").read_text("utf-8").splitlines()]


def test_gold_is_made_from_questions_and_pages(tool):
    made = tool.gold_text()
    assert (HANDBOOK / "gold.jsonl").read_text("utf-8") == made, "run tools/build_handbook_gold.py"


def test_text_of_each_span_is_in_its_page_at_its_offsets():
    spans = [span for record in records()[1:] for span in record.get("spans", ())]
    assert spans
    for span in spans:
        page = (HANDBOOK / span["doc_id"]).read_bytes().decode()
        assert page[span["start"] : span["end"]] == span["text"]


def test_questions_are_enough_and_of_all_kinds():
    questions = records()[1:]
    assert len(questions) >= 80
    kinds = {"factual", "conceptual", "code lookup", "troubleshooting"}
    assert {question["type"] for question in questions} == kinds
    assert {question["difficulty"] for question in questions} == {"easy", "medium", "hard"}
    assert 3 <= sum(question.get("answerable") is False for question in questions) <= 15


def test_output_of_every_example_is_checked():
    """test_docs.py compares what python and console blocks print; no other block is output."""
    for page in HANDBOOK.glob("*.md"):
        text = page.read_text("utf-8")
        output = re.compile(r"^```python\n.*?^```(\n\n```text\n.*?^```)?", re.M | re.S)
        assert set(re.findall(r"^```(.+)$", output.sub("", text), re.M)) <= {"console"}, page


def test_golden_set_is_valid(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    for page in HANDBOOK.glob("*.md"):
        shutil.copy(page, pages)
    validation = karat.validate(HANDBOOK / "gold.jsonl", corpus=pages)
    assert [finding.as_dict() for finding in validation.findings] == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"quotes": [{"doc_id": "ndcg.md", "text": "no such words"}]}, "found it 0 times"),
        ({"quotes": [{"doc_id": "ndcg.md", "text": "e"}]}, "expected this text once"),
        ({"quotes": [{"doc_id": "absent.md", "text": "e"}]}, "no page 'absent.md'"),
        ({"relevant": {"absent.md": 1}}, "no page 'absent.md'"),
        ({"relevant": {"index.md": 1}}, "quoted but not listed"),
        ({"quotes": []}, "no quotes"),
        ({"answerable": False}, "must not have quotes"),
        ({"query_id": "q002"}, "duplicate query_id 'q002'"),
    ],
)
def test_wrong_question_is_an_error_with_its_line(tool, copied, changes, problem):
    path = copied / "questions.jsonl"
    lines = path.read_text("utf-8").splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | changes)
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(SystemExit) as caught:
        tool.gold_text(copied)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert problem in str(caught.value)
