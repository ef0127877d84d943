"""The registry of measures: declarations, parameters, and names.

A measure is declared once, as data next to its kernel. Parsing, help and docs read this data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from karat.arrays import Floats, Ints
from karat.errors import InputError, MeasureError
from karat.format import DIGITS, format_number
from karat.match.spans import Budget, MinOverlap
from karat.measures.families import FAMILIES, RANK, Family, FamilyName

Cutoff = Literal["none", "optional", "budget", "share"]
Unit = Literal["ms", "USD"]
UNITS: tuple[Unit, ...] = get_args(Unit)
Combine = Literal["mean", "micro", "geometric", "sum", "median", "p50", "p90", "p99", "max"]
Kernel = Callable[..., Floats]


@dataclass(frozen=True)
class Param:
    """A parameter of a measure."""

    name: str
    default: Any
    help: str
    convert: Callable[[Any], Any]
    """Checks a value and converts it to its type."""
    always_shown: bool = False
    """Whether the canonical name contains it even if it has its default."""


@dataclass(frozen=True, eq=False)
class Declaration:
    """The definition of a measure, from which parsing, help and docs are derived."""

    name: str
    title: str
    formula: str
    kernel: Kernel
    edges: str
    """The value in edge cases that the formula does not cover."""
    differs: str
    """How it relates to the measures of other tools, in particular where values differ."""
    family: FamilyName = RANK.name
    """What its kernel reads: judged items, spans, evidence texts, or the timings, calls and tokens
    of the run."""
    cutoff: Cutoff = "optional"
    """Whether it takes a cutoff: `optional` is a rank; `budget` is a rank or a number of
    characters, as in `@2000c`; `share` is a required recall level from 0 to 1."""
    params: tuple[Param, ...] = ()
    aliases: tuple[str, ...] = ()
    cites: tuple[str, ...] = ()
    """The publications that define it."""
    several: tuple[str, ...] = ()
    """The aliases that trec_eval uses for several measures at once; a number must follow them."""
    tail: str | None = None
    """The parameter that is set by a number after an alias, as in `Rprec_mult_0.2`."""
    combine: Combine = "mean"
    bound: Kernel | None = None
    """Computes the value that the measure would have if all unjudged items were relevant. None for
    measures that divide by the number of relevant items: their denominator would change, too."""
    weight: Callable[[Any], Ints] | None = None
    """For `micro`: computes the denominator of each query; value · denominator is an integer."""
    unit: Unit | None = None
    least_queries: int = 0
    """With fewer queries than this, the combined value is marked as unreliable."""
    higher_is_better: bool = True
    binary: bool = False
    """Whether the value of a query is 0 or 1."""
    whole: bool = False
    """Whether the value of a query is an integer, and is shown without decimals."""
    unbounded: bool = False
    """Whether values may be outside 0 and 1, for measures that are not `whole` and have no unit."""
    no_gold: bool = True
    """Whether the convention `no_gold` sets the value of queries with nothing relevant."""
    recall: bool = False
    """Whether it is a kind of recall, which `no_gold=recall` sets to 1 if nothing is relevant."""
    counts_repeats: bool = False
    """Whether repeated items count each time with `duplicates=count`."""
    needs_chunks: bool = False
    """Whether it reads the table of all chunks."""
    needs_largest_grade: Callable[[dict[str, Any]], bool] = lambda _: False
    function: Callable[..., Any] | None = None
    """For a measure that a user declared: the function that computes it."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle a declaration of karat by its name, and that of a user by its values."""
        if REGISTRY.get(self.name) is self and self.function is None:
            return _declaration_named, (self.name,)
        return super().__reduce__()

    @property
    def reads(self) -> Family:
        """Its family."""
        return FAMILIES[self.family]

    @property
    def reads_gold(self) -> bool:
        """Whether it reads more of gold than the ids of the queries."""
        return self.reads.reads_gold

    @property
    def bounded(self) -> bool:
        """Whether all values are between 0 and 1."""
        return not self.unbounded and not self.whole and self.unit is None


@dataclass(frozen=True, eq=False)
class Measure:
    """A declaration with a cutoff and parameters; measures with the same name are equal."""

    declaration: Declaration
    cutoff: int | float | Budget | None
    params: dict[str, Any]

    @cached_property
    def name(self) -> str:
        """The canonical name."""
        params_shown = [
            f"{param.name}={format_value(self.params[param.name])}"
            for param in self.declaration.params
            if param.always_shown or self.params[param.name] != param.default
        ]
        params = f"({', '.join(params_shown)})" if params_shown else ""
        cutoff = "" if self.cutoff is None else f"@{format_value(self.cutoff)}"
        return f"{self.declaration.name}{params}{cutoff}"

    @property
    def command_name(self) -> str:
        """The name for the command line, where a measure that a user declared must be imported."""
        function, tail = self.declaration.function, self.name[len(self.declaration.name) :]
        if function is None:
            return self.name
        return f"{function.__module__}:{function.__qualname__}{tail}"

    @property
    def needs_largest_grade(self) -> bool:
        """Whether the largest grade of the whole gold is needed to compute it."""
        return self.declaration.needs_largest_grade(self.params)

    def format(self, value: float | None, digits: int = DIGITS) -> str:
        """Format a value: with some decimals, as an integer, or as an amount of its unit."""
        declaration = self.declaration
        is_amount = declaration.unit is not None
        return format_number(value, is_amount=is_amount, is_whole=declaration.whole, digits=digits)

    def is_better(self, value: float, other: float) -> bool:
        """Return whether a value is better than another one."""
        return value > other if self.declaration.higher_is_better else value < other

    def best(self, values: Iterable[float | None]) -> float | None:
        """Return the best value, or None if all are None."""
        best = None
        for value in values:
            if value is not None and (best is None or self.is_better(value, best)):
                best = value
        return best

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


REGISTRY: dict[str, Declaration] = {}
"""All declarations by name."""


def _declaration_named(name: str) -> Declaration:
    return REGISTRY[name]


_SPELLINGS: dict[str, str] = {}
"""From each folded name or alias to the name of its declaration."""


def measure(name: str, **facts: Any) -> Callable[[Kernel], Kernel]:
    """Declare a built-in measure: decorate its kernel."""

    def declare(kernel: Kernel) -> Kernel:
        register(Declaration(name=name, kernel=kernel, **facts))
        return kernel

    return declare


def register(declaration: Declaration, replaced: Declaration | None = None) -> None:
    """Add a declaration under all of its names; `replaced` is removed first."""
    if replaced is not None:
        unregister(replaced)
    for spelling in (declaration.name, *declaration.aliases):
        key = folded(spelling)
        if key in _SPELLINGS:
            raise AssertionError(f"{spelling} is already a name of {_SPELLINGS[key]}")
        _SPELLINGS[key] = declaration.name
    REGISTRY[declaration.name] = declaration


def unregister(declaration: Declaration) -> None:
    """Remove a declaration and all of its names."""
    del REGISTRY[declaration.name]
    for spelling in (declaration.name, *declaration.aliases):
        del _SPELLINGS[folded(spelling)]


def folded(name: str) -> str:
    """Return a name as it is looked up: in lower case, without dashes, underscores and blanks."""
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def declared(name: str) -> Declaration | None:
    """Return the declaration with a name or alias, in any spelling, or None."""
    canonical = _SPELLINGS.get(folded(name))
    if canonical is None:  # span_recall is span.recall
        family, _, rest = name.lower().partition("_")
        if family in FAMILIES:
            canonical = _SPELLINGS.get(f"{family}.{folded(rest)}")
    return None if canonical is None else REGISTRY[canonical]


def spellings() -> list[str]:
    """Return all names and aliases of all measures."""
    return [
        spelling
        for declaration in REGISTRY.values()
        for spelling in (declaration.name, *declaration.aliases)
    ]


def whole_number_from(least: int) -> Callable[[Any], int]:
    """Return a function that checks that a value is an integer and not below `least`."""

    def convert(value: Any) -> int:
        try:
            number = int(value)
            if number == float(value) and number >= least:
                return number
        except (TypeError, ValueError):
            pass
        raise MeasureError(f"must be an integer of at least {least}, got {value!r}")

    return convert


def integer(value: Any) -> int:
    """Check an integer."""
    try:
        checked = int(value)
        if checked == float(value):
            return checked
    except (TypeError, ValueError, OverflowError):
        pass
    raise MeasureError(f"must be an integer, got {value!r}")


def flag(value: Any) -> bool:
    """Check a boolean."""
    word = str(value).strip("'\"").lower()
    if word in ("true", "false"):
        return word == "true"
    raise MeasureError(f"must be true or false, got {value!r}")


def share(value: Any) -> float:
    """Check a number between 0 and 1, both excluded."""
    try:
        number = float(value)
        if 0 < number < 1:
            return number
    except (TypeError, ValueError):
        pass
    raise MeasureError(f"must be a number above 0 and below 1, got {value!r}")


def number(value: Any) -> float:
    """Check a finite number."""
    try:
        checked = float(value)
        if math.isfinite(checked):
            return checked
    except (TypeError, ValueError):
        pass
    raise MeasureError(f"must be a number, got {value!r}")


def number_above_zero(value: Any) -> float:
    """Check a finite number above 0."""
    checked = number(value)
    if checked > 0:
        return checked
    raise MeasureError(f"must be a number above 0, got {value!r}")


def one_of(*words: str) -> Callable[[Any], str]:
    """Return a function that checks that a value is one of the given words."""

    def convert(value: Any) -> str:
        word = str(value).strip("'\"").lower()
        if word not in words:
            raise MeasureError(f"must be one of {', '.join(words)}, got {value!r}")
        return word

    return convert


def word(value: Any) -> str:
    """Check a name from the data, such as a stage; in double quotes it may contain anything."""
    name = str(value)
    if name[:1] == name[-1:] == '"':
        try:
            return str(json.loads(name))
        except ValueError:
            pass
    name = name.strip("'\"")
    if name:
        return name
    raise MeasureError("must not be empty")


def parse_gain(value: Any) -> Any:
    """Check a gain: `linear`, `exp2`, or a mapping from grade to gain."""
    if not isinstance(value, dict):
        return one_of("linear", "exp2")(value)
    try:
        gains = {int(grade): float(gain) for grade, gain in value.items()}
    except (TypeError, ValueError):
        gains = {}
    if not gains or not all(
        grade >= 0 and math.isfinite(gain) and gain >= 0 for grade, gain in gains.items()
    ):
        raise MeasureError(
            f"must map grades to gains of at least 0, such as {{1: 1, 2: 3}}, got {value!r}"
        )
    return dict(sorted(gains.items()))


def min_overlap(value: Any) -> MinOverlap:
    """Check a minimum overlap: an integer of characters, or a share with a decimal point."""
    try:
        return MinOverlap.of(value)
    except InputError:
        raise MeasureError(
            f"must be a number of characters (20) or a share (0.5), got {value!r}"
        ) from None


def format_value(value: Any) -> str:
    """Format the value of a parameter as it is written in a name."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {format_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, str) and not _is_bare(value):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_bare(name: str) -> bool:
    """Return whether a value can be parsed again without quotes."""
    plain = name.isprintable() and not set(name) & set("(){},\\'\"")
    return plain and name != "" and name == name.strip()


REL = Param("rel", 1, "the lowest grade that counts as relevant", whole_number_from(1))
GAIN = Param(
    "gain",
    "linear",
    "the gain of an item: its grade (linear), 2^grade − 1 (exp2), or a mapping {grade: gain}; "
    "grades that are not in the mapping keep their linear gain",
    parse_gain,
)
MIN_OVERLAP = Param(
    "min_overlap",
    MinOverlap(),
    "how much of a gold span an item must contain: a number of characters (20) or a share of the "
    "span (0.5, 1.0)",
    min_overlap,
)
