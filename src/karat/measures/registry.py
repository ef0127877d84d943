"""How a measure is declared: once, as data beside its kernel."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from karat.arrays import Floats, Ints
from karat.errors import InputError, MeasureError
from karat.format import format_number
from karat.match.spans import Budget, MinOverlap
from karat.measures.families import FAMILIES, RANK, Family, FamilyName

Cutoff = Literal["none", "optional", "budget", "share"]
Unit = Literal["ms", "USD"]
UNITS: tuple[Unit, ...] = get_args(Unit)
Combine = Literal["mean", "micro", "geometric", "sum", "median", "p50", "p90", "p99", "max"]
Kernel = Callable[..., Floats]


@dataclass(frozen=True)
class Param:
    """A parameter: its name, its default, what it takes and what it is for."""

    name: str
    default: Any
    help: str
    convert: Callable[[Any], Any]
    shown: bool = False
    """Whether the canonical name shows it even at its default."""


@dataclass(frozen=True, eq=False)
class Declaration:
    """Everything karat knows of a measure; parsing, help and docs come from here."""

    name: str
    title: str
    formula: str
    kernel: Kernel
    edges: str
    """What it is where the formula alone does not say."""
    differs: str
    """Where other tools give another number for the same name."""
    family: FamilyName = RANK.name
    """What its kernel reads: hits of ranked items, the coverage of spans or of evidence, or what
    the run says of its own speed, cost and length."""
    cutoff: Cutoff = "optional"
    """Whether it takes a rank to stop at; `budget` takes characters too, as in `@2000c`; `share`
    is a point of recall from 0 to 1 instead."""
    params: tuple[Param, ...] = ()
    aliases: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    """The publications that define it."""
    several: tuple[str, ...] = ()
    """The aliases by which trec_eval means several measures at once; a number must follow."""
    tail: str | None = None
    """The parameter that a number behind an alias sets, as in `Rprec_mult_0.2`."""
    combine: Combine = "mean"
    bound: Kernel | None = None
    """What it would be if every unjudged item of the list were relevant, where that is known: for
    measures that divide by what is relevant, such items would move the denominator too."""
    weight: Callable[[Any], Ints] | None = None
    """For `micro`: the denominator of each query, of which its value times it is whole."""
    unit: Unit | None = None
    least_queries: int = 0
    """The fewest queries that its value over queries may rest on without being marked."""
    higher_is_better: bool = True
    binary: bool = False
    """Whether a query's value is 0 or 1."""
    whole: bool = False
    """Whether a query's value is a whole number, and is shown so."""
    unbounded: bool = False
    """Whether it may lie outside 0 and 1, though it is neither whole nor of a unit."""
    no_gold: bool = True
    """Whether the convention `no_gold` sets its value where nothing is relevant."""
    recall: bool = False
    """Whether it is a kind of recall: 1 with `no_gold=recall` where nothing is relevant."""
    counts_repeats: bool = False
    """Whether `duplicates=count` lets an item that stands again count again."""
    needs_chunks: bool = False
    """Whether it reads the table of all chunks."""
    needs_largest_grade: Callable[[dict[str, Any]], bool] = field(default=lambda _: False)
    function: Callable[..., Any] | None = None
    """For a measure that a user declared: the function that computes it."""

    @property
    def reads(self) -> Family:
        """What its family reads."""
        return FAMILIES[self.family]

    @property
    def reads_gold(self) -> bool:
        """Whether it reads more of gold than which queries there are."""
        return self.reads.reads_gold

    @property
    def bounded(self) -> bool:
        """Whether its values lie between 0 and 1."""
        return not self.unbounded and not self.whole and self.unit is None


@dataclass(frozen=True, eq=False)
class Measure:
    """A declaration with its parameters and cutoff settled; equal if its name is."""

    declaration: Declaration
    cutoff: int | float | Budget | None
    params: dict[str, Any]

    @cached_property
    def name(self) -> str:
        """The canonical name."""
        shown = [
            f"{param.name}={spelled(self.params[param.name])}"
            for param in self.declaration.params
            if param.shown or self.params[param.name] != param.default
        ]
        params = f"({', '.join(shown)})" if shown else ""
        cutoff = "" if self.cutoff is None else f"@{spelled(self.cutoff)}"
        return f"{self.declaration.name}{params}{cutoff}"

    @property
    def command_name(self) -> str:
        """The name that another process knows: a measure that a user declared is imported."""
        function, tail = self.declaration.function, self.name[len(self.declaration.name) :]
        if function is None:
            return self.name
        return f"{function.__module__}:{function.__qualname__}{tail}"

    @property
    def needs_largest_grade(self) -> bool:
        """Whether it is scaled by the largest grade of the whole gold."""
        return self.declaration.needs_largest_grade(self.params)

    def format(self, value: float | None) -> str:
        """Return a value as text: with four decimals, or as an amount of its unit."""
        declaration = self.declaration
        is_amount = declaration.unit is not None
        return format_number(value, is_amount=is_amount, is_whole=declaration.whole)

    def is_better(self, value: float, other: float) -> bool:
        """Return whether a value is better than another one."""
        return value > other if self.declaration.higher_is_better else value < other

    def best(self, values: Iterable[float | None]) -> float | None:
        """Return the best of some values, None if there is no value."""
        leader = None
        for value in values:
            if value is not None and (leader is None or self.is_better(value, leader)):
                leader = value
        return leader

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


REGISTRY: dict[str, Declaration] = {}
_SPELLINGS: dict[str, str] = {}


def measure(name: str, **facts: Any) -> Callable[[Kernel], Kernel]:
    """Declare a measure beside its kernel."""

    def declare(kernel: Kernel) -> Kernel:
        register(Declaration(name=name, kernel=kernel, **facts))
        return kernel

    return declare


def register(declaration: Declaration, replaced: Declaration | None = None) -> None:
    """Make a declaration known by its names, in place of an earlier one if there is one."""
    if replaced is not None:
        unregister(replaced)
    for spelling in (declaration.name, *declaration.aliases):
        key = folded(spelling)
        if key in _SPELLINGS:
            raise AssertionError(f"{spelling} already names {_SPELLINGS[key]}")
        _SPELLINGS[key] = declaration.name
    REGISTRY[declaration.name] = declaration


def unregister(declaration: Declaration) -> None:
    """Remove a declaration and all of its names."""
    del REGISTRY[declaration.name]
    for spelling in (declaration.name, *declaration.aliases):
        del _SPELLINGS[folded(spelling)]


def folded(name: str) -> str:
    """Return a name as it is looked up: without case, dashes and underscores."""
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def declared(name: str) -> Declaration | None:
    """Return the measure that goes by a name, in any of its spellings."""
    found = _SPELLINGS.get(folded(name))
    if found is None:  # span_recall is span.recall
        family, _, rest = name.lower().partition("_")
        found = _SPELLINGS.get(f"{family}.{folded(rest)}") if family in FAMILIES else None
    return None if found is None else REGISTRY[found]


def spellings() -> list[str]:
    """Return every name by which a measure can be called."""
    return [s for d in REGISTRY.values() for s in (d.name, *d.aliases)]


def whole_number_from(least: int) -> Callable[[Any], int]:
    """Make the check for a whole number that is not less than another."""

    def convert(value: Any) -> int:
        try:
            number = int(value)
            if number == float(value) and number >= least:
                return number
        except (TypeError, ValueError):
            pass
        raise MeasureError(f"{value!r} is not a whole number from {least} up")

    return convert


def integer(value: Any) -> int:
    """Check any integer."""
    try:
        checked = int(value)
        if checked == float(value):
            return checked
    except (TypeError, ValueError, OverflowError):
        pass
    raise MeasureError(f"{value!r} is not an integer")


def flag(value: Any) -> bool:
    """Check true or false."""
    word = str(value).strip("'\"").lower()
    if word in ("true", "false"):
        return word == "true"
    raise MeasureError(f"{value!r} is neither true nor false")


def share(value: Any) -> float:
    """Check a number between 0 and 1, both excluded."""
    try:
        number = float(value)
        if 0 < number < 1:
            return number
    except (TypeError, ValueError):
        pass
    raise MeasureError(f"{value!r} is not a number between 0 and 1")


def number(value: Any) -> float:
    """Check any finite number."""
    try:
        checked = float(value)
        if math.isfinite(checked):
            return checked
    except (TypeError, ValueError):
        pass
    raise MeasureError(f"{value!r} is not a number")


def number_above_zero(value: Any) -> float:
    """Check a finite number that is more than 0."""
    checked = number(value)
    if checked > 0:
        return checked
    raise MeasureError(f"{value!r} is not a number above 0")


def one_of(*words: str) -> Callable[[Any], str]:
    """Make the check for one of a few words."""

    def convert(value: Any) -> str:
        word = str(value).strip("'\"").lower()
        if word not in words:
            raise MeasureError(f"{value!r} is none of {', '.join(words)}")
        return word

    return convert


def word(value: Any) -> str:
    """Check a name that only the data can know; in double quotes it may be any."""
    name = str(value)
    if name[:1] == name[-1:] == '"':
        try:
            return str(json.loads(name))
        except ValueError:
            pass
    name = name.strip("'\"")
    if name:
        return name
    raise MeasureError("there is no name")


def gain(value: Any) -> Any:
    """Check a gain: `linear`, `exp2`, or a gain for each grade."""
    if not isinstance(value, dict):
        return one_of("linear", "exp2")(value)
    try:
        gains = {int(grade): float(worth) for grade, worth in value.items()}
    except (TypeError, ValueError):
        gains = {}
    if not gains or not all(
        grade >= 0 and math.isfinite(worth) and worth >= 0 for grade, worth in gains.items()
    ):
        raise MeasureError(f"{value!r} is no gain for each grade, such as {{1: 1, 2: 3}}")
    return dict(sorted(gains.items()))


def least_overlap(value: Any) -> MinOverlap:
    """Check a least overlap: characters as a whole number, or a share with a point."""
    try:
        return MinOverlap.of(value)
    except InputError:
        raise MeasureError(f"{value!r} is no least overlap") from None


def spelled(value: Any) -> str:
    """Return the value of a parameter as a name holds it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {spelled(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, str) and not _is_bare(value):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_bare(name: str) -> bool:
    """Tell whether a name can be read again without quotes."""
    plain = name.isprintable() and not set(name) & set("(){},\\'\"")
    return plain and name != "" and name == name.strip()


REL = Param("rel", 1, "the lowest grade that counts as relevant", whole_number_from(1))
GAIN = Param(
    "gain",
    "linear",
    "what a grade is worth: linear, exp2, or {grade: gain}, in which grades left out stay linear",
    gain,
)
MIN_OVERLAP = Param(
    "min_overlap",
    MinOverlap(),
    "how much of a gold span an item must hold: characters (20), or a share of the span (0.5, 1.0)",
    least_overlap,
)
