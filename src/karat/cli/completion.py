"""`karat completion`: print the script that completes command lines in a shell.

Most values are listed here, because a shell waits for them: importing what declares them would take
longer than typing. A test compares the lists with the declarations.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    shell_complete,
    split_arg_string,
)

from karat.cli.parameters import Argument, command

VARIABLE = "_KARAT_COMPLETE"
"""The environment variable with which the script of a shell asks for completions."""

MEASURES = """
nDCG@10 R@10 R@100 P@5 P@10 RR RR@10 AP Success@10 Full@10 F1@10 Judged@10 Unjudged@10
span.recall@2000c span.precision@2000c span.iou@2000c span.f1@2000c span.full@2000c span.recall@5
span.precision@5 span.iou@5 span.RR@5 span.Success@5 span.AP@5 span.nDCG@5 span.redundancy@5
span.precision_omega
evidence.recall@5 evidence.coverage@5 evidence.full@5 evidence.P@5 evidence.RR@5
evidence.Success@5 evidence.AP@5 evidence.nDCG@5 evidence.RankOfFullCoverage evidence.union@5
latency.mean latency.p50 latency.p90 latency.p99 latency.max cost.mean cost.sum context.tokens
Bpref infAP Rprec RBP ERR@20 nERR@20 GMAP GMBpref YAAP DCG@10 IDCG@10 nDCGrel RnDCG G binG
RBPresid Hits@10 R_cap@10 FirstRelevant IPrec@0.1 11pt SetF SetAP Utility
NumQ NumRet NumRel NumRelRet NumNonrelRet
"""
PRESETS = ("benchmark", "chunks", "coverage", "graded", "spans")
FORMATS = (
    "jsonl",
    "json",
    "csv",
    "tsv",
    "parquet",
    "arrow",
    "trec",
    "beir",
    "ragas",
    "ir_datasets",
)
RETRIEVERS = (
    *("bm25:", "dense:", "hybrid:", "http://", "https://", "cmd:"),
    *("elasticsearch:", "opensearch:", "qdrant:", "pgvector:"),
)
SHELLS = ("bash", "zsh", "fish")
_VALUES: dict[str | None, Sequence[str]] = {
    "measures": MEASURES.split(),
    "measure": MEASURES.split(),
    "preset": PRESETS,
    "gold_format": FORMATS,
    "run_format": FORMATS,
    "source_format": FORMATS,
    "target_format": FORMATS,
    "retriever": RETRIEVERS,
}
_FILES = re.compile(r"\b(GOLD|RUN|FILE|DIR|FOLDER|CORPUS)\b|^[AB]$")
_CHOICES = re.compile(r"[\w-]+(\|[\w-]+)+")


def completions(name: str | None, metavar: str | None, incomplete: str) -> list[CompletionItem]:
    """Return the values of a parameter that begin as typed; for files, the shell lists them.

    Case is ignored. Only the last name in a list with commas is completed.
    """
    last = re.split("[, ]", incomplete)[-1] if name == "measures" else incomplete
    done = incomplete.removesuffix(last)
    values = _VALUES.get(name, ()) if name != "topic" else _topics()
    is_corpus = name == "retriever" and incomplete.startswith(RETRIEVERS)
    if is_corpus or (not values and _FILES.search(metavar or "")):
        return [CompletionItem(incomplete, type="file")]
    if not values and _CHOICES.fullmatch(metavar or ""):
        values = str(metavar).split("|")
    return [
        CompletionItem(done + value) for value in values if value.lower().startswith(last.lower())
    ]


def _topics() -> Sequence[str]:
    """Return the names of the pages of the documentation, which only their folder has."""
    from karat.manual import topic_names

    return topic_names()


class _Bash(BashComplete):
    """Completion for bash, which regards @ : = as the ends of words.

    It replaces only what follows the last of them, as in `nDCG@1` or `bm25:doc`.
    """

    source_template = r"""%(complete_func)s() {
    local IFS=$'\n' reply kind value
    COMPREPLY=()
    for reply in $(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
            %(complete_var)s=bash_complete "$1"); do
        IFS=',' read -r kind value <<< "$reply"
        case $kind in
            file|dir) compopt -o default ;;
            plain)
                COMPREPLY+=("$value")
                if [[ $value == *[:/] ]]; then compopt -o nospace; fi ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words after the command, and the word under the cursor."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)[1:]
        self._incomplete = "" if not words or line[-1:].isspace() else words.pop()
        return words, self._incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return the kind and the part of the value that bash replaces."""
        breaks = re.escape(os.environ.get("COMP_WORDBREAKS", "@:=").strip() or "@")
        # The value of --option=value is completed without the name of the option.
        typed = re.sub("^--[^=]*=", "", self._incomplete)
        replaced = re.split(f"[{breaks}]", typed)[-1]
        return f"{item.type},{item.value[len(typed) - len(replaced) :]}"


def complete(app: click.Group) -> int:
    """Print what the script of a shell asks for; return the exit code."""
    add_completion_class(_Bash)
    return shell_complete(app, {}, "karat", VARIABLE, os.environ[VARIABLE])


@command(
    "completion",
    Argument("shell", metavar="bash|zsh|fish", text="The shell.", type=click.Choice(SHELLS)),
)
def completion_command(shell: str) -> None:
    """Print the script that completes commands, options, measures and files in a shell.

    For bash, add this line to ~/.bashrc: eval "$(karat completion bash)"

    For zsh, add this line to ~/.zshrc, after compinit: eval "$(karat completion zsh)"

    For fish, run: karat completion fish > ~/.config/fish/completions/karat.fish
    """
    add_completion_class(_Bash)
    root = click.get_current_context().find_root().command
    shell_complete(root, {}, "karat", VARIABLE, f"{shell}_source")
