"""Write docs/api/ from the signatures and docstrings of the public names.

A test checks that the pages are up to date; KARAT_UPDATE=1 (`make messages`) rewrites them.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import karat

FOLDER = Path(__file__).parents[1] / "docs" / "api"


@dataclass(frozen=True)
class Page:
    """A page: its title, what it is about, and its names of karat or all names of a module."""

    title: str
    about: str
    names: tuple[str, ...] = ()
    module: str = "karat"


PAGES = {
    "evaluate": Page(
        "Score and explain",
        "Score runs against gold, and show how a value is calculated.",
        ("evaluate", "Scores", "Evaluator", "explain", "Explanation", "Conventions", "Matching"),
    ),
    "compare": Page(
        "Compare and gate",
        "Compare runs with significance tests, check thresholds, and show how measures changed.",
        ("compare", "Comparison", "gate", "Verdict", "history", "History"),
    ),
    "data": Page(
        "Gold, runs and documents",
        "Read, make, change and write the data that is scored.",
        ("Gold", "Run", "Corpus", "Chunks"),
    ),
    "retrieve": Page(
        "Run a retriever",
        "Send queries to a retriever, and record stages and costs inside of it.",
        ("retrieve", "stage", "record_call", "carry"),
    ),
    "retrievers": Page(
        "Built-in retrievers and search engines",
        "Retrievers that need no code of yours.",
        module="karat.live.retrievers",
    ),
    "gold": Page(
        "Check and convert gold",
        "Find mistakes in gold, locate evidence texts, and convert spans to judgments.",
        ("validate", "Validation", "Finding", "locate", "Location", "to_judgments"),
    ),
    "chunk": Page(
        "Chunkers",
        "Split documents into chunks with exact offsets.",
        module="karat.chunk",
    ),
    "fuse": Page(
        "Fusion",
        "Combine several runs into one.",
        ("fuse", "tune_fusion", "FusionTuning"),
    ),
    "measures": Page(
        "Measures",
        "Declare a measure, or score without summaries and reports.",
        ("measure", "Plan", "score", "ScoreTable"),
    ),
    "functions": Page(
        "One query",
        "Functions for one ranked list, without tables.",
        (
            "precision_at_k",
            "recall_at_k",
            "hit_rate",
            "mrr",
            "average_precision",
            "ndcg_at_k",
            "merge_overlapping_spans",
            "calculate_overlap",
        ),
    ),
    "testing": Page(
        "Tests",
        "Gates inside pytest and other test runners.",
        module="karat.testing",
    ),
    "errors": Page(
        "Errors and warnings",
        "What karat raises on purpose. Everything derives from `KaratError`.",
        (
            "KaratError",
            "InputError",
            "MeasureError",
            "ConventionError",
            "RetrieverError",
            "KaratWarning",
        ),
    ),
}
REST = "functions"
"""The page of public names of karat that no page lists."""

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Return the text of each page, with an index of all names first."""
    names = {key: list(names_on(key)) for key in PAGES}
    page_of = {name.split(".")[-1]: key for key, found in names.items() for name in found}
    texts = {FOLDER / "index.md": index(names)}
    for key, page in PAGES.items():
        parts = [f"# {page.title}\n\n{page.about}\n"]
        parts += [entry(name, page_of, key) for name in names[key]]
        texts[FOLDER / f"{key}.md"] = "\n".join(parts)
    return texts


def names_on(key: str) -> Iterator[str]:
    """Yield the full names on a page."""
    page = PAGES[key]
    if page.module != "karat":
        yield from (f"{page.module}.{name}" for name in import_module(page.module).__all__)
        return
    yield from (f"karat.{name}" for name in page.names)
    if key == REST:
        listed = {name for other in PAGES.values() for name in other.names}
        rest = [name for name in karat.__all__ if name not in listed and name != "__version__"]
        yield from (f"karat.{name}" for name in rest)


def index(names: dict[str, list[str]]) -> str:
    """Return the page that lists all names."""
    lines = [
        "# API",
        "",
        "Every public name, with each parameter. These pages are generated from the docstrings by",
        "`tools/build_api_pages.py`. [Python](../python.md) is an introduction with examples.",
    ]
    for key, page in PAGES.items():
        lines += ["", f"## {page.title}", "", "| name | purpose |", "| --- | --- |"]
        for name in names[key]:
            purpose = summary(value_of(name)).replace("|", "\\|")
            lines.append(f"| [`{name}`]({key}.md#{anchor(name)}) | {purpose} |")
    return "\n".join(lines) + "\n"


def entry(full_name: str, page_of: dict[str, str], key: str) -> str:
    """Return the documentation of one name, and of its methods and properties."""
    value = value_of(full_name)
    parts = [f"## {full_name}\n", code(signature(full_name, value)), described(value, page_of, key)]
    if inspect.isclass(value):
        for name, member in members(value):
            parts.append(f"### {value.__name__}.{name}\n")
            if callable(member) or isinstance(member, classmethod | staticmethod):
                parts.append(code(signature(f"{value.__name__}.{name}", getattr(value, name))))
            parts.append(described(member, page_of, key))
    return "\n".join(parts)


def value_of(full_name: str) -> Any:
    """Return what a full name refers to."""
    module, _, name = full_name.rpartition(".")
    return getattr(import_module(module), name)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the documented public methods and properties that karat defines, sorted by name."""
    owners = [base for base in kind.__mro__ if base.__module__.startswith("karat")]
    names = sorted({name for base in owners for name in vars(base) if not name.startswith("_")})
    for name in names:
        member = next(vars(base)[name] for base in owners if name in vars(base))
        is_method = inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
        is_property = isinstance(member, property) or hasattr(member, "attrname")
        if (is_method or is_property) and inspect.getdoc(member):
            yield name, member


def signature(name: str, value: Any) -> str:
    """Return a signature as code, with one parameter per line if it is long."""
    try:
        parameters = inspect.signature(value)
    except ValueError:  # exceptions without a constructor of their own
        return name
    written = [one for one in parameters.parameters.values() if one.name != "self"]
    plain = parameters.replace(parameters=written)
    text = re.sub(r"<factory>", "…", _without_quotes(str(plain)))
    if len(name + text) <= 88 or not written:
        return name + text.removesuffix(" -> None")
    listed = [_without_quotes(str(one)).replace("<factory>", "…") for one in written]
    first_keyword = next((i for i, one in enumerate(written) if one.kind is one.KEYWORD_ONLY), None)
    if first_keyword is not None and not any(one.kind is one.VAR_POSITIONAL for one in written):
        listed.insert(first_keyword, "*")
    returned = text.rpartition(") -> ")[2] if ") -> " in text else "None"
    end = "" if returned == "None" else f" -> {returned}"
    return name + "(\n" + "".join(f"    {one},\n" for one in listed) + ")" + end


def _without_quotes(text: str) -> str:
    """Remove the quotes around annotations that are stored as text."""
    plain = re.sub(r"(: |-> )'((?:[^'\\]|\\.)*)'", r"\1\2", text)
    return plain.replace("'", '"')


def described(value: Any, page_of: dict[str, str], key: str) -> str:
    """Return a docstring as Markdown: text, then its sections."""
    text = inspect.getdoc(value) or ""
    before, *sections = SECTION.split(text)
    parts = [before.strip() + "\n"]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Examples":
            parts.append(examples(body))
        else:
            parts.append(f"**{title}**\n\n{entries(body, page_of, key)}")
    return "\n".join(parts)


def entries(body: str, page_of: dict[str, str], key: str) -> str:
    """Return the entries of a section such as Parameters as a list."""
    items = []
    for item in ENTRY.split(textwrap.dedent(body).strip("\n")):
        if not item.strip():
            continue
        head, _, text = item.partition("\n")
        name, is_named, kind = head.partition(" : ")
        meaning = " ".join(textwrap.dedent(text).split())
        if is_named:
            label = f"`{name}`: {linked(kind, page_of, key)}"
        else:  # a type that is returned or raised, or **options
            label = f"`{name}`" if name.startswith("*") else linked(name, page_of, key)
        items.append(f"- {label}" + f"  \n  {meaning}" * bool(meaning))
    return "\n".join(items) + "\n"


def linked(kind: str, page_of: dict[str, str], key: str) -> str:
    """Return the description of a type, with links to the classes of karat in it."""

    def link(match: re.Match[str]) -> str:
        page = page_of.get(match[0])
        if page is None:
            return match[0]
        target = "" if page == key else f"{page}.md"
        return f"[{match[0]}]({target}#{anchor(full_name_of(match[0], page))})"

    return re.sub(r"\b[A-Z]\w+\b", link, kind)


def full_name_of(name: str, page: str) -> str:
    """Return the full name, as in the headings."""
    return f"{PAGES[page].module}.{name}"


def anchor(full_name: str) -> str:
    """Return the anchor of a heading, as Zensical and GitHub make it."""
    return full_name.replace(".", "").lower()


def examples(body: str) -> str:
    """Return the examples of a docstring: code, and text between the blocks."""
    lines = re.sub(r"\s*# doctest: .*$", "", body.strip("\n"), flags=re.MULTILINE)
    return "**Examples**\n\n```pycon\n" + lines + "\n```\n"


def summary(value: Any) -> str:
    """Return the first sentence of a docstring in one line."""
    first = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return " ".join(first.split())


def code(text: str) -> str:
    """Return a block of Python code."""
    return f"```python\n{text}\n```\n"


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
