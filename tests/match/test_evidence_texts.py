"""Text evidence: every decision is the same as that of plain difflib."""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections import Counter
from difflib import SequenceMatcher
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from karat.match.text import (
    MATCH_KINDS,
    Matching,
    TextLists,
    cascade,
    cover,
    covers,
    locate_in_chunk,
    nearest,
    normalize,
    ratio,
    ratios,
)
from karat.match.text.cascade import classify_pairs
from karat.match.text.normalize import original_offsets
from oracles import texts as text_oracle
from support.effort import FULL, examples
from support.errors import refused
from support.paths import SHARED_DATA

PAIRS = 40_000 if FULL else 4_000

FINANCEBENCH = SHARED_DATA / "financebench/financebench_open_source.jsonl"

# Few letters, so that texts are similar by chance; spaces, marks and letters whose case, width or
# length changes when they are normalised.
LETTERS = "abAB 12.,\n\t\u00a0\u2009\u200b\u200d\ufeffİıßΣςéÉe\u0301ﬁ²½¨😀👩🏽漢字ｶﾞ한한\U0001d400"
texts = st.text(LETTERS, max_size=30) | st.text("ab ", max_size=60) | st.text(max_size=20)
thresholds = st.sampled_from([0.01, 0.3, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 1.0]) | st.floats(
    0, 1, exclude_min=True
)


@st.composite
def edited(draw):
    """A text, and another made from it by a few deletions and insertions."""
    text = draw(texts)
    other = text
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(other)))
        gone = draw(st.integers(0, 4))
        other = other[:at] + draw(st.text(LETTERS, max_size=4)) + other[at + gone :]
    return text, other


pairs = edited() | st.tuples(texts, texts)


def decided(pair, **rule):
    code = classify_pairs(*(np.array([one], object) for one in pair), Matching(**rule), workers=1)[
        0
    ]
    return MATCH_KINDS[code] if code else None


# --- normalising ---------------------------------------------------------------------------------


@examples(100, 1500)
@given(texts, st.booleans(), st.booleans(), st.booleans())
@example("ΑΣ ΑΣΑ", False, True, False)
def test_normalised_texts_match_the_oracle(text, casefold, nfkc, zero_width):
    options = {"casefold": casefold, "nfkc": nfkc, "zero_width": zero_width}
    normal = normalize(text, **options)
    assert normal == text_oracle.normalize(text, **options)
    assert Matching(**options).normalize(text) == normal


@pytest.mark.parametrize(
    ("text", "options", "normal"),
    [
        ("14\u00a0days\u2009\n left ", {}, "14 days left"),
        ("re\u200bfund\ufeff", {}, "re\u200bfund\ufeff"),
        ("re\u200bfund\ufeff", {"zero_width": True}, "refund"),
        ("e\u200d\u0301", {"zero_width": True, "nfkc": True}, "é"),
        ("İ", {}, "i\u0307"),
        ("Straße", {}, "straße"),
        ("Straße", {"casefold": True}, "strasse"),
        ("ﬁve ² ㎏", {"nfkc": True}, "five 2 kg"),
        ("a ¨b¨", {"nfkc": True}, "a \u0308b \u0308"),
        ("\u200b\u200b", {"zero_width": True}, ""),
    ],
)
def test_normalising_options(text, options, normal):
    assert normalize(text, **options) == normal


@examples(100, 1500)
@given(
    texts | st.text(st.characters(blacklist_categories=["Cs"]), max_size=8),
    *[st.booleans()] * 3,
    st.data(),
)
def test_every_normalised_character_is_traced_to_its_source(text, casefold, nfkc, zero_width, data):
    options = {"casefold": casefold, "nfkc": nfkc, "zero_width": zero_width}
    normal = normalize(text, **options)
    starts, ends = original_offsets(text, **options)
    assert starts.size == ends.size == len(normal)
    assume(normal)
    first = data.draw(st.integers(0, len(normal) - 1))
    last = data.draw(st.integers(first, len(normal) - 1))
    assert starts[first] <= starts[last]
    # The stretch is normalised to those characters; at its ends, one character may have become
    # several. (The form of a sigma depends on what follows it.)
    stretch = normalize(text[starts[first] : ends[last]], **options)
    assert normal[first : last + 1].replace("ς", "σ").strip() in stretch.replace("ς", "σ")
    if not nfkc and not casefold:  # only İ becomes more than one character
        assert len(stretch) <= last - first + 3


@pytest.mark.parametrize(
    "parts",
    ["e\u0301", "\u1112\u1161\u11ab", "\u09c7\u09be"],
    ids=["accent", "Hangul", "Bengali vowel without a combining class"],
)
def test_composed_character_is_traced_to_all_its_parts(parts):
    options = {"casefold": False, "nfkc": True, "zero_width": False}
    assert len(normalize(f"a{parts}b", **options)) == 3
    starts, ends = original_offsets(f"a{parts}b", **options)
    end = 1 + len(parts)
    assert (starts.tolist(), ends.tolist()) == ([0, 1, end], [1, end, end + 1])


# --- decisions -----------------------------------------------------------------------------------


@examples(100, 1500)
@given(pairs, thresholds, st.booleans(), st.booleans())
@example(("ab", "ab"), 1.0, False, False)
@example(("ab", ""), 0.5, False, True)
@example(("abc", "b"), 1.0, False, True)
def test_every_decision_matches_difflib(pair, threshold, autojunk, either):
    evidence, chunk = map(text_oracle.normalize, pair)
    assume(evidence)
    expected = text_oracle.how(evidence, chunk, threshold, autojunk, either)
    rule = Matching(
        fuzzy_threshold=threshold,
        autojunk=autojunk,
        direction="either" if either else "evidence",
    )
    assert decided((evidence, chunk), **vars(rule)) == expected
    assert covers(*pair, rule) == (expected is not None)


@examples(100, 1500)
@given(pairs, st.booleans())
def test_threshold_equal_to_the_ratio_is_reached_and_the_next_float_is_not(pair, autojunk):
    evidence, chunk = map(text_oracle.normalize, pair)
    assume(evidence)
    reached = text_oracle.ratio(evidence, chunk, autojunk)
    for threshold in (reached, float(np.nextafter(reached, 2))):
        if 0 < threshold <= 1:
            rule = {"fuzzy_threshold": threshold, "autojunk": autojunk}
            expected = text_oracle.how(evidence, chunk, threshold, autojunk)
            assert decided((evidence, chunk), **rule) == expected


def prose(chance, size):
    """Random words, the first of the list most often."""
    words = ["the", "of", "a", "refund", "paid", "days", "within", "is", "customer", "14", "item"]
    text = " ".join(chance.choices(words, range(len(words), 0, -1), k=size // 3))
    return text[:size].strip()


def near(chance, text):
    """Change some words: drop, double, swap or misspell them."""
    share = chance.choice([0.02, 0.1, 0.3, 0.6])
    words = []
    for word in text.split():
        if chance.random() >= share:
            words.append(word)
            continue
        words += chance.choice([[], [word, word], ["other"], [word[::-1]], [word[:-1] + "x"]])
    if chance.random() < 0.3:
        at = chance.randrange(len(words) + 1)
        words = words[at:] + words[:at]
    return " ".join(words)


@pytest.mark.parametrize("autojunk", [False, True])
@pytest.mark.parametrize("longest", [30, 60, 260])
def test_many_random_and_near_duplicate_pairs_match_difflib(autojunk, longest):
    chance = random.Random(f"{autojunk}{longest}")
    count = PAIRS // (3 if longest < 200 else 20)
    evidence, chunks = [], []
    for _ in range(count):
        one = prose(chance, chance.randrange(longest * 3 // 4, longest) or 1)
        evidence.append(one)
        chunks.append(near(chance, one) if chance.random() < 0.7 else prose(chance, longest))

    @cache
    def ratio_once(evidence, chunk):
        return text_oracle.ratio(evidence, chunk, autojunk)

    counts = Counter()
    columns = np.array(evidence, object), np.array(chunks, object)
    for threshold in (0.5, 0.7, 0.9):
        rule = Matching(fuzzy_threshold=threshold, autojunk=autojunk)
        codes = classify_pairs(*columns, rule, workers=2)
        expected = [
            text_oracle.how(*pair, threshold, number=ratio_once)
            for pair in zip(evidence, chunks, strict=True)
        ]
        assert [MATCH_KINDS[code] if code else None for code in codes] == expected
        counts.update(expected)
    assert min(counts[None], counts["fuzzy"]) > count / 20  # both decisions were common


def test_common_subsequence_bounds_the_ratio_but_does_not_decide():
    chance = random.Random(3)
    over = 0
    for _ in range(400 if FULL else 20):
        one = prose(chance, 250)
        other = near(chance, one)
        limit = 2.0 * text_oracle.common(one, other) / (len(one) + len(other))
        for autojunk in (False, True):
            assert text_oracle.ratio(one, other, autojunk) <= limit
        over += text_oracle.ratio(one, other) < 0.7 <= limit
    assert over > 0  # here the bound would decide wrongly


def test_threshold_may_be_a_numpy_number():
    assert Matching(fuzzy_threshold=np.float32(0.5)) == Matching(fuzzy_threshold=0.5)
    assert str(Matching(fuzzy_threshold=np.float32(0.5))).startswith(
        "a substring of the chunk, or SequenceMatcher's ratio ≥ 0.5"
    )


def test_indel_similarity_would_decide_differently():
    evidence, chunk = "aab", "abab"
    assert (text_oracle.ratio(evidence, chunk), text_oracle.common(evidence, chunk)) == (4 / 7, 3)
    assert covers(evidence, chunk, Matching(fuzzy_threshold=4 / 7))
    assert not covers(evidence, chunk, Matching(fuzzy_threshold=5 / 7))


@pytest.mark.parametrize(
    ("evidence", "chunk", "expected"),
    [
        ("paid within 14 days", "Paid within 14\u00a0days", "exact"),
        ("paid within 14 days", "it is paid\u2009within 14 days.", "substring"),
        ("👩🏽 paid 😀", "They 👩🏽 paid 😀!", "substring"),
        ("İstanbul", "in ISTANBUL", "fuzzy"),
        ("İSTANBUL", "in i\u0307stanbul", "substring"),
        ("a chunk shorter than its evidence", "shorter than", None),
        ("a chunk shorter than the evidence", "chunk shorter than the evidence", "fuzzy"),
        ("", "anything", None),
        (" \n", "", None),
        ("x", "", None),
    ],
)
def test_difficult_pairs(evidence, chunk, expected):
    normal = [normalize(evidence), normalize(chunk)]
    assert covers(evidence, chunk) == (expected is not None)
    if normal[0]:
        assert decided(normal) == expected == text_oracle.how(*normal)


def test_zero_width_characters_keep_texts_apart_unless_dropped():
    evidence, chunk = "refund", "my re\u200bfu\u200bnd now"
    assert not covers(evidence, chunk)
    assert covers(evidence, chunk, Matching(zero_width=True))


def test_half_of_the_evidence_does_not_cover_it():
    evidence = "abcdefghij" * 10
    for half in (evidence[:50], evidence[50:]):
        assert ratio(evidence, half) == pytest.approx(2 / 3)
        assert not covers(evidence, half)


def test_very_long_chunk_is_decided_without_a_ratio(monkeypatch):
    monkeypatch.setattr(cascade, "sequence_ratio", None)
    monkeypatch.setattr(cascade.process, "cpdist", lambda *_, **__: np.zeros(0))
    repeats = 500_000 if FULL else 50_000
    chunk = "The customer\u00a0is paid. " * repeats + "The refund is\npaid within 14 days."
    assert len(chunk) > 1_000_000
    assert covers("refund is paid within 14 days", chunk)
    assert not covers("refund is paid within 15 days", chunk)
    assert locate_in_chunk("refund is paid within 14 days", chunk) == (
        len(chunk) - 30,
        len(chunk) - 1,
    )


def test_cydifflib_equals_difflib():
    pytest.importorskip("cydifflib")
    assert ratios.SequenceMatcher is not SequenceMatcher
    chance = random.Random(9)
    for _ in range(400 if FULL else 40):
        one = prose(chance, 300) + chance.choice(["", "😀 é 漢字"])
        other = near(chance, one)
        for autojunk in (False, True):
            ours, theirs = (
                kind(None, one, other, autojunk)
                for kind in (ratios.SequenceMatcher, SequenceMatcher)
            )
            assert ours.ratio() == theirs.ratio()
            assert list(map(tuple, ours.get_matching_blocks())) == list(
                map(tuple, theirs.get_matching_blocks())
            )


def test_difflib_is_used_if_cydifflib_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cydifflib", None)
    assert importlib.reload(ratios).SequenceMatcher is SequenceMatcher
    monkeypatch.undo()
    importlib.reload(ratios)


# --- other matchers ------------------------------------------------------------------------------


@examples(100, 1500)
@given(st.text("ab ", max_size=12), st.text("ab ", max_size=25), thresholds, st.booleans())
def test_partial_compares_with_the_best_window(evidence, chunk, threshold, either):
    evidence, chunk = map(text_oracle.normalize, (evidence, chunk))
    assume(evidence and chunk)
    number = text_oracle.either_window_ratio if either else text_oracle.window_ratio
    rule = {
        "matcher": "partial",
        "fuzzy_threshold": threshold,
        "direction": "either" if either else "evidence",
    }
    expected = text_oracle.how(evidence, chunk, threshold, either=either, number=number)
    assert decided((evidence, chunk), **rule) == expected
    assert ratio(evidence, chunk, Matching(**rule)) == number(evidence, chunk)


def test_partial_decides_long_evidence_by_the_ratio_that_is_shown():
    chance = random.Random(4)
    for _ in range(60):
        evidence = prose(chance, chance.randrange(66, 150))
        chunk = f"{prose(chance, 80)} {near(chance, evidence)} {prose(chance, 80)}"
        shown = ratio(evidence, chunk, Matching("partial"))
        for threshold in (shown, float(np.nextafter(shown, 2))):
            rule = Matching("partial", fuzzy_threshold=min(threshold, 1.0))
            reached = evidence in chunk or shown >= rule.fuzzy_threshold
            assert covers(evidence, chunk, rule) == reached


def test_partial_finds_short_evidence_with_small_edits_in_a_long_chunk():
    evidence, chunk = (
        "the refund is paid in 14 days",
        "x y z " * 50 + "the refund was paid in 14 days",
    )
    assert not covers(evidence, chunk)
    assert covers(evidence, chunk, Matching("partial", fuzzy_threshold=0.9))
    assert not covers("the refund is paid", "the", Matching("partial"))
    assert covers("the refund is paid", "tha refund", Matching("partial", direction="either"))


@examples(100, 1500)
@given(st.text("ab ,.漢", max_size=25), st.text("ab ,.漢", max_size=40), thresholds, st.booleans())
def test_tokens_compares_the_share_found_in_order(evidence, chunk, threshold, either):
    evidence, chunk = map(text_oracle.normalize, (evidence, chunk))
    assume(evidence and chunk)
    rule = {
        "matcher": "tokens",
        "fuzzy_threshold": threshold,
        "direction": "either" if either else "evidence",
    }
    number = text_oracle.token_share
    expected = text_oracle.how(evidence, chunk, threshold, either=either, number=number)
    assert decided((evidence, chunk), **rule) == expected
    assert ratio(evidence, chunk, Matching(**rule)) == number(evidence, chunk)


def test_tokens_skip_punctuation_and_keep_words_with_marks_whole():
    assert ratios.tokens("the “refund”, (paid) हिन्दी 漢字 e\u0301.") == [
        "the", "refund", "paid", "हिन्दी", "漢", "字", "e\u0301",
    ]  # fmt: skip


def test_matcher_function_decides_alone():
    compared = []

    def first_letter(evidence, chunk):
        compared.append((evidence, chunk))
        return evidence[0] == chunk[0]

    rule = Matching(first_letter)
    assert covers("Apple ", "A  pear", rule)
    assert not covers("pear", "a pear", rule)
    assert not covers("pear", " ", rule)
    assert compared == [("apple", "a pear"), ("pear", "a pear")]
    assert decided(("a", "a"), matcher=lambda *_: np.True_) == "function"
    assert covers("a", "b", Matching(lambda *_: 0.7))
    assert not covers("a", "a", Matching(lambda *_: np.float32(0.6)))
    assert ratio("a", "b", Matching(lambda *_: 0.25)) == 0.25
    assert locate_in_chunk("a", "a", rule) is None


@pytest.mark.parametrize("answer", [None, "yes", float("nan")])
def test_matcher_function_that_returns_something_else_is_refused(answer):
    with refused(field="matcher") as error:
        covers("a", "b", Matching(lambda *_: answer))
    assert repr(answer) in error.value.problem
    assert error.value.hint


# --- the rule as a value -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"fuzzy_threshold": 0}, "fuzzy_threshold", "0"),
        ({"fuzzy_threshold": 1.01}, "fuzzy_threshold", "1.01"),
        ({"fuzzy_threshold": float("nan")}, "fuzzy_threshold", "nan"),
        ({"fuzzy_threshold": True}, "fuzzy_threshold", "True"),
        ({"fuzzy_threshold": None}, "fuzzy_threshold", "None"),
        ({"fuzzy_threshold": "0.7"}, "fuzzy_threshold", "'0.7'"),
        ({"matcher": "ration"}, "matcher", "'ration'"),
        ({"direction": "chunk"}, "direction", "'chunk'"),
        ({"matcher": "tokens", "autojunk": True}, "autojunk", "'ratio'"),
        ({"matcher": max, "direction": "either"}, "direction", ""),
    ],
)
def test_invalid_rule_is_refused(options, field, value):
    with refused(path=None, line=None, field=field) as error:
        Matching(**options)
    assert value in error.value.problem
    assert error.value.hint


def test_rule_is_described_in_words():
    assert str(Matching()) == (
        "a substring of the chunk, or SequenceMatcher's ratio ≥ 0.7; lower case"
    )
    assert str(Matching(autojunk=True, direction="either", nfkc=True, zero_width=True)) == (
        "a substring of the chunk or vice versa, or SequenceMatcher's ratio with autojunk"
        " ≥ 0.7; lower case, NFKC, without zero-width characters"
    )
    assert str(Matching("partial", casefold=True)) == (
        "a substring of the chunk, or the ratio with the best window of the chunk ≥ 0.7;"
        " case folded"
    )
    assert "share of its tokens" in str(Matching("tokens"))
    assert str(Matching(max)) == "max returns True, or a number ≥ 0.7; lower case"


# --- all queries at once -------------------------------------------------------------------------

rows = st.lists(st.tuples(st.integers(0, 3), st.text("abA \n", max_size=7)), max_size=12)


def listed(given):
    return TextLists(np.array([query for query, _ in given], np.int64), [text for _, text in given])


def covered_pairs(covering):
    how = [MATCH_KINDS[code] for code in covering.how]
    return list(zip(covering.chunk.tolist(), covering.evidence.tolist(), how, strict=True))


@examples(100, 1500)
@given(rows, rows, thresholds, st.sampled_from([1, 5, 1 << 16]))
def test_all_queries_at_once_match_pair_by_pair(evidence, chunks, threshold, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cascade, "_BLOCK", block)
        covering = cover(listed(evidence), listed(chunks), Matching(fuzzy_threshold=threshold))
    assert covered_pairs(covering) == text_oracle.covering(evidence, chunks, threshold=threshold)


def test_empty_and_repeated_evidence_is_distinguished():
    evidence = [(1, "b"), (0, " \n"), (0, "A  b"), (0, "a b"), (1, "a b"), (0, ""), (0, "a B ")]
    covering = cover(listed(evidence), listed([(0, "a b"), (2, "b"), (1, "xa b")]))
    assert covering.counted.tolist() == [0, 2, 4]
    assert covering.repeated.tolist() == [3, 6]
    assert covering.empty.tolist() == [1, 5]
    assert covered_pairs(covering) == [(0, 2, "exact"), (2, 0, "substring"), (2, 4, "substring")]


@pytest.mark.parametrize("block", [1, 4, 1 << 16])
def test_each_pair_is_compared_once_and_each_text_normalised_once(monkeypatch, block):
    monkeypatch.setattr(cascade, "_BLOCK", block)
    compared, normalised = Counter(), Counter()
    whole = Matching.normalize

    def counting(self, text):
        normalised[text] += 1
        return whole(self, text)

    monkeypatch.setattr(Matching, "normalize", counting)

    def judge(*pair):
        compared[pair] += 1
        return True

    # Every query has the same evidence and chunks, some in another case.
    evidence = [(query, text) for query in range(5) for text in ("one", "two", "One ")]
    chunks = [(query, text) for query in range(5) for text in ("one", "three", "THREE", "one")]
    covering = cover(listed(evidence), listed(chunks), Matching(judge))
    assert compared == {(e, c): 1 for e in ("one", "two") for c in ("one", "three")}
    assert set(normalised.values()) == {1}
    assert covering.how.size == 5 * 2 * 4


def some_work(chance):
    evidence, chunks = [], []
    for query in range(30):
        retrieved = [prose(chance, 120) for _ in range(6)]
        chunks += [(query, text) for text in retrieved]
        evidence += [(query, near(chance, chance.choice(retrieved))) for _ in range(4)]
    return evidence, chunks


def test_number_of_threads_changes_nothing():
    evidence, chunks = map(listed, some_work(random.Random(1)))
    one, two = (cover(evidence, chunks, workers=workers) for workers in (1, 2))
    assert covered_pairs(one) == covered_pairs(two)
    assert "fuzzy" in {how for *_, how in covered_pairs(one)}


def test_order_of_rows_changes_nothing():
    chance = random.Random(2)
    evidence, chunks = some_work(chance)

    def named(evidence, chunks):
        pairs = covered_pairs(cover(listed(evidence), listed(chunks)))
        return {(chunks[chunk], evidence[row], how) for chunk, row, how in pairs}

    before = named(evidence, chunks)
    chance.shuffle(evidence)
    chance.shuffle(chunks)
    assert named(evidence, chunks) == before


# --- places -------------------------------------------------------------------------------------


@examples(100, 1500)
@given(pairs, st.booleans(), st.booleans(), st.booleans())
def test_place_of_a_substring(pair, casefold, nfkc, zero_width):
    evidence, around = pair
    options = {"casefold": casefold, "nfkc": nfkc, "zero_width": zero_width}
    chunk = f"{around} {evidence} {around}"
    normal = normalize(evidence, **options)
    assume(normal and normal in normalize(chunk, **options))
    start, end = locate_in_chunk(evidence, chunk, Matching(**options))
    assert 0 <= start < end <= len(chunk)
    stretch = normalize(chunk[start:end], **options)
    assert normal.replace("ς", "σ") in stretch.replace("ς", "σ")


def test_place_is_in_code_points_of_the_original_chunk():
    chunk = " İ😀\u200b The  REFUND\u00a0is\n\npaid. "
    for evidence in ("refund is paid", "the refund"):
        start, end = locate_in_chunk(evidence, chunk)
        assert normalize(chunk[start:end]) == evidence
        assert chunk[start:end].strip() == chunk[start:end]
    assert locate_in_chunk("nothing", "") is None
    assert locate_in_chunk("", chunk) is None
    assert locate_in_chunk("abc", "xyz") is None


@examples(100, 1500)
@given(pairs)
def test_fuzzy_place_extends_from_the_first_matching_block_to_the_last(pair):
    evidence, chunk = map(text_oracle.normalize, pair)
    if evidence in chunk:  # otherwise the whole substring is found
        evidence += "~"
    blocks = SequenceMatcher(None, evidence, chunk, autojunk=False).get_matching_blocks()[:-1]
    place = (blocks[0].b, blocks[-1].b + blocks[-1].size) if blocks else None
    assert locate_in_chunk(evidence, chunk) == place


def test_places_of_other_matchers():
    chunk = "Well: the REFUND was, they say, PAID in 14 days!"
    assert chunk[slice(*locate_in_chunk("refund is paid", chunk, Matching("tokens")))] == (
        "REFUND was, they say, PAID"
    )
    assert locate_in_chunk("nothing here", chunk, Matching("tokens")) is None
    found_at = locate_in_chunk("paid in 15 days", chunk, Matching("partial"))
    assert chunk[slice(*found_at)] == "PAID in 14 days"
    assert locate_in_chunk("x refund y z w v u t s r q p", " refund", Matching("partial")) == (1, 7)
    assert locate_in_chunk("the refund is", " Refund", Matching(direction="either")) == (1, 7)


def test_nearest_chunk_has_the_highest_indel_similarity():
    chunks = ["nothing like it", "paid within 40 Days", "paid  within 40 days", ""]
    most_similar = nearest("paid within 14 days", chunks)
    common = text_oracle.common("paid within 14 days", "paid within 40 days")
    assert most_similar.chunk == 1
    assert most_similar.indel == pytest.approx(2 * common / 38)
    assert ratio("paid within 14 days", chunks[1]) == text_oracle.ratio(
        "paid within 14 days", "paid within 40 days"
    )
    assert nearest("a", []) is None


# --- real texts ----------------------------------------------------------------------------------


@pytest.mark.skipif(not FINANCEBENCH.exists(), reason="needs the data of financebench")
def test_all_evidence_of_financebench_is_found_on_its_page():
    lines = map(json.loads, FINANCEBENCH.read_text(encoding="utf-8").splitlines())
    entries = [(number, entry) for number, line in enumerate(lines) for entry in line["evidence"]]
    evidence = [(number, entry["evidence_text"]) for number, entry in entries]
    pages = [(number, entry["evidence_text_full_page"]) for number, entry in entries]
    covering = cover(listed(evidence), listed(pages))
    assert set(covering.evidence.tolist()) == set(covering.counted.tolist())
    assert covering.counted.size + covering.repeated.size == len(entries) == 189
    for (_, text), (_, page) in zip(evidence, pages, strict=True):
        start, end = locate_in_chunk(text, page)
        assert normalize(page[start:end]) == normalize(text)
