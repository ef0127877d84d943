"""Thresholds: what may be written, and what is said of what may not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.config import Config
from karat.errors import InputError, MeasureError
from karat.evaluation.thresholds import asked, rules_of
from karat.stats.rules import Rule


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
def test_a_text_is_read(text, rule):
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


@given(rule=values | changes)
def test_a_rule_reads_back_as_it_is_shown(rule):
    assert rules_of(str(rule)) == [rule]


def test_a_table_may_hold_several_limits():
    told = {"R@10": {"min": 0.8, "max_drop": 0.02, "confidence": 0.9, "strict": True}}
    assert asked(Config(gate=told)) == [
        Rule("R@10", "min", 0.8),
        Rule("R@10", "max_drop", 0.02, confidence=0.9, strict=True),
    ]


def test_numbers_of_a_table_may_have_a_unit_and_be_whole():
    assert rules_of({"latency.p90": {"max": "0.5 s"}}) == [Rule("latency.p90", "max", 500.0)]
    assert rules_of({"Hits@10": {"min": 2}}) == [Rule("Hits@10", "min", 2.0)]


def test_groups_have_thresholds_of_their_own():
    told = {"R@10": ">= 0.5", "by": {"category": {"billing": {"R@10": ">= 0.9"}}}}
    overall, group = asked(Config(gate=told))
    assert overall.group is None
    assert group == Rule("R@10", "min", 0.9, field="category", value="billing")
    assert group.group == "category=billing"


def test_what_is_given_replaces_the_file_for_the_same_measure_and_no_other():
    told = {
        "R@10": {"min": 0.8, "max_drop": 0.02},
        "RR": ">= 0.5",
        "by": {"category": {"billing": {"R@10": ">= 0.9"}}},
    }
    rules = asked(Config(gate=told), ["recall@10 >= 0.7", "R@10 <= 0.9"])
    assert [(str(rule), rule.group) for rule in rules] == [
        ("RR >= 0.5", None),
        ("R@10 >= 0.9", "category=billing"),
        ("R@10 >= 0.7", None),
        ("R@10 <= 0.9", None),
    ]


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ({"nDGC@10": ">= 0.6"}, """k.toml: gate."nDGC@10": there is no measure 'nDGC@10'"""),
        ({"nDGC@10": ">= 0.6"}, "did you mean nDCG"),
        ({"P(rel=x)@5": ">= 1"}, """gate."P(rel=x)@5": P(rel=): 'x' is not a whole number"""),
        ({"latency": {"p90": "<= 3"}}, 'put a name with a dot in quotes: "latency.p90"'),
        ({"R@10": 0.6}, """k.toml: gate."R@10": 0.6 is no threshold\n  hint: write a text such"""),
        ({"R@10": "= 0.6"}, "'= 0.6' is no threshold"),
        ({"R@10": ">= high"}, """gate."R@10".min: 'high' is no number"""),
        ({"R@10": ">="}, """gate."R@10".min: '' is no number"""),
        ({"R@10": ">= 60%"}, "R@10 is not counted in '%'"),
        ({"R@10": ">= 0.6 ms"}, "R@10 is not counted in 'ms'\n  hint: write the number alone"),
        ({"latency.p90": "<= 3 USD"}, "'USD'\n  hint: write it in ms or s"),
        ({"R@10": {"min": True}}, """gate."R@10".min: True is no number"""),
        ({"R@10": {"min": float("nan")}}, "nan is no number"),
        ({"R@10": {"min": 10**400}}, "is no number"),
        ({"R@10": {"minimum": 1}}, "a threshold has no 'minimum'\n  hint: did you mean 'min'?"),
        ({"R@10": {"zzz": 1}}, "known: min, max, max_drop, max_rise, confidence, strict"),
        ({"R@10": {}}, "there is no limit in it"),
        ({"R@10": {"confidence": 0.9}}, "there is no limit in it"),
        ({"R@10": {"min": 1, "confidence": 0.9}}, "confidence speaks of max_drop and max_rise"),
        ({"R@10": {"min": 1, "strict": True}}, "strict speaks of max_drop and max_rise"),
        ({"R@10": {"max_drop": -0.1}}, """gate."R@10".max_drop: -0.1 is below 0"""),
        ({"R@10": {"max_drop": 0, "confidence": 0.5}}, """."R@10".confidence: 0.5 is no conf"""),
        ({"R@10": {"max_drop": 0, "confidence": 1.0}}, "1.0 is no confidence between 0.5 and 1"),
        ({"R@10": "max_drop 0 confidence x"}, "'x' is no confidence"),
        ({"R@10": {"max_drop": 0, "strict": 1}}, """gate."R@10".strict: 1 is neither true nor"""),
        ({"R@10": {"max_rise": 1}}, "of R@10, higher is better, so there is no max_rise"),
        ({"R@10": {"max_rise": 1}}, "hint: write max_drop"),
        ({"latency.p90": {"max_drop": 1}}, "lower is better, so there is no max_drop"),
        ({"latency.p90": {"max_drop": 1}}, "hint: write max_rise"),
        ({"R@10": ">= 1", "recall@10": ">= 1"}, """."recall@10": R@10 has a threshold already"""),
        ({"by": 3}, "k.toml: gate.by: 3 is no table"),
        ({"by": {}}, "gate.by: there is nothing in it"),
        ({"by": {"lang": {"de": {}}}}, 'gate.by.lang."de": there is nothing in it'),
        ({"by": {"lang": {"de": ">= 1"}}}, """gate.by.lang."de": '>= 1' is no table"""),
        ({"by": {"lang": {"de": {"R@1": 1}}}}, """gate.by.lang."de"."R@1": 1 is no threshold"""),
        ({}, "k.toml: gate: there is no threshold\n  hint: write"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(gate, said):
    with pytest.raises(InputError, match=re.escape(said)):
        asked(Config("k.toml", gate=gate))


def test_a_mistake_in_pyproject_is_named_with_the_whole_key():
    config = Config("pyproject.toml", gate={"R@10": 1}, section="tool.karat.")
    with pytest.raises(InputError, match=re.escape('pyproject.toml: tool.karat.gate."R@10": 1 is')):
        asked(config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("R@10", "thresholds: 'R@10' is no threshold\n  hint: write \"nDCG@10 >= 0.6\""),
        (">= 0.6", "'>= 0.6' is no threshold"),
        ("R@10 => 0.6", "'R@10 => 0.6' is no threshold"),
        (3, "3 is no threshold"),
        ("R@10 >= x", "'R@10 >= x': min: 'x' is no number"),
        ("R@10 max_drop 1 loose", "'R@10 max_drop 1 loose': R@10 is not counted in 'loose'"),
    ],
)
def test_a_mistake_in_a_text_shows_the_text(text, said):
    with pytest.raises(InputError, match=re.escape(said)):
        rules_of([text])


def test_an_unknown_measure_is_a_measure_error():
    with pytest.raises(MeasureError, match="did you mean nDCG"):
        rules_of("nDGC@10 >= 0.6")
