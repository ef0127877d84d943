"""The notebooks in examples/ run, and print what is stored in them."""

import os

import pytest

from support.paths import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def printed(notebook):
    """Return the text that each cell of code has printed or displayed."""
    return [
        [output.get("text") or output["data"]["text/plain"] for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def without_times(notebook):
    """Remove what differs each time from an executed notebook."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def test_there_are_two_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["compare_chunkers", "evaluate_a_run"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_what_it_stores(path, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    executed = nbformat.from_dict(stored)
    client = nbclient.NotebookClient(
        executed, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    if os.environ.get("KARAT_UPDATE"):
        nbformat.write(without_times(executed), path)
    else:
        assert printed(executed) == printed(stored)
    assert path.stat().st_size < 50_000
