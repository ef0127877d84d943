"""The last line of eval, compare and gate is a suggested command that can be run as printed."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat.measures.registry import REGISTRY

GOLD = [
    {"query_id": f"q{at}", "kind": ["even", "odd"][at % 2], "relevant": {"a": 2, "b": 1}}
    | {"spans": [{"doc_id": "d", "start": 0, "end": 30}]}
    | {"evidence": ["Refunds are paid within 14 days"]}
    for at in range(5)
]


def run(ranks):
    """Return a run in which the relevant item has these ranks."""
    text = "Refunds are paid within 14 days, to the card you paid with."
    relevant = {"id": "a", "doc_id": "d", "start": 5, "end": 64, "text": text, "tokens": 12}
    filler = {"doc_id": "e", "start": 0, "end": 9, "text": "Hello you", "tokens": 2}
    return [
        {"query_id": f"q{at}", "latency_ms": {"total": 3.0 + rank}}
        | {"calls": [{"stage": "retrieval", "model": "m", "price_per_call": 0.1 * rank}]}
        | {"results": [*(filler | {"id": f"x{i}"} for i in range(1, rank)), relevant]}
        for at, rank in enumerate(ranks)
    ]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(run([1, 2, 4, 2, 2]), name="old").write("old.jsonl")
    karat.Run.of(run([3, 1, 3, 2, 2]), name="new").write("new.jsonl")
    return tmp_path


def suggestion(err):
    """Return the words of the suggested command."""
    last = err.splitlines()[-1]
    assert last.startswith("next: karat ")
    return shlex.split(last.removeprefix("next: karat "))


def test_eval_of_one_run_suggests_to_explain_its_worst_query(command, files):
    code, _, err = command("eval", "gold.jsonl", "old.jsonl", "-m", "RR,P@1")
    assert code == 0
    assert " ".join(suggestion(err)) == "explain RR --gold gold.jsonl --run old.jsonl --query q2"
    code, out, _ = command(*suggestion(err))
    assert code == 0
    assert "RR = 0.2500\n" in out


def test_worst_query_has_the_highest_value_where_lower_is_better(command, files):
    _, _, err = command("eval", "gold.jsonl", "new.jsonl", "-m", "latency.mean")
    assert suggestion(err)[-1] == "q0"


def test_query_without_a_value_is_not_the_worst(command, files):
    Path("some.run").write_text("q1 Q0 b 1 1 t\n")
    words = ("eval", "gold.jsonl", "some.run", "-m", "RR", "--missing", "skip")
    _, _, err = command(*words)
    assert suggestion(err)[6:] == ["--query", "q1", "--missing", "skip"]
    Path("none.run").write_text("q1 Q0 x 1 1 t\n")
    code, _, err = command("eval", "gold.jsonl", "none.run", "-m", "FirstRelevant")
    assert code == 0
    assert "next:" not in err


def measures():
    """Return every measure; all but one of each kind are marked as slow."""
    kinds, listed = set(), []
    for name, declaration in REGISTRY.items():
        kind = (
            declaration.family,
            declaration.cutoff,
            declaration.combine,
            declaration.higher_is_better,
            declaration.needs_chunks,
        )
        listed.append(pytest.param(name, marks=pytest.mark.slow if kind in kinds else []))
        kinds.add(kind)
    return listed


@pytest.mark.parametrize("name", measures())
def test_every_measure_can_be_explained_as_suggested(command, files, name):
    fillers = "".join(f"x{at},e,0,9\n" for at in (1, 2, 3))
    Path("chunks.csv").write_text(f"item_id,doc_id,start,end\na,d,5,64\n{fillers}")
    measure = f"{name}@0.5" if name == "IPrec" else name
    words = ("gold.jsonl", "old.jsonl", "-m", measure, "--chunks", "chunks.csv")
    code, _, err = command("eval", *words)
    assert code == 0
    assert command(*suggestion(err))[0] == 0
    code, _, err = command("compare", "gold.jsonl", "new.jsonl", *words[1:])
    assert code == 0
    if "next:" in err:  # both runs may have the same values
        assert command(*suggestion(err))[0] == 0


def test_eval_of_several_runs_suggests_to_compare_them_with_the_same_options(command, files):
    words = ["gold.jsonl", "old.jsonl", "new.jsonl", "-m", "RR", "-m", "P@1,R@2", "--by", "kind"]
    further = ["--preset", "benchmark", "--top-k", "2", "--format", "jsonl", "--unjudged", "skip"]
    _, _, err = command("eval", *words, *further)
    assert suggestion(err)[:4] == ["compare", *words[:3]]
    code, out, _ = command(*suggestion(err))
    assert code == 0
    assert "conventions: duplicates=count, unjudged=skip\nlist: top_k=2\n" in out
    assert "new − old by kind" in out
    assert "R@2" in out


def test_compare_suggests_to_explain_the_query_that_moved_most(command, files):
    for further in ([], ["--moved", "0"]):
        _, _, err = command("compare", "gold.jsonl", "old.jsonl", "new.jsonl", "-m", "RR", *further)
        # By reciprocal rank, q0 fell by 2/3, q1 rose by 1/2.
        assert " ".join(suggestion(err)) == (
            "explain RR --gold gold.jsonl --run old.jsonl --other new.jsonl --query q0"
        )
    code, out, _ = command(*suggestion(err))
    assert code == 0
    assert "old" in out
    assert "new" in out


def test_compare_suggests_the_two_runs_furthest_apart(command, files):
    karat.Run.of(run([9] * 5), name="bad").write("bad.jsonl")
    runs = ["old.jsonl", "new.jsonl", "bad.jsonl"]
    _, _, err = command("compare", "gold.jsonl", *runs, "-m", "RR")
    values = {name: karat.evaluate(GOLD, f"{name}.jsonl", "RR")["RR"] for name in ("old", "new")}
    furthest = max(values, key=values.get)
    assert suggestion(err)[4:8] == ["--run", f"{furthest}.jsonl", "--other", "bad.jsonl"]


def test_compare_suggests_nothing_for_saved_scores_or_equal_runs(command, files):
    karat.evaluate("gold.jsonl", "old.jsonl", "RR").write("saved.json")
    _, _, err = command("compare", "gold.jsonl", "saved.json", "new.jsonl", "-m", "RR")
    assert "next:" not in err
    Path("same.jsonl").write_text(Path("old.jsonl").read_text().replace('"old"', '"same"'))
    _, _, err = command("compare", "gold.jsonl", "old.jsonl", "same.jsonl", "-m", "RR")
    assert "next:" not in err


def test_suggestion_skips_saved_scores_among_runs(command, files):
    karat.evaluate("gold.jsonl", karat.Run.of(run([9] * 5), name="bad"), "RR").write("bad.json")
    _, _, err = command("compare", "gold.jsonl", "bad.json", "old.jsonl", "new.jsonl", "-m", "RR")
    assert suggestion(err)[4:8] == ["--run", "old.jsonl", "--other", "new.jsonl"]
    assert command(*suggestion(err))[0] == 0


def test_failed_gate_suggests_to_explain_the_query_to_blame(command, files):
    words = ("gate", "gold.jsonl", "new.jsonl")
    code, _, err = command(*words, "--require", "RR >= 0.9")
    assert code == 1
    assert " ".join(suggestion(err)) == "explain RR --gold gold.jsonl --run new.jsonl --query q0"
    assert command(*suggestion(err))[0] == 0
    karat.Run.of(run([9, 1, 1, 1, 1]), name="first").write("first.jsonl")
    drop = ("gate", "gold.jsonl", "first.jsonl", "--require", "latency.mean max_rise 0.0 strict")
    code, _, err = command(*drop, "--baseline", "old.jsonl")
    assert code == 1
    assert suggestion(err)[4:] == ["--run", "old.jsonl", "--other", "first.jsonl", "--query", "q0"]
    assert command(*suggestion(err))[0] == 0
    karat.evaluate("gold.jsonl", "old.jsonl", "latency.mean").write("old.json")
    code, _, err = command(*drop, "--baseline", "old.json")
    assert suggestion(err)[4:] == ["--run", "first.jsonl", "--query", "q0"]
    _, _, err = command(*words, "--require", "RR >= 0.9", "--preset", "benchmark")
    assert suggestion(err)[-4:] == ["--query", "q0", "--preset", "benchmark"]
    assert "duplicates=count" in command(*suggestion(err))[1]
    code, _, err = command(*words, "--require", "RR >= 0.1")
    assert (code, err) == (0, "")


def test_settings_from_presets_environment_and_files_are_repeated(command, files, monkeypatch):
    Path("karat.toml").write_text('[conventions]\nmissing = "skip"\n')
    monkeypatch.setenv("RAG_TOP_K", "3")
    words = ("eval", "gold.jsonl", "old.jsonl", "--preset", "coverage", "-m", "evidence.RR")
    _, scored, err = command(*words, "--missing", "zero")
    assert suggestion(err)[-4:] == ["--preset", "coverage", "--missing", "zero"]
    _, out, _ = command(*suggestion(err))
    assert "list: top_k=3" in out
    assert "list: top_k=3" in scored
    _, _, err = command(*words[:-4], "--preset", "benchmark", "--duplicates", "first")
    assert suggestion(err)[-4:] == ["--preset", "benchmark", "--duplicates", "first"]
    _, out, _ = command(*suggestion(err))
    assert "duplicates=count" not in out
    _, _, err = command(*words[:-4], "--preset", "benchmark", "-c", "karat.toml")
    assert suggestion(err)[-4:] == ["--preset", "benchmark", "--config", "karat.toml"]
    _, out, _ = command(*suggestion(err))
    assert "duplicates=count" in out


def test_flags_are_repeated_unchanged(command, files):
    flags = (
        "--level doc --score-threshold -0.5 --gold-format jsonl --format csv --fuzzy-threshold 0.9 "
        "--matcher partial --direction either --casefold --nfkc --zero-width"
    )
    Path("odd.txt").write_text("query_id,item_id,doc_id,score\nq1,b,b,1\nq2,c,c,1\n")
    code, _, err = command("eval", "gold.jsonl", "odd.txt", "-m", "RR", *flags.split())
    assert code == 0
    assert " ".join(suggestion(err)[8:]) == flags
    assert command(*suggestion(err))[0] == 0


def test_names_with_special_characters_are_quoted_for_the_shell(command, files):
    query = "it's $HOME; `ls` -x"
    karat.Gold.of([{"query_id": query, "relevant": ["a"]}]).write("a gold.jsonl")
    line = json.dumps({"query_id": query, "results": [{"id": "a"}]})
    Path("-my run*.jsonl").write_text(line)
    code, _, err = command("eval", "a gold.jsonl", "--", "-my run*.jsonl")
    assert code == 0
    assert suggestion(err)[-1] == query
    assert command(*suggestion(err))[0] == 0
    Path("other.jsonl").write_text(line)
    _, _, err = command("eval", "a gold.jsonl", "other.jsonl", "--", "-my run*.jsonl")
    assert command(*suggestion(err))[0] == 0


def test_suggestion_with_control_characters_is_not_printed(command, files):
    karat.Gold.of({"q\x1b[2J": ["a"]}).write("gold.jsonl")
    karat.Run.of({"q\x1b[2J": ["b"]}).write("old.jsonl")
    code, _, err = command("eval", "gold.jsonl", "old.jsonl", "-m", "NumRet")
    assert code == 0
    assert "next:" not in err
    assert "\x1b" not in err


def test_suggestion_with_a_very_long_id_is_not_printed(command, files):
    query = "q" * 3000
    karat.Gold.of({query: ["a"]}).write("gold.jsonl")
    karat.Run.of({query: ["b"]}).write("old.jsonl")
    code, _, err = command("eval", "gold.jsonl", "old.jsonl", "-m", "RR")
    assert code == 0
    assert "next:" not in err


def test_nothing_is_suggested_for_input_from_a_pipe(files):
    words = f"{sys.executable} -m karat eval gold.jsonl <(cat old.jsonl) -m RR"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
    assert "RR" in done.stdout
    assert "\x1b" not in done.stdout  # to a pipe, plain text
    assert done.stderr == ""


def test_nothing_is_suggested_with_json_output(command, files):
    assert command("eval", "gold.jsonl", "old.jsonl", "--json")[2] == ""
    assert command("compare", "gold.jsonl", "old.jsonl", "new.jsonl", "--json")[2] == ""
    assert command("gate", "gold.jsonl", "old.jsonl", "--require", "RR > 1", "--json")[2] == ""


def test_failed_gate_fails_even_if_its_output_is_not_read(files):
    words = [sys.executable, "-m", "karat", "gate", "gold.jsonl", "old.jsonl"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [*words, "--require", "RR >= 0.99"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=buffered,
    )
    process.stdout.close()
    process.communicate(timeout=60)
    assert process.returncode != 0
