"""The pages of the documentation, which are part of the package: `karat docs` shows them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from karat.checks import did_you_mean
from karat.errors import InputError, counted
from karat.report.document_model import Cell, Column, Document, Headline, Section, Table

ALL_TOPICS = "run `karat docs` for all topics, or `karat docs --search WORD`"
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#:]+)\.md(?:#[^)\s]*)?\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_FILE = re.compile(r'^```(\w+) title="([^"\n]+)"$', re.MULTILINE)
_MARKUP = re.compile(r"\[([^\]]*)\]\([^)]*\)|[`*]")
_EXAMPLES = re.compile(r"\bfaq/(?:support-faq\.jsonl|bm25\.run|hybrid\.jsonl)")
_ABOUT_EXAMPLES = (
    "> The files in `faq/` are examples, which `karat demo` writes. Copy them to the folder in "
    "which you run the commands of this page: `cp -r karat-demo/faq .`"
)


@dataclass(frozen=True)
class Topic:
    """One page."""

    name: str
    """The path without its extension, such as `gates` or `handbook/ndcg`."""
    text: str
    """The page as Markdown."""

    @property
    def title(self) -> str:
        """The first heading."""
        found = _TITLE.search(self.text)
        return self.name if found is None else _MARKUP.sub(r"\1", found[1])

    @property
    def folder(self) -> str:
        """The part of the manual that the page belongs to; empty for the main part."""
        return self.name.rpartition("/")[0] or (self.name if self.is_index else "")

    @property
    def is_index(self) -> bool:
        """Whether the page is the first one of its folder."""
        return any(other.startswith(f"{self.name}/") for other in topic_names())

    @property
    def text_for_terminal(self) -> str:
        """The page without what a terminal cannot show.

        Links to other pages become the commands that show them, a picture becomes its description,
        and the name of a file is above its content.
        """
        folder = posixpath.dirname(self.name) if not self.is_index else self.name

        def command(link: re.Match[str]) -> str:
            name = _name(posixpath.normpath(posixpath.join(folder, link[2])))
            return f"{link[1]} (`karat docs {name}`)" if name in topic_names() else link[1]

        text = _PICTURE.sub(r"*Picture: \1.*", self.text)
        return _LINK.sub(command, _FILE.sub(r"`\2`:\n\n```\1", text))

    def lines_with(self, word: str) -> list[str]:
        """Return the lines that contain a word, in any case."""
        return [line for line in self.text.splitlines() if word.casefold() in line.casefold()]


def topics() -> list[Topic]:
    """Return all pages, in the order of their names; the main part comes first."""
    made = [Topic(name, _page(name)) for name in topic_names()]
    return sorted(made, key=lambda topic: (topic.folder != "", topic.folder, topic.name))


def topic(name: str) -> Topic:
    """Return a page by its name, or by the last part of its name."""
    wanted = name.removesuffix(".md").strip("/").casefold().replace(" ", "-")
    matches = [one for one in topic_names() if one == wanted]
    matches = matches or [one for one in topic_names() if one.rpartition("/")[2] == wanted]
    if len(matches) == 1:
        return Topic(matches[0], _page(matches[0]))
    problem = f"{name!r} is not a topic"
    hint: str | None = ALL_TOPICS
    if matches:
        problem = f"{name!r} is the name of {counted(len(matches), 'topic')}"
        hint = f"use one of {', '.join(matches)}"
    elif similar := did_you_mean(
        wanted, [*topic_names(), *(one.rpartition("/")[2] for one in topic_names())]
    ):
        hint = f"{similar} {ALL_TOPICS[0].upper()}{ALL_TOPICS[1:]}"
    raise InputError(problem, field="TOPIC", hint=hint)


def topics_document() -> Document:
    """Return a table of all pages."""
    columns = [Column("topic", "left"), Column("title", "left", is_flexible=True)]
    parts: dict[str, list[Topic]] = {}
    for one in topics():
        parts.setdefault(one.folder, []).append(one)
    sections = [
        Section([Table(columns, [[Cell(one.name), Cell(one.title)] for one in pages], n_labels=1)])
        for pages in parts.values()
    ]
    return Document("Documentation", Headline("karat docs TOPIC shows a page"), sections)


def search_document(word: str) -> Document:
    """Return a table of the pages that contain a word, those with most lines first."""
    counts = [(len(one.lines_with(word)), one) for one in topics()]
    found = sorted(((n, one) for n, one in counts if n), key=lambda pair: (-pair[0], pair[1].name))
    if not found:
        raise InputError(f"no page contains {word!r}", field="--search", hint=ALL_TOPICS)
    columns = [Column("topic", "left"), Column("title", "left", is_flexible=True), Column("lines")]
    rows = [[Cell(one.name), Cell(one.title), Cell(f"{n:,}")] for n, one in found]
    headline = f"{counted(len(found), 'page')} with {word!r}"
    return Document("Documentation", Headline(headline), [Section([Table(columns, rows)])])


@cache
def topic_names() -> tuple[str, ...]:
    """Return the names of all pages, sorted."""
    return tuple(sorted({_name(path.removesuffix(".md")) for path in _paths()}))


@cache
def _paths() -> tuple[str, ...]:
    """Return the paths of all pages, relative to the folder of the documentation."""
    return tuple(_walk(files("karat").joinpath("docs"), ""))


def _walk(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".md"):
            yield f"{prefix}{entry.name}"


def _name(path: str) -> str:
    """Return the name of the page at a path without extension: `api/index` is called `api`."""
    return path.removesuffix("/index")


def _page(name: str) -> str:
    """Return a page; if its examples need files, it states where these are."""
    path = f"{name}.md" if f"{name}.md" in _paths() else f"{name}/index.md"
    text = files("karat").joinpath("docs", *path.split("/")).read_text(encoding="utf-8")
    if _EXAMPLES.search(text) is None or "karat-demo/faq" in text:
        return text
    title, rest = text.split("\n", 1)
    return f"{title}\n\n{_ABOUT_EXAMPLES}\n{rest}"
