"""How BM25 splits a text into words: normalise, split, remove stop words, stem.

As in Lucene's StandardTokenizer, a word is a run of letters, digits, marks and underscores, and
each Chinese character and each Hiragana is a word of its own. Stop words are removed before
stemming.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from functools import cache
from threading import Lock
from typing import Any

from karat.checks import did_you_mean
from karat.errors import InputError

NONE = "none"
_STOP_WORDS = "STOPWORDS_"
_SINGLE = "\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PLAIN_WORD = re.compile(r"\w+")
_LAST_MARK = 0x1FFFF  # beyond it are only selectors of glyph variants


class Words:
    """Splits texts into the words that are indexed and searched.

    Parameters
    ----------
    stemmer : str
        A language or algorithm of Snowball, or "none".
    stop_words : str
        A language that bm25s has stop words for, or "none".
    """

    def __init__(self, stemmer: str, stop_words: str) -> None:
        self._stem = _stemmer(stemmer)
        self._stop_words = _stop_word_set(stop_words)
        self._stems: dict[str, str | None] = {}
        self._lock = Lock()  # a stemmer of Snowball must not be used by two threads at once

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text, in their order."""
        stems = self._stems
        words = split_words(unicodedata.normalize("NFKC", text).lower())
        for word in set(words).difference(stems):
            with self._lock:
                stems[word] = None if word in self._stop_words else self._stem(word)
        return [stem for word in words if (stem := stems[word]) is not None]


def split_words(text: str) -> list[str]:
    """Return the words of a text; most texts need only the class of word characters of Python."""
    if text.isascii():
        return _PLAIN_WORD.findall(text)
    special, word = _patterns()
    # A search among the different characters is much faster than in the whole text.
    return (word if special.search("".join(set(text))) else _PLAIN_WORD).findall(text)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a character that `_PLAIN_WORD` does not handle, and of a word.

    Python's class of word characters lacks combining marks.
    """
    marks = _ranges([code for code in range(_LAST_MARK + 1) if _is_mark(chr(code))])
    word = re.compile(f"[{_SINGLE}]|(?:[^\\W{_SINGLE}]|[{marks}])+")
    return re.compile(f"[{_SINGLE}{marks}]"), word


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc")


def _ranges(codes: list[int]) -> str:
    """Return ascending code points as the content of a character class."""
    parts: list[list[int]] = []
    for code in codes:
        if parts and code == parts[-1][1] + 1:
            parts[-1][1] = code
        else:
            parts.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in parts)


def _stemmer(name: str) -> Any:
    import Stemmer

    if name == NONE:
        return str
    known = Stemmer.algorithms()
    if name not in known:
        raise _unknown("stemmer", name, known)
    return Stemmer.Stemmer(name).stemWord


def _stop_word_set(name: str) -> frozenset[str]:
    stopwords = import_bm25s().stopwords
    lists = {
        key.removeprefix(_STOP_WORDS).lower(): words
        for key, words in vars(stopwords).items()
        if key.startswith(_STOP_WORDS) and not key.endswith("_PLUS")
    }
    lists["english"] = lists.pop("en")
    if name == NONE:
        return frozenset()
    if name not in lists:
        raise _unknown("stop_words", name, sorted(lists))
    return frozenset(unicodedata.normalize("NFKC", word).lower() for word in lists[name])


def _unknown(field: str, name: str, known: list[str]) -> InputError:
    return InputError(
        f"unknown language {name!r}",
        field=field,
        hint=did_you_mean(name, known) or f"choose one of {', '.join([NONE, *known])}",
    )


def import_bm25s() -> Any:
    """Import bm25s, without the warning of its progress bars in a notebook that has no widgets."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")
        import bm25s
    return bm25s
