"""trec_eval's command line."""

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
class Request:
    """What the command line asks for."""

    files: list[str] = field(default_factory=list)
    measures: list[tuple[str, str | None]] = field(default_factory=list)
    """Name and parameters of each -m, in the order given."""
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


def parse_flags(arguments: list[str]) -> Request:
    """Read the command line."""
    try:
        options, files = getopt.gnu_getopt(arguments, SHORT, list(LONG))
    except getopt.GetoptError as error:
        raise InputError(str(error), hint="karat trec_eval -h lists the flags") from error
    request = Request(files=files)
    names = {f"--{name.rstrip('=')}": short for name, short in LONG.items()}
    for option, value in options:
        _apply(request, names.get(option, option), value)
    if len(files) != 2 and not (request.help or request.version):
        raise InputError(
            f"{len(files)} files are named where two are needed",
            hint="karat trec_eval [flags] QRELS RUN; a flag that takes a value needs one",
        )
    return request


def _apply(request: Request, option: str, value: str) -> None:
    switches = {
        "-h": ("help", True),
        "-v": ("version", True),
        "-q": ("each_query", True),
        "-c": ("complete", True),
        "-n": ("summary", False),
        "-J": ("judged_only", True),
    }
    if option in switches:
        setattr(request, *switches[option])
    elif option == "-m":
        name, dot, parameters = value.partition(".")
        if not name:
            raise MeasureError(
                f"{value!r} names no measure",
                field="-m",
                hint="write a name such as map or P.5,10; karat trec_eval -h lists the measures",
            )
        if dot and not parameters:
            raise InputError(
                f"{value!r} has no parameter behind the dot", field="-m", hint=f"write {name}"
            )
        request.measures.append((name, parameters if dot else None))
    elif option == "-l":
        request.level = _whole(option, value)
    elif option == "-N":
        request.documents = _whole(option, value)
    elif option == "-M":
        request.most_retrieved = _whole(option, value)
    elif option == "-R":
        request.judgments = checks.one_of(value, option, JUDGMENT_FORMATS)
    elif option == "-T":
        checks.one_of(value, option, ["trec_results"])
    elif option == "-Z":
        request.zscores = value


def _whole(option: str, value: str) -> int:
    number = int(value) if re.fullmatch(r"\s*\+?[0-9]{1,18}", value) else value
    return checks.integer(number, option, least=0, hint=f"such as {option} 1")
