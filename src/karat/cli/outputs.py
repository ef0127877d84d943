"""The files of -o: tables and data in several formats, and HTML reports."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.options import Scoring
from karat.report.options import ReportOptions

if TYPE_CHECKING:
    from karat.evaluation.scores import Scores
    from karat.evaluation.verdict import Verdict

_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class Outputs:
    """The files of -o, separated into HTML pages and others."""

    files: list[Path]
    pages: list[Path]

    @classmethod
    def of(cls, paths: Iterable[Path], check: Callable[[list[Path]], None]) -> Outputs:
        """Separate the paths; raise an error early if one of them cannot be written."""
        all_paths = list(paths)
        pages = [path for path in all_paths if path.suffix.lower() in _PAGES]
        outputs = cls([path for path in all_paths if path not in pages], pages)
        check(outputs.files)
        if pages:
            from karat.report.page import build

            build.check(pages)
        return outputs

    def write_pages(self, scores: Sequence[Scores], **options: Any) -> list[Path]:
        """Write the HTML report of scores to each requested .html file, and return the paths."""
        if self.pages:
            from karat.report.page import build

            page = build.build_page(scores, **options)
            for path in self.pages:
                build.write(page, path)
        return self.pages

    def write_verdict(self, verdict: Verdict, options: ReportOptions) -> None:
        """Write the HTML report of a verdict to each requested .html file."""
        if self.pages:
            from karat.report.page import build

            page = build.verdict_page(verdict, options)
            for path in self.pages:
                build.write(page, path)

    def write_failure(self, title: str, problem: str) -> None:
        """Write an error to each requested .html file."""
        if self.pages:
            from karat.report.page import build

            for path in self.pages:
                build.write_failure(title, problem, path)


def report_options(
    settings: Scoring, title: str | None, texts: int, *, full_paths: bool
) -> ReportOptions:
    """Return the options of a report, with the command line that made it."""
    is_karat = Path(sys.argv[0]).stem in ("karat", "__main__")
    command = shlex.join(["karat", *sys.argv[1:]]) if is_karat else None
    config = settings.config
    is_used = config.conventions or config.gate
    path = str(config.path) if is_used and config.path is not None else None
    return ReportOptions(texts, command, path, title, full_paths)
