"""`karat trec_eval`: what trec_eval 10.0 prints, byte for byte."""

from __future__ import annotations

import io
import sys

import typer


def trec_eval_command(context: typer.Context) -> None:
    """Print what trec_eval 10.0 prints; -h lists its flags."""
    from karat.compat.trec_eval import trec_eval

    if isinstance(sys.stdout, io.TextIOWrapper):  # ids come out as the bytes that went in
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    trec_eval(context.args, sys.stdout)
