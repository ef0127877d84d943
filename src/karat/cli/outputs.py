"""The files of -o: tables and data in several formats, HTML reports and their cards."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.options import Scoring
from karat.format import file_size
from karat.report import page_files
from karat.report.options import ReportOptions
from karat.report.page_files import CARDS, PAGES

if TYPE_CHECKING:
    from karat.evaluation.scores import Scores
    from karat.evaluation.verdict import Verdict
    from karat.report.page.model import Page


@dataclass(frozen=True)
class Outputs:
    """The files of -o, separated into HTML pages and their cards, and others."""

    files: list[Path]
    pages: list[Path]
    """HTML pages, and cards: pictures of the main result."""

    @classmethod
    def of(cls, paths: Iterable[Path], check: Callable[[list[Path]], None]) -> Outputs:
        """Separate the paths; raise an error early if one of them cannot be written."""
        all_paths = list(paths)
        pages = [path for path in all_paths if path.suffix.lower() in (*PAGES, *CARDS)]
        outputs = cls([path for path in all_paths if path not in pages], pages)
        check(outputs.files)
        if pages:
            from karat.report.page import build

            build.check(pages)
        return outputs

    def write_pages(self, scores: Sequence[Scores], **options: Any) -> list[Path]:
        """Write the report of scores to each requested page or card, and return the paths."""
        if self.pages:
            from karat.report.page import build

            self._write(build.build_page(scores, **options))
        return self.pages

    def write_verdict(self, verdict: Verdict, options: ReportOptions) -> list[Path]:
        """Write the report of a verdict to each requested page or card, and return the paths."""
        if self.pages:
            from karat.report.page import build

            self._write(build.verdict_page(verdict, options))
        return self.pages

    def _write(self, page: Page) -> None:
        for path in self.pages:
            page_files.write(page, path)

    def write_failure(self, title: str, problem: str) -> None:
        """Write an error to each requested page, and remove older cards."""
        from karat.report.page import build

        for path in self.pages:
            if path.suffix.lower() in PAGES:
                build.write_failure(title, problem, path)
            elif path.is_file():
                path.unlink()


def print_written(paths: Iterable[Path]) -> None:
    """Print the paths of the written files, and the sizes of HTML pages."""
    for path in paths:
        is_page = path.suffix.lower() in PAGES and path.is_file()
        size = f" ({file_size(path.stat().st_size)})" if is_page else ""
        print(f"wrote {path}{size}", file=sys.stderr)


def report_options(
    settings: Scoring, title: str | None, texts: int, *, full_paths: bool
) -> ReportOptions:
    """Return the options of a report, with the command line that made it."""
    is_karat = Path(sys.argv[0]).stem in ("karat", "__main__")
    command = shlex.join(["karat", *sys.argv[1:]]) if is_karat else None
    config = settings.config
    is_used = config.conventions or config.gate or config.settings
    path = str(config.path) if is_used and config.path is not None else None
    return ReportOptions(texts, command, path, title, full_paths)
