"""Python objects as retrievers; objects of libraries are recognized by their classes alone."""

from __future__ import annotations

import asyncio
import functools
import operator
import re
import sys
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

import karat
from karat.data.formats.native_run import ResultRow
from karat.live.protocol import Answer, AttemptError, Query, Retriever, Search
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.resolve import import_object, resolve_retriever
from support.errors import refused

GIVEN = Search(
    top_k=3,
    score_threshold=0.5,
    prefetch_limit=7,
    rerank_top_n=4,
    explicit=frozenset({"top_k", "score_threshold", "prefetch_limit", "rerank_top_n"}),
)
PLAIN = Search(top_k=3)


def made(target, search=PLAIN, fields=()):
    return resolve_retriever(target, search, fields=Fields.of(fields))


def returned(target, search=PLAIN):
    """Ask once, as the runner does; return the retriever and what it returned."""
    retriever = made(target, search)
    value = retriever.retrieve(Query("q", "refunds"))
    if retriever.is_async:

        async def awaited():
            return await value

        value = asyncio.run(awaited())
    return retriever, value


def refused_target(target):
    """Expect that something is refused as a retriever; return the error."""
    with refused(path=None, line=None, field="retriever") as caught:
        made(target)
    assert caught.value.hint
    return caught.value


def calls_of(function, search=PLAIN):
    """Return what a function returned, and the settings of the search that it takes."""
    retriever, value = returned(function, search)
    return value, set(retriever.accepts)


class TestFunctions:
    def test_query_alone(self):
        assert calls_of(lambda query: [query], GIVEN) == (["refunds"], set())

    @pytest.mark.parametrize("name", ["top_k", "k", "limit", "topk", "n_results"])
    def test_top_k_by_its_names(self, name):
        scope: dict[str, Any] = {}
        exec(f"def f(query, {name}=9): return [query, {name}]", scope)
        exec(f"def g(query, *, {name}): return [query, {name}]", scope)
        for function in (scope["f"], scope["g"]):
            assert calls_of(function) == (["refunds", 3], {"top_k"})

    def test_top_k_as_the_second_required_parameter(self):
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

    def test_threshold_that_was_not_set_keeps_the_default(self):
        def function(query, score_threshold=0.9):
            return [query, score_threshold]

        assert calls_of(function) == (["refunds", 0.9], set())
        assert calls_of(function, GIVEN) == (["refunds", 0.5], {"score_threshold"})

    def test_keyword_arguments_take_the_settings_that_were_set(self):
        def function(query, **settings):
            return settings

        def known(query, k, **settings):
            return [k, settings]

        assert calls_of(function) == ({}, set())
        one = Search(top_k=3, explicit=frozenset({"top_k"}))
        assert calls_of(function, one) == ({"top_k": 3}, {"top_k"})
        rest = {"score_threshold": 0.5, "prefetch_limit": 7, "rerank_top_n": 4}
        assert calls_of(known, GIVEN) == ([3, rest], {"top_k", *rest})

    def test_query_by_keyword(self):
        assert calls_of(lambda *, k, query: [query, k]) == (["refunds", 3], {"top_k"})
        assert calls_of(lambda **settings: settings) == ({"query": "refunds"}, set())
        assert calls_of(lambda *arguments: list(arguments)) == (["refunds"], set())

    def test_partials_methods_and_functions_written_in_c(self):
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

    def test_parameters_of_a_decorated_function(self):
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

    def test_required_parameter_without_a_value_is_refused(self):
        assert "'collection'" in refused_target(lambda query, k, collection: []).problem
        assert "'field'" in refused_target(lambda query, *, field: []).problem

    def test_function_without_a_query_is_refused(self):
        def function(*, k):
            raise AssertionError

        assert function.__qualname__ in refused_target(function).problem

    def test_generator_is_exhausted_while_it_is_timed(self):
        left = deque("ab")

        def yielding(query):
            while left:
                yield left.popleft()

        _, value = returned(yielding)
        assert (value, not left) == (["a", "b"], True)
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

        for target, expected in (
            (function, ["refunds", 3]),
            (functools.partial(function, top_k=5), ["refunds", 3]),
            (Index(), ["refunds", 3]),
            (Index().look, ["refunds"]),
            (yielding, ["refunds", "3"]),
            (functools.partial(yielding, k=1), ["refunds", "3"]),
        ):
            retriever, value = returned(target)
            assert retriever.is_async
            assert value == expected

    def test_plain_function_that_returns_a_coroutine_is_refused(self):
        async def function(query):
            return [query]

        with pytest.raises(AttemptError) as caught:
            returned(lambda query: function(query))
        assert (caught.value.kind, caught.value.retryable) == ("BadAnswer", False)


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
        retriever, value = returned(object_with("retrieve", "search", aretrieve=real))
        assert (value, retriever.is_async) == (["async"], True)
        assert returned(object_with("retrieve", asearch=real))[1] == ["retrieve"]
        # Async in name only: it would block all others.
        assert returned(object_with("aretrieve", "search"))[1] == ["search"]

    def test_call_takes_precedence_over_methods(self):
        class Index:
            def __call__(self, query, top_k):
                return [query, top_k]

            def search(self, query):
                raise AssertionError

        assert calls_of(Index()) == (["refunds", 3], {"top_k"})

    def test_classes_and_functions_that_make_a_retriever(self):
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

    def test_class_or_function_that_does_not_make_a_retriever_is_refused(self):
        class Needy:
            def __init__(self, index):
                raise AssertionError

        async def make():
            raise AssertionError

        error = refused_target(Needy)
        assert "Needy() " in error.problem
        assert "TypeError" in error.problem
        assert "'index'" in error.problem
        assert make.__qualname__ in refused_target(make).problem
        assert "<lambda>" in refused_target(lambda: lambda: ["a"]).problem
        assert "list" in refused_target(lambda: ["a"]).problem

    @pytest.mark.parametrize("target", [5, None, ["a"], {"q": ["a"]}, object()])
    def test_object_that_is_not_a_retriever_is_refused(self, target):
        assert type(target).__name__ in refused_target(target).problem

    def test_retriever_is_used_as_it_is(self):
        class Own(Retriever):
            def retrieve(self, query):
                raise AssertionError

            def parse(self, response):
                return Answer([])

        own = Own()
        assert made(own) is own

    def test_name_is_where_a_retriever_is_defined(self):
        class Index:
            def search(self, query):
                return []

        here = f"{__name__}:TestObjects.test_name_is_where_a_retriever_is_defined.<locals>.Index"
        assert made(Index()).name == here
        assert made(Index().search).name == f"{here}.search"
        assert made(functools.partial(Index().search)).name == f"{here}.search"
        assert made(Index).name == here

    def test_fields_are_part_of_the_settings(self):
        retriever = made(lambda query: [{"key": "a"}], fields=["id=key"])
        assert retriever.settings == {"fields": {"id": "key"}}
        assert retriever.parse(retriever.retrieve(Query("q", "x"))).results == [ResultRow(id="a")]
        assert made(lambda query: []).settings == {}


def like(name, module, *above, **members):
    """Make a class that looks like a class of a library."""
    return type(name, above or (object,), {"__module__": module, **members})


class TestLibraries:
    def test_langchain_store(self):
        def scored(self, query, k=4):
            return list(zip(self.documents, self.scores, strict=True))[:k]

        def not_there(self, *_, **__):
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
        retriever, value = returned(store)
        assert retriever.accepts == {"top_k"}
        assert retriever.parse(value).results == [
            ResultRow(name, score, "d", 5, 7, name * 2)
            for name, score in zip("abc", [0.9, 0.9, 0.5], strict=True)
        ]
        store.scores = [0.1, 0.1, 0.5, 0.9]  # distances that are called scores
        retriever, value = returned(store)
        assert [(r.id, r.score) for r in retriever.parse(value).results] == [
            (name, None) for name in "abc"
        ]
        store.scores = [0.1, 0.5, 0.2, 0.1]
        assert made(store).parse(returned(store)[1]).results[1].score == 0.5
        plain = like(
            "Plain", "somewhere", base, similarity_search=lambda self, query, k: documents[:k]
        )()
        assert [r.id for r in made(plain).parse(returned(plain)[1]).results] == ["a", "b", "c"]

    def test_langchain_retriever_is_changed_in_a_copy(self):
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
        called = like("Called", "x", base, _get_relevant_documents=lambda self, query, *, k: [])
        assert calls_of(called()) == (["refunds", {}, {"k": 3}], {"top_k"})
        wide = like("Wide", "x", base, model_fields={"top_k": None}, top_k=1)
        target = wide()
        assert calls_of(target) == (["refunds", {"top_k": 3}, {}], {"top_k"})
        assert vars(target) == {}
        assert made(target).settings == {"own_top_k": 1}
        stored = like("Stored", "x", base, model_fields={"search_kwargs": None}, search_type="mmr")
        target = stored()
        target.search_kwargs = {"filter": 1}
        assert calls_of(target, GIVEN) == (
            ["refunds", {"search_kwargs": {"filter": 1, "k": 3}}, {}],
            {"top_k"},
        )
        target.search_type = "similarity_score_threshold"
        (_, seen, _), takes = calls_of(target, GIVEN)
        assert seen["search_kwargs"] == {"filter": 1, "k": 3, "score_threshold": 0.5}
        assert takes == {"top_k", "score_threshold"}
        assert target.search_kwargs == {"filter": 1}
        assert made(target).settings == {}
        target.search_kwargs = {"k": 4}
        assert made(target).settings == {"own_top_k": 4}

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
        assert made(bare).settings == {}
        assert made(counted).settings == {"own_top_k": 1}
        target = index()
        target.retriever = counted
        assert calls_of(target) == (["refunds", 3], {"top_k"})
        target = engine()
        target.retriever = counted
        value, takes = calls_of(target)
        assert (value.source_nodes, takes) == (["refunds", 1], set())
        assert made(target).settings == {}

        def with_retriever(self, retriever):
            changed = type(self)()
            changed.retriever = retriever
            return changed

        target = like("Engine", "x", engine, with_retriever=with_retriever)()
        target.retriever = counted
        value, takes = calls_of(target)
        assert (value.source_nodes, takes) == (["refunds", 3], {"top_k"})
        assert made(target).settings == {"own_top_k": 1}
        assert counted.similarity_top_k == 1

    def test_own_k_that_top_k_replaces_is_a_warning(self, recwarn):
        base = like("BaseRetriever", "llama_index.core.base", retrieve=lambda self, query: [])
        target = base()
        target.similarity_top_k = 4
        assert karat.retrieve(target, {"q": "text"}, top_k=4).settings["own_top_k"] == 4
        assert not recwarn
        with pytest.warns(karat.KaratWarning, match=r"\b4\b.*\b9\b") as caught:
            run = karat.retrieve(target, {"q": "text"}, top_k=9)
        assert caught[0].filename == __file__
        assert run.settings["own_top_k"] == 4

    @pytest.mark.parametrize(
        ("column", "options"),
        [("fixed_size_list<item: float>[3]", {}), ("string", {"query_type": "fts"})],
    )
    def test_lancedb(self, column, options):
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

        def search(self, query, **how):
            assert how == options
            return Query(query)

        async def search_async(self, query, **how):
            assert how == options
            return AsyncQuery(query)

        async def schema_async(self):
            return schema

        schema = [SimpleNamespace(type=column)]
        table = like("Table", "lancedb.table", search=search, schema=schema)
        assert calls_of(table()) == (["refunds", 3], {"top_k"})
        table = like("AsyncTable", "lancedb.table", search=search_async, schema=schema_async)
        assert calls_of(table()) == (["refunds", 3], {"top_k"})


class FakePipeline:
    """What karat reads of a Haystack pipeline: inputs, outputs, connections and top_k."""

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

    def get_component(self, name):
        return SimpleNamespace(top_k={"first": 8, "ranker": 5}.get(name))

    def run(self, data, include_outputs_from):
        return {name: {"documents": ["a"], "data": data} for name in include_outputs_from}


FakePipeline.__name__ = "Pipeline"
TEXT, COUNT = (str, True), (int | None, False)
DOCUMENTS: dict[str, Any] = {"documents": {}}


class TestHaystack:
    def test_pipeline_gets_the_query_in_every_input_that_needs_it(self):
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
        retriever, value = returned(pipeline, GIVEN)
        assert retriever.accepts == {"top_k", "prefetch_limit"}
        assert retriever.settings == {"own_top_k": 5}
        assert value["data"] == {
            "embedder": {"text": "refunds"},
            "first": {"top_k": 7, "query": "refunds"},
            "ranker": {"query": "refunds", "top_k": 3},
            "prompt": {"question": "refunds"},
        }
        assert retriever.parse(value).results == [ResultRow(id="a")]
        retriever, value = returned(pipeline)
        assert value["data"]["first"] == {"query": "refunds"}
        assert retriever.accepts == {"top_k"}

    def test_last_component_is_found_in_a_loop(self):
        pipeline = FakePipeline(
            {"one": {"query": TEXT}},
            {"one": DOCUMENTS},
            [("one", "check"), ("check", "one")],
        )
        retriever, value = returned(pipeline)
        assert value["data"] == {"one": {"query": "refunds"}}
        assert retriever.accepts == frozenset()

    @pytest.mark.parametrize(
        ("inputs", "outputs", "value"),
        [
            ({"a": {"query": TEXT}}, {"a": {"embedding": {}}}, ""),
            ({"a": {"query": TEXT}}, {"a": DOCUMENTS, "b": DOCUMENTS}, "a, b"),
            ({"a": {"vector": (list[float], True)}}, {"a": DOCUMENTS}, "a.vector"),
            ({"a1": {"top_k": COUNT}}, {"a1": DOCUMENTS}, "a1"),
        ],
    )
    def test_pipeline_that_cannot_be_run_is_refused(self, inputs, outputs, value):
        assert value in refused_target(FakePipeline(inputs, outputs, [])).problem

    def test_component(self):
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
        assert made(Component()).settings == {}
        counted = Component()
        counted.top_k = 10
        assert made(counted).settings == {"own_top_k": 10}
        assert "query_embedding, top_k" in refused_target(Embedding()).problem


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder for modules with retrievers; modules imported meanwhile are forgotten."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


class TestSpecs:
    def test_name_in_a_module_of_the_current_folder(self, here):
        (here / "shapes_found.py").write_text(
            "class Index:\n    def search(self, query, k): return [query, k]\nindex = Index()\n"
        )
        for spec in ("shapes_found:Index", "shapes_found:index", "shapes_found:index.search"):
            assert calls_of(spec) == (["refunds", 3], {"top_k"})
            assert made(spec).name == spec

    def test_name_in_a_file_of_another_folder(self, here, monkeypatch):
        (here / "data").mkdir()
        (here / "data" / "shapes_words.py").write_text("WORD = 'fee'\n")
        # The name of an installed module does not matter.
        (here / "data" / "pyclbr.py").write_text(
            "from shapes_words import WORD\ndef find(query): return [query, WORD]\n"
        )
        (here / "work").mkdir()
        monkeypatch.chdir(here / "work")
        spec = "../data/pyclbr.py:find"
        assert calls_of(spec) == (["refunds", "fee"], set())
        assert made(spec).name == spec
        absolute = made(str(here / spec.removeprefix("../")))
        assert made(spec).settings["source_sha256"] == absolute.settings["source_sha256"]

    def test_errors_of_a_file_name_it(self, here):
        (here / "shapes_broken.py").write_text("def find(query): ...\n1 / 0\n")
        assert "not found" in refused_target("none.py:find").problem
        with refused(path=here / "shapes_broken.py", line=2, field="retriever") as caught:
            made("shapes_broken.py:find")
        assert "python shapes_broken.py" in caught.value.hint

    def test_module_of_a_package(self, here):
        (here / "shapes_package").mkdir()
        (here / "shapes_package" / "inner.py").write_text("def find(query): return [query]\n")
        assert calls_of("shapes_package.inner:find") == (["refunds"], set())

    @pytest.mark.parametrize(
        ("spec", "hint"),
        [
            ("src/own.py", ": src/own.py:NAME"),
            ("own.search", ": own:search"),
            ("localhost:8000/search", "http://localhost:8000/search"),
            ("./program --fast", "cmd:./program --fast"),
            ("", ""),
            ("own:", ""),
            (":search", ""),
            ("a b:c", ""),
        ],
    )
    def test_hint_shows_how_a_spec_is_written(self, here, spec, hint):
        (here / "program").touch()
        error = refused_target(spec)
        assert repr(spec) in error.problem
        assert hint in error.hint

    @pytest.mark.parametrize(
        ("role", "allowed", "refused"),
        [
            ("embedder", "wordllama", "bm25:"),
            ("reranker", "https://host/v1/rerank", "bm25:"),
            ("tokenizer", "package.module:name", "http"),
        ],
    )
    def test_hint_fits_the_role_of_the_object(self, here, role, allowed, refused):
        (here / "program").touch()
        for spec in ("cohere", "program"):
            with pytest.raises(karat.InputError) as caught:
                import_object(spec, role)
            assert caught.value.field == role
            assert allowed in caught.value.hint
            assert refused not in caught.value.hint
            assert "cmd:" not in caught.value.hint

    @pytest.mark.parametrize(
        "spec",
        [
            "https:/u:PW@host/x?api_key=KEY",
            " https://u:PW@host/x?api_key=KEY",
            "ftp://u:PW@host/x?index=faq&token=KEY",
            "https//u:PW@host/x?a=1;api_key=KEY",
            "htps://u:P/W@host/x?api_key=KEY",
            "http:u:P@W@host?api_key=KEY",
            "u:PW@host/x",
            "PW@host/x",
            "host.example/x?api_key=KEY",
            "https:",
        ],
    )
    def test_mistyped_address_is_named_as_one_without_its_secrets(self, spec):
        error = refused_target(spec)
        assert "mistyped URL" in error.problem
        assert "https://host/path" in error.hint
        assert not re.search("PW|P/W|P@W|KEY", str(error))

    @pytest.mark.parametrize(
        ("spec", "hint"),
        [
            ("localhost:80/x?token=KEY", "http://localhost:80/x?token=***"),
            (" cmd:./ask --token KEY", "cmd:./program"),
            ("./program --key KEY", "cmd:./program --key ***"),
        ],
    )
    def test_secrets_of_other_mistyped_retrievers_are_masked(self, here, spec, hint):
        (here / "program").touch()
        error = refused_target(spec)
        assert "KEY" not in str(error)
        assert hint in error.hint

    def test_current_folder_is_searched_last(self, here):
        (here / "shapes_last.py").write_text("def search(query): return []\n")
        made("shapes_last:search")
        assert sys.path[-1] == str(here)
        assert sys.path.count(str(here)) == 1

    @pytest.mark.parametrize("file", ["pyclbr.py", "pyclbr/__init__.py"])
    def test_file_that_an_installed_module_hides_is_named(self, here, file):
        (here / file).parent.mkdir(exist_ok=True)
        (here / file).write_text("def search(query): return []\n")
        error = refused_target("pyclbr:search")
        assert file in error.problem
        assert "rename" in error.hint
        with pytest.warns(karat.KaratWarning, match=re.escape(file)):
            made("pyclbr:readmodule")

    def test_missing_module_or_name_is_refused(self, here):
        (here / "shapes_bare.py").write_text("def search(query): return []\n")
        error = refused_target("shapes_absent.inner:search")
        assert "'shapes_absent'" in error.problem
        assert str(here) in error.hint
        for name in ("serach", "x"):  # a similar name is suggested, or all are listed
            error = refused_target(f"shapes_bare:{name}")
            assert repr(name) in error.problem
            assert "search" in error.hint

    @pytest.mark.parametrize(
        ("text", "line", "reason"),
        [
            ("\nimport shapes_missing\n", 2, "ModuleNotFoundError: "),
            ("x = 1\n\nraise RuntimeError('no index')\n", 3, "RuntimeError: no index"),
            ("x = 1\ndef (:\n", 2, "SyntaxError"),
            ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
            ("import json\njson.loads('')\n", 2, "JSONDecodeError"),
        ],
    )
    def test_module_that_fails_is_refused_with_its_line(self, here, text, line, reason):
        path = here / "shapes_broken.py"
        path.write_text(text)
        with refused(path=path, line=line, field="retriever") as caught:
            made("shapes_broken:search")
        assert reason in caught.value.problem
        assert caught.value.__cause__ is not None

    def test_headers_and_body_are_for_addresses_only(self):
        with refused(path=None, line=None, field="header"):
            resolve_retriever(lambda q: [], PLAIN, fields=Fields(), headers={"a": "b"})
        with refused(path=None, line=None, field="body"):
            resolve_retriever("cmd:true", PLAIN, fields=Fields(), body={"a": "b"})
        with refused(path=None, line=None, field="method"):
            resolve_retriever(lambda q: [], PLAIN, fields=Fields(), method="GET")

    def test_addresses_and_commands_are_recognized(self):
        pytest.importorskip("aiohttp")
        assert type(made("HTTP://127.0.0.1:1/x")).__name__ == "HttpRetriever"
        assert type(made("https://127.0.0.1:1/x")).__name__ == "HttpRetriever"
        assert type(made("cmd:true")).__name__ == "CommandRetriever"
