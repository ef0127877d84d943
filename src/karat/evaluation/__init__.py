"""The verbs: evaluate, explain, gate and validate, and what they return."""

from karat.evaluation.evaluator import Evaluator, evaluate
from karat.evaluation.explaining import explain
from karat.evaluation.gating import gate
from karat.evaluation.scores import Scores
from karat.evaluation.validating import validate
from karat.report.explanation import Explanation
from karat.report.validation import Finding, Validation
from karat.report.verdict import Verdict

__all__ = [
    "Evaluator",
    "Explanation",
    "Finding",
    "Scores",
    "Validation",
    "Verdict",
    "evaluate",
    "explain",
    "gate",
    "validate",
]
