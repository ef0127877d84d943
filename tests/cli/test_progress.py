"""Progress of a run: a bar in a terminal, plain lines elsewhere."""

import io
import os
from time import sleep

import pytest

from karat.cli import progress as module
from karat.cli.progress import progress, step_bars
from karat.data.formats.native_run import Failure
from karat.live.protocol import JournalLine, Query
from karat.steps import step, tracked


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def failing(query):
    return JournalLine(query, results=[], error=Failure("Timeout"))


def test_terminal_shows_a_bar_with_rate_errors_and_time_left(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress(True) as watch:
        watch.begun(1000, 10, 2)
        watch.retried(Query("q", "text"), Failure("Timeout", "no [bold]answer"))
        watch.finished(failing("q1"))
        watch.finished(JournalLine("q2", results=[]))
    shown = terminal.getvalue()
    assert "12 of 1,000 queries" in shown
    assert "3 failed, 1 retry" in shown
    assert " left" in shown
    assert shown.count("q: Timeout: no [bold]answer") == 1


def test_other_output_has_a_line_every_ten_seconds_and_at_the_end(clock, capsys):
    watch = progress(True)
    watch.begun(4, 0, 0)
    for passed, query in enumerate(["q1", "q2", "q3", "q4"], 1):
        clock[0] = passed * 6.0
        watch.finished(failing(query) if query == "q2" else JournalLine(query, results=[]))
    assert capsys.readouterr().err.splitlines() == [
        "q2: Timeout",
        "2 of 4 queries, 0.2/s, 1 failed, 12 s left",
        "4 of 4 queries, 0.2/s, 1 failed",
    ]


def test_first_failure_of_each_kind_is_shown(capsys):
    watch = progress(True)
    watch.begun(9, 0, 0)
    watch.retried(Query("q\x1b1", "text"), Failure("ConnectionError", "host:1: refused"))
    watch.retried(Query("q2", "text"), Failure("ConnectionError", "host:1: refused"))
    watch.finished(
        JournalLine("q2", results=[], error=Failure("ConnectionError", "host:1: refused"))
    )
    watch.finished(JournalLine("q3", results=[], error=Failure("HTTP 500", "no index")))
    assert capsys.readouterr().err.splitlines() == [
        "q�1: ConnectionError: host:1: refused",
        "q3: HTTP 500: no index",
    ]


def test_rate_excludes_queries_that_were_finished_before(clock, capsys):
    watch = progress(True)
    watch.begun(3, 2, 1)
    clock[0] = 2.0
    watch.finished(JournalLine("q3", results=[]))
    assert capsys.readouterr().err.splitlines() == [
        "2 of 3 queries were answered before",
        "3 of 3 queries, 0.5/s, 1 failed",
    ]


def test_nothing_is_shown_without_progress(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress(False) as watch:
        watch.begun(1, 0, 0)
        watch.finished(JournalLine("q1", results=[]))
    assert (terminal.getvalue(), watch.done) == ("", 1)


def open_terminal(monkeypatch):
    """Make standard error a terminal; pytest would reset it after a fixture."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return terminal


def walk(clock, seconds, *, label="matching evidence"):
    """Take a step of ten items, each of which takes so many seconds."""
    for _ in tracked(range(10), label, 10):
        clock[0] += seconds


def test_step_that_takes_long_shows_a_bar_in_a_terminal(clock, monkeypatch):
    terminal = open_terminal(monkeypatch)
    with step_bars():
        walk(clock, 0.1)
        assert terminal.getvalue() == ""
        walk(clock, 1.0)
    assert "matching evidence: 2 of 10" in terminal.getvalue()


def test_step_shows_a_bar_before_its_first_item_is_done(clock, monkeypatch):
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_CHECKS", 0.01)
    with step_bars(), step("writing the report"):
        clock[0] += 3.0
        for _ in tracked(range(2), "reading runs", 2):
            clock[0] += 3.0
            wait_for("reading runs: 0 of 2", terminal)
            break
    assert "writing the report" in terminal.getvalue()


def wait_for(text, terminal):
    for _ in range(1000):
        if text in terminal.getvalue():
            return
        sleep(0.01)
    raise AssertionError(terminal.getvalue())


def test_bar_of_a_run_shows_what_is_done_after_the_last_query(monkeypatch):
    terminal = open_terminal(monkeypatch)
    with progress(True, is_kept=False) as watch:
        watch.begun(1, 0, 0)
        watch.finished(JournalLine("q1", results=[]))
        watch.began("comparing")
        watch.began("writing the report")
    _, _, shown = terminal.getvalue().partition("comparing")
    assert "writing the report" in shown
    assert "query" not in shown


def test_steps_show_no_bar_without_a_terminal_or_for_a_pipe(clock, capsys, monkeypatch):
    terminal = open_terminal(monkeypatch)
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as pipe, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", pipe)
        with step_bars():
            walk(clock, 1.0)
    assert terminal.getvalue() == ""
    monkeypatch.undo()
    with step_bars():
        walk(clock, 1.0)
    assert capsys.readouterr().err == ""


def test_run_shows_the_bars_of_its_steps_with_its_own_or_hides_both(clock, monkeypatch):
    terminal = open_terminal(monkeypatch)
    with step_bars(), progress(False):
        walk(clock, 1.0)
    assert terminal.getvalue() == ""
    with step_bars(), progress(True) as watch:
        walk(clock, 1.0, label="indexing texts")
        watch.begun(1, 0, 0)
        watch.finished(JournalLine("q1", results=[]))
    shown = terminal.getvalue()
    assert "indexing texts: 2 of 10" in shown
    assert "1 of 1 query" in shown


def test_cursor_returns_after_an_error_in_a_step(clock, monkeypatch):
    terminal = open_terminal(monkeypatch)

    def interrupted():
        with step_bars():
            for _ in tracked(range(10), "embedding texts", 10):
                clock[0] += 3.0
                if clock[0] > 6.0:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # its traceback keeps the loop alive
        interrupted()
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert terminal.getvalue().rindex(shown) > terminal.getvalue().rindex(hidden)


def test_steps_within_a_step_end_one_by_one(clock, monkeypatch):
    terminal = open_terminal(monkeypatch)
    with step_bars():
        for _ in tracked(range(2), "scoring runs", 2):
            walk(clock, 1.0)
    assert "scoring runs: 1 of 2" in terminal.getvalue()
    assert "matching evidence: 2 of 10" in terminal.getvalue()
