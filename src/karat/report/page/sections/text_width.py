"""The width of text in pictures, which have no layout engine: estimated for a sans-serif font."""

from __future__ import annotations

from unicodedata import east_asian_width

from karat.markup import brief, shown

_NARROW = frozenset("iIljtfr.,:;|'!()[] ")
_WIDE = frozenset("mwMW@%—…")


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is in a font of this size."""
    return size * sum(map(_character_width, text))


def _character_width(character: str) -> float:
    """Return the width of a character as a share of the font size, rather too wide."""
    if character in _NARROW:
        return 0.34
    if character in _WIDE:
        return 0.92
    if east_asian_width(character) in "WF":
        return 1.0
    return 0.7 if character.isupper() else 0.57


def fitted(text: str, width: float, size: float) -> str:
    """Return a text from the data, shortened in its middle until it is at most this wide."""
    most = max(3, int(width / (0.3 * size)))
    short = shown(brief(text, most))
    while most > 3 and text_width(short, size) > width:
        most -= 1
        short = shown(brief(text, most))
    return short


def wrapped(text: str, width: float, size: float, most: int) -> list[str]:
    """Return a text as at most `most` lines of this width; words longer than a line are cut."""
    lines = [""]
    for word in shown(text).split():
        longer = f"{lines[-1]} {word}".lstrip()
        if text_width(longer, size) <= width:
            lines[-1] = longer
        elif lines[-1]:
            lines.append(fitted(word, width, size))
        else:
            lines[-1] = fitted(word, width, size)
    if len(lines) > most:
        lines = [*lines[: most - 1], fitted(" ".join(lines[most - 1 :]), width, size)]
    return lines
