"""Charts of runs, made with Altair; HTML reports and notebooks show the same charts."""

from karat.report.charts.chart import PageChart, TitledChart
from karat.report.charts.kinds import KINDS, ChartInput, charts

__all__ = ["KINDS", "ChartInput", "PageChart", "TitledChart", "charts"]
