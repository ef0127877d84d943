"""From a name to a measure: karat's own names and every common spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from karat.checks import did_you_mean
from karat.errors import MeasureError
from karat.match.spans import Budget
from karat.measures.registry import REGISTRY, Declaration, Measure, declared, folded, spellings

# A name that only the data can know may hold brackets and commas: then it stands in quotes.
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf"(?>{_QUOTED}|[^()])*+"
# Name(params)@cutoff, with the two tails in either order.
_NAME = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.+-]*?)\s*"
    rf"(?:\((?P<params>{_INSIDE})\))?\s*(?:@(?P<cutoff>[^()@]+))?\s*(?:\((?P<late>{_INSIDE})\))?"
)
# Blanks around @ and in front of a bracket belong to the name.
_TOKEN = re.compile(rf"{_QUOTED}|\s*@\s*|\s*\(|\s+|.", re.DOTALL)
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_TREC_TAIL = re.compile(rf"(?P<name>.*[A-Za-z])[._](?P<tail>{_NUMBER})")
# precision_at_3 and hits_in_top_3, as benchmark scripts spell them.
_SPELLED_OUT = re.compile(r"(?P<name>[A-Za-z]\w*?)_(?:at|in_top)_(?P<k>\d+)(?P<params>\(.*\))?")
# package.module:function, with what follows the name of any measure.
_IDENTIFIERS = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_IMPORTED = re.compile(rf"(?P<path>{_IDENTIFIERS}:{_IDENTIFIERS})(?P<tail>\s*[@(].*)?", re.DOTALL)
_RBP_TAIL = re.compile(r"rbp\.(?P<p>\d+)", re.IGNORECASE)


AnyMeasure = str | Measure | Callable[..., Any]
"""A name, a measure, or a function that `karat.measure` declared."""


def parse(text: AnyMeasure) -> Measure:
    """Return the measure that a name stands for.

    A name such as `package.module:function` imports a measure that a user declared.

    >>> [parse(name).name for name in ("ndcg_cut_10", "mrr@10", "map(rel=2)")]
    ['nDCG@10', 'RR@10', 'AP(rel=2)']
    """
    if isinstance(text, Measure):
        return text
    if callable(text):
        return resolve_measure(declaration_of(text), None, {})
    if not isinstance(text, str):
        raise MeasureError(f"{text!r} is no measure", hint='name it as text, such as "nDCG@10"')
    given = text.strip()
    if imported := _IMPORTED.fullmatch(given):
        given = _import(imported["path"]).name + (imported["tail"] or "")
    if rbp := _RBP_TAIL.fullmatch(given):  # ranx writes the persistence as decimals
        given = f"RBP(p=0.{rbp['p']})"
    if spelled_out := _SPELLED_OUT.fullmatch(given):
        given = f"{spelled_out['name']}@{spelled_out['k']}{spelled_out['params'] or ''}"
    parts = _NAME.fullmatch(given)
    if parts is None and (known := declared(given.partition(".")[0])) is not None:
        raise _bracketed(text, known)
    if parts is None or (parts["params"] is not None and parts["late"] is not None):
        raise MeasureError(f"{text!r} is no measure", hint="write Name(param=value)@cutoff")
    name, cutoff = parts["name"], parts["cutoff"]
    found = declared(name)
    params = _params(text, parts["params"] or parts["late"] or "")
    has_tail = False
    if found is None and cutoff is None and (tail := _TREC_TAIL.fullmatch(name)):
        name, cutoff, has_tail = tail["name"], tail["tail"], True
        found = declared(name)
    if found is None:
        raise _unknown(text, parts["name"])
    found, cutoff = _translate(text, found, cutoff, params)
    several = folded(name) in map(folded, found.several)
    if has_tail and found.cutoff == "none" and found.tail is None:
        raise _bracketed(text, found)
    if (has_tail or several) and cutoff is not None and found.tail is not None:
        if found.tail in params:
            raise MeasureError(f"{text}: {found.tail} is given twice", hint="give it once")
        params[found.tail], cutoff = cutoff, None
    if several and cutoff is None and found.tail not in params:
        example = "10" if found.cutoff == "optional" else "0.2"
        raise MeasureError(f"{name} needs a number", hint=f"write {name}_{example}")
    return resolve_measure(found, None if cutoff is None else _cutoff(text, cutoff, found), params)


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
    """Return the declaration that a name without cutoff and parameters stands for."""
    if imports(text):
        return parse(text).declaration
    found = declared(text)
    if found is None:
        raise _unknown(text, text)
    return found


def _import(path: str) -> Declaration:
    """Import what `package.module:function` names."""
    from karat.live.retrievers.resolve import import_object

    found = import_object(path, role="measure")
    if callable(found):
        return declaration_of(found)
    raise MeasureError(
        f"{path} is of type {type(found).__name__}, not a measure",
        hint="name a function that @karat.measure declares",
    )


def imports(name: str) -> bool:
    """Return whether a name says where a measure is imported from."""
    return _IMPORTED.fullmatch(name.strip()) is not None


def resolve_measure(
    declaration: Declaration, cutoff: int | float | Budget | None, given: dict[str, Any]
) -> Measure:
    """Check cutoff and parameters against the declaration."""
    name = declaration.name
    if cutoff is None and declaration.cutoff == "share":
        raise MeasureError(f"{name} needs a point of recall", hint=f"write {name}@0.1")
    if cutoff is not None and declaration.cutoff == "none":
        raise MeasureError(f"{name} takes no cutoff", hint=f"write {name}")
    known = {param.name: param for param in declaration.params}
    for key in given:
        if key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise MeasureError(f"{name} has no parameter {key!r}", hint=takes)
    settled = {}
    for key, param in known.items():
        try:
            settled[key] = param.convert(given[key]) if key in given else param.default
        except MeasureError as error:
            raise MeasureError(error.problem, field=f"{name}({key}=)", hint=param.help) from None
    return Measure(declaration, cutoff, settled)


def parse_all(given: AnyMeasure | Iterable[AnyMeasure]) -> tuple[Measure, ...]:
    """Return the measures of a list of names, each once, in the order asked."""
    measures = [parse(each) for each in measure_list(given)]
    if not measures:
        raise MeasureError("no measure is named", hint='such as "nDCG@10"')
    return tuple(dict.fromkeys(measures))


def measure_list(given: AnyMeasure | Iterable[AnyMeasure]) -> list[AnyMeasure]:
    """Return what is given one by one; a text may name several measures."""
    if isinstance(given, (str, Measure)) or callable(given):
        given = [given]
    parts: list[AnyMeasure] = []
    for each in given:
        parts += split(each) if isinstance(each, str) else [each]
    return parts


def split(names: str) -> list[str]:
    """Split at commas and blanks outside brackets and quotes.

    trec_eval asks for two measures by `ndcg_cut.5,10`.

    >>> split("nDCG(gain={1: 1, 2: 3})@10, RR P.5,10")
    ['nDCG(gain={1: 1, 2: 3})@10', 'RR', 'P.5', 'P.10']
    """
    whole: list[str] = []
    for part in _parts(names, at_blanks=True):
        before = re.fullmatch(rf"(\w+)\.{_NUMBER}", whole[-1]) if whole else None
        more = before and re.fullmatch(_NUMBER, part)
        whole.append(f"{before[1]}.{part}" if before and more else part)
    return whole


def _parts(text: str, *, at_blanks: bool = False) -> list[str]:
    """Split at commas outside brackets and quotes, and at blanks if asked."""
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


def _cutoff(text: str, cutoff: str, declaration: Declaration) -> int | float | Budget:
    if declaration.cutoff == "budget" and re.fullmatch(r"[0-9]{1,12}[cC]", cutoff.strip()):
        if characters := int(cutoff.strip()[:-1]):
            return Budget(characters)
        raise MeasureError(f"{text}: a budget of 0 characters holds nothing", hint="write @2000c")
    if declaration.cutoff == "share":
        if re.fullmatch(rf"{_NUMBER}(?:e-?\d+)?", cutoff.strip()) and 0 <= float(cutoff) <= 1:
            return abs(float(cutoff))
        raise MeasureError(
            f"{text}: {cutoff} is not a point of recall from 0 to 1", hint="write @0.1, @0.2, …"
        )
    if re.fullmatch(r"[0-9]{1,9}", cutoff.strip()) and int(cutoff) > 0:
        return int(cutoff)
    raise MeasureError(
        f"{text}: the cutoff {cutoff} is not a whole number from 1 up", hint="write @1, @10, …"
    )


def _translate(
    text: str, declaration: Declaration, cutoff: str | None, params: dict[str, Any]
) -> tuple[Declaration, str | None]:
    """Replace the parameters that only ir_measures has by karat's, in place.

    Returns the measure and the cutoff that they mean.
    """
    if not declaration.reads.is_graded:
        return declaration, cutoff
    if _flag(text, params, "judged_only"):
        raise MeasureError(
            f"{text}: judged_only cannot be set for a single measure",
            hint="drop unjudged items for all measures: --unjudged skip, or "
            "conventions={'unjudged': 'skip'} in Python",
        )
    declaration = _declaration_meant(text, declaration, params)
    if any(param.name == "gain" for param in declaration.params):
        _translate_gain(text, params)
    in_brackets = "recall" if declaration.cutoff == "share" else "cutoff"
    if in_brackets not in params:
        return declaration, cutoff
    if cutoff is not None:
        raise MeasureError(f"{text}: the cutoff is given twice", hint="give it once")
    return declaration, str(params.pop(in_brackets))


def _declaration_meant(text: str, declaration: Declaration, params: dict[str, Any]) -> Declaration:
    """Return the measure that karat has for a parameter of ir_measures."""
    if declaration.name == "P" and _flag(text, params, "relative"):
        return REGISTRY["R_cap"]
    if declaration.name == "NumRet" and "rel" in params:
        return REGISTRY["NumRelRet"]
    if declaration.name == "SetF":
        _rename(text, params, "beta", "weight")
    if declaration.name == "F1" and "beta" in params:
        raise MeasureError(
            f"{text}: F1 has a fixed β of 1",
            hint="SetF(weight=β²) weighs the precision and recall of the whole list by any β",
        )
    return declaration


def _translate_gain(text: str, params: dict[str, Any]) -> None:
    """Replace ir_measures' dcg= and gains= by gain=."""
    if "dcg" in params:
        given = str(params.pop("dcg"))
        gain = {"log2": "linear", "exp-log2": "exp2"}.get(given.strip("'\""))
        if gain is None:
            raise MeasureError(f"{text}: dcg={given} is unknown", hint="write gain=linear or exp2")
        if gain == "exp2" or not {"gain", "gains"} & params.keys():
            params["dcg"] = gain
            _rename(text, params, "dcg", "gain")
    _rename(text, params, "gains", "gain")


def _rename(text: str, params: dict[str, Any], theirs: str, ours: str) -> None:
    if theirs not in params:
        return
    if ours in params:
        raise MeasureError(f"{text}: {ours} is given twice", hint="give it once")
    params[ours] = params.pop(theirs)


def _flag(text: str, params: dict[str, Any], name: str) -> bool:
    """Take a parameter that is True or False out of the others."""
    given = str(params.pop(name, "False"))
    if given.lower() not in ("true", "false"):
        raise MeasureError(f"{text}: {name}={given} is unknown", hint=f"write {name}=True or False")
    return given.lower() == "true"


def _params(text: str, inside: str) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for part in _parts(inside):
        key, equals, value = part.partition("=")
        if not equals:
            raise MeasureError(f"{text}: {part!r} is no parameter", hint="write name=value")
        name = key.strip().lower()
        if name in params:
            raise MeasureError(f"{text}: {name} is given twice", hint="give it once")
        params[name] = _value(text, value.strip())
    return params


def _value(text: str, value: str) -> Any:
    if not value.startswith("{"):
        return value
    pairs = [pair.partition(":") for pair in _parts(value.strip("{}"))]
    if not value.endswith("}") or not all(colon for _, colon, _ in pairs):
        raise MeasureError(f"{text}: {value!r} is no mapping", hint="write {1: 1, 2: 3}")
    return {grade.strip(): worth.strip() for grade, _, worth in pairs}


def _bracketed(text: str, declaration: Declaration) -> MeasureError:
    """Say how parameters are written that stand behind a dot in trec_eval."""
    names = [f"{param.name}=…" for param in declaration.params]
    return MeasureError(
        f"{text!r} is no measure", hint=f"write {declaration.name}({', '.join(names)})"
    )


def _unknown(text: str, name: str) -> MeasureError:
    by_fold = {folded(spelling): spelling for spelling in spellings()}
    hint = did_you_mean(folded(name), by_fold, count=3, show=by_fold.__getitem__)
    return MeasureError(
        f"there is no measure {text!r}",
        hint=hint or "karat measures lists all of them; write your own as package.module:function",
    )
