"""What trec_eval 10.0 prints, byte for byte, from karat's kernels.

`flags` reads the command line, `inputs` the files that only trec_eval has, `catalogue` says which
kernel makes which line, `preferences` and `groups` hold what karat measures nowhere else, and
`command` puts them together.
"""

from karat.compat.trec_eval.command import trec_eval

__all__ = ["trec_eval"]
