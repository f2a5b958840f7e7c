"""Clusters side by side."""

import threading
from types import SimpleNamespace

import pytest

from pipeline.side_by_side import TOGETHER, side_by_side, together

SPARK = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))


def test_two_clusters_are_worked_on_at_once():
    """Each waits until the other has begun; results are in the order of the clusters."""
    both = threading.Barrier(2, timeout=30)

    def work(cluster):
        both.wait()
        return cluster.upper()

    assert ["A", "B"] == side_by_side(SPARK, ["a", "b"], work)


def test_one_cluster_needs_no_thread():
    """Without Spark, in the thread of the caller."""
    assert [threading.current_thread()] == side_by_side(None, ["a"], lambda _: threading.current_thread())


def test_an_error_is_raised_and_nothing_more_begins():
    """Those that were begun end first."""
    began = []

    def work(cluster):
        began.append(cluster)
        if cluster == "a":
            raise ValueError(cluster)
        threading.Event().wait(0.01)

    with pytest.raises(ValueError, match=r"^a$"):
        side_by_side(SPARK, ["a"], work)
    with pytest.raises(ValueError, match=r"^a$"):
        side_by_side(SPARK, ["a", *map(str, range(1000))], work)

    assert len(began) < 1000


def test_small_clusters_are_grouped_and_large_ones_are_alone():
    """In the order of their names, with as many rows as a group may have."""
    sizes = {"d": 1, "a": 40, "b": 60, "c": 101, "e": 99}

    assert [["a", "b"], ["c"], ["d", "e"]] == [*together(sizes, 100)]
    assert [["a"], ["b"], ["c"], ["d"], ["e"]] == [*together(sizes, 0)]
    assert not [*together({}, 100)]


def test_a_group_has_few_clusters():
    """All of them wait for one another, however few rows they have."""
    groups = [*together({f"{number:03}": 0 for number in range(2 * TOGETHER + 1)}, 100)]

    assert [TOGETHER, TOGETHER, 1] == [len(it) for it in groups]
    assert sorted(it for group in groups for it in group) == [it for group in groups for it in group]
