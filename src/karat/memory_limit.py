"""The default memory limit, from the memory of the machine or of its container."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LEAST_MEMORY = 256 << 20
"""The smallest memory limit, in bytes."""
_DEFAULT_SHARE = 1 / 4
_WINDOWS_MEMORY = 8 << 30
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def default_memory() -> int:
    """Return a quarter of the memory of the machine or of its container, at least 256 MiB.

    On Windows, it is 2 GiB.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        total = _WINDOWS_MEMORY
    return max(int(_DEFAULT_SHARE * min([total, *_limits_of_groups()])), LEAST_MEMORY)


def _limits_of_groups() -> Iterator[int]:
    """Yield the memory limits of the control groups of this process, in bytes; only on Linux."""
    for file in _limit_files():
        with suppress(OSError, ValueError):  # no such file in the container, or "max"
            yield int(file.read_text())


def _limit_files() -> Iterator[Path]:
    """Yield the files with the limits of the groups of this process and of their parent groups."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:  # version 2 of control groups
            root, name = _GROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = _GROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = root / group.lstrip("/")
        while folder.is_relative_to(root):
            yield folder / name
            folder = folder.parent
