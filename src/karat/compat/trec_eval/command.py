"""`trec_eval` from flags to printed lines."""

from __future__ import annotations

import warnings
from typing import IO

from karat.compat.trec_eval.catalogue import BY_NAME, ENTRIES, NICKNAMES, Asked
from karat.compat.trec_eval.flags import Flags, parse_flags
from karat.compat.trec_eval.guide import guide
from karat.compat.trec_eval.inputs import last_tag, read_zscores
from karat.compat.trec_eval.opening import open_run, open_topics
from karat.compat.trec_eval.printing import print_table
from karat.errors import InputError, KaratWarning, MeasureError
from karat.version import __version__


def trec_eval(arguments: list[str], out: IO[str]) -> None:
    """Do what trec_eval 10.0 does with these arguments."""
    flags = parse_flags(arguments)
    if flags.version:
        out.write(f"trec_eval 10.0 as karat {__version__} does it\n")
        return
    asked = _asked(flags)
    if flags.help:
        out.write(guide([one.entry for one in asked] if flags.measures else []))
        return
    zscores = None if flags.zscores is None else read_zscores(flags.zscores)
    source, run = open_run(flags.files[1])
    topics, lacking = open_topics(flags, run)
    summary = flags.summary and lacking is None
    print_table(out, topics, asked, flags, zscores, last_tag(source), summary=summary)
    if lacking is not None:
        raise InputError(
            f"topic {lacking!r} of the qrels is not in the run",
            path=flags.files[1],
            hint="trec_eval 10.0 ends here too; -c counts such topics as nothing retrieved",
        )


def _asked(flags: Flags) -> list[Asked]:
    """Return the measures in trec_eval's order; of two -m for one, the first says how."""
    parameters: dict[str, str] = {}
    wanted: set[str] = set()
    for name, given in flags.measures or [("official", None)]:
        if given is not None:
            parameters.setdefault(name, given)
        if name in NICKNAMES:
            wanted.update(NICKNAMES[name].split())
        elif name in BY_NAME:
            wanted.add(name)
        else:
            raise MeasureError(
                f"trec_eval has no measure {name!r}",
                field="-m",
                hint=f"known: {', '.join([*NICKNAMES, *BY_NAME])}",
            )
    asked = []
    for entry in ENTRIES:
        if entry.name not in wanted:
            continue
        if entry.judgments and flags.judgments not in entry.judgments and not flags.help:
            raise MeasureError(
                f"{entry.name} cannot be computed from {flags.judgments}",
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
        asked.append(Asked(entry, given))
    return asked
