"""Anything in Python as a retriever; objects of libraries are told by their classes alone."""

from __future__ import annotations

import asyncio
import functools
import operator
import sys
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from karat.data.native_run import Result
from karat.errors import InputError
from karat.live.adapters.fields import Fields
from karat.live.adapters.spec import retriever_of
from karat.live.exchange import Answer, AttemptError, Question, Retriever, Search

GIVEN = Search(
    top_k=3,
    score_threshold=0.5,
    prefetch_limit=7,
    rerank_top_n=4,
    given=frozenset({"top_k", "score_threshold", "prefetch_limit", "rerank_top_n"}),
)
PLAIN = Search(top_k=3)


def made(given, search=PLAIN, fields=()):
    return retriever_of(given, search, fields=Fields.of(fields))


def returned(given, search=PLAIN):
    """Ask once, as the runner does, and return the retriever and what came back."""
    retriever = made(given, search)
    got = retriever.ask(Question("q", "refunds"))
    if retriever.is_async:

        async def awaited():
            return await got

        got = asyncio.run(awaited())
    return retriever, got


def calls_of(function, search=PLAIN):
    """Return what a function was called with, and what of the search it takes."""
    retriever, got = returned(function, search)
    return got, set(retriever.takes)


class TestFunctions:
    def test_the_query_alone(self):
        assert calls_of(lambda query: [query], GIVEN) == (["refunds"], set())

    @pytest.mark.parametrize("name", ["top_k", "k", "limit", "topk", "n_results"])
    def test_top_k_by_its_names(self, name):
        scope: dict[str, Any] = {}
        exec(f"def f(query, {name}=9): return [query, {name}]", scope)
        exec(f"def g(query, *, {name}): return [query, {name}]", scope)
        for function in (scope["f"], scope["g"]):
            assert calls_of(function) == (["refunds", 3], {"top_k"})

    def test_top_k_as_the_second_parameter_that_must_be_given(self):
        def plain(question, many):
            return [question, many]

        def by_place(question, many, /):
            return [question, many]

        def named_elsewhere(question, many=5, k=2):
            return [question, many, k]

        def optional(question, many=5):
            return [question, many]

        assert calls_of(plain) == (["refunds", 3], {"top_k"})
        assert calls_of(by_place) == (["refunds", 3], {"top_k"})
        assert calls_of(named_elsewhere) == (["refunds", 5, 3], {"top_k"})
        assert calls_of(optional) == (["refunds", 5], set())

    def test_all_settings_by_name(self):
        def function(query, top_k, score_threshold, prefetch_limit=1, rerank_top_n=1):
            return [query, top_k, score_threshold, prefetch_limit, rerank_top_n]

        every = {"top_k", "score_threshold", "prefetch_limit", "rerank_top_n"}
        assert calls_of(function, GIVEN) == (["refunds", 3, 0.5, 7, 4], every)
        assert calls_of(function) == (["refunds", 3, None, 100, 20], every)

    def test_a_threshold_that_nobody_set_leaves_the_default_alone(self):
        def function(query, score_threshold=0.9):
            return [query, score_threshold]

        assert calls_of(function) == (["refunds", 0.9], set())
        assert calls_of(function, GIVEN) == (["refunds", 0.5], {"score_threshold"})

    def test_keywords_take_what_was_set(self):
        def function(query, **settings):
            return settings

        def known(query, k, **settings):
            return [k, settings]

        assert calls_of(function) == ({}, set())
        one = Search(top_k=3, given=frozenset({"top_k"}))
        assert calls_of(function, one) == ({"top_k": 3}, {"top_k"})
        rest = {"score_threshold": 0.5, "prefetch_limit": 7, "rerank_top_n": 4}
        assert calls_of(known, GIVEN) == ([3, rest], {"top_k", *rest})

    def test_a_query_by_keyword(self):
        assert calls_of(lambda *, k, query: [query, k]) == (["refunds", 3], {"top_k"})
        assert calls_of(lambda **settings: settings) == ({"query": "refunds"}, set())
        assert calls_of(lambda *given: list(given)) == (["refunds"], set())

    def test_partials_methods_and_what_is_written_in_c(self):
        def function(index, query, top_k=1, *, field):
            return [index, query, top_k, field]

        class Index:
            def look(self, query, k):
                return [query, k]

            @staticmethod
            def plain(query):
                return [query]

            @classmethod
            def of(cls, query, limit):
                return [query, limit]

        bound = functools.partial(function, "index", field="body")
        assert calls_of(bound) == (["index", "refunds", 3, "body"], {"top_k"})
        assert calls_of(Index().look) == (["refunds", 3], {"top_k"})
        assert calls_of(Index.plain) == (["refunds"], set())
        assert calls_of(Index.of) == (["refunds", 3], {"top_k"})
        assert calls_of({"refunds": ["a"]}.get) == (["a"], set())
        assert calls_of(operator.itemgetter(0)) == ("r", set())

    def test_a_decorated_function_shows_its_parameters(self):
        def decorated(function):
            @functools.wraps(function)
            def inner(*places, **names):
                return function(*places, **names)

            return inner

        @decorated
        def function(query, top_k):
            return [query, top_k]

        assert calls_of(function) == (["refunds", 3], {"top_k"})
        assert calls_of(functools.lru_cache(function)) == (["refunds", 3], {"top_k"})

    def test_a_parameter_that_karat_has_nothing_for(self):
        with pytest.raises(InputError, match="needs 'collection', which karat has nothing for"):
            made(lambda query, k, collection: [])
        with pytest.raises(InputError, match="needs 'field'"):
            made(lambda query, *, field: [])
        with pytest.raises(InputError, match="takes no query"):
            made(lambda *, k: [])

    def test_what_it_yields_is_taken_while_it_is_timed(self):
        left = deque("ab")

        def yielding(query):
            while left:
                yield left.popleft()

        _, got = returned(yielding)
        assert (got, not left) == (["a", "b"], True)
        assert returned(lambda query: map(str, [1, 2]))[1] == ["1", "2"]


class TestAsync:
    def test_functions_methods_partials_and_generators(self):
        async def function(query, top_k):
            await asyncio.sleep(0)
            return [query, top_k]

        class Index:
            async def __call__(self, query, k):
                return [query, k]

            async def look(self, query):
                yield query

        async def yielding(query, k):
            yield query
            yield str(k)

        for given, expected in (
            (function, ["refunds", 3]),
            (functools.partial(function, top_k=5), ["refunds", 3]),
            (Index(), ["refunds", 3]),
            (Index().look, ["refunds"]),
            (yielding, ["refunds", "3"]),
            (functools.partial(yielding, k=1), ["refunds", "3"]),
        ):
            retriever, got = returned(given)
            assert retriever.is_async
            assert got == expected

    def test_a_plain_function_that_returns_a_coroutine_is_told_to_be_async(self):
        async def function(query):
            return [query]

        with pytest.raises(AttemptError, match="define it with async def") as error:
            returned(lambda query: function(query))
        assert not error.value.again


class TestObjects:
    def test_methods_in_their_order(self):
        def object_with(*names, **methods):
            return SimpleNamespace(
                **{name: lambda query, name=name: [name] for name in names}, **methods
            )

        async def real(query):
            return ["async"]

        assert returned(object_with("search", "retrieve", "asearch"))[1] == ["retrieve"]
        assert returned(object_with("search"))[1] == ["search"]
        retriever, got = returned(object_with("retrieve", "search", aretrieve=real))
        assert (got, retriever.is_async) == (["async"], True)
        assert returned(object_with("retrieve", asearch=real))[1] == ["retrieve"]
        # Async in name only: it would hold up all others.
        assert returned(object_with("aretrieve", "search"))[1] == ["search"]

    def test_a_call_goes_before_methods(self):
        class Index:
            def __call__(self, query, top_k):
                return [query, top_k]

            def search(self, query):
                raise AssertionError

        assert calls_of(Index()) == (["refunds", 3], {"top_k"})

    def test_classes_and_functions_that_make_one(self):
        class Index:
            made = 0

            def __init__(self):
                type(self).made += 1

            def search(self, query, limit):
                return [query, limit]

        def make():
            return Index().search

        assert calls_of(Index) == (["refunds", 3], {"top_k"})
        assert Index.made == 1
        assert calls_of(make) == (["refunds", 3], {"top_k"})
        assert calls_of(functools.partial(lambda index: index, Index())) == (
            ["refunds", 3],
            {"top_k"},
        )

    def test_what_cannot_be_made_is_said(self):
        class Needy:
            def __init__(self, index):
                raise AssertionError

        async def make():
            raise AssertionError

        with pytest.raises(InputError, match=r"Needy\(\) failed: TypeError.*'index'"):
            made(Needy)
        with pytest.raises(InputError, match="is async and takes no query"):
            made(make)
        with pytest.raises(InputError, match="takes no query"):
            made(lambda: lambda: ["a"])
        with pytest.raises(InputError, match="list is no retriever"):
            made(lambda: ["a"])

    @pytest.mark.parametrize("given", [5, None, ["a"], {"q": ["a"]}, object()])
    def test_what_is_no_retriever(self, given):
        with pytest.raises(InputError, match="is no retriever\n  hint: give a function"):
            made(given)

    def test_a_retriever_is_taken_as_it_is(self):
        class Own(Retriever):
            def ask(self, question):
                raise AssertionError

            def read(self, returned):
                return Answer([])

        own = Own()
        assert made(own) is own

    def test_names_are_where_it_was_defined(self):
        class Index:
            def search(self, query):
                return []

        here = f"{__name__}:TestObjects.test_names_are_where_it_was_defined.<locals>.Index"
        assert made(Index()).name == here
        assert made(Index().search).name == f"{here}.search"
        assert made(functools.partial(Index().search)).name == f"{here}.search"
        assert made(Index).name == here

    def test_fields_stand_in_the_settings(self):
        retriever = made(lambda query: [{"key": "a"}], fields=["id=key"])
        assert retriever.settings == {"fields": {"id": "key"}}
        assert retriever.read(retriever.ask(Question("q", "x"))).results == [Result(id="a")]
        assert made(lambda query: []).settings == {}


def like(name, module, *above, **members):
    """Make a class that looks like one of a library."""
    return type(name, above or (object,), {"__module__": module, **members})


class TestLibraries:
    def test_a_langchain_store(self):
        def scored(self, query, k=4):
            return list(zip(self.documents, self.scores, strict=True))[:k]

        def not_there(self, *given, **named):
            raise NotImplementedError

        base = like(
            "VectorStore",
            "langchain_core.vectorstores.base",
            similarity_search_with_score=not_there,
        )
        documents = [
            SimpleNamespace(id=i, page_content=i * 2, metadata={"source": "d", "start_index": 5})
            for i in "abcd"
        ]
        store = like("Store", "somewhere", base, similarity_search_with_score=scored)()
        store.documents, store.scores = documents, [0.9, 0.9, 0.5, 0.4]
        retriever, got = returned(store)
        assert retriever.takes == {"top_k"}
        assert retriever.read(got).results == [
            Result(name, score, "d", 5, 7, name * 2)
            for name, score in zip("abc", [0.9, 0.9, 0.5], strict=True)
        ]
        store.scores = [0.1, 0.1, 0.5, 0.9]  # distances by the name of scores
        retriever, got = returned(store)
        assert [(r.id, r.score) for r in retriever.read(got).results] == [
            (name, None) for name in "abc"
        ]
        store.scores = [0.1, 0.5, 0.2, 0.1]
        assert made(store).read(returned(store)[1]).results[1].score == 0.5
        plain = like(
            "Plain", "somewhere", base, similarity_search=lambda self, query, k: documents[:k]
        )()
        assert [r.id for r in made(plain).read(returned(plain)[1]).results] == ["a", "b", "c"]

    def test_a_langchain_retriever_is_changed_in_a_copy(self):
        def copied(self, update):
            changed = type(self)()
            vars(changed).update(vars(self) | update)
            return changed

        base = like(
            "BaseRetriever",
            "langchain_core.retrievers",
            model_copy=copied,
            model_fields={},
            invoke=lambda self, query, **settings: [query, vars(self), settings],
        )
        bare = like("Bare", "x", base, _get_relevant_documents=lambda self, query: [])
        assert calls_of(bare()) == (["refunds", {}, {}], set())
        told = like("Told", "x", base, _get_relevant_documents=lambda self, query, *, k: [])
        assert calls_of(told()) == (["refunds", {}, {"k": 3}], {"top_k"})
        wide = like("Wide", "x", base, model_fields={"top_k": None})
        given = wide()
        assert calls_of(given) == (["refunds", {"top_k": 3}, {}], {"top_k"})
        assert vars(given) == {}
        stored = like("Stored", "x", base, model_fields={"search_kwargs": None}, search_type="mmr")
        given = stored()
        given.search_kwargs = {"filter": 1}
        assert calls_of(given, GIVEN) == (
            ["refunds", {"search_kwargs": {"filter": 1, "k": 3}}, {}],
            {"top_k"},
        )
        given.search_type = "similarity_score_threshold"
        (_, seen, _), takes = calls_of(given, GIVEN)
        assert seen["search_kwargs"] == {"filter": 1, "k": 3, "score_threshold": 0.5}
        assert takes == {"top_k", "score_threshold"}
        assert given.search_kwargs == {"filter": 1}

    def test_llama_index(self):
        module = "llama_index.core.base"
        retriever = like(
            "BaseRetriever",
            module,
            retrieve=lambda self, query: [query, getattr(self, "similarity_top_k", None)],
        )
        engine = like(
            "BaseQueryEngine",
            module,
            query=lambda self, query: SimpleNamespace(source_nodes=self.retriever.retrieve(query)),
        )
        index = like(
            "BaseIndex", module, as_retriever=lambda self, similarity_top_k: self.retriever
        )
        bare, counted = retriever(), retriever()
        counted.similarity_top_k = 1
        assert calls_of(bare) == (["refunds", None], set())
        assert calls_of(counted) == (["refunds", 3], {"top_k"})
        assert counted.similarity_top_k == 1
        given = index()
        given.retriever = counted
        assert calls_of(given) == (["refunds", 3], {"top_k"})
        given = engine()
        given.retriever = counted
        got, takes = calls_of(given)
        assert (got.source_nodes, takes) == (["refunds", 1], set())

        def with_retriever(self, retriever):
            changed = type(self)()
            changed.retriever = retriever
            return changed

        given = like("Engine", "x", engine, with_retriever=with_retriever)()
        given.retriever = counted
        got, takes = calls_of(given)
        assert (got.source_nodes, takes) == (["refunds", 3], {"top_k"})
        assert counted.similarity_top_k == 1

    def test_lancedb(self):
        class Query:
            def __init__(self, query):
                self.query = query

            def limit(self, k):
                return SimpleNamespace(to_list=lambda: [self.query, k])

        class AsyncQuery(Query):
            def limit(self, k):
                async def to_list():
                    return [self.query, k]

                return SimpleNamespace(to_list=to_list)

        async def search(self, query):
            return AsyncQuery(query)

        table = like("Table", "lancedb.table", search=lambda self, query: Query(query))
        assert calls_of(table()) == (["refunds", 3], {"top_k"})
        assert calls_of(like("AsyncTable", "lancedb.table", search=search)()) == (
            ["refunds", 3],
            {"top_k"},
        )


class FakePipeline:
    """A pipeline of Haystack as far as karat looks at it: who gives what to whom."""

    __module__ = "haystack.core.pipeline"

    def __init__(self, inputs, outputs, edges):
        self.graph = SimpleNamespace(edges=[(*edge, "key") for edge in edges])
        self._inputs, self._outputs = inputs, outputs

    def inputs(self):
        return {
            name: {
                socket: {"type": kind, "is_mandatory": mandatory}
                for socket, (kind, mandatory) in sockets.items()
            }
            for name, sockets in self._inputs.items()
        }

    def outputs(self, *, include_components_with_connected_outputs):
        assert include_components_with_connected_outputs
        return self._outputs

    def run(self, data, include_outputs_from):
        return {name: {"documents": ["a"], "data": data} for name in include_outputs_from}


FakePipeline.__name__ = "Pipeline"
TEXT, COUNT = (str, True), (int | None, False)
DOCUMENTS: dict[str, Any] = {"documents": {}}


class TestHaystack:
    def test_a_pipeline_is_given_the_query_wherever_it_is_needed(self):
        pipeline = FakePipeline(
            {
                "embedder": {"text": TEXT, "prefix": (str, False)},
                "first": {"top_k": COUNT, "query": (str | None, False)},
                "ranker": {"query": TEXT, "top_k": COUNT},
                "prompt": {"question": (Any, False), "style": (Any, False)},
            },
            {"first": DOCUMENTS, "ranker": DOCUMENTS, "embedder": {"embedding": {}}},
            [("embedder", "first"), ("first", "ranker"), ("ranker", "prompt")],
        )
        retriever, got = returned(pipeline, GIVEN)
        assert retriever.takes == {"top_k", "prefetch_limit"}
        assert got["data"] == {
            "embedder": {"text": "refunds"},
            "first": {"top_k": 7, "query": "refunds"},
            "ranker": {"query": "refunds", "top_k": 3},
            "prompt": {"question": "refunds"},
        }
        assert retriever.read(got).results == [Result(id="a")]
        retriever, got = returned(pipeline)
        assert got["data"]["first"] == {"query": "refunds"}
        assert retriever.takes == {"top_k"}

    def test_a_loop_does_not_hide_who_is_last(self):
        pipeline = FakePipeline(
            {"one": {"query": TEXT}},
            {"one": DOCUMENTS},
            [("one", "check"), ("check", "one")],
        )
        retriever, got = returned(pipeline)
        assert got["data"] == {"one": {"query": "refunds"}}
        assert retriever.takes == frozenset()

    @pytest.mark.parametrize(
        ("inputs", "outputs", "problem"),
        [
            ({"a": {"query": TEXT}}, {"a": {"embedding": {}}}, "none does"),
            ({"a": {"query": TEXT}}, {"a": DOCUMENTS, "b": DOCUMENTS}, "a, b all do"),
            ({"a": {"vector": (list[float], True)}}, {"a": DOCUMENTS}, "a.vector must be given"),
            ({"a": {"top_k": COUNT}}, {"a": DOCUMENTS}, "takes a query; they are a"),
        ],
    )
    def test_a_pipeline_that_cannot_be_asked(self, inputs, outputs, problem):
        with pytest.raises(InputError, match=problem):
            made(FakePipeline(inputs, outputs, []))

    def test_a_component(self):
        class Component:
            __haystack_input__ = None
            warm = False

            def warm_up(self):
                self.warm = True

            def run(self, query, filters=None, top_k=None):
                return {"documents": [query, top_k, self.warm]}

        class Embedding:
            __haystack_input__ = None

            def run(self, query_embedding, top_k=None):
                raise AssertionError

        assert calls_of(Component()) == ({"documents": ["refunds", 3, True]}, {"top_k"})
        with pytest.raises(InputError, match="takes query_embedding, top_k, and no text"):
            made(Embedding())


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of modules to name retrievers in; what was imported is forgotten."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


class TestSpecs:
    def test_a_name_in_a_module_of_the_current_folder(self, here):
        (here / "shapes_found.py").write_text(
            "class Index:\n    def search(self, query, k): return [query, k]\nindex = Index()\n"
        )
        for spec in ("shapes_found:Index", "shapes_found:index", "shapes_found:index.search"):
            assert calls_of(spec) == (["refunds", 3], {"top_k"})
            assert made(spec).name == spec

    def test_a_module_of_a_package(self, here):
        (here / "shapes_package").mkdir()
        (here / "shapes_package" / "inner.py").write_text("def find(query): return [query]\n")
        assert calls_of("shapes_package.inner:find") == (["refunds"], set())

    @pytest.mark.parametrize(
        ("spec", "hint"),
        [
            ("own.py:search", "name the module and not its file: own:search"),
            ("src/own.py", "name the module and not its file: src.own:NAME"),
            ("own.search", "a colon stands before the name: own:search"),
            ("localhost:8000/search", "an address begins so: http://localhost:8000/search"),
            ("./program --fast", "a program is named so: cmd:./program --fast"),
            ("", "write package.module:name"),
            ("own:", "write package.module:name"),
            (":search", "write package.module:name"),
            ("a b:c", "write package.module:name"),
        ],
    )
    def test_what_is_written_otherwise(self, here, spec, hint):
        (here / "program").touch()
        with pytest.raises(InputError) as error:
            made(spec)
        assert hint in error.value.hint

    def test_a_module_or_a_name_that_is_not_there(self, here):
        (here / "shapes_bare.py").write_text("def search(query): return []\n")
        with pytest.raises(InputError, match="there is no module 'shapes_absent'"):
            made("shapes_absent.inner:search")
        with pytest.raises(InputError, match="did you mean search"):
            made("shapes_bare:serach")
        with pytest.raises(InputError, match="it has search"):
            made("shapes_bare:x")

    @pytest.mark.parametrize(
        ("text", "line", "problem"),
        [
            ("\nimport shapes_missing\n", 2, "ModuleNotFoundError: No module named"),
            ("x = 1\n\nraise RuntimeError('no index')\n", 3, "RuntimeError: no index"),
            ("x = 1\ndef (:\n", 2, "SyntaxError"),
            ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
            ("import json\njson.loads('')\n", 2, "JSONDecodeError"),
        ],
    )
    def test_a_module_that_fails_says_where(self, here, text, line, problem):
        (here / "shapes_broken.py").write_text(text)
        with pytest.raises(InputError) as error:
            made("shapes_broken:search")
        assert problem in error.value.problem
        assert error.value.path == str(here / "shapes_broken.py")
        assert error.value.line == line
        assert error.value.__cause__ is not None

    def test_headers_are_for_addresses(self):
        with pytest.raises(InputError, match="only a retriever behind HTTP"):
            retriever_of(lambda q: [], PLAIN, fields=Fields(), headers={"a": "b"})
        with pytest.raises(InputError, match="only a retriever behind HTTP"):
            retriever_of("cmd:true", PLAIN, fields=Fields(), body={"a": "b"})

    def test_addresses_and_commands_are_handed_on(self):
        pytest.importorskip("aiohttp")
        assert type(made("HTTP://127.0.0.1:1/x")).__name__ == "HttpRetriever"
        assert type(made("https://127.0.0.1:1/x")).__name__ == "HttpRetriever"
        assert type(made("cmd:true")).__name__ == "CommandRetriever"
