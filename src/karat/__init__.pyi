"""The public names of karat, one per line, and the modules that define them.

This is the only list: type checkers and editors read it, and `__init__.py` loads each name from it
when the name is first used.
"""

from karat import chunk as chunk
from karat import compat as compat
from karat import data as data
from karat import functional as functional
from karat import live as live
from karat import measures as measures
from karat import presets as presets
from karat import testing as testing
from karat.conventions import Conventions as Conventions
from karat.data import Chunks as Chunks
from karat.data import Corpus as Corpus
from karat.data import Gold as Gold
from karat.data import Run as Run
from karat.errors import ConventionError as ConventionError
from karat.errors import InputError as InputError
from karat.errors import KaratError as KaratError
from karat.errors import KaratWarning as KaratWarning
from karat.errors import MeasureError as MeasureError
from karat.errors import RetrieverError as RetrieverError
from karat.evaluation.comparison import Comparison as Comparison
from karat.evaluation.comparison import compare as compare
from karat.evaluation.evaluator import Evaluator as Evaluator
from karat.evaluation.evaluator import evaluate as evaluate
from karat.evaluation.explanation import Explanation as Explanation
from karat.evaluation.explanation import explain as explain
from karat.evaluation.location import Location as Location
from karat.evaluation.location import locate as locate
from karat.evaluation.scores import Scores as Scores
from karat.evaluation.validation import Validation as Validation
from karat.evaluation.validation import validate as validate
from karat.evaluation.validation_checks import Finding as Finding
from karat.evaluation.verdict import Verdict as Verdict
from karat.evaluation.verdict import gate as gate
from karat.functional import average_precision as average_precision
from karat.functional import calculate_overlap as calculate_overlap
from karat.functional import hit_rate as hit_rate
from karat.functional import merge_overlapping_spans as merge_overlapping_spans
from karat.functional import mrr as mrr
from karat.functional import ndcg_at_k as ndcg_at_k
from karat.functional import precision_at_k as precision_at_k
from karat.functional import recall_at_k as recall_at_k
from karat.live.instrumentation import carry as carry
from karat.live.instrumentation import record_call as record_call
from karat.live.instrumentation import stage as stage
from karat.live.retrieve import retrieve as retrieve
from karat.match.text import Matching as Matching
from karat.match.to_judgments import to_judgments as to_judgments
from karat.measures import Plan as Plan
from karat.measures import ScoreTable as ScoreTable
from karat.measures import score as score
from karat.measures.custom import measure as measure
from karat.version import __version__ as __version__
