"""`trec_eval` from flags to printed lines."""

from __future__ import annotations

import warnings
from typing import IO

from karat.checks import did_you_mean
from karat.compat.trec_eval.catalogue import BY_NAME, ENTRIES, NICKNAMES, Asked
from karat.compat.trec_eval.flags import Request, parse_flags
from karat.compat.trec_eval.guide import guide
from karat.compat.trec_eval.inputs import read_zscores
from karat.compat.trec_eval.opening import open_run, open_topics
from karat.compat.trec_eval.printing import print_table
from karat.data.trec import last_tag
from karat.errors import InputError, KaratWarning, MeasureError
from karat.version import __version__


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
