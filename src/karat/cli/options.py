"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from karat.conventions import CHOICES, HELP


def _convention(name: str) -> typer.models.OptionInfo:
    flag = f"--{name.replace('_', '-')}"
    words = CHOICES[name]
    option: typer.models.OptionInfo = typer.Option(
        flag, metavar="|".join(words), help=f"{HELP[name].capitalize()}.", show_default=words[0]
    )
    return option


Level = Annotated[
    str, typer.Option(metavar="item|doc", help="Score items, or the documents they are from.")
]
Chunks = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The table of all chunks: where they stand, what they say."),
]
Corpus = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|FILE", help="The documents: places are checked against them, and converted."
    ),
]
TopK = Annotated[
    int | None, typer.Option(metavar="N", help="Score only the first N items of each list.")
]
ScoreThreshold = Annotated[
    float | None, typer.Option(metavar="X", help="Leave out items that score below X, first.")
]
FuzzyThreshold = Annotated[
    float, typer.Option(metavar="SHARE", help="How alike a chunk must be to cover an evidence.")
]
Matcher = Annotated[
    str, typer.Option(metavar="ratio|partial|tokens", help="What alike means; see the docs.")
]
Direction = Annotated[
    str,
    typer.Option(
        metavar="evidence|either", help="Whether a chunk within an evidence covers it too."
    ),
]
Autojunk = Annotated[
    bool, typer.Option("--autojunk", help="Compare as Python's SequenceMatcher does by default.")
]
Casefold = Annotated[bool, typer.Option("--casefold", help="Compare texts with case folded.")]
Nfkc = Annotated[bool, typer.Option("--nfkc", help="Compare texts in normal form KC.")]
ZeroWidth = Annotated[
    bool, typer.Option("--zero-width", help="Compare texts without zero-width characters.")
]
GoldFormat = Annotated[
    str | None, typer.Option(metavar="NAME", help="The format of gold, if it is not told.")
]
RunFormat = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="The format of the runs, likewise.")
]
Missing = Annotated[str | None, _convention("missing")]
Unknown = Annotated[str | None, _convention("unknown")]
NoGold = Annotated[str | None, _convention("no_gold")]
Duplicates = Annotated[str | None, _convention("duplicates")]
Unjudged = Annotated[str | None, _convention("unjudged")]


def conventions_of(
    missing: str | None,
    unknown: str | None,
    no_gold: str | None,
    duplicates: str | None,
    unjudged: str | None,
) -> dict[str, str]:
    """Return the conventions that were said."""
    words = {
        "missing": missing,
        "unknown": unknown,
        "no_gold": no_gold,
        "duplicates": duplicates,
        "unjudged": unjudged,
    }
    return {name: word for name, word in words.items() if word}
