"""Kill a process that writes a journal at each of its calls of the system, one after another.

A script that test_kill runs: Python may fork only where no other thread is. For each moment a child
is forked that kills itself there; another then goes on with the run, and the file is looked at.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from karat.data.native_lines import Header
from karat.data.native_run import Failure, Result
from karat.errors import InputError
from karat.live.exchange import Line
from karat.live.file import Journal
from karat.live.file import journal as module

QUERIES = [f"q{at}" for at in range(4)]
CALLS = ("open", "write", "fsync", "ftruncate", "replace", "unlink", "close")
module.SYNC_SECONDS = 600  # else the calls come in another order each time


def header(**settings: Any) -> Header:
    return Header(1, "run", "mine", settings={"top_k": 20, "jobs": 8} | settings)


def line(query: str) -> Line:
    return Line(query, [Result(f"item of {query}", 0.5, text="x" * 50)], {"total": 1.5})


def bytes_of(*lines: Line, **settings: Any) -> bytes:
    given = [header(**settings), *lines]
    return b"".join(module.msgspec.json.encode(each) + b"\n" for each in given)


FAILED = Line("q1", [], error=Failure("Timeout"))
SCENARIOS: dict[str, tuple[bytes | None, Header, dict[str, bool]]] = {
    "new": (None, header(), {}),
    "torn": (bytes_of(line("q0"), line("q1"))[:-30], header(), {}),
    "no end": (bytes_of(line("q0"))[:-1], header(), {}),
    "torn header": (bytes_of()[:-10], header(), {}),
    "failed": (bytes_of(line("q0"), FAILED), header(), {"retry_errors": True}),
    "other pace": (bytes_of(line("q0"), line("q1")), header(jobs=2), {}),
    "anew": (bytes_of(line("q0"), top_k=5), header(), {"resume": False}),
}


def ask_all(
    path: Path, told: Header, how: dict[str, bool], finished: Callable[[str], None]
) -> None:
    with Journal.open(path, told, **how) as journal:
        for query in QUERIES:
            if query not in journal.done:
                journal.write(line(query))
                finished(query)


def dying(at: int, moment: str) -> None:
    """Have this process kill itself before, within or after its n-th call."""
    count = 0

    def deadly(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def called(*given: Any, **options: Any) -> Any:
            nonlocal count
            count += moment != "within" or name == "write"
            if count == at:
                if moment == "after":
                    with suppress(OSError):
                        call(*given, **options)
                elif moment == "within":
                    call(given[0], given[1][: len(given[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **options)

        return called

    for name in CALLS:
        setattr(os, name, deadly(getattr(os, name), name))


def in_child(work: Callable[[Callable[[str], None]], None]) -> tuple[bool, list[str]]:
    """Return whether a child ended by itself, and the queries that it said were finished."""
    reading, writing = os.pipe()
    write = os.write
    child = os.fork()
    if not child:
        try:
            work(lambda query: write(writing, query.encode() + b"\n") and None)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    os.close(writing)
    with open(reading) as said:
        finished = said.read().split()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status == 0, finished


def query_ids(path: Path) -> list[str]:
    content = path.read_bytes()
    assert content.endswith(b"\n"), content
    told, *rest = map(json.loads, content.splitlines())
    assert told["kind"] == "run"
    assert all(each.get("results") or each["error"] for each in rest)
    return [each["query_id"] for each in rest]


def killed_at(path: Path, scenario: str, at: int, moment: str) -> bool:
    """Kill a child at a moment, go on with what it left, and tell whether it had ended before."""
    content, told, how = SCENARIOS[scenario]
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)

    def begun(finished: Callable[[str], None]) -> None:
        dying(at, moment)
        ask_all(path, told, how, finished)

    def gone_on(finished: Callable[[str], None]) -> None:
        try:
            ask_all(path, told, {}, finished)
        except InputError:
            # A run of other settings that was to go, and was not yet gone.
            assert scenario == "anew"
            assert path.read_bytes() == content
            ask_all(path, told, how, finished)

    ended, first = in_child(begun)
    _, second = in_child(gone_on)
    assert set(first).isdisjoint(second), (first, second)
    assert sorted(query_ids(path)) == QUERIES, (first, second)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    return ended


def main(path: Path) -> None:
    for scenario in SCENARIOS:
        for moment in ("before", "within", "after"):
            at = 1
            while not killed_at(path, scenario, at, moment):
                at += 1
            print(scenario, moment, at - 1, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
