"""Documents in a terminal, as Markdown, LaTeX and HTML."""

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from karat.report.document_model import (
    Cell,
    Column,
    Document,
    FieldList,
    Headline,
    Notes,
    Section,
    Table,
    TextLines,
    Whisker,
)
from karat.report.renderers import latex, markdown, notebook_html, terminal

COLUMNS = [
    Column("run", "left"),
    Column("nDCG@10"),
    Column("0 … 1", "left", priority=9, scale=(0.0, 1.0)),
    Column("RR", priority=1),
    Column("text", "left", priority=2, is_flexible=True),
]
ROWS = [
    [
        Cell("bm25"),
        Cell("0.700", "[0.600, 0.800]", "b", is_best=True),
        Cell("", drawing=Whisker(0.6, 0.7, 0.8)),
        Cell("0.500"),
        Cell("how do I reset my password"),
    ],
    [
        Cell("a|b <i> 100% of_it"),
        Cell("–"),
        Cell(""),
        Cell("0.400", tone="bad"),
        Cell(""),
    ],
]
TABLE = Table(COLUMNS, ROWS, "Results", ["b: a note"])
DOCUMENT = Document(
    "Title",
    Headline("bm25 leads", "good"),
    [
        Section([TABLE, Notes(["a remark"]), TextLines(["x = 1"])]),
        Section([FieldList([("Formula", "1 / rank"), ("Cutoff", "none")])], "Meaning"),
    ],
    notes=["2 queries left out"],
    details=["95% intervals: some method"],
    label="tab:x",
)


def test_headline_comes_first_and_notes_last():
    lines = terminal.text(DOCUMENT).splitlines()
    assert lines[0] == "bm25 leads"
    assert lines[-2:] == ["2 queries left out", "95% intervals: some method"]


def test_columns_with_the_highest_priority_number_are_dropped_first():
    def heads(width):
        return terminal.plain(list(terminal.table_lines(TABLE, width))[1]).split()

    assert heads(200) == ["run", "nDCG@10", "0", "…", "1", "RR", "text"]
    assert heads(70) == ["run", "nDCG@10", "RR", "text"]
    assert heads(55) == ["run", "nDCG@10", "RR"]
    assert heads(42) == ["run", "nDCG@10"]


def test_table_that_does_not_fit_is_split_into_blocks_that_repeat_the_labels():
    columns = [Column("run", "left"), *(Column(f"measure {n}") for n in range(10))]
    rows = [[Cell("bm25"), *(Cell("0.500") for _ in range(10))]]
    lines = [terminal.plain(line) for line in terminal.table_lines(Table(columns, rows), 40)]
    assert sum(line.startswith("run") for line in lines) > 1
    assert sum(line.startswith("bm25") for line in lines) == lines.count("") + 1
    assert " ".join(lines).count("measure") == 10


TEXTS = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=60)


@given(
    st.lists(st.lists(TEXTS, min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(60, 140),
)
def test_no_line_is_wider_than_asked(rows, width):
    columns = [
        Column("label", "left"),
        Column("value"),
        Column("extra", priority=1),
        Column("text", "left", is_flexible=True),
    ]
    cells = [
        [Cell(text[:20]) if at != 3 else Cell(text) for at, text in enumerate(row)] for row in rows
    ]
    document = Document("", Headline("so " * 30), [Section([Table(columns, cells)])], ["a " * 50])
    for line in terminal.text(document, width=width).splitlines():
        assert cell_len(line) <= width or len(columns) == 1


def test_whiskers_stay_inside_their_scale():
    for low, value, high in ((-1.0, 0.5, 2.0), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.2, 0.2, 0.9)):
        drawn = terminal.whisker(Whisker(low, value, high), (0.0, 1.0), 20)
        assert len(drawn) == 20
        assert drawn.count("●") == 1
    assert terminal.whisker(None, (0.0, 1.0), 8) == " " * 8


def test_markdown_escapes_what_would_end_a_cell_and_folds_details():
    text = markdown.markdown(DOCUMENT)
    assert text.startswith("**✅ bm25 leads**\n")
    assert "a\\|b &lt;i> 100% of_it" in text
    assert "| run | nDCG@10 | RR | text |" in text
    assert "**0.700** b [0.600, 0.800]" in text
    assert "<details><summary>Method</summary>\n\n- 95% intervals: some method" in text


def test_latex_has_caption_label_right_aligned_columns_and_escaped_texts():
    text = latex.latex(DOCUMENT)
    assert text.startswith("% 2 queries left out\n")
    assert "\\caption{Title. b: a note.}\n\\label{tab:x}\n\\begin{tabular}{lrrl}" in text
    assert "\\textbf{0.700}\\textsuperscript{b} [0.600, 0.800]" in text
    assert "a\\textbar{}b \\textless{}i\\textgreater{} 100\\% of\\_it" in text


def test_html_is_escaped_and_has_no_script():
    text = notebook_html.html(DOCUMENT)
    assert "a|b &lt;i&gt; 100% of_it" in text
    assert "<script" not in text
    assert re.findall(r"<th[^>]*>([^<]*)</th>", text)[:4] == ["run", "nDCG@10", "RR", "text"]


def test_lines_cannot_end_their_fence_in_markdown():
    hostile = Document("", sections=[Section([TextLines(["```", "<img>", "\u202e````"])])])
    lines = markdown.markdown(hostile).splitlines()
    assert lines == ["`````", "```", "<img>", "⟨U+202E⟩````", "`````"]


def test_words_and_names_longer_than_a_line_are_cut():
    names = [Column("検索" * 40, "left"), Column("b" * 200)]
    table = Table(names, [[Cell("c" * 200), Cell("d" * 200)]])
    hostile = Document("", Headline("e" * 200), [Section([table])], notes=["f" * 200])
    text = terminal.text(hostile)
    assert max(map(cell_len, text.splitlines())) <= 80
    assert text.count("e") == text.count("f") == 200
