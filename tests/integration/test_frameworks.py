"""Real retrievers of LangChain, LlamaIndex, Haystack, Qdrant and LanceDB, used directly.

Nothing here goes over the network: the embedders are deterministic fakes.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["LANGSMITH_TRACING"] = "false"

import karat
from karat.live.protocol import Query, Search
from karat.live.retrievers.answers import Fields
from karat.live.retrievers.python import PythonRetriever
from karat.live.retrievers.resolve import resolve_retriever
from support.errors import refused

TEXTS = {
    "billing.md": "Refunds are paid within 14 days. The card that was charged is credited.\n\n"
    "Invoices are sent on the first of the month; é and 𝄞 are written as they are.\n\n"
    "A plan can be cancelled at any time. What was paid is not lost.",
    "shipping.md": "Parcels leave the house within two days.\n\n"
    "Abroad it takes a week, or two weeks where customs look into it. Refunds for lost parcels "
    "are paid at once.",
}
SEARCH = Search(top_k=3)


def asked(given, query="How are refunds paid?", search=SEARCH, fields=()):
    """Ask once, as the runner does, and return the retriever and its results."""
    retriever = resolve_retriever(given, search, fields=Fields.of(fields))
    returned = retriever.retrieve(Query("q", query))
    if retriever.is_async:
        returned = completed(returned)
    return retriever, retriever.parse(returned).results


def completed(awaitable):
    """Wait in a separate thread: a browser that other tests use keeps a loop in this one."""

    async def wait():
        return await awaitable

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(wait())).result()


def check_places(results):
    """Check that each result has an id, and that its text is the one at its offsets."""
    assert results
    for result in results:
        assert result.id
        assert result.text
        assert TEXTS[result.doc_id][result.start : result.end] == result.text


def overriding(own):
    """Expect the warning that karat replaces the k that a retriever is set to."""
    return pytest.warns(karat.KaratWarning, match=rf"\b{own}\b.*\b{SEARCH.top_k}\b")


def check_run(given):
    """Check that concurrent questions are timed and answered as if asked one at a time."""
    words = ("refunds", "parcels", "invoices", "customs", "card")
    queries = {f"{word}-{other}": f"{word} {other}" for word in words for other in words}
    run = karat.retrieve(given, queries, top_k=3, jobs=8, retries=0)
    assert run.errors is None
    assert run.timings is not None
    assert set(run.timings["stage"]) == {"total"}
    columns = ["item_id", "score", "doc_id", "start", "end", "text"]
    for query_id, query in queries.items():
        rows = run.results.filter(query_id=query_id).to_dicts()
        _, alone = asked(given, query)
        assert [tuple(row.get(column) for column in columns) for row in rows] == [
            (r.id, r.score, r.doc_id, r.start, r.end, r.text) for r in alone
        ]


def staged(query):
    """Return one id, in a stage with the name of the query."""
    with karat.stage(query):
        return ["a"]


def check_stages(retriever):
    """Check that each query has its own stage, however many run at a time."""
    queries = {f"q{number}": f"stage {number}" for number in range(12)}
    timings = karat.retrieve(retriever, queries, jobs=4).timings
    stages = timings.filter(timings["stage"] != "total").select("query_id", "stage").rows()
    assert sorted(stages) == sorted(queries.items())


class TestLangChain:
    @pytest.fixture
    def documents(self):
        from langchain_core.documents import Document
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        splitter = RecursiveCharacterTextSplitter(
            chunk_size=80, chunk_overlap=10, add_start_index=True
        )
        whole = [Document(text, metadata={"source": name}) for name, text in TEXTS.items()]
        return splitter.split_documents(whole)

    @pytest.fixture
    def store(self, documents):
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from langchain_core.vectorstores import InMemoryVectorStore

        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
        store.add_documents(documents, ids=[f"c{n}" for n in range(len(documents))])
        return store

    def test_vector_store_gives_scores_and_offsets(self, store):
        retriever, results = asked(store)
        check_places(results)
        theirs = store.similarity_search_with_score("How are refunds paid?", k=3)
        assert [(r.id, r.score, r.text) for r in results] == [
            (document.id, score, document.page_content) for document, score in theirs
        ]
        assert retriever.accepts == {"top_k"}
        assert not retriever.is_async
        check_run(store)

    def test_spans_are_scored_for_a_vector_store(self, store):
        text = TEXTS["billing.md"]
        gold = karat.Gold.of(
            [
                {
                    "query_id": "q",
                    "query": "refunds",
                    "spans": [{"doc_id": "billing.md", "start": 0, "end": len(text)}],
                }
            ]
        )
        scores = karat.evaluate(gold, store, ["span.recall@20"])
        assert scores.per_query["span.recall@20"].to_list() == [
            pytest.approx(1 - text.count("\n\n") * 2 / len(text))
        ]

    def test_retriever_of_a_store_gets_k_and_is_not_changed(self, store):
        theirs = store.as_retriever(search_kwargs={"k": 1})
        retriever, results = asked(theirs)
        check_places(results)
        assert [r.id for r in results] == [
            d.id for d in store.similarity_search("How are refunds paid?", k=3)
        ]
        assert theirs.search_kwargs == {"k": 1}
        assert retriever.accepts == {"top_k"}
        with overriding(1):
            check_run(theirs)
        check_run(store.as_retriever(search_kwargs={"k": 3}))
        check_run(store.as_retriever())

    def test_score_threshold_is_passed_to_a_retriever_that_has_one(
        self, store, documents, monkeypatch
    ):
        def similar(self, query, k=4, **settings):
            return list(zip(documents, (0.5, 0.3, 0.2), strict=False))[:k]

        monkeypatch.setattr(type(store), "_similarity_search_with_relevance_scores", similar)
        theirs = store.as_retriever(
            search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9}
        )
        search = Search(top_k=2, score_threshold=0.4, explicit=frozenset({"score_threshold"}))
        retriever, results = asked(theirs, search=search)
        assert [r.text for r in results] == [documents[0].page_content]
        assert retriever.accepts == {"top_k", "score_threshold"}

    def test_custom_retriever(self, documents):
        from langchain_core.retrievers import BaseRetriever

        class First(BaseRetriever):
            k: int = 1

            def _get_relevant_documents(self, query, *, run_manager):
                return documents[: self.k]

        retriever, results = asked(First())
        assert [r.text for r in results] == [d.page_content for d in documents[:3]]
        assert [r.id for r in results] == [None] * 3
        assert retriever.accepts == {"top_k"}
        assert retriever.settings == {"own_top_k": 1}
        for result in results:
            assert TEXTS[result.doc_id][result.start : result.end] == result.text

    def test_custom_retriever_with_a_parameter_top_k(self, documents):
        from langchain_core.retrievers import BaseRetriever

        class First(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager, top_k=1):
                return documents[:top_k]

        _, results = asked(First())
        assert len(results) == 3

    def test_chain_and_async_method(self, store):
        from langchain_core.runnables import RunnableLambda

        chain = store.as_retriever() | RunnableLambda(lambda found: found[:2])
        _, results = asked(chain)
        check_places(results)
        assert len(results) == 2
        retriever, again = asked(store.as_retriever(search_kwargs={"k": 2}).ainvoke)
        assert retriever.is_async
        assert again == results

    def test_stages_in_threads_of_a_chain_belong_to_their_query(self):
        from langchain_core.runnables import RunnableLambda, RunnableParallel

        parts = RunnableParallel(a=RunnableLambda(staged), b=RunnableLambda(staged))
        check_stages(parts | RunnableLambda(lambda found: found["a"]))

    def test_id_is_read_from_the_metadata(self, documents):
        from langchain_core.documents import Document

        given = [Document("a", metadata={"chunk_id": 7}), Document("b", id="x", metadata={"id": 8})]
        _, results = asked(lambda query: given)
        assert [r.id for r in results] == ["7", "x"]
        _, results = asked(lambda query: given[1:], fields=["id=metadata.id"])
        assert [r.id for r in results] == ["8"]


class TestLlamaIndex:
    @pytest.fixture
    def index(self):
        from llama_index.core import Document, MockEmbedding, Settings, VectorStoreIndex
        from llama_index.core.node_parser import SentenceSplitter

        class Letters(MockEmbedding):
            def _get_vector(self, text="") -> list[float]:
                return [text.count(letter) + 0.5 for letter in "aeionrst"]

            def _get_query_embedding(self, query):
                return self._get_vector(query)

            def _get_text_embedding(self, text):
                return self._get_vector(text)

            async def _aget_query_embedding(self, query):
                return self._get_vector(query)

        # Without a tokenizer it would download one.
        Settings.tokenizer = str.split
        parser = SentenceSplitter(chunk_size=14, chunk_overlap=2, tokenizer=str.split)
        return VectorStoreIndex.from_documents(
            [Document(text=text, doc_id=name) for name, text in TEXTS.items()],
            transformations=[parser],
            embed_model=Letters(embed_dim=8),
        )

    def test_index(self, index):
        retriever, results = asked(index)
        check_places(results)
        theirs = index.as_retriever(similarity_top_k=3).retrieve("How are refunds paid?")
        assert [(r.id, r.score, r.text) for r in results] == [
            (node.node_id, node.score, node.get_content()) for node in theirs
        ]
        assert retriever.accepts == {"top_k"}
        check_run(index)

    def test_retriever_gets_top_k_and_is_not_changed(self, index):
        theirs = index.as_retriever(similarity_top_k=1)
        retriever, results = asked(theirs)
        check_places(results)
        assert len(results) == 3
        assert theirs.similarity_top_k == 1
        assert retriever.settings == {"own_top_k": 1}
        retriever, again = asked(theirs.aretrieve)
        assert retriever.is_async
        assert again == results[:1]

    def test_query_engine_gives_its_sources(self, index):
        from llama_index.core.llms import MockLLM

        engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=1)
        retriever, results = asked(engine)
        check_places(results)
        assert len(results) == 3
        assert retriever.accepts == {"top_k"}
        assert engine.retriever.similarity_top_k == 1
        with overriding(1):
            check_run(engine)

    def test_custom_retriever(self):
        from llama_index.core.retrievers import BaseRetriever
        from llama_index.core.schema import IndexNode, NodeWithScore, TextNode

        class Own(BaseRetriever):
            def _retrieve(self, query_bundle):
                return [
                    NodeWithScore(node=TextNode(text="a", id_="1", metadata={"doc_id": "d"})),
                    NodeWithScore(node=IndexNode(text="b", id_="2", index_id="i"), score=0.5),
                ]

        retriever, results = asked(Own())
        assert [(r.id, r.text, r.score, r.doc_id, r.start) for r in results] == [
            ("1", "a", None, "d", None),
            ("2", "b", 0.5, None, None),
        ]
        assert retriever.accepts == frozenset()

    @pytest.mark.parametrize("use_async", [False, True])
    def test_stages_in_a_fusion_of_retrievers_belong_to_their_query(self, use_async):
        from llama_index.core.llms import MockLLM
        from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
        from llama_index.core.schema import NodeWithScore, TextNode

        class Staged(BaseRetriever):
            def _retrieve(self, query_bundle):
                (found,) = staged(query_bundle.query_str)
                return [NodeWithScore(node=TextNode(text=found, id_=found), score=1.0)]

        check_stages(
            QueryFusionRetriever(
                [Staged(), Staged()],
                llm=MockLLM(),
                num_queries=1,
                use_async=use_async,
                similarity_top_k=20,
            )
        )


class TestHaystack:
    @pytest.fixture
    def store(self):
        from haystack import Document
        from haystack.components.preprocessors import DocumentSplitter
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        splitter = DocumentSplitter(split_by="word", split_length=12, split_overlap=3)
        splitter.warm_up()
        whole = [Document(id=name, content=text) for name, text in TEXTS.items()]
        store = InMemoryDocumentStore()
        store.write_documents(splitter.run(whole)["documents"])
        return store

    @pytest.fixture
    def component(self, store):
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

        return InMemoryBM25Retriever(store, top_k=1)

    def test_component(self, component):
        retriever, results = asked(component)
        check_places(results)
        theirs = component.run("How are refunds paid?", top_k=3)["documents"]
        assert [(r.id, r.score) for r in results] == [(d.id, d.score) for d in theirs]
        assert len(results) == 3
        assert retriever.accepts == {"top_k"}
        with overriding(1):
            check_run(component)

    def test_pipeline_whose_documents_go_into_a_prompt(self, component):
        from haystack import Pipeline
        from haystack.components.builders import PromptBuilder

        pipeline = Pipeline()
        pipeline.add_component("retriever", component)
        pipeline.add_component(
            "prompt",
            PromptBuilder("{{question}} {{documents}}", required_variables=["documents"]),
        )
        pipeline.connect("retriever.documents", "prompt.documents")
        retriever, results = asked(pipeline)
        check_places(results)
        assert len(results) == 3
        assert retriever.accepts == {"top_k"}
        with overriding(1):
            check_run(pipeline)

    def test_last_component_gets_top_k_and_its_retrievers_the_prefetch_limit(self, store):
        from haystack import Pipeline
        from haystack.components.joiners import DocumentJoiner
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

        def made():
            pipeline = Pipeline()
            for name in ("one", "two"):
                pipeline.add_component(name, InMemoryBM25Retriever(store, top_k=1))
            pipeline.add_component("join", DocumentJoiner())
            pipeline.connect("one.documents", "join.documents")
            pipeline.connect("two.documents", "join.documents")
            return pipeline

        retriever, results = asked(made())
        assert len(results) == 1
        assert retriever.accepts == {"top_k"}
        wide = Search(top_k=3, prefetch_limit=5, explicit=frozenset({"prefetch_limit"}))
        retriever, results = asked(made(), search=wide)
        assert len(results) == 3
        assert retriever.accepts == {"top_k", "prefetch_limit"}

    def test_stages_in_threads_without_context_are_reported(self):
        from haystack import Document, component
        from haystack.components.retrievers import MultiQueryTextRetriever

        @component
        class Staged:
            @component.output_types(documents=list[Document])
            def run(self, query: str, top_k: int = 3, filters: dict | None = None):
                return {"documents": [Document(id=item) for item in staged(query)]}

        multiple = MultiQueryTextRetriever(retriever=Staged())
        with pytest.warns(karat.KaratWarning, match="karat.carry"):
            run = karat.retrieve(lambda query: multiple.run([query])["documents"], {"q": "text"})
        assert run.results["item_id"].to_list() == ["a"]
        assert run.timings["stage"].to_list() == ["total"]

    def test_component_without_a_text_input_is_refused(self, store):
        from haystack import Pipeline
        from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever

        with refused() as error:
            asked(InMemoryEmbeddingRetriever(store))
        assert "query_embedding" in str(error.value)
        pipeline = Pipeline()
        pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store))
        with refused() as error:
            asked(pipeline)
        assert "retriever.query_embedding" in str(error.value)

    def test_pipeline_with_two_last_components_is_refused(self, store):
        from haystack import Pipeline
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

        pipeline = Pipeline()
        for name in ("one", "two"):
            pipeline.add_component(name, InMemoryBM25Retriever(store))
        with refused() as error:
            asked(pipeline)
        assert "one, two" in str(error.value)


def test_qdrant_points():
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    client.create_collection(
        "chunks", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE)
    )
    cuts = [("billing.md", 0, 32), ("billing.md", 33, 71), ("shipping.md", 0, 40)]
    client.upsert(
        "chunks",
        [
            models.PointStruct(
                id=number,
                vector=[1.0, number / 10],
                payload={"doc_id": d, "start": s, "end": e, "text": TEXTS[d][s:e]},
            )
            for number, (d, s, e) in enumerate(cuts)
        ],
    )

    def search(query, top_k):
        return client.query_points("chunks", query=[1.0, 0.0], limit=top_k)

    _, results = asked(search)
    check_places(results)
    theirs = search("", 3).points
    assert [(r.id, r.score) for r in results] == [(str(p.id), p.score) for p in theirs]
    _, again = asked(lambda query, k: search(query, k).points)
    assert again == results
    check_run(search)
    client.close()


ROWS = [
    {"id": "c0", "doc_id": "billing.md", "start": 0, "end": 32},
    {"id": "c1", "doc_id": "billing.md", "start": 33, "end": 71},
    {"id": "c2", "doc_id": "shipping.md", "start": 42, "end": 172},
]


class TestLanceDB:
    @pytest.fixture
    def rows(self):
        return [
            row | {"text": TEXTS[row["doc_id"]][row["start"] : row["end"]], "vector": [n, 1.0]}
            for n, row in enumerate(ROWS)
        ]

    @pytest.fixture(params=["with vectors", "without vectors"])
    def stored_rows(self, rows, request):
        if request.param == "with vectors":
            return rows
        return [{key: row[key] for key in row if key != "vector"} for row in rows]

    def test_table_with_a_full_text_index(self, stored_rows, tmp_path):
        import lancedb
        from lancedb.index import FTS

        table = lancedb.connect(tmp_path).create_table("chunks", stored_rows)
        table.create_index("text", config=FTS())
        retriever, results = asked(table, "refunds paid")
        check_places(results)
        theirs = table.search("refunds paid", query_type="fts").limit(3).to_list()
        assert [(r.id, r.score) for r in results] == [(row["id"], row["_score"]) for row in theirs]
        assert retriever.accepts == {"top_k"}
        check_run(table)

    def test_async_table(self, stored_rows, tmp_path):
        import lancedb
        from lancedb.index import FTS

        table = lancedb.connect(tmp_path).create_table("chunks", stored_rows)
        table.create_index("text", config=FTS())

        async def ask():
            connection = await lancedb.connect_async(tmp_path)
            opened = await connection.open_table("chunks")
            retriever = PythonRetriever(opened, SEARCH, Fields())
            assert retriever.is_async
            return retriever.parse(await retriever.retrieve(Query("q", "refunds paid"))).results

        check_places(completed(ask()))

    def test_distance_is_not_a_score(self, rows, tmp_path):
        import lancedb

        table = lancedb.connect(tmp_path).create_table("chunks", rows)

        def search(query, top_k):
            return table.search([0.0, 1.0]).limit(top_k).to_list()

        _, results = asked(search)
        check_places(results)
        assert [(r.id, r.score) for r in results] == [("c0", None), ("c1", None), ("c2", None)]
        _, tabled = asked(lambda q, k: table.search([0.0, 1.0]).limit(k).to_arrow())
        assert tabled == results


def test_karat_imports_none_of_the_frameworks(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; from karat.live.retrievers.resolve import resolve_retriever;"
        "from karat.live.retrievers.answers import Fields; from karat.live.protocol import Search;"
        "resolve_retriever(lambda query: [], Search(), fields=Fields());"
        "names = 'langchain_core llama_index haystack qdrant_client lancedb aiohttp pydantic';"
        "print(set(names.split()) & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout == "set()\n"
