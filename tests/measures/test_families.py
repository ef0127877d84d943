"""Families and reasons: what is declared of them fits together."""

import ast
from pathlib import Path

import pytest

import karat
from karat import Conventions
from karat.measures import REGISTRY, parse_all
from karat.measures.families import BY_GOLD, COST, FAMILIES, RANK, REASONS

OF_GOLD = list(BY_GOLD.values())


def test_every_family_has_measures():
    assert set(FAMILIES) == {each.family for each in REGISTRY.values()}


@pytest.mark.parametrize("family", OF_GOLD, ids=lambda family: family.name)
def test_family_of_gold_has_default_measures_of_its_own(family):
    measures = parse_all([*family.defaults, family.example])
    assert {measure.declaration.reads for measure in measures} == {family}
    assert {family.absent.key, family.nothing.key} <= set(REASONS)


def test_most_specific_kind_of_gold_comes_first():
    assert list(BY_GOLD) == ["spans", "evidence", "judgments"]
    assert set(BY_GOLD.values()) == {each for each in FAMILIES.values() if each.reads_gold}


@pytest.mark.parametrize("reason", REASONS.values(), ids=lambda reason: reason.key)
def test_reason_excludes_queries_or_states_what_happens_to_them(reason):
    families = [RANK, COST]
    assert reason.excluded(Conventions()) or reason.outcome(Conventions(), families)
    assert reason.text.count("{}") == 1


SOURCE = Path(karat.__file__).parent
DECLARED_IN = SOURCE / "measures" / "families.py"
NAMES = {*FAMILIES, *BY_GOLD}
COMPARED = {*BY_GOLD, *(family.name for family in OF_GOLD)}  # "cost" is also a kind of chart
READ_BY_NAME = {"readings", "families", "FAMILIES", "BY_GOLD", "of_family", "counts"}


def quoted(node: ast.AST | None) -> set[str]:
    """Return the strings that an expression is, or that a literal tuple, list or set holds."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {
        part.value
        for part in parts
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def names_a_family_or_reason(node: ast.AST) -> bool:
    """Return whether a piece of code chooses by the quoted name of a family or of a reason."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return any(quoted(each) & COMPARED for each in (left, *others))
        case ast.Dict(keys=keys):
            keyed = {word for key in keys for word in quoted(key)}
            return len(keyed) > 1 and len(keyed) == len(keys) and keyed <= NAMES
        case ast.Subscript(value=value, slice=key):
            return last_name(value) in READ_BY_NAME and bool(quoted(key) & {*NAMES, *REASONS})
        case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[key, *_]):
            return last_name(value) in READ_BY_NAME and bool(quoted(key) & {*NAMES, *REASONS})
        case ast.Call(func=func, args=[key, *_]):
            return last_name(func) in READ_BY_NAME and bool(quoted(key) & NAMES)
        case ast.keyword(arg="family", value=value):
            return bool(quoted(value) & NAMES)
        case ast.MatchValue(value=value):
            return bool(quoted(value) & NAMES)
    return False


def choices_by_name(code: str) -> list[int]:
    """Return the lines of code that choose by the quoted name of a family or of a reason."""
    tree = ast.walk(ast.parse(code))
    return sorted(node.lineno for node in tree if names_a_family_or_reason(node))


@pytest.mark.parametrize(
    "code",
    [
        'family == "evidence"',
        '"rank" not in plan.families',
        'family in ("span", "evidence")',
        'self.opened.readings["span"].data',
        'readings.get("evidence")',
        'plan.of_family("rank")',
        '{"rank": graded, "span": characters, "evidence": texts}',
        'measure("span.new", family="span")',
        'kind == "judgments"',
        'table.counts["missing"]',
    ],
)
def test_choice_by_a_quoted_name_is_recognised(code):
    assert choices_by_name(code) == [1]


@pytest.mark.parametrize(
    "code", ['row["rank"]', 'tag("span", text)', '{"query": query, "rank": rank}', "family is SPAN"]
)
def test_columns_and_tags_are_not_taken_for_choices(code):
    assert choices_by_name(code) == []


# The packages below measures read files, in which these words name columns and tables.
@pytest.mark.parametrize("package", ["measures", "engines", "stats", "evaluation", "report"])
def test_families_and_reasons_are_named_by_constants(package):
    lines = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        if path != DECLARED_IN
        for line in choices_by_name(path.read_text(encoding="utf-8"))
    ]
    assert lines == [], "use a constant of measures/families.py, or a field of Family"
