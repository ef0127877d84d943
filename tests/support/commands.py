"""What the errors of commands point to."""

from __future__ import annotations


def check_refused(result: tuple[int, str, str], place: str | None, *values: str) -> None:
    """Check that a command printed nothing but one error, which points to this place.

    The place is a path, a path with a line, or a field; the values must be in the message.
    """
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("error: " if place is None else f"error: {place}: ")
    assert err.count("error: ") == 1
    assert "Traceback" not in err
    for value in values:
        assert value in err
