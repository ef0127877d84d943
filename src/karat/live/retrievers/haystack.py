"""Adapter for pipelines and components of Haystack, which are called in threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from karat.errors import InputError
from karat.live.protocol import Search
from karat.live.retrievers.callables import (
    QUERY_NAMES,
    BoundCall,
    bind_settings,
    has_base,
    parameters_of,
    qualified_name,
)


def adapt(target: Any, search: Search) -> BoundCall | None:
    """Return how to call a pipeline or a component, or None for any other object."""
    if has_base(target, "haystack", "PipelineBase", "Pipeline", "AsyncPipeline"):
        return _bind_pipeline(target, search)
    if hasattr(target, "__haystack_input__") and hasattr(target, "run"):
        return _bind_component(target, search)
    return None


def _bind_component(component: Any, search: Search) -> BoundCall:
    names = [parameter.name for parameter in parameters_of(component.run) or ()]
    if not set(QUERY_NAMES) & set(names):
        raise InputError(
            f"{qualified_name(component)} has no input for the text of a query; its inputs are "
            f"{', '.join(names)}",
            field="retriever",
            hint="pass a pipeline that has an embedder before this component",
        )
    if hasattr(component, "warm_up"):
        component.warm_up()
    bound = bind_settings(component.run, search)
    own_top_k = getattr(component, "top_k", None) if "top_k" in bound.accepts else None
    return replace(bound, own_top_k=own_top_k)


def _bind_pipeline(pipeline: Any, search: Search) -> BoundCall:
    last = _last_with_documents(pipeline)
    inputs = pipeline.inputs()
    data: dict[str, dict[str, Any]] = {}
    accepts = set()
    own_top_k = None
    # The last component, such as a reranker, gets top_k. The retrievers before it keep their own
    # number of results, unless prefetch_limit is set.
    if "top_k" in inputs.get(last, {}):
        data.setdefault(last, {})["top_k"] = search.top_k
        accepts.add("top_k")
        own_top_k = getattr(pipeline.get_component(last), "top_k", None)
    if "prefetch_limit" in search.explicit:
        for name in _components_with_documents(pipeline) - {last}:
            if "top_k" in inputs.get(name, {}):
                data.setdefault(name, {})["top_k"] = search.prefetch_limit
                accepts.add("prefetch_limit")
    query_inputs = _query_inputs(pipeline, inputs)

    def run(query: str) -> Any:
        arguments = {name: dict(values) for name, values in data.items()}
        for component, name in query_inputs:
            arguments.setdefault(component, {})[name] = query
        return pipeline.run(arguments, include_outputs_from={last})[last]

    return BoundCall(run, accepts=frozenset(accepts), own_top_k=own_top_k)


def _query_inputs(pipeline: Any, inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (component, input) of all inputs for the query: required strings, or a known name."""
    query_inputs = []
    for component, sockets in inputs.items():
        for name, socket in sockets.items():
            is_text = socket["type"] in (str, Any) or str in get_args(socket["type"])
            if is_text and (socket["is_mandatory"] or name in QUERY_NAMES):
                query_inputs.append((component, name))
            elif socket["is_mandatory"]:
                raise InputError(
                    f"the required input {component}.{name} of the pipeline is not a string",
                    field="retriever",
                    hint="pass a function (query, top_k) that runs the pipeline",
                )
    if not query_inputs:
        raise InputError(
            f"{qualified_name(pipeline)} has no input for the query; components with inputs: "
            f"{', '.join(inputs) or 'none'}",
            field="retriever",
            hint="pass a function (query, top_k) that runs the pipeline",
        )
    return query_inputs


def _components_with_documents(pipeline: Any) -> set[str]:
    outputs = pipeline.outputs(include_components_with_connected_outputs=True)
    return {name for name, sockets in outputs.items() if "documents" in sockets}


def _last_with_documents(pipeline: Any) -> str:
    """Return the component that outputs documents and is not followed by another one."""
    successors: dict[str, set[str]] = {}
    for sender, receiver, *_ in pipeline.graph.edges:
        successors.setdefault(sender, set()).add(receiver)
    components = _components_with_documents(pipeline)
    last = sorted(name for name in components if not _all_successors(name, successors) & components)
    if len(last) != 1:
        raise InputError(
            "exactly one component at the end of the pipeline must output documents, got "
            f"{', '.join(last) or 'none'}",
            field="retriever",
            hint="end the pipeline with a single retriever, ranker or DocumentJoiner, or pass a "
            "function (query, top_k)",
        )
    return last[0]


def _all_successors(name: str, successors: dict[str, set[str]]) -> set[str]:
    """Return all components that follow a component, directly or not, without itself."""
    reached: set[str] = set()
    pending = [name]
    while pending:
        new = successors.get(pending.pop(), set()) - reached - {name}
        reached |= new
        pending += new
    return reached
