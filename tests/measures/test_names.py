"""Every common spelling names the same measure, and mistakes are refused with a suggestion."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.match.spans import Budget, MinOverlap
from karat.measures import REGISTRY, Measure, parse, parse_all
from karat.measures.name_parser import resolve_measure, split
from support.errors import refused


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("nDCG@10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg@10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        ("ndcg", "nDCG"),
        ("recip_rank", "RR"),
        ("mrr@10", "RR@10"),
        ("map", "AP"),
        ("map_cut_100", "AP@100"),
        ("MAP@100", "AP@100"),
        ("hit_rate@10", "Success@10"),
        ("success_5", "Success@5"),
        ("precision@5", "P@5"),
        ("P_5", "P@5"),
        ("P.5", "P@5"),
        ("recall_100", "R@100"),
        ("Recall@100", "R@100"),
        ("r_precision", "Rprec"),
        ("Rprec", "Rprec"),
        ("bpref", "Bpref"),
        ("num_rel_ret", "NumRelRet"),
        ("F1@3", "F1@3"),
        ("rbp.95", "RBP(p=0.95)"),
        ("RBP", "RBP(p=0.8)"),
        ("RBP(p=0.80)@20", "RBP(p=0.8)@20"),
        ("AP(rel=2)", "AP(rel=2)"),
        ("AP( rel = 2 )@10", "AP(rel=2)@10"),
        ("P@5(rel=2)", "P(rel=2)@5"),
        ("P(denominator=retrieved, rel=2)@5", "P(rel=2, denominator=retrieved)@5"),
        ("nDCG(gain='exp2')@10", "nDCG(gain=exp2)@10"),
        ("nDCG(gain={2: 3, 1: 1})@10", "nDCG(gain={1: 1, 2: 3})@10"),
        ("AP(rel=1)", "AP"),
        ("Hole@10", "Unjudged@10"),
        ("unj_5", "Unjudged@5"),
        ("unj.5", "Unjudged@5"),
        ("gm_map", "GMAP"),
        ("gm_bpref", "GMBpref"),
        ("yaap", "YAAP"),
        ("infAP", "infAP"),
        ("infap(rel=2)", "infAP(rel=2)"),
        ("11pt_avg", "11pt"),
        ("11pt", "11pt"),
        ("iprec_at_recall_0.10", "IPrec@0.1"),
        ("iprec_at_recall_0.00", "IPrec@0"),
        ("iprec_at_recall_1.00", "IPrec@1"),
        ("iprec_at_recall.0.25", "IPrec@0.25"),
        ("iprec_at_recall..10", "IPrec@0.1"),
        ("iprec_at_recall@.5", "IPrec@0.5"),
        ("IPrec@0", "IPrec@0"),
        ("IPrec@-0", "IPrec@0"),
        ("IPrec@0.0", "IPrec@0"),
        ("IPrec@1.0", "IPrec@1"),
        ("IPrec@0.10(rel=2)", "IPrec(rel=2)@0.1"),
        ("Rprec_mult_0.20", "Rprec(multiple=0.2)"),
        ("Rprec_mult.5.0", "Rprec(multiple=5)"),
        ("Rprec_mult_1.00", "Rprec"),
        ("Rprec(multiple=1)", "Rprec"),
        ("Rprec(multiple=2, rel=2)", "Rprec(rel=2, multiple=2)"),
        ("relative_P_5", "R_cap@5"),
        ("relative_P.5", "R_cap@5"),
        ("set_relative_P", "R_cap"),
        ("R_cap", "R_cap"),
        ("set_P", "P"),
        ("set_recall", "R"),
        ("set_map", "SetAP"),
        ("set_F", "SetF"),
        ("set_F.0.5", "SetF(weight=0.5)"),
        ("set_F_1.0", "SetF"),
        ("utility", "Utility"),
        ("Utility(b=-0.50, documents=100)", "Utility(b=-0.5, documents=100)"),
        ("ideal_dcg", "IDCG"),
        ("ndcg_rel", "nDCGrel"),
        ("Rndcg", "RnDCG"),
        ("G", "G"),
        ("g(gain=exp2)", "G(gain=exp2)"),
        ("binG", "binG"),
        ("RBP(gain=query, p=0.9)", "RBP(p=0.9, gain=query)"),
        ("rbp_resid", "RBPresid(p=0.9)"),
        ("RBPresid(p=0.90)", "RBPresid(p=0.9)"),
        ("num_nonrel_judged_ret", "NumNonrelRet"),
        ("nDCG(dcg='log2')@10", "nDCG@10"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(gain=exp2)@10"),
        ('nDCG(dcg="exp-log2", judged_only=False)', "nDCG(gain=exp2)"),
        ("nDCG(gains={0:0,2:30,1:10})@10", "nDCG(gain={0: 0, 1: 10, 2: 30})@10"),
        ("NDCG(gains={1: 2}, dcg='log2')", "nDCG(gain={1: 2})"),
        ("SetF(beta=2.0)", "SetF(weight=2)"),
        ("SetF(beta=0.5,rel=2)", "SetF(rel=2, weight=0.5)"),
        ("SetP(relative=True)", "R_cap"),
        ("SetP(relative=True,rel=2)", "R_cap(rel=2)"),
        ("P(relative=True)@5", "R_cap@5"),
        ("SetP(relative=False)", "P"),
        ("RR(judged_only=False)@10", "RR@10"),
        ("P(cutoff=5, rel=2)", "P(rel=2)@5"),
        ("IPrec(recall=0.1)", "IPrec@0.1"),
        ("NumRet(rel=2)", "NumRelRet(rel=2)"),
        ("nDCG @ 10", "nDCG@10"),
        ("Span.Recall@5", "span.recall@5"),
        ("span.iou@2000c", "span.iou@2000c"),
        ("Latency.P90", "latency.p90"),
        ("latency.median(stage=total)", "latency.p50"),
        ("latency.p99(stage='Rerank')", "latency.p99(stage=Rerank)"),
        ("cost.total(model=m, stage=s)", "cost.sum(stage=s, model=m)"),
        ('cost.sum(stage="s", model="a, b (c)")', 'cost.sum(stage=s, model="a, b (c)")'),
    ],
)
def test_spelling_is_parsed_as_the_canonical_measure(spelling, canonical):
    assert parse(spelling).name == canonical
    assert parse(canonical).name == canonical
    assert parse(spelling) == parse(canonical)


def rounded(least, most):
    """Numbers that a name can contain in full."""
    return st.floats(least, most).map(lambda number: round(number, 12))


@given(st.data())
def test_name_of_every_declared_measure_is_read_back(data):
    declaration = data.draw(st.sampled_from(list(REGISTRY.values())))
    ranks = st.integers(1, 10**6)
    cutoffs = {
        "none": st.none(),
        "required": ranks,
        "optional": st.none() | ranks,
        "budget": st.none() | ranks | st.integers(1, 10**12 - 1).map(Budget),
        "share": rounded(0, 1),
    }
    cutoff = data.draw(cutoffs[declaration.cutoff])
    options = {
        "rel": st.integers(1, 9),
        "min_overlap": st.builds(MinOverlap, st.integers(1, 99)) | st.just(MinOverlap(share=1.0)),
        "max_grade": st.none() | st.integers(1, 99),
        "p": rounded(0.01, 0.99),
        "multiple": rounded(0.01, 99),
        "least": st.integers(1, 99),
        "weight": rounded(0.01, 99),
        **dict.fromkeys("abcd", rounded(-99, 99)),
        "documents": st.integers(0, 10**9),
        **dict.fromkeys(
            ["stage", "model"], st.sampled_from(["total", "Re-rank 2", "org/m.1:7b@v2", "é=1"])
        ),
        "denominator": st.sampled_from(
            ["k", "retrieved"] if declaration.name in ("P", "F1") else ["relevant", "hits", "min"]
        ),
        "gain": st.sampled_from(
            ["binary", "linear", "query"]
            if declaration.name == "RBP"
            else ["linear", "exp2", {1: 0.5}]
        ),
    }
    drawn = {param.name: data.draw(options[param.name]) for param in declaration.params}
    params = {name: value for name, value in drawn.items() if value is not None}
    measure = resolve_measure(declaration, cutoff, params)
    assert parse(measure.name).name == measure.name
    assert parse(measure.name).params == measure.params
    assert parse(measure.name).cutoff == measure.cutoff


# What is wrong with the name, and what the hint suggests to write.
MISTAKES = {
    "unknown measure": ("nDCG", ["nDGC@10"]),
    "nothing similar": ("karat measures", ["zzzzzz"]),
    "not a name": ("Name(param=value)@cutoff", ["P(rel=1)(rel=2)", "@10", ""]),
    "not a rank": (
        "@10",
        ["nDCG@0", "nDCG@ten", "nDCG@-3", "P_0", "P@0.5", "relative_P_0.5", "P@9999999999"],
    ),
    "not a point of recall": (
        "@0.2",
        ["IPrec@1.5", "IPrec@-0.1", "IPrec@x", "IPrec@nan", "iprec_at_recall_10"],
    ),
    "parameter without a name": ("name=value", ["AP(2)"]),
    "not a mapping": ("{1: 1, 2: 3}", ["nDCG(gain={1})"]),
}


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [(name, suggestion) for suggestion, names in MISTAKES.values() for name in names],
)
def test_mistake_in_a_name_is_refused_with_a_suggestion(name, suggestion):
    with refused(karat.MeasureError, path=None, line=None, field=None) as error:
        parse(name)
    assert name in error.value.problem
    assert suggestion in error.value.hint


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("ndcg_cut", "ndcg_cut_10"),
        ("map_cut", "map_cut_10"),
        ("iprec_at_recall", "iprec_at_recall_0.2"),
        ("Rprec_mult", "Rprec_mult_0.2"),
        ("unj", "unj_10"),
        ("relative_P", "relative_P_10"),
        ("IPrec", "IPrec@0.1"),
        ("IPrec(rel=2)", "IPrec@0.1"),
        ("Rprec@5", "Rprec"),
        ("11pt@5", "11pt"),
        ("G@5", "G"),
        ("set_F@5", "SetF"),
    ],
)
def test_missing_or_superfluous_number_is_refused_with_the_right_name(name, suggestion):
    with refused(karat.MeasureError, field=None) as error:
        parse(name)
    assert error.value.hint.split()[-1] == suggestion


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("RR(gain=exp2)", "'gain'"), ("NumQ(rel=1)", "'rel'"), ("AP(rel=1, rel=2)", "'rel'")],
)
def test_unknown_or_repeated_parameter_is_refused(name, parameter):
    with refused(karat.MeasureError, field=None) as error:
        parse(name)
    assert parameter in error.value.problem
    assert error.value.hint


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("Utility(documents=-1)", "Utility: documents", "'-1'"),
        ("Utility(documents=1.5)", "Utility: documents", "'1.5'"),
        ("Utility(a=x)", "Utility: a", "'x'"),
        ("Utility(d=inf)", "Utility: d", "'inf'"),
        ("SetF(weight=0)", "SetF: weight", "'0'"),
        ("SetF(weight=x)", "SetF: weight", "'x'"),
        ("set_F.-1", "SetF: weight", "'-1'"),
        ("Rprec(multiple=-1)", "Rprec: multiple", "'-1'"),
        ("Rprec(multiple=0)", "Rprec: multiple", "'0'"),
        ("Rprec(multiple=nan)", "Rprec: multiple", "'nan'"),
        ("Rprec_mult_0", "Rprec: multiple", "'0'"),
        ("RBPresid(p=0)", "RBPresid: p", "'0'"),
        ("RBP(gain=exp2)", "RBP: gain", "binary, linear, query"),
        ("AP(rel=0)", "AP: rel", "'0'"),
        ("AP(rel=x)", "AP: rel", "'x'"),
        ("RBP(p=1)", "RBP: p", "'1'"),
        ("RBP(p=x)", "RBP: p", "'x'"),
        ("nDCG(gain=cubic)", "nDCG: gain", "linear, exp2"),
        ("nDCG(gain={1: -1})", "nDCG: gain", "{'1': '-1'}"),
        ("nDCG(gain={-1: 1})", "nDCG: gain", "{'-1': '1'}"),
    ],
)
def test_invalid_value_of_a_parameter_is_refused(name, field, value):
    with refused(karat.MeasureError, path=None, line=None, field=field) as error:
        parse(name)
    assert value in error.value.problem
    assert error.value.hint


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("P(judged_only=True)@5", "--unjudged skip"),
        ("nDCG(judged_only=true, dcg='exp-log2')", "--unjudged skip"),
        ("P(judged_only=1)@5", "judged_only=True"),
        ("SetP(relative=yes)", "relative=True"),
        ("F(beta=2)", "SetF(weight="),
        ("F1(beta=2)@5", "SetF(weight="),
        ("nDCG(dcg='log10')@5", "gain=linear"),
        ("nDCG(dcg='exp-log2',gains={1: 2})", "once"),
        ("nDCG(gain=exp2,gains={1: 2})", "once"),
        ("SetF(beta=2,weight=4)", "once"),
        ("P(cutoff=5)@5", "once"),
        ("AP(gains={1: 2})", "rel"),
        ("latency.p90(judged_only=True)", "stage"),
    ],
)
def test_parameter_of_ir_measures_without_a_meaning_here_is_refused_with_advice(name, advice):
    with refused(karat.MeasureError) as error:
        parse(name)
    assert advice in error.value.hint


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("nDCG@10 P@5 RR", ["nDCG@10", "P@5", "RR"]),
        (" nDCG@10,P@5  RR ,\tAP\n", ["nDCG@10", "P@5", "RR", "AP"]),
        (
            "AP( rel = 2 ) @ 10 nDCG (gain={1: 1, 2: 3}) RR",
            ["AP(rel=2)@10", "nDCG(gain={1: 1, 2: 3})", "RR"],
        ),
        ("cost.sum(stage=Re-rank 2) P.5,10 RR", ["cost.sum(stage=Re-rank 2)", "P@5", "P@10", "RR"]),
    ],
)
def test_names_in_a_list_are_separated_by_commas_or_blanks(names, expected):
    assert [str(measure) for measure in parse_all(names)] == expected


def test_evaluate_takes_names_separated_by_blanks():
    scores = karat.evaluate({"q1": ["a"]}, {"q1": ["b", "a"]}, "RR P@2")
    assert scores.per_query.row(0) == ("q1", 0.5, 0.5)


def test_number_after_a_comma_belongs_only_to_a_dotted_name():
    assert split("RBP(p=0.8),5") == ["RBP(p=0.8)", "5"]


def test_measure_name_must_be_text():
    with refused(karat.MeasureError, field=None) as error:
        parse(10)
    assert "10" in error.value.problem
    assert error.value.hint


def test_list_of_names_is_flattened_without_repeats_in_order():
    assert [str(m) for m in parse_all(["P@5,ndcg@10", "nDCG@10", "RR"])] == ["P@5", "nDCG@10", "RR"]
    assert [str(m) for m in parse_all("P.5,10,nDCG(gain={1: 1, 2: 3})@5")] == [
        "P@5",
        "P@10",
        "nDCG(gain={1: 1, 2: 3})@5",
    ]
    assert [str(m) for m in parse_all("iprec_at_recall..10,.20,1,Rprec_mult.5.0,0.2")] == [
        "IPrec@0.1",
        "IPrec@0.2",
        "IPrec@1",
        "Rprec(multiple=5)",
        "Rprec(multiple=0.2)",
    ]
    assert [str(m) for m in parse_all("iprec_at_recall.0,0.0,unj.5,10")] == [
        "IPrec@0",
        "Unjudged@5",
        "Unjudged@10",
    ]


def test_empty_list_of_names_is_refused():
    with refused(karat.MeasureError, field=None) as error:
        parse_all([])
    assert error.value.hint


@given(
    st.lists(st.sampled_from(["nDCG@10", "AP(rel=2)", "nDCG(gain={1: 1, 2: 3})", "RR"])),
    st.sampled_from([",", " ", ", ", "  ", " ,\n"]),
)
def test_joined_names_split_where_they_were_joined(names, separator):
    assert split(separator.join(names)) == names


@given(st.text() | st.text("a,(){}\"'\\ =@\n"), st.none() | st.text("b, \"'"))
def test_any_name_of_a_stage_or_model_is_read_back(stage, model):
    measure = Measure(REGISTRY["cost.sum"], None, {"stage": stage, "model": model})
    assert parse_all(f"RR,{measure},AP")[1].params == {"stage": stage, "model": model}


@given(st.text(max_size=20))
def test_any_text_is_a_measure_or_a_measure_error(text):
    with contextlib.suppress(karat.MeasureError):
        assert parse(text).name
