"""`karat docs`: show the pages of the documentation in the terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from karat.cli.options import JSON
from karat.cli.parameters import Argument, Option, command

if TYPE_CHECKING:
    from karat.manual import Topic

_LONGEST_LINE = 100


@command(
    "docs",
    Argument(
        "topic",
        metavar="TOPIC",
        text="The page to show, such as gates or handbook/ndcg.  [default: list all pages]",
        required=False,
    ),
    Option("--search", panel="Output", metavar="WORD", help="List the pages that contain a word."),
    JSON,
)
def docs_command(topic: str | None, search: str | None, json: bool) -> None:
    """Show a page of the documentation, or list all pages.

    A page is formatted in a terminal; elsewhere it is printed as Markdown.
    """
    from karat import manual
    from karat.errors import InputError
    from karat.format import to_json
    from karat.report.renderers import terminal

    if topic is not None and search is not None:
        raise InputError("TOPIC and --search cannot be combined", hint="use one of the two")
    if topic is not None:
        page = manual.topic(topic)
        if json:
            print(to_json({"topic": page.name, "title": page.title, "markdown": page.text}))
        else:
            _show(page)
    elif json:
        found = [one for one in manual.topics() if search is None or one.lines_with(search)]
        listed = [{"topic": one.name, "title": one.title} for one in found]
        print(to_json({"topics": listed}))
    elif search is not None:
        terminal.show(manual.search_document(search))
    else:
        terminal.show(manual.topics_document())


def _show(page: Topic) -> None:
    if not sys.stdout.isatty():
        print(page.text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    from karat.report.renderers.terminal import terminal_width

    console = Console(
        width=min(terminal_width(), _LONGEST_LINE),
        no_color="NO_COLOR" in os.environ or None,
        theme=Theme({"markdown.code": "cyan"}),  # Rich's own has a black background
    )
    console.print(Markdown(page.text_for_terminal, hyperlinks=False, code_theme="ansi_dark"))
