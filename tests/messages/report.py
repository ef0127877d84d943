"""Reports: files of scores, HTML pages, schemas."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from karat import compare, evaluate
from karat.evaluation.scores import Scores
from karat.report import verdict_files
from karat.report.page import build, scripts
from karat.report.page.pack import pack_queries
from karat.report.schemas import schema
from messages.cases import Section, written
from support.pages import a_page, some_queries

SECTION = Section("report")
case, file = SECTION.case, SECTION.file

GOLD = {"q1": ["a"], "q2": ["a"]}
RUN = {"q1": ["a"], "q2": ["x", "a"]}


def scores():
    return evaluate(GOLD, RUN, "RR")


case("scores are written with an unknown ending", lambda: scores().write("scores.docx"))
case("a page keeps texts of -1 queries", lambda: scores().report("page.html", texts=-1))
case("a page has an empty title", lambda: scores().report("page.html", title=" "))
case("a page is written twice", lambda: build.check(["page.html", "page.html"]))
case("a verdict is written twice", lambda: verdict_files.check(["a.md", "a.md"]))
case(
    "a page has other queries than its scores",
    lambda: pack_queries(a_page(replace(some_queries(), ids=some_queries().ids.reverse()))),
)
case("a schema is unknown", lambda: schema("nothing"))


def without_altair():
    with patch("karat.report.page.scripts.find_spec", return_value=None):
        scripts.check_installed()


def large_page():
    with (
        patch("karat.report.page_files.LARGE", 1000),
        patch("karat.report.page_files.file_size", return_value="20.1 MB"),
        patch("karat.report.page.html.charts", return_value=[]),
    ):
        scores().report("page.html")


case("a page is large", large_page)
case("the packages for HTML reports are not installed", without_altair)

# Saved scores

file("scores are in an unknown format", Scores.read, "scores.csv", "x\n")
file("a JSON file has no scores", Scores.read, "scores.json", "{}")
file(
    "a Parquet file has no scores",
    Scores.read,
    "scores.parquet",
    b"PAR1",
    volatile=r"(?<=saved scores \().*(?=\))",
)


def without_queries():
    evaluate(GOLD, RUN, "RR").write("scores.json")
    content = Path("scores.json").read_text(encoding="utf-8")
    Scores.read(written("old.json", content.replace('"per_query"', '"per"')))


def several(**how):
    compare(GOLD, {"old": RUN, "new": RUN}, "RR").write("both.json")
    Scores.read("both.json", **how)


case("a JSON file has no values of queries", without_queries)
case("a file has scores of several runs", several)
case("a run is not in a file of scores", lambda: several(run="other"))
