"""Blocks that are parsed ahead keep their order, and errors do not overtake the blocks before."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest

from karat.read_ahead import map_ahead


def test_results_have_the_order_of_the_blocks():
    def parse(number):
        time.sleep(0.002 * (number % 3))
        return number * 2

    with closing(map_ahead((number for number in range(40)), parse, 5)) as blocks:
        assert list(blocks) == [(number, number * 2) for number in range(40)]


@pytest.mark.parametrize("place", ["reading", "parsing"])
def test_error_follows_the_blocks_before_it(place):
    def numbers():
        for number in range(20):
            if place == "reading" and number == 7:
                raise ValueError("block 7")
            yield number

    def parse(number):
        if place == "parsing" and number == 7:
            raise ValueError("block 7")
        time.sleep(0.002)
        return number

    with closing(map_ahead(numbers(), parse, 6)) as blocks:
        assert [next(blocks)[0] for _ in range(7)] == list(range(7))
        with pytest.raises(ValueError, match="block 7"):
            next(blocks)


def test_no_more_blocks_than_wanted_are_read_ahead():
    taken = []

    def numbers():
        for number in range(30):
            taken.append(number)
            yield number

    with closing(map_ahead(numbers(), str, 3)) as blocks:
        for used, _ in enumerate(blocks, 1):
            assert len(taken) <= used + 3
            time.sleep(0.001)


def test_threads_and_the_file_are_closed_after_the_first_block():
    has_closed = threading.Event()

    def numbers():
        try:
            yield from range(1000)
        finally:
            has_closed.set()

    with closing(map_ahead(numbers(), str, 4)) as blocks:
        next(blocks)
    assert has_closed.is_set()
    assert not [t for t in threading.enumerate() if t.name.startswith("karat-read")]
