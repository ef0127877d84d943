"""`karat trec_eval` prints what trec_eval 10.0 printed for the same files, byte for byte.

golden/trec_eval holds small files of our own with the output of the original; its README documents
how they were made. For the runs in the shared data, digests of that output are compared. Where the
original itself is installed (`trec_eval` on the path, or the file that TREC_EVAL names), it is run
as well.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from karat.cli.main import main
from karat.compat.trec_eval import trec_eval
from support.errors import refused
from support.paths import GOLDEN as GOLDEN_FILES
from support.paths import SHARED_DATA

GOLDEN = GOLDEN_FILES / "trec_eval"
EXPECTED = sorted((GOLDEN / "expected").glob("*.txt"))
# Every flag, short and long, values in all forms, ids in any script, an error after some output.
THROUGH_THE_COMMAND_LINE = [
    *("all-trec-c-q", "combined", "long-flags", "long-flags-all", "no-flags", "n-alone"),
    *("documents", "zscores", "groups-level-most", "prefs-all-c", "missing", "missing-q"),
]


def read_expected(path: Path) -> tuple[list[str], bytes]:
    """Return the arguments, which are the first line, and what trec_eval printed for them."""
    arguments, _, printed = path.read_bytes().partition(b"\n")
    return arguments.decode().split(), printed


def ends_at_a_missing_topic(name: str) -> bool:
    return name.startswith("missing")


def find_original() -> str | None:
    """Return the path of trec_eval 10, if it is installed."""
    path = os.environ.get("TREC_EVAL") or shutil.which("trec_eval")
    if path is None:
        return None
    version = subprocess.run([path, "-v"], capture_output=True, text=True)
    return path if "version 10" in version.stdout + version.stderr else None


ORIGINAL = find_original()


def test_expected_outputs_are_complete():
    assert len(EXPECTED) == 59


@pytest.mark.parametrize("name", THROUGH_THE_COMMAND_LINE)
def test_command_prints_what_trec_eval_printed(name, monkeypatch, capsysbinary):
    monkeypatch.chdir(GOLDEN)
    arguments, expected = read_expected(GOLDEN / "expected" / f"{name}.txt")
    monkeypatch.setattr(sys, "argv", ["karat", "trec_eval", *arguments])
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    printed = capsysbinary.readouterr()
    assert printed.out == expected
    if ends_at_a_missing_topic(name):
        assert code == 2
        assert printed.err.startswith(b"error: run.txt: ")
        assert b"'miss'" in printed.err
        assert b"\n  hint: " in printed.err
    else:
        assert (code, printed.err) == (0, b"")


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.stem)
def test_function_writes_what_trec_eval_printed(path, monkeypatch):
    monkeypatch.chdir(GOLDEN)
    arguments, expected = read_expected(path)
    out = io.StringIO()
    if ends_at_a_missing_topic(path.stem):
        with refused(path="run.txt", line=None, field=None) as error:
            trec_eval(arguments, out)
        assert "'miss'" in str(error.value)
    else:
        trec_eval(arguments, out)
    assert out.getvalue().encode() == expected
    if ORIGINAL:
        done = subprocess.run([ORIGINAL, *arguments], capture_output=True)
        assert done.stdout == expected


@pytest.mark.parametrize("name", ["all-trec-c-q", "prefs-all-c", "groups-c", "zscores-c"])
def test_compression_and_white_space_change_nothing(name, tmp_path, monkeypatch):
    arguments, expected = read_expected(GOLDEN / "expected" / f"{name}.txt")
    for file in GOLDEN.glob("*.txt"):
        content = file.read_bytes().replace(b" ", b" \t ").replace(b"\n", b"\r\n\n")
        (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(content))
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    trec_eval([f"{a}.gz" if a.endswith(".txt") else a for a in arguments], out)
    assert out.getvalue().encode() == expected


def test_run_is_read_from_standard_input():
    arguments, expected = read_expected(GOLDEN / "expected" / "c-q.txt")
    words = "from karat.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", words, "trec_eval", *arguments[:-1], "-"],
        input=(GOLDEN / "run.txt").read_bytes(),
        cwd=GOLDEN,
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == expected


# Real runs

FLAGS = ["-q", "-c", "-m", "all_trec"]
DIGESTS = {
    "trec-dl19-passage": {
        "bm25base_p": "96620e313b63a855200fdd17f53c2e0a736204e23c5830b7877fee3ec3265ee8",
        "TUA1-1": "c30effa8c4c91eba2de9ccdd6999276368e43a41a8a40aa5f3e8e19721a1e4aa",
        "idst_bert_p1": "7cf9127945ffceea01bae6e835ecb8339c1a87342242b7e6f51211b080e67645",
        "ms_duet_passage": "df8d26b84a2a84dd81ee09aafdd8ccb23d8f0cd663902acead23e0190ae23264",
        "test1": "850155f7b504a5fd2d9ce435ab3c7ce9af7930f465cdc8848467b32157d1d888",
    },
    "trec-cast21-doc": {
        "org_convdr": "c8913dabb3dd4878d228845907239cd346ffcda4f9363e810dee6e57ae98f544",
        "org_convdr_bert": "0fb90551feb1366289c378c7c8eb7ebc9861bf294f1c9161667369114613b2f7",
        "org_manual_ance": "16f2fc1bb6878e13eae64342f25dcc2e7bed5db2c48be128783b776c342b1841",
        "org_manual_ance_bert": "a6bd75a00ef92873d97bb1aab71966e2be4316d6d4b303d1f9ecaafa80582ec3",
        "org_manual_bm25": "18f3ce86445ca580a6e7573d060b9f832072cf3fc8e9d5f740e681a900b4e61d",
    },
}
REAL = [(folder, run) for folder, digests in DIGESTS.items() for run in digests]


def arguments_of_real_run(folder: str, run: str) -> list[str]:
    """Return the arguments for a run; skip the test where the data is not available."""
    if not (SHARED_DATA / folder).is_dir():
        pytest.skip(f"the runs are not in {SHARED_DATA / folder}")
    return [
        *FLAGS,
        str(SHARED_DATA / folder / "qrels.txt"),
        str(SHARED_DATA / folder / "runs" / f"{run}.gz"),
    ]


@pytest.mark.parametrize(("folder", "run"), REAL)
def test_output_for_real_run_has_the_digest_of_what_trec_eval_printed(folder, run, tmp_path):
    arguments = arguments_of_real_run(folder, run)
    out = io.StringIO()
    trec_eval(arguments, out)
    if ORIGINAL:
        plain = tmp_path / "plain.run"
        plain.write_bytes(gzip.decompress(Path(arguments[-1]).read_bytes()))
        done = subprocess.run([ORIGINAL, *arguments[:-1], plain], capture_output=True)
        assert out.getvalue().encode() == done.stdout
    assert hashlib.sha256(out.getvalue().encode()).hexdigest() == DIGESTS[folder][run]
