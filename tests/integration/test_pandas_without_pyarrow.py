"""pandas without PyArrow, in an environment that has nothing else: frames are read as dicts are."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import importlib.util
import sys
import warnings

import numpy as np
import pandas as pd

import karat
from karat.data.frames import to_frame

assert importlib.util.find_spec("pyarrow") is None, "PyArrow is installed"
warnings.simplefilter("error")
gold = pd.DataFrame(
    {
        "query_id": [1, 1, 2],
        "item_id": pd.array([10, 20, 30], dtype="Int64"),
        "grade": [2.0, 0.0, 1.0],
        "kind": pd.Categorical(["x", "x", "y"]),
        "note": pd.array(["n", "n", None], dtype="string"),
    },
    index=[7, 7, 9],
)
run = pd.DataFrame({"qid": ["1", "1", "2"], "docno": ["20", "10", "40"], "score": [0.9, 0.8, 0.7]})
measures = ["nDCG@10", "RR", "R@10"]
scores = karat.evaluate(gold, run, measures)
expected = karat.evaluate(
    {"1": {"10": 2, "20": 0}, "2": {"30": 1}}, {"1": ["20", "10"], "2": ["40"]}, measures
)
assert dict(scores) == dict(expected), (scores, expected)
assert karat.Gold.of(gold).queries.rows() == [("1", "x", "n"), ("2", "y", None)]
lists = pd.DataFrame({"query_id": ["1"], "relevant": [np.array(["a", "b"])]})
assert karat.Gold.of(lists).judgments.rows() == [("1", "a", 1), ("1", "b", 1)]
mixed = pd.DataFrame(
    {
        "whole": pd.array([1, None], dtype="Int64"),
        "yes": pd.array([True, None], dtype="boolean"),
        "number": [1.5, float("nan")],
        "text": ["a", None],
    },
    index=pd.Index(["r", "s"], name="__index_level_0__"),
)
frame = to_frame(mixed)
assert frame.rows() == [(1, True, 1.5, "a"), (None, None, None, None)], frame
assert [str(kind) for kind in frame.dtypes] == ["Int64", "Boolean", "Float64", "String"], frame
for ids, problem in (([10.0, None], "10.0"), ([object(), "a"], "objects")):
    try:
        karat.Gold.of(pd.DataFrame({"query_id": ["1", "2"], "item_id": ids, "grade": [1, 1]}))
    except karat.InputError as error:
        assert problem in str(error), error
    else:
        raise AssertionError(ids)
print("read without PyArrow")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """Return the interpreter of an environment with what karat needs, and pandas."""
    place = tmp_path_factory.mktemp("pandas")
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    # This environment's pip installs into it, without compiling: half a minute less.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    interpreter = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet"]
    subprocess.run([*pip, "--no-compile", *needed, "pandas>=3"], check=True)
    return interpreter


def test_frames_of_pandas_are_read_without_pyarrow(python):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run(
        [python, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "read without PyArrow\n"), ended.stderr
