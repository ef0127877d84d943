"""Thresholds in text, tables and files: how they are read and which are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.config import Config
from karat.errors import MeasureError
from karat.evaluation.thresholds import Rule, all_rules, rules_of
from support.effort import examples
from support.errors import refused


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("nDCG@10 >= 0.60", Rule("nDCG@10", "min", 0.6)),
        ("ndcg_cut_10>0.6", Rule("nDCG@10", "min", 0.6, inclusive=False)),
        ("latency.p90 <= 350 ms", Rule("latency.p90", "max", 350.0)),
        ("latency.p90 < 0.35 s", Rule("latency.p90", "max", 350.0, inclusive=False)),
        ("latency.p90 <= 350", Rule("latency.p90", "max", 350.0)),
        ("cost.mean <= 1e-3USD", Rule("cost.mean", "max", 0.001)),
        ("recall@10 max_drop 0.02", Rule("R@10", "max_drop", 0.02)),
        ("R@10 max_drop .02 strict", Rule("R@10", "max_drop", 0.02, strict=True)),
        ("R@10 max_drop 0 confidence 0.9", Rule("R@10", "max_drop", 0.0, confidence=0.9)),
        (
            "latency.p50 max_rise 1 s confidence 0.99 strict",
            Rule("latency.p50", "max_rise", 1000.0, confidence=0.99, strict=True),
        ),
        ("AP(rel=2) >= 0.5", Rule("AP(rel=2)", "min", 0.5)),
        ('latency.max(stage="a <= (b)") <= 9', Rule('latency.max(stage="a <= (b)")', "max", 9.0)),
        ("latency.max(stage=max_drop) <= 9", Rule("latency.max(stage=max_drop)", "max", 9.0)),
    ],
)
def test_text_is_parsed(text, rule):
    assert rules_of(text) == [rule]


limits = st.floats(0, 1e6)
confidences = st.floats(0.5, 1, exclude_min=True, exclude_max=True)
changes = st.builds(
    Rule,
    st.just("R@10"),
    st.just("max_drop"),
    limits,
    confidence=confidences,
    strict=st.booleans(),
) | st.builds(Rule, st.just("latency.p90"), st.just("max_rise"), limits, strict=st.booleans())
values = st.builds(
    Rule,
    st.sampled_from(["R@10", "cost.sum"]),
    st.sampled_from(["min", "max"]),
    st.floats(-1e9, 1e9),
    inclusive=st.booleans(),
)


@examples(60, 600)
@given(rule=values | changes)
def test_rule_parses_back_from_its_text(rule):
    assert rules_of(str(rule)) == [rule]


def test_table_may_have_several_limits():
    gate = {"R@10": {"min": 0.8, "max_drop": 0.02, "confidence": 0.9, "strict": True}}
    assert all_rules(Config(gate=gate)) == [
        Rule("R@10", "min", 0.8),
        Rule("R@10", "max_drop", 0.02, confidence=0.9, strict=True),
    ]


def test_numbers_in_a_table_may_have_a_unit_or_be_integers():
    assert rules_of({"latency.p90": {"max": "0.5 s"}}) == [Rule("latency.p90", "max", 500.0)]
    assert rules_of({"Hits@10": {"min": 2}}) == [Rule("Hits@10", "min", 2.0)]


def test_groups_have_thresholds_of_their_own():
    gate = {"R@10": ">= 0.5", "by": {"category": {"billing": {"R@10": ">= 0.9"}}}}
    overall, group = all_rules(Config(gate=gate))
    assert overall.group is None
    assert group == Rule("R@10", "min", 0.9, field="category", value="billing")
    assert group.group == "category=billing"


def test_given_thresholds_replace_those_of_the_file_for_the_same_measure_only():
    gate = {
        "R@10": {"min": 0.8, "max_drop": 0.02},
        "RR": ">= 0.5",
        "by": {"category": {"billing": {"R@10": ">= 0.9"}}},
    }
    rules = all_rules(Config(gate=gate), ["recall@10 >= 0.7", "R@10 <= 0.9"])
    assert [(str(rule), rule.group) for rule in rules] == [
        ("RR >= 0.5", None),
        ("R@10 >= 0.9", "category=billing"),
        ("R@10 >= 0.7", None),
        ("R@10 <= 0.9", None),
    ]


@pytest.mark.parametrize(
    ("gate", "field", "value", "suggestion"),
    [
        ({"R@10": 0.6}, '"R@10"', "0.6", ""),
        ({"R@10": "= 0.6"}, '"R@10"', "'= 0.6'", ""),
        ({"R@10": ">= high"}, '"R@10".min', "'high'", ""),
        ({"R@10": ">="}, '"R@10".min', "''", ""),
        ({"R@10": ">= 60%"}, '"R@10"', "'%'", ""),
        ({"R@10": ">= 0.6 ms"}, '"R@10"', "'ms'", ""),
        ({"latency.p90": "<= 3 USD"}, '"latency.p90"', "'USD'", "ms or s"),
        ({"R@10": {"min": True}}, '"R@10".min', "True", ""),
        ({"R@10": {"min": float("nan")}}, '"R@10".min', "nan", ""),
        ({"R@10": {"min": 10**400}}, '"R@10".min', str(10**400), ""),
        ({"R@10": {"minimum": 1}}, '"R@10"', "'minimum'", "'min'"),
        ({"R@10": {"zzz": 1}}, '"R@10"', "'zzz'", "min, max, max_drop, max_rise, confidence"),
        ({"R@10": {}}, '"R@10"', "", "min, max, max_drop, max_rise"),
        ({"R@10": {"confidence": 0.9}}, '"R@10"', "", "min, max, max_drop, max_rise"),
        ({"R@10": {"min": 1, "confidence": 0.9}}, '"R@10"', "confidence", ""),
        ({"R@10": {"min": 1, "strict": True}}, '"R@10"', "strict", ""),
        ({"R@10": {"max_drop": -0.1}}, '"R@10".max_drop', "-0.1", ""),
        ({"R@10": {"max_drop": 0, "confidence": 0.5}}, '"R@10".confidence', "0.5", ""),
        ({"R@10": {"max_drop": 0, "confidence": 1.0}}, '"R@10".confidence', "1.0", ""),
        ({"R@10": "max_drop 0 confidence x"}, '"R@10".confidence', "'x'", ""),
        ({"R@10": {"max_drop": 0, "strict": 1}}, '"R@10".strict', "1", ""),
        ({"R@10": {"max_rise": 1}}, '"R@10".max_rise', "R@10", "max_drop"),
        ({"latency.p90": {"max_drop": 1}}, '"latency.p90".max_drop', "latency.p90", "max_rise"),
        ({"R@10": ">= 1", "recall@10": ">= 1"}, '"recall@10"', "R@10", ""),
        ({"by": 3}, "by", "3", ""),
        ({"by": {}}, "by", "", ""),
        ({"by": {"lang": {"de": {}}}}, 'by.lang."de"', "", ""),
        ({"by": {"lang": {"de": ">= 1"}}}, 'by.lang."de"', "'>= 1'", ""),
        ({"by": {"lang": {"de": {"R@1": 1}}}}, 'by.lang."de"."R@1"', "1", ""),
    ],
)
def test_mistake_in_a_file_is_refused_with_its_key_and_a_hint(gate, field, value, suggestion):
    with refused(path="k.toml", field=f"gate.{field}") as error:
        all_rules(Config("k.toml", gate=gate))
    assert value in error.value.problem
    assert suggestion in error.value.hint


@pytest.mark.parametrize(
    ("gate", "field", "value", "suggestion"),
    [
        ({"nDGC@10": ">= 0.6"}, 'gate."nDGC@10"', "'nDGC@10'", "nDCG"),
        ({"P(rel=x)@5": ">= 1"}, 'gate."P(rel=x)@5": P: rel', "'x'", ""),
        ({"latency": {"p90": "<= 3"}}, 'gate."latency"', "'latency'", '"latency.p90"'),
    ],
)
def test_mistake_in_the_name_of_a_measure_is_a_measure_error(gate, field, value, suggestion):
    with refused(MeasureError, path="k.toml", field=field) as error:
        all_rules(Config("k.toml", gate=gate))
    assert value in error.value.problem
    assert suggestion in error.value.hint


def test_file_without_thresholds_is_refused():
    with refused(path="k.toml", field="gate") as error:
        all_rules(Config("k.toml", gate={}))
    assert error.value.hint


def test_mistake_in_pyproject_is_refused_with_the_whole_key():
    config = Config("pyproject.toml", gate={"R@10": 1}, section="tool.karat.")
    with refused(path="pyproject.toml", field='tool.karat.gate."R@10"'):
        all_rules(config)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("R@10", "thresholds", "'R@10'"),
        (">= 0.6", "thresholds", "'>= 0.6'"),
        ("R@10 => 0.6", "thresholds", "'R@10 => 0.6'"),
        (3, "thresholds", "3"),
        ("R@10 >= x", "'R@10 >= x': min", "'x'"),
        ("R@10 max_drop 1 loose", "'R@10 max_drop 1 loose'", "'loose'"),
    ],
)
def test_mistake_in_a_text_is_refused_with_the_text(text, field, value):
    with refused(path=None, field=field) as error:
        rules_of([text])
    assert value in error.value.problem
    assert error.value.hint


def test_an_unknown_measure_is_a_measure_error():
    with refused(MeasureError, field="'nDGC@10 >= 0.6'") as error:
        rules_of("nDGC@10 >= 0.6")
    assert "'nDGC@10'" in error.value.problem
    assert "nDCG" in error.value.hint
