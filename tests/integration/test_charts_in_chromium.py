"""Every chart is drawn by Vega's interpreter on a page that allows only its own scripts."""

from __future__ import annotations

import base64
import hashlib
import json

from karat.report.page import scripts
from support.charts import HOSTILE, charts_of_page

DRAW = """
window.drawn = Promise.all(JSON.parse(document.getElementById("charts").textContent).map(
  async (chart) => {
    const place = document.createElement("div");
    document.body.append(place);
    await vegaEmbed(place, chart.spec, {ast: true, actions: false, renderer: "svg"});
    return [chart.id, place.querySelectorAll("svg path, svg text").length, place.textContent];
  }));
"""


def test_charts_are_drawn_without_eval_and_without_running_names_from_data(tmp_path, opened):
    script = scripts.vega_script() + DRAW
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    drawn = [{"id": chart.id, "spec": chart.spec} for chart in charts_of_page()]
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    data = json.dumps(drawn).replace("<", "\\u003c")
    page = tmp_path / "page.html"
    page.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"></head><body>'
        f'<script type="application/json" id="charts">{data}</script>'
        f'<script type="module">{script}</script></body></html>',
        "utf-8",
    )
    tab = opened(page, viewport={"width": 900, "height": 700})
    results = tab.evaluate("window.drawn")
    assert tab.locator("img").count() == 0
    assert [name for name, _, _ in results] == [chart["id"] for chart in drawn]
    assert all(marks > 5 for _, marks, _ in results)
    texts = {name: text for name, _, text in results}
    assert HOSTILE in texts["values-1"]
