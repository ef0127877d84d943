"""`trec_eval` from flags to printed lines."""

from __future__ import annotations

import textwrap
import warnings
from typing import IO

from karat.checks import did_you_mean
from karat.compat.trec_eval.catalogue import BY_NAME, ENTRIES, NICKNAMES, Asked, Entry
from karat.compat.trec_eval.flags import Request, parse_flags
from karat.compat.trec_eval.inputs import read_zscores
from karat.compat.trec_eval.load import open_run, open_topics
from karat.compat.trec_eval.output import print_table
from karat.data.formats.trec import last_tag
from karat.errors import InputError, KaratWarning, MeasureError
from karat.measures import REGISTRY
from karat.version import __version__

FLAGS = """\
karat trec_eval [flags] QRELS RUN: what trec_eval 10.0 prints, byte for byte.
RUN may be - for standard input.

  -q              also print each topic
  -n              do not print the summary
  -m NAME[.PARAM,…]
                  add a measure, with its parameters behind a dot; repeat it for more
  -c              average over all topics of QRELS; one that RUN lacks counts as
                  nothing found
  -l LEVEL        the lowest grade that counts as relevant (1)
  -M COUNT        look at the first COUNT items of a topic only
  -J              drop items that are not judged
  -N COUNT        how many documents there are, for utility
  -R FORMAT       what QRELS holds: qrels, prefs, qrels_prefs or qrels_jg
  -Z FILE         print z-scores: lines of FILE are topic, measure, mean, deviation
  -T FORMAT       what RUN holds: trec_results, and nothing else
  -o              passed over, as trec_eval does
  -h              print this, with what -m names explained
  -v              print the version

Measures: -m official (the default), all_trec, set, prefs, all_prefs or qrels_jg,
or by name:
"""


def guide(entries: list[Entry]) -> str:
    """Return the help text."""
    names = textwrap.wrap(
        " ".join(entry.name for entry in ENTRIES), 78, initial_indent="  ", subsequent_indent="  "
    )
    return "\n".join([FLAGS + "\n".join(names) + "\n", *map(_about, entries)])


def _about(entry: Entry) -> str:
    lines = []
    if entry.about in REGISTRY:
        declaration = REGISTRY[entry.about]
        lines += [
            f"{declaration.title}: {declaration.formula}.",
            f"{declaration.edges}.",
            f"karat explain {entry.about} says more.",
        ]
    else:
        lines.append(entry.about)
    if isinstance(entry.default, tuple) and entry.default:
        shown = ",".join(f"{value:g}" for value in entry.default)
        lines.append(f"Without parameters: {entry.name}.{shown}")
    wrapped = [
        textwrap.fill(line, 80, initial_indent="  ", subsequent_indent="    ") for line in lines
    ]
    return "\n".join([entry.name, *wrapped]) + "\n"


def trec_eval(arguments: list[str], out: IO[str]) -> None:
    """Do what trec_eval 10.0 does with these arguments."""
    request = parse_flags(arguments)
    if request.version:
        out.write(f"trec_eval 10.0 as karat {__version__} does it\n")
        return
    asked = _asked(request)
    if request.help:
        out.write(guide([one.entry for one in asked] if request.measures else []))
        return
    zscores = None if request.zscores is None else read_zscores(request.zscores)
    source, run = open_run(request.files[1])
    topics, lacking = open_topics(request, run)
    summary = request.summary and lacking is None
    print_table(out, topics, asked, request, zscores, last_tag(source), summary=summary)
    if lacking is not None:
        raise InputError(
            f"topic {lacking!r} of the qrels is not in the run",
            path=request.files[1],
            hint="trec_eval 10.0 ends here too; -c counts such topics as nothing retrieved",
        )


def _asked(request: Request) -> list[Asked]:
    """Return the measures in trec_eval's order; of two -m for one, the first says how."""
    parameters: dict[str, str] = {}
    wanted: set[str] = set()
    for name, given in request.measures or [("official", None)]:
        if given is not None:
            parameters.setdefault(name, given)
        if name in NICKNAMES:
            wanted.update(NICKNAMES[name].split())
        elif name in BY_NAME:
            wanted.add(name)
        else:
            raise _unknown(name)
    asked = []
    for entry in ENTRIES:
        if entry.name not in wanted:
            continue
        if entry.judgments and request.judgments not in entry.judgments and not request.help:
            raise MeasureError(
                f"{entry.name} cannot be computed from {request.judgments}",
                field="-m",
                hint=f"-R {entry.judgments[0]} gives what it needs",
            )
        given = parameters.get(entry.name)
        if given is not None and entry.read is None:
            warnings.warn(
                KaratWarning(f"{entry.name} takes no parameters; {given} is passed over"),
                stacklevel=2,
            )
            given = None
        try:
            asked.append(Asked(entry, given))
        except MeasureError as error:
            raise MeasureError(
                f"{entry.name}.{given}: {error.problem}", field="-m", hint=error.hint
            ) from None
    return asked


def _unknown(name: str) -> MeasureError:
    base, _, number = name.rpartition("_")
    if base in BY_NAME:
        hint = f"parameters stand behind a dot: {base}.{number}"
    else:
        similar = did_you_mean(name, [*NICKNAMES, *BY_NAME], count=3, show=str)
        hint = similar or "karat trec_eval -h lists them"
    return MeasureError(f"trec_eval has no measure {name!r}", field="-m", hint=hint)
