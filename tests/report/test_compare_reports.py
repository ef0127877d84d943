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
    values, pair, moved, notes, headline = out.split("\n\n")
    assert headline == "new is significantly better than old: RR differs by 0.4444 (p 0.0010)\n"
    assert command("eval", *words)[1].startswith(f"{values}\n")
    pairs = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1").pairs
    low, high, least = (pairs[column].to_list() for column in ("low", "high", "detectable"))
    assert pair == (
        "new − old, 12 queries\n"
        "measure  difference      95% interval       p   W/T/L  change     dz     MDE\n"
        f"RR        ▲ +0.4444  [{low[0]:.4f}, {high[0]:.4f}]  0.0010  11/0/1  +88.9%  +2.31  "
        f"{least[0]:.4f}\n"
        f"P@1       ▲ +0.9167  [{low[1]:.4f}, {high[1]:.4f}]  0.0010  11/1/0       –  +3.18  "
        f"{least[1]:.4f}"
    )
    assert moved == (
        "new − old: queries with the largest change in RR\n"
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
        "p: sign-flip randomization test, two-sided\n"
        "95% intervals of RR (old): all values are equal\n"
    )
    assert notes.endswith(
        "\nintervals of differences: inversion of the sign-flip test\n"
        "W/T/L: wins, ties and losses of the first-named run, by query\n"
        "dz: mean difference / its standard deviation over queries (Cohen's dz)\n"
        "MDE: minimum detectable effect (80% power, α = 0.05)"
    )


def test_common_interval_method_is_shown_once(command, files):
    _, out, _ = command("compare", "gold.jsonl", "new.run", "mixed.run", "-m", "RR")
    assert "95% intervals: Student's t on the logit scale\n" in out
    assert "intervals of differences: inversion of the sign-flip test" in out
    karat.Run.of({query: ["x", "y", "a"] for query in OLD}).write("third.run")
    _, out, _ = command("compare", "gold.jsonl", "old.run", "third.run", "-m", "RR")
    assert out.count("all values are equal") == 1
    assert "of differences" not in out
    _, out, _ = command("compare", "gold.jsonl", "new.run", "mixed.run", "-m", "RR,Success@5")
    assert "95% intervals of RR: Student's t on the logit scale\n" in out
    assert "95% intervals of Success@5: Wilson's score interval\n" in out
    assert "intervals of differences in RR: inversion of the sign-flip test" in out
    assert "intervals of differences in Success@5: Clopper-Pearson limits" in out


def test_runs_with_another_interval_method_are_named():
    runs = {"old": OLD, "new": {query: ["a"] for query in OLD} | {"q01": ["x"]}}
    text = str(karat.compare(GOLD, runs, "RR"))
    assert "\n95% intervals of RR (old): all values are equal\n" in text
    assert "\n95% intervals of RR (new): Wilson's score interval\n" in text


def test_python_prints_the_same_text(command, files):
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR")
    comparison = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR")
    assert f"{comparison}\n" == out


def test_terminal_shows_ruled_tables_of_its_full_width(command, files, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "bad.run", "-m", "RR", "--moved", "0"
    )
    assert out.count("MDE") == 4  # once per pair, in one table each, and in the notes
    assert "──" in out


def test_correction_over_several_pairs_is_shown(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "bad.run", "-m", "RR", "--moved", "0")
    _, out, _ = command(*words)
    assert re.findall(r"^(\w+ − \w+), 12 queries$", out, re.MULTILINE) == [
        "new − old",
        "bad − old",
        "bad − new",
    ]
    assert out.count("p Holm  ") == 3
    assert "two-sided; p Holm: Holm correction over 3 pairs" in " ".join(out.split())
    assert "largest change" not in out
    _, out, _ = command(*words, "--correction", "none", "--test", "wilcoxon")
    assert "p: Wilcoxon signed-rank test, two-sided; p not corrected over 3 pairs\n" in out
    assert "p Holm" not in out
    _, out, _ = command(*words, "--correction", "tukey", "--test", "t")
    assert "p Tukey: randomized Tukey HSD correction over 3 pairs" in " ".join(out.split())


@pytest.mark.parametrize("named", ["old", "old.run"])
def test_baseline_is_given_by_name_or_path(command, files, named):
    _, out, _ = command(
        "compare", "gold.jsonl", "new.run", "old.run", "bad.run", "-m", "RR", "--baseline", named
    )
    titles = re.findall(r"^(\w+ − \w+), ", out, re.MULTILINE)
    assert titles == ["new − old", "bad − old"]
    assert "over 2 pairs" in " ".join(out.split())


def test_groups_are_shown_with_their_size(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--moved", "0")
    _, out, _ = command(*words, "--by", "kind")
    table = out.split("new − old by kind\n")[1].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines()]
    assert " ".join(rows[0]) == "measure kind difference 95% interval p p Holm W/T/L n"
    # Of 2⁶ sign flips, 2 are as extreme for odd; for even 4, with the sign of q00 either way.
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
    assert "by group, p Holm: Holm correction over 2 pairs and groups, " in out
    assert "*" not in out


def test_small_groups_are_marked(command, files):
    few = [record | {"kind": "few" if at < 4 else "many"} for at, record in enumerate(GOLD)]
    karat.Gold.of(few).write("gold.jsonl")
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--by", "kind")
    assert re.search(r"^RR +few .* 3/0/1 +4\*$", out, re.MULTILINE)
    assert re.search(r"^RR +many .* 8/0/0 +8$", out, re.MULTILINE)
    assert "*: fewer than 5 queries\n" in out


def test_number_of_queries_needed_for_a_difference_is_shown(command, files):
    _, out, _ = command(
        "compare", "gold.jsonl", "old.run", "new.run", "-m", "RR,P@1", "--difference", "0.05"
    )
    needed = karat.compare("gold.jsonl", ["old.run", "new.run"], "RR,P@1").queries_needed(0.05)
    one, other = needed["queries"]
    assert (
        "queries needed to detect a difference of 0.05 (80% power, α = 0.05)\n"
        "measure  new − old\n"
        f"RR       {one:9,}\n"
        f"P@1      {other:9,}\n"
    ) in out


def test_only_the_largest_rank_changes_are_shown(command, files):
    gold = {"q": {f"item-{at}": 1 + at for at in range(6)}}
    karat.Gold.of(gold).write("gold.qrels")
    karat.Run.of({"q": [f"item-{at}" for at in range(6)]}).write("old.run")
    karat.Run.of({"q": [f"item-{at}" for at in (5, 4, 3, 2, 1)]}).write("new.run")
    _, out, _ = command("compare", "gold.qrels", "old.run", "new.run", "-m", "nDCG")
    # At rank r an item adds grade / log2(r + 1): item-5 gains the most, then item-4, then item-0.
    assert "    item-5 (6): 6 → 1, item-4 (5): 5 → 2, item-0 (1): 1 → – and 3 more\n" in out


def test_lines_are_not_broken_between_two_ranks(command, files):
    gold = {"q": {f"a-document-of-a-long-id-{at}": 3 - at for at in range(3)}}
    karat.Gold.of(gold).write("gold.qrels")
    karat.Run.of({"q": ["x", *gold["q"]]}).write("old.run")
    karat.Run.of({"q": list(gold["q"])}).write("new.run")
    _, out, _ = command("compare", "gold.qrels", "old.run", "new.run", "-m", "nDCG")
    lines = [line for line in out.splitlines() if line.startswith("    ")]
    assert len(lines) == 2
    assert not any(line.endswith("→") or line.startswith("    →") for line in lines)
    assert " ".join("".join(lines).split()).count(" → ") == 3


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
    pairs = karat.compare("gold.jsonl", six_runs, "RR,P@1").queries_needed(0.1)
    expected = pairs.filter(a="run0", b="run1")["queries"].to_list()
    assert needed[2].split()[3:] == [str(n) for n in expected]
    # Three runs are best by RR; the first of them, run1, is compared with the five others.
    assert (
        Path("c.md").read_text().count("| run1 − run0 |") == 2
    )  # and in the table of queries needed
    assert "| run3 − run2 |" not in Path("c.md").read_text()
    assert (
        "- 10 other pairs are not shown; .json and .csv contain them\n" in Path("c.md").read_text()
    )


def test_interval_method_of_groups_is_shown_where_it_differs(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "-m", "RR", "--by", "kind")
    _, out, _ = command(*words)
    assert "intervals of differences of some groups: all values are equal" in out


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
        "**new is significantly better than old: RR differs by 0.4444 (p 0.0010)**",
        "",
        "| measure | old | new | n |",
        "| --- | ---: | ---: | ---: |",
        "| RR | 0.5000 [0.500, 0.500] | 0.9444 [0.615, 0.994] | 12 |",
    ]
    assert "**new − old, 12 queries**" in lines
    assert "| new − old | q00 | question 0 | a (2): 2 → 3 | -0.1667 |" in lines
    assert "- ▲ better, ▼ worse: p &lt; 0.05" in lines
    folded = lines.index("<details><summary>columns and methods</summary>")
    assert lines[folded + 1 : folded + 3] == ["", "- p: sign-flip randomization test, two-sided"]
    assert lines[-2:] == ["", "</details>"]


def test_latex_marks_the_best_and_significantly_better_runs(command, files):
    words = ("compare", "gold.jsonl", "old.run", "new.run", "bad.run", "-m", "RR", "-o", "c.tex")
    command(*words)
    lines = Path("c.tex").read_text().splitlines()
    assert lines[1:4] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Letters mark the runs that a value is significantly better than (sign-flip "
        r"randomization test, Holm correction over 3 pairs, separately for each measure; "
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
    assert "better and worse than old (sign-flip randomization test, Holm correction over 2" in text


def test_letters_of_runs_go_on_with_capitals_and_then_pairs():
    letters = [run_letter(at) for at in range(60)]
    assert letters[23:29] == ["x", "y", "z", "A", "B", "C"]
    assert letters[49:56] == ["X", "Y", "Z", "aa", "ab", "ac", "ad"]
    assert len(set(letters)) == 60


@pytest.mark.parametrize(("count", "marks"), [(3, "bc"), (5, "b,c,aa,ab")])
def test_latex_separates_letters_of_more_runs_than_the_alphabet_has(
    tmp_path, monkeypatch, count, marks
):
    for module in ("comparison", "latex"):
        monkeypatch.setattr(f"karat.report.{module}.ascii_letters", "abc")
    runs = {f"run{at}": BAD if at else OLD for at in range(count)}
    karat.compare(GOLD, runs, "RR", correction="none").write(tmp_path / "c.tex")
    text = (tmp_path / "c.tex").read_text()
    assert f"$^{{a}}$ run0 & \\textbf{{0.5000}}$^{{{marks}}}$" in text
    assert f"$^{{{run_letter(count - 1)}}}$ run{count - 1} & 0.0000 " in text


def test_latex_does_not_mark_insignificant_differences(tmp_path):
    three = GOLD[1:4]
    comparison = karat.compare(three, {"old": OLD, "new": NEW}, "RR")
    assert comparison.pairs["p_corrected"].to_list() == [2 / 8]
    comparison.write(tmp_path / "c.tex")
    assert "$^{b}$ new & \\textbf{1.0000} \\\\\n" in (tmp_path / "c.tex").read_text()


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
    assert r"0.6875}$^" not in (tmp_path / "c.tex").read_text()


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
    assert r"$^{a}$ slow & 55.50 & \textbf{1.0000} \\" in text
    assert r"$^{b}$ fast & \textbf{10.50}$^{a}$ & \textbf{1.0000} \\" in text


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
        r"\begin{tabular}{lll}",
        r"\toprule",
        r"run & RR & Hits@1 \\",
        r"\midrule",
        r"old & 0.5000 [0.500, 0.500] & 0 -- \\",
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
    [(None, "–"), (1.0, "1.0000"), (0.0001, "0.0001"), (0.0000999, "<0.0001"), (1e-9, "<0.0001")],
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
    assert re.search(r"^RR +0\.0000 .* 0\.9167 .* 12$", out, re.MULTILINE)
    assert "\nlist: top_k=1\n\n" in out
    _, out, _ = command("compare", "gold.jsonl", "old.run", "new.run", "--preset", "benchmark")
    assert "conventions: duplicates=count" in out
