"""Parse the names of measures, in karat's spelling and those of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from karat.checks import did_you_mean
from karat.errors import MeasureError
from karat.match.spans import Budget
from karat.measures.registry import REGISTRY, Declaration, Measure, declared, folded, spellings

# A value that comes from the data, such as a stage, is quoted if it contains brackets or commas.
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf"(?>{_QUOTED}|[^()])*+"
# Name(params)@cutoff or Name@cutoff(params).
_NAME = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.+-]*?)\s*"
    rf"(?:\((?P<params>{_INSIDE})\))?\s*(?:@(?P<cutoff>[^()@]+))?\s*(?:\((?P<late>{_INSIDE})\))?"
)
# Blanks around @ and before a bracket do not separate names.
_TOKEN = re.compile(rf"{_QUOTED}|\s*@\s*|\s*\(|\s+|.", re.DOTALL)
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_TREC_TAIL = re.compile(rf"(?P<name>.*[A-Za-z])[._](?P<tail>{_NUMBER})")
# precision_at_3 and hits_in_top_3, as benchmark scripts spell them.
_SPELLED_OUT = re.compile(r"(?P<name>[A-Za-z]\w*?)_(?:at|in_top)_(?P<k>\d+)(?P<params>\(.*\))?")
# package.module:function, then a cutoff and parameters as for any measure.
_IDENTIFIERS = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_IMPORTED = re.compile(rf"(?P<path>{_IDENTIFIERS}:{_IDENTIFIERS})(?P<tail>\s*[@(].*)?", re.DOTALL)
# rbp.80, as ranx writes a persistence of 0.80.
_RBP_TAIL = re.compile(r"rbp\.(?P<p>\d+)", re.IGNORECASE)

AnyMeasure = str | Measure | Callable[..., Any]
"""A name, a measure, or a function that `karat.measure` declared."""


def parse(text: AnyMeasure) -> Measure:
    """Return the measure with a name.

    A name such as `package.module:function` imports a measure that a user declared.

    >>> [parse(name).name for name in ("ndcg_cut_10", "mrr@10", "map(rel=2)")]
    ['nDCG@10', 'RR@10', 'AP(rel=2)']
    """
    if isinstance(text, Measure):
        return text
    if callable(text):
        return resolve_measure(declaration_of(text), None, {})
    if not isinstance(text, str):
        raise MeasureError(
            f"a measure must be a name, got {text!r}", hint='write it as text, such as "nDCG@10"'
        )
    parts = _parse_parts(text)
    declaration, cutoff = _translate(text, parts.declaration, parts.cutoff, parts.params)
    cutoff = _take_tail(text, replace(parts, declaration=declaration, cutoff=cutoff))
    if cutoff is None:
        return resolve_measure(declaration, None, parts.params)
    return resolve_measure(declaration, _parse_cutoff(text, cutoff, declaration), parts.params)


@dataclass(frozen=True)
class _NameParts:
    """The parts of a name, with its measure looked up."""

    name: str
    declaration: Declaration
    cutoff: str | None
    params: dict[str, Any]
    has_tail: bool
    """Whether the cutoff is the number after `_` or `.`, as in trec_eval's `P_10`."""


def _parse_parts(text: str) -> _NameParts:
    name_in_karat = _to_karat_spelling(text.strip())
    parts = _NAME.fullmatch(name_in_karat)
    if parts is None and (declaration := declared(name_in_karat.partition(".")[0])) is not None:
        raise _bracketed(text, declaration)
    if parts is None or (parts["params"] is not None and parts["late"] is not None):
        raise MeasureError(
            f"{text!r} is not the name of a measure", hint="write Name(param=value)@cutoff"
        )
    name, cutoff = parts["name"], parts["cutoff"]
    params = _parse_params(text, parts["params"] or parts["late"] or "")
    declaration = declared(name)
    if declaration is not None:
        return _NameParts(name, declaration, cutoff, params, has_tail=False)
    tail = _TREC_TAIL.fullmatch(name) if cutoff is None else None
    if tail is None or (declaration := declared(tail["name"])) is None:
        raise _unknown(text, name)
    return _NameParts(tail["name"], declaration, tail["tail"], params, has_tail=True)


def _to_karat_spelling(name: str) -> str:
    """Rewrite imported names, and the spellings of ranx and benchmark scripts."""
    if imported := _IMPORTED.fullmatch(name):
        name = _import(imported["path"]).name + (imported["tail"] or "")
    if rbp := _RBP_TAIL.fullmatch(name):
        name = f"RBP(p=0.{rbp['p']})"
    if spelled_out := _SPELLED_OUT.fullmatch(name):
        name = f"{spelled_out['name']}@{spelled_out['k']}{spelled_out['params'] or ''}"
    return name


def _take_tail(text: str, parts: _NameParts) -> str | None:
    """Move the number behind a name of trec_eval to its parameter; return the cutoff that remains.

    `Rprec_mult_0.2` sets a parameter, `P_10` a cutoff.
    """
    name, declaration, cutoff, params = parts.name, parts.declaration, parts.cutoff, parts.params
    needs_number = folded(name) in map(folded, declaration.several)
    if parts.has_tail and declaration.cutoff == "none" and declaration.tail is None:
        raise _bracketed(text, declaration)
    if (parts.has_tail or needs_number) and cutoff is not None and declaration.tail is not None:
        if declaration.tail in params:
            raise _given_twice(text, repr(declaration.tail))
        params[declaration.tail], cutoff = cutoff, None
    if needs_number and cutoff is None and declaration.tail not in params:
        example = "10" if declaration.cutoff == "optional" else "0.2"
        raise MeasureError(f"{name} needs a number", hint=f"write {name}_{example}")
    return cutoff


def declaration_of(function: Callable[..., Any]) -> Declaration:
    """Return the declaration of a function that `karat.measure` declared."""
    for declaration in REGISTRY.values():
        if declaration.function is function:
            return declaration
    name = getattr(function, "__name__", type(function).__name__)
    raise MeasureError(
        f"{name} is not declared as a measure",
        hint=f'write @karat.measure("{name}") above the function',
    )


def declaration_named(text: str) -> Declaration:
    """Return the declaration with a name, which has no cutoff or parameters."""
    if imports(text):
        return parse(text).declaration
    declaration = declared(text)
    if declaration is None:
        raise _unknown(text, text)
    return declaration


def _import(path: str) -> Declaration:
    """Import `package.module:function`."""
    from karat.live.retrievers.resolve import import_object

    imported = import_object(path, role="measure")
    if callable(imported):
        return declaration_of(imported)
    raise MeasureError(
        f"{path} must be a function, got {type(imported).__name__}",
        hint="name a function that is decorated with @karat.measure",
    )


def imports(name: str) -> bool:
    """Return whether a name imports a measure: `package.module:function`."""
    return _IMPORTED.fullmatch(name.strip()) is not None


def resolve_measure(
    declaration: Declaration, cutoff: int | float | Budget | None, params: dict[str, Any]
) -> Measure:
    """Check the cutoff and the parameters against the declaration, and fill in defaults."""
    name = declaration.name
    if cutoff is None and declaration.cutoff == "share":
        raise MeasureError(f"{name} needs a recall level", hint=f"write {name}@0.1")
    if cutoff is not None and declaration.cutoff == "none":
        raise MeasureError(f"{name} takes no cutoff", hint=f"write {name}")
    declared_params = {param.name: param for param in declaration.params}
    for key in params:
        if key not in declared_params:
            names = ", ".join(declared_params)
            hint = (
                f"the parameters of {name} are: {names}" if names else f"{name} has no parameters"
            )
            raise MeasureError(f"{name} has no parameter {key!r}", hint=hint)
    values = {}
    for key, param in declared_params.items():
        try:
            values[key] = param.convert(params[key]) if key in params else param.default
        except MeasureError as error:
            raise MeasureError(
                error.problem, field=f"{name}: {key}", hint=f"{key}: {param.help}"
            ) from None
    return Measure(declaration, cutoff, values)


def parse_all(given: AnyMeasure | Iterable[AnyMeasure]) -> tuple[Measure, ...]:
    """Return the measures of a list of names, without repeats, in the same order."""
    parsed = [parse(measure) for measure in measure_list(given)]
    if not parsed:
        raise MeasureError("at least one measure is required", hint='name one, such as "nDCG@10"')
    return tuple(dict.fromkeys(parsed))


def measure_list(measures: AnyMeasure | Iterable[AnyMeasure]) -> list[AnyMeasure]:
    """Return one entry per measure; a text may name several measures."""
    if isinstance(measures, (str, Measure)) or callable(measures):
        measures = [measures]
    listed: list[AnyMeasure] = []
    for measure in measures:
        listed += split(measure) if isinstance(measure, str) else [measure]
    return listed


def split(names: str) -> list[str]:
    """Split names at commas and blanks outside brackets and quotes.

    `ndcg_cut.5,10` means two measures, as in trec_eval.

    >>> split("nDCG(gain={1: 1, 2: 3})@10, RR P.5,10")
    ['nDCG(gain={1: 1, 2: 3})@10', 'RR', 'P.5', 'P.10']
    """
    parts: list[str] = []
    for part in _split_outside_brackets(names, at_blanks=True):
        previous = re.fullmatch(rf"(\w+)\.{_NUMBER}", parts[-1]) if parts else None
        if previous and re.fullmatch(_NUMBER, part):
            part = f"{previous[1]}.{part}"
        parts.append(part)
    return parts


def _split_outside_brackets(text: str, *, at_blanks: bool = False) -> list[str]:
    parts: list[str] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        mark = token[0].strip()
        depth += (mark in ("(", "{")) - (mark in (")", "}"))
        if depth <= 0 and (mark == "," or (at_blanks and not mark)):
            parts.append(text[start : token.start()].strip())
            start = token.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _parse_cutoff(text: str, cutoff: str, declaration: Declaration) -> int | float | Budget:
    if declaration.cutoff == "budget" and re.fullmatch(r"[0-9]{1,12}[cC]", cutoff.strip()):
        if characters := int(cutoff.strip()[:-1]):
            return Budget(characters)
        raise MeasureError(f"{text}: the budget must be at least 1 character", hint="write @2000c")
    if declaration.cutoff == "share":
        if re.fullmatch(rf"{_NUMBER}(?:e-?\d+)?", cutoff.strip()) and 0 <= float(cutoff) <= 1:
            return abs(float(cutoff))
        raise MeasureError(
            f"{text}: the recall level must be between 0 and 1, got {cutoff}",
            hint="write @0.1, @0.2, …",
        )
    if re.fullmatch(r"[0-9]{1,9}", cutoff.strip()) and int(cutoff) > 0:
        return int(cutoff)
    raise MeasureError(
        f"{text}: the cutoff must be an integer of at least 1, got {cutoff}",
        hint="write @1, @10, …",
    )


def _translate(
    text: str, declaration: Declaration, cutoff: str | None, params: dict[str, Any]
) -> tuple[Declaration, str | None]:
    """Replace the parameters of ir_measures by those of karat, in place.

    Return the declaration and the cutoff that they lead to.
    """
    if not declaration.reads.is_graded:
        return declaration, cutoff
    if _take_flag(text, params, "judged_only"):
        raise MeasureError(
            f"{text}: judged_only cannot be set for a single measure",
            hint="drop unjudged items for all measures with --unjudged skip, or in Python with "
            "conventions={'unjudged': 'skip'}",
        )
    declaration = _translate_declaration(text, declaration, params)
    if any(param.name == "gain" for param in declaration.params):
        _translate_gain(text, params)
    cutoff_param = "recall" if declaration.cutoff == "share" else "cutoff"
    if cutoff_param not in params:
        return declaration, cutoff
    if cutoff is not None:
        raise _given_twice(text, "the cutoff")
    return declaration, str(params.pop(cutoff_param))


def _translate_declaration(
    text: str, declaration: Declaration, params: dict[str, Any]
) -> Declaration:
    """Return the measure of karat that a parameter of ir_measures stands for."""
    if declaration.name == "P" and _take_flag(text, params, "relative"):
        return REGISTRY["R_cap"]
    if declaration.name == "NumRet" and "rel" in params:
        return REGISTRY["NumRelRet"]
    if declaration.name == "SetF":
        _rename(text, params, "beta", "weight")
    if declaration.name == "F1" and "beta" in params:
        raise MeasureError(
            f"{text}: F1 has no parameter 'beta', its β is always 1",
            hint="use SetF(weight=β²), the F measure of the whole list",
        )
    return declaration


def _translate_gain(text: str, params: dict[str, Any]) -> None:
    """Replace the parameters dcg= and gains= of ir_measures by gain=."""
    if "dcg" in params:
        formula = str(params.pop("dcg"))
        gain = {"log2": "linear", "exp-log2": "exp2"}.get(formula.strip("'\""))
        if gain is None:
            raise MeasureError(
                f"{text}: dcg must be log2 or exp-log2, got {formula}",
                hint="use gain=linear (the same as dcg=log2) or gain=exp2 (the same as "
                "dcg=exp-log2)",
            )
        if gain == "exp2" or not {"gain", "gains"} & params.keys():
            params["dcg"] = gain
            _rename(text, params, "dcg", "gain")
    _rename(text, params, "gains", "gain")


def _rename(text: str, params: dict[str, Any], theirs: str, ours: str) -> None:
    if theirs not in params:
        return
    if ours in params:
        raise _given_twice(text, repr(ours))
    params[ours] = params.pop(theirs)


def _take_flag(text: str, params: dict[str, Any], name: str) -> bool:
    """Remove a parameter that is true or false, and return its value."""
    value = str(params.pop(name, "False"))
    if value.lower() not in ("true", "false"):
        raise MeasureError(
            f"{text}: {name} must be True or False, got {value}", hint=f"write {name}=True"
        )
    return value.lower() == "true"


def _parse_params(text: str, inside: str) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for part in _split_outside_brackets(inside):
        key, equals, value = part.partition("=")
        if not equals:
            raise MeasureError(f"{text}: parameter {part!r} has no value", hint="write name=value")
        name = key.strip().lower()
        if name in params:
            raise _given_twice(text, repr(name))
        params[name] = _parse_value(text, value.strip())
    return params


def _parse_value(text: str, value: str) -> Any:
    if not value.startswith("{"):
        return value
    pairs = [pair.partition(":") for pair in _split_outside_brackets(value.strip("{}"))]
    if not value.endswith("}") or not all(colon for _, colon, _ in pairs):
        raise MeasureError(
            f"{text}: {value!r} is not a mapping from grade to gain", hint="write {1: 1, 2: 3}"
        )
    return {grade.strip(): gain.strip() for grade, _, gain in pairs}


def _bracketed(text: str, declaration: Declaration) -> MeasureError:
    """Return the error for parameters that are written after a dot, as in trec_eval."""
    names = [f"{param.name}=…" for param in declaration.params]
    return MeasureError(
        f"{text!r} is not the name of a measure",
        hint=f"write {declaration.name}({', '.join(names)})",
    )


def _given_twice(text: str, what: str) -> MeasureError:
    return MeasureError(f"{text}: {what} is given twice", hint=f"give {what} only once")


def _unknown(text: str, name: str) -> MeasureError:
    by_folded_name = {folded(spelling): spelling for spelling in spellings()}
    hint = did_you_mean(folded(name), by_folded_name, count=3, show=by_folded_name.__getitem__)
    return MeasureError(
        f"measure {text!r} not found",
        hint=hint
        or "run `karat measures` to list all measures; refer to a custom measure as "
        "package.module:function",
    )
