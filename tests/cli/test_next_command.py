"""The last line of eval, compare and gate is a command that can be run as it is printed."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat.measures.declare import REGISTRY

GOLD = [
    {"query_id": f"q{at}", "kind": ["even", "odd"][at % 2], "relevant": {"a": 2, "b": 1}}
    | {"spans": [{"doc_id": "d", "start": 0, "end": 30}]}
    | {"evidence": ["Refunds are paid within 14 days"]}
    for at in range(4)
]


def run(ranks):
    """Return lists in which the relevant item has these ranks."""
    text = "Refunds are paid within 14 days, to the card you paid with."
    found = {"id": "a", "doc_id": "d", "start": 5, "end": 64, "text": text, "tokens": 12}
    filler = {"doc_id": "e", "start": 0, "end": 9, "text": "Hello you", "tokens": 2}
    return [
        {"query_id": f"q{at}", "latency_ms": {"total": 3.0 + rank}}
        | {"calls": [{"stage": "retrieval", "model": "m", "price_per_call": 0.1 * rank}]}
        | {"results": [*(filler | {"id": f"x{i}"} for i in range(1, rank)), found]}
        for at, rank in enumerate(ranks)
    ]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    karat.Run.of(run([1, 2, 4, 2]), name="old").write("old.jsonl")
    karat.Run.of(run([3, 1, 3, 2]), name="new").write("new.jsonl")
    return tmp_path


def advice(err):
    """Return the words of the command that is advised."""
    last = err.splitlines()[-1]
    assert last.startswith("next: karat ")
    return shlex.split(last.removeprefix("next: karat "))


def test_after_one_run_its_worst_query_is_explained(command, files):
    code, _, err = command("eval", "gold.jsonl", "old.jsonl", "-m", "RR,P@1")
    assert code == 0
    assert " ".join(advice(err)) == "explain RR --gold gold.jsonl --run old.jsonl --query q2"
    code, out, _ = command(*advice(err))
    assert code == 0
    assert "RR = 0.25\n" in out


def test_where_less_is_better_the_worst_is_the_highest(command, files):
    _, _, err = command("eval", "gold.jsonl", "new.jsonl", "-m", "latency.mean")
    assert advice(err)[-1] == "q0"


def test_a_query_without_a_value_is_not_the_worst(command, files):
    Path("some.run").write_text("q1 Q0 b 1 1 t\n")
    words = ("eval", "gold.jsonl", "some.run", "-m", "RR", "--missing", "skip")
    _, _, err = command(*words)
    assert advice(err)[6:] == ["--query", "q1", "--missing", "skip"]
    Path("none.run").write_text("q1 Q0 x 1 1 t\n")
    code, _, err = command("eval", "gold.jsonl", "none.run", "-m", "FirstRelevant")
    assert code == 0
    assert "next:" not in err


@pytest.mark.parametrize("name", REGISTRY)
def test_whatever_was_measured_can_be_explained(command, files, name):
    Path("chunks.csv").write_text("item_id,doc_id,start,end\na,d,5,64\nx1,e,0,9\n")
    measure = f"{name}@0.5" if name == "IPrec" else name
    words = ("gold.jsonl", "old.jsonl", "-m", measure, "--chunks", "chunks.csv")
    code, _, err = command("eval", *words)
    assert code == 0
    assert command(*advice(err))[0] == 0
    code, _, err = command("compare", "gold.jsonl", "new.jsonl", *words[1:])
    assert code == 0
    if "next:" in err:  # runs may be the same by a measure
        assert command(*advice(err))[0] == 0


def test_after_several_runs_they_are_compared_in_the_same_way(command, files):
    words = ["gold.jsonl", "old.jsonl", "new.jsonl", "-m", "RR", "-m", "P@1,R@2", "--by", "kind"]
    further = ["--preset", "benchmark", "--top-k", "2", "--format", "jsonl", "--unjudged", "skip"]
    _, _, err = command("eval", *words, *further)
    told = advice(err)
    assert told[:4] == ["compare", *words[:3]]
    code, out, _ = command(*told)
    assert code == 0
    assert "conventions: duplicates=count, unjudged=skip\nlist: top_k=2\n" in out
    assert "new − old by kind" in out
    assert "R@2" in out


def test_after_a_comparison_the_query_that_moved_most_is_explained_in_both(command, files):
    for further in ([], ["--moved", "0"]):
        _, _, err = command("compare", "gold.jsonl", "old.jsonl", "new.jsonl", "-m", "RR", *further)
        # By reciprocal rank, q0 fell by 2/3, q1 rose by 1/2.
        assert " ".join(advice(err)) == (
            "explain RR --gold gold.jsonl --run old.jsonl --other new.jsonl --query q0"
        )
    code, out, _ = command(*advice(err))
    assert code == 0
    assert "old" in out
    assert "new" in out


def test_of_several_pairs_the_two_runs_furthest_apart_are_explained(command, files):
    karat.Run.of(run([9, 9, 9, 9]), name="bad").write("bad.jsonl")
    runs = ["old.jsonl", "new.jsonl", "bad.jsonl"]
    _, _, err = command("compare", "gold.jsonl", *runs, "-m", "RR")
    values = {name: karat.evaluate(GOLD, f"{name}.jsonl", "RR")["RR"] for name in ("old", "new")}
    furthest = max(values, key=values.get)
    assert advice(err)[4:8] == ["--run", f"{furthest}.jsonl", "--other", "bad.jsonl"]


def test_nothing_is_advised_where_lists_are_not_at_hand_or_nothing_moved(command, files):
    karat.evaluate("gold.jsonl", "old.jsonl", "RR").write("saved.json")
    _, _, err = command("compare", "gold.jsonl", "saved.json", "new.jsonl", "-m", "RR")
    assert "next:" not in err
    Path("same.jsonl").write_text(Path("old.jsonl").read_text().replace('"old"', '"same"'))
    _, _, err = command("compare", "gold.jsonl", "old.jsonl", "same.jsonl", "-m", "RR")
    assert "next:" not in err


def test_saved_scores_among_runs_are_passed_over(command, files):
    karat.evaluate("gold.jsonl", karat.Run.of(run([9] * 4), name="bad"), "RR").write("bad.json")
    _, _, err = command("compare", "gold.jsonl", "bad.json", "old.jsonl", "new.jsonl", "-m", "RR")
    assert advice(err)[4:8] == ["--run", "old.jsonl", "--other", "new.jsonl"]
    assert command(*advice(err))[0] == 0


def test_after_a_gate_that_failed_the_query_to_blame_is_explained(command, files):
    words = ("gate", "gold.jsonl", "new.jsonl")
    code, _, err = command(*words, "--require", "RR >= 0.9")
    assert code == 1
    assert " ".join(advice(err)) == "explain RR --gold gold.jsonl --run new.jsonl --query q0"
    assert command(*advice(err))[0] == 0
    karat.Run.of(run([9, 1, 1, 1]), name="first").write("first.jsonl")
    drop = ("gate", "gold.jsonl", "first.jsonl", "--require", "latency.mean max_rise 0.0 strict")
    code, _, err = command(*drop, "--baseline", "old.jsonl")
    assert code == 1
    assert advice(err)[4:] == ["--run", "old.jsonl", "--other", "first.jsonl", "--query", "q0"]
    assert command(*advice(err))[0] == 0
    karat.evaluate("gold.jsonl", "old.jsonl", "latency.mean").write("old.json")
    code, _, err = command(*drop, "--baseline", "old.json")
    assert advice(err)[4:] == ["--run", "first.jsonl", "--query", "q0"]
    code, _, err = command(*words, "--require", "RR >= 0.1")
    assert (code, err) == (0, "")


def test_what_a_preset_the_environment_or_a_file_said_is_said_again(command, files, monkeypatch):
    Path("karat.toml").write_text('[conventions]\nmissing = "skip"\n')
    monkeypatch.setenv("RAG_TOP_K", "3")
    words = ("eval", "gold.jsonl", "old.jsonl", "--preset", "coverage", "-m", "evidence.RR")
    _, told, err = command(*words, "--missing", "zero")
    assert advice(err)[-4:] == ["--missing", "zero", "--top-k", "3"]
    monkeypatch.delenv("RAG_TOP_K")
    _, out, _ = command(*advice(err))
    assert "list: top_k=3" in out
    assert "list: top_k=3" in told
    _, _, err = command(*words[:-4], "--preset", "benchmark", "--duplicates", "first")
    assert advice(err)[-2:] == ["--duplicates", "first"]
    _, _, err = command(*words[:-4], "--preset", "benchmark", "-c", "karat.toml")
    assert advice(err)[-4:] == ["--config", "karat.toml", "--duplicates", "count"]


def test_flags_are_repeated_as_they_were_given(command, files):
    flags = (
        "--level doc --score-threshold -0.5 --fuzzy-threshold 0.9 --matcher partial "
        "--direction either --casefold --nfkc --zero-width --gold-format jsonl --format csv"
    )
    Path("odd.txt").write_text("query_id,item_id,doc_id,score\nq1,b,b,1\nq2,c,c,1\n")
    code, _, err = command("eval", "gold.jsonl", "odd.txt", "-m", "RR", *flags.split())
    assert code == 0
    assert " ".join(advice(err)[8:]) == flags
    assert command(*advice(err))[0] == 0


def test_names_that_a_shell_would_take_apart_are_quoted(command, files):
    query = "it's $HOME; `ls` -x"
    karat.Gold.of([{"query_id": query, "relevant": ["a"]}]).write("a gold.jsonl")
    line = json.dumps({"query_id": query, "results": [{"id": "a"}]})
    Path("-my run*.jsonl").write_text(line)
    code, _, err = command("eval", "a gold.jsonl", "--", "-my run*.jsonl")
    assert code == 0
    assert advice(err)[-1] == query
    assert command(*advice(err))[0] == 0
    Path("other.jsonl").write_text(line)
    _, _, err = command("eval", "a gold.jsonl", "other.jsonl", "--", "-my run*.jsonl")
    assert command(*advice(err))[0] == 0


def test_a_command_that_would_move_the_cursor_is_not_printed(command, files):
    karat.Gold.of({"q\x1b[2J": ["a"]}).write("gold.jsonl")
    karat.Run.of({"q\x1b[2J": ["b"]}).write("old.jsonl")
    code, _, err = command("eval", "gold.jsonl", "old.jsonl", "-m", "NumRet")
    assert code == 0
    assert "next:" not in err
    assert "\x1b" not in err


def test_a_pipe_cannot_be_read_again(files):
    words = f"{sys.executable} -m karat eval gold.jsonl <(cat old.jsonl) -m RR"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
    assert "RR" in done.stdout
    assert done.stderr == ""


def test_json_has_no_advice(command, files):
    assert command("eval", "gold.jsonl", "old.jsonl", "--json")[2] == ""
    assert command("compare", "gold.jsonl", "old.jsonl", "new.jsonl", "--json")[2] == ""
    assert command("gate", "gold.jsonl", "old.jsonl", "--require", "RR > 1", "--json")[2] == ""


def test_a_gate_that_failed_fails_even_if_nobody_reads(files):
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
