"""One threshold as it is written, a text or a table, read into rules for a measure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from karat.checks import did_you_mean
from karat.errors import InputError
from karat.measures import Measure
from karat.stats.intervals import CONFIDENCE
from karat.stats.rules import CHANGES, SIGNS, Kind, Rule

LIMITS: tuple[Kind, ...] = ("min", "max", *CHANGES)
KEYS = (*LIMITS, "confidence", "strict")
EXAMPLES = '">= 0.6" or "max_drop 0.02"'
WORDS = "|".join([*SIGNS, *CHANGES])

_TEXT = re.compile(
    rf"(?P<word>{WORDS})\s*(?P<limit>.*?)"
    r"(?:\s+confidence\s+(?P<confidence>\S+))?(?P<strict>\s+strict)?"
)
_AMOUNT = re.compile(r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>[^\d\s]*)")
_SCALES: dict[tuple[str, str | None], float] = {
    ("ms", "ms"): 1.0,
    ("s", "ms"): 1000.0,
    ("USD", "USD"): 1.0,
}
"""What an amount is multiplied by, from the unit it is written in to that of the measure."""


def rules_for(
    measure: Measure, threshold: Any, group: tuple[str | None, str | None] = (None, None)
) -> list[Rule]:
    """Return a rule for each limit that a threshold holds."""
    told, inclusive = _read(threshold) if isinstance(threshold, str) else (threshold, True)
    if not isinstance(told, Mapping):
        raise InputError(f"{threshold!r} is no threshold", hint=f"write a text such as {EXAMPLES}")
    for key in told:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS) or f"known: {', '.join(KEYS)}"
            raise InputError(f"a threshold has no {key!r}", hint=hint)
    kinds = [kind for kind in LIMITS if kind in told]
    if not kinds:
        raise InputError("there is no limit in it", hint=f"give one of {', '.join(LIMITS)}")
    how: dict[str, Any] = {
        "confidence": _confidence(told.get("confidence", CONFIDENCE)),
        "strict": _strict(told.get("strict", False)),
    }
    unused = [key for key in how if key in told]
    if unused and not set(kinds) & set(CHANGES):
        raise InputError(
            f"{unused[0]} speaks of max_drop and max_rise, and there is neither",
            hint="min and max compare the value itself: leave it out",
        )
    field, value = group
    return [
        Rule(
            measure.name,
            kind,
            _limit(told[kind], kind, measure),
            inclusive,
            field=field,
            value=value,
            **(how if kind in CHANGES else {}),
        )
        for kind in kinds
    ]


def _read(text: str) -> tuple[dict[str, Any], bool]:
    """Return what a text says as a table would, and whether the limit itself will do."""
    parts = _TEXT.fullmatch(text.strip())
    if parts is None:
        raise InputError(f"{text!r} is no threshold", hint=f"write a text such as {EXAMPLES}")
    kind, inclusive = SIGNS.get(parts["word"], (parts["word"], True))
    told: dict[str, Any] = {str(kind): parts["limit"]}
    if parts["confidence"]:
        told["confidence"] = _float(parts["confidence"])
    if parts["strict"]:
        told["strict"] = True
    return told, inclusive


def _limit(told: Any, kind: Kind, measure: Measure) -> float:
    declaration = measure.declaration
    if kind in CHANGES and declaration.higher_is_better != (kind == "max_drop"):
        better, other = ("higher", "drop") if declaration.higher_is_better else ("lower", "rise")
        raise InputError(
            f"of {measure}, {better} is better, so there is no {kind}",
            field=kind,
            hint=f"write max_{other}",
        )
    number = _amount(told, measure) if isinstance(told, str) else told
    if isinstance(number, bool) or not isinstance(number, int | float) or not _is_finite(number):
        raise InputError(f"{told!r} is no number", field=kind, hint=f"write {kind} = 0.6")
    if kind in CHANGES and number < 0:
        raise InputError(
            f"{told!r} is below 0", field=kind, hint="say how much is allowed, such as 0.02"
        )
    return float(number)


def _amount(text: str, measure: Measure) -> Any:
    """Return a number with a unit in the unit of the measure, or the text where it is none."""
    parts, own = _AMOUNT.fullmatch(text.strip()), measure.declaration.unit
    if parts is None:
        return text
    number, unit = float(parts["number"]), parts["unit"]
    if not unit:
        return number
    if (unit, own) not in _SCALES:
        known = [given for given, of in _SCALES if of == own]
        raise InputError(
            f"{measure} is not counted in {unit!r}",
            hint=f"write it in {' or '.join(known)}" if known else "write the number alone",
        )
    return number * _SCALES[unit, own]


def _confidence(told: Any) -> float:
    if isinstance(told, float) and 0.5 < told < 1:
        return told
    raise InputError(
        f"{told!r} is no confidence between 0.5 and 1", field="confidence", hint="write 0.95"
    )


def _strict(told: Any) -> bool:
    if isinstance(told, bool):
        return told
    raise InputError(f"{told!r} is neither true nor false", field="strict", hint="write true")


def _float(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond all floats
        return False
