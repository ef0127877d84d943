"""The options that several commands share, and `Scoring`, the values of the scoring options."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli.parameters import Argument, Option, is_project_setting
from karat.cli.project import CONFIG, project_config
from karat.config import REPORT_TEXTS
from karat.conventions import CHOICES, HELP
from karat.errors import InputError
from karat.format import DIGITS

if TYPE_CHECKING:
    from karat.config import Config
    from karat.data.columns import Columns
    from karat.data.data_file import PathSource

FILE = click.Path(path_type=Path)
COUNT = click.IntRange(min=0)

GOLD = Argument(
    "gold",
    metavar="GOLD",
    text="What should be found (judgments, spans or evidence texts): qrels, JSONL, CSV, …",
    settings=("gold",),
)
RUN = Argument(
    "run", metavar="RUN", text="What was found: a TREC run, JSONL, CSV, …", settings=("runs",)
)
RUNS = Argument(
    "runs",
    metavar="RUN",
    nargs=-1,
    required=True,
    text="What was found: TREC runs, JSONL, CSV, …",
    settings=("runs",),
)

MEASURES = Option(
    "measures",
    "-m",
    "--measure",
    panel="Measures",
    metavar="NAME",
    multiple=True,
    show_default="depends on gold",
    help="Compute these measures, such as nDCG@10. Separate names by commas or spaces.",
)
PRESET = Option(
    "--preset",
    panel="Measures",
    metavar="NAME",
    help="Use the measures and conventions of a preset, such as coverage.",
)
BY = Option(
    "--by",
    panel="Measures",
    metavar="FIELD",
    multiple=True,
    help="Also show results for each value of this query field. Repeat to group by combinations of "
    "fields.",
)
CLUSTER = Option(
    "--cluster",
    panel="Statistics",
    setting="cluster",
    metavar="FIELD",
    help="Treat queries with the same value of this query field, such as user_id, as dependent: "
    "intervals and tests then use one unit per value.",
)
ENGINE = Option(
    "--engine",
    panel="Engine",
    setting="engine",
    metavar="local|spark",
    default="local",
    help="Score runs in this process, or score Parquet files and tables (table:NAME) with Apache "
    "Spark.",
)
MASTER = Option(
    "--master",
    panel="Engine",
    setting="master",
    metavar="URL",
    show_default="local",
    help="Connect to this Spark master, such as spark://host:7077 or local[4].",
)

LEVEL = Option(
    "--level",
    panel="Scoring",
    metavar="item|doc",
    default="item",
    help="Score the retrieved items, or the documents that they come from (doc).",
)
TOP_K = Option(
    "--top-k",
    panel="Scoring",
    metavar="N",
    type=int,
    show_default="all",
    help="Score only the first N items of each list.",
)
SCORE_THRESHOLD = Option(
    "--score-threshold",
    panel="Scoring",
    metavar="X",
    type=float,
    help="Remove items with a score below X, before --top-k applies.",
)
FAIL_ON_ERROR = Option(
    "--fail-on-error",
    panel="Scoring",
    metavar="SHARE",
    type=float,
    default=0.05,
    help="Stop with exit code 2 if more than this share of the queries failed.",
)
CHUNKS = Option(
    "--chunks",
    panel="Input",
    metavar="FILE|RUN=FILE",
    is_path=True,
    separator="=",
    multiple=True,
    help="Read chunk offsets and texts from this table, for runs that contain only item ids. "
    "Repeat RUN=FILE to use one table per run.",
)
CORPUS = Option(
    "--corpus",
    panel="Input",
    metavar="DIR|FILE",
    is_path=True,
    help="Read the documents, in order to check spans against them and to convert span offsets.",
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
    separator="=",
    multiple=True,
    help="Read the karat field OURS from the column or key named THEIRS in the input files, for "
    "example query=question. Repeat for more.",
)
QUERIES = Option(
    "--queries",
    panel="Input",
    metavar="FILE",
    is_path=True,
    help="Read the texts of the queries from this file; rows are matched by query id.",
)

MATCHING = [
    Option(
        "--fuzzy-threshold",
        panel="Text matching",
        metavar="SHARE",
        type=float,
        default=0.7,
        help="Set the minimum similarity at which a chunk covers an evidence text.",
    ),
    Option(
        "--matcher",
        panel="Text matching",
        metavar="ratio|partial|tokens",
        default="ratio",
        help="Choose what is compared: the whole texts (ratio), the evidence text and the most "
        "similar part of the chunk (partial), or the words of both texts (tokens).",
    ),
    Option(
        "--direction",
        panel="Text matching",
        metavar="evidence|either",
        default="evidence",
        help="Count an evidence text as covered if the chunk contains the evidence text "
        "(evidence), or if either text contains the other (either).",
    ),
    Option(
        "--autojunk",
        panel="Text matching",
        is_flag=True,
        help="Use the autojunk heuristic of Python's SequenceMatcher, which misses many matches.",
    ),
    Option(
        "--casefold",
        panel="Text matching",
        is_flag=True,
        help="Ignore upper and lower case when texts are compared.",
    ),
    Option(
        "--nfkc",
        panel="Text matching",
        is_flag=True,
        help="Normalize texts to Unicode NFKC before they are compared.",
    ),
    Option(
        "--zero-width",
        panel="Text matching",
        is_flag=True,
        help="Ignore zero-width characters when texts are compared.",
    ),
]

_TREATMENTS = {
    "missing": "score it as if nothing was retrieved (zero), exclude it (skip), or stop with an "
    "error (error)",
    "unknown": "ignore it (ignore), or stop with an error (error)",
    "no_gold": "follow the rule of each measure family (family), score it 0 (zero) or 1 (one), "
    "score it 1 for recall measures and 0 for others (recall), or exclude it (skip)",
    "duplicates": "keep its rank but do not count it again (first), keep its rank and count it "
    "again in P, Hits and evidence.P (count), remove it so that later items move up (set), or stop "
    "with an error (error)",
    "unjudged": "treat it as irrelevant (irrelevant), or remove it from the list (skip)",
}
CONVENTIONS = [
    Option(
        f"--{name.replace('_', '-')}",
        panel="Corner cases",
        metavar="|".join(choices),
        show_default=choices[0],
        help=f"Choose how to treat {HELP[name]}: {_TREATMENTS[name]}.",
    )
    for name, choices in CHOICES.items()
]

MEMORY = Option(
    "--memory",
    panel="Input",
    metavar="SIZE",
    show_default="a quarter of the memory of the machine or container",
    help="Set the approximate memory limit, for example 2G; at least 256M. Runs and gold that need "
    "more are read in batches of whole queries, with the same result.",
)

SCORING = [
    LEVEL,
    TOP_K,
    SCORE_THRESHOLD,
    FAIL_ON_ERROR,
    CONFIG,
    CHUNKS,
    CORPUS,
    GOLD_FORMAT,
    RUN_FORMAT,
    COLUMNS,
    QUERIES,
    *MATCHING,
    *CONVENTIONS,
]
"""The options for reading and scoring runs; `Scoring.of` takes their values."""

REPORT = (
    Option(
        "--title",
        panel="Output",
        metavar="TEXT",
        show_default="gold, number of runs and queries",
        help="Set the title of an .html report or a picture.",
    ),
    Option(
        "report_texts",
        "--report-texts",
        panel="Output",
        metavar="N",
        type=COUNT,
        default=REPORT_TEXTS,
        help="Include the texts and calculations of N queries in .html reports.",
    ),
    Option(
        "--full-paths",
        panel="Output",
        is_flag=True,
        help="Show full paths and the whole command line in the report; by default only base "
        "names.",
    ),
)
"""The options of HTML reports; `cli.outputs.report_options` takes their values."""
JSON = Option("--json", panel="Output", is_flag=True, help="Print JSON instead of text.")


def output_files(formats: str) -> Option:
    """Return the option -o for a command that writes these formats."""
    return Option(
        "-o",
        "--output",
        panel="Output",
        metavar="FILE",
        type=FILE,
        multiple=True,
        help=f"Write the results as {formats}, or the main result as a .png or .svg picture. "
        "Repeat for more files.",
    )


WIDE = Option(
    "--wide", panel="Output", is_flag=True, help="Show all columns, even if they do not fit."
)
TEX = (
    Option(
        "--digits",
        panel="Output",
        metavar="N",
        type=click.IntRange(0, 15),
        default=DIGITS,
        show_default=True,
        help="Show values with N decimals.",
    ),
    Option("--caption", panel="Output", metavar="TEXT", help="Set the caption of a .tex table."),
    Option("--label", panel="Output", metavar="NAME", help="Set the label of a .tex table."),
)


@dataclass(frozen=True)
class Scoring:
    """The values of the options for reading and scoring runs."""

    gold_format: str | None
    run_format: str | None
    config: Config
    """The settings of karat.toml or [tool.karat]. Flags override its conventions."""
    columns: Columns
    """The names of columns and keys in the files."""
    queries: str | None
    """The file with the texts of the queries."""
    keywords: dict[str, Any]
    """Keyword arguments for `Evaluator` and `explain`."""
    flags: list[str]
    """The flags as command-line arguments, for a suggested command."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> Scoring:
        """Create from the values of the options in `SCORING`, by their names."""
        from karat.data.columns import Columns
        from karat.match.text import Matching

        columns = Columns.of(values["columns"])
        flags = {name: values[name] for name in CHOICES if values[name]}
        config = project_config()
        from_config = {name: word for name, word in config.conventions.items() if name not in flags}
        if from_config:
            text = ", ".join(f"{name}={word}" for name, word in from_config.items())
            print(f"using the conventions in {config.path}: {text}", file=sys.stderr)
        keywords = {
            "conventions": from_config | flags,
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
        if "memory" in values:
            keywords["memory"] = values["memory"]
        return cls(
            gold_format=values["gold_format"],
            run_format=values["run_format"],
            config=config,
            columns=columns,
            queries=values["queries"],
            keywords=keywords,
            flags=[
                word for option in SCORING for word in option.words(values.get(str(option.name)))
            ],
        )

    def gold(self, path: str) -> PathSource:
        """Return the source of gold with its format and columns."""
        from karat.data.data_file import PathSource

        return PathSource(path, self.gold_format, self.columns, self.queries)

    def run(self, path: str) -> PathSource:
        """Return the source of a run with its format and columns."""
        from karat.data.data_file import PathSource

        return PathSource(path, self.run_format, self.columns)


def start_engine(engine: str, master: str | None) -> None:
    """Start Spark with a master, if one is named."""
    if master is None:
        return
    if engine != "spark":
        if is_project_setting("master"):  # --engine local takes precedence over the project
            return
        raise InputError(
            "a master is used by Spark only", field="--master", hint="add --engine spark"
        )
    from karat.engines.spark_session import session

    session(master)


def _chunks(values: tuple[str, ...], columns: Columns) -> Any:
    """Return one table of chunks for all runs, or {run name: table}."""
    if not values:
        return None
    if len(values) == 1 and ("=" not in values[0] or Path(values[0]).exists()):
        return table_file(values[0], columns)
    tables: dict[str, Any] = {}
    for value in values:
        run, equals, path = value.partition("=")
        if not equals or run in tables:
            problem = f"run {run!r} has two tables" if equals else f"{value!r} does not name a run"
            raise InputError(
                problem,
                field="--chunks",
                hint="pass one FILE for all runs, or RUN=FILE once for each run",
            )
        tables[run] = table_file(path, columns)
    return tables


def table_file(path: str | None, columns: Columns) -> str | PathSource | None:
    """Return a file of documents or chunks with the names of its columns."""
    if path is None or not columns:
        return path
    from karat.data.data_file import PathSource

    return PathSource(path, columns=columns)
