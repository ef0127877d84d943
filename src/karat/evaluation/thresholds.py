"""Thresholds as people write them, in a file, in Python or as texts, read into rules."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from karat.checks import did_you_mean
from karat.config import Config
from karat.errors import InputError, MeasureError
from karat.measures import Measure
from karat.measures.presets import NO_PRESET, Preset
from karat.stats.intervals import CONFIDENCE
from karat.stats.rules import CHANGES, SIGNS, Kind, Rule

Thresholds = str | Iterable[str] | Mapping[str, Any]

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

# A name may hold signs in brackets: what follows the last one holds no bracket.
_NAMED = re.compile(rf"(?P<measure>.*?\S)\s*(?P<threshold>(?:{WORDS})[^(){{}}<>=]*)", re.DOTALL)
_GROUPS = "by"
_GROUP_HINT = 'write [gate.by.category."billing"], and thresholds under it'


def asked(
    config: Config, thresholds: Thresholds | None = None, preset: Preset = NO_PRESET
) -> list[Rule]:
    """Return the rules of a file, and in their place what is given for the same measure and group.

    Names of measures mean what they mean inside the preset.

    >>> file = Config(gate={"R@10": ">= 0.8", "RR": {"min": 0.5}})
    >>> [str(rule) for rule in asked(file, "recall@10 >= 0.9")]
    ['RR >= 0.5', 'R@10 >= 0.9']
    """
    ours = _rules(config.gate, config.path, f"{config.section}gate", preset)
    given = [] if thresholds is None else rules_of(thresholds, preset)
    replaced = {(rule.measure, rule.group) for rule in given}
    rules = [rule for rule in ours if (rule.measure, rule.group) not in replaced] + given
    if rules:
        return rules
    raise InputError(
        "there is no threshold",
        path=config.path,
        field=f"{config.section}gate",
        hint='write "nDCG@10" = ">= 0.6" under [gate] in karat.toml, or --require "nDCG@10 >= 0.6"',
    )


def rules_of(thresholds: Thresholds, preset: Preset = NO_PRESET) -> list[Rule]:
    """Return the rules that are given: a mapping as in a file, or texts that name their measure.

    >>> [str(rule) for rule in rules_of(["ndcg@10 >= 0.6", "latency.p90 <= 0.35 s"])]
    ['nDCG@10 >= 0.6', 'latency.p90 <= 350 ms']
    """
    if isinstance(thresholds, Mapping):
        return _rules(thresholds, None, "thresholds", preset)
    texts = [thresholds] if isinstance(thresholds, str) else list(thresholds)
    return [rule for text in texts for rule in _named(text, preset)]


def _named(text: Any, preset: Preset) -> list[Rule]:
    parts = _NAMED.fullmatch(text.strip()) if isinstance(text, str) else None
    if parts is None or parts["measure"].endswith("="):  # of R@10 => 0.5
        raise InputError(
            f"{text!r} is no threshold",
            field="thresholds",
            hint='write "nDCG@10 >= 0.6" or "R@10 max_drop 0.02"',
        )
    with _naming(None, repr(text), ": "):
        rules = rules_for(preset.parse(parts["measure"]), parts["threshold"])
    return [replace(rule, key=repr(text)) for rule in rules]


def _rules(
    told: Mapping[str, Any],
    path: str | None,
    field: str,
    preset: Preset,
    group: tuple[str | None, str | None] = (None, None),
) -> list[Rule]:
    rules: list[Rule] = []
    seen: dict[Measure, str] = {}
    for name, threshold in told.items():
        if name == _GROUPS and group == (None, None):
            rules += _grouped(threshold, path, f"{field}.{_GROUPS}", preset)
            continue
        key = f'{field}."{name}"'
        with _naming(path, key):
            measure = _measure(name, threshold, preset)
            if measure in seen:
                raise InputError(
                    f"{measure} has a threshold already, as {seen[measure]!r}",
                    hint="write one table: { min = …, max_drop = … }",
                )
            seen[measure] = name
            made = rules_for(measure, threshold, group)
        rules += [replace(rule, path=path, key=key) for rule in made]
    return rules


def _grouped(told: Any, path: str | None, field: str, preset: Preset) -> list[Rule]:
    """Read the rules of groups: a field, then a value, then thresholds as for all queries."""
    rules = []
    for name, values in _table(told, path, field).items():
        inner = f"{field}.{name}"
        for value, thresholds in _table(values, path, inner).items():
            place = f'{inner}."{value}"'
            group = (name, str(value))
            rules += _rules(_table(thresholds, path, place), path, place, preset, group)
    return rules


def _table(told: Any, path: str | None, field: str) -> Mapping[str, Any]:
    if not isinstance(told, Mapping):
        raise InputError(f"{told!r} is no table", path=path, field=field, hint=_GROUP_HINT)
    if not told:
        raise InputError("there is nothing in it", path=path, field=field, hint=_GROUP_HINT)
    return told


def _measure(name: str, threshold: Any, preset: Preset) -> Measure:
    try:
        return preset.parse(name)
    except MeasureError as error:
        if isinstance(threshold, Mapping) and threshold and not set(threshold) & set(KEYS):
            inner = next(iter(threshold))  # TOML takes a bare latency.p90 for two keys
            error.hint = f'put a name with a dot in quotes: "{name}.{inner}" = {EXAMPLES}'
        raise


@contextmanager
def _naming(path: str | None, field: str, joint: str = ".") -> Iterator[None]:
    """Say in which file and under which key an error lies."""
    try:
        yield
    except InputError as error:
        error.path = path
        joint = ": " if isinstance(error, MeasureError) else joint
        error.field = joint.join(filter(None, [field, error.field]))
        raise


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
