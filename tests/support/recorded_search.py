"""A stub of Elasticsearch and OpenSearch with responses written by hand: no live engine runs here.

The responses have the form that the reference documentation of Elasticsearch 8 and 9 (search API,
kNN search) and of OpenSearch 2 and 3 (search API, k-NN query) shows. A server on loopback checks
the path of each request and plays them back.
"""

import json

from support.live_server import send, serving

DOCUMENTS = {
    "refunds-1": {"text": "Refunds take “five” days.", "doc_id": "refunds", "start": 0, "end": 25},
    "refunds-2": {"text": "No cash refunds.", "doc_id": "refunds", "start": 26, "end": 42},
}


def hit(name, score, index="faq", **extra):
    return {"_index": index, "_id": name, "_score": score, "_source": DOCUMENTS[name], **extra}


def found(*hits, took=3, timed_out=False, failed=0):
    """The response to a search; OpenSearch and Elasticsearch have the same keys."""
    return {
        "took": took,
        "timed_out": timed_out,
        "_shards": {"total": 2, "successful": 2 - failed, "skipped": 0, "failed": failed},
        "hits": {
            "total": {"value": len(hits), "relation": "eq"},
            "max_score": max((one["_score"] for one in hits), default=None),
            "hits": list(hits),
        },
    }


def error(status, kind, reason, cause=None):
    """The response to a request that the engine refuses."""
    root = cause or {"type": kind, "reason": reason, "index": "faq", "index_uuid": "_na_"}
    return status, {
        "error": {"root_cause": [root], "type": kind, "reason": reason},
        "status": status,
    }


NO_INDEX = error(404, "index_not_found_exception", "no such index [faq]")
NO_QUERY = error(
    400,
    "parsing_exception",
    "unknown query [macth] did you mean [match]?",
)
WRONG_DIMENSION = error(
    400,
    "search_phase_execution_exception",
    "all shards failed",
    {
        "type": "query_shard_exception",
        "reason": "failed to create query: the query vector has a different dimension [2] than "
        "the index vectors [3]",
    },
)
NO_CREDENTIALS = error(
    401, "security_exception", "missing authentication credentials for REST request [/faq/_search]"
)
ANSWER = found(hit("refunds-2", 1.3862942), hit("refunds-1", 0.9808292))


def playing(*responses, path="/faq/_search"):
    """Return a running server that answers with these responses; the last is repeated."""
    remaining = list(responses)

    def respond(handler, _request):
        if handler.path.partition("?")[0] != path:
            status, content = error(400, "illegal_argument_exception", f"path {handler.path}")
        else:
            response = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            status, content = response if isinstance(response, tuple) else (200, response)
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        send(handler, body, status, {"Content_Type": "application/json"})

    return serving(respond)


def address(server, engine="elasticsearch", index="faq"):
    """Return the spec of a recorded engine."""
    return f"{engine}:{server.url.removesuffix('search')}{index}"
