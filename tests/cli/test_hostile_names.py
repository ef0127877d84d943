"""Names and values of the input in messages and reports: no control characters, never long."""

import json
import re
from pathlib import Path

import pytest

PAYLOAD = "n\x1b]0;pwn\x07\x9b2J\x7f\u202e\u2066\u200f\u061c\u2028\u2029\r<b>"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LONG = "x" * 100_000
GOLD = {"query": "what?", "relevant": {"a": 1}, PAYLOAD: PAYLOAD, "kind": "k"}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = [f"{PAYLOAD}{number}" for number in range(12)]
    gold = [{"karat": 1, "kind": "gold", "name": PAYLOAD}, *({"query_id": i} | GOLD for i in ids)]
    write("gold.jsonl", gold)
    results = [{"id": "b" + PAYLOAD, "score": 1.0}, {"id": "a", "score": 2.0}]
    header = {"karat": 1, "kind": "run", "name": PAYLOAD}
    write("run.jsonl", [header, *({"query_id": i, "results": results} for i in ids)])
    header = {"karat": 1, "kind": PAYLOAD, "name": PAYLOAD}
    write("other.jsonl", [header, {"query_id": "q", "results": []}])
    Path("column.csv").write_text(f'query_id,"{PAYLOAD}"\nq1,a\n', newline="")
    Path("quoted.csv").write_text(f'query_id,item_id,score\nq1,a,"{PAYLOAD}"\n', newline="")
    Path("escapes.run").write_text("q\x1b[2J Q0 a\x9b 1 \x1b[1m t\n")
    Path("section.toml").write_text('["\\u001b]0;pwn\\u0007\\u202e"]\n')
    Path("measure.toml").write_text('[gate]\n"\\u001b[2J" = ">= 1"\n')
    Path("convention.toml").write_text('[conventions]\n"\\u001b[2J" = "\\u009b"\n')


def write(path: str, lines: list) -> None:
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    "words",
    [
        "eval gold.jsonl run.jsonl --per-query -o x.md",
        f"eval gold.jsonl run.jsonl --by {PAYLOAD} -o x.md",
        "eval gold.jsonl run.jsonl --by kinds",
        "eval gold.jsonl other.jsonl",
        "eval gold.jsonl column.csv",
        "eval column.csv run.jsonl",
        "eval gold.jsonl quoted.csv",
        "eval gold.jsonl escapes.run",
        "eval gold.jsonl run.jsonl --config section.toml",
        "eval gold.jsonl run.jsonl --config convention.toml",
        "gate gold.jsonl run.jsonl --config measure.toml",
        "gate gold.jsonl run.jsonl --require RR>=0.99 --require P@5>=0.9 -o x.md -o x.xml",
        "compare gold.jsonl run.jsonl run.jsonl -o x.md -o x.tex",
        "validate gold.jsonl run.jsonl",
        "explain RR --gold gold.jsonl --run run.jsonl",
        "convert gold.jsonl x.csv",
        "convert gold.jsonl x.qrels",
        "convert run.jsonl x.run",
        "convert other.jsonl x.run",
        "trec_eval escapes.run escapes.run",
    ],
)
def test_control_characters_reach_neither_messages_nor_reports(command, words):
    separated = ["RR >= 0.99" if w == "RR>=0.99" else w for w in words.split(" ")]
    separated = ["P@5 >= 0.9" if w == "P@5>=0.9" else w for w in separated]
    code, out, err = command(*separated)
    texts = {"stdout": out, "stderr": err}
    texts |= {path.name: path.read_text() for path in Path().glob("x.[mtx][dem]*")}
    assert code in (0, 1, 2)
    assert any(texts.values())
    assert {name: UNSAFE.findall(text) for name, text in texts.items()} == {
        name: [] for name in texts
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("twice.jsonl", f'{{"query_id": "{LONG}", "relevant": ["a"]}}\n' * 2),
        ("grade.qrels", f"q1 0 a {'9' * 5_000}\n"),
        ("grade.csv", f"query_id,item_id,grade\nq1,a,{LONG}\n"),
        ("column.csv", f"query_id,{LONG}\nq1,a\n"),
        ("key.json", f'{{"q1": {{"{LONG}": 1, "{LONG}": 2}}}}'),
        ("value.json", f'{{"q1": {{"a": "{LONG}"}}}}'),
        ("kind.jsonl", f'{{"karat": 1, "kind": "{LONG}"}}\n{{"query_id": "q", "relevant": []}}\n'),
    ],
)
def test_messages_shorten_long_values(command, name, content):
    Path(name).write_text(content)
    code, out, err = command("eval", name, "run.jsonl")
    assert (code, out) == (2, "")
    assert len(err) < 1_500
    assert "…" in err or LONG[:20] not in err


@pytest.mark.parametrize("threshold", [f"RR >= {'9' * 5_000}", f"{LONG} >= 1"])
def test_messages_shorten_long_thresholds(command, threshold):
    code, _, err = command("gate", "gold.jsonl", "run.jsonl", "--require", threshold)
    assert code == 2
    assert len(err) < 1_500
