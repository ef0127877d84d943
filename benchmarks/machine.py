"""The machine and the versions that numbers belong to."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "karat",
    "polars",
    "numpy",
    "rapidfuzz",
    "cydifflib",
    "scipy",
    "ir_measures",
    "pytrec_eval-terrier",
    "ranx",
    "numba",
)


def machine() -> str:
    """Describe processor, cores, memory and system."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB, "
        f"{platform.system()} {platform.release()}"
    )


def load() -> str:
    """Tell how busy the machine was with other things."""
    return f"{os.getloadavg()[0]:.1f}"


def versions(trec_eval: str) -> str:
    """Name Python, the packages and trec_eval with their versions."""
    names = [f"Python {platform.python_version()}"]
    names += [f"{package} {_version(package)}" for package in PACKAGES]
    if Path(trec_eval).exists():
        told = subprocess.run(
            [trec_eval, "--version"], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        names.append(told.stdout.decode().strip().replace(" version", "") + " (C)")
    else:
        names.append("trec_eval absent")
    return ", ".join(names)


def _version(package: str) -> str:
    try:
        found = version(package)
    except PackageNotFoundError:
        return "absent"
    return f"{found} ({_commit()})" if package == "karat" else found


def _commit() -> str:
    """Return the commit that is measured, and whether files were changed since."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = ", changed since" if _git("status", "--porcelain", "--", "src") else ""
    return f"commit {commit}{changed}" if commit else "no commit"


def _git(*arguments: str) -> str:
    told = subprocess.run(["git", *arguments], check=False, capture_output=True, text=True)
    return told.stdout.strip()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
