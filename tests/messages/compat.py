"""trec_eval's command line and files, and the functions of pytrec_eval."""

import io

from karat.compat import pytrec_eval
from karat.compat.trec_eval import trec_eval
from messages.cases import Section, written

SECTION = Section("compat")
case = SECTION.case

FILES = {
    "qrels": "q1 0 a 1\n",
    "run": "q1 Q0 a 1 0.9 tag\n",
    "prefs": "q1 u1 s1 a 1\n",
    "qrels_jg": "q1 u1 a 1\n",
    "zscores": "q1 map 0.5 0.25\n",
}


def flags(name: str, words: str, **how) -> None:
    """Add a case of a command line; further arguments are files and their content."""

    def run():
        for path, content in (FILES | how).items():
            written(path, content)
        trec_eval(words.split(), io.StringIO())

    case(name, run)


# Flags

flags("one file is named", "qrels")
flags("a flag is unknown", "-x qrels run")
flags("a flag has no value", "qrels run -m")
flags("a level is not a number", "-l x qrels run")
flags("a format of judgments is unknown", "-R xml qrels run")
flags("a measure is unknown", "-m nothing qrels run")
flags("a measure is misspelled", "-m maps qrels run")
flags("a measure is written with an underscore", "-m P_5 qrels run")
flags("a measure has a dot and no parameter", "-m P. qrels run")
flags("a measure has no name", "-m . qrels run")
flags("a measure needs preferences", "-m prefs_simp qrels run")
flags("a measure takes no parameters", "-m map.5 qrels run")

# Parameters

flags("a cutoff is 0", "-m P.0 qrels run")
flags("a point of recall is negative", "-m iprec_at_recall.-.5 qrels run")
flags("a cutoff is given twice", "-m P.5,7,5 qrels run")
flags("there are too few numbers", "-m utility.1,2,3 qrels run")
flags("a weight is negative", "-m set_F.-1 qrels run")
flags("a parameter is not a number", "-m iprec_at_recall.x qrels run")
flags("a parameter is too large", "-m set_F.1e300 qrels run")
flags("a gain has no grade", "-m ndcg.p=1 qrels run")
flags("a parameter is not the persistence", "-m rbp.0.8 qrels run")
flags("a persistence is 1", "-m rbp.p=1 qrels run")

# Files

flags("a topic is not in the run", "qrels run", qrels="q1 0 a 1\nq2 0 a 1\n")
flags("a topic judges an item twice", "qrels run", qrels="q1 0 a 1\nq1 0 a 2\n")
flags("a run has an item twice", "qrels run", run=FILES["run"] * 2)
JG = "-R qrels_jg -m qrels_jg qrels_jg run"
flags("a grade of a group is not whole", JG, qrels_jg="q1 u1 a 0.5\n")
flags("a grade of a group is not a number", JG, qrels_jg="q1 u1 a x\n")
flags("a group judges an item twice", JG, qrels_jg="q1 u1 a 1\nq1 u1 a 1\n")
PREFS = "-R prefs -m prefs_simp prefs run"
flags("a line of preferences has too few fields", PREFS, prefs="q1 u1 s1 a\n")
flags("a line of preferences is not UTF-8", PREFS, prefs=b"q1 u1 s1 \xe9 1\n")
flags("preferences hold only comments", PREFS, prefs="# nothing\n")
flags("a level of a preference is not finite", PREFS, prefs="q1 u1 s1 a inf\n")
flags("a level of a preference is not a number", PREFS, prefs="q1 u1 s1 a 1_0\n")
flags("a run with preferences has an item twice", PREFS, run=FILES["run"] * 2)
flags("a group gives an item two levels", PREFS, prefs="q1 u s a 1\nq1 u s a 2\n")
flags(
    "a group calls an item relevant and irrelevant",
    PREFS,
    prefs="q1 u s1 a 1\nq1 u s1 b 0\nq1 u s2 a 0\nq1 u s2 b 0\n",
)
flags(
    "a group prefers two items to each other",
    PREFS,
    prefs="q1 u s1 a 2\nq1 u s1 b 1\nq1 u s2 a 1\nq1 u s2 b 2\n",
)
flags(
    "a group gives an item two levels in one of two subgroups",
    PREFS,
    prefs="q1 u s1 a 2\nq1 u s1 a 1\nq1 u s2 c 1\nq1 u s2 b 2\n",
)
flags("a mean is given twice", "-Z zscores qrels run", zscores=FILES["zscores"] * 2)

# pytrec_eval

QRELS = {"q1": {"a": 1}}


def evaluator(name: str, *given, **how) -> None:
    case(name, lambda: pytrec_eval.RelevanceEvaluator(*given, **how))


evaluator("a level of relevance is 0", QRELS, {"map"}, relevance_level=0)
evaluator("a version of trec_eval is unknown", QRELS, {"map"}, trec_eval_version=8)
evaluator("a query id is not text", {1: {"a": 1}}, {"map"})
evaluator("a name of a measure is not supported", QRELS, {"nothing"})
evaluator("a name with a cutoff is not supported", QRELS, {"nothing_5"})
evaluator("a name stands for measures that are not supported", QRELS, {"qrels_jg"})
case("a line of qrels has too few fields", lambda: pytrec_eval.parse_qrel(["q1 0 a"]))
case("a grade is not a number", lambda: pytrec_eval.parse_qrel(["q1 0 a x"]))
case("an item is judged twice", lambda: pytrec_eval.parse_qrel(["q1 0 a 1", "q1 0 a 1"]))
