"""Texts as they are compared, and where each of their characters came from."""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

from karat.arrays import Ints

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
"""Zero-width space, non-joiner and joiner, word joiner, byte order mark."""

_NO_ZERO_WIDTH = dict.fromkeys(map(ord, ZERO_WIDTH))


def normalize(
    text: str, *, casefold: bool = False, nfkc: bool = False, zero_width: bool = False
) -> str:
    r"""Return a text with single spaces and in lower case, or folded; NFKC before that, if asked.

    Zero-width characters are dropped before all else, if asked, since one may stand between a
    letter and its accent; NFKC comes before spaces, since it makes some.

    >>> normalize(" Paid\u00a0within\n14 DAYS "), normalize("Straße", casefold=True)
    ('paid within 14 days', 'strasse')
    """
    spaced = " ".join(_unfolded(text, nfkc, zero_width).split())
    return spaced.casefold() if casefold else spaced.lower()


def original_offsets(
    text: str, *, casefold: bool = False, nfkc: bool = False, zero_width: bool = False
) -> tuple[Ints, Ints]:
    """Return for each character of the normalised text where it begins and ends in the text."""
    starts = _units(text, nfkc, zero_width)
    ends = np.append(starts[1:], len(text))
    distinct, which = _distinct(text, starts, ends)
    parts = [_unfolded(unit, nfkc, zero_width) for unit in distinct]
    lengths = np.array([len(part) for part in parts], np.int64)
    unit = np.repeat(np.arange(which.size), lengths[which])
    first = np.cumsum(lengths) - lengths
    through = np.cumsum(lengths[which]) - lengths[which]
    at = first[which][unit] + np.arange(unit.size) - through[unit]
    characters = "".join(parts)
    space = np.array([one.isspace() for one in characters], np.bool_)[at]
    # Of a row of white space the first stays; before the first letter and after the last, none.
    kept = ~space
    kept[1:] |= ~space[:-1]
    kept[np.append(np.flatnonzero(~space), -1).max() + 1 :] = False
    folded = [len(one.casefold() if casefold else one.lower()) for one in characters]
    unit = np.repeat(unit[kept], np.array(folded, np.int64)[at[kept]])
    return starts[unit], ends[unit]


def _unfolded(text: str, nfkc: bool, zero_width: bool) -> str:
    if zero_width:
        text = text.translate(_NO_ZERO_WIDTH)
    return unicodedata.normalize("NFKC", text) if nfkc else text


def _units(text: str, nfkc: bool, zero_width: bool) -> Ints:
    """Return where the stretches begin that NFKC changes apart from each other."""
    if not nfkc or (not zero_width and unicodedata.is_normalized("NFKC", text)):
        return np.arange(len(text))
    opens = np.fromiter((_opens(one, zero_width) for one in text), np.bool_, len(text))
    opens[:1] = True
    return np.flatnonzero(opens)


def _distinct(text: str, starts: Ints, ends: Ints) -> tuple[list[str], Ints]:
    """Return the distinct units, and which of them each unit is."""
    if starts.size == len(text):
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        present = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
        present[codes] = True
        return [chr(code) for code in np.flatnonzero(present)], (np.cumsum(present) - 1)[codes]
    number: dict[str, int] = {}
    units = (text[start:end] for start, end in zip(starts, ends, strict=True))
    which = np.fromiter((number.setdefault(one, len(number)) for one in units), np.int64)
    return list(number), which


@cache
def _opens(character: str, zero_width: bool) -> bool:
    """Tell whether nothing before a character can be composed with it."""
    if character.isascii():
        return True
    if zero_width and character in ZERO_WIDTH:
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    return not unicodedata.combining(first) and first not in _composed_with_what_precedes()


@cache
def _composed_with_what_precedes() -> frozenset[str]:
    """Return what can be the later part of a composed character without being an accent."""
    jamo = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    pairs = (unicodedata.decomposition(chr(code)).split() for code in range(0xC0, 0x20000))
    later = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and pair[0][0] != "<"}
    return frozenset(jamo | {one for one in later if not unicodedata.combining(one)})
