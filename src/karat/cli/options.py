"""Options that several commands share, each declared once, and what the scoring options mean."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli.parameters import Argument, Option
from karat.config import REPORT_TEXTS
from karat.conventions import CHOICES, HELP
from karat.errors import InputError

if TYPE_CHECKING:
    from karat.config import Config
    from karat.data.columns import Columns
    from karat.data.data_file import PathSource

FILE = click.Path(path_type=Path)
COUNT = click.IntRange(min=0)

GOLD = Argument("gold", metavar="GOLD", text="What should be found: qrels, JSONL, CSV, …")
RUN = Argument("run", metavar="RUN", text="What was found: a TREC run, JSONL, CSV, …")
RUNS = Argument(
    "runs", metavar="RUN", nargs=-1, required=True, text="What was found: TREC runs, JSONL, CSV, …"
)

MEASURES = Option(
    "measures",
    "-m",
    "--measure",
    panel="Measures",
    metavar="NAME",
    multiple=True,
    help="Compute these measures (names separated by commas or spaces).",
)
PRESET = Option(
    "--preset",
    panel="Measures",
    metavar="NAME",
    help="Use the measures and conventions of a preset.",
)
BY = Option(
    "--by",
    panel="Measures",
    metavar="FIELD",
    multiple=True,
    help="Show results for each value of this field of the queries. Repeat for combinations.",
)

LEVEL = Option(
    "--level",
    panel="Scoring",
    metavar="item|doc",
    default="item",
    help="Score the retrieved items, or the documents that they come from.",
)
TOP_K = Option(
    "--top-k",
    panel="Scoring",
    metavar="N",
    type=int,
    help="Score only the first N items of each list.",
)
SCORE_THRESHOLD = Option(
    "--score-threshold",
    panel="Scoring",
    metavar="X",
    type=float,
    help="Remove items with a score below X before anything else.",
)
FAIL_ON_ERROR = Option(
    "--fail-on-error",
    panel="Scoring",
    metavar="SHARE",
    type=float,
    default=0.05,
    help="Stop with exit code 2 if more than this share of the queries failed.",
)
SCORING_CONFIG = Option(
    "-c",
    "--config",
    panel="Scoring",
    metavar="FILE",
    help="Read the settings from this file instead of the nearest karat.toml.",
)

CHUNKS = Option(
    "--chunks",
    panel="Input",
    metavar="FILE|RUN=FILE",
    multiple=True,
    help="Read offsets and texts of all chunks from a table. "
    "Repeat RUN=FILE to use one table per run.",
)
CORPUS = Option(
    "--corpus",
    panel="Input",
    metavar="DIR|FILE",
    help="Read the documents, to check spans against them and to convert offsets.",
)
GOLD_FORMAT = Option(
    "--gold-format",
    panel="Input",
    metavar="NAME",
    help="Read gold in this format instead of detecting it.",
)
RUN_FORMAT = Option(
    "run_format",
    "--format",
    panel="Input",
    metavar="NAME",
    help="Read the runs in this format instead of detecting it.",
)
COLUMNS = Option(
    "columns",
    "--column",
    panel="Input",
    metavar="OURS=THEIRS",
    multiple=True,
    help="Map a column or key of the files, such as query=question or evidence=quote. "
    "Repeat for more.",
)
QUERIES = Option(
    "--queries",
    panel="Input",
    metavar="FILE",
    help="Read the texts of the queries from this file, by id.",
)

MATCHING = [
    Option(
        "--fuzzy-threshold",
        panel="Text matching",
        metavar="SHARE",
        type=float,
        default=0.7,
        help="Set how similar a chunk must be to cover an evidence text.",
    ),
    Option(
        "--matcher",
        panel="Text matching",
        metavar="ratio|partial|tokens",
        default="ratio",
        help="Choose how similarity is computed.",
    ),
    Option(
        "--direction",
        panel="Text matching",
        metavar="evidence|either",
        default="evidence",
        help="Choose whether a chunk that lies within an evidence text covers it too (either).",
    ),
    Option(
        "--autojunk",
        panel="Text matching",
        is_flag=True,
        help="Compare texts as Python's SequenceMatcher does by default.",
    ),
    Option(
        "--casefold",
        panel="Text matching",
        is_flag=True,
        help="Ignore upper and lower case.",
    ),
    Option(
        "--nfkc",
        panel="Text matching",
        is_flag=True,
        help="Normalize texts to Unicode form NFKC.",
    ),
    Option(
        "--zero-width",
        panel="Text matching",
        is_flag=True,
        help="Ignore zero-width characters.",
    ),
]

CONVENTIONS = [
    Option(
        f"--{name.replace('_', '-')}",
        panel="Corner cases",
        metavar="|".join(choices),
        show_default=choices[0],
        help=f"Choose how to treat {HELP[name]}.",
    )
    for name, choices in CHOICES.items()
]

SCORING = [
    LEVEL,
    TOP_K,
    SCORE_THRESHOLD,
    FAIL_ON_ERROR,
    SCORING_CONFIG,
    CHUNKS,
    CORPUS,
    GOLD_FORMAT,
    RUN_FORMAT,
    COLUMNS,
    QUERIES,
    *MATCHING,
    *CONVENTIONS,
]
"""How runs are read and scored: the options that `Scoring.of` takes."""

REPORT_QUERIES = Option(
    "report_texts",
    "--report-texts",
    panel="Output",
    metavar="N",
    type=COUNT,
    default=REPORT_TEXTS,
    help="Keep texts and calculations of N queries in .html files.",
)
JSON = Option("--json", panel="Output", is_flag=True, help="Print JSON instead of text.")


def output_files(formats: str) -> Option:
    """Return -o for a command that writes these formats."""
    return Option(
        "-o",
        "--output",
        panel="Output",
        metavar="FILE",
        type=FILE,
        multiple=True,
        help=f"Write the results as {formats}. Repeat for more files.",
    )


@dataclass(frozen=True)
class Scoring:
    """How runs are read and scored, as the flags say it."""

    gold_format: str | None
    run_format: str | None
    config: Config
    """The settings of karat.toml or [tool.karat]; flags take precedence over its conventions."""
    columns: Columns
    """What the files call karat's columns and keys."""
    queries: str | None
    """The file with the texts of the queries."""
    keywords: dict[str, Any]
    """What `Evaluator` and `explain` take under these names."""
    flags: list[str]
    """The flags as they were given, for another command that takes them."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> Scoring:
        """Take the values of the options in `SCORING`, by their names."""
        from karat.config import Config
        from karat.data.columns import Columns
        from karat.match.text import Matching

        columns = Columns.of(values["columns"])
        given = {name: values[name] for name in CHOICES if values[name]}
        path = values["config"]
        config = Config.find() if path is None else Config.read(path)
        settings = {name: word for name, word in config.conventions.items() if name not in given}
        if settings:
            shown = ", ".join(f"{name}={word}" for name, word in settings.items())
            print(f"conventions of {config.path}: {shown}", file=sys.stderr)
        keywords = {
            "conventions": settings | given,
            "level": values["level"],
            "chunks": _chunks(values["chunks"], columns),
            "corpus": table_file(values["corpus"], columns),
            "matching": Matching(
                values["matcher"],
                values["fuzzy_threshold"],
                values["autojunk"],
                values["direction"],
                values["casefold"],
                values["nfkc"],
                values["zero_width"],
            ),
            "top_k": values["top_k"],
            "score_threshold": values["score_threshold"],
            "fail_on_error": values["fail_on_error"],
        }
        return cls(
            gold_format=values["gold_format"],
            run_format=values["run_format"],
            config=config,
            columns=columns,
            queries=values["queries"],
            keywords=keywords,
            flags=[word for option in SCORING for word in option.words(values[str(option.name)])],
        )

    def gold(self, path: str) -> PathSource:
        """Return gold to be opened in the given format."""
        from karat.data.data_file import PathSource

        return PathSource(path, self.gold_format, self.columns, self.queries)

    def run(self, path: str) -> PathSource:
        """Return a run to be opened in the given format."""
        from karat.data.data_file import PathSource

        return PathSource(path, self.run_format, self.columns)


def _chunks(given: tuple[str, ...], columns: Columns) -> Any:
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


def table_file(path: str | None, columns: Columns) -> str | PathSource | None:
    """Return a file of documents or chunks, to be opened with the given names of columns."""
    if path is None or not columns:
        return path
    from karat.data.data_file import PathSource

    return PathSource(path, columns=columns)
