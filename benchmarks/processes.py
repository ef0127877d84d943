"""Running a command: its output, the seconds that it took, and its peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

_PROC = Path("/proc")
_SAMPLE_SECONDS = 0.2
_MOST_SECONDS_TO_END = 30


@dataclass(frozen=True)
class Finished:
    """A command that ended without an error."""

    output: str
    seconds: float
    megabytes: float
    """Peak memory."""


def run(command: Sequence[str], *, children: bool = False) -> Finished:
    """Run a command and measure it.

    Peak memory is the largest resident size of the process. With `children`, it is the largest sum
    of the resident sizes of the process and of all processes that it started; the sum is sampled
    five times per second, and needs the /proc of Linux.
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=_environment())
        with _ProcessTree(process.pid, is_sampled=children) as tree:
            # wait4 returns the peak of this process alone. The peak starts at the size that the
            # parent has when it starts the process. This is why the parent imports neither karat
            # nor other tools, and generates no data.
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()}")
        output.seek(0)
        unit = 1e6 if sys.platform == "darwin" else 1e6 / 1024
        return Finished(output.read(), seconds, max(usage.ru_maxrss / unit, tree.megabytes))


def compile_karat() -> None:
    """Compile karat to bytecode, as pip does for packages that it does not install in place."""
    package = Path(__file__).parents[1] / "src" / "karat"
    subprocess.run([sys.executable, "-m", "compileall", "-q", package], check=True)


def _environment() -> dict[str, str]:
    """Return an environment in which Python may use and write bytecode."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


class _ProcessTree:
    """Samples the memory of a process and of its descendants, until the process ends."""

    def __init__(self, pid: int, *, is_sampled: bool) -> None:
        self.megabytes = 0.0
        self._pids = {pid}
        self._has_ended = Event()
        self._thread = Thread(target=self._sample)
        self._is_sampled = is_sampled and (_PROC / "self" / "stat").exists()

    def __enter__(self) -> _ProcessTree:
        if self._is_sampled:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_sampled:
            self._has_ended.set()
            self._thread.join()
            self._wait_for_descendants()

    def _sample(self) -> None:
        while not self._has_ended.wait(_SAMPLE_SECONDS):
            sizes = self._resident_megabytes()
            self._pids |= sizes.keys()
            self.megabytes = max(self.megabytes, sum(sizes.values()))

    def _resident_megabytes(self) -> dict[int, float]:
        """Return the size of each process of the tree."""
        page = os.sysconf("SC_PAGE_SIZE") / 1e6
        parents, sizes = {}, {}
        for folder in _PROC.iterdir():
            if folder.name.isdecimal():
                try:
                    # The name of the process, in brackets, may contain spaces.
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                except OSError:  # it has just ended
                    continue
                parents[int(folder.name)] = int(fields[1])
                sizes[int(folder.name)] = int(fields[21]) * page
        tree = self._pids & parents.keys()
        while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
            tree |= more
        return {pid: sizes[pid] for pid in tree}

    def _wait_for_descendants(self) -> None:
        """Wait until processes such as the JVM of Spark have ended, too, and slow down nothing."""
        folders = [_PROC / str(pid) for pid in self._pids]
        deadline = time.monotonic() + _MOST_SECONDS_TO_END
        while time.monotonic() < deadline and any(folder.exists() for folder in folders):
            time.sleep(0.05)
