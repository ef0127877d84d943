"""What a retriever calls the fields of a question and of an answer."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from karat.checks import did_you_mean
from karat.data.results import ABSENT, RESULT, at_path
from karat.errors import InputError
from karat.live.exchange import SEARCH_SETTINGS

REQUEST = ("query", *SEARCH_SETTINGS)
RESPONSE = ("results", *RESULT, "latency_ms", "calls")
_LONGEST_PATH = 1000
_MOST_KEYS = 100


@dataclass(frozen=True)
class Fields:
    """Their name for each of ours, as a path of keys with dots between them.

    A number is a place in a list. A setting with an empty path is not sent.
    """

    paths: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Iterable[str] | Mapping[str, str]) -> Fields:
        """Read `OURS=THEIRS`, any number of times, or a mapping of the same."""
        if isinstance(given, Mapping):
            given = [f"{ours}={theirs}" for ours, theirs in given.items()]
        paths: dict[str, str] = {}
        for word in given:
            ours, equals, theirs = (part.strip() for part in word.partition("="))
            if not equals:
                raise _error(word, "there is no = in it", "write OURS=THEIRS, as in id=_id")
            if ours not in REQUEST and ours not in RESPONSE:
                known = [*REQUEST, *RESPONSE]
                meant = did_you_mean(ours, known) or ""
                hint = f"{meant} the fields are {', '.join(known)}".lstrip()
                raise _error(word, f"karat has no field {ours!r}", hint)
            if ours in paths:
                raise _error(word, f"{ours} is named twice", "name each field once")
            if not theirs and ours not in SEARCH_SETTINGS:
                raise _error(word, f"{ours} is needed", f"write {ours}=THEIRS")
            if theirs and not all(theirs.split(".")):
                raise _error(
                    word, "there is nothing between two dots", "write the keys with a dot between"
                )
            if len(theirs) > _LONGEST_PATH or theirs.count(".") >= _MOST_KEYS:
                raise _error(
                    f"{ours}=…",
                    f"the path has more than {_LONGEST_PATH:,} characters or {_MOST_KEYS} keys",
                    "write the keys that lead to the field, with dots between them",
                )
            paths[ours] = theirs
        return cls(paths)

    def as_dict(self) -> dict[str, str]:
        """Return what was named, for the header of a run."""
        return dict(self.paths)

    def sends(self, name: str) -> bool:
        """Tell whether a setting is sent; one with an empty path is not."""
        return self.paths.get(name, name) != ""

    def request(self, values: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        """Put values where their server looks for them, into a copy of what is always sent."""
        built = copy.deepcopy(dict(body))
        for name, value in values.items():
            if self.sends(name):
                _put(built, self.paths.get(name, name), value, name)
        return built

    def picked(self, held: Any, name: str) -> Any:
        """Return what goes by one of our names, None where it is not there."""
        found = at_path(held, self.paths.get(name, name))
        return None if found is ABSENT else found


def _put(built: dict[str, Any], path: str, value: Any, name: str) -> None:
    """Set the value at a path, making the mappings that lead to it."""
    *way, last = path.split(".")
    at: Any = built
    for key in way:
        if isinstance(at, list) and key.isdecimal() and int(key) < len(at):
            at = at[int(key)]
        elif isinstance(at, dict):
            at = at.setdefault(key, {})
        else:
            raise _blocked(name, path, key)
    if isinstance(at, dict):
        at[last] = value
    elif isinstance(at, list) and last.isdecimal() and int(last) < len(at):
        at[int(last)] = value
    else:
        raise _blocked(name, path, last)


def _blocked(name: str, path: str, key: str) -> InputError:
    return _error(
        f"{name}={path}",
        f"{key!r} cannot stand there: what is before it is a value, or a list without that place",
        "let no path lead through the value of another, and write a list into the body first",
    )


def _error(word: str, problem: str, hint: str) -> InputError:
    return InputError(problem, field=f"field {word}", hint=hint)
