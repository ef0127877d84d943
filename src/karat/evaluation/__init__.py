"""The verbs: evaluate, compare, explain, gate and validate, and what they return."""

from karat.evaluation.comparison import Comparison, compare
from karat.evaluation.evaluator import Evaluator, evaluate
from karat.evaluation.explanation import Explanation, explain
from karat.evaluation.findings import Finding
from karat.evaluation.scores import Scores
from karat.evaluation.validation import Validation, validate
from karat.evaluation.verdict import Verdict, gate

__all__ = [
    "Comparison",
    "Evaluator",
    "Explanation",
    "Finding",
    "Scores",
    "Validation",
    "Verdict",
    "compare",
    "evaluate",
    "explain",
    "gate",
    "validate",
]
