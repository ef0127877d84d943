"""From a name to a measure: karat's own names and every common spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from karat.errors import MeasureError
from karat.match.spans import Budget
from karat.measures.declare import Declaration, Measure, declared, folded, spellings

# A name that only the data can know may hold brackets and commas: then it stands in quotes.
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf"(?>{_QUOTED}|[^()])*+"
# Name(params)@cutoff, with the two tails in either order.
_NAME = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.+-]*?)\s*"
    rf"(?:\((?P<params>{_INSIDE})\))?\s*(?:@(?P<cutoff>[^()@]+))?\s*(?:\((?P<late>{_INSIDE})\))?"
)
_TOKEN = re.compile(rf"{_QUOTED}|.", re.DOTALL)
_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
_TREC_TAIL = re.compile(rf"(?P<name>.*[A-Za-z])[._](?P<tail>{_NUMBER})")
# precision_at_3 and hits_in_top_3, as benchmark scripts spell them.
_SPELLED_OUT = re.compile(r"(?P<name>[A-Za-z]\w*?)_(?:at|in_top)_(?P<k>\d+)(?P<params>\(.*\))?")
_RBP_TAIL = re.compile(r"rbp\.(?P<p>\d+)", re.IGNORECASE)


def parse(text: str | Measure) -> Measure:
    """Return the measure that a name stands for.

    >>> [parse(name).name for name in ("ndcg_cut_10", "mrr@10", "map(rel=2)")]
    ['nDCG@10', 'RR@10', 'AP(rel=2)']
    """
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        raise MeasureError(f"{text!r} is no measure", hint='name it as text, such as "nDCG@10"')
    given = text.strip()
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
    return settle(found, None if cutoff is None else _cutoff(text, cutoff, found), params)


def settle(
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


def parse_all(given: str | Measure | Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Return the measures of a list of names, each once, in the order asked."""
    names = [given] if isinstance(given, (str, Measure)) else list(given)
    measures = [
        parse(part) for name in names for part in (split(name) if isinstance(name, str) else [name])
    ]
    if not measures:
        raise MeasureError("no measure is named", hint='such as "nDCG@10"')
    return tuple(dict.fromkeys(measures))


def split(names: str) -> list[str]:
    """Split at commas outside brackets and quotes; trec_eval asks for two by `ndcg_cut.5,10`.

    >>> split("nDCG(gain={1: 1, 2: 3})@10, P.5,10")
    ['nDCG(gain={1: 1, 2: 3})@10', 'P.5', 'P.10']
    """
    parts: list[str] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(names + ","):
        depth += (token[0] in "({") - (token[0] in ")}")
        if token[0] == "," and depth <= 0:
            parts.append(names[start : token.start()].strip())
            start = token.end()
    whole: list[str] = []
    for part in filter(None, parts):
        before = re.fullmatch(rf"(\w+)\.{_NUMBER}", whole[-1]) if whole else None
        more = before and re.fullmatch(_NUMBER, part)
        whole.append(f"{before[1]}.{part}" if before and more else part)
    return whole


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


def _params(text: str, inside: str) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for part in split(inside):
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
    pairs = [pair.partition(":") for pair in split(value.strip("{}"))]
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
    near = get_close_matches(folded(name), by_fold, n=3)
    hint = "did you mean " + " or ".join(by_fold[n] for n in near) + "?" if near else None
    return MeasureError(
        f"there is no measure {text!r}", hint=hint or "karat measures lists all of them"
    )
