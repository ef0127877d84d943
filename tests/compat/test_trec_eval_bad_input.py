"""Bad flags and bad files give `karat trec_eval` one clear message each, and nothing else."""

from __future__ import annotations

import contextlib
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
from karat.data import trec
from karat.data.files import Source
from karat.errors import KaratError
from support.effort import FULL

INPUTS = 1_000_000 if FULL else 10_000

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


def check_refused(ended: tuple[int, str, str], problem: str, hint: str) -> None:
    code, out, err = ended
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    message, _, advice = err.partition("\n  hint: ")
    assert problem in message
    assert hint in advice


@pytest.mark.parametrize("judgments", MEASURES)
def test_the_sound_files_are_evaluated(command, folder, judgments):
    flags = ["-q", "-R", judgments, "-m", MEASURES[judgments], "-Z", "zscores"]
    code, out, err = command(*flags, judgments, "run")
    assert (code, err) == (0, "")
    assert "num_q" in out


# Flags and parameters

FILES = "two are needed"
WHOLE = "is no whole number from 0 up"
FLAGS = [
    ("", f"0 files are named where {FILES}", "QRELS RUN"),
    ("qrels", f"1 files are named where {FILES}", "QRELS RUN"),
    ("qrels run run", f"3 files are named where {FILES}", "QRELS RUN"),
    ("-m map qrels", f"1 files are named where {FILES}", "a flag that takes a value needs one"),
    ("-x qrels run", "option -x not recognized", "-h lists the flags"),
    ("--nothing qrels run", "option --nothing not recognized", "-h lists the flags"),
    ("--Re prefs qrels run", "option --Re not a unique prefix", "-h lists the flags"),
    ("--nosummary=1 qrels run", "must not have an argument", "-h lists the flags"),
    ("qrels run -m", "option -m requires argument", "-h lists the flags"),
    ("-l x qrels run", f"-l: 'x' {WHOLE}", "-l 1"),
    ("-l -1 qrels run", f"-l: '-1' {WHOLE}", "-l 1"),
    ("-l 1.5 qrels run", f"-l: '1.5' {WHOLE}", "-l 1"),
    ("-M -1 qrels run", f"-M: '-1' {WHOLE}", "-M 1"),
    ("-M 9999999999999999999 qrels run", f"-M: '9999999999999999999' {WHOLE}", "-M 1"),
    ("-N ten qrels run", f"-N: 'ten' {WHOLE}", "-N 1"),
    ("-R xml qrels run", "-R: 'xml' is unknown", "qrels, prefs, qrels_prefs, qrels_jg"),
    ("-T xml qrels run", "-T: 'xml' is unknown", "trec_results"),
    ("-m nothing qrels run", "-m: trec_eval has no measure 'nothing'", "-h lists them"),
    ("-m maps qrels run", "-m: trec_eval has no measure 'maps'", "did you mean map"),
    ("-m P_5 qrels run", "-m: trec_eval has no measure 'P_5'", "P.5"),
    ("-m P. qrels run", "-m: 'P.' has no parameter behind the dot", "write P"),
    ("-m P.0 qrels run", "'0' is no cutoff", "P.5,10"),
    ("-m P.-5 qrels run", "'-5' is no cutoff", "P.5,10"),
    ("-m P.5,,7 qrels run", "'' is no cutoff", "P.5,10"),
    ("-m P.5.5 qrels run", "'5.5' is no cutoff", "P.5,10"),
    ("-m ndcg_cut.x qrels run", "'x' is no cutoff", "P.5,10"),
    ("-m P.5,7,5 qrels run", "a cutoff is given twice", "each once"),
    ("-m iprec_at_recall..1,0.1 qrels run", "a cutoff is given twice", "each once"),
    ("-m iprec_at_recall.x qrels run", "'x' is no number", "0.2"),
    ("-m iprec_at_recall.-.5 qrels run", "-0.5 is below 0", "iprec_at_recall"),
    ("-m Rprec_mult.1,,2 qrels run", "'' is no number", "0.2"),
    ("-m 11pt_avg.nan qrels run", "'nan' is no number", "0.2"),
    ("-m set_F.1,2 qrels run", "2 numbers where 1 are needed", "set_F.0.5"),
    ("-m utility.1,2,3 qrels run", "3 numbers where 4 are needed", "utility.2,-1,0,0"),
    ("-m utility.a,b,c,d qrels run", "'a' is no number", "0.2"),
    ("-m relstring.x qrels run", "'x' is no number", "0.2"),
    ("-m ndcg.1 qrels run", "'1' is no parameter here", "ndcg.1=3,2=9"),
    ("-m ndcg.p=1 qrels run", "'p=1' is no parameter here", "ndcg.1=3,2=9"),
    ("-m ndcg.-1=1 qrels run", "'-1=1' is no parameter here", "ndcg.1=3,2=9"),
    ("-m G.1=x qrels run", "'x' is no number", "0.2"),
    ("-m rbp.0.8 qrels run", "'0.8' is no parameter here", "rbp.p=0.8"),
    ("-m rbp.p=1 qrels run", "p is 1", "0 < p < 1"),
    ("-m rbp_resid.p=0 qrels run", "p is 0", "0 < p < 1"),
    ("-m rbp.p=x qrels run", "'x' is no number", "0.2"),
]


@pytest.mark.parametrize(("words", "problem", "hint"), FLAGS, ids=[words for words, *_ in FLAGS])
def test_bad_flags_are_refused(command, folder, words, problem, hint):
    check_refused(command(*words.split()), problem, hint)


@pytest.mark.parametrize("value", ["", " ", "P\x00", "é.1", ".", "..", "=", ",", "%s", "{}"])
def test_any_text_for_a_measure_is_refused(command, folder, value):
    code, out, err = command("-m", value, "qrels", "run")
    assert (code, out) == (2, "")
    assert err.startswith("error: -m: ")


def test_a_bad_flag_is_refused_before_files_are_looked_at(command, folder):
    check_refused(command("-m", "nothing", "no.qrels", "no.run"), "no measure 'nothing'", "")


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
    out = io.StringIO()
    with contextlib.suppress(KaratError):
        trec_eval(["-q", "-m", measure, "qrels", "run"], out)
        assert out.getvalue().startswith(measure.partition(".")[0])


# Files


def file_case(kind: str, content: bytes | None, problem: str, hint: str, place: str = ""):
    """Describe a bad file in the place of a sound one."""
    shown = "missing" if content is None else repr(content[:25])
    return pytest.param(kind, content, problem, hint, place, id=f"{kind} {shown}")


BAD_FILES = [
    *[
        case
        for kind in SOUND
        for case in [
            file_case(kind, None, "there is no such file", ""),
            file_case(kind, b"", "the file is empty", "the command that wrote it"),
            file_case(kind, b" \n\t\n", "the file is empty", "the command that wrote it"),
            file_case(kind, b"# q1\n#\n", "comments", ""),
            file_case(kind, b"q1 x\n", "2 fields", ""),
            file_case(kind, b"q1 1 1 1 1 1 1 1\n", "8 fields", ""),
            file_case(kind, SOUND[kind].replace(b"#3", b"\xff"), "UTF-8", "iconv", ":"),
            file_case(kind, SOUND[kind].decode().encode("utf-16"), "UTF-16", "iconv", ":1"),
            file_case(kind, b"\x1f\x8b\x08" + b"torn", "damaged or cut off", "compress"),
            file_case(kind, gzip.compress(SOUND[kind], mtime=0)[:-9], "cut off", "compress"),
        ]
    ],
    file_case("qrels", SOUND["run"], "6 fields", "swapped"),
    file_case("qrels", b"q1 0 d1 1.5\n", "1.5", "", ":1"),
    file_case("qrels", b"q1 0 d1 1\nq1 0 d2 x\n", "x", "", ":2"),
    file_case("qrels", b"q1 0 d1 99999999999999999999\n", "99999999999999999999", "", ":1"),
    file_case("qrels", b"q1 0 d1 1\nq1 0 d1 2\n", "topic 'q1' judges 'd1' twice", "drop one"),
    file_case("run", SOUND["qrels"], "4 fields", "swapped"),
    file_case("run", b"q1 Q0 d1 1 nan t\n", "nan", "", ":1"),
    file_case("run", b"q1 Q0 d1 1 1e999 t\n", "1e999", "", ":1"),
    file_case("run", b"q1 Q0 d1 1 high t\n", "high", "", ":1"),
    file_case("run", b"q1 Q0 d1 1 1 t\nq1 Q0 d1 2 1 t\n", "an item twice for topic 'q1'", "drop"),
    file_case("prefs", b"q1 u s d1 1\nq1 u d1 1\n", "4 fields where 5 are needed", "level", ":2"),
    file_case("prefs", b"q1 u s d1 x\n", "'x' is no number", "0.5", ":1: level"),
    file_case("prefs", b"q1 u s d1 1_0\n", "'1_0' is", "0.5", ":1: level"),
    file_case("prefs", b"q1 u s d1 inf\n", "'inf' is not finite", "0.5", ":1: level"),
    file_case("qrels_prefs", b"q1 u d1 nan\n", "'nan' is not finite", "0.5", ":1: grade"),
    file_case("qrels_jg", b"q1 u d1 1\nq1 u d1 1\n", "'u' of topic 'q1' judges 'd1' twice", "drop"),
    file_case("qrels_jg", b"q1 u d1 1.5\n", "'1.5' is no grade", "0, 1 or 2", ":1: grade"),
    file_case("qrels_jg", b"q1 u d1 1e300\n", "1e300", "", ":1: grade"),
    file_case("qrels_jg", b"q1 u d1 99999999999999999999\n", "99999999999999999999", "", ":1"),
    file_case("zscores", b"q map 1 1\nq map 1 2\n", "map of topic 'q' is given twice", "", ":2"),
    file_case("zscores", b"q map 1\n", "3 fields where 4 are needed", "deviation", ":1"),
    file_case("zscores", b"q map one 1\n", "'one' is no number", "0.5", ":1: mean"),
]


@pytest.mark.parametrize(("kind", "content", "problem", "hint", "place"), BAD_FILES)
def test_a_bad_file_is_refused_by_name(command, folder, kind, content, problem, hint, place):
    if content is None:
        Path(kind).unlink()
    else:
        Path(kind).write_bytes(content)
    judgments = kind if kind in MEASURES else "qrels"
    flags = ["-q", "-c", "-R", judgments, "-m", MEASURES[judgments]]
    flags += ["-Z", "zscores"] if kind == "zscores" else []
    ended = command(*flags, judgments, "run")
    check_refused(ended, problem, hint)
    assert ended[2].startswith(f"error: {kind}{place}")


@pytest.mark.parametrize("judgments", MEASURES)
def test_a_run_that_has_an_item_twice_is_refused_whatever_the_judgments(command, folder, judgments):
    Path("run").write_bytes(SOUND["run"] + b"q2 Q0 d3 1 9 t\n")
    ended = command("-R", judgments, "-m", MEASURES[judgments], judgments, "run")
    check_refused(ended, "run: item: the run has an item twice for topic 'q2'", "--duplicates")


CONTRADICTIONS = {
    "two levels in one subgroup": (b"q u s a 1\nq u s a 2\n", "gives an item two levels"),
    "relevant and not": (b"q u s a 1\nq u s b 0\nq u t a 0\n", "calls 'a' relevant and irrelevant"),
    "each over the other": (
        b"q u s a 2\nq u s b 1\nq u t b 2\nq u t a 1\n",
        "prefers two items to each other",
    ),
    "a circle of three": (
        b"q u s a 2\nq u s b 1\nq u t b 2\nq u t c 1\nq u v c 2\nq u v a 1\n",
        "prefers two items to each other",
    ),
}


@pytest.mark.parametrize(("content", "problem"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_preferences_of_one_judge_that_contradict_each_other_are_refused(
    command, folder, content, problem
):
    Path("prefs").write_bytes(content)
    ended = command("-R", "prefs", "-c", "-m", "all_prefs", "prefs", "run")
    check_refused(ended, f"judgment group 'u' of topic 'q' {problem}", "into different groups")


def test_preferences_of_two_judges_may_contradict_each_other(command, folder):
    Path("prefs").write_bytes(b"q1 u s d1 2\nq1 u s d2 1\nq1 v s d1 1\nq1 v s d2 2\n")
    code, out, _ = command("-R", "prefs", "-m", "prefs_pair", "prefs", "run")
    assert (code, out) == (0, "prefs_pair            \tall\t0.5000\n")


def test_a_folder_in_the_place_of_a_file_is_refused(command, folder):
    check_refused(command("qrels", "."), "this is a directory", "name one of its files")


# Whatever happens to files and flags, they are used or refused

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
    """Return flags that make sense, none, or little."""
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
        judge(topic, preferences, ["d2", "d3", "x", "d1"])


def read_run(path: str) -> None:
    source = Source(path)
    if trec.read_run(source).results.height:
        trec.last_tag(source)


READERS: dict[str, Callable[[str], object]] = {
    "qrels": lambda path: trec.read_gold(Source(path)).judgments,
    "run": read_run,
    "prefs": lambda path: judge_all(path, from_qrels=False),
    "qrels_prefs": lambda path: judge_all(path, from_qrels=True),
    "qrels_jg": read_groups,
    "zscores": read_zscores,
}


@pytest.fixture
def memory(tmp_path) -> str:
    """A path for one file that is written very often: in memory where that can be had."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield str(tmp_path / "damaged")
        return
    path = shared / f"karat-{os.getpid()}"
    yield str(path)
    path.unlink(missing_ok=True)


def surprises(count: int, attempt: Callable[[], object], shown: Callable[[], object]) -> dict:
    """Try so often; return the shortest example of each kind of failure that is not our own."""
    found: dict[str, object] = {}
    for _ in range(count):
        try:
            attempt()
        except KaratError as error:
            assert str(error)  # noqa: PT017
        except (Exception, pl.exceptions.PanicException) as error:
            example = shown()
            name = f"{type(error).__name__}: {error}"[:60]
            found[name] = min(found.get(name, example), example, key=len)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(kind, memory):
    chance = random.Random(kind)
    content = b""

    def attempt() -> None:
        nonlocal content
        content = damaged(SOUND[kind], chance)
        with open(memory, "wb") as file:
            file.write(content)
        READERS[kind](memory)

    assert surprises(INPUTS // 7, attempt, lambda: content) == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_flags_of_any_kind_are_understood_or_refused_and_nothing_else():
    chance = random.Random("flags")
    words: list[str] = []

    def attempt() -> None:
        nonlocal words
        words = words_at_random(chance)
        trec_eval([*words, "/nowhere/qrels", "/nowhere/run"], io.StringIO())

    assert surprises(INPUTS // 7, attempt, lambda: words) == {}


def damage_something(folder: Path, chance: random.Random) -> list[str]:
    """Damage one of the files or the flags of a command that was sound; return its words."""
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::karat.errors.KaratWarning")
def test_a_damaged_command_is_answered_or_refused_and_nothing_else(folder):
    chance = random.Random("commands")
    words: list[str] = []

    def attempt() -> None:
        nonlocal words
        words = damage_something(folder, chance)
        trec_eval(words, io.StringIO())

    def shown() -> list[object]:
        return [*words, *((folder / name).read_bytes() for name in words[-2:])]

    assert surprises(INPUTS // 50, attempt, shown) == {}


@pytest.mark.slow
def test_a_damaged_command_line_ends_with_0_or_2_and_shows_no_traceback(command, folder):
    chance = random.Random("command lines")
    for _ in range(INPUTS // 100):
        words = damage_something(folder, chance)
        code, _, err = command(*words)
        assert code in (0, 2), words
        assert ("\nerror: " in f"\n{err}") == (code == 2), words
        assert "Traceback" not in err, words
