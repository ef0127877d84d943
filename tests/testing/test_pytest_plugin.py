"""Gates in a test suite: assert_gate, and the pytest plugin that reports on them."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

import karat
from karat.testing import assert_gate, per_query
from support.errors import refused

pytest_plugins = "pytester"

GOLD = {"q1": ["a"], "q2": ["a"]}
SUITE = """
    from karat.testing import assert_gate

    GOLD = {"q1": ["a"], "q2": ["a"]}

    def test_good():
        assert_gate(GOLD, {"q1": ["a"], "q2": ["a"]}, "RR >= 1")

    def test_bad():
        assert_gate(GOLD, {"q1": ["a"], "q2": ["x", "a"]}, "RR >= 1")

    def test_unjudged():
        assert_gate(GOLD, {"q1": ["a"], "q2": ["a"]}, "RR max_drop 0.1")
"""


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch):
    """Run suites without the plugins of other packages, some of which take a second to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_passed_gate_returns_its_verdict():
    verdict = assert_gate(GOLD, {"q1": ["a"], "q2": ["a"]}, "RR >= 1", top_k=1)
    assert verdict.passed
    assert verdict.scored["settings"] == {"top_k": 1}


def test_failed_gate_raises_the_readable_verdict():
    run = {"q1": ["a"], "q2": ["x", "a"]}
    with pytest.raises(AssertionError) as error:
        assert_gate(GOLD, run, "RR >= 1")
    verdict = karat.gate(GOLD, run, "RR >= 1")
    assert str(error.value) == str(verdict)
    assert str(error.value).splitlines()[0] == verdict.summary == "run failed 1 of 1 threshold"
    assert str(error.value).endswith("lowest queries\nquery  value\nq2     0.500")


def test_gate_that_cannot_be_judged_raises_an_input_error():
    with refused(path=None, field="'RR max_drop 0.1'"):
        assert_gate(GOLD, GOLD, "RR max_drop 0.1")


def test_traceback_of_a_gate_that_cannot_be_judged_ends_in_the_test(pytester):
    result = run_suite(pytester, "-k", "unjudged")
    places = [line for line in result.outlines if re.search(r"\.py:\d", line)]
    assert places == ["test_gates.py:12: InputError"]


def run_suite(pytester, *options):
    pytester.makepyfile(test_gates=SUITE)
    return pytester.runpytest_inprocess("-p", "karat.testing.plugin", *options)


def test_report_lists_every_gate_with_its_test(pytester):
    result = run_suite(pytester, "--karat-report", "gates.json")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*lowest queries",
            "*query  value",
            "*q2     0.500",
            "karat: 3 gates, written to gates.json",
        ]
    )
    report = json.loads((pytester.path / "gates.json").read_text())
    assert report["passed"] is False
    assert [(gate["title"], gate["passed"]) for gate in report["gates"]] == [
        ("test_gates.py::test_bad", False),
        ("test_gates.py::test_good", True),
        ("test_gates.py::test_unjudged", None),
    ]


def test_report_may_be_junit_or_markdown(pytester):
    run_suite(pytester, "--karat-report", "gates.xml")
    suites = ElementTree.parse(pytester.path / "gates.xml").getroot()
    assert [suite.get("name") for suite in suites] == [
        "test_gates.py::test_bad",
        "test_gates.py::test_good",
        "test_gates.py::test_unjudged",
    ]
    run_suite(pytester, "--karat-report", "gates.md")
    assert "**❌ test_gates.py::test_bad: run failed 1 of 1 threshold**" in (
        (pytester.path / "gates.md").read_text()
    )


def test_several_reports_may_be_requested(pytester):
    result = run_suite(pytester, "--karat-report", "gates.xml", "--karat-report=gates.md")
    result.stdout.fnmatch_lines(["karat: 3 gates, written to gates.xml, gates.md"])
    assert (pytester.path / "gates.xml").exists()
    assert (pytester.path / "gates.md").exists()


def test_junit_has_times_and_values(pytester):
    run_suite(pytester, "--karat-report", "gates.xml")
    failed, passed, _ = ElementTree.parse(pytester.path / "gates.xml").getroot()
    for suite, value in ((failed, 0.75), (passed, 1.0)):
        case = suite.find("testcase")
        properties = {one.get("name"): one.get("value") for one in case.iter("property")}
        assert properties == {"value": repr(value), "queries": "2"}
        times = [float(case.get("time")) for case in suite.iter("testcase")]
        assert 0 <= float(suite.get("time")) < 60
        assert sum(times) == pytest.approx(float(suite.get("time")), abs=0.001 * len(times))


def test_html_report_of_one_gate_is_its_page(pytester):
    run_suite(pytester, "--karat-report", "gate.html", "-k", "good")
    page = (pytester.path / "gate.html").read_text()
    assert "test_gates.py::test_good" in page
    assert "RR" in page
    assert [path.name for path in pytester.path.glob("*.html")] == ["gate.html"]


def test_html_report_of_several_gates_links_to_their_pages(pytester):
    run_suite(pytester, "--karat-report", "gates.html")
    page = (pytester.path / "gates.html").read_text()
    assert "1 gate failed, 1 gate could not be decided of 3" in page
    links = re.findall(r'href="(gates[^"]*)"', page)
    assert links == ["gates-1.html", "gates-2.html", "gates-3.html"]
    for link, test in zip(links, ("test_bad", "test_good", "test_unjudged"), strict=True):
        assert f"test_gates.py::{test}" in (pytester.path / link).read_text()


def test_html_report_without_gates_says_so(pytester):
    run_suite(pytester, "--karat-report", "gates.html", "-k", "nothing")
    assert "No gate was asserted" in (pytester.path / "gates.html").read_text()


PER_QUERY = """
    from karat.testing import per_query

    GOLD = [
        {"query_id": "q1", "query": "refund", "relevant": ["a"]},
        {"query_id": "q2", "query": "invoice", "relevant": ["a"]},
        {"query_id": "q3", "query": "parcel", "relevant": []},
    ]
    CALLS = []

    def search(query):
        CALLS.append(query)
        return ["a"] if query == "refund" else ["x", "y", "a"]

    LIMITS = ["RR >= 0.5", "P@1 >= 0"]
    test_search = per_query(GOLD, search, LIMITS, conventions={"no_gold": "skip"})

    def test_each_query_was_run_once():
        assert sorted(CALLS) == ["invoice", "parcel", "refund"]
"""


def run_per_query(pytester, *options, suite=PER_QUERY):
    pytester.makepyfile(test_queries=suite)
    return pytester.runpytest_inprocess(*options)


def test_each_query_is_a_test(pytester):
    result = run_per_query(pytester, "-v", "--junitxml=junit.xml")
    result.assert_outcomes(passed=2, failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*::test_search[[]q1] PASSED*",
            "*::test_search[[]q2] FAILED*",
            "*::test_search[[]q3] SKIPPED*",
            "E *AssertionError: q2: RR is 0.333, 0.167 below 0.5",
            "    invoice",
            "*rank  item*",
        ]
    )
    cases = {
        case.get("name"): {
            one.get("name"): float(one.get("value")) for one in case.iter("property")
        }
        for case in ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    }
    assert cases["test_search[q1]"] == {"RR": 1.0, "P@1": 1.0}
    assert cases["test_search[q2]"] == {"RR": 1 / 3, "P@1": 0.0}
    assert cases["test_search[q3]"] == {}


def test_one_query_can_be_selected(pytester):
    result = run_per_query(pytester, "-k", "q2")
    result.assert_outcomes(failed=1, deselected=3)


def test_retriever_that_fails_is_run_once_for_all_tests(pytester):
    suite = """
        from karat.testing import per_query

        CALLS = []

        def search(query):
            CALLS.append(query)
            raise RuntimeError("the index is down")

        GOLD = [{"query_id": q, "query": q, "relevant": ["a"]} for q in ("q1", "q2")]
        test_search = per_query(GOLD, search, "RR >= 0.5", fail_on_error=0)
        """
    result = run_per_query(pytester, suite=suite)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E *RetrieverError: 2 of 2 queries failed*"])


@pytest.mark.parametrize("threshold", ["RR max_drop 0.1", {"by": {"a": {"b": {"RR": ">= 1"}}}}])
def test_threshold_that_is_not_about_one_query_is_refused(threshold):
    with pytest.raises(karat.InputError) as error:
        per_query(GOLD, GOLD, threshold)
    assert "assert_gate" in error.value.hint


def test_nothing_is_written_without_the_option(pytester):
    result = run_suite(pytester)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.no_fnmatch_line("karat:*")


def test_report_with_an_unknown_ending_is_a_usage_error(pytester):
    result = run_suite(pytester, "--karat-report", "gates.txt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--karat-report: gates.txt: *"])


def test_gates_of_xdist_workers_are_collected(pytester):
    pytest.importorskip("xdist")
    run_suite(pytester, "--karat-report", "alone.json")
    result = run_suite(pytester, "-p", "xdist", "-n", "2", "--karat-report", "shared.json")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["karat: 3 gates, written to shared.json"])
    alone, shared = (pytester.path / f"{name}.json" for name in ("alone", "shared"))
    assert alone.read_bytes() == shared.read_bytes()


def test_plugin_imports_nothing_heavy():
    check = (
        "import sys, karat.testing.plugin; from karat.testing import assert_gate; "
        "heavy = {'polars', 'numpy', 'msgspec', 'scipy', 'karat.report', 'karat.errors'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
