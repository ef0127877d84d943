"""The scripts in examples/ run, are short, and print what they are about."""

import runpy

import pytest

from support.paths import ROOT

EXAMPLES = ROOT / "examples"
PRINTED = {
    "own_function": ["evidence.coverage@1", "latency.p50"],
    "compare_chunkers": ["span.recall@2000c", "recursive-400"],
    "latex_table": [r"\begin{tabular}", "Hybrid"],
    "worst_queries": ["Why was my card charged twice?", "nDCG@10 of query q03"],
}
pytest_plugins = "pytester"


def test_every_script_is_tested_and_short():
    scripts = sorted(EXAMPLES.glob("*.py"))
    assert {path.stem for path in scripts} == {*PRINTED, "gate_in_tests"}
    assert max(len(path.read_text("utf-8").splitlines()) for path in scripts) < 60


@pytest.mark.filterwarnings("ignore::karat.KaratWarning")
@pytest.mark.parametrize("name", PRINTED)
def test_script_prints_its_result(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    for text in PRINTED[name]:
        assert text in out


def test_suite_of_gates_passes(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_gates=(EXAMPLES / "gate_in_tests.py").read_text("utf-8"))
    pytester.runpytest_inprocess().assert_outcomes(passed=13)
