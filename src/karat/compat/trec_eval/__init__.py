"""The command `karat trec_eval`, which prints what trec_eval 10.0 prints, byte for byte.

`flags` parses the command line, `parameters` the parameters of measures. `inputs` reads the files
that only trec_eval has, and `load` turns gold and run into `topics`. `catalogue` maps each measure
of trec_eval to a function in `values`, which calls a kernel; `preferences` computes the preference
measures, which karat has nowhere else. `output` prints the lines, and `command` connects all.
"""

from karat.compat.trec_eval.command import trec_eval

__all__ = ["trec_eval"]
