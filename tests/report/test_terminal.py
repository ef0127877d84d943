"""What a terminal shows in addition to plain text: bars, bold and colour; piped output has none."""

import io
import os
import pty
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karat.report.bars import ValueBar
from rich.cells import cell_len as cell_width

import karat
from karat.measures.registry import REGISTRY
from support.effort import examples

GOLD = {f"q{at:02}": {"a": 2, "b": 1} for at in range(12)}
OLD = {query: ["x", "a", "b"] for query in GOLD}
NEW = {query: ["a", "b"] for query in GOLD} | {"q00": ["x", "x2", "a"]}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
shares = st.floats(0, 1)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.json")
    karat.Run.of(OLD).write("old.run")
    karat.Run.of(NEW).write("new.run")
    return tmp_path


class Screen(io.TextIOWrapper):
    """A standard output that claims to be a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(command, monkeypatch):
    """Run karat in this process as if in a terminal; return what it printed."""

    def run(*words, columns=80, encoding="utf-8", **variables):
        screen = Screen(io.BytesIO(), encoding=encoding)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", screen)
            for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
                patch.delenv(name, raising=False)
            for name, value in {"COLUMNS": columns, "TERM": "xterm", **variables}.items():
                patch.setenv(name, str(value))
            assert command(*words)[0] == 0
        screen.flush()
        return screen.buffer.getvalue().decode(encoding)

    return run


def in_pseudo_terminal(*words):
    """Run karat as a process in a terminal; return what it printed to standard output."""
    ours, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "karat", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=inherited | {"COLUMNS": "80", "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait() == 0
    return shown.decode().replace("\r\n", "\n")


def slow_bar(low, value, high, width):
    """Look at each cell by itself, as the legend describes it: solid, shaded, light, empty."""
    cells = []
    eighths = round(value * width * 8)
    for at in range(width):
        filled = min(max(eighths - 8 * at, 0), 8)
        middle = at + 0.5
        if filled == 8:
            cells.append("█" if middle <= low * width else "▓")
        elif filled:
            cells.append(" ▏▎▍▌▋▊▉"[filled])
        else:
            cells.append("░" if middle <= high * width else "·")
    return "".join(cells)


@given(st.lists(shares, min_size=3, max_size=3).map(sorted), st.integers(4, 8))
def test_bar_shows_the_value_and_its_interval(ends, width):
    bar = ValueBar(tuple(ends), best=False).bar(width)
    assert bar == slow_bar(*ends, width)
    assert len(bar) == width


def test_bar_is_clipped_to_0_and_1():
    assert ValueBar((-2.0, 1.5, 3.0), best=False).bar(4) == "▓▓▓▓"
    assert ValueBar((0.0, 0.0, 0.0), best=False).bar(4) == "····"
    assert ValueBar((1.0, 1.0, 1.0), best=False).bar(4) == "████"


records = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), min_size=1, max_size=6)


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # about ids not in the run
@examples(30, 300)
@given(
    st.lists(records, min_size=1, max_size=4),
    st.lists(st.permutations("abcdefgh"), min_size=4, max_size=4),
    st.integers(1, 8),
)
def test_measures_with_bars_lie_between_0_and_1(gold, lists, length):
    judged = {f"q{at}": grades for at, grades in enumerate(gold)}
    run = {f"q{at}": ranked[:length] for at, ranked in enumerate(lists[: len(gold)])}
    names = [
        f"{name}@0.5" if name == "IPrec" else name
        for name, declaration in REGISTRY.items()
        if declaration.family == "rank" and declaration.bounded
    ]
    assert len(names) > 20
    scored = karat.evaluate(judged, run, names).per_query.drop("query_id")
    for column in scored:
        assert all(-1e-9 <= value <= 1 + 1e-9 for value in column.drop_nulls()), column.name


def test_terminal_shows_bars_and_the_best_in_bold(terminal, files):
    words = ("eval", "gold.json", "old.run", "new.run", "-m", "RR,Hits@2", "--no-intervals")
    shown = terminal(*words)
    plain = ESCAPE.sub("", shown)
    lines = [line for line in plain.splitlines() if " at most " not in line]
    rows = {line.split()[0]: line.split() for line in lines if line.strip()}
    assert rows["RR"] == ["RR", "0.5000", "████····", "0.9444", "███████▌", "12"]
    assert rows["Hits@2"][1:3] == ["1", "1.8333"]  # a count has no bar
    assert "\x1b[1m0.9444\x1b[0m" in shown
    assert "\x1b[1m0.5000\x1b[0m" not in shown
    assert "bars: 0 to 1, the confidence interval is shaded\n" in plain


@pytest.mark.parametrize(("columns", "cells"), [(40, 0), (46, 4), (48, 6), (52, 8)])
def test_bars_shrink_or_disappear_in_a_narrow_terminal(terminal, files, columns, cells):
    shown = terminal("eval", "gold.json", "new.run", "-m", "RR", columns=columns)
    table = ESCAPE.sub("", shown).split("bars:")[0]
    bar = re.search("[█▓░·▏▎▍▌▋▊▉]+", table)
    assert (len(bar[0]) if bar else 0) == cells
    assert table.count("measure") == 1
    assert max(map(cell_width, table.splitlines()[:6])) <= columns


@pytest.mark.parametrize("count", [3, 6])
def test_bars_do_not_split_a_table(terminal, files, count):
    runs = [f"a-rather-long-name-of-run-{at}.run" for at in range(count)]
    for at, path in enumerate(runs):
        karat.Run.of(NEW if at % 2 else OLD).write(path)
    words = ("eval", "gold.json", *runs, "-m", "RR,P@1")
    bare = ESCAPE.sub("", terminal(*words, encoding="latin-1"))
    drawn = ESCAPE.sub("", terminal(*words))
    assert not set(bare) & set("█▓░")
    assert set(drawn) & set("█▓░")
    assert drawn.count("measure") == bare.count("measure")
    assert max(map(cell_width, drawn.splitlines())) <= 80


def test_no_color_keeps_bars_without_colour(terminal, files):
    shown = terminal("compare", "gold.json", "old.run", "new.run", "-m", "RR", NO_COLOR="1")
    assert "\x1b" not in shown
    assert "████····" in shown
    assert "▲ +0.4444" in shown


def test_marks_are_green_and_red_in_a_terminal_and_plain_when_piped(command, files):
    karat.Run.of({query: ["x", "y"] for query in GOLD}).write("bad.run")
    words = ("compare", "gold.json", "old.run", "new.run", "bad.run", "-m", "RR", "--moved", "0")
    shown = in_pseudo_terminal(*words)
    assert "█" in shown
    assert re.search(r"\x1b\[32m *▲\x1b\[0m \+0\.4444", shown)
    assert re.search(r"\x1b\[31m *▼\x1b\[0m -0\.5000", shown)
    _, out, _ = command(*words)
    assert "\x1b" not in out
    assert not set(out) & set("█▓░")
    assert "▼ -0.5000" in out
    assert "▲ better, ▼ worse: p Holm < 0.05\n" in out


def test_names_with_wide_characters_fit_the_terminal(terminal, files):
    runs = []
    for at in range(3):
        runs.append(f"検索の結果のとても長い名前 {at}.run")
        karat.Run.of(NEW if at % 2 else OLD).write(runs[-1])
    plain = ESCAPE.sub("", terminal("compare", "gold.json", *runs, "-m", "RR,P@1"))
    assert max(map(cell_width, plain.splitlines())) <= 80
