"""The default memory limit: a quarter of the memory of the machine or of its container."""

from __future__ import annotations

import pytest

import karat
from karat import memory_limit
from karat.memory_limit import LEAST_MEMORY, default_memory

GIBIBYTE = 1 << 30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A function that sets the control groups of this process and the limits of groups."""

    def set_groups(own, limits):
        (tmp_path / "own").write_text(own)
        for file, limit in limits.items():
            path = tmp_path / "groups" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{limit}\n")

    sizes = {"SC_PAGE_SIZE": 1 << 12, "SC_PHYS_PAGES": 1 << 23}
    monkeypatch.setattr(memory_limit.os, "sysconf", sizes.get)
    monkeypatch.setattr(memory_limit, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory_limit, "_GROUPS", tmp_path / "groups")
    return set_groups


def test_default_is_a_quarter_of_the_machine(groups):
    assert default_memory() == 8 * GIBIBYTE


@pytest.mark.parametrize(
    ("own", "limits"),
    [
        ("0::/\n", {"memory.max": 4 * GIBIBYTE}),
        (
            "0::/user/session\n",
            {
                "user/memory.max": 4 * GIBIBYTE,
                "user/session/memory.max": "max",
                "other/memory.max": 1,
            },
        ),
        (
            "4:cpu:/a\n5:memory,hugetlb:/docker/1\n0::/\n",
            {"memory/memory.limit_in_bytes": 4 * GIBIBYTE, "cpu/memory.limit_in_bytes": 1},
        ),
    ],
    ids=["container", "nested groups", "version 1"],
)
def test_default_is_a_quarter_of_the_smallest_limit_of_a_group(groups, own, limits):
    groups(own, limits)
    assert default_memory() == GIBIBYTE


def test_default_is_enough_for_small_data_in_a_small_container(groups):
    groups("0::/\n", {"memory.max": GIBIBYTE // 2})
    assert default_memory() == LEAST_MEMORY
    scores = karat.evaluate({"q1": ["a"]}, {"q1": ["a"]}, "RR")
    assert scores["RR"] == 1
