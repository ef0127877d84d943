"""Behaviour of trec_eval 10.0 that one might not expect, one fact per test."""

from __future__ import annotations

import io
import math
from functools import partial

import pytest

from karat.compat.trec_eval import trec_eval
from karat.compat.trec_eval.catalogue import BY_NAME, NICKNAMES
from karat.errors import KaratWarning, MeasureError
from support.errors import refused


class Table(dict[tuple[str, str], str]):
    """What was printed: the value in text by measure and topic, as in `table["map", "all"]`."""

    def of(self, measure: str) -> dict[str, str]:
        return {topic: value for (name, topic), value in self.items() if name == measure}


@pytest.fixture
def evaluate(tmp_path):
    """Run trec_eval on lines of two files, with -q."""

    def run(qrels: list[str], listed: list[str], *flags: str, **more: list[str]) -> Table:
        paths = {}
        for name, lines in {"qrels": qrels, "run": listed, **more}.items():
            paths[name] = tmp_path / name
            paths[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        out = io.StringIO()
        words = [str(paths[flag[1:]]) if flag[:1] == "@" else flag for flag in flags]
        trec_eval(["-q", *words, str(paths["qrels"]), str(paths["run"])], out)
        rows = (line.split("\t") for line in out.getvalue().splitlines())
        return Table({(name.strip(), topic): value for name, topic, value in rows})

    return run


def ranked(items: str, topic: str = "q") -> list[str]:
    """Return the lines of a run that lists these items in this order."""
    return [f"{topic} Q0 {item} 1 {-rank} tag" for rank, item in enumerate(items.split())]


def judged(topic: str = "q", **grades: int) -> list[str]:
    return [f"{topic} 0 {item} {grade}" for item, grade in grades.items()]


# Sums, scores, order

# P_5 times five: added up from left to right, the mean lies below .46875, else above.
FOUND = [
    *(5, 5, 4, 4, 0, 1, 3, 0, 2, 1, 1, 1, 2, 5, 3, 0),
    *(0, 0, 5, 1, 0, 3, 0, 1, 4, 5, 2, 1, 3, 5, 3, 5),
]


def test_values_are_added_from_left_to_right_in_byte_order_of_the_topics(evaluate):
    topics = sorted(str(n) for n in range(1, len(FOUND) + 1))
    qrels, run = [], []
    for topic, found in zip(topics, FOUND, strict=True):
        qrels += [f"{topic} 0 d{n} {int(n < found)}" for n in range(6)]
        run += [f"{topic} Q0 d{n} 1 {-n} t" for n in range(5)]
    table = evaluate(sorted(qrels, reverse=True), sorted(run, reverse=True), "-m", "P.5")
    assert f"{math.fsum(found / 5 for found in FOUND) / 32:.4f}" == "0.4688"
    assert table["P_5", "all"] == "0.4687"


def test_infinite_scores_order_a_list(evaluate):
    run = ["q Q0 a 1 -inf t", "q Q0 b 1 -1e300 t", "q Q0 c 1 INF t", "q Q0 d 1 -Infinity t"]
    table = evaluate(judged(a=1, b=2, c=3, d=4), run, "-m", "relstring")
    assert table["relstring", "q"] == "'3241'"


@pytest.mark.parametrize(("tag", "shown"), [("my own tag", "my"), ("x\t y ", "x")])
def test_a_tag_may_hold_spaces_and_its_first_word_is_printed(evaluate, tag, shown):
    table = evaluate(judged(a=1), [f"q Q0 b 1 1 {tag}", f"q Q0 a 1 2 {tag}"], "-m", "runid")
    assert table == {("runid", "all"): shown}


def test_a_tag_may_be_latin_1(tmp_path):
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    (tmp_path / "run").write_bytes(b"q Q0 a 1 1 caf\xe9\n")
    out = io.StringIO()
    trec_eval(["-m", "runid", str(tmp_path / "qrels"), str(tmp_path / "run")], out)
    assert out.getvalue() == "runid                 \tall\tcafé\n"


def test_a_grade_may_be_written_as_a_decimal(evaluate):
    table = evaluate(["q 0 a 2.0", "q 0 b 1."], ranked("a b"), "-m", "relstring")
    assert table["relstring", "q"] == "'21'"


# Relevant: a and b. The lowest level holds only e, so that e is all that is kept of c, d and e:
# 5 pairs above it, 4 pairs with e, and e with itself, which nothing can fulfil. trec_eval takes two
# items from the lowest level here and so reads whatever is in memory after e.
def test_of_levels_below_0_only_what_the_lowest_level_holds_is_kept(evaluate):
    levels = {"a": 2, "b": 1, "c": 0, "d": 0, "e": -1}
    prefs = [f"q u s {item} {level}" for item, level in levels.items()]
    flags = ["-R", "prefs", "-m", "prefs_avgjg_Rnonrel", "-m", "prefs_avgjg_Rnonrel_ret"]
    table = evaluate(prefs, ranked("a b c d e"), *flags)
    assert table.of("prefs_avgjg_Rnonrel") == {"q": "0.9000", "all": "0.9000"}
    assert table.of("prefs_avgjg_Rnonrel_ret") == {"q": "0.9000", "all": "0.9000"}


def test_scores_are_compared_with_64_bits(evaluate):
    run = ["q Q0 z 1 0.12345678901 t", "q Q0 a 1 0.12345678902 t"]
    table = evaluate(judged(a=1, z=2), run, "-m", "relstring")
    assert table["relstring", "q"] == "'12'"


def test_ties_are_broken_by_id_descending_as_bytes(evaluate):
    ids = ["10", "9", "B", "a", "é", "文"]
    qrels = [f"q 0 {item} {grade}" for grade, item in enumerate(ids, 1)]
    table = evaluate(qrels, [f"q Q0 {item} 1 0.5 t" for item in ids], "-m", "relstring")
    assert table["relstring", "q"] == "'654321'"


def test_ties_are_broken_by_id_ascending_for_preferences(evaluate):
    run = ["q Q0 b 1 0.5 t", "q Q0 a 1 0.5 t"]
    ascending = evaluate(["q g s a 2", "q g s b 1"], run, "-R", "prefs", "-m", "prefs_simp")
    descending = evaluate(["q g s a 1", "q g s b 2"], run, "-R", "prefs", "-m", "prefs_simp")
    assert (ascending["prefs_simp", "q"], descending["prefs_simp", "q"]) == ("1.0000", "0.0000")


def test_runid_is_the_tag_of_the_last_line_of_any_topic(evaluate):
    run = ["q2 Q0 a 1 1 zzz", "q1 Q0 a 1 2 first", "other Q0 a 1 9 last", "# q1 Q0 a 1 1 none"]
    table = evaluate(judged("q1", a=1) + judged("q2", a=1), run, "-m", "runid")
    assert dict(table) == {("runid", "all"): "last"}


def test_line_that_starts_with_a_hash_is_ignored(evaluate):
    qrels = ["#q 0 b 1", *judged(a=1)]
    table = evaluate(qrels, ["#q Q0 b 1 9 t", *ranked("a b")], "-m", "relstring", "-m", "num_rel")
    assert (table["relstring", "q"], table["num_rel", "q"]) == ("'1-'", "1")


def test_comments_may_follow_each_other_and_end_the_file(evaluate):
    # The original reads the second of two as a judgment, and crashes at one that ends the qrels.
    table = evaluate(["#", "# 0 b 1", *judged(a=1), "# end"], ranked("a"), "-m", "num_rel")
    assert dict(table) == {("num_rel", "q"): "1", ("num_rel", "all"): "1"}


def test_hash_inside_a_line_is_part_of_an_id(evaluate):
    table = evaluate(["q#1 0 #a 1"], ["q#1 Q0 #a 1 1 t"], "-m", "map", "-m", "runid")
    assert table["map", "q#1"] == "1.0000"


# Topics that the run lacks

TWO = judged("q1", a=1, b=0) + judged("q2", a=2, b=1, c=0)


def test_topic_of_the_run_without_judgments_is_left_out(evaluate):
    run = ranked("a", "q0") + ranked("a", "q1") + ranked("a", "q2") + ranked("a", "q3")
    assert evaluate(TWO, run, "-m", "num_ret").of("num_ret") == {"q1": "1", "q2": "1", "all": "2"}


def test_missing_topic_counts_as_nothing_retrieved_with_c(evaluate):
    flags = ["-c", "-m", "num_q", "-m", "num_ret", "-m", "map", "-m", "unj.5"]
    table = evaluate(TWO, ranked("a", "q1"), *flags)
    assert table["num_q", "all"] == "2"
    assert table.of("num_ret") == {"q1": "1", "q2": "0", "all": "1"}
    assert table.of("map") == {"q1": "1.0000", "q2": "0.0000", "all": "0.5000"}
    assert table.of("unj_5") == {"q1": "0.0000", "q2": "0.0000", "all": "0.0000"}


def test_num_rel_counts_every_grade_above_0_at_any_level_with_c(evaluate):
    flags = ["-c", "-l", "2", "-m", "num_rel"]
    table = evaluate(TWO, ranked("a", "q1"), *flags)
    assert table.of("num_rel") == {"q1": "0", "q2": "1", "all": "3"}


def test_missing_topic_is_one_unjudged_item_to_measures_with_parameters(evaluate):
    flags = ["-c", "-m", "relstring.5", "-m", "rbp_resid.p=0.8", "-m", "utility.1,-1,0,0"]
    table = evaluate(TWO, ranked("a", "q1"), *flags)
    assert table["relstring_5", "q2"] == "'-'"
    assert table["rbp_resid_p=0.8", "q2"] == "1.0000"
    assert table["utility_1,-1,0,0", "q2"] == "-1.0000"


def test_missing_topic_is_empty_to_the_same_measures_without_parameters(evaluate):
    flags = ["-c", "-m", "relstring", "-m", "rbp_resid", "-m", "utility"]
    table = evaluate(TWO, ranked("a", "q1"), *flags)
    assert table["relstring", "q2"] == "''"
    assert (table["rbp_resid", "q2"], table["utility", "q2"]) == ("0.0000", "0.0000")


def test_missing_topic_is_an_error_without_c(evaluate, tmp_path):
    with refused(path=tmp_path / "run", line=None, field=None) as error:
        evaluate(TWO, ranked("a", "q1"))
    assert "'q2'" in str(error.value)
    assert "-c" in error.value.hint


# Measures


def test_recall_points_are_rounded_to_the_nearest_item(evaluate):
    # .4 × 3 = 1.2: the first relevant item is enough; older versions required the second.
    table = evaluate(judged(a=1, b=1, c=1), ranked("a x y b"), "-m", "iprec_at_recall..4,.5")
    assert table["iprec_at_recall_0.40", "q"] == "1.0000"
    assert table["iprec_at_recall_0.50", "q"] == "0.5000"


def test_multiples_of_r_are_truncated_after_adding_nine_tenths(evaluate):
    # .4 × 3 + .9 = 2.1: two items; .2 × 3 + .9 = 1.5: one.
    table = evaluate(judged(a=1, b=1, c=1), ranked("a x y b"), "-m", "Rprec_mult.0.4,0.2")
    assert table["Rprec_mult_0.40", "q"] == "0.5000"
    assert table["Rprec_mult_0.20", "q"] == "1.0000"


@pytest.mark.parametrize(
    ("irrelevant", "listed", "value"),
    [
        ("xyz", "x y a", 0.0),
        ("vwxyz", "a x y z b", 0.5),
        ("x", "x a b", 0.0),
        ("xyz", "x a b", 0.5),
    ],
)
def test_bpref_counts_at_most_r_irrelevant_items_of_at_most_r(evaluate, irrelevant, listed, value):
    relevant = dict.fromkeys(set("ab") & set(listed), 1)
    qrels = judged(**relevant, **dict.fromkeys(irrelevant, 0))
    table = evaluate(qrels, ranked(listed), "-m", "bpref")
    assert table["bpref", "q"] == f"{value:.4f}"


def test_rbp_scales_grades_by_the_largest_of_the_topic(evaluate):
    qrels = judged("q1", a=4, b=2) + judged("q2", a=2, b=1)
    table = evaluate(qrels, ranked("b a", "q1") + ranked("b a", "q2"), "-m", "rbp.p=0.8")
    assert table.of("rbp_p=0.8") == dict.fromkeys(["q1", "q2", "all"], "0.2600")


def test_rbp_resid_is_what_unjudged_and_unretrieved_items_could_add(evaluate):
    table = evaluate(judged(a=1), ranked("a x"), "-m", "rbp_resid.p=0.5")
    assert table["rbp_resid_p=0.5", "q"] == "0.5000"


def test_rbp_resid_is_0_if_every_item_is_judged(evaluate):
    table = evaluate(judged(a=1, x=0), ranked("a x"), "-m", "rbp_resid.p=0.5")
    assert table["rbp_resid_p=0.5", "q"] == "0.0000"


def test_gm_map_raises_values_to_at_least_a_hundred_thousandth(evaluate):
    qrels, run = judged("q1", a=1) + judged("q2", a=1), ranked("a", "q1") + ranked("x", "q2")
    table = evaluate(qrels, run, "-m", "gm_map")
    assert table.of("gm_map") == {"all": f"{math.sqrt(1e-5):.4f}"}


def test_relstring_has_signs_for_grades_above_9_below_0_and_unjudged(evaluate):
    table = evaluate(judged(a=10, b=9, c=0, d=-1), ranked("a b c d e"), "-m", "relstring")
    assert table["relstring", "q"] == "'>90.-'"


def test_negative_grade_is_pooled_but_neither_relevant_nor_irrelevant(evaluate):
    qrels = judged(a=1, x=0, y=-1)
    flags = ["-m", "bpref", "-m", "num_nonrel_judged_ret", "-m", "infAP"]
    table = evaluate(qrels, ranked("y a"), *flags)
    assert table["bpref", "q"] == "1.0000"
    assert table["num_nonrel_judged_ret", "q"] == "0"
    # 1/2 for the item itself; of the other half, half for the pooled item of unknown grade above.
    assert table["infAP", "q"] == "0.7500"


def test_ndcg_ignores_the_level(evaluate):
    qrels, run = judged(a=1, b=2, c=3), ranked("a x b c")
    flags = ["-m", "ndcg", "-m", "ndcg_cut.2"]
    assert evaluate(qrels, run, "-l", "3", *flags) == evaluate(qrels, run, *flags)


def test_ndcg_of_a_perfect_list_is_1_with_gains_below_1(evaluate):
    # The original prints 0 here. This is the only number that differs in karat, on purpose.
    qrels = judged(a=1, b=2, c=3)
    table = evaluate(qrels, ranked("a b c"), "-m", "ndcg.1=.9,2=.5,3=.1")
    assert table["ndcg_1=.9,2=.5,3=.1", "q"] == "1.0000"


def test_judged_only_prints_minus_nan_if_nothing_is_left(evaluate):
    flags = ["-J", "-m", "iprec_at_recall", "-m", "num_ret", "-m", "map"]
    table = evaluate(judged(a=1), ranked("x y"), *flags)
    assert table.of("iprec_at_recall_0.00") == {"q": "  -nan", "all": "  -nan"}
    assert table["iprec_at_recall_1.00", "all"] == "0.0000"
    assert (table["num_ret", "q"], table["map", "q"]) == ("0", "0.0000")


def test_judged_only_drops_items_without_a_grade_of_0_or_more(evaluate):
    table = evaluate(judged(a=1, y=-1), ranked("x a y"), "-J", "-m", "relstring", "-m", "P.1")
    assert (table["relstring", "q"], table["P_1", "q"]) == ("'1'", "1.0000")


def test_z_score_is_minus_a_million_where_mean_and_deviation_are_unknown(evaluate):
    means = ["q1 map 0.5 0.25", "q2 P_1 0 0", "zz zz 1 1"]
    run = ranked("a", "q1") + ranked("a", "q2")
    flags = ["-Z", "@means", "-m", "map", "-m", "P.1"]
    table = evaluate(judged("q1", a=1) + judged("q2", a=0, b=1), run, *flags, means=means)
    assert table.of("Zmap") == {"q1": "2.0000", "q2": "-1000000.0000", "all": "-499999.0000"}
    assert table["ZP_1", "q2"] == "0.0000"


# Requested measures


def test_first_of_two_parameters_for_one_measure_counts(evaluate):
    table = evaluate(judged(a=1), ranked("a"), "-m", "P.3", "-m", "P.5,7", "-m", "P")
    assert {name for name, _ in table} == {"P_3"}


def test_parameters_may_be_given_for_a_measure_of_a_set(evaluate):
    table = evaluate(judged(a=1), ranked("a"), "-m", "official", "-m", "P.3")
    assert [name for name, topic in table if topic == "all" and name.startswith("P_")] == ["P_3"]


def test_cutoffs_are_truncated_to_integers(evaluate):
    flags = ["-m", "P.5.0,1.9", "-m", "ndcg_cut.23.4", "-m", "success.2."]
    table = evaluate(judged(a=1), ranked("a"), *flags)
    assert {name for name, _ in table} == {"P_1", "P_5", "ndcg_cut_23", "success_2"}


def test_cutoffs_are_sorted_as_numbers(evaluate):
    table = evaluate(judged(a=1), ranked("a"), "-m", "P.10,9,100")
    assert list(table.of("P_9"))
    assert [name for name, topic in table if topic == "all"] == ["P_9", "P_10", "P_100"]


def test_parameters_of_a_measure_without_parameters_are_ignored_with_a_warning(evaluate):
    with pytest.warns(KaratWarning) as caught:
        table = evaluate(judged(a=1), ranked("a"), "-m", "map.3")
    (warning,) = caught
    assert "map" in str(warning.message)
    assert "3" in str(warning.message)
    assert table.of("map") == {"q": "1.0000", "all": "1.0000"}


WRONG = [
    ("qrels", "map_avgjg", "qrels_jg"),
    ("qrels", "prefs_simp", "prefs"),
    ("prefs", "map", "qrels"),
    ("qrels_prefs", "P_avgjg.5", "qrels_jg"),
    ("qrels_jg", "official", "qrels"),
    ("qrels_jg", "all_prefs", "prefs"),
]


@pytest.mark.parametrize(("given", "measure", "needed"), WRONG)
def test_measure_that_needs_other_judgments_is_refused(evaluate, given, measure, needed):
    with refused(MeasureError, path=None, field="-m") as error:
        evaluate(judged(a=1), ranked("a"), "-R", given, "-m", measure)
    assert given in error.value.problem
    assert f"-R {needed}" in error.value.hint


# Help and version


@pytest.fixture
def command(command):
    """Run the command in this process; return exit code, stdout and stderr."""
    return partial(command, "trec_eval")


def help_text(*arguments: str) -> str:
    out = io.StringIO()
    trec_eval(list(arguments), out)
    return out.getvalue()


def test_version_is_10_0(command):
    code, out, err = command("-v")
    assert (code, err) == (0, "")
    assert out.startswith("trec_eval 10.0")


def test_help_names_every_flag_and_every_set_of_measures(command):
    code, out, err = command("-h")
    assert (code, err) == (0, "")
    assert all(f"  -{flag} " in out for flag in "qnmclMJNRZhv")
    assert all(name in out for name in NICKNAMES)


@pytest.mark.parametrize("name", BY_NAME)
def test_help_explains_every_measure(name):
    title, explanation = help_text("-h", "-m", name).split("\n\n")[-1].splitlines()[:2]
    assert title == name
    assert len(explanation) > 10


@pytest.mark.parametrize("name", NICKNAMES)
def test_help_explains_every_measure_of_a_set(name):
    lines = help_text("--help", "--measure", name).splitlines()
    assert set(NICKNAMES[name].split()) <= set(lines)


@pytest.mark.parametrize("files", [[], ["missing.qrels", "missing.run"]])
def test_help_reads_no_files(command, files):
    code, out, err = command("--help", "--measure", "map", *files)
    assert (code, err) == (0, "")
    assert "map" in out.splitlines()
