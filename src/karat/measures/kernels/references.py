"""The publications that define measures, for `cites` in their declarations."""

MANNING = "Manning, Raghavan and Schütze 2008, Introduction to Information Retrieval, chapter 8"
VOORHEES = "Voorhees 1999, The TREC-8 Question Answering Track Report"
JARVELIN = (
    "Järvelin and Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques, "
    "ACM Transactions on Information Systems 20(4)"
)
BUCKLEY = "Buckley and Voorhees 2004, Retrieval evaluation with incomplete information, SIGIR"
ROBERTSON = "Robertson 2006, On GMAP: and other transformations, CIKM"
YILMAZ = (
    "Yilmaz and Aslam 2006, Estimating average precision with incomplete and imperfect "
    "judgments, CIKM"
)
MOFFAT = (
    "Moffat and Zobel 2008, Rank-biased precision for measurement of retrieval effectiveness, "
    "ACM Transactions on Information Systems 27(1)"
)
CHAPELLE = (
    "Chapelle, Metzler, Zhang and Grinspan 2009, Expected reciprocal rank for graded relevance, "
    "CIKM"
)
