"""The script that draws charts is bundled once and kept in the cache folder."""

from __future__ import annotations

import pytest

from karat.report.page import scripts

vl_convert = pytest.importorskip("vl_convert")


@pytest.fixture
def bundles(monkeypatch):
    made = []

    def bundle(snippet):
        made.append(snippet)
        return f"/* ü */ {snippet}\r\n"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    scripts.vega_script.cache_clear()
    yield made
    scripts.vega_script.cache_clear()


def test_script_is_bundled_once_for_many_processes(bundles, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = scripts.vega_script()
    scripts.vega_script.cache_clear()  # as in another process
    assert scripts.vega_script() == first
    assert len(bundles) == 1


def test_cache_folder_that_cannot_be_written_is_no_error(bundles, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert scripts.vega_script() == scripts.vega_script()
    assert len(bundles) == 1
