"""Thresholds of a gate: parse them from karat.toml, Python or text into rules."""

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
"""The kind of threshold of each sign, and whether the limit itself is allowed."""
CHANGES: tuple[Kind, ...] = ("max_drop", "max_rise")
"""The kinds that limit the difference from a baseline."""


def plain_number(number: float) -> str:
    """Format a number without a trailing ".0"; parsing it returns the same number.

    >>> plain_number(350.0), plain_number(0.02)
    ('350', '0.02')
    """
    return str(number).removesuffix(".0")


@dataclass(frozen=True)
class Rule:
    """One threshold of one measure, for all queries or for one group of queries.

    >>> str(Rule("R@10", "max_drop", 0.02, strict=True))
    'R@10 max_drop 0.02 strict'
    """

    measure: str
    """The canonical name of the measure."""
    kind: Kind
    limit: float
    inclusive: bool = True
    """Whether the limit itself is allowed, for min and max."""
    confidence: float = CONFIDENCE
    """The confidence level of the test for a drop or a rise."""
    strict: bool = False
    """Whether the run must show that it did not drop (or rise) by more than the limit.

    If False, the check fails only if it is shown that the run did.
    """
    field: str | None = None
    """The field of the queries that defines the group; None for all queries."""
    value: str | None = None
    """The value of the field."""
    path: str | None = field_of(default=None, compare=False)
    """The file that contains the rule; None if it was passed as an argument."""
    key: str | None = field_of(default=None, compare=False)
    """The key of the rule in the file, or its text."""

    def error(self, problem: str, hint: str) -> InputError:
        """Return an error that names the file and key of this rule."""
        return InputError(problem, path=self.path, field=self.key, hint=hint)

    @property
    def compares(self) -> bool:
        """Whether the rule limits the difference from a baseline."""
        return self.kind in CHANGES

    @property
    def two_sided(self) -> float:
        """The level of the two-sided interval whose ends are the one-sided bounds of this rule."""
        return 2 * self.confidence - 1

    def holds(self, value: float) -> bool:
        """Return whether a value meets a min or a max."""
        if value == self.limit:
            return self.inclusive
        return value > self.limit if self.kind == "min" else value < self.limit

    def bound(self, interval: Interval) -> float | None:
        """Return the end of the interval of run − baseline that is compared with the limit.

        The upper end shows that there is a drop, the lower end that there is none; for a rise,
        vice versa. An end that differs from the limit only by rounding is set to the limit.
        """
        uses_upper_end = (self.kind == "max_drop") != self.strict
        end = interval.high if uses_upper_end else interval.low
        is_limit = end is not None and abs(end - self._allowed) <= interval.rounding
        return self._allowed if is_limit else end

    def p(self, inference: Inference) -> float | None:
        """Return the one-sided p-value; the null hypothesis is a change within the limit.

        If strict, it is a change beyond the limit.
        """
        is_above = (self.kind == "max_drop") == self.strict
        p = inference.p_above if is_above else inference.p_below
        return p(self._allowed)

    @property
    def _allowed(self) -> float:
        """The limit of run − baseline, with its sign."""
        return -self.limit if self.kind == "max_drop" else self.limit

    def holds_at(self, bound: float) -> bool:
        """Return whether a bound of run − baseline meets a max_drop or a max_rise."""
        change = -bound if self.kind == "max_drop" else bound
        return change < self.limit if self.strict else change <= self.limit

    @property
    def group(self) -> str | None:
        """The group as `field=value`; None for all queries."""
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
        return next(
            sign for sign, meaning in SIGNS.items() if meaning == (self.kind, self.inclusive)
        )


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
"""The factors from the unit of a limit to the unit of the measure."""

# The name of a measure may contain signs in brackets; the threshold contains no brackets.
_NAMED = re.compile(rf"(?P<measure>.*?\S)\s*(?P<threshold>(?:{WORDS})[^(){{}}<>=]*)", re.DOTALL)
_GROUPS = "by"
_GROUP_HINT = 'write a table [gate.by.category."billing"] with thresholds in it'


def all_rules(
    config: Config, thresholds: Thresholds | None = None, preset: Preset = NO_PRESET
) -> list[Rule]:
    """Return the rules of a config file and of `thresholds`.

    A rule in `thresholds` replaces the rules of the file for the same measure and group. Names of
    measures are parsed as the preset defines them.

    >>> file = Config(gate={"R@10": ">= 0.8", "RR": {"min": 0.5}})
    >>> [str(rule) for rule in all_rules(file, "recall@10 >= 0.9")]
    ['RR >= 0.5', 'R@10 >= 0.9']
    """
    section = f"{config.section}gate"
    config_rules = _parse_table(config.gate, config.path, section, preset)
    own_rules = [] if thresholds is None else rules_of(thresholds, preset)
    replaced = {(rule.measure, rule.group) for rule in own_rules}
    rules = [rule for rule in config_rules if (rule.measure, rule.group) not in replaced]
    rules += own_rules
    if rules:
        return rules
    raise InputError(
        "no threshold was given",
        path=config.path,
        field=section,
        hint='add "nDCG@10" = ">= 0.6" to [gate] in karat.toml, or pass --require "nDCG@10 >= 0.6"',
    )


def rules_of(thresholds: Thresholds, preset: Preset = NO_PRESET) -> list[Rule]:
    """Parse thresholds: a mapping as in karat.toml, or texts that start with a measure.

    >>> [str(rule) for rule in rules_of(["ndcg@10 >= 0.6", "latency.p90 <= 0.35 s"])]
    ['nDCG@10 >= 0.6', 'latency.p90 <= 350 ms']
    """
    if isinstance(thresholds, Mapping):
        return _parse_table(thresholds, None, "thresholds", preset)
    texts = [thresholds] if isinstance(thresholds, str) else list(thresholds)
    return [rule for text in texts for rule in _parse_text(text, preset)]


def _parse_text(text: Any, preset: Preset) -> list[Rule]:
    parts = _NAMED.fullmatch(text.strip()) if isinstance(text, str) else None
    if parts is None or parts["measure"].endswith("="):  # as in R@10 => 0.5
        raise InputError(
            f"{text!r} is not a threshold",
            field="thresholds",
            hint='write "nDCG@10 >= 0.6" or "R@10 max_drop 0.02"',
        )
    with _located_errors(None, repr(text), ": "):
        rules = rules_for(preset.parse(parts["measure"]), parts["threshold"])
    return [replace(rule, key=repr(text)) for rule in rules]


def _parse_table(
    table: Mapping[str, Any],
    path: str | None,
    field: str,
    preset: Preset,
    group: tuple[str | None, str | None] = (None, None),
) -> list[Rule]:
    rules: list[Rule] = []
    seen: dict[Measure, str] = {}
    for name, threshold in table.items():
        if name == _GROUPS and group == (None, None):
            rules += _parse_groups(threshold, path, f"{field}.{_GROUPS}", preset)
            continue
        key = f'{field}."{name}"'
        with _located_errors(path, key):
            measure = _parse_measure(name, threshold, preset)
            if measure in seen:
                raise InputError(
                    f"{measure} already has a threshold, written as {seen[measure]!r}",
                    hint="combine them in one table: { min = …, max_drop = … }",
                )
            seen[measure] = name
            measure_rules = rules_for(measure, threshold, group)
        rules += [replace(rule, path=path, key=key) for rule in measure_rules]
    return rules


def _parse_groups(table: Any, path: str | None, key: str, preset: Preset) -> list[Rule]:
    """Parse the rules of groups: field, then value, then thresholds as for all queries."""
    rules = []
    for field, values in _require_table(table, path, key).items():
        field_key = f"{key}.{field}"
        for value, thresholds in _require_table(values, path, field_key).items():
            value_key = f'{field_key}."{value}"'
            group_table = _require_table(thresholds, path, value_key)
            rules += _parse_table(group_table, path, value_key, preset, (field, str(value)))
    return rules


def _require_table(value: Any, path: str | None, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"expected a table, got {value!r}", path=path, field=key, hint=_GROUP_HINT)
    if not value:
        raise InputError("the table is empty", path=path, field=key, hint=_GROUP_HINT)
    return value


def _parse_measure(name: str, threshold: Any, preset: Preset) -> Measure:
    try:
        return preset.parse(name)
    except MeasureError as error:
        if isinstance(threshold, Mapping) and threshold and not set(threshold) & set(KEYS):
            inner = next(iter(threshold))  # TOML reads an unquoted latency.p90 as two keys
            error.hint = f'quote a name that contains a dot: "{name}.{inner}" = …'
        raise


@contextmanager
def _located_errors(path: str | None, field: str, separator: str = ".") -> Iterator[None]:
    """Add the file and the key to errors."""
    try:
        yield
    except InputError as error:
        error.path = path
        separator = ": " if isinstance(error, MeasureError) else separator
        error.field = separator.join(filter(None, [field, error.field]))
        raise


def rules_for(
    measure: Measure, threshold: Any, group: tuple[str | None, str | None] = (None, None)
) -> list[Rule]:
    """Return a rule for each limit of a threshold."""
    inclusive = True
    if isinstance(threshold, str):
        threshold, inclusive = _to_table(threshold)
    if not isinstance(threshold, Mapping):
        raise InputError(f"{threshold!r} is not a threshold", hint=f"write text such as {EXAMPLES}")
    for key in threshold:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS) or f"the keys are {', '.join(KEYS)}"
            raise InputError(f"a threshold has no key {key!r}", hint=hint)
    kinds = [kind for kind in LIMITS if kind in threshold]
    if not kinds:
        raise InputError(
            "the threshold does not set a limit", hint=f"add one of {', '.join(LIMITS)}"
        )
    test_options: dict[str, Any] = {
        "confidence": _check_confidence(threshold.get("confidence", CONFIDENCE)),
        "strict": _check_strict(threshold.get("strict", False)),
    }
    unused = [key for key in test_options if key in threshold]
    if unused and not set(kinds) & set(CHANGES):
        raise InputError(
            f"{unused[0]} applies only to max_drop and max_rise",
            hint=f"remove {unused[0]}: min and max do not use a baseline",
        )
    field, value = group
    return [
        Rule(
            measure.name,
            kind,
            _parse_limit(threshold[kind], kind, measure),
            inclusive,
            field=field,
            value=value,
            **(test_options if kind in CHANGES else {}),
        )
        for kind in kinds
    ]


def _to_table(text: str) -> tuple[dict[str, Any], bool]:
    """Return a threshold that was written as text as a table, and whether it is inclusive."""
    parts = _TEXT.fullmatch(text.strip())
    if parts is None:
        raise InputError(f"{text!r} is not a threshold", hint=f"write text such as {EXAMPLES}")
    kind, inclusive = SIGNS.get(parts["word"], (parts["word"], True))
    table: dict[str, Any] = {str(kind): parts["limit"]}
    if parts["confidence"]:
        table["confidence"] = _to_float(parts["confidence"])
    if parts["strict"]:
        table["strict"] = True
    return table, inclusive


def _parse_limit(value: Any, kind: Kind, measure: Measure) -> float:
    declaration = measure.declaration
    if kind in CHANGES and declaration.higher_is_better != (kind == "max_drop"):
        better, change = ("higher", "drop") if declaration.higher_is_better else ("lower", "rise")
        raise InputError(
            f"{kind} does not apply to {measure}, for which {better} is better",
            field=kind,
            hint=f"write max_{change}",
        )
    number = _parse_amount(value, measure) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not _is_finite(number):
        raise InputError(
            f"expected a number, got {value!r}", field=kind, hint=f"write {kind} = 0.6"
        )
    if kind in CHANGES and number < 0:
        raise InputError(
            f"{kind} must be at least 0, got {value!r}",
            field=kind,
            hint="write how much change is allowed, such as 0.02",
        )
    return float(number)


def _parse_amount(text: str, measure: Measure) -> Any:
    """Convert a number with a unit to the unit of the measure; return other text unchanged."""
    parts, measure_unit = _AMOUNT.fullmatch(text.strip()), measure.declaration.unit
    if parts is None:
        return text
    number, unit = float(parts["number"]), parts["unit"]
    if not unit:
        return number
    if (unit, measure_unit) not in _SCALES:
        units = [source for source, target in _SCALES if target == measure_unit]
        raise InputError(
            f"{measure} cannot be given in {unit!r}",
            hint=f"write it in {' or '.join(units)}"
            if units
            else "write the number without a unit",
        )
    return number * _SCALES[unit, measure_unit]


def _check_confidence(value: Any) -> float:
    if isinstance(value, float) and 0.5 < value < 1:
        return value
    raise InputError(
        f"the confidence must be between 0.5 and 1, got {value!r}",
        field="confidence",
        hint="write 0.95",
    )


def _check_strict(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise InputError(
        f"strict must be true or false, got {value!r}", field="strict", hint="write true"
    )


def _to_float(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer too large for a float
        return False
