"""Numbers as people read them, and plain data as JSON; nothing is rounded before this."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_LEAST = 0.0001


def format_number(
    value: float | object | None, *, is_amount: bool = False, is_whole: bool = False
) -> str:
    """Format a value with four decimals; a value that is missing is a dash.

    Amounts have as many decimals as `amount` gives them. Whole values have none if `is_whole`.

    >>> format_number(0.25), format_number(3.0, is_whole=True), format_number(12.5, is_amount=True)
    ('0.2500', '3', '12.50')
    """
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if is_whole and value.is_integer():
        return f"{value:,.0f}"
    return amount(value) if is_amount else f"{value:.4f}"


def amount(value: float) -> str:
    """Format an amount of any size: two decimals, or as many as three digits take.

    >>> amount(1234.5), amount(0.25), amount(0.0000123)
    ('1,234.50', '0.250', '0.0000123')
    """
    decimals = 2 - math.floor(math.log10(value)) if value > 0 else 2
    return f"{value:,.{max(2, decimals)}f}"


def probability(p: float | None) -> str:
    """Format a p-value; one that is too small to show is not shown as 0.

    >>> probability(0.04321), probability(0.000001)
    ('0.0432', '<0.0001')
    """
    if p is None:
        return "–"
    return f"<{_LEAST:.4f}" if p < _LEAST else f"{p:.4f}"


def duration(seconds: float) -> str:
    """Format how long something takes, as exactly as an estimate can be.

    >>> duration(0.4), duration(59), duration(125), duration(7300)
    ('1 s', '59 s', '2 min 5 s', '2 h 1 min')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def to_json(document: Mapping[str, Any]) -> str:
    """Return a document as indented JSON."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document)).decode()
