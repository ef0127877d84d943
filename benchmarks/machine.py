"""The machine and the versions with which the numbers were measured."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def description() -> str:
    """Return the date, the processor, cores, memory and system, and the load of the machine."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {_processor()}, {os.cpu_count()} cores, "
        f"{memory:.0f} GB, {platform.system()} {platform.release()}; "
        f"load average before the start: {os.getloadavg()[0]:.1f}."
    )


def versions(packages: Sequence[str]) -> str:
    """Return the versions of Python, karat and other packages."""
    names = [f"Python {platform.python_version()}", f"karat {_version('karat')} ({_commit()})"]
    return ", ".join(names + [f"{package} {_version(package)}" for package in packages])


def version_of_trec_eval(path: str) -> str:
    """Return the version of the C program."""
    if not Path(path).exists():
        return "trec_eval (C) is not installed"
    process = subprocess.run(
        [path, "--version"], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return process.stdout.decode().strip().replace(" version", "") + " (C)"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


def _commit() -> str:
    """Return the commit that is measured, and whether files have changed since."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = " with later changes" if _git("status", "--porcelain", "--", "src") else ""
    return f"commit {commit}{changed}" if commit else "not in a Git repository"


def _git(*arguments: str) -> str:
    process = subprocess.run(["git", *arguments], check=False, capture_output=True, text=True)
    return process.stdout.strip()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
