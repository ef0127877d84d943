"""Gates in a test suite: assert_gate, and the pytest plugin that reports on them."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

import karat
from karat.testing import assert_gate
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
