"""The examples on the pages about other libraries, which need these libraries."""

import pytest

import test_docs


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")  # of ranx
@pytest.mark.filterwarnings("ignore::karat.KaratWarning")  # as for a reader, not an error
@pytest.mark.parametrize("page", test_docs.NEEDING_PACKAGES, ids=lambda page: page.stem)
def test_examples_on_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch, capsys):
    test_docs.test_examples_on_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch, capsys)
