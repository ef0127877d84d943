"""Pipelines and components of Haystack, asked in karat's threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from karat.errors import InputError
from karat.live.protocol import Search
from karat.live.retrievers import callables
from karat.live.retrievers.callables import QUERY, Caller, is_a, shown, signature


def asking(given: Any, search: Search) -> Caller | None:
    """Recognise a pipeline, or a component that takes the text of a query."""
    if is_a(given, "haystack", "PipelineBase", "Pipeline", "AsyncPipeline"):
        return _pipeline(given, search)
    if hasattr(given, "__haystack_input__") and hasattr(given, "run"):
        return _component(given, search)
    return None


def _component(given: Any, search: Search) -> Caller:
    names = [p.name for p in signature(given.run) or ()]
    if not set(QUERY) & set(names):
        raise InputError(
            f"{shown(given)} takes {', '.join(names)}, and no text of a query",
            field="retriever",
            hint="give the pipeline in which an embedder stands before it",
        )
    if hasattr(given, "warm_up"):
        given.warm_up()
    asked = callables.caller_of(given.run, search)
    own_top_k = getattr(given, "top_k", None) if "top_k" in asked.takes else None
    return replace(asked, own_top_k=own_top_k)


def _pipeline(given: Any, search: Search) -> Caller:
    last = _last_with_documents(given)
    inputs = given.inputs()
    data: dict[str, dict[str, Any]] = {}
    takes = set()
    own_top_k = None
    # A reranker gets top_k, and whoever retrieves before it keeps its own unless it is set here.
    if "top_k" in inputs.get(last, {}):
        data.setdefault(last, {})["top_k"] = search.top_k
        takes.add("top_k")
        own_top_k = getattr(given.get_component(last), "top_k", None)
    if "prefetch_limit" in search.given:
        for name in _with_documents(given) - {last}:
            if "top_k" in inputs.get(name, {}):
                data.setdefault(name, {})["top_k"] = search.prefetch_limit
                takes.add("prefetch_limit")
    asked = _asked(given, inputs)

    def run(query: str) -> Any:
        filled = {name: dict(values) for name, values in data.items()}
        for component, name in asked:
            filled.setdefault(component, {})[name] = query
        return given.run(filled, include_outputs_from={last})[last]

    return Caller(run, takes=frozenset(takes), own_top_k=own_top_k)


def _asked(given: Any, inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """Find the inputs that take the query: those that must be given, and those called so."""
    asked = []
    for component, sockets in inputs.items():
        for name, socket in sockets.items():
            is_text = socket["type"] in (str, Any) or str in get_args(socket["type"])
            if is_text and (socket["is_mandatory"] or name in QUERY):
                asked.append((component, name))
            elif socket["is_mandatory"]:
                raise InputError(
                    f"{component}.{name} must be given and is no text",
                    field="retriever",
                    hint="give a function (query, top_k) that runs the pipeline",
                )
    if not asked:
        raise InputError(
            f"no input of {shown(given)} takes a query; they are {', '.join(inputs) or 'none'}",
            field="retriever",
            hint="give a function (query, top_k) that runs the pipeline",
        )
    return asked


def _with_documents(given: Any) -> set[str]:
    outputs = given.outputs(include_components_with_connected_outputs=True)
    return {name for name, sockets in outputs.items() if "documents" in sockets}


def _last_with_documents(given: Any) -> str:
    """Find the component that gives documents and after which none does."""
    after: dict[str, set[str]] = {}
    for sender, receiver, *_ in given.graph.edges:
        after.setdefault(sender, set()).add(receiver)
    holders = _with_documents(given)
    last = sorted(name for name in holders if not _reached(name, after) & holders)
    if len(last) != 1:
        found = f"{', '.join(last)} all do" if last else "none does"
        raise InputError(
            f"one component must be the last to give documents; {found}",
            field="retriever",
            hint="join them with a DocumentJoiner, or give a function (query, top_k)",
        )
    return last[0]


def _reached(name: str, after: dict[str, set[str]]) -> set[str]:
    """Return all components that come after one, itself left out."""
    reached: set[str] = set()
    ahead = [name]
    while ahead:
        new = after.get(ahead.pop(), set()) - reached - {name}
        reached |= new
        ahead += new
    return reached
