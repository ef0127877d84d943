"""What retrievers outside of this process have in common."""

from __future__ import annotations

from typing import Any

from karat.errors import printable
from karat.live.adapters.fields import Fields
from karat.live.exchange import SEARCH_SETTINGS, Search

_LONGEST = 200


def handed(search: Search, fields: Fields) -> dict[str, Any]:
    """Return the settings that are sent: top_k, and what else somebody set."""
    return {
        name: getattr(search, name)
        for name in SEARCH_SETTINGS
        if (name == "top_k" or name in search.given)
        and getattr(search, name) is not None
        and fields.sends(name)
    }


def said(text: str) -> str:
    """Return the first line of what was said, cut where it is long."""
    first = printable(text.strip().partition("\n")[0].rstrip())
    return first if len(first) <= _LONGEST else f"{first[:_LONGEST]}…"
