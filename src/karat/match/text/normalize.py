"""Normalise texts before they are compared, and map their characters back to the original."""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

from karat.arrays import Ints

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
"""Zero-width space, non-joiner and joiner, word joiner, byte order mark."""

_REMOVE_ZERO_WIDTH = dict.fromkeys(map(ord, ZERO_WIDTH))


def normalize(
    text: str, *, casefold: bool = False, nfkc: bool = False, zero_width: bool = False
) -> str:
    r"""Return a text in lower case (or case-folded) with white space collapsed to single spaces.

    `zero_width` removes zero-width characters first, since one may separate a letter from its
    accent. `nfkc` applies NFKC before white space is collapsed, since NFKC can create spaces.

    >>> normalize(" Paid\u00a0within\n14 DAYS "), normalize("Straße", casefold=True)
    ('paid within 14 days', 'strasse')
    """
    collapsed = " ".join(_compose(text, nfkc, zero_width).split())
    return collapsed.casefold() if casefold else collapsed.lower()


def original_offsets(
    text: str, *, casefold: bool = False, nfkc: bool = False, zero_width: bool = False
) -> tuple[Ints, Ints]:
    """Return the start and end in the original text of each character of the normalised text."""
    starts = _unit_starts(text, nfkc, zero_width)
    ends = np.append(starts[1:], len(text))
    distinct, number = _distinct_units(text, starts, ends)
    composed = [_compose(unit, nfkc, zero_width) for unit in distinct]
    lengths = np.array([len(part) for part in composed], np.int64)
    # The unit of each composed character, and its position in `characters`.
    unit = np.repeat(np.arange(number.size), lengths[number])
    first = np.cumsum(lengths) - lengths
    before = np.cumsum(lengths[number]) - lengths[number]
    position = first[number][unit] + np.arange(unit.size) - before[unit]
    characters = "".join(composed)
    is_space = np.array([character.isspace() for character in characters], np.bool_)[position]
    # Keep the first of several white-space characters, and none at the start and the end.
    keep = ~is_space
    keep[1:] |= ~is_space[:-1]
    keep[np.append(np.flatnonzero(~is_space), -1).max() + 1 :] = False
    fold = str.casefold if casefold else str.lower
    folded_lengths = np.array([len(fold(character)) for character in characters], np.int64)
    unit = np.repeat(unit[keep], folded_lengths[position[keep]])
    return starts[unit], ends[unit]


def _compose(text: str, nfkc: bool, zero_width: bool) -> str:
    if zero_width:
        text = text.translate(_REMOVE_ZERO_WIDTH)
    return unicodedata.normalize("NFKC", text) if nfkc else text


def _unit_starts(text: str, nfkc: bool, zero_width: bool) -> Ints:
    """Return the starts of the units: the shortest spans that NFKC changes independently."""
    if not nfkc or (not zero_width and unicodedata.is_normalized("NFKC", text)):
        return np.arange(len(text))
    is_start = np.fromiter((_starts_unit(char, zero_width) for char in text), np.bool_, len(text))
    is_start[:1] = True
    return np.flatnonzero(is_start)


def _distinct_units(text: str, starts: Ints, ends: Ints) -> tuple[list[str], Ints]:
    """Return the distinct units, and for each unit of the text its index in them."""
    if starts.size == len(text):
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        present = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
        present[codes] = True
        return [chr(code) for code in np.flatnonzero(present)], (np.cumsum(present) - 1)[codes]
    numbers: dict[str, int] = {}
    units = (text[start:end] for start, end in zip(starts, ends, strict=True))
    number = np.fromiter((numbers.setdefault(unit, len(numbers)) for unit in units), np.int64)
    return list(numbers), number


@cache
def _starts_unit(character: str, zero_width: bool) -> bool:
    """Return whether NFKC never composes a character with those before it."""
    if character.isascii():
        return True
    if zero_width and character in ZERO_WIDTH:
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    return not unicodedata.combining(first) and first not in _trailing_letters()


@cache
def _trailing_letters() -> frozenset[str]:
    """Return the characters that are composed with the one before them but are not accents."""
    jamo = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    pairs = (unicodedata.decomposition(chr(code)).split() for code in range(0xC0, 0x20000))
    seconds = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and pair[0][0] != "<"}
    letters = {second for second in seconds if not unicodedata.combining(second)}
    return frozenset(jamo | letters)
