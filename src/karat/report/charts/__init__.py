"""Charts of runs, made with Altair; HTML reports and notebooks show the same charts."""

from karat.report.charts.chart import PageChart, TitledChart
from karat.report.charts.kinds import KINDS, ChartInput, charts, page_palette

__all__ = ["KINDS", "ChartInput", "PageChart", "TitledChart", "charts", "page_palette"]
