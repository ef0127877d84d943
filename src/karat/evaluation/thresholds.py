"""Thresholds as people write them, in a file, in Python or as texts, read into rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from karat.config import Config
from karat.errors import InputError, MeasureError
from karat.evaluation.threshold import EXAMPLES, KEYS, WORDS, rules_for
from karat.measures import Measure
from karat.measures.presets import NO_PRESET, Preset
from karat.stats.rules import Rule

Thresholds = str | Iterable[str] | Mapping[str, Any]

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
