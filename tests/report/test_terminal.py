"""What a terminal shows in addition to plain text: bold and colour; piped output has none."""

import io
import os
import pty
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len as cell_width

import karat
from karat.measures.registry import REGISTRY
from karat.report.document_model import Whisker
from karat.report.renderers.terminal import whisker
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


@given(st.lists(shares, min_size=3, max_size=3).map(sorted), st.integers(8, 20))
def test_mark_shows_the_value_and_its_interval(ends, width):
    low, value, high = (round(end * (width - 1)) for end in ends)
    drawn = whisker(Whisker(*ends), (0.0, 1.0), width)
    assert len(drawn) == width
    assert drawn.index("●") == value
    for at, character in enumerate(drawn):
        if at != value:
            assert (character == " ") == (not low <= at <= high)
    assert (drawn[low] == "├") == (low < value)
    assert (drawn[high] == "┤") == (value < high)


records = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), min_size=1, max_size=6)


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")  # about ids not in the run
@examples(30, 300)
@given(
    st.lists(records, min_size=1, max_size=4),
    st.lists(st.permutations("abcdefgh"), min_size=4, max_size=4),
    st.integers(1, 8),
)
def test_measures_with_drawn_intervals_lie_between_0_and_1(gold, lists, length):
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


def test_terminal_shows_the_best_in_bold(terminal, files):
    words = ("eval", "gold.json", "old.run", "new.run", "-m", "RR,Hits@2", "--no-intervals")
    shown = terminal(*words)
    plain = ESCAPE.sub("", shown)
    rows = {line.split()[0]: line.split() for line in plain.splitlines() if line.endswith(" 12")}
    assert rows["RR"] == ["RR", "0.500", "0.944", "12"]
    assert rows["Hits@2"] == ["Hits@2", "1", "1.833", "12"]
    assert "\x1b[1m0.944\x1b[0m" in shown
    assert "\x1b[1m0.500\x1b[0m" not in shown


@pytest.mark.parametrize(("columns", "is_drawn"), [(46, False), (80, True)])
def test_marks_disappear_in_a_narrow_terminal(terminal, files, columns, is_drawn):
    shown = terminal("eval", "gold.json", "new.run", "-m", "RR", columns=columns)
    lines = ESCAPE.sub("", shown).splitlines()
    assert any("├" in line and "●" in line for line in lines) == is_drawn
    assert sum(line.startswith("measure") for line in lines) == 1
    assert max(map(cell_width, lines)) <= columns


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("count", [3, 6])
def test_long_names_of_runs_fit_the_terminal(terminal, files, count, encoding):
    runs = [f"a-rather-long-name-of-run-{at}.run" for at in range(count)]
    for at, path in enumerate(runs):
        karat.Run.of(NEW if at % 2 else OLD).write(path)
    shown = ESCAPE.sub("", terminal("eval", "gold.json", *runs, "-m", "RR,P@1", encoding=encoding))
    assert all(path.removesuffix(".run") in shown for path in runs)
    assert max(map(cell_width, shown.splitlines())) <= 80


def test_no_color_shows_the_same_without_colour(terminal, files):
    words = ("compare", "gold.json", "old.run", "new.run", "-m", "RR")
    shown = terminal(*words, NO_COLOR="1")
    assert "\x1b" not in shown
    assert "+0.444 ▲" in shown
    assert shown == ESCAPE.sub("", terminal(*words))


def test_marks_are_green_and_red_in_a_terminal_and_plain_when_piped(command, files):
    karat.Run.of({query: ["x", "y"] for query in GOLD}).write("bad.run")
    words = ("compare", "gold.json", "old.run", "new.run", "bad.run", "-m", "RR", "--moved", "0")
    words += ("--baseline", "old")
    shown = in_pseudo_terminal(*words)
    assert "\x1b[32m+0.444\x1b[0m\x1b[32m ▲\x1b[0m" in shown or "\x1b[32m+0.444 ▲\x1b[0m" in shown
    assert "\x1b[31m-0.500\x1b[0m\x1b[31m ▼\x1b[0m" in shown or "\x1b[31m-0.500 ▼\x1b[0m" in shown
    _, out, _ = command(*words)
    assert "\x1b" not in out
    assert "-0.500 ▼" in out
    assert "▲ significantly better, ▼ significantly worse (p < 0.05)\n" in out


def test_moved_queries_are_green_if_better_even_if_lower_is_better(terminal, files):
    shown = terminal("compare", "gold.json", "old.run", "new.run", "-m", "FirstRelevant")
    table = shown.split("largest changes")[1]
    assert "\x1b[32m-1\x1b[0m" in table
    assert "\x1b[31m+1\x1b[0m" in table


def test_names_with_wide_characters_fit_the_terminal(terminal, files):
    runs = []
    for at in range(3):
        runs.append(f"検索の結果のとても長い名前 {at}.run")
        karat.Run.of(NEW if at % 2 else OLD).write(runs[-1])
    plain = ESCAPE.sub("", terminal("compare", "gold.json", *runs, "-m", "RR,P@1"))
    assert max(map(cell_width, plain.splitlines())) <= 80
