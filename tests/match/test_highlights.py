"""Documents split into pieces, compared with a walk over all characters."""

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from karat.match.highlights import DocumentPart, KnownText, limit_text, mark_document
from support.effort import examples

TEXT = "Refunds take 14 days. 😀 By card."
stretches = st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda s: (s[0], s[0] + s[1]))
ranked = st.lists(st.tuples(st.integers(1, 9), stretches).map(lambda r: (r[0], *r[1])), max_size=4)
texts = st.lists(st.tuples(st.integers(0, 30), st.text("ab", max_size=9)), max_size=5)


def character_by_character(gold, runs, given_texts, length, context):
    """Describe each character; then join neighbours with the same description."""
    known = {}
    for start, text in given_texts:
        for at, character in enumerate(text, start):
            known.setdefault(at, character)
    stretches = [*gold, *((start, end) for run in runs for _, start, end in run)]
    last = length
    if last is None:
        last = max([0, *(at for s in stretches for at in s), *(at + 1 for at in known)])
    inside = {at for start, end in gold for at in range(start, end)}
    characters = []
    for at in range(last):
        near = any(there in inside for there in range(at - context, at + context + 1))
        is_gold = any(start <= at < end for start, end in gold)
        ranks = tuple(tuple(sorted({r for r, s, e in run if s <= at < e})) for run in runs)
        characters.append((at, (is_gold, ranks, (near or any(ranks)) and at in known)))
    joined = []
    for (is_gold, ranks, shown), group in groupby(characters, key=lambda one: one[1]):
        places = [at for at, _ in group]
        text = "".join(known[at] for at in places) if shown else None
        joined.append(DocumentPart(places[0], places[-1] + 1, is_gold, ranks, text))
    return joined


@examples(200, 2000)
@given(
    st.lists(stretches, max_size=4),
    st.lists(ranked, max_size=3),
    texts,
    st.one_of(st.none(), st.integers(52, 60)),
    st.integers(1, 6),
)
def test_pieces_match_a_walk_over_all_characters(gold, runs, given_texts, length, context):
    filled = [(start, text) for start, text in given_texts if text]
    split = mark_document(gold, runs, KnownText().joined(filled), length, context)
    assert split == character_by_character(gold, runs, filled, length, context)


def test_gold_retrieved_and_both_are_separate_pieces():
    split = mark_document(
        [(8, 21)], [[(2, 0, 12), (5, 0, 12)], [(1, 22, 23)]], KnownText(((0, TEXT),))
    )
    assert [(piece.gold, piece.ranks, piece.text) for piece in split] == [
        (False, ((2, 5), ()), "Refunds "),
        (True, ((2, 5), ()), "take"),
        (True, ((), ()), " 14 days."),
        (False, ((), ()), " "),
        (False, ((), (1,)), "😀"),
        (False, ((), ()), " By card."),
    ]


def test_text_far_from_gold_is_shown_only_if_it_was_retrieved():
    split = mark_document([(1000, 1001)], [[(1, 2000, 2010)]], KnownText(((0, "x" * 3000),)), 3000)
    assert [(piece.start, piece.end, piece.text is None) for piece in split] == [
        (0, 800, True),
        (800, 1000, False),
        (1000, 1001, False),
        (1001, 1201, False),
        (1201, 2000, True),
        (2000, 2010, False),
        (2010, 3000, True),
    ]


def test_unmarked_document_has_no_text_and_an_empty_one_no_pieces():
    assert mark_document([(3, 3)], [[]], KnownText(((0, "abc"),))) == [
        DocumentPart(0, 3, False, ((),), None)
    ]
    assert mark_document([], [[], []], KnownText()) == []


def test_limited_text_is_kept_for_gold_first_then_for_retrieved_pieces():
    plain = DocumentPart(0, 4, False, ((),), "aaaa")
    brought = DocumentPart(4, 8, False, ((1,),), "bbbb")
    wanted = DocumentPart(8, 12, True, ((),), "cccc")
    unknown = DocumentPart(12, 99, True, ((),), None)
    (shown,) = limit_text([[plain, brought, wanted, unknown]], 6)
    assert [(piece.start, piece.end, piece.text) for piece in shown] == [
        (0, 4, None),
        (4, 6, "bb"),
        (6, 8, None),
        (8, 12, "cccc"),
        (12, 99, None),
    ]
    assert limit_text([[plain], [wanted]], 8) == [[plain], [wanted]]


@examples(60, 600)
@given(st.lists(st.lists(st.integers(1, 9), max_size=4), max_size=3), st.integers(0, 40))
def test_limit_is_used_up_and_not_exceeded(sizes, most):
    documents = [
        [
            DocumentPart(at * 10, at * 10 + n, n % 2 == 0, ((n,) * (n % 3),), "x" * n)
            for at, n in enumerate(lengths)
        ]
        for lengths in sizes
    ]
    shown = limit_text(documents, most)
    kept = sum(len(piece.text or "") for document in shown for piece in document)
    assert kept == min(most, sum(map(sum, sizes)))
    for before, after in zip(documents, shown, strict=True):
        assert [at for p in before for at in range(p.start, p.end)] == [
            at for p in after for at in range(p.start, p.end)
        ]
