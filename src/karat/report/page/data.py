"""The data that a page embeds for its scripts, as JSON.

The browser reads `PageData` at once, and the blocks that it refers to by number when it needs them:
lists of `QueryLists`, one `QueryDetail`, and the texts that details refer to by number are the
content of such blocks. `static/types.d.ts` holds the same declarations for the scripts;
`tools/build_page_types.py` generates it from this file.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Block = int
"""The number of a compressed block: the element with the id `b<number>`."""


class PageMeasure(Struct, frozen=True):
    """A measure of the report."""

    name: str
    label: str
    title: str
    higher: bool
    """Whether higher values are better."""
    unit: str | None
    whole: bool
    """Whether its values are counts."""
    bounded: bool
    """Whether its values lie between 0 and 1."""
    cutoff: int | None
    budget: int | None
    """The character budget, for measures such as `span.recall@2000c`."""
    family: str
    rel: int | None
    """The lowest grade that counts as relevant."""


class Difference(Struct, frozen=True):
    """The difference b − a of two runs in one measure."""

    measure: int
    value_a: float | None
    value_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    """Before correction."""
    p_corrected: float | None
    mark: Literal["better", "worse", ""]
    """Whether b is significantly better or worse than a, after correction."""
    wins: int
    """On how many queries b is better than a."""
    ties: int
    losses: int
    n: int
    left_out: int
    """How many queries have a value in only one of the two runs."""
    tested: bool
    """False if too few queries differ for a test."""


class RunPair(Struct, frozen=True):
    """Two runs and their differences, one per measure."""

    a: int
    b: int
    differences: list[Difference]


class PageComparison(Struct, frozen=True):
    """All pairs of runs that were compared."""

    pairs: list[RunPair]
    baseline: int | None
    """The run that all others are compared with, if one was chosen."""
    notes: list[str]
    """How the tests were done."""


class Field(Struct, frozen=True):
    """A field of the queries: words with one code per query, or one text per query."""

    name: str
    words: list[str] | None = None
    codes: Block | None = None
    texts: Block | None = None


class Outcome(Struct, frozen=True):
    """What a run found for each query, as blocks of numbers."""

    status: Block
    """0 answered, 1 not in the run, 2 failed, 3 only scores available (bytes)."""
    found: Block
    first: Block
    """The rank of the first hit, 0 if there is none (32-bit integers, like `found`)."""


class ListBlocks(Struct, frozen=True):
    """Ranked lists or texts in blocks of `size`."""

    size: int
    blocks: list[Block]


class PageData(Struct, frozen=True):
    """All data of a page."""

    runs: list[str]
    main: int
    """The index of the main measure: the one that headline, plot and lists are about."""
    best: int | None
    """The index of the best run by the main measure."""
    ranking: list[int]
    """The indices of the runs, the best by the main measure first."""
    pair: tuple[int, int] | None
    """The two runs that the page compares at first: the baseline or second best, and the best."""
    comparison: PageComparison | None
    measures: list[PageMeasure]
    n: int
    ids: Block
    texts: Block | None
    fields: list[Field]
    wanted: Block
    values: list[list[Block]]
    """Per run and measure: 64-bit floats, NaN where a query has no value."""
    outcomes: list[Outcome]
    lists: ListBlocks
    details: dict[str, Block]
    """By row number: the block of a `QueryDetail`."""
    chunks: ListBlocks
    """The texts of retrieved items; details of queries refer to them by number."""


class QueryLists(Struct, frozen=True):
    """The ranked lists of a query, of all runs."""

    items: list[str]
    """The distinct items; lists refer to them by index."""
    lists: list[list[int]]
    """Per run: the items at the top of its list."""
    below: list[list[tuple[int, int]]]
    """Per run: rank and item of hits further down."""
    n: list[int]
    """Per run: the length of the whole list."""
    hits: list[list[tuple[int, int | None, int | None, list[int] | None]]]
    """Per run: rank, grade, number of new gold characters, numbers of covered evidence texts."""
    wanted: list[tuple[str, int]]
    """Relevant items with their grades."""
    n_wanted: dict[str, int]
    """Per kind of gold: how much there is."""


Json = dict[str, Any]
"""A row of a calculation, with the columns that its measure recorded."""


class Stretch(Struct, frozen=True):
    """A part of a text: the number of the text, and offsets in it in code points."""

    text: int
    start: int
    end: int


class ListedResult(Struct, frozen=True):
    """A retrieved item as the details of a query show it."""

    rank: int
    score: float | None
    doc_id: str | None
    start: int | None
    end: int | None
    text: int | None
    """The number of its text."""
    length: int | None
    """The length of its whole text; a long text is cut."""
    gold: list[tuple[int, int]]
    """Where its text is gold: offsets in code points, in ascending order."""


class QueryFailure(Struct, frozen=True):
    """Why a query has no results."""

    type: str | None
    message: str | None
    attempts: int | None


class ModelCall(Struct, frozen=True):
    """A model call of a query."""

    stage: str | None
    model: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None


class ShownCalculation(Struct, frozen=True):
    """How the value of a query is calculated; of long lists, only the rows that are shown."""

    value: float | None
    columns: list[str]
    """The columns that the measure recorded; the last is the contribution of a rank."""
    rows: list[Json]
    counted: list[int]
    """The ranks that the measure counted."""
    ideal: list[Json]
    missed: list[Json]
    n_ideal: int
    n_missed: int
    numbers: Json
    remarks: list[str]


class EvidenceMatch(Struct, frozen=True):
    """What covers an evidence text, or else the item that comes nearest to it."""

    evidence: int
    """The number of the evidence text in the query."""
    covered: bool
    how: str
    rank: int | None
    item: str | None
    ratio: float | None
    stretch: Stretch | None
    """The part of the item that matches; the beginning of the item if it does not cover."""


class RunDetail(Struct, frozen=True):
    """What a run did with a query."""

    response: str | None = None
    """The answer that was generated from the retrieved items."""
    error: QueryFailure | None = None
    timings: dict[str, float] | None = None
    """Milliseconds by stage."""
    calls: list[ModelCall] | None = None
    results: list[ListedResult] = []
    calculations: dict[str, ShownCalculation] = {}
    """By measure."""
    matches: list[EvidenceMatch] = []


class DocumentPiece(Struct, frozen=True):
    """Consecutive characters of a document with the same marks."""

    start: int
    end: int
    gold: bool
    ranks: list[list[int]]
    """Per run: the ranks that retrieved the piece."""
    text: str | tuple[int, int] | None
    """Its text, or the number of a text and the offset at which the piece starts there; None if it
    is unknown or too far from anything marked."""


class HighlightedDocument(Struct, frozen=True):
    """A document with gold, in pieces."""

    doc_id: str
    length: int | None
    pieces: list[DocumentPiece]


class QueryDetail(Struct, frozen=True):
    """The texts, calculations and highlights of a query."""

    text: str | None
    fields: dict[str, str]
    answers: dict[str, str]
    """The answers among the fields of the gold: `reference`, `answer` and the like."""
    evidence: list[str]
    runs: list[RunDetail]
    documents: list[HighlightedDocument]
