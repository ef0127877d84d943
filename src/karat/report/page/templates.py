"""The Jinja2 environment of a page: templates in `templates/`, with automatic escaping."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from karat.markup import brief, shown

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_NAME = 80
MAX_SENTENCE = 2_000
"""Longer sentences are shortened: they contain names of runs, which can have any length."""


def render(template: str, **values: Any) -> str:
    """Return a template with its values filled in; text is escaped."""
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """Return the environment that all templates of a page share.

    Filters: `text(most)` shortens a text from the data and makes invisible characters visible;
    `sentence` does the same for a sentence; `as_json` is for attributes that a script reads.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("karat.report.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.filters["text"] = _text
    templates.filters["sentence"] = lambda text: _text(text, MAX_SENTENCE)
    templates.filters["as_json"] = json.dumps
    templates.filters["exact"] = lambda value: "" if value is None else repr(value)
    return templates


def _text(text: str, most: int = MAX_NAME) -> str:
    return shown(brief(text, most))


def safe(text: str) -> Any:
    """Return text that templates insert as it is: style sheets, markup of `karat.markup`."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704
