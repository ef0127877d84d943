"""`karat docs`: every page is listed and shown, and a misspelled topic gets a hint."""

import json
import re
import sys

import pytest

from karat import manual
from support.paths import ROOT

PAGES = sorted(
    str(path.relative_to(ROOT / "docs").with_suffix("")).removesuffix("/index")
    for path in (ROOT / "docs").rglob("*.md")
)


def test_every_page_is_a_topic():
    assert sorted(topic.name for topic in manual.topics()) == PAGES


def test_list_has_one_line_per_page(command):
    code, out, err = command("docs")
    assert (code, err) == (0, "")
    for name in PAGES:
        assert re.search(rf"^{re.escape(name)} +\S", out, re.MULTILINE), name


@pytest.mark.parametrize("name", ["chunks", "chunks.md", "Chunks"])
def test_page_is_printed_as_markdown_if_output_is_piped(command, name):
    code, out, _ = command("docs", name)
    assert code == 0
    assert out == (ROOT / "docs" / "chunks.md").read_text("utf-8")


def test_page_with_example_files_states_where_they_are(command):
    out = command("docs", "gates")[1]
    page = (ROOT / "docs" / "gates.md").read_text("utf-8")
    title, text = page.split("\n", 1)
    assert out.startswith(f"{title}\n\n> ")
    assert out.endswith(text)
    note = out.removeprefix(title).removesuffix(text)
    assert "`cp -r karat-demo/faq .`" in note
    assert manual.topic("history").text.count("karat-demo/faq") == 1
    assert "karat-demo/faq" not in manual.topic("howto/elasticsearch").text


def test_page_in_a_folder_is_found_by_its_last_name(command):
    assert command("docs", "ndcg")[1] == command("docs", "handbook/ndcg")[1]


def test_page_with_the_name_of_a_folder_is_its_index(command):
    assert command("docs", "handbook")[1] == (ROOT / "docs/handbook/index.md").read_text("utf-8")


def test_name_of_two_pages_is_refused_with_both(command, monkeypatch):
    monkeypatch.setattr(manual, "topic_names", lambda: ("a/ndcg", "b/ndcg"))
    code, _, err = command("docs", "ndcg")
    assert code == 2
    assert "a/ndcg, b/ndcg" in err


def test_misspelled_topic_gets_a_similar_one(command):
    code, out, err = command("docs", "gate")
    assert (code, out) == (2, "")
    assert "gates" in err
    assert "karat docs" in err


def test_search_lists_pages_that_contain_a_word(command):
    code, out, _ = command("docs", "--search", "NON-inferiority")
    assert code == 0
    assert "gates" in out
    assert "chunks" not in out


def test_search_without_result_is_an_error(command):
    assert command("docs", "--search", "zyzzyva")[0] == 2


def test_topic_and_search_cannot_be_combined(command):
    assert command("docs", "gates", "--search", "word")[0] == 2


def test_json_has_topics_or_a_page(command):
    listed = json.loads(command("docs", "--json")[1])["topics"]
    assert {"topic": "gates", "title": "Gates"} in listed
    assert sorted(entry["topic"] for entry in listed) == PAGES
    page = json.loads(command("docs", "gates", "--json")[1])
    assert page["title"] == "Gates"
    assert page["markdown"].startswith("# Gates")


def test_links_between_pages_become_commands_that_work():
    link = re.compile(r"\(`karat docs ([^`]+)`\)")
    found = 0
    for topic in manual.topics():
        for name in link.findall(topic.text_for_terminal):
            assert manual.topic(name).name == name
            found += 1
        left = re.findall(r"\]\(([^)#:]+)\.md[^)]*\)", topic.text_for_terminal)
        assert left == [], topic.name
    assert found > 100


def test_changelog_is_a_topic(command):
    assert command("docs", "changelog")[1] == (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_name_of_a_file_is_above_its_content_in_a_terminal():
    text = manual.topic("quickstart").text_for_terminal
    assert "\n`questions.csv`:\n\n```csv\nid,question,evidence\n" in text
    assert "title=" not in text


def test_picture_is_described_in_a_terminal():
    text = manual.topic("reading-the-report").text_for_terminal
    assert "*Picture: A list of queries with the value of each run.*" in text
    assert "![" not in text


def test_page_in_a_terminal_is_formatted(command, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    coloured = command("docs", "gates")[1]
    out = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert out != coloured  # headings are bold
    assert "](" not in out
    assert "karat docs conventions" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
