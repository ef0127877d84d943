"""Charts of runs, drawn by Altair: the same on a page and in a notebook."""

from karat.report.charts.chart import PageChart, TitledChart
from karat.report.charts.kinds import KINDS, ChartInput, charts

__all__ = ["KINDS", "ChartInput", "PageChart", "TitledChart", "charts"]
