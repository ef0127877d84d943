"""Where a command writes: into files by their ending, and into pages, which show far more."""

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
    """What was asked for with -o."""

    files: list[Path]
    pages: list[Path]

    @classmethod
    def of(cls, paths: Iterable[Path], check: Callable[[list[Path]], None]) -> Outputs:
        """Sort paths, and refuse those that cannot be written, before anything is computed."""
        given = list(paths)
        pages = [path for path in given if path.suffix.lower() in _PAGES]
        wanted = cls([path for path in given if path not in pages], pages)
        check(wanted.files)
        if pages:
            from karat.report.page import build

            build.check(pages)
        return wanted

    def write_pages(self, scores: Sequence[Scores], **about: Any) -> list[Path]:
        """Make a page once, where one is asked for, and write it; return where it is."""
        if self.pages:
            from karat.report.page import build

            page = build.build_page(scores, **about)
            for path in self.pages:
                build.write(page, path)
        return self.pages

    def write_verdict(self, verdict: Verdict, options: ReportOptions) -> None:
        """Make a page of a verdict once, where one is asked for, and write it."""
        if self.pages:
            from karat.report.page import build

            page = build.verdict_page(verdict, options)
            for path in self.pages:
                build.write(page, path)

    def write_failure(self, title: str, problem: str) -> None:
        """Write into every page why there is no answer."""
        if self.pages:
            from karat.report.page import build

            for path in self.pages:
                build.write_failure(title, problem, path)


def report_options(how: Scoring, texts: int) -> ReportOptions:
    """Return what a page says of its own making."""
    ours = Path(sys.argv[0]).stem in ("karat", "__main__")
    command = shlex.join(["karat", *sys.argv[1:]]) if ours else None
    config = how.config.path if how.config.conventions or how.config.gate else None
    return ReportOptions(texts, command, None if config is None else str(config))
