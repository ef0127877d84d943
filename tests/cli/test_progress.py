"""Progress of a run: a bar in a terminal, plain lines elsewhere."""

import io

import pytest

from karat.cli import progress as module
from karat.cli.progress import progress
from karat.data.formats.native_run import Failure
from karat.live.protocol import JournalLine, Query


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
