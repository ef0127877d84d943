"""Charts of runs, drawn by Altair: the same on a page and in a notebook."""

from karat.report.charts.chart import Chart, Drawing
from karat.report.charts.kinds import KINDS, Subject, charts

__all__ = ["KINDS", "Chart", "Drawing", "Subject", "charts"]
