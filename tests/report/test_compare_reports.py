"""`karat compare` and the files it writes: what they say, and that it can be read back."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.report.comparison_tables import interval, probability
from karat.report.latex import escape
from karat.report.terminal import width_of

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
    values, pair, moved, notes, headline = out.split("\n\n")
    assert headline == "new is best by RR: its lead on old, +0.4444, is real (p 0.0010)\n"
    assert command("eval", *words)[1].startswith(f"{values}\n")
    known = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1").pairs
    low, high, least = (known[column].to_list() for column in ("low", "high", "detectable"))
    assert pair == (
        "new − old, 12 queries\n"
        "measure  difference      95% interval       p   W/T/L  change     dz   least\n"
        f"RR        ▲ +0.4444  [{low[0]:.4f}, {high[0]:.4f}]  0.0010  11/0/1  +88.9%  +2.31  "
        f"{least[0]:.4f}\n"
        f"P@1       ▲ +0.9167  [{low[1]:.4f}, {high[1]:.4f}]  0.0010  11/1/0       –  +3.18  "
        f"{least[1]:.4f}"
    )
    assert moved == (
        "new − old: the queries that moved most by RR\n"
        "  +0.5000  0.5000 → 1.0000  q01  question 1\n"
        "    a (2): 2 → 1\n"
        "  +0.5000  0.5000 → 1.0000  q02  question 2\n"
        "    a (2): 2 → 1\n"
        "  +0.5000  0.5000 → 1.0000  q03  question 3\n"
        "    a (2): 2 → 1\n"
        "  -0.1667  0.5000 → 0.3333  q00  question 0\n"
        "    a (2): 2 → 3"
    )
    assert notes.startswith(
        "▲ better, ▼ worse: p < 0.05\n"
        "p: sign-flip randomization, two-sided\n95% intervals of RR (old), P@1 (old): all values"
    )
    assert notes.endswith(
        "\nintervals of differences: BCa bootstrap over queries, 10,000 resamples\n"
        "W/T/L: on how many queries the run named first is higher, the same, lower\n"
        "dz: the mean difference / its standard deviation over queries\n"
        "least: the smallest difference that would have shown (80% power, α = 0.05)"
    )


def test_how_intervals_came_about_is_said_once_if_it_is_the_same(command, files):
    _, out, _ = command("compare", "gold.jsonl", "new.run", "mixed.run", "-m", "RR")
    assert out.count("BCa bootstrap") == 1
    assert "of differences" not in out
    _, out, _ = command("compare", "gold.jsonl", "new.run", "mixed.run", "-m", "RR,Success@5")
    assert "intervals of differences in RR: BCa bootstrap over queries" in out


def test_of_which_run_an_interval_came_about_otherwise_is_said():
    runs = {"old": OLD, "new": {query: ["a"] for query in OLD} | {"q01": ["x"]}}
    text = str(karat.compare(GOLD, runs, "RR"))
    assert "\n95% intervals of RR (old): all values are equal\n" in text
    assert "\n95% intervals of RR (new): Wilson's score interval\n" in text


def test_in_python_the_same_text_is_printed(command, files):
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR")
    comparison = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR")
    assert f"{comparison}\n" == out


def test_a_terminal_shows_ruled_tables_as_wide_as_it_is(command, files, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "bad.run", "-m", "RR", "--moved", "0"
    )
    assert out.count("least") == 4  # once a pair, in one table with all the rest, and below
    assert "──" in out


def test_several_pairs_are_corrected_and_it_is_said_over_how_many(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "bad.run", "-m", "RR", "--moved", "0")
    _, out, _ = command(*words)
    assert re.findall(r"^(\w+ − \w+), 12 queries$", out, re.MULTILINE) == [
        "new − old",
        "bad − old",
        "bad − new",
    ]
    assert out.count("p Holm  ") == 3
    said = "two-sided; p Holm: by Holm over 3 pairs, each\n  measure by itself\n"
    assert said in out
    assert "moved most" not in out
    _, out, _ = command(*words, "--correction", "none", "--test", "wilcoxon")
    assert "p: Wilcoxon signed ranks, two-sided; p not corrected over 3 pairs\n" in out
    assert "p Holm" not in out
    _, out, _ = command(*words, "--correction", "tukey", "--test", "t")
    assert "p: paired t, two-sided; p Tukey: by randomized Tukey HSD over 3 pairs" in out


@pytest.mark.parametrize("named", ["old", "old.run"])
def test_a_baseline_is_named_or_given_by_its_path(command, files, named):
    _, out, _ = command(
        "compare", "gold.jsonl", "new.run", "old.run", "bad.run", "-m", "RR", "--baseline", named
    )
    titles = re.findall(r"^(\w+ − \w+), ", out, re.MULTILINE)
    assert titles == ["new − old", "bad − old"]
    assert "over 2 pairs" in out


def test_groups_are_shown_with_their_size(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--moved", "0")
    _, out, _ = command(*words, "--by", "kind")
    table = out.split("new − old by kind\n")[1].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines()]
    assert " ".join(rows[0]) == "measure kind difference 95% interval p p Holm W/T/L n"
    # Of 2⁶ signs, 2 are as far out for odd; for even, 4 are: those that turn the one that fell.
    assert rows[1][:3] == ["RR", "even", "+0.3889"]
    assert rows[1][5:] == ["0.0625", "0.0625", "5/0/1", "6"]
    assert rows[2] == [
        "RR",
        "odd",
        "+0.5000",
        "[0.5000,",
        "0.5000]",
        "0.0312",
        "0.0625",
        "6/0/0",
        "6",
    ]
    assert "by group, p Holm: by Holm over 2 pairs and groups, each measure by itself\n" in out
    assert "*" not in out


def test_small_groups_are_marked(command, files):
    few = [record | {"kind": "few" if at < 4 else "many"} for at, record in enumerate(GOLD)]
    karat.Gold.of(few).write("gold.jsonl")
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--by", "kind")
    assert re.search(r"^RR +few .* 3/0/1 +4\*$", out, re.MULTILINE)
    assert re.search(r"^RR +many .* 8/0/0 +8$", out, re.MULTILINE)
    assert "*: fewer than 5 queries\n" in out


def test_how_many_queries_a_difference_needs_is_said(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "-m", "RR,P@1", "--difference", "0.05"
    )
    needed = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1").queries_needed(0.05)
    one, other = needed["queries"]
    assert (
        "queries needed to show a difference of 0.05 (80% power, α = 0.05)\n"
        "measure  new − old\n"
        f"RR       {one:9,}\n"
        f"P@1      {other:9,}\n"
    ) in out


def test_what_changed_is_cut_to_the_most_telling(command, files):
    gold = {"q": {f"item-{at}": 1 + at for at in range(6)}}
    karat.Gold.of(gold).write("gold.qrels")
    karat.Run.of({"q": [f"item-{at}" for at in range(6)]}).write("old.run")
    karat.Run.of({"q": [f"item-{at}" for at in (5, 4, 3, 2, 1)]}).write("new.run")
    _, out, _ = command("compare", "gold.qrels", "old.run", "new.run", "-m", "nDCG")
    # Brings, at rank r, grade / log2(r + 1): item-5 gains the most, then item-4, then item-0.
    said = "    item-5 (6): 6 → 1, item-4 (5): 5 → 2, item-0 (1): 1 → – and 3 more\n"
    assert said in out


def test_a_line_does_not_end_between_two_ranks(command, files):
    gold = {"q": {f"a-document-of-a-long-id-{at}": 3 - at for at in range(3)}}
    karat.Gold.of(gold).write("gold.qrels")
    karat.Run.of({"q": ["x", *gold["q"]]}).write("old.run")
    karat.Run.of({"q": list(gold["q"])}).write("new.run")
    _, out, _ = command("compare", "gold.qrels", "old.run", "new.run", "-m", "nDCG")
    lines = [line for line in out.splitlines() if line.startswith("    ")]
    assert len(lines) == 2
    assert not any(line.endswith("→") or line.startswith("    →") for line in lines)
    assert " ".join("".join(lines).split()).count(" → ") == 3


def test_everything_fits_80_columns_whatever_the_names(command, files):
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
    assert max(map(width_of, out.splitlines())) <= 80
    assert "only one of the two left out" in " ".join(out.split())


def test_many_pairs_show_moved_queries_only_if_asked(command, files):
    runs = []
    for at in range(6):
        runs.append(f"run{at}.run")
        karat.Run.of(NEW if at % 2 else OLD).write(runs[-1])
    _, out, _ = command("compare", "gold.jsonl", *runs, "-m", "RR")
    assert "moved most" not in out
    _, out, _ = command("compare", "gold.jsonl", *runs, "-m", "RR", "--moved", "1")
    assert out.count("moved most") == 9  # of 15 pairs, 6 are of equal runs


def test_many_pairs_stand_below_each_other_measure_by_measure(command, files):
    runs = []
    for at in range(6):
        runs.append(f"run{at}.run")
        karat.Run.of(NEW if at % 2 else OLD).write(runs[-1])
    words = ("compare", "gold.jsonl", *runs, "-m", "RR,P@1", "--difference", "0.1", "-o", "c.md")
    _, out, _ = command(*words)
    for title in ("RR, 12 queries", "P@1, 12 queries"):
        table = out.split(f"\n{title}\n")[1].split("\n\n")[0].splitlines()
        assert [line[:11] for line in table] == [
            "pair       ",
            *(f"run{b} − run{a}" for a in range(6) for b in range(a + 1, 6)),
        ]
        assert table[1].split()[4] == ("+0.4444" if title.startswith("RR") else "+0.9167")
    needed = out.split("queries needed")[1].splitlines()
    assert needed[1].split() == ["pair", "RR", "P@1"]
    pairs = karat.compare("gold.jsonl", runs, "RR,P@1").queries_needed(0.1)
    expected = pairs.filter(a="run0", b="run1")["queries"].to_list()
    assert needed[2].split()[3:] == [str(n) for n in expected]
    # Three runs are best by RR; the first of them, run1, is compared with the five others.
    assert Path("c.md").read_text().count("| run1 − run0 |") == 2  # and how many queries it takes
    assert "| run3 − run2 |" not in Path("c.md").read_text()
    assert "- 10 other pairs: not shown, .json and .csv hold them\n" in Path("c.md").read_text()


def test_how_the_intervals_of_groups_came_about_is_said_where_it_differs(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--by", "kind")
    _, out, _ = command(*words)
    assert "intervals of differences of some groups: all values are equal" in out


def test_json_holds_what_the_contract_says(command, files):
    code, out, _ = command(
        *("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR,P@1", "--by", "kind"),
        *("--json", "--moved", "1", "--difference", "0.1"),
    )
    assert code == 0
    told = json.loads(out)
    assert told["karat"] == karat.__version__
    assert told["conventions"]["missing"] == "zero"
    assert told["level"] == "item"
    assert (told["baseline"], told["test"], told["correction"]) == (None, "randomization", "holm")
    assert (told["tests"], told["group_tests"], told["confidence"]) == (1, 2, 0.95)
    assert [run["name"] for run in told["runs"]] == ["old", "new"]
    assert told["runs"][0]["measures"]["RR"]["value"] == 0.5
    comparison = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1", by="kind")
    assert told["pairs"] == comparison.pairs.to_dicts()
    for key in ("a", "b", "measure", "difference", "low", "high", "p", "p_corrected"):
        assert key in told["pairs"][0]
    assert told["groups"][0]["by"] == {"kind": "even"}
    assert [group["difference"] for group in told["groups"]] == comparison.groups[
        "difference"
    ].to_list()
    assert told["moved"][1] == {
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
    assert told["queries_needed"] == comparison.queries_needed(0.1).to_dicts()


def test_json_leaves_out_what_was_not_asked(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--json", "--moved", "0"
    )
    assert not {"groups", "group_tests", "moved", "queries_needed"} & json.loads(out).keys()


def test_files_are_written_by_their_ending(command, files):
    names = ["c.json", "c.csv", "c.md", "c.tex"]
    outputs = [word for name in names for word in ("-o", name)]
    words = ("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR,P@1")
    code, out, err = command(*words, *outputs)
    assert code == 0
    assert out.startswith("measure")
    written = ["c.json", "c.csv", "c.queries.csv", "c.md", "c.tex"]
    assert err.startswith("".join(f"wrote {name}\n" for name in written))
    comparison = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1")
    assert json.loads(Path("c.json").read_text())["pairs"] == comparison.pairs.to_dicts()
    assert pl.read_csv("c.csv").cast(comparison.pairs.schema).equals(comparison.pairs)
    comparison.write("again.md")
    assert Path("again.md").read_text() == Path("c.md").read_text()
    command(*words, "--by", "kind", "-o", "g.csv")
    assert pl.read_csv("g.csv")["kind"].to_list() == ["even", "even", "odd", "odd"]


def test_a_csv_has_every_query_of_every_pair_beside_it(command, files):
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


def test_markdown_is_tables_and_a_list(command, files):
    command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--moved", "1", "-o", "c.md")
    lines = Path("c.md").read_text().splitlines()
    assert lines[:5] == [
        "**new is best by RR: its lead on old, +0.4444, is real (p 0.0010)**",
        "",
        "| measure | old | new | n |",
        "| --- | ---: | ---: | ---: |",
        "| RR | 0.5000 [0.500, 0.500] | 0.9444 [0.722, 1.000] | 12 |",
    ]
    assert "**new − old, 12 queries**" in lines
    assert "| new − old | q00 | question 0 | a (2): 2 → 3 | -0.1667 |" in lines
    assert "- ▲ better, ▼ worse: p &lt; 0.05" in lines
    folded = lines.index(
        "<details><summary>what the columns mean, and how they came about</summary>"
    )
    assert lines[folded + 1 : folded + 3] == ["", "- p: sign-flip randomization, two-sided"]
    assert lines[-2:] == ["", "</details>"]


def test_latex_marks_the_best_and_what_is_shown_to_be_better(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "bad.run", "-m", "RR", "-o", "c.tex")
    command(*words)
    lines = Path("c.tex").read_text().splitlines()
    assert lines[1:4] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Letters mark the runs that a value is significantly better than (sign-flip "
        r"randomization, corrected by Holm over 3 pairs, each measure by itself; "
        r"$\alpha = 0.05$). Best values are bold.}",
    ]
    assert lines[4:] == [
        r"\begin{tabular}{ll}",
        r"\toprule",
        r"run & RR \\",
        r"\midrule",
        r"$^{a}$ old & 0.5000$^{c}$ \\",
        r"$^{b}$ new & \textbf{0.9444}$^{ac}$ \\",
        r"$^{c}$ bad & 0.0000 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    command(*words, "--baseline", "old")
    text = Path("c.tex").read_text()
    assert "\nold & 0.5000 \\\\\n" in text
    assert "\nnew & \\textbf{0.9444}$^{\\dagger}$ \\\\\n" in text
    assert "\nbad & 0.0000$^{\\ddagger}$ \\\\\n" in text
    assert "better and worse than old (sign-flip randomization, corrected by Holm over 2" in text


@pytest.mark.parametrize(("runs", "expected"), [(30, "xyzABC"), (60, "X,Y,Z,aa,ab,ac,ad")])
def test_latex_letters_of_many_runs_are_those_of_the_runs(tmp_path, runs, expected):
    """More than 26 runs, and more than there are letters."""
    n = len(expected.split(",")) if "," in expected else len(expected)
    lists = {f"run{at}": OLD for at in range(runs)}
    start = {30: 23, 60: 49}[runs]
    lists |= {f"run{at}": BAD for at in range(start, start + n)}
    comparison = karat.compare(GOLD, lists, "RR", correction="none")
    comparison.write(tmp_path / "c.tex")
    assert (
        f"$^{{a}}$ run0 & \\textbf{{0.5000}}$^{{{expected}}}$" in (tmp_path / "c.tex").read_text()
    )


def test_latex_marks_nothing_that_is_not_shown(tmp_path):
    three = GOLD[1:4]
    comparison = karat.compare(three, {"old": OLD, "new": NEW}, "RR")
    assert comparison.pairs["p_corrected"].to_list() == [2 / 8]
    comparison.write(tmp_path / "c.tex")
    assert "$^{b}$ new & \\textbf{1.0000} \\\\\n" in (tmp_path / "c.tex").read_text()


def test_latex_marks_no_run_that_is_as_good(tmp_path):
    gold = {f"q{at:02}": [f"a{rank}" for rank in range(16)] for at in range(12)}

    def found(numbers):
        return {q: [f"a{rank}" for rank in range(n)] for q, n in zip(gold, numbers, strict=True)}

    runs = {"old": found([11] * 12), "new": found([12] * 11 + [0])}
    comparison = karat.compare(gold, runs, "P(denominator=k)@16", test="wilcoxon")
    (row,) = comparison.pairs.to_dicts()
    assert row["difference"] == 0
    assert row["p"] < 0.05  # signed ranks do not ask about the mean
    comparison.write(tmp_path / "c.tex")
    assert r"0.6875}$^" not in (tmp_path / "c.tex").read_text()


def test_latex_takes_lower_for_better_where_it_is(tmp_path):
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
    assert r"$^{a}$ slow & 55.50 & \textbf{1.0000} \\" in text
    assert r"$^{b}$ fast & \textbf{10.50}$^{a}$ & \textbf{1.0000} \\" in text


def test_latex_takes_no_name_for_an_option_of_the_line_above(tmp_path):
    karat.compare(GOLD, {"old": OLD, "[new]": NEW}, "RR", baseline="old").write(tmp_path / "c.tex")
    assert "\n{}[new] & " in (tmp_path / "c.tex").read_text()


def test_latex_of_scores_has_intervals_and_remarks(command, files):
    Path("some.run").write_text(Path("new.run").read_text().replace("q03 ", "q99 "))
    words = ("eval", "gold.jsonl", "old.run", "some.run", "-m", "RR,Hits@1", "-o", "s.tex")
    command(*words, "--top-k", "3")
    low, high = karat.evaluate(GOLD, "some.run", "RR").summary().select("low", "high").row(0)
    assert Path("s.tex").read_text().splitlines() == [
        "% some: 1 query of the run not in gold left out",
        "% some: 1 query of gold not in the run scored as nothing retrieved",
        "% list: top_k=3",
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        r"\caption{95\% intervals of RR (old), Hits@1 (old): all values are equal. "
        r"95\% intervals of RR (some): BCa bootstrap over queries, 10,000 resamples. "
        r"95\% intervals of Hits@1 (some): Wilson's score interval. Best values are bold.}",
        r"\begin{tabular}{lll}",
        r"\toprule",
        r"run & RR & Hits@1 \\",
        r"\midrule",
        r"old & 0.5000 [0.500, 0.500] & 0 [0, 0] \\",
        rf"some & \textbf{{0.8611}} [{low:.3f}, {high:.3f}] & "
        r"\textbf{0.8333} [0.5520, 0.9530] \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    command("eval", "gold.jsonl", "old.run", "-m", "RR", "--no-intervals", "-o", "s.tex")
    text = Path("s.tex").read_text()
    assert "caption" not in text
    assert "\nold & 0.5000 \\\\\n" in text


def test_latex_sets_any_name(tmp_path):
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
    [(None, "–"), (1.0, "1.0000"), (0.0001, "0.0001"), (0.0000999, "<0.0001"), (1e-9, "<0.0001")],
)
def test_a_p_is_never_shown_as_nothing(p, shown):
    assert probability(p) == shown


def test_an_interval_may_be_open():
    assert interval(None, None, "RR") == "–"
    assert interval(-0.25, 0.5, "RR") == "[-0.2500, 0.5000]"
    assert interval(None, 0.5, "latency.p90") == "[–, 0.500]"


def test_a_measure_without_values_is_shown_as_dashes(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "bad.run", "new.run", "-m", "FirstRelevant@1", "--moved", "0"
    )
    assert re.search(r"^FirstRelevant@1 +– ", out, re.MULTILINE)
    assert "12 queries with a value in only one" not in out
    assert "new − bad: 11 queries with a value in only one of the two left out\n" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["old.run"], "a comparison takes two runs or more"),
        (["old.run", "nowhere.run"], "nowhere.run: there is no such file"),
        (["old.run", "new.run", "--baseline", "nwe"], "did you mean 'new'?"),
        (["old.run", "new.run", "--test", "z"], "choose one of randomization, t, wilcoxon"),
        (["old.run", "new.run", "--correction", "z"], "choose one of holm, bh"),
        (["old.run", "new.run", "--by", "knd"], "did you mean 'kind'?"),
        (["old.run", "new.run", "--moved", "-1"], "greater than or equal to 0"),
        (
            ["old.run", "new.run", "-o", "c.parquet"],
            ".csv, .md, .tex; a report is .html",
        ),
        (["nowhere.run", "new.run", "-o", "no/c.md"], "the folder to write into does not exist"),
        (["old.run", "new.run", "--by", "kind", "--correction", "tukey"], "Tukey HSD corrects"),
    ],
)
def test_a_comparison_that_cannot_be_made_ends_with_a_message(command, files, words, said):
    code, out, err = command("compare", "gold.jsonl", *words)
    assert (code, out) == (2, "")
    assert said in err


def test_a_format_that_is_said_is_not_guessed_to_be_scores(command, files):
    karat.evaluate(GOLD, OLD, "RR").write("old.json")
    words = ("compare", "gold.jsonl", "old.json", "new.run", "-m", "RR", "--moved", "0")
    assert command(*words)[0] == 0
    code, _, err = command(*words, "--format", "trec")
    assert code == 2
    assert "old.json:1" in err


def test_flags_that_say_how_runs_are_scored_are_used(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--top-k", "1", "--moved", "0"
    )
    assert re.search(r"^RR +0\.0000 .* 0\.9167 .* 12$", out, re.MULTILINE)
    assert "\nlist: top_k=1\n\n" in out
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "--preset", "benchmark")
    assert "conventions: duplicates=count" in out
