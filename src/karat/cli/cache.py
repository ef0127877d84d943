"""`karat cache`: show or empty the cache."""

from __future__ import annotations

import click

from karat.cli.options import JSON
from karat.cli.parameters import Argument, command


@command(
    "cache",
    Argument(
        "action",
        metavar="clear",
        text="Remove everything from the cache. Without it, the cache is only shown.",
        required=False,
        type=click.Choice(["clear"]),
    ),
    JSON,
)
def cache_command(action: str | None, json: bool) -> None:
    """Show where the cache is and what is in it, or empty it with `karat cache clear`.

    The cache has the search indexes of built-in retrievers, and scripts of the HTML report. All of
    it is made again when it is needed.
    """
    from karat.cache import cache_folder, cached_entries, clear_cache
    from karat.errors import printable
    from karat.format import to_json
    from karat.version import __version__

    folder = cache_folder()
    entries = cached_entries() if action is None else clear_cache()
    size = sum(entry.bytes for entry in entries)
    if json:
        summary = {"karat": __version__, "folder": folder and str(folder), "bytes": size}
        listed = "entries" if action is None else "removed"
        print(to_json(summary | {listed: [entry.as_dict() for entry in entries]}))
        return
    if folder is None:
        print("no cache: the user has no home folder; set XDG_CACHE_HOME")
        return
    print(f"{'removed from ' if action else ''}{folder}: {_format_size(size)}")
    for entry in entries:
        about = f"  {printable(entry.about)}" if entry.about else ""
        print(f"  {_format_size(entry.bytes):>9}  {printable(entry.name)}{about}")


def _format_size(size: int) -> str:
    """Return a number of bytes for people.

    >>> _format_size(999), _format_size(1_234_567)
    ('999 B', '1.2 MB')
    """
    amount, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
