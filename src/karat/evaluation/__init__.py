"""The verbs: evaluate, explain and validate, and what they return."""

from karat.evaluation.evaluator import Evaluator, evaluate
from karat.evaluation.explaining import explain
from karat.evaluation.scores import Scores
from karat.evaluation.validating import validate
from karat.report.explanation import Explanation
from karat.report.validation import Finding, Validation

__all__ = [
    "Evaluator",
    "Explanation",
    "Finding",
    "Scores",
    "Validation",
    "evaluate",
    "explain",
    "validate",
]
