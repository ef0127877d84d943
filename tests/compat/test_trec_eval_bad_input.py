"""Bad flags and bad files give `karat trec_eval` one clear error each, and nothing else."""

from __future__ import annotations

import gzip
import io
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from karat.compat.trec_eval import trec_eval
from karat.compat.trec_eval.catalogue import BY_NAME, NICKNAMES
from karat.compat.trec_eval.inputs import read_groups, read_preferences, read_zscores
from karat.compat.trec_eval.preferences import judge
from karat.data.data_file import DataFile
from karat.data.formats import trec
from karat.errors import InputError, KaratError, MeasureError
from support.effort import FULL
from support.errors import refused

SOUND = {
    "qrels": b"q1 0 d1 1\nq1 0 d2 0\nq2\t0\td3\t2\r\n# c\nq#3 0 d-4 -1\nq2 0 d\xc3\xa4 12\n",
    "run": b"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 .25 t\nq2\tQ0 d3  1 -1e-3 t\r\n#\nq#3 Q0 d4 1 7 t\n",
    "prefs": b"q1 u1 s1 d1 2\nq1 u1 s1 d2 1.5\nq1 u1 s2 d2 1\nq1 u1 s2 d3 0\nq1 u2 s1 d3 1\n"
    b"q1 u2 s1 d1 0\nq2 u1 s1 d3 1\n# c\nq2 u1 s1 d9 0\nq#3 u1 s d4 1\n",
    "qrels_prefs": b"q1 u1 d1 2\nq1 u1 d2 1.5\nq1 u1 d3 0\nq1 u2 d3 1\nq2 u1 d3 1\nq#3 u d4 1e0\n",
    "qrels_jg": b"q1 u1 d1 2\nq1 u1 d2 0\nq1 u2 d1 0\nq1 u2 d3 -1\n# c\nq2 u1 d3 1\nq#3 u1 d4 1\n",
    "zscores": b"q1 map 0.5 0.25\nq2 map .3 0\nq1 P_5 1e-3 1\n# c\nq2 P_5 0 -1\nq#3 map nan 1\n",
}
MEASURES = {
    "qrels": "all_trec",
    "prefs": "all_prefs",
    "qrels_prefs": "all_prefs",
    "qrels_jg": "qrels_jg",
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to work in that holds one sound file of each kind."""
    for name, content in SOUND.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(command):
    """Run the command in this process; return exit code, stdout and stderr."""
    return partial(command, "trec_eval")


def evaluate(*arguments: str) -> str:
    """Return what the command prints."""
    out = io.StringIO()
    trec_eval(list(arguments), out)
    return out.getvalue()


@pytest.mark.parametrize("judgments", MEASURES)
def test_sound_files_are_evaluated(folder, judgments):
    flags = ["-q", "-R", judgments, "-m", MEASURES[judgments], "-Z", "zscores"]
    assert "num_q" in evaluate(*flags, judgments, "run")


@pytest.mark.parametrize(
    ("arguments", "beginning"),
    [
        ("qrels run run", "error: "),
        ("-x qrels run", "error: "),
        ("-m nothing qrels run", "error: -m: "),
        ("-R prefs -m map qrels run", "error: -m: "),
        ("-m map zscores run", "error: zscores:1: "),
        ("-m map no.qrels run", "error: no.qrels: "),
    ],
)
def test_command_ends_with_2_and_prints_only_the_error(command, folder, arguments, beginning):
    code, out, err = command(*arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith(beginning)
    assert "\n  hint: " in err
    assert "Traceback" not in err


# Flags and parameters

FLAGS = [
    # Arguments, kind of the error, its field, values in its message.
    ("", InputError, None, ["0"]),
    ("qrels", InputError, None, ["1"]),
    ("qrels run run", InputError, None, ["3"]),
    ("-m map qrels", InputError, None, ["1"]),
    ("-x qrels run", InputError, None, ["-x"]),
    ("--nothing qrels run", InputError, None, ["--nothing"]),
    ("--Re prefs qrels run", InputError, None, ["--Re"]),
    ("--nosummary=1 qrels run", InputError, None, ["--nosummary"]),
    ("qrels run -m", InputError, None, ["-m"]),
    ("-l x qrels run", InputError, "-l", ["'x'"]),
    ("-l -1 qrels run", InputError, "-l", ["'-1'"]),
    ("-l 1.5 qrels run", InputError, "-l", ["'1.5'"]),
    ("-M -1 qrels run", InputError, "-M", ["'-1'"]),
    ("-M 9999999999999999999 qrels run", InputError, "-M", ["'9999999999999999999'"]),
    ("-N ten qrels run", InputError, "-N", ["'ten'"]),
    ("-R xml qrels run", InputError, "-R", ["'xml'"]),
    ("-T xml qrels run", InputError, "-T", ["'xml'"]),
    ("-m nothing qrels run", MeasureError, "-m", ["'nothing'"]),
    ("-m maps qrels run", MeasureError, "-m", ["'maps'"]),
    ("-m P_5 qrels run", MeasureError, "-m", ["'P_5'"]),
    ("-m P. qrels run", InputError, "-m", ["'P.'"]),
    ("-m P.0 qrels run", MeasureError, "-m", ["P.0: ", "'0'"]),
    ("-m P.-5 qrels run", MeasureError, "-m", ["P.-5: ", "'-5'"]),
    ("-m P.5,,7 qrels run", MeasureError, "-m", ["P.5,,7: ", "''"]),
    ("-m P.0.5 qrels run", MeasureError, "-m", ["P.0.5: ", "'0.5'"]),
    ("-m P.5x qrels run", MeasureError, "-m", ["P.5x: ", "'5x'"]),
    ("-m P.5,5.9 qrels run", MeasureError, "-m", ["P.5,5.9: "]),
    ("-m . qrels run", MeasureError, "-m", ["'.'"]),
    ("-m .5 qrels run", MeasureError, "-m", ["'.5'"]),
    ("-m ndcg_cut.x qrels run", MeasureError, "-m", ["ndcg_cut.x: ", "'x'"]),
    ("-m P.5,7,5 qrels run", MeasureError, "-m", ["P.5,7,5: "]),
    ("-m iprec_at_recall..1,0.1 qrels run", MeasureError, "-m", ["iprec_at_recall..1,0.1: "]),
    ("-m iprec_at_recall.x qrels run", MeasureError, "-m", ["iprec_at_recall.x: ", "'x'"]),
    ("-m iprec_at_recall.-.5 qrels run", MeasureError, "-m", ["iprec_at_recall.-.5: ", "-0.5"]),
    ("-m Rprec_mult.1,,2 qrels run", MeasureError, "-m", ["Rprec_mult.1,,2: ", "''"]),
    ("-m 11pt_avg.nan qrels run", MeasureError, "-m", ["11pt_avg.nan: ", "'nan'"]),
    ("-m set_F.1,2 qrels run", MeasureError, "-m", ["set_F.1,2: ", "'1,2'"]),
    ("-m utility.1,2,3 qrels run", MeasureError, "-m", ["utility.1,2,3: ", "'1,2,3'"]),
    ("-m utility.a,b,c,d qrels run", MeasureError, "-m", ["utility.a,b,c,d: ", "'a'"]),
    ("-m relstring.x qrels run", MeasureError, "-m", ["relstring.x: ", "'x'"]),
    ("-m ndcg.1 qrels run", MeasureError, "-m", ["ndcg.1: ", "'1'"]),
    ("-m ndcg.p=1 qrels run", MeasureError, "-m", ["ndcg.p=1: ", "'p=1'"]),
    ("-m ndcg.-1=1 qrels run", MeasureError, "-m", ["ndcg.-1=1: ", "'-1=1'"]),
    ("-m G.1=x qrels run", MeasureError, "-m", ["G.1=x: ", "'x'"]),
    ("-m rbp.0.8 qrels run", MeasureError, "-m", ["rbp.0.8: ", "'0.8'"]),
    ("-m rbp.p=1 qrels run", MeasureError, "-m", ["rbp.p=1: ", "1.0"]),
    ("-m rbp_resid.p=0 qrels run", MeasureError, "-m", ["rbp_resid.p=0: ", "0.0"]),
    ("-m rbp.p=x qrels run", MeasureError, "-m", ["rbp.p=x: ", "'x'"]),
]


@pytest.mark.parametrize(
    ("arguments", "kind", "field", "values"), FLAGS, ids=[arguments for arguments, *_ in FLAGS]
)
def test_bad_flags_are_refused(folder, arguments, kind, field, values):
    with refused(kind, path=None, line=None, field=field) as error:
        evaluate(*arguments.split())
    assert all(value in error.value.problem for value in values)
    assert error.value.hint


@pytest.mark.parametrize(("name", "suggestion"), [("maps", "map"), ("P_5", "P.5"), ("P.", "P")])
def test_misspelled_measure_is_answered_with_a_suggestion(folder, name, suggestion):
    with refused(field="-m", kind=InputError if name == "P." else MeasureError) as error:
        evaluate("-m", name, "qrels", "run")
    assert suggestion in error.value.hint


def test_hint_about_an_unknown_format_lists_the_known_ones(folder):
    with refused(field="-R") as error:
        evaluate("-R", "xml", "qrels", "run")
    assert all(name in error.value.hint for name in MEASURES)


@pytest.mark.parametrize("value", ["", " ", "P\x00", "é.1", ".", "..", "=", ",", "%s", "{}"])
def test_text_that_is_not_a_measure_is_refused(folder, value):
    with refused(MeasureError, field="-m") as error:
        evaluate("-m", value, "qrels", "run")
    assert len(error.value.hint) > len("write ")


def test_bad_flag_is_refused_before_files_are_opened(folder):
    with refused(MeasureError, path=None, field="-m"):
        evaluate("-m", "nothing", "no.qrels", "no.run")


EXTREMES = [
    *("relstring.-5", "relstring.1e30", "relstring.1e999", "relstring.0", "P.999999999"),
    *("utility.1e308,1e308,1e308,1e308", "utility.1e999,-1e999,0,0", "utility.0,0,0,-0"),
    *("Rprec_mult.1e300", "Rprec_mult.1e999", "Rprec_mult.0", "Rprec_mult.1e-320"),
    *("iprec_at_recall.1e300", "iprec_at_recall.1e999", "11pt_avg.1e300", "11pt_avg.1e999"),
    *("set_F.1e200", "set_F.1e999", "set_F.-1e999", "rbp.p=1e-320", "rbp.p=0.9999999999999999"),
    *("ndcg.1=1e308,2=1e308,12=1e308", "ndcg.1=1e999", "dcg.1=-1e999,2=1e999", "ideal_dcg.1=1e999"),
    *("G.1=1e308,12=-1e308", "G.1=1e999", "Rndcg.1=1e308,12=1e308", "Rndcg.1=1e999"),
    *("ndcg_rel.1=1e999", "ndcg_rel.0=-1e308,1=1e308", "ndcg.0=1e308", "ndcg.9999=1"),
]


@pytest.mark.parametrize("measure", EXTREMES)
def test_parameters_of_any_size_are_used_or_refused(folder, measure):
    try:
        printed = evaluate("-q", "-m", measure, "qrels", "run")
    except MeasureError as error:
        assert error.field == "-m"  # noqa: PT017
    else:
        assert printed.startswith(measure.partition(".")[0])


# Files


def file_case(kind: str, content: bytes | None, line: int | None, field: str | None, *values: str):
    """Describe a bad file in the place of a sound one, and the error about it."""
    shown = "missing" if content is None else repr(content[:25])
    return pytest.param(kind, content, line, field, values, id=f"{kind} {shown}")


# The field after the second one of a line.
THIRD_FIELD = {
    "qrels": "item",
    "run": "item",
    "prefs": "subgroup",
    "qrels_prefs": "item",
    "qrels_jg": "item",
    "zscores": "mean",
}
LINE_OF_QUERY_3 = {kind: SOUND[kind][: SOUND[kind].index(b"#3")].count(b"\n") + 1 for kind in SOUND}
BAD_FILES = [
    *[
        case
        for kind in SOUND
        for case in [
            file_case(kind, None, None, None),
            file_case(kind, b"", None, None),
            file_case(kind, b" \n\t\n", None, None),
            file_case(kind, b"# q1\n#\n", None, None),
            file_case(kind, b"q1 x\n", 1, THIRD_FIELD[kind], "2"),
            file_case(kind, b"q1 1 1 1 1 1 1 1\n", 1, None, "8"),
            file_case(
                kind,
                SOUND[kind].replace(b"#3", b"\xff"),
                LINE_OF_QUERY_3[kind],
                "encoding",
                "0xff",
            ),
            file_case(kind, SOUND[kind].decode().encode("utf-16"), 1, "encoding", "UTF-16"),
            file_case(kind, b"\x1f\x8b\x08" + b"torn", None, None, "end-of-stream"),
            file_case(kind, gzip.compress(SOUND[kind], mtime=0)[:-9], None, None, "end-of-stream"),
        ]
    ],
    file_case("qrels", SOUND["run"], 1, None, "6"),
    file_case("qrels", b"q1 0 d1 1.5\n", 1, "grade", "'1.5'"),
    file_case("qrels", b"q1 0 d1 1\nq1 0 d2 x\n", 2, "grade", "'x'"),
    file_case("qrels", b"q1 0 d1 99999999999999999999\n", 1, "grade", "'99999999999999999999'"),
    file_case("qrels", b"q1 0 d1 1\nq1 0 d1 2\n", None, "item", "'q1'", "'d1'"),
    file_case("run", SOUND["qrels"], 1, None, "4"),
    file_case("run", b"q1 Q0 d1 1 nan t\n", 1, "score", "'nan'"),
    file_case("run", b"q1 Q0 d1 1 1e999 t\n", 1, "score", "'1e999'"),
    file_case("run", b"q1 Q0 d1 1 high t\n", 1, "score", "'high'"),
    file_case("run", b"q1 Q0 d1 1 1 t\nq1 Q0 d1 2 1 t\n", None, "item", "'q1'"),
    file_case("prefs", b"q1 u s d1 1\nq1 u d1 1\n", 2, "level", "4", "5"),
    file_case("prefs", b"q1 u s d1 x\n", 1, "level", "'x'"),
    file_case("prefs", b"q1 u s d1 1_0\n", 1, "level", "'1_0'"),
    file_case("prefs", b"q1 u s d1 inf\n", 1, "level", "'inf'"),
    file_case("qrels_prefs", b"q1 u d1 nan\n", 1, "grade", "'nan'"),
    file_case("qrels_jg", b"q1 u d1 1\nq1 u d1 1\n", 2, "item", "'u'", "'q1'", "'d1'"),
    file_case("qrels_jg", b"q1 u d1 1.5\n", 1, "grade", "'1.5'"),
    file_case("qrels_jg", b"q1 u d1 1e300\n", 1, "grade", "'1e300'"),
    file_case("qrels_jg", b"q1 u d1 99999999999999999999\n", 1, "grade", "'99999999999999999999'"),
    file_case("zscores", b"q map 1 1\nq map 1 2\n", 2, "measure", "map", "'q'"),
    file_case("zscores", b"q map 1\n", 1, "deviation", "3", "4"),
    file_case("zscores", b"q map one 1\n", 1, "mean", "'one'"),
]


@pytest.mark.parametrize(("kind", "content", "line", "field", "values"), BAD_FILES)
def test_bad_file_is_refused_with_its_line_and_field(folder, kind, content, line, field, values):
    if content is None:
        Path(kind).unlink()
    else:
        Path(kind).write_bytes(content)
    judgments = kind if kind in MEASURES else "qrels"
    flags = ["-q", "-c", "-R", judgments, "-m", MEASURES[judgments]]
    flags += ["-Z", "zscores"] if kind == "zscores" else []
    with refused(path=kind, line=line, field=field) as error:
        evaluate(*flags, judgments, "run")
    assert all(value in str(error.value) for value in values)
    assert error.value.hint


@pytest.mark.parametrize("judgments", MEASURES)
def test_run_with_an_item_twice_is_refused_for_every_format_of_judgments(folder, judgments):
    Path("run").write_bytes(SOUND["run"] + b"q2 Q0 d3 1 9 t\n")
    with refused(path="run", line=None, field="item") as error:
        evaluate("-R", judgments, "-m", MEASURES[judgments], judgments, "run")
    assert "'q2'" in str(error.value)


CONTRADICTIONS = {
    "two levels in one subgroup": (b"q u s b 1\nq u s a 1\nq u s a 2\nq u s c 1\n", 3),
    "two levels in one of two subgroups": (b"q u s a 1\nq u s a 2\nq u t b 1\nq u t c 2\n", 2),
    "relevant and irrelevant": (b"q u s a 1\nq u s b 0\nq u t a 0\nq u t b 0\n", 3),
    "two items above each other": (b"q u s a 2\nq u s b 1\nq u t b 2\nq u t a 1\nq u t c 1\n", 4),
    "a circle of three": (
        b"q u s a 2\nq u s b 1\nq u t b 2\nq u t c 1\nq u v c 2\nq u v a 1\n",
        6,
    ),
}


@pytest.mark.parametrize(("content", "line"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_contradicting_preferences_of_one_judge_are_refused(folder, content, line):
    Path("prefs").write_bytes(content)
    with refused(path="prefs", line=line, field="level") as error:
        evaluate("-R", "prefs", "-c", "-m", "all_prefs", "prefs", "run")
    assert "'u'" in str(error.value)
    assert "'q'" in str(error.value)


def test_preferences_of_two_judges_may_contradict_each_other(folder):
    Path("prefs").write_bytes(b"q1 u s d1 2\nq1 u s d2 1\nq1 v s d1 1\nq1 v s d2 2\n")
    printed = evaluate("-R", "prefs", "-m", "prefs_pair", "prefs", "run")
    assert printed == "prefs_pair            \tall\t0.5000\n"


def test_directory_in_the_place_of_a_file_is_refused(folder):
    with refused(path=".", line=None, field=None) as error:
        evaluate("qrels", ".")
    assert "qrels_jg" in error.value.hint


# Fuzzing: files and flags with random damage are used or refused; nothing else may happen

PIECES = [
    *(b"\xff", b"\x00", b"\xc3", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\t", b" ", b"\x0b", b"#"),
    *(b"0", b"-1", b"+1", b"9" * 18, b"9" * 25, b"-" + b"9" * 25, b"1e999", b"-1e308", b"1e-400"),
    *(b"nan", b"-inf", b"0x1p3", b"1_0", b".", b"-", b"1.5", b"\xd9\xa1", b"\xc2\xa0"),
    *(b"q1", b"d1", b"u1", b"s1", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b" d2 1\nq1 "),
    *(b"\n#", b" 0 ", b"\xe2\x80\xa8"),
]  # fmt: skip
WORDS = [
    *("-q", "-n", "-c", "-J", "-h", "-v", "-o", "-l", "-M", "-N", "-R", "-T", "-Z", "-m", "--"),
    *("2", "0", "1e3", "-1", "99999999999999", "prefs", "qrels_jg", "qrels_prefs", "trec_results"),
    *("map", "P.5,7", "official", "all_trec", "set", "ndcg.1=3,2=9", "iprec_at_recall..1,.2"),
    *("Rprec_mult.5.0,0.2", "utility.2,-1,0,0", "success.2,5", "relstring.20", "rbp.p=0.8"),
    *("set_F.0.5", "11pt_avg..25", "G.1=2", "Rndcg.0=1", "unj.3", "rbp_resid.p=.5", "gm_map"),
    *("--measure=map", "--level_for_rel=2", "--nosum", "--Zscore", "zscores", "map_avgjg", "P.0"),
]  # fmt: skip

NUMBERS = [
    *("0", "1", "5", "-1", ".5", "+2", "1e3", "1e308", "1e999", "-1e999", "1e-320", "9" * 12),
    *("1=1", "1=1e308", "2=-1e308", "0=1e999", "p=.5", "p=1e-9", "p=2", "nan", "x", ""),
]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return a copy with bytes flipped, deleted, repeated, replaced or the end cut off."""
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        at = chance.randrange(len(content) + 1)
        length = chance.choice([1, 1, 2, 5, 20])
        what = chance.randrange(7)
        if what == 0 and at < len(content):
            flipped = content[at] ^ (1 << chance.randrange(8))
            content = content[:at] + bytes([flipped]) + content[at + 1 :]
        elif what == 1:
            content = content[:at] + content[at + length :]
        elif what == 2:
            content = content[:at] + content[max(0, at - 2 * length) :]
        elif what == 3:
            content = content[:at] + chance.choice(PIECES) + content[at:]
        elif what == 4:
            content = content[:at] + chance.choice(PIECES) + content[at + length :]
        elif what == 5:  # a whole field, so that numbers are hit
            fields = content.split(b" ")
            fields[chance.randrange(len(fields))] = chance.choice(PIECES)
            content = b" ".join(fields)
        elif chance.randrange(4) == 0:
            content = content[:at]
    return content


def words_at_random(chance: random.Random) -> list[str]:
    """Return flags: sound ones, damaged ones, or none."""
    words = [chance.choice(WORDS) for _ in range(chance.randrange(6))]
    for at, word in enumerate(words):
        if chance.randrange(3) == 0:
            words[at] = damaged(word.encode(), chance).decode("utf-8", "replace")
    if chance.randrange(2):
        given = [chance.choice(NUMBERS) for _ in range(chance.choice([1, 1, 2, 4]))]
        words += ["-m", f"{chance.choice([*BY_NAME, *NICKNAMES])}.{','.join(given)}"]
    return words


def judge_all(path: str, *, from_qrels: bool) -> None:
    for topic, preferences in read_preferences(path, from_qrels=from_qrels).items():
        judge(topic, preferences, ["d2", "d3", "x", "d1"], path)


def read_run(path: str) -> None:
    source = DataFile(path)
    if trec.read_run(source).results.height:
        trec.last_tag(source)


READERS: dict[str, Callable[[str], object]] = {
    "qrels": lambda path: trec.read_gold(DataFile(path)).judgments,
    "run": read_run,
    "prefs": lambda path: judge_all(path, from_qrels=False),
    "qrels_prefs": lambda path: judge_all(path, from_qrels=True),
    "qrels_jg": read_groups,
    "zscores": read_zscores,
}


@pytest.fixture
def memory(tmp_path) -> str:
    """A path for one file that is written very often: in memory if possible."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield str(tmp_path / "damaged")
        return
    path = shared / f"karat-{os.getpid()}"
    yield str(path)
    path.unlink(missing_ok=True)


def unexpected_errors(
    count: int, attempt: Callable[[], object], example: Callable[[], object]
) -> dict:
    """Try this often; return the shortest example of each error that is not a KaratError."""
    shortest: dict[str, object] = {}
    for _ in range(count):
        try:
            attempt()
        except KaratError as error:
            assert str(error)  # noqa: PT017
        except (Exception, pl.exceptions.PanicException) as error:
            name = f"{type(error).__name__}: {error}"[:60]
            shortest[name] = min(shortest.get(name, example()), example(), key=len)
    return shortest


@pytest.mark.parametrize("kind", READERS)
def test_damaged_file_is_read_or_refused(kind, memory):
    chance = random.Random(kind)
    content = b""

    def attempt() -> None:
        nonlocal content
        content = damaged(SOUND[kind], chance)
        with open(memory, "wb") as file:
            file.write(content)
        READERS[kind](memory)

    assert unexpected_errors(20_000 if FULL else 500, attempt, lambda: content) == {}


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_random_flags_are_understood_or_refused():
    chance = random.Random("flags")
    words: list[str] = []

    def attempt() -> None:
        nonlocal words
        words = words_at_random(chance)
        trec_eval([*words, "/nowhere/qrels", "/nowhere/run"], io.StringIO())

    assert unexpected_errors(30_000 if FULL else 1500, attempt, lambda: words) == {}


def damage_something(folder: Path, chance: random.Random) -> list[str]:
    """Damage one of the files or the flags of a sound command; return its arguments."""
    judgments = chance.choice([*MEASURES, "qrels"])
    kind = chance.choice([judgments, "run", "zscores", "flags"])
    for name in (judgments, "run", "zscores"):
        content = damaged(SOUND[name], chance) if name == kind else SOUND[name]
        (folder / name).write_bytes(content)
    words = ["-c", "-q"] if chance.randrange(4) else []
    words += ["-J"] if chance.randrange(4) == 0 else []
    words += ["-Z", "zscores"] if kind == "zscores" else []
    words += ["-R", judgments, "-m", MEASURES[judgments]]
    words += words_at_random(chance) if kind == "flags" else []
    return [*words, judgments, "run"]


@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_damaged_command_is_answered_or_refused(folder):
    chance = random.Random("commands")
    words: list[str] = []

    def attempt() -> None:
        nonlocal words
        words = damage_something(folder, chance)
        trec_eval(words, io.StringIO())

    def example() -> list[object]:
        return [*words, *((folder / name).read_bytes() for name in words[-2:])]

    assert unexpected_errors(4000 if FULL else 200, attempt, example) == {}


def test_damaged_command_line_ends_with_0_or_2_and_shows_no_traceback(command, folder):
    chance = random.Random("command lines")
    for _ in range(400 if FULL else 20):
        words = damage_something(folder, chance)
        code, _, err = command(*words)
        assert code in (0, 2), words
        assert ("\nerror: " in f"\n{err}") == (code == 2), words
        assert "Traceback" not in err, words
