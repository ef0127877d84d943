"""Thresholds as people write them, in a file, in Python or as texts, read into rules."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from dataclasses import field as field_of
from typing import Any, Literal

from karat.checks import did_you_mean
from karat.config import Config
from karat.errors import InputError, MeasureError
from karat.measures import Measure
from karat.measures.name_parser import parse
from karat.measures.presets import NO_PRESET, Preset
from karat.stats.inference import Inference
from karat.stats.intervals import CONFIDENCE, Interval

Kind = Literal["min", "max", "max_drop", "max_rise"]
SIGNS: dict[str, tuple[Kind, bool]] = {
    ">=": ("min", True),
    ">": ("min", False),
    "<=": ("max", True),
    "<": ("max", False),
}
"""What a sign means, and whether the limit itself will do."""
CHANGES: tuple[Kind, ...] = ("max_drop", "max_rise")
"""The kinds that are about the difference from a baseline."""


def plain_number(number: float) -> str:
    """Return a number as a person writes it; it reads back as the same.

    >>> plain(350.0), plain(0.02)
    ('350', '0.02')
    """
    return str(number).removesuffix(".0")


@dataclass(frozen=True)
class Rule:
    """One threshold of one measure, over all queries or over one group of them.

    >>> str(Rule("R@10", "max_drop", 0.02, strict=True))
    'R@10 max_drop 0.02 strict'
    """

    measure: str
    """The canonical name."""
    kind: Kind
    limit: float
    inclusive: bool = True
    """Whether the limit itself will do, of min and max."""
    confidence: float = CONFIDENCE
    """How sure a drop or a rise must be."""
    strict: bool = False
    """Whether it must be shown that there is none, rather than that there is one."""
    field: str | None = None
    """The field of queries that makes the group, where there is one; `value` says which."""
    value: str | None = None
    path: str | None = field_of(default=None, compare=False)
    """The file it is written in, if it is."""
    key: str | None = field_of(default=None, compare=False)
    """Where it is written there."""

    def error(self, problem: str, hint: str) -> InputError:
        """Make the error that says this rule cannot be judged."""
        return InputError(problem, path=self.path, field=self.key, hint=hint)

    @property
    def compares(self) -> bool:
        """Whether it is about the difference from a baseline."""
        return self.kind in CHANGES

    @property
    def two_sided(self) -> float:
        """The confidence of the two-sided interval whose ends are this rule's one-sided bounds."""
        return 2 * self.confidence - 1

    def holds(self, value: float) -> bool:
        """Tell whether a value keeps to a min or a max."""
        if value == self.limit:
            return self.inclusive
        return value > self.limit if self.kind == "min" else value < self.limit

    def bound(self, ends: Interval) -> float | None:
        """Return the end of an interval of run − baseline that decides.

        A drop is shown by the most that the difference may be, and its absence by the least; a
        rise the other way round. An end that only rounding keeps from the limit is the limit.
        """
        end = ends.high if (self.kind == "max_drop") != self.strict else ends.low
        is_limit = end is not None and abs(end - self._allowed) <= ends.rounding
        return self._allowed if is_limit else end

    def p(self, inference: Inference) -> float | None:
        """Return the one-sided p that decides: of no drop beyond the limit, or of one if strict."""
        is_above = (self.kind == "max_drop") == self.strict
        p = inference.p_above if is_above else inference.p_below
        return p(self._allowed)

    @property
    def _allowed(self) -> float:
        """The furthest that run − baseline may be."""
        return -self.limit if self.kind == "max_drop" else self.limit

    def holds_at(self, bound: float) -> bool:
        """Tell whether the bound that decides keeps to a max_drop or a max_rise."""
        change = -bound if self.kind == "max_drop" else bound
        return change < self.limit if self.strict else change <= self.limit

    @property
    def group(self) -> str | None:
        """The group as it is shown."""
        return None if self.field is None else f"{self.field}={self.value}"

    def __str__(self) -> str:
        unit = parse(self.measure).declaration.unit
        words = [self.measure, self._word, plain_number(self.limit), *([unit] if unit else [])]
        if self.compares and self.confidence != CONFIDENCE:
            words += ["confidence", plain_number(self.confidence)]
        return " ".join([*words, *(["strict"] if self.strict else [])])

    @property
    def _word(self) -> str:
        if self.compares:
            return self.kind
        return next(sign for sign, way in SIGNS.items() if way == (self.kind, self.inclusive))


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


def measures_needed(
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
