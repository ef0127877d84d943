"""The examples on the pages about other libraries, which need these libraries."""

import pytest

import test_docs


@pytest.fixture
def not_compiled(monkeypatch):
    """Run the code of ranx as Python: compiling it takes more than a minute."""
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")  # of ranx
@pytest.mark.filterwarnings("ignore::karat.KaratWarning")  # as for a reader, not an error
@pytest.mark.parametrize("page", test_docs.NEEDING_PACKAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("not_compiled")
def test_examples_on_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch, capsys):
    test_docs.test_examples_on_page_run_and_print_what_it_shows(
        page, tmp_path, tmp_path / "cache", monkeypatch, capsys
    )
