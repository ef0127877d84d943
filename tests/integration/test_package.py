"""The wheel contains the documentation and the example data, also if it is built from the sdist."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from support.paths import ROOT

uv = pytest.importorskip("uv")


def test_wheel_has_all_pages_and_example_files(tmp_path):
    build = [uv.find_uv_bin(), "build", "--quiet", "--out-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True)  # makes an sdist, and the wheel from it
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name: archive.read(name) for name in archive.namelist()}
    docs = ROOT / "docs"
    pages = {path.relative_to(docs): path for path in [*docs.rglob("*.md"), *docs.glob("faq/*")]}
    pages[Path("handbook/gold.jsonl")] = docs / "handbook" / "gold.jsonl"
    for name, path in pages.items():
        assert shipped[f"karat/docs/{name.as_posix()}"] == path.read_bytes()
    assert not any(name.endswith(".png") for name in shipped)
