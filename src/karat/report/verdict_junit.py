"""JUnit XML, which CI systems show as test results: a suite a gate, a case a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from karat.errors import printable
from karat.report.verdict_text import explained

if TYPE_CHECKING:
    from karat.report.verdict import Entry, Verdict

ANSWERED = "every query was answered"


def junit(entries: Sequence[Entry]) -> bytes:
    """Return a report as JUnit XML.

    That queries have no answer is no failure, and must not be overlooked: a case of its own is
    marked as skipped.
    """
    root = Element("testsuites", name="karat")
    for entry in entries:
        suite = SubElement(root, "testsuite", name=_clean(entry.title))
        if entry.verdict is None:
            message = _clean(entry.error or "")
            case = SubElement(suite, "testcase", classname=_clean(entry.title), name="gate")
            told = SubElement(case, "error", message=message.partition("\n")[0], type="InputError")
            told.text = message
        else:
            _fill(suite, entry.title, entry.verdict)
        _count(suite)
    _count(root)
    indent(root)
    made: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _fill(suite: Element, title: str, verdict: Verdict) -> None:
    for check in verdict.checks:
        case = SubElement(suite, "testcase", classname=_clean(title), name=_clean(check.name))
        if not check.passed:
            told = SubElement(case, "failure", message=_clean(check.reason), type=check.rule.kind)
            told.text = _clean("\n".join(explained(check)))
    case = SubElement(suite, "testcase", classname=_clean(title), name=ANSWERED)
    if verdict.unanswered is not None:
        SubElement(case, "skipped", message=_clean(verdict.unanswered))
    SubElement(suite, "system-out").text = _clean("\n".join([verdict.summary, *verdict.remarks]))


def _count(within: Element) -> None:
    for word, tag in (
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    ):
        within.set(word, str(sum(1 for _ in within.iter(tag))))


def _clean(text: str) -> str:
    """Return a text without the characters that XML cannot hold, line by line."""
    return "\n".join(map(printable, text.split("\n")))
