"""The verbs: evaluate, and what it returns."""

from karat.evaluation.evaluator import Evaluator, evaluate
from karat.evaluation.scores import Scores

__all__ = ["Evaluator", "Scores", "evaluate"]
