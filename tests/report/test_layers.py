"""Results are rendered by karat.report, which is loaded when something is shown."""

import subprocess
import sys

import pytest

import karat
from karat import report
from karat.evaluation.result import Result

MODULES = "print(*sorted(m for m in sys.modules if m.startswith(('karat.report', 'polars.dataf'))))"


def loaded_after(code):
    words = [sys.executable, "-c", f"import sys\n{code}\n{MODULES}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def test_evaluating_dicts_loads_nothing_of_report():
    code = "import karat\nkarat.evaluate({'q': {'a': 1}}, {'q': {'a': 0.5}}, ['RR']).summary()"
    assert not [name for name in loaded_after(code) if name.startswith("karat.report")]


def test_importing_report_loads_no_renderer_and_no_polars():
    assert loaded_after("import karat.report") == ["karat.report"]


@pytest.mark.parametrize(
    "render",
    [
        report.text,
        lambda result: report.write(result, "x.json"),
        lambda result: report.write_page(result, "x.html"),
        lambda result: report.plot(result, "values"),
    ],
)
def test_unknown_result_is_refused(render):
    with pytest.raises(TypeError, match="Result"):
        render(Result())


def test_every_public_result_inherits_from_result():
    names = ("Scores", "Comparison", "Verdict", "Explanation", "Validation", "Location")
    assert all(issubclass(getattr(karat, name), Result) for name in names)
