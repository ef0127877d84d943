"""The measures of trec_eval, in the order of its measures.c, and how each is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from karat.arrays import Floats
from karat.compat.trec_eval import values
from karat.compat.trec_eval.parameters import Pairs, numbers, pairs, points, ranks
from karat.compat.trec_eval.topics import Topics, average
from karat.compat.trec_eval.values import Compute
from karat.measures.kernels.interpolated import ELEVEN_POINTS

RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
MULTIPLES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


@dataclass(frozen=True)
class Entry:
    """A measure of trec_eval: how it is parsed, computed, printed and combined over topics."""

    name: str
    compute: Compute
    about: str
    """The name of the karat measure that documents it, or a description."""
    read: Callable[[str], Any] | None = None
    """Parses its parameters; None if it has none."""
    default: Any = ()
    line_format: str | None = None
    """The format of a parameter in the name of its line, if each parameter has its own line."""
    whole: bool = False
    over: Literal["mean", "sum", "geometric", "count", "text"] = "mean"
    each_query: bool = True
    cleared: Literal["", "plain", "always"] = ""
    """Whether topics that are not in the run are set to 0: never, only without parameters, or
    always."""
    complete: Callable[[Topics], Floats] | None = None
    """Computes the values that are combined with -c, if they are different."""
    judgments: tuple[str, ...] = ("qrels",)
    """The formats (-R) that it can be computed from; empty if all."""


class ParsedMeasure:
    """An entry with its parameters."""

    def __init__(self, entry: Entry, parameters: str | None) -> None:
        self.entry = entry
        is_plain = parameters is None
        self.cleared = entry.cleared == "always" or (entry.cleared == "plain" and is_plain)
        self.params = entry.default
        if parameters is not None and entry.read is not None:
            self.params = entry.read(parameters)
        if entry.line_format is not None:
            self.names = [f"{entry.name}_{value:{entry.line_format}}" for value in self.params]
        else:
            self.names = [entry.name if is_plain else f"{entry.name}_{parameters}"]

    def compute(self, topics: Topics) -> list[Any]:
        """Return one array of values per line."""
        columns = self.entry.compute(topics, self.params)
        return [topics.without_missing(column) for column in columns] if self.cleared else columns


UTILITY = (1.0, -1.0, 0.0, 0.0)
NO_PAIRS = Pairs()
PREFERENCES = ("prefs", "qrels_prefs")

_RANKED: dict[str, Any] = {"read": ranks, "default": RANKS, "line_format": "d"}
_AT_POINTS: dict[str, Any] = {"read": points, "default": ELEVEN_POINTS, "line_format": ".2f"}
_AT_MULTIPLES: dict[str, Any] = {"read": points, "default": MULTIPLES, "line_format": ".2f"}
_PAIRED: dict[str, Any] = {"read": pairs("gains"), "default": NO_PAIRS}
_PERSISTENT: dict[str, Any] = {"read": pairs("p"), "default": NO_PAIRS}
_SUMMED: dict[str, Any] = {"whole": True, "over": "sum"}
_GEOMETRIC: dict[str, Any] = {"over": "geometric", "each_query": False}


def _preference(name: str, about: str, **facts: Any) -> Entry:
    return Entry(
        name,
        values.preference(name),
        about,
        judgments=PREFERENCES,
        **facts,
    )


ENTRIES = (
    Entry(
        "runid",
        lambda topics, _: [topics.ids],
        "The tag in the last line of the run.",
        over="text",
        each_query=False,
        judgments=(),
    ),
    Entry(
        "num_q",
        lambda topics, _: [np.ones(len(topics.ids))],
        "NumQ",
        whole=True,
        over="count",
        each_query=False,
        judgments=(),
    ),
    Entry("num_ret", values.plain("NumRet"), "NumRet", cleared="plain", **_SUMMED),
    Entry("num_rel", values.plain("NumRel"), "NumRel", complete=values.all_relevant, **_SUMMED),
    Entry("num_rel_ret", values.plain("NumRelRet"), "NumRelRet", **_SUMMED),
    Entry("map", values.plain("AP", denominator="relevant"), "AP"),
    Entry("gm_map", values.logarithmic("GMAP"), "GMAP", **_GEOMETRIC),
    Entry("Rprec", values.plain("Rprec", multiple=1.0), "Rprec"),
    Entry("bpref", values.plain("Bpref"), "Bpref"),
    Entry("recip_rank", values.plain("RR"), "RR"),
    Entry("iprec_at_recall", values.interpolated, "IPrec", **_AT_POINTS),
    Entry("P", values.per_parameter("P"), "P", **_RANKED),
    Entry(
        "relstring",
        values.relevance_string,
        "The grades of the first items (10, or relstring.20) as text: 0 to 9, > for a grade above "
        "9, - for an item that is not in the qrels, . for a grade below 0. Only for single topics.",
        read=numbers(1, example="relstring.20"),
        default=(10.0,),
        over="text",
        cleared="plain",
    ),
    Entry("recall", values.per_parameter("R"), "R", **_RANKED),
    Entry("infAP", values.plain("infAP"), "infAP"),
    Entry("gm_bpref", values.logarithmic("GMBpref"), "GMBpref", **_GEOMETRIC),
    Entry("Rprec_mult", values.per_parameter("Rprec", "multiple"), "Rprec", **_AT_MULTIPLES),
    Entry(
        "utility",
        values.utility,
        "Utility",
        read=numbers(4, example="utility.2,-1,0,0"),
        default=UTILITY,
        cleared="plain",
    ),
    Entry("11pt_avg", values.eleven_points, "11pt", read=points, default=ELEVEN_POINTS),
    Entry("binG", values.plain("binG"), "binG"),
    Entry("G", values.gains("G"), "G", **_PAIRED),
    Entry("dcg", values.gains("DCG"), "DCG", **_PAIRED),
    Entry("ideal_dcg", values.gains("IDCG"), "IDCG", **_PAIRED),
    Entry("ndcg", values.gains("nDCG"), "nDCG", **_PAIRED),
    Entry("ndcg_rel", values.gains("nDCGrel"), "nDCGrel", **_PAIRED),
    Entry("Rndcg", values.at_levels, "RnDCG", **_PAIRED),
    Entry("ndcg_cut", values.per_parameter("nDCG"), "nDCG", **_RANKED),
    Entry("map_cut", values.per_parameter("AP"), "AP", **_RANKED),
    Entry("relative_P", values.per_parameter("R_cap"), "R_cap", **_RANKED),
    Entry(
        "success",
        values.per_parameter("Success"),
        "Success",
        read=ranks,
        default=(1, 5, 10),
        line_format="d",
    ),
    Entry("set_P", values.plain("P"), "P"),
    Entry("set_relative_P", values.plain("R_cap"), "R_cap"),
    Entry("set_recall", values.plain("R"), "R"),
    Entry("set_map", values.plain("SetAP"), "SetAP"),
    Entry(
        "set_F",
        lambda topics, parameters: [topics.value("SetF", weight=parameters[0])],
        "SetF",
        read=numbers(1, example="set_F.0.5", least=0),
        default=(1.0,),
    ),
    Entry("num_nonrel_judged_ret", values.plain("NumNonrelRet"), "NumNonrelRet", **_SUMMED),
    _preference(
        "prefs_num_prefs_poss",
        "The number of all preferences, retrieved or not; summed over topics.",
        **_SUMMED,
    ),
    _preference(
        "prefs_num_prefs_ful",
        "The number of preferences that the ranking fulfils: the preferred item is above the other "
        "item, or only the preferred item is retrieved; summed over topics.",
        **_SUMMED,
    ),
    _preference(
        "prefs_num_prefs_ful_ret",
        "The number of preferences that are fulfilled and have both items retrieved; summed over "
        "topics.",
        **_SUMMED,
    ),
    _preference("prefs_simp", "Preferences fulfilled / all preferences."),
    _preference("prefs_pair", "The mean over pairs of items of the share of judges fulfilled."),
    _preference("prefs_avgjg", "The mean of prefs_simp over judgment groups."),
    _preference(
        "prefs_avgjg_Rnonrel",
        "prefs_avgjg, with as many items of level 0 in each group as relevant items.",
    ),
    _preference("prefs_simp_ret", "prefs_simp, only for pairs with both items retrieved."),
    _preference("prefs_pair_ret", "prefs_pair, only for pairs with both items retrieved."),
    _preference("prefs_avgjg_ret", "prefs_avgjg, only for pairs with both items retrieved."),
    _preference(
        "prefs_avgjg_Rnonrel_ret", "prefs_avgjg_Rnonrel, only for pairs with both items retrieved."
    ),
    _preference("prefs_simp_imp", "prefs_simp, only for pairs with at least one item retrieved."),
    _preference("prefs_pair_imp", "prefs_pair, only for pairs with at least one item retrieved."),
    _preference("prefs_avgjg_imp", "prefs_avgjg, only for pairs with at least one item retrieved."),
    Entry(
        "map_avgjg",
        lambda topics, _: [average(topics, "AP", denominator="relevant")],
        "AP of each judgment group, averaged.",
        judgments=("qrels_jg",),
    ),
    Entry(
        "P_avgjg",
        lambda topics, parameters: [average(topics, "P", cutoff=k) for k in parameters],
        "P of each judgment group, averaged.",
        judgments=("qrels_jg",),
        **_RANKED,
    ),
    Entry(
        "Rprec_mult_avgjg",
        lambda topics, parameters: [average(topics, "Rprec", multiple=m) for m in parameters],
        "Rprec_mult of each judgment group, averaged.",
        judgments=("qrels_jg",),
        **_AT_MULTIPLES,
    ),
    Entry("yaap", values.plain("YAAP"), "YAAP"),
    Entry("rbp", values.rank_biased, "RBP", **_PERSISTENT),
    Entry("rbp_resid", values.residual, "RBPresid", cleared="plain", **_PERSISTENT),
    Entry(
        "unj",
        values.per_parameter("Unjudged"),
        "Unjudged",
        read=ranks,
        default=(5, 10, 20),
        line_format="d",
        cleared="always",
    ),
)
BY_NAME = {entry.name: entry for entry in ENTRIES}

_OFFICIAL = "runid num_q num_ret num_rel num_rel_ret map gm_map Rprec bpref recip_rank "
_SETS = "set_P set_recall set_relative_P set_map set_F "
_COUNTED = "prefs_num_prefs_poss prefs_num_prefs_ful prefs_num_prefs_ful_ret "
NICKNAMES = {
    "official": f"{_OFFICIAL} iprec_at_recall P",
    "set": f"runid num_q num_ret num_rel num_rel_ret utility {_SETS}",
    "all_trec": f"{_OFFICIAL} iprec_at_recall P relstring recall unj rbp rbp_resid infAP gm_bpref "
    "utility 11pt_avg ndcg relative_P Rprec_mult success map_cut ndcg_cut ndcg_rel Rndcg binG G "
    f"{_SETS} num_nonrel_judged_ret",
    "all_prefs": f"runid num_q {_COUNTED} prefs_simp prefs_pair prefs_avgjg prefs_avgjg_Rnonrel "
    "prefs_simp_ret prefs_pair_ret prefs_avgjg_ret prefs_avgjg_Rnonrel_ret "
    "prefs_simp_imp prefs_pair_imp prefs_avgjg_imp",
    "prefs": f"runid num_q {_COUNTED} prefs_simp prefs_pair prefs_avgjg",
    "qrels_jg": "runid num_q map_avgjg P_avgjg Rprec_mult_avgjg",
}
