"""Whether a chunk covers an evidence text: Python's own difflib, one pair at a time.

No code is shared with karat, nor with the libraries that it uses for this.
"""

from __future__ import annotations

import string
import unicodedata
from difflib import SequenceMatcher


def normalize(text, casefold=False, nfkc=False, zero_width=False):
    if zero_width:
        text = "".join(
            one for one in text if ord(one) not in (0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)
        )
    if nfkc:
        text = unicodedata.normalize("NFKC", text)
    words, word = [], ""
    for one in text + " ":
        if not one.isspace():
            word += one
        elif word:
            words.append(word)
            word = ""
    spaced = " ".join(words)
    return spaced.casefold() if casefold else spaced.lower()


def ratio(evidence, chunk, autojunk=False):
    return SequenceMatcher(None, evidence, chunk, autojunk=autojunk).ratio()


def how(evidence, chunk, threshold=0.7, autojunk=False, either=False, number=ratio):
    """Return how a chunk covers an evidence text, both normalised, or None."""
    if not evidence or not chunk:
        return None
    if evidence == chunk:
        return "exact"
    if evidence in chunk or (either and chunk in evidence):
        return "substring"
    reached = number(evidence, chunk, autojunk) if number is ratio else number(evidence, chunk)
    return "fuzzy" if reached >= threshold else None


def common(one, other):
    """Count the longest common subsequence, row by row."""
    before = [0] * (len(other) + 1)
    for mine in one:
        row = [0]
        for at, theirs in enumerate(other):
            row.append(before[at] + 1 if mine == theirs else max(row[-1], before[at + 1]))
        before = row
    return before[-1]


def window_ratio(evidence, chunk):
    """Try every window as long as the evidence, and the shorter ones at both ends."""
    size, length = len(evidence), len(chunk)
    if length <= size:
        windows = [chunk]
    else:
        windows = [chunk[at : at + size] for at in range(length)]
        windows += [chunk[:end] for end in range(1, size)]
    return max(2.0 * common(evidence, one) / (size + len(one)) for one in windows)


def either_window_ratio(evidence, chunk):
    short, long = sorted((evidence, chunk), key=len)
    return window_ratio(short, long)


def separates(one):
    """Whether a character is white space or punctuation; symbols such as 😀 are words."""
    blocks = (("\u00a1", "\u00bf"), ("\u2010", "\u205e"), ("\u3000", "\u303f"))
    wide = "\uff01" <= one <= "\uff0f" or "\uff1a" <= one <= "\uff20"
    inside = any(first <= one <= last for first, last in blocks)
    return one.isspace() or one in string.punctuation or inside or wide


def tokens(text):
    """Split at white space and punctuation; each Chinese character is a token."""
    found, word = [], ""
    for one in text + " ":
        alone = "\u4e00" <= one <= "\u9fff"
        if not separates(one) and not alone:
            word += one
            continue
        found += [part for part in (word, one if alone else "") if part]
        word = ""
    return found


def token_share(evidence, chunk):
    wanted = tokens(evidence)
    return common(wanted, tokens(chunk)) / len(wanted) if wanted else 0.0


def covering(evidence, chunks, **rule):
    """Return (chunk row, evidence row, how) of two lists of (query, text), pair by pair."""
    found = []
    for chunk_row, (chunk_query, chunk) in enumerate(chunks):
        seen = set()
        for row, (query, text) in enumerate(evidence):
            wanted = normalize(text)
            if query != chunk_query or wanted in seen:
                continue
            seen.add(wanted)
            covered = how(wanted, normalize(chunk), **rule)
            if covered:
                found.append((chunk_row, row, covered))
    return found
