"""The verbs: evaluate and explain, and what they return."""

from karat.evaluation.evaluator import Evaluator, evaluate
from karat.evaluation.explaining import explain
from karat.evaluation.scores import Scores
from karat.report.explanation import Explanation

__all__ = ["Evaluator", "Explanation", "Scores", "evaluate", "explain"]
