"""The command line of trec_eval."""

from __future__ import annotations

import getopt
import re
from dataclasses import dataclass, field

from karat import checks
from karat.errors import InputError, MeasureError

SHORT = "hvqm:cl:nJN:M:R:T:oZ:"
LONG = {
    "help": "-h",
    "version": "-v",
    "query_eval_wanted": "-q",
    "measure=": "-m",
    "complete_rel_info_wanted": "-c",
    "level_for_rel=": "-l",
    "nosummary": "-n",
    "Judged_docs_only": "-J",
    "Number_docs_in_coll=": "-N",
    "Max_retrieved_per_topic=": "-M",
    "Rel_info_format=": "-R",
    "Results_format=": "-T",
    "Zscore=": "-Z",
}
JUDGMENT_FORMATS = ("qrels", "prefs", "qrels_prefs", "qrels_jg")


@dataclass
class TrecEvalOptions:
    """The parsed command line."""

    files: list[str] = field(default_factory=list)
    measures: list[tuple[str, str | None]] = field(default_factory=list)
    """Name and parameters of each -m, in order."""
    help: bool = False
    version: bool = False
    each_query: bool = False
    complete: bool = False
    summary: bool = True
    judged_only: bool = False
    level: int = 1
    documents: int = 0
    most_retrieved: int | None = None
    judgments: str = "qrels"
    zscores: str | None = None


def parse_flags(arguments: list[str]) -> TrecEvalOptions:
    """Parse the command line."""
    try:
        options, files = getopt.gnu_getopt(arguments, SHORT, list(LONG))
    except getopt.GetoptError as error:
        raise InputError(str(error), hint="`karat trec_eval -h` lists the flags") from error
    parsed = TrecEvalOptions(files=files)
    names = {f"--{name.rstrip('=')}": short for name, short in LONG.items()}
    for option, value in options:
        _apply(parsed, names.get(option, option), value)
    if len(files) != 2 and not (parsed.help or parsed.version):
        raise InputError(
            f"expected two files, got {len(files)}",
            hint="write `karat trec_eval [flags] QRELS RUN`, and check that every flag that needs "
            "a value has one",
        )
    return parsed


def _apply(parsed: TrecEvalOptions, flag: str, value: str) -> None:
    switches = {
        "-h": ("help", True),
        "-v": ("version", True),
        "-q": ("each_query", True),
        "-c": ("complete", True),
        "-n": ("summary", False),
        "-J": ("judged_only", True),
    }
    if flag in switches:
        setattr(parsed, *switches[flag])
    elif flag == "-m":
        parsed.measures.append(_split_measure(value))
    elif flag == "-l":
        parsed.level = _parse_integer(flag, value)
    elif flag == "-N":
        parsed.documents = _parse_integer(flag, value)
    elif flag == "-M":
        parsed.most_retrieved = _parse_integer(flag, value)
    elif flag == "-R":
        parsed.judgments = checks.one_of(value, flag, JUDGMENT_FORMATS)
    elif flag == "-T":
        checks.one_of(value, flag, ["trec_results"])
    elif flag == "-Z":
        parsed.zscores = value


def _split_measure(value: str) -> tuple[str, str | None]:
    name, dot, parameters = value.partition(".")
    if not name:
        raise MeasureError(
            f"{value!r} is not the name of a measure",
            field="-m",
            hint="write a name such as map or P.5,10; karat trec_eval -h lists the measures",
        )
    if dot and not parameters:
        raise InputError(
            f"{value!r} has no parameter after the dot", field="-m", hint=f"write {name}"
        )
    return name, parameters if dot else None


def _parse_integer(flag: str, value: str) -> int:
    number = int(value) if re.fullmatch(r"\s*\+?[0-9]{1,18}", value) else value
    return checks.integer(number, flag, least=0, hint=f"write {flag} 1, for example")
