"""The scripts in examples/ run, are short, and print what they are about."""

import json
import re
import runpy

import pytest

from support.paths import ROOT

EXAMPLES = ROOT / "examples"
PRINTED = {
    "own_function": ["search: evidence.coverage@1 1.000", "latency.p50"],
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


@pytest.mark.filterwarnings("ignore::karat.KaratWarning")
def test_chunkers_are_compared_on_the_pages_and_questions_that_are_set(tmp_path, capsys):
    text = "Refunds are paid within 14 days.\n\nInvoices are sent by post."
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "faq.md").write_text(text)
    record = {"query_id": "q1", "query": "refunds", "relevant": ["faq.md"]}
    record["spans"] = [{"doc_id": "faq.md", "start": 0, "end": 32}]
    (tmp_path / "gold.jsonl").write_text(json.dumps(record))
    source = (EXAMPLES / "compare_chunkers.py").read_text("utf-8")
    paths = f"PAGES, GOLD = {str(tmp_path / 'pages')!r}, {str(tmp_path / 'gold.jsonl')!r}"
    source, n_set = re.subn("^PAGES, GOLD = .*$", paths, source, flags=re.MULTILINE)
    assert n_set == 1
    exec(source, {})
    assert "over 1 query" in capsys.readouterr().out


def test_suite_of_gates_passes(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_gates=(EXAMPLES / "gate_in_tests.py").read_text("utf-8"))
    pytester.runpytest_inprocess().assert_outcomes(passed=13)
