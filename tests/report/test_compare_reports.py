"""`karat compare`: what it prints, and the files it writes."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from rich.cells import cell_len as cell_width

import karat
from karat.format import probability
from karat.report.cells import interval_text
from karat.report.comparison import run_letter
from karat.report.renderers.latex import escape
from support.commands import check_refused

GOLD = [
    {"query_id": f"q{at:02}", "query": f"question {at}", "kind": ["even", "odd"][at % 2]}
    | {"relevant": {"a": 2, "b": 1}}
    for at in range(12)
]
OLD = {f"q{at:02}": ["x", "a", "b"] for at in range(12)}
NEW = {f"q{at:02}": ["a", "b"] if at else ["x", "x2", "a"] for at in range(12)}
MIXED = {f"q{at:02}": ["x", "a"][at % 2 :] for at in range(12)}
BAD = {f"q{at:02}": ["x", "y"] for at in range(12)}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    karat.Gold.of(GOLD).write("gold.jsonl")
    for name, run in (("old", OLD), ("new", NEW), ("bad", BAD), ("mixed", MIXED)):
        karat.Run.of(run).write(f"{name}.run")
    return tmp_path


def test_two_runs_are_shown_as_one_pair(command, files):
    words = ("gold.jsonl", "old.run", "new.run", "-m", "RR,P@1")
    code, out, err = command("compare", *words)
    assert code == 0
    assert err.startswith("next: karat explain RR --gold gold.jsonl --run old.run --other new.run")
    headline, table, moved, notes = out.split("\n\n")
    assert headline == "new is significantly better than old: 0.444 RR ahead (p < 0.001)"
    pairs = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1").pairs
    low, high, least = (pairs[column].to_list() for column in ("low", "high", "detectable"))
    assert table == (
        "measure            old    new  difference    95% interval       p   W/T/L\n"
        "RR               0.500  0.944    +0.444 ▲  "
        f"[{low[0]:.3f}, {high[0]:.3f}]  <0.001  11/0/1\n"
        "P@1              0.000  0.917    +0.917 ▲  "
        f"[{low[1]:.3f}, {high[1]:.3f}]  <0.001  11/1/0\n"
        "Judged@1         0.000  0.917\n"
        "RR upper bound   1.000  1.000\n"
        "P@1 upper bound  1.000  1.000\n"
        "▲ significantly better, ▼ significantly worse (p < 0.05)\n"
        "upper bound: the value if every unjudged item were relevant"
    )
    assert moved == (
        "largest changes of RR, old → new\n"
        "query  text          old    new  difference  moved items (rank)\n"
        "q01    question 1  0.500  1.000      +0.500  a 2→1\n"
        "q02    question 2  0.500  1.000      +0.500  a 2→1\n"
        "q03    question 3  0.500  1.000      +0.500  a 2→1\n"
        "q00    question 0  0.500  0.333      -0.167  a 2→3"
    )
    assert notes == (
        "p: two-sided sign-flip randomization test over 12 queries\n"
        "difference: new − old\n"
        "W/T/L: queries on which new is better, equal, worse\n"
        "intervals of differences: inversion of the sign-flip test\n"
    )
    _, out, _ = command("compare", *words, "--wide")
    heads, first, second, *_ = out.split("\n\n")[1].splitlines()
    assert heads.endswith("      p  change   W/T/L  queries  p alone     dz    MDE")
    assert first.endswith(f"+88.9%  11/0/1       12   <0.001  +2.31  {least[0]:.3f}")
    assert second.endswith(f"–  11/1/0       12   <0.001  +3.18  {least[1]:.3f}")
    assert "dz: mean difference divided by its standard deviation over queries\n" in out
    assert "MDE: smallest difference that could have been detected (80% power at α = 0.05)\n" in out


def test_common_interval_method_is_shown_once(command, files):
    words = ("compare", "gold.jsonl", "new.run", "mixed.run")
    _, out, _ = command(*words, "-m", "RR")
    assert "intervals of differences: inversion of the sign-flip test\n" in out
    karat.Run.of({query: ["x", "y", "a"] for query in OLD}).write("third.run")
    _, out, _ = command("compare", "gold.jsonl", "old.run", "third.run", "-m", "RR")
    assert out.count("all values are equal") == 1
    karat.Run.of({query: ["y", "a"] for query in OLD}).write("fourth.run")
    _, out, _ = command("compare", "gold.jsonl", "old.run", "third.run", "fourth.run", "-m", "RR")
    assert "\n95% intervals: all values are equal\n" in out
    _, out, _ = command(*words, "bad.run", "-m", "RR,Success@5")
    assert "95% intervals of RR: Student's t on the logit scale\n" in out
    assert "95% intervals of Success@5: Wilson's score interval\n" in out
    _, out, _ = command(*words, "-m", "RR,Success@5")
    assert "intervals of differences in RR: inversion of the sign-flip test\n" in out
    assert "intervals of differences in Success@5: Clopper-Pearson limits" in out


def test_runs_with_another_interval_method_are_named():
    runs = {"old": OLD, "new": {query: ["a"] for query in OLD} | {"q01": ["x"]}}
    runs["newer"] = runs["new"] | {"q02": ["x"]}
    text = str(karat.compare(GOLD, runs, "RR"))
    assert "\n95% intervals of RR (old): all values are equal\n" in text
    assert "\n95% intervals of RR: Wilson's score interval\n" in text


def test_python_prints_the_same_text(command, files):
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR")
    comparison = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR")
    assert f"{comparison}\n" == out


def test_wide_shows_every_column_at_any_width(command, files):
    _, out, _ = command(
        "compare",
        "gold.jsonl",
        "old.run",
        "new.run",
        "bad.run",
        "-m",
        "RR",
        "--all-pairs",
        "--wide",
    )
    assert out.count("MDE") == 2  # in one table, and in the notes


def test_correction_over_several_pairs_is_shown(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "bad.run", "-m", "RR", "--moved", "0")
    _, out, _ = command(*words, "--all-pairs")
    assert re.findall(r"^(\w+ − \w+)  ", out, re.MULTILINE) == [
        "new − old",
        "bad − old",
        "bad − new",
    ]
    assert "two-sided sign-flip randomization test over 12 queries, corrected by Holm over 3 " in (
        " ".join(out.split())
    )
    assert "largest change" not in out
    _, out, _ = command(*words, "--correction", "none", "--test", "wilcoxon")
    shown = " ".join(out.split())
    assert "p: two-sided Wilcoxon signed-rank test over 12 queries, not corrected for 3" in shown
    assert "Holm" not in out
    _, out, _ = command(*words, "--correction", "tukey", "--test", "t")
    assert "corrected by randomized Tukey HSD over 3 pairs" in " ".join(out.split())


@pytest.mark.parametrize("named", ["old", "old.run"])
def test_baseline_is_given_by_name_or_path(command, files, named):
    _, out, _ = command(
        "compare", "gold.jsonl", "new.run", "old.run", "bad.run", "-m", "RR", "--baseline", named
    )
    table = out.split("\nagainst old, RR\n")[1].splitlines()
    assert [line.split()[0] for line in table[1:3]] == ["new", "bad"]
    assert "over 2 pairs" in " ".join(out.split())


def test_groups_are_shown_with_their_size(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--moved", "0")
    _, out, _ = command(*words, "--by", "kind")
    table = out.split("new − old by kind\n")[1].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines()]
    assert " ".join(rows[0]) == "measure kind difference 95% interval p change W/T/L queries"
    # Of 2⁶ sign flips, 2 are as extreme for odd; for even 4, with the sign of q00 either way.
    assert rows[1][:3] == ["RR", "even", "+0.389"]
    assert rows[1][5:] == ["0.062", "+77.8%", "5/0/1", "6"]
    assert " ".join(rows[2]) == "RR odd +0.500 [0.500, 0.500] 0.062 +100.0% 6/0/0 6"
    assert "p of groups: corrected by Holm over 2 pairs and groups\n" in out
    assert "*" not in out
    _, out, _ = command(*words, "--by", "kind", "--wide")
    table = out.split("new − old by kind\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[9] for line in table[1:3]] == ["0.062", "0.031"]  # p alone


@pytest.mark.parametrize("columns", [50, 120])  # some columns do not fit 50
def test_small_groups_are_marked(command, files, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    few = [record | {"kind": "few" if at < 4 else "many"} for at, record in enumerate(GOLD)]
    karat.Gold.of(few).write("gold.jsonl")
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--by", "kind")
    assert ("3/0/1" in out) == (columns == 120)
    assert re.search(r"^RR +few\* ", out, re.MULTILINE)
    assert re.search(r"^RR +many ", out, re.MULTILINE)
    assert "*: groups of fewer than 5 queries are " in out


def test_number_of_queries_needed_for_a_difference_is_shown(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "-m", "RR,P@1", "--difference", "0.05"
    )
    needed = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1").queries_needed(0.05)
    one, other = needed["queries"]
    assert (
        "queries needed to detect a difference of 0.05 (80% power at α = 0.05)\n"
        "pair        RR  P@1\n"
        f"new − old  {one:3,}  {other:3,}\n"
    ) in out


def test_only_the_largest_rank_changes_are_shown(command, files):
    gold = {"q": {f"item-{at}": 1 + at for at in range(6)}}
    karat.Gold.of(gold).write("gold.qrels")
    karat.Run.of({"q": [f"item-{at}" for at in range(6)]}).write("old.run")
    karat.Run.of({"q": [f"item-{at}" for at in (5, 4, 3, 2, 1)]}).write("new.run")
    _, out, _ = command("compare", "gold.qrels", "old.run", "new.run", "-m", "nDCG", "--wide")
    # At rank r an item adds grade / log2(r + 1): item-5 gains the most, then item-4, then item-0.
    assert "  item-5 6→1, item-4 5→2, item-0 1→– and 3 more\n" in out


def test_moved_items_are_cut_to_the_width_and_complete_if_wide(command, files):
    gold = {"q": {f"a-document-of-a-long-id-{at}": 3 - at for at in range(3)}}
    karat.Gold.of(gold).write("gold.qrels")
    karat.Run.of({"q": ["x", *gold["q"]]}).write("old.run")
    karat.Run.of({"q": list(gold["q"])}).write("new.run")
    words = ("compare", "gold.qrels", "old.run", "new.run", "-m", "nDCG")
    _, out, _ = command(*words)
    assert max(map(cell_width, out.splitlines())) <= 80
    assert "a-document-of-a-long-id-0 2→1" in out
    _, out, _ = command(*words, "--wide")
    assert [f"{rank + 1}→{rank}" in out for rank in (1, 2, 3)] == [True] * 3


def test_long_names_fit_80_columns(command, files):
    long = f"{'検索' * 30} is a very long name that nobody should give {{}}.run"
    for at, name in enumerate(("old", "new", "bad")):
        Path(long.format(at)).write_text(Path(f"{name}.run").read_text())
    gold = [
        record | {"query": "何ですか? " * 20, "a field of a long name": "値" * 30}
        for record in GOLD
    ]
    karat.Gold.of(gold).write("gold.jsonl")
    Path(long.format(0)).write_text(Path("old.run").read_text().replace("q03", "q99"))
    runs = [long.format(at) for at in range(3)]
    code, out, _ = command(
        *("compare", "gold.jsonl", *runs, "-m", "nDCG(gain=exp2)@100,RR", "--missing", "skip"),
        *("--by", "a field of a long name", "--difference", "0.01"),
    )
    assert code == 0
    assert max(map(cell_width, out.splitlines())) <= 80
    assert "left out (value in only one of the two runs)" in " ".join(out.split())


@pytest.fixture
def six_runs(files):
    """Write six runs, three of each kind; return their paths."""
    paths = [f"run{at}.run" for at in range(6)]
    for at, path in enumerate(paths):
        karat.Run.of(NEW if at % 2 else OLD).write(path)
    return paths


def test_many_pairs_show_moved_queries_only_on_request(command, six_runs):
    _, out, _ = command("compare", "gold.jsonl", *six_runs, "-m", "RR")
    assert "largest change" not in out
    _, out, _ = command("compare", "gold.jsonl", *six_runs, "-m", "RR", "--moved", "1")
    assert out.count("largest change") == 0  # the two best runs are equal
    _, out, _ = command(
        "compare", "gold.jsonl", *six_runs, "-m", "RR", "--moved", "1", "--all-pairs"
    )
    assert out.count("largest change") == 9  # of 15 pairs, 6 are of equal runs


def test_many_pairs_are_shown_in_one_table_per_measure(command, six_runs):
    words = (
        "compare",
        "gold.jsonl",
        *six_runs,
        "-m",
        "RR,P@1",
        "--difference",
        "0.1",
        "-o",
        "c.md",
    )
    _, out, _ = command(*words, "--all-pairs")
    for title in ("RR", "P@1"):
        table = out.split(f"\n{title}\n")[1].split("\n\n")[0].splitlines()[:16]
        assert [line[:11] for line in table] == [
            "pair       ",
            *(f"run{b} − run{a}" for a in range(6) for b in range(a + 1, 6)),
        ]
        assert table[1].split()[3] == ("+0.444" if title == "RR" else "+0.917")
    needed = out.split("queries needed")[1].splitlines()
    assert needed[1].split() == ["pair", "RR", "P@1"]
    pairs = karat.compare("gold.jsonl", six_runs, "RR,P@1").queries_needed(0.1)
    expected = pairs.filter(a="run0", b="run1")["queries"].to_list()
    assert needed[2].split()[3:] == [str(n) for n in expected]
    assert Path("c.md").read_text().count("| run3 − run2 |") == 3  # two measures, queries needed
    # Three runs are best by RR; the first of them, run1, is compared with the five others.
    command(*words)
    text = Path("c.md").read_text()
    assert "**run1 against the others, RR**" in text
    assert text.count("| run1 − run0 |") == 1  # in the table of queries needed
    assert "| run3 − run2 |" not in text


def test_interval_method_of_groups_is_shown_where_it_differs(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--by", "kind")
    _, out, _ = command(*words)
    assert "intervals of differences of some groups: all values are equal" in out


def test_a_single_query_has_no_interval_and_no_method():
    lists = {"results": ["b", "a"], "candidates": ["a", "b"]}
    runs = {"one": {"q1": ["a"]}, "two": karat.Run.of([{"query_id": "q1", **lists}])}
    comparison = karat.compare({"q1": ["a"]}, runs, "RR")
    assert comparison.pairs.select("difference", "low", "high").row(0) == (-0.5, None, None)
    text = str(comparison)
    assert "only 1 of 1 queries differs" in text
    assert "Clopper-Pearson" not in text
    assert comparison.scores[1].reranking().change["low"] is None


def test_json_has_the_documented_content(command, files):
    code, out, _ = command(
        *("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR,P@1", "--by", "kind"),
        *("--json", "--moved", "1", "--difference", "0.1"),
    )
    assert code == 0
    document = json.loads(out)
    assert document["karat"] == karat.__version__
    assert document["conventions"]["missing"] == "zero"
    assert document["level"] == "item"
    assert (document["baseline"], document["test"], document["correction"]) == (
        None,
        "randomization",
        "holm",
    )
    assert (document["tests"], document["group_tests"], document["confidence"]) == (1, 2, 0.95)
    assert [run["name"] for run in document["runs"]] == ["old", "new"]
    assert document["runs"][0]["measures"]["RR"]["value"] == 0.5
    comparison = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1", by="kind")
    assert document["pairs"] == comparison.pairs.to_dicts()
    for key in ("a", "b", "measure", "difference", "low", "high", "p", "p_corrected"):
        assert key in document["pairs"][0]
    assert document["groups"][0]["by"] == {"kind": "even"}
    assert [group["difference"] for group in document["groups"]] == comparison.groups[
        "difference"
    ].to_list()
    assert document["moved"][1] == {
        "a": "old",
        "b": "new",
        "measure": "RR",
        "query_id": "q00",
        "text": "question 0",
        "value_a": 0.5,
        "value_b": 1 / 3,
        "difference": 1 / 3 - 0.5,
        "changes": [
            {
                "item": "a",
                "grade": 2,
                "rank_a": 2,
                "rank_b": 3,
                "brought_a": 0.5,
                "brought_b": 1 / 3,
            }
        ],
    }
    assert document["queries_needed"] == comparison.queries_needed(0.1).to_dicts()


def test_json_omits_what_was_not_requested(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--json", "--moved", "0"
    )
    assert not {"groups", "group_tests", "moved", "queries_needed"} & json.loads(out).keys()


def test_output_format_follows_the_file_extension(command, files):
    names = ["c.json", "c.csv", "c.md", "c.tex"]
    outputs = [word for name in names for word in ("-o", name)]
    words = ("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR,P@1")
    code, out, err = command(*words, *outputs)
    assert code == 0
    assert out.startswith("new is significantly better than old: ")
    written = ["c.json", "c.csv", "c.queries.csv", "c.md", "c.tex"]
    assert err.startswith("".join(f"wrote {name}\n" for name in written))
    comparison = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1")
    assert json.loads(Path("c.json").read_text())["pairs"] == comparison.pairs.to_dicts()
    assert pl.read_csv("c.csv").cast(comparison.pairs.schema).equals(comparison.pairs)
    comparison.write("again.md")
    assert Path("again.md").read_text() == Path("c.md").read_text()
    command(*words, "--by", "kind", "-o", "g.csv")
    assert pl.read_csv("g.csv")["kind"].to_list() == ["even", "even", "odd", "odd"]


def test_second_csv_file_has_every_query_of_every_pair(command, files):
    Path("some.run").write_text(Path("new.run").read_text().replace("q03 ", "q99 "))
    runs = ("old.run", "some.run", "bad.run")
    words = ("compare", "gold.jsonl", *runs, "-m", "RR,P@1", "--missing", "skip", "--by", "kind")
    command(*words, "-o", "c.csv")
    rows = pl.read_csv("c.queries.csv").rows(named=True)
    values = {
        run: dict(zip(scores.per_query["query_id"], scores.per_query.rows(named=True), strict=True))
        for run in ("old", "some", "bad")
        for scores in [
            karat.evaluate(GOLD, f"{run}.run", "RR,P@1", conventions={"missing": "skip"})
        ]
    }
    expected = []
    for a, b in (("old", "some"), ("old", "bad"), ("some", "bad")):
        for measure in ("RR", "P@1"):
            for query in sorted(record["query_id"] for record in GOLD):
                one, other = values[a][query][measure], values[b][query][measure]
                apart = None if one is None or other is None else other - one
                expected.append((a, b, measure, query, one, other, apart))
    assert [tuple(row.values()) for row in rows] == expected
    assert list(rows[0]) == ["a", "b", "measure", "query_id", "value_a", "value_b", "difference"]
    assert sum(row["difference"] is None for row in rows) == 4  # q03, in two pairs and measures


def test_markdown_has_tables_and_a_list(command, files):
    command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--moved", "1", "-o", "c.md")
    lines = Path("c.md").read_text().splitlines()
    assert lines[:5] == [
        "**✅ new is significantly better than old: 0.444 RR ahead (p &lt; 0.001)**",
        "",
        "| measure | old | new | difference | 95% interval | p | change | W/T/L | queries |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| RR | 0.500 | **0.944** | +0.444 ▲ | [0.333, 0.500] | &lt;0.001 | +88.9% | 11/0/1 | 12 |",
    ]
    assert "| q00 | question 0 | 0.500 | 0.333 | -0.167 | a 2→3 |" in lines
    assert "- ▲ significantly better, ▼ significantly worse (p &lt; 0.05)" in lines
    folded = lines.index("<details><summary>Method</summary>")
    assert lines[folded + 1 : folded + 3] == [
        "",
        "- p: two-sided sign-flip randomization test over 12 queries",
    ]
    assert lines[-2:] == ["", "</details>"]


def test_latex_marks_the_best_and_significantly_better_runs(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "bad.run", "-m", "RR", "-o", "c.tex")
    command(*words)
    lines = Path("c.tex").read_text().splitlines()
    assert lines[1:4] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Letters mark the runs that a value is significantly better than (sign-flip "
        r"randomization test, corrected by Holm over 3 pairs, separately for each measure; "
        r"$\alpha$ = 0.05). Best values are bold.}",
    ]
    assert lines[4:] == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"run & RR \\",
        r"\midrule",
        r"old\textsuperscript{a} & 0.500\textsuperscript{c} \\",
        r"new\textsuperscript{b} & \textbf{0.944}\textsuperscript{ac} \\",
        r"bad\textsuperscript{c} & 0.000 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    command(*words, "--baseline", "old")
    text = Path("c.tex").read_text()
    assert "\nold & 0.500 \\\\\n" in text
    assert "\nnew & \\textbf{0.944}\\textsuperscript{$\\dagger$} \\\\\n" in text
    assert "\nbad & 0.000\\textsuperscript{$\\ddagger$} \\\\\n" in text
    assert (
        "better and worse than old (sign-flip randomization test, corrected by Holm over 2" in text
    )


def test_letters_of_runs_go_on_with_capitals_and_then_pairs():
    letters = [run_letter(at) for at in range(60)]
    assert letters[23:29] == ["x", "y", "z", "A", "B", "C"]
    assert letters[49:56] == ["X", "Y", "Z", "aa", "ab", "ac", "ad"]
    assert len(set(letters)) == 60


@pytest.mark.parametrize(("count", "marks"), [(3, "bc"), (5, "b--ab")])
def test_latex_separates_letters_of_more_runs_than_the_alphabet_has(
    tmp_path, monkeypatch, count, marks
):
    monkeypatch.setattr("karat.report.comparison.ascii_letters", "abc")
    runs = {f"run{at}": BAD if at else OLD for at in range(count)}
    karat.compare(GOLD, runs, "RR", correction="none").write(tmp_path / "c.tex")
    text = (tmp_path / "c.tex").read_text()
    assert f"run0\\textsuperscript{{a}} & \\textbf{{0.500}}\\textsuperscript{{{marks}}}" in text
    assert f"run{count - 1}\\textsuperscript{{{run_letter(count - 1)}}} & 0.000 " in text


def test_latex_does_not_mark_insignificant_differences(tmp_path):
    three = GOLD[1:4]
    comparison = karat.compare(three, {"old": OLD, "new": NEW}, "RR")
    assert comparison.pairs["p_corrected"].to_list() == [2 / 8]
    comparison.write(tmp_path / "c.tex")
    assert "new\\textsuperscript{b} & \\textbf{1.000} \\\\\n" in (tmp_path / "c.tex").read_text()


def test_latex_does_not_mark_equal_runs(tmp_path):
    gold = {f"q{at:02}": [f"a{rank}" for rank in range(16)] for at in range(12)}

    def run(lengths):
        return {q: [f"a{rank}" for rank in range(n)] for q, n in zip(gold, lengths, strict=True)}

    runs = {"old": run([11] * 12), "new": run([12] * 11 + [0])}
    comparison = karat.compare(gold, runs, "P(denominator=k)@16", test="wilcoxon")
    (row,) = comparison.pairs.to_dicts()
    assert row["difference"] == 0
    assert row["p"] < 0.05  # signed ranks do not test the mean
    comparison.write(tmp_path / "c.tex")
    assert r"0.688}\textsuperscript" not in (tmp_path / "c.tex").read_text()


def test_latex_respects_measures_where_lower_is_better(tmp_path):
    def timed(ms):
        return [
            {"query_id": f"q{at}", "results": ["a"], "latency_ms": {"total": ms + at}}
            for at in range(12)
        ]

    gold = {f"q{at}": ["a"] for at in range(12)}
    runs = {"slow": timed(50.0), "fast": timed(5.0)}
    comparison = karat.compare(gold, runs, ["latency.mean", "RR"])
    comparison.write(tmp_path / "c.tex")
    text = (tmp_path / "c.tex").read_text()
    assert r"run & latency.mean [ms] & RR \\" in text
    assert r"slow\textsuperscript{a} & 55.50 & 1.000 \\" in text
    assert r"fast\textsuperscript{b} & \textbf{10.50}\textsuperscript{a} & 1.000 \\" in text


def test_latex_protects_names_in_brackets(tmp_path):
    karat.compare(GOLD, {"old": OLD, "[new]": NEW}, "RR", baseline="old").write(tmp_path / "c.tex")
    assert "\n{}[new] & " in (tmp_path / "c.tex").read_text()


def test_latex_of_scores_has_intervals_and_remarks(command, files):
    Path("some.run").write_text(Path("new.run").read_text().replace("q03 ", "q99 "))
    words = ("eval", "gold.jsonl", "old.run", "some.run", "-m", "RR,Hits@1", "-o", "s.tex")
    command(*words, "--top-k", "3")
    low, high = karat.evaluate(GOLD, "some.run", "RR").summary().select("low", "high").row(0)
    assert Path("s.tex").read_text().splitlines() == [
        "% old: 36 of 36 results are left after top_k=3, 3.0 per query",
        "% some: 1 query of the run not in gold: left out",
        "% some: 1 query of gold not in the run: scored as if nothing was retrieved",
        "% some: 23 of 23 results are left after top_k=3, 2.1 per query",
        "% list: top_k=3",
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        r"\caption{95\% intervals of RR (old): all values are equal. "
        r"95\% intervals of RR (some): Student's t on the logit scale. "
        r"95\% intervals of Hits@1: Wilson's score interval. Best values are bold.}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"run & RR & Hits@1 \\",
        r"\midrule",
        r"old & 0.500 [0.500, 0.500] & 0 -- \\",
        rf"some & \textbf{{0.861}} [{low:.3f}, {high:.3f}] & "
        r"\textbf{0.833} [0.552, 0.953] \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    command("eval", "gold.jsonl", "old.run", "-m", "RR", "--no-intervals", "-o", "s.tex")
    text = Path("s.tex").read_text()
    assert "caption" not in text
    assert "\nold & 0.500 \\\\\n" in text


def test_latex_escapes_special_characters(tmp_path):
    runs = {r"50%_$x$ & {y} #1 \z ~^<|>": OLD, "b": NEW}
    karat.compare(GOLD, runs, "RBP(p=0.8)").write(tmp_path / "c.tex")
    text = (tmp_path / "c.tex").read_text()
    assert (
        r"50\%\_\$x\$ \& \{y\} \#1 \textbackslash{}z "
        r"\textasciitilde{}\textasciicircum{}\textless{}\textbar{}\textgreater{}"
    ) in text
    assert escape("a\nb") == "a�b"
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {1}
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")


@pytest.mark.parametrize(
    ("p", "shown"),
    [(None, "–"), (1.0, "1.000"), (0.001, "0.001"), (0.000999, "<0.001"), (1e-9, "<0.001")],
)
def test_small_p_is_not_shown_as_zero(p, shown):
    assert probability(p) == shown


def test_interval_can_have_an_open_end():
    assert interval_text(None, None, "RR", sign=True) == "–"
    assert interval_text(-0.25, 0.5, "RR", sign=True) == "[-0.250, 0.500]"
    assert interval_text(None, 0.5, "latency.p90", sign=True) == "[–, 0.500]"


def test_measure_without_values_is_shown_as_dashes(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "bad.run", "new.run", "-m", "FirstRelevant@1", "--moved", "0"
    )
    assert re.search(r"^FirstRelevant@1 +– ", out, re.MULTILINE)
    assert "12 queries with a value in only one" not in out
    assert "new − bad: 11 queries left out (value in only one of the two runs)\n" in out


@pytest.mark.parametrize(
    ("words", "place", "values"),
    [
        (["old.run"], "runs", []),
        (["old.run", "nowhere.run"], "nowhere.run", ["new.run"]),
        (["old.run", "new.run", "--baseline", "nwe"], "baseline", ["'nwe'", "'new'"]),
        (["old.run", "new.run", "--test", "z"], "test", ["'z'", "randomization, t, wilcoxon"]),
        (["old.run", "new.run", "--correction", "z"], "correction", ["'z'", "holm, bh"]),
        (["old.run", "new.run", "--by", "knd"], "by", ["'knd'", "'kind'"]),
        (["old.run", "new.run", "-o", "c.parquet"], "c.parquet", ["'.parquet'", ".csv", ".html"]),
        (["nowhere.run", "new.run", "-o", "no/c.md"], "no/c.md", [" no "]),
        (
            ["old.run", "new.run", "--by", "kind", "--correction", "tukey"],
            "correction",
            ["tukey", "holm"],
        ),
    ],
)
def test_mistake_ends_with_one_message_and_exit_code_2(command, files, words, place, values):
    check_refused(command("compare", "gold.jsonl", *words), place, *values)


def test_negative_number_of_moved_queries_is_wrong_usage(command, files):
    code, out, err = command("compare", "gold.jsonl", "old.run", "new.run", "--moved", "-1")
    assert (code, out) == (2, "")
    assert "'--moved'" in err


def test_explicit_format_is_not_guessed_to_be_scores(command, files):
    karat.evaluate(GOLD, OLD, "RR").write("old.json")
    words = ("compare", "gold.jsonl", "old.json", "new.run", "-m", "RR", "--moved", "0")
    assert command(*words)[0] == 0
    check_refused(command(*words, "--format", "trec"), "old.json:1: Q0")


def test_scoring_flags_are_respected(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--top-k", "1", "--moved", "0"
    )
    assert re.search(r"^RR +0\.000 +0\.917 .* 11/1/0", out, re.MULTILINE)
    assert "\nlist: top_k=1\n" in out
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "--preset", "benchmark")
    assert "conventions: duplicates=count" in out
