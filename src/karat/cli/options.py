"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from karat.conventions import CHOICES, HELP
from karat.errors import InputError

if TYPE_CHECKING:
    from karat.config import Config as Settings
    from karat.data.columns import Columns
    from karat.data.files import Unopened


def _convention(name: str) -> typer.models.OptionInfo:
    flag = f"--{name.replace('_', '-')}"
    words = CHOICES[name]
    option: typer.models.OptionInfo = typer.Option(
        flag, metavar="|".join(words), help=f"{HELP[name].capitalize()}.", show_default=words[0]
    )
    return option


Gold = Annotated[
    str, typer.Argument(metavar="GOLD", help="What should be found: qrels, JSONL, CSV, …")
]
MeasureNames = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--measure",
        metavar="NAME",
        help="Compute these measures (names separated by commas or spaces).",
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="FIELD",
        help="Also for each value of a query's field; repeat for combinations.",
    ),
]
Preset = Annotated[str | None, typer.Option(metavar="NAME", help="Measures and conventions.")]
Level = Annotated[
    str, typer.Option(metavar="item|doc", help="Score items, or the documents they are from.")
]
Chunks = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|RUN=FILE",
        help="Read offsets and texts of all chunks from a table; RUN=FILE, repeated, for one table "
        "per run.",
    ),
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
FailOnError = Annotated[
    float,
    typer.Option(
        metavar="SHARE", help="Stop with exit code 2 if more than this share of the queries failed."
    ),
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
ColumnNames = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="OURS=THEIRS",
        help="Map a column or key of the files, such as query=question or evidence=quote; repeat.",
    ),
]
QueryTexts = Annotated[
    str | None,
    typer.Option(
        "--queries", metavar="FILE", help="Read the texts of the queries from this file, by id."
    ),
]
Config = Annotated[
    str | None,
    typer.Option("-c", "--config", metavar="FILE", help="Settings, if not the nearest karat.toml."),
]
Missing = Annotated[str | None, _convention("missing")]
Unknown = Annotated[str | None, _convention("unknown")]
NoGold = Annotated[str | None, _convention("no_gold")]
Duplicates = Annotated[str | None, _convention("duplicates")]
Unjudged = Annotated[str | None, _convention("unjudged")]


@dataclass(frozen=True)
class Scoring:
    """How runs are read and scored, as the flags say it."""

    gold_format: str | None
    run_format: str | None
    config: Settings
    """What karat.toml or [tool.karat] says; of conventions, the flags go first."""
    columns: Columns
    """What the files call karat's columns and keys."""
    queries: str | None
    """The file with the texts of the queries."""
    keywords: dict[str, Any]
    """What `Evaluator` and `explain` take under these names."""
    flags: list[str] = field(default_factory=list)
    """The flags as they were given, for another command that takes them."""

    def gold(self, path: str) -> Unopened:
        """Return gold to be opened in the format that was said."""
        from karat.data.files import Unopened

        return Unopened(path, self.gold_format, self.columns, self.queries)

    def run(self, path: str) -> Unopened:
        """Return a run to be opened in the format that was said."""
        from karat.data.files import Unopened

        return Unopened(path, self.run_format, self.columns)


def scoring(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all flags that say how runs are scored; it takes them as one `Scoring`.

    Typer reads flags from a signature, so the flags of `_scoring` take the place of `how` in it.
    """
    own = inspect.signature(command, eval_str=True)
    shared = inspect.signature(_scoring, eval_str=True).parameters
    kept = [parameter for name, parameter in own.parameters.items() if name != "how"]
    merged = own.replace(parameters=[*kept, *shared.values()])

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        given = merged.bind(*arguments, **options)
        given.apply_defaults()
        told = {name: given.arguments.pop(name) for name in shared}
        flags = [
            word
            for name, parameter in shared.items()
            if told[name] != parameter.default
            for word in _flag(parameter, told[name])
        ]
        command(how=replace(_scoring(**told), flags=flags), **given.arguments)

    run.__signature__ = merged  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in merged.parameters.values()}
    return run


def _flag(parameter: inspect.Parameter, value: Any) -> list[str]:
    """Return the words by which a flag is given."""
    (option,) = parameter.annotation.__metadata__
    # Within Annotated, the place of Typer's default holds the first name.
    names = [name for name in (option.default, *(option.param_decls or ())) if name is not ...]
    name = names[-1] if names else f"--{parameter.name.replace('_', '-')}"
    if value is True:
        return [name]
    return [
        word
        for each in (value if isinstance(value, list) else [value])
        for word in (name, str(each))
    ]


def _chunks(given: list[str], columns: Columns) -> Any:
    """Return one table of chunks for all runs, or one for each run by name."""
    if not given:
        return None
    if len(given) == 1 and ("=" not in given[0] or Path(given[0]).exists()):
        return table_file(given[0], columns)
    tables: dict[str, Any] = {}
    for word in given:
        run, equals, path = word.partition("=")
        if not equals or run in tables:
            raise InputError(
                f"{word!r} does not name a table for one more run",
                field="--chunks",
                hint="give one FILE for all runs, or RUN=FILE once for each run",
            )
        tables[run] = table_file(path, columns)
    return tables


def repeated(**given: Sequence[str] | str | None) -> list[str]:
    """Return options as words, each as often as it was given."""
    return [
        word
        for name, values in given.items()
        for value in ([values] if isinstance(values, str) else values or ())
        for word in (f"--{name}", value)
    ]


def _scoring(
    level: Level = "item",
    chunks: Chunks = None,
    corpus: Corpus = None,
    top_k: TopK = None,
    score_threshold: ScoreThreshold = None,
    fail_on_error: FailOnError = 0.05,
    fuzzy_threshold: FuzzyThreshold = 0.7,
    matcher: Matcher = "ratio",
    direction: Direction = "evidence",
    autojunk: Autojunk = False,
    casefold: Casefold = False,
    nfkc: Nfkc = False,
    zero_width: ZeroWidth = False,
    gold_format: GoldFormat = None,
    run_format: RunFormat = None,
    columns: ColumnNames = None,
    queries: QueryTexts = None,
    config: Config = None,
    missing: Missing = None,
    unknown: Unknown = None,
    no_gold: NoGold = None,
    duplicates: Duplicates = None,
    unjudged: Unjudged = None,
) -> Scoring:
    from karat.config import Config as Settings
    from karat.data.columns import Columns
    from karat.match.texts import Matching

    mapping = Columns.of(columns or ())
    words = {
        "missing": missing,
        "unknown": unknown,
        "no_gold": no_gold,
        "duplicates": duplicates,
        "unjudged": unjudged,
    }
    given = {name: word for name, word in words.items() if word}
    settings = Settings.find() if config is None else Settings.read(config)
    told = {name: word for name, word in settings.conventions.items() if name not in given}
    if told:
        said = ", ".join(f"{name}={word}" for name, word in told.items())
        print(f"conventions of {settings.path}: {said}", file=sys.stderr)
    keywords: dict[str, Any] = {
        "conventions": told | given,
        "level": level,
        "chunks": _chunks(chunks or [], mapping),
        "corpus": table_file(corpus, mapping),
        "matching": Matching(
            matcher, fuzzy_threshold, autojunk, direction, casefold, nfkc, zero_width
        ),
        "top_k": top_k,
        "score_threshold": score_threshold,
        "fail_on_error": fail_on_error,
    }
    return Scoring(gold_format, run_format, settings, mapping, queries, keywords)


def table_file(path: str | None, columns: Columns) -> str | Unopened | None:
    """Return a file of documents or chunks, to be opened with the columns that were named."""
    if path is None or not columns:
        return path
    from karat.data.files import Unopened

    return Unopened(path, columns=columns)
