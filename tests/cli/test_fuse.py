"""`karat fuse`: what it writes, prints and refuses."""

import json
import re

import pytest

import karat
from karat.data.fusion import METHODS, NORMALIZATIONS
from support.paths import ROOT


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with gold and two runs; the dense run lacks a query."""
    monkeypatch.chdir(tmp_path)
    with open("gold.qrels", "w") as gold, open("bm25.run", "w") as bm25:
        for n in range(10):
            gold.write(f"q{n} 0 a 1\n")
            bm25.write(f"q{n} Q0 a 1 2.5 bm25\nq{n} Q0 b 2 2.0 bm25\n")
    with open("dense.jsonl", "w") as dense:
        for n in range(9):
            results = [{"id": "b", "score": 0.9}, {"id": "a", "score": 0.8}]
            dense.write(json.dumps({"query_id": f"q{n}", "results": results}) + "\n")
    return tmp_path


@pytest.mark.parametrize("page", ["help", "documentation"])
def test_methods_and_normalizations_are_listed(command, page):
    text = command("fuse", "--help")[1]
    if page == "documentation":
        text = (ROOT / "docs" / "fusion.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[\w-]+", text))
    assert {*METHODS, *NORMALIZATIONS} <= words


def test_fused_run_is_written_and_described(command, folder):
    code, out, err = command("fuse", "bm25.run", "dense.jsonl", "-o", "fused.jsonl")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["bm25", "10", "0", "20"] in lines
    assert ["dense", "9", "1", "18"] in lines
    assert "run 'dense' lacks 1 of 10 queries: 'q9'" in err
    assert "wrote fused.jsonl" in err
    assert karat.Run.read("fused.jsonl").settings == {
        "method": "rrf",
        "k": 60,
        "runs": ["bm25", "dense"],
    }


def test_file_is_that_of_python_byte_for_byte(command, folder):
    words = ["bm25.run", "dense.jsonl", "--method", "weighted", "--weights", "0.7,0.3"]
    assert command("fuse", *words, "-o", "one.jsonl", "-o", "two.jsonl")[0] == 0
    with pytest.warns(karat.KaratWarning, match="lacks"):
        fused = karat.fuse(["bm25.run", "dense.jsonl"], "weighted", weights=[0.7, 0.3])
    fused.write("three.jsonl")
    content = (folder / "one.jsonl").read_bytes()
    assert content == (folder / "two.jsonl").read_bytes() == (folder / "three.jsonl").read_bytes()


def test_tuned_file_is_the_same_byte_for_byte_with_the_same_seed(command, folder):
    words = ["fuse", "bm25.run", "dense.jsonl", "--tune", "gold.qrels", "--seed", "7", "-o"]
    assert command(*words, "one.jsonl")[:2] == command(*words, "two.jsonl")[:2]
    assert (folder / "one.jsonl").read_bytes() == (folder / "two.jsonl").read_bytes()


@pytest.mark.parametrize("target", ["fused.run", "fused.csv", "fused.parquet", "fused.jsonl.gz"])
def test_extension_decides_the_format(command, target):
    assert command("fuse", "bm25.run", "dense.jsonl", "-o", target, "--depth", "1")[0] == 0
    assert karat.Run.read(target).results.height == 10


def test_format_can_be_named(command, folder):
    words = ["-o", "fused.dat", "--to", "trec", "--name", "mine"]
    assert command("fuse", "bm25.run", "dense.jsonl", *words)[0] == 0
    assert (folder / "fused.dat").read_text().startswith("q0 Q0 b 1 ")
    assert (folder / "fused.dat").read_text().split()[5] == "mine"


def test_summary_as_json(command):
    code, out, _ = command("fuse", "bm25.run", "dense.jsonl", "-o", "fused.jsonl", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["settings"]["method"] == "rrf"
    assert document["runs"] == [
        {"name": "bm25", "queries": 10, "missing": 0, "results": 20},
        {"name": "dense", "queries": 9, "missing": 1, "results": 18},
    ]
    assert document["fused"] == {"name": "rrf(bm25,dense)", "queries": 10, "results": 20}


def test_tuning_prints_tuned_and_cross_validated_values(command, folder):
    words = ["bm25.run", "dense.jsonl", "--tune", "gold.qrels", "-m", "RR", "--folds", "2"]
    code, out, _ = command("fuse", *words, "--method", "weighted")
    assert code == 0
    assert "weighted, tuned" in out
    assert "weighted, cross-validated" in out
    assert "optimistic" in out
    assert not (folder / "fused.jsonl").exists()
    code, out, _ = command("fuse", *words, "--method", "weighted", "--json")
    document = json.loads(out)
    assert document["tuning"]["tuned"] == {"value": 1.0, "parameters": {"weights": [0.55, 0.45]}}
    assert document["tuning"]["cross_validated"]["value"] == 1.0


def test_tuning_uses_the_conventions_of_the_project(command, folder):
    (folder / "karat.toml").write_text('[conventions]\nmissing = "skip"\n')
    with open("gold.qrels", "a") as gold:
        gold.write("q99 0 a 1\n")
    words = ["fuse", "bm25.run", "dense.jsonl", "--tune", "gold.qrels", "-m", "RR", "--json"]
    code, out, err = command(*words)
    assert code == 0
    assert json.loads(out)["tuning"]["queries"] == 10
    assert "karat.toml" in err


@pytest.mark.parametrize(
    "words",
    [
        ["bm25.run", "-o", "fused.jsonl"],
        ["bm25.run", "dense.jsonl"],
        ["bm25.run", "dense.jsonl", "-o", "fused.unknown"],
        ["bm25.run", "dense.jsonl", "-o", "absent/fused.jsonl"],
        ["bm25.run", "dense.jsonl", "-o", "bm25.run"],
        ["bm25.run", "absent.run", "-o", "fused.jsonl"],
        ["bm25.run", "bm25.run", "-o", "fused.jsonl"],
        ["bm25.run", "dense.jsonl", "-o", "fused.jsonl", "--method", "rff"],
        ["bm25.run", "dense.jsonl", "-o", "fused.jsonl", "--weights", "a,b"],
        ["bm25.run", "dense.jsonl", "-o", "fused.jsonl", "--tune", "gold.qrels", "--k", "10"],
        ["bm25.run", "dense.jsonl", "-o", "fused.jsonl", "--tune", "gold.qrels", "--folds", "99"],
    ],
)
def test_error_has_exit_code_2_and_writes_nothing(command, folder, words):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = command("fuse", *words)
    assert (code, out) == (2, "")
    assert err.startswith(("error: ", "warning: "))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_tuning_stops_if_too_many_queries_of_a_run_failed(command, folder):
    error = {"type": "Timeout", "message": "slow", "attempts": 1}
    with open("failed.jsonl", "w") as failed:
        for n in range(10):
            line = {"query_id": f"q{n}", "results": [{"id": "a", "score": 0.5}]}
            if n == 3:
                line |= {"results": [], "error": error}
            failed.write(json.dumps(line) + "\n")
    words = ["fuse", "bm25.run", "failed.jsonl", "--tune", "gold.qrels", "-m", "RR"]
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert "--fail-on-error" in err
    assert command(*words, "--fail-on-error", "0.1")[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--seed", "0"),
        ("--folds", "5"),
        ("-m", "RR"),
        ("--fail-on-error", "1"),
        ("--gold-format", "trec"),
    ],
)
def test_option_of_tuning_without_tuning_is_an_error(command, folder, words):
    code, out, err = command("fuse", "bm25.run", "dense.jsonl", "-o", "fused.jsonl", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {words[0].replace('-m', '--measure')}: ")
    assert "--tune" in err
    assert not (folder / "fused.jsonl").exists()
