"""axe-core finds nothing of moderate or higher impact in any report, nor in an open query."""

from __future__ import annotations

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from support.chromium import draw_charts
from support.report_set import REPORTS

IMPACTS = ("moderate", "serious", "critical")
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
UNFOLD = "document.querySelectorAll('details').forEach((part) => (part.open = true))"


@pytest.mark.parametrize("name", REPORTS)
def test_report_is_accessible_in_light_and_dark(name, report, opened):
    found = findings(opened(report(name), viewport=DESKTOP, color_scheme="light"))
    assert not found, "\n".join(found)


def test_report_is_accessible_on_a_phone(report, opened):
    found = findings(opened(report("live"), viewport=PHONE, color_scheme="light"))
    assert not found, "\n".join(found)


def findings(page):
    """Return what axe reports of the page and its first query, with all details unfolded."""
    page.wait_for_selector(".queries tbody tr")
    draw_charts(page)
    page.evaluate(UNFOLD)
    page.evaluate(AXE_SCRIPT)
    found = [f"page: {line}" for line in in_both_schemes(page, "html")]
    page.locator(".queries button.open").first.click()
    page.locator("dialog[open] h3").first.wait_for()
    page.evaluate(UNFOLD)
    return found + [f"query: {line}" for line in in_both_schemes(page, "dialog[open]")]


def in_both_schemes(page, part):
    """Check a part with all rules, and once more in dark mode, where only the colours differ."""
    found = violations(page, part, {})
    page.emulate_media(color_scheme="dark")
    found += [f"dark {line}" for line in violations(page, part, {"runOnly": ["color-contrast"]})]
    page.emulate_media(color_scheme="light")
    return found


def violations(page, part, options):
    """Return one line per violated rule, with the first elements that violate it."""
    results = page.evaluate(
        "([part, options]) => axe.run(part, options)",
        [part, {"resultTypes": ["violations"], "preload": False, **options}],
    )
    return [
        f"{rule['impact']} {rule['id']} ({len(rule['nodes'])}): "
        + ", ".join(str(node["target"][0]) for node in rule["nodes"][:3])
        for rule in results["violations"]
        if rule["impact"] in IMPACTS
    ]
