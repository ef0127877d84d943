"""Intervals and tests over clusters of queries, such as all queries of one user."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

from karat.errors import InputError
from karat.measures import parse
from karat.stats.clusters import cluster_labels, clustered_error, count_clusters
from karat.stats.inference import infer, swap_test
from karat.stats.intervals import interval, share_limit
from karat.stats.paired_tests import t_test, wilcoxon_test
from karat.stats.pairs import Pair, pair
from karat.stats.pairwise import ComparisonOptions, compare_pairs, queries_needed
from karat.stats.quantiles import resampled_differences
from karat.stats.resampling import draw_counts
from karat.stats.samples import Sample
from karat.stats.summary import summary
from oracles import clusters as oracle
from oracles import sign_flips
from support.score_tables import MICRO, table_of

CLUSTERS = [0, 0, 0, 1, 2, 2, 3, 4, 4, 4, 4, 5]


def labelled(table, clusters):
    return replace(table, clusters=pl.Series([f"={cluster}" for cluster in clusters]))


def values_of(seed, n=12):
    return np.round(np.random.default_rng(seed).random(n), 3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_error_and_degrees_of_freedom_equal_those_by_matrices(seed, weighted):
    clusters, values = np.array(CLUSTERS), values_of(seed)
    values += np.random.default_rng(seed + 50).random(6)[clusters]  # correlated within clusters
    weights = np.arange(1.0, 13.0) if weighted else None
    if weighted:
        values = np.rint(values * weights) / weights
    found = clustered_error(
        Sample("micro" if weighted else "mean", values, weights, clusters=clusters)
    )
    error, df = oracle.error_and_degrees_of_freedom(values, clusters, weights)
    assert found.error == pytest.approx(error, rel=1e-10)
    assert found.df == pytest.approx(df, rel=1e-8)


def test_clusters_of_equal_size_have_the_t_interval_of_their_means():
    values, clusters = values_of(3, 40), np.repeat(np.arange(8), 5)
    found = clustered_error(Sample("mean", values, clusters=clusters))
    means = values.reshape(8, 5).mean(axis=1)
    assert found.error == pytest.approx(stats.sem(means), rel=1e-12)
    assert found.df == pytest.approx(7, rel=1e-9)
    expected = stats.t.interval(0.95, 7, means.mean(), stats.sem(means))
    reach = found.reach(0.95)
    assert (values.mean() - reach, values.mean() + reach) == pytest.approx(expected, rel=1e-9)


def test_p_of_the_t_test_is_that_of_the_cluster_means():
    differences, clusters = values_of(4, 40) - 0.4, np.repeat(np.arange(8), 5)
    means = differences.reshape(8, 5).mean(axis=1)
    expected = stats.ttest_1samp(means, 0).pvalue
    assert t_test(Sample("mean", differences, clusters=clusters)) == pytest.approx(expected)


def test_without_repeated_labels_nothing_changes():
    columns = {
        "nDCG@10": values_of(5, 30),
        "Success@1": values_of(6, 30).round(),
        "GMAP": values_of(7, 30),
    }
    columns |= {"latency.p90": values_of(8, 30), "latency.max": values_of(9, 30)}
    tables = {
        "a": table_of(columns),
        "b": table_of({k: v[::-1].copy() for k, v in columns.items()}),
    }
    apart = {name: labelled(table, range(30)) for name, table in tables.items()}
    assert summary(apart["a"]).equals(summary(tables["a"]))
    rows = compare_pairs(apart)
    assert rows["clusters"].to_list() == [30] * 5
    assert rows.drop("clusters", "clusters_differing").equals(compare_pairs(tables))


def test_repeating_each_query_does_not_narrow_the_interval():
    values = values_of(10, 20)
    once = Sample("mean", values, bounded=True)
    often = Sample(
        "mean", np.repeat(values, 50), bounded=True, clusters=np.repeat(np.arange(20), 50)
    )
    ends, repeated = interval(once), interval(often)
    assert (repeated.low, repeated.high) == pytest.approx((ends.low, ends.high), rel=1e-9)


def test_few_clusters_below_one_widen_the_interval():
    values, clusters = np.ones(40), np.repeat(np.arange(10), 4)
    found = interval(Sample("mean", values, bounded=True, clusters=clusters))
    assert (found.low, found.high) == (1 - share_limit(0, 10, 0.95), 1.0)
    unequal = np.concatenate([np.zeros(22), np.repeat(np.arange(1, 10), 2)]).astype(int)
    found = interval(Sample("mean", values, bounded=True, clusters=unequal))
    assert found.low == max(1 - share_limit(0, 10, 0.95) * 22 / 4, 0.0)


def test_two_clusters_have_no_interval():
    sample = Sample("mean", values_of(11, 10), bounded=True, clusters=np.repeat([0, 1], 5))
    assert interval(sample).method is None


@pytest.mark.parametrize("name", ["latency.p50", "latency.p90"])
def test_interval_of_a_quantile_contains_it_and_is_open_where_values_are_missing(name):
    how = parse(name).declaration.combine
    values, clusters = values_of(12, 300), np.repeat(np.arange(30), 10)
    found = interval(Sample(how, values, clusters=clusters))
    assert found.method == "order"
    assert found.low < np.quantile(values, 0.5 if how == "p50" else 0.9) < found.high
    few = interval(Sample(how, values[:12], clusters=np.array(CLUSTERS)))
    assert few.high is None or how == "p50"


def pair_of(differences, clusters, name="latency.mean"):
    labels = pl.Series([f"c{cluster:04}" for cluster in clusters])
    codes = np.unique(np.asarray(clusters), return_inverse=True)[1]
    ids = pl.Series([f"q{row:04}" for row in range(len(clusters))])
    differences = np.asarray(differences, dtype=float)
    sides = (np.maximum(-differences, 0), np.maximum(differences, 0))
    samples = [Sample(parse(name).declaration.combine, side, clusters=codes) for side in sides]
    return Pair(parse(name), ids, *samples, 0, None, labels)


@pytest.mark.parametrize("seed", range(3))
def test_sign_flips_of_clusters_equal_brute_force(seed):
    differences = np.random.default_rng(seed).integers(-8, 12, 11) / 16
    clusters = [0, 0, 0, 1, 1, 2, 3, 4, 4, 5, 6]
    (found,) = infer([pair_of(differences, clusters)])
    totals = [
        sum(
            (Fraction(d) for d, c in zip(differences.tolist(), clusters, strict=True) if c == at),
            Fraction(0),
        )
        for at in range(7)
    ]
    sizes = [Fraction(clusters.count(at)) for at in range(7)]
    assert found.p["randomization"] == float(sign_flips.p_of(totals, sizes, Fraction(0)))
    low, high = sign_flips.interval_of(totals, sizes, Fraction(1, 20))
    assert (found.interval.low, found.interval.high) == pytest.approx((float(low), float(high)))


@pytest.mark.parametrize("test", ["randomization", "t"])
def test_interval_excludes_zero_exactly_if_p_is_below_alpha(test):
    chance = np.random.default_rng(13)
    contradictions = 0
    for _ in range(60):
        clusters = np.sort(chance.integers(0, 25, 80))
        differences = chance.normal(0.04, 0.1, 80) + chance.normal(0, 0.1, 25)[clusters]
        (found,) = infer([pair_of(differences, clusters)], test)
        excludes = found.interval.low > 0 or found.interval.high < 0
        contradictions += excludes != (found.p[test] < 0.05)
    assert contradictions == 0


def test_wilcoxon_s_test_of_clusters_equals_brute_force():
    differences, clusters = np.round(values_of(14) - 0.4, 2), np.array(CLUSTERS)
    ranks = stats.rankdata(np.abs(differences))
    sums = [float((np.sign(differences) * ranks)[clusters == at].sum()) for at in range(6)]
    observed = abs(sum(sums))
    flipped = [
        abs(sum(s * one for s, one in zip(signs, sums, strict=True)))
        for signs in product((1, -1), repeat=6)
    ]
    expected = np.mean([total >= observed - 1e-9 for total in flipped])
    assert wilcoxon_test(differences, clusters=clusters) == pytest.approx(expected)


def test_maxima_of_clusters_are_swapped_together():
    # A difference as large as the observed one needs that nothing or everything is swapped.
    differences = [1.0, 2.0, 3.0, 4.0, 0.5]
    assert swap_test(pair_of(differences, [0, 0, 1, 1, 2], "latency.max")) == (2 / 2**3, None)
    assert swap_test(pair_of(differences, range(5), "latency.max")) == (2 / 2**5, None)


def test_quantiles_of_resampled_clusters_are_those_of_the_repeated_values():
    values, clusters = values_of(15), np.array(CLUSTERS)
    a, b = (Sample("p90", column, clusters=clusters) for column in (values, values**2))
    found = resampled_differences(a, b)
    for row, counts in enumerate(draw_counts(6)[:50]):
        one, other = (np.repeat(column, counts[clusters]) for column in (values, values**2))
        expected = np.quantile(other, 0.9) - np.quantile(one, 0.9)
        assert found[row] == pytest.approx(expected, rel=1e-9)


def test_few_differing_clusters_are_not_tested():
    differences = np.zeros(40)
    differences[:15] = 0.1  # 15 queries of 3 clusters
    (found,) = infer([pair_of(differences, np.repeat(np.arange(8), 5), "nDCG@10")])
    assert found.interval.method == "few"
    assert found.interval.low == -share_limit(0, 8, 0.95)
    assert found.interval.high == share_limit(3, 8, 0.95)


def test_clusters_that_cancel_out_do_not_differ():
    both = pair_of([0.1, 0.2, -0.3, 0.5], [0, 0, 0, 1])
    assert both.unit_differences.tolist() == [0.0, 0.5]
    assert both.n_units_differing == 1


def test_clusters_come_from_either_table():
    plain = table_of({MICRO: values_of(16)}, weights=[1] * 12)
    clustered = labelled(table_of({MICRO: values_of(17)}, weights=[1] * 12), CLUSTERS)
    measure = parse(MICRO)
    for a, b in ((plain, clustered), (clustered, plain), (clustered, clustered)):
        assert pair(a, b, measure).units == 6
    fewer = plain.rows(pl.Series(range(3, 12)))
    assert pair(fewer, clustered, measure).units == 5


@pytest.mark.parametrize("correction", ["holm", "tukey"])
def test_repeated_queries_of_clusters_add_no_significance(correction):
    columns = [values_of(seed, 18) for seed in (18, 19, 20)]
    once = {str(at): table_of({"nDCG@10": column}) for at, column in enumerate(columns)}
    often = {
        str(at): labelled(
            table_of({"nDCG@10": np.repeat(column, 4)}),
            [f"{row:03}" for row in np.repeat(range(18), 4)],
        )
        for at, column in enumerate(columns)
    }
    options = ComparisonOptions(correction=correction)
    p, repeated = (
        compare_pairs(tables, options)["p_corrected"].to_numpy() for tables in (once, often)
    )
    assert repeated == pytest.approx(p, abs=0.01)
    needed, more = (queries_needed(tables, 0.1)["queries"].to_numpy() for tables in (once, often))
    assert more == pytest.approx(4 * needed, rel=0.02)


def test_queries_without_a_value_are_clusters_of_their_own():
    queries = pl.DataFrame({"query_id": ["a", "b", "c", "d"], "user": ["b", None, "b", None]})
    labels = cluster_labels(queries, "user")
    assert labels.to_list() == ["=b", "?b", "=b", "?d"]
    counts = count_clusters(labels, "user")
    assert (counts.clusters, counts.queries, counts.alone, counts.few) == (3, 4, 2, True)


@pytest.mark.parametrize(
    ("field", "problem"),
    [("users", "no field"), ("tags", "lists"), ("none", "no query"), ("text", "no field")],
)
def test_a_field_that_does_not_make_clusters_is_refused(field, problem):
    queries = pl.DataFrame(
        {
            "query_id": ["a", "b"],
            "text": ["x", "y"],
            "user": ["u", "v"],
            "tags": [["x"], []],
            "none": [None, None],
        }
    )
    with pytest.raises(InputError) as caught:
        cluster_labels(queries, field)
    assert caught.value.field == "cluster"
    assert problem in caught.value.problem


def test_one_cluster_with_all_the_weight_has_no_error():
    weights = np.array([5.0, 3.0, 0.0, 0.0])
    sample = Sample(
        "micro", np.array([1.0, 0.0, 0.0, 0.0]), weights, clusters=np.array([0, 0, 1, 2])
    )
    assert clustered_error(sample) is None
    assert (
        interval(
            Sample("micro", sample.values, weights, bounded=True, clusters=sample.clusters)
        ).method
        is None
    )
    assert not math.isnan(sample.ratio)
