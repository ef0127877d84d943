"""The scripts and styles of a page: its own, and the Vega bundle from vl-convert."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec

from karat.cache import cache_folder
from karat.errors import InputError
from karat.files import writing

_MODULES = (
    "dom.js",
    "numbers.js",
    "data.js",
    "state.js",
    "export.js",
    "run_colours.js",
    "rows.js",
    "dots.js",
    "pairs.js",
    "forest.js",
    "scatter.js",
    "moved.js",
    "matrix.js",
    "comparison.js",
    "columns.js",
    "ranking.js",
    "calculation.js",
    "documents.js",
    "evidence.js",
    "query.js",
    "filters.js",
    "controls.js",
    "query_export.js",
    "table.js",
    "vega.js",
    "charts.js",
    "card.js",
    "results.js",
    "navigation.js",
    "main.js",
)
_STYLES = (
    "theme.css",
    "page.css",
    "summary.css",
    "gate.css",
    "findings.css",
    "results.css",
    "comparison.css",
    "queries.css",
    "query.css",
    "charts.css",
    "groups.css",
)
_IMPORTS = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORTS = re.compile(r"^export ", re.MULTILINE)


REQUIRED = ("altair", "jinja2", "vl_convert")
"""The packages of the extra `report`."""


def check_installed() -> None:
    """Raise InputError if a package that pages and cards need is not installed."""
    for package in REQUIRED:
        if find_spec(package) is None:
            raise InputError(
                f"an HTML report or picture needs {package}, which is not installed",
                hint="pip install 'karat[report]'",
            )


@cache
def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, which the page unpacks and inserts.

    Bundling takes longer than the rest of a page, and the script only changes with the version of
    vl-convert, so it is kept in the user's cache folder if that is writable.
    """
    check_installed()
    folder = cache_folder()
    cached = None if folder is None else folder / f"vega-{version('vl-convert-python')}-2.js"
    if cached is not None:
        with suppress(OSError, UnicodeDecodeError):
            return cached.read_bytes().decode()
    import vl_convert

    script: str = vl_convert.javascript_bundle(_AFTER_VEGA)
    if cached is not None:
        with suppress(OSError, InputError):
            cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with writing(cached) as file:
                file.write(script.encode())
    return script


_AFTER_VEGA = 'window.vegaEmbed = vegaEmbed; dispatchEvent(new Event("vega"));'
"""The end of the bundle: an inline module has no load event, so it reports that it has run."""


@cache
def packed_vega() -> str:
    """Return the script compressed, as base64: a third of its size."""
    return b64encode(gzip.compress(vega_script().encode(), 9, mtime=0)).decode()


@cache
def page_script() -> str:
    """Return the modules of the page as one script, in the order of their imports."""
    modules = "\n".join(map(_static, _MODULES))
    return _EXPORTS.sub("", _IMPORTS.sub("", modules))


@cache
def styles() -> str:
    """Return all style sheets of the page as one."""
    return "\n".join(map(_static, _STYLES))


def csp_hash(script: str) -> str:
    """Return the hash that allows a script in a Content-Security-Policy."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")
