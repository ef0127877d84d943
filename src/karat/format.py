"""Formatting of numbers for people, and of plain data as JSON. Only this module rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

DIGITS = 3
"""How many decimals are shown; files contain all digits."""
_SMALLEST_P_VALUE = 0.001
_ALPHA = 0.05


def format_number(
    value: float | object | None,
    *,
    is_amount: bool = False,
    is_whole: bool = False,
    digits: int = DIGITS,
) -> str:
    """Format a value with three decimals; None becomes a dash.

    With `is_amount`, the value is formatted by `amount`. With `is_whole`, integers have no
    decimals.

    >>> format_number(0.25), format_number(3.0, is_whole=True), format_number(12.5, is_amount=True)
    ('0.250', '3', '12.50')
    """
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if is_whole and value.is_integer():
        return f"{value:,.0f}"
    return amount(value) if is_amount else f"{value:.{digits}f}"


def not_as_zero(value: float, formatted: str) -> str:
    """Return a formatted number, with one significant digit if rounding made it zero.

    Differences of many queries can be significant and tiny.

    >>> not_as_zero(0.00042, "0.000"), not_as_zero(0.25, "0.250"), not_as_zero(0.0, "0.000")
    ('0.0004', '0.250', '0.000')
    """
    return f"{value:.1g}" if value and not formatted.strip("-0.,") else formatted


def amount(value: float) -> str:
    """Format an amount with two decimals, or with as many as needed for three significant digits.

    >>> amount(1234.5), amount(0.25), amount(0.0000123)
    ('1,234.50', '0.250', '0.0000123')
    """
    decimals = 2 - math.floor(math.log10(value)) if value > 0 else 2
    return f"{value:,.{max(2, decimals)}f}"


def probability(p: float | None) -> str:
    """Format a p-value with three decimals.

    Rounding changes a p-value neither to 0 nor to the significance level.

    >>> probability(0.04321), probability(0.000001), probability(0.04996)
    ('0.043', '<0.001', '0.04996')
    """
    if p is None:
        return "–"
    if p < _SMALLEST_P_VALUE:
        return f"<{_SMALLEST_P_VALUE}"
    digits = 3
    while p < _ALPHA <= round(p, digits):
        digits += 1
    return f"{p:.{digits}f}"


def duration(seconds: float) -> str:
    """Format a duration, rounded up to whole seconds.

    >>> duration(0.4), duration(59), duration(125), duration(7300)
    ('1 s', '59 s', '2 min 5 s', '2 h 1 min')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def file_size(n_bytes: int) -> str:
    """Format the size of a file in units of 1,000 bytes.

    >>> file_size(80), file_size(912_345), file_size(1_234_567)
    ('1 kB', '912 kB', '1.2 MB')
    """
    if n_bytes < 999_500:
        return f"{max(1, round(n_bytes / 1000))} kB"
    return f"{n_bytes / 1_000_000:,.1f} MB"


def to_json(document: Mapping[str, Any]) -> str:
    """Return a document as indented JSON."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document)).decode()
