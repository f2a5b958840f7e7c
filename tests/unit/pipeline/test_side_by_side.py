"""Clusters side by side."""

import threading
from types import SimpleNamespace

import pytest

from pipeline.side_by_side import side_by_side

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
