"""The cache of indexes: reuse, damage, failures, and `karat cache`."""

import json
import threading
import warnings
from contextlib import ExitStack

import pytest

import karat
from karat.cache import INDEXES, cache_folder, cached_entries, clear_cache
from karat.errors import InputError
from karat.live.retrievers import BM25, Dense, Hybrid, bm25
from support.live_server import send, serving
from support.retrieval import FAQ, QUERIES, letters


@pytest.fixture(autouse=True)
def cache_home(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home


@pytest.fixture
def built(monkeypatch):
    """Count how often an index is built."""
    counts = []
    build = bm25.BM25Index.build.__func__

    def counting(cls, *arguments):
        counts.append(1)
        return build(cls, *arguments)

    monkeypatch.setattr(bm25.BM25Index, "build", classmethod(counting))
    return counts


def answers(retriever):
    return [retriever.search(query) for query in QUERIES.values()]


def test_index_is_built_once_and_gives_the_same_answers(built):
    first = answers(BM25(FAQ))
    assert answers(BM25(FAQ)) == first
    assert answers(BM25(dict(reversed(FAQ.items())))) == first
    assert len(built) == 1
    (entry,) = cached_entries()
    assert entry.about == "4 documents, 4 items"


@pytest.mark.parametrize(
    "change",
    [
        {"k1": 1.2},
        {"b": 0.75},
        {"stemmer": "none"},
        {"stop_words": "none"},
        {"chunker": "fixed"},
        {"chunker": "fixed", "chunk_size": 10},
        {"corpus": FAQ | {"pay": "Pay by card."}},
        {"corpus": FAQ | {"new": "one"}},
        {"corpus": {f"{name}x": text for name, text in FAQ.items()}},
    ],
)
def test_other_corpus_or_settings_have_another_index(built, change):
    BM25(FAQ)
    options = {"corpus": FAQ, **change}
    BM25(options.pop("corpus"), **options)
    assert len(built) == 2


def test_other_version_of_a_library_has_another_index(built, monkeypatch):
    BM25(FAQ)
    monkeypatch.setattr(bm25, "version", lambda name: "9.9")
    BM25(FAQ)
    assert len(built) == 2


def damage_bytes(folder):
    path = folder / "data.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def damage_manifest(folder):
    (folder / "manifest.json").write_text("{")


def damage_size(folder):
    path = folder / "vocabulary.json"
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize(
    "damage",
    [
        damage_bytes,
        damage_manifest,
        damage_size,
        lambda folder: (folder / "indptr.npy").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
    ],
)
def test_damaged_index_is_reported_and_built_again(built, damage):
    first = answers(BM25(FAQ))
    (entry,) = cached_entries()
    damage(entry.path)
    with pytest.warns(karat.KaratWarning, match="is built again"):
        again = answers(BM25(FAQ))
    assert again == first
    assert answers(BM25(FAQ)) == first
    assert len(built) == 2


def test_no_index_is_stored_without_cache(built):
    BM25(FAQ, cache=False)
    assert cached_entries() == []
    BM25(FAQ)
    BM25(FAQ, cache=False)
    assert len(built) == 3


@pytest.mark.parametrize(
    "corpus", [{}, {"a": "text", "b": " \n"}, {"a": ""}], ids=["empty", "blank", "no text"]
)
def test_corpus_without_text_is_an_error_and_nothing_is_stored(corpus):
    for make in (BM25, lambda corpus: Dense(corpus, embedder=letters)):
        with pytest.raises(InputError):
            make(corpus)
    assert cached_entries() == []


def test_failing_build_stores_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_embedder.py").write_text("def embed(texts): raise OSError('no model')")
    for make in (Dense, Hybrid):
        with pytest.raises(InputError):
            make(FAQ, embedder="broken_embedder:embed")
    assert not (cache_folder() / INDEXES).exists()


def dimensions_that_change(handler, request):
    size = 3 if len(request["input"]) == 64 else 2  # the first batch, and the rest
    data = [{"embedding": [1.0] * size} for _ in request["input"]]
    send(handler, json.dumps({"data": data}).encode())


def busy_server(handler, request):
    send(handler, b"out of memory", 500)


CORPUS = [{"doc_id": f"d{n}", "text": "one"} for n in range(100)]
CANNOT_BUILD = {
    "empty corpus": ([], "bm25", [], None),
    "empty corpus, tantivy": ([], "bm25", ["--engine", "tantivy"], None),
    "document without text": ([*CORPUS, {"doc_id": "x", "text": " "}], "hybrid", [], None),
    "missing wordllama": (CORPUS, "hybrid", [], "embedders"),
    "missing tantivy": (CORPUS, "bm25", ["--engine", "tantivy"], "tantivy"),
    "missing usearch": (CORPUS, "dense", ["--exact-limit", "9"], "dense"),
    "failing endpoint": (CORPUS, "hybrid", busy_server, None),
    "changing dimension": (CORPUS, "hybrid", dimensions_that_change, None),
}


@pytest.mark.parametrize("case", CANNOT_BUILD)
def test_index_that_cannot_be_built_is_one_error_and_nothing_is_stored(
    case, tmp_path, monkeypatch, command
):
    rows, kind, options, missing = CANNOT_BUILD[case]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("karat.live.runner.FIRST_DELAY", 0.001)
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "q.tsv").write_text("q1\tone\n")
    if missing is not None:
        module = f"karat.live.retrievers.{missing}.find_spec"
        monkeypatch.setattr(module, lambda name: None)
    with ExitStack() as stack:
        if callable(options):
            server = stack.enter_context(serving(options))
            options = ["--embedder", server.url, "--embedding-model", "m"]
        words = ["run", "q.tsv", "-r", f"{kind}:docs.jsonl", "-o", "run.jsonl", *options]
        code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.count("error: ") == 1
    assert "Traceback" not in err
    assert cached_entries() == []
    assert not (tmp_path / "run.jsonl").exists()


def test_failing_store_leaves_nothing_and_is_a_warning(monkeypatch, built):
    def fail(self, folder):
        (folder / "part").write_text("x")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bm25.BM25Index, "save", fail)
    with pytest.warns(karat.KaratWarning, match="No space left"):
        assert BM25(FAQ).search("refund")
    assert list((cache_folder() / INDEXES).iterdir()) == []


def test_cache_that_cannot_be_written_is_a_warning(cache_home):
    (cache_home / "karat").write_text("")  # a file in the place of the folder, also for root
    with pytest.warns(karat.KaratWarning):
        assert BM25(FAQ).search("refund")


def test_changed_source_of_an_embedder_has_another_index(tmp_path, monkeypatch):
    import sys

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    results = []
    for size in (2, 3):
        (tmp_path / "sized.py").write_text(
            f"def embed(texts): return [[t.count(c) for c in 'abcdef'[:{size}]] for t in texts]"
        )
        sys.modules.pop("sized", None)
        Dense(FAQ, embedder="sized:embed")
        results.append(len(cached_entries()))
    sys.modules.pop("sized", None)
    assert results == [1, 2]


def test_two_threads_build_the_same_index():
    barrier = threading.Barrier(4)
    found = []

    def build():
        barrier.wait()
        found.append(answers(BM25(FAQ)))

    threads = [threading.Thread(target=build) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 4
    assert all(one == found[0] for one in found)
    assert len(cached_entries()) == 1
    assert answers(BM25(FAQ)) == found[0]


def test_index_that_another_process_stored_meanwhile_is_kept(monkeypatch):
    save = bm25.BM25Index.save

    def save_late(index, folder):
        monkeypatch.setattr(bm25.BM25Index, "save", save)
        BM25(FAQ)  # the other process
        save(index, folder)

    monkeypatch.setattr(bm25.BM25Index, "save", save_late)
    assert answers(BM25(FAQ)) == answers(BM25(FAQ))
    (entry,) = cached_entries()
    assert [path.name for path in entry.path.parent.iterdir()] == [entry.name]


# karat cache


def test_command_shows_place_and_size(command, cache_home):
    code, out, _ = command("cache")
    assert (code, out) == (0, f"{cache_home / 'karat'}: 0 B\n")
    BM25(FAQ)
    (entry,) = cached_entries()
    assert entry.bytes == sum(path.stat().st_size for path in entry.path.iterdir())
    code, out, _ = command("cache")
    assert code == 0
    assert entry.name in out
    assert "4 documents, 4 items" in out
    code, out, _ = command("cache", "--json")
    assert json.loads(out) == {
        "karat": karat.__version__,
        "folder": str(cache_home / "karat"),
        "bytes": entry.bytes,
        "entries": [{"name": entry.name, "about": entry.about, "bytes": entry.bytes}],
    }


def test_command_empties_the_cache(command, cache_home):
    BM25(FAQ)
    (cache_home / "karat" / "vega-1.js").write_text("x")
    (cache_home / "karat" / INDEXES / ".part-of-an-index").mkdir()
    (cache_home / "other").write_text("not of karat")
    code, out, _ = command("cache", "clear")
    assert code == 0
    assert out.startswith(f"removed from {cache_home / 'karat'}: ")
    assert len(out.splitlines()) == 4
    assert cached_entries() == []
    assert (cache_home / "other").exists()
    code, out, _ = command("cache", "clear", "--json")
    assert (code, json.loads(out)["removed"]) == (0, [])


def test_unknown_action_is_an_error(command):
    code, _, err = command("cache", "empty")
    assert code == 2
    assert err.startswith("error: ")


def test_links_in_the_cache_are_removed_without_their_targets(cache_home, tmp_path):
    (tmp_path / "kept").write_text("x")
    (cache_home / "karat").mkdir()
    (cache_home / "karat" / "link").symlink_to(tmp_path)
    assert [entry.name for entry in clear_cache()] == ["link"]
    assert (tmp_path / "kept").exists()


def test_without_a_home_folder_nothing_is_stored(monkeypatch, command):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr("karat.cache.Path.home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert cache_folder() is None
    assert cached_entries() == []
    assert BM25(FAQ).search("refund")
    code, out, _ = command("cache", "--json")
    assert (code, json.loads(out)["folder"]) == (0, None)
    code, out, _ = command("cache")
    assert code == 0
    assert "None" not in out
