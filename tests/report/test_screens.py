"""What each command shows in a terminal, at 80 and 120 columns, compared with golden screens.

`make messages` (KARAT_UPDATE=1) rewrites tests/golden/screens_*.txt. The escape character is
written as ␛ there.
"""

import io
import math
import os
import pty
import shlex
import subprocess
import sys

import pytest

from karat.cli.main import main
from support.golden import check_golden
from support.paths import GOLDEN
from support.screen_data import write_all

FAQ = "faq/support-faq.jsonl faq/bm25.run faq/hybrid.jsonl"
FIVE = "five/gold.jsonl " + " ".join(f"five/run-{n}.jsonl" for n in range(5))
TWENTY = "twenty/gold.jsonl " + " ".join(f"twenty/run-{n}.jsonl" for n in range(20))
SPANS = "spans/gold.jsonl spans/small.jsonl spans/large.jsonl"
MEASURES = "-m nDCG@10 -m R@5 -m RR"
COMMANDS = [
    "eval faq/support-faq.jsonl faq/hybrid.jsonl",
    f"eval {FAQ} --by category",
    "eval faq/support-faq.jsonl faq/hybrid.jsonl -m RR --per-query --median",
    f"compare {FAQ} --by category",
    f"compare {FAQ} -m nDCG@10 --wide --difference 0.05",
    "gate faq/support-faq.jsonl faq/bm25.run --require 'nDCG@10>=0.9' --require 'R@10>=0.5'",
    "gate faq/support-faq.jsonl faq/hybrid.jsonl --require 'R@10>=0.5'",
    "gate faq/support-faq.jsonl faq/hybrid.jsonl --baseline faq/bm25.run "
    "--require 'nDCG@10 max_drop 0.02'",
    "explain nDCG@3 --gold faq/support-faq.jsonl --run faq/bm25.run --query q09",
    "explain nDCG@3 --gold faq/support-faq.jsonl --run faq/bm25.run --other faq/hybrid.jsonl "
    "--query q09",
    "explain AP",
    "validate faq/support-faq.jsonl",
    "measures mrr",
    f"eval {FIVE} {MEASURES}",
    f"compare {FIVE} {MEASURES}",
    f"compare {FIVE} {MEASURES} --baseline run-0",
    f"compare {FIVE} -m nDCG@10 --all-pairs",
    f"compare {TWENTY} {MEASURES}",
    f"eval {SPANS}",
    f"compare {SPANS} -m span.recall@1",
    "eval spans/evidence.jsonl spans/small.jsonl",
    "validate spans/gold.jsonl --corpus spans/corpus",
    "locate spans/evidence.jsonl --corpus spans/corpus",
    "eval live/gold.jsonl live/run.jsonl -m RR -m latency.p50 -m latency.p99 -m cost.mean",
    "eval reranked/gold.jsonl reranked/long.jsonl -m nDCG@10",
    "compare reranked/gold.jsonl reranked/long.jsonl reranked/short.jsonl -m nDCG@10 --moved 0",
    "history history",
    "history history -m nDCG@10,RR --by commit",
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def screen(command: str, monkeypatch) -> str:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(sys, "argv", ["karat", *shlex.split(command)])
    # On a busy machine, a step may take long enough for a bar.
    monkeypatch.setattr("karat.cli.progress.SECONDS_BEFORE_BAR", math.inf)
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    assert code in (0, 1), err.getvalue()
    text = out.getvalue() + err.getvalue()
    return f"$ karat {command}\n{text}".replace("\x1b", "␛")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("screens")
    write_all(folder)
    return folder


@pytest.mark.parametrize("width", [80, 120])
def test_screens_are_those_of_the_golden_file(folder, width, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(width))
    screens = [screen(command, monkeypatch) for command in COMMANDS]
    monkeypatch.undo()
    check_golden(GOLDEN / f"screens_{width}.txt", "\n".join(screens))


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width):
    text = (GOLDEN / f"screens_{width}.txt").read_text(encoding="utf-8")
    for block in text.split("$ karat ")[1:]:
        command, *lines = block.splitlines()
        if "--wide" in command:
            continue
        for line in lines:
            plain = _without_escapes(line)
            # Commands to copy are not broken, and messages are wrapped by the terminal.
            if not plain.startswith(("next: ", "warning: ")):
                assert len(plain) <= width, line


def _without_escapes(line: str) -> str:
    parts = line.split("␛")
    return parts[0] + "".join(part.partition("m")[2] for part in parts[1:])


@pytest.mark.parametrize(("runs", "most"), [(FIVE, 60), (TWENTY, 120)])
def test_comparison_of_many_runs_fits_a_screen(folder, runs, most, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    shown = screen(f"compare {runs} {MEASURES}", monkeypatch)
    monkeypatch.undo()
    assert len(shown.splitlines()) <= most


def _in_pty(words: list[str], folder, **environment: str) -> str:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "karat", *words],
        cwd=folder,
        stdout=follower,
        stderr=follower,
        env=os.environ | environment,
    )
    os.close(follower)
    text = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the other end was closed
            break
        if not data:
            break
        text += data
    os.close(leader)
    process.wait()
    return text.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
def test_real_terminal_shows_colours_and_no_color_is_respected(folder):
    words = ["gate", "faq/support-faq.jsonl", "faq/bm25.run", "--require", "nDCG@10>=0.9"]
    environment = {"TERM": "xterm-256color", "COLUMNS": "80", "NO_COLOR": ""}
    os.environ.pop("NO_COLOR", None)
    environment.pop("NO_COLOR")
    coloured = _in_pty(words, folder, **environment)
    assert "\x1b[1;31mbm25 failed 1 of 1 threshold" in coloured
    plain = _in_pty(words, folder, **environment, NO_COLOR="1")
    assert "\x1b" not in plain
    assert "bm25 failed 1 of 1 threshold" in plain
