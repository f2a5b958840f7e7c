"""Clusters that are computed by the same queries get the rollups that each gets alone."""

import random

import pytest

from ackscope import manifest
from ackscope.clock import SystemClock
from ackscope.tables import ACK_BURSTS, PROBE_MESSAGES, PROBE_STEPS
from pipeline import downsample, executor_writes, jobs, rebuild, side_by_side
from pipeline.storage.rollups import Rollups
from tests.spark.landing_files import TABLES, message, write
from tests.spark.test_executor_writes import files
from tests.spark.test_jobs import damaged, stream_until

pytestmark = pytest.mark.spark

COLLECTED = {"driver": 1e9, "executors": -1}


def land(root, cluster, first, span, *, polled=True):
    """Land rows of a cluster from second `first` on, all tables or those of probes; clusters have the same names."""
    dice = random.Random(f"{cluster} {first}")
    for table, make in TABLES.items():
        rows = make(dice, first, span)
        if polled or table in (PROBE_MESSAGES, ACK_BURSTS, PROBE_STEPS):
            write(root, table, rows, f"{first}-{table.name}", cluster=cluster)


def land_fleet(root):
    """Land the same hour, parts of it, other hours with a gap, and probes without polls."""
    land(root, "bank", 0, 3600)
    land(root, "mill", 1200, 300)
    land(root, "port", 3000, 1200)
    land(root, "port", 5 * 3600, 600)
    land(root, "shop", 600, 4000, polled=False)


@pytest.mark.parametrize("who", COLLECTED)
def test_clusters_together_get_what_each_gets_alone(who, spark, session, monkeypatch, tmp_path):
    """The same files from driver and executors; hours and days from the driver (executors: `test_executor_writes`)."""
    land_fleet(tmp_path / "landing")
    monkeypatch.setattr(executor_writes, "COLLECTED_ROWS", COLLECTED[who])
    for name, limit in (("together", side_by_side.TOGETHER), ("alone", 1)):
        monkeypatch.setattr(side_by_side, "TOGETHER", limit)
        jobs.run(tmp_path / "landing", tmp_path / name, session, SystemClock(), minutes_only=True)
        if who == "driver":
            downsample.refresh(spark, Rollups(tmp_path / name), manifest.clusters(tmp_path / name))

    assert ["bank", "mill", "port", "shop"] == [*files(tmp_path / "alone")]
    assert files(tmp_path / "alone") == files(tmp_path / "together")


def test_a_group_costs_as_many_queries_as_one_cluster(session, monkeypatch, tmp_path):
    """Planning is what a small cluster costs, so this is what the group is for."""
    asked = []
    compute = rebuild._GroupRebuild._compute

    def counted(self, transform, parts, use):
        asked.append(len(parts))
        return compute(self, transform, parts, use)

    monkeypatch.setattr(rebuild._GroupRebuild, "_compute", counted)
    for cluster in ("bank", "mill", "port"):
        land(tmp_path / "landing", cluster, 0, 600)
    jobs.run(tmp_path / "landing", tmp_path / "together", session, SystemClock(), minutes_only=True)
    together, asked[:] = [*asked], []
    land(tmp_path / "alone", "bank", 0, 600)
    jobs.run(tmp_path / "alone", tmp_path / "one", session, SystemClock(), minutes_only=True)

    assert {1} == {*asked}
    assert [3] * len(asked) == together


def test_a_stream_of_several_clusters_makes_what_a_run_makes(session, fingerprint, tmp_path):
    """Files of some clusters arrive in the same batches, late ones for some minutes of some clusters only."""
    land_fleet(tmp_path / "landing")
    stream_until(tmp_path, session, lambda status: status["batches"] >= 1)
    land(tmp_path / "landing", "bank", 3600, 300)
    land(tmp_path / "landing", "port", 2 * 3600, 100)
    for cluster, seconds in (("bank", 1810), ("mill", 1300), ("shop", 5000)):
        write(tmp_path / "landing", PROBE_MESSAGES, [message(9000, seconds)], "late", cluster=cluster)
    stream_until(tmp_path, session, lambda status: status["batches"] >= 1)
    jobs.run(tmp_path / "landing", tmp_path / "batch", session, SystemClock(), minutes_only=True)

    assert fingerprint(tmp_path / "batch") == fingerprint(tmp_path / "streamed")


def test_a_damaged_file_of_one_cluster_costs_nothing_but_itself(session, fingerprint, tmp_path):
    """It is quarantined, and the group is computed again without it."""
    for cluster in ("bank", "mill", "shop"):
        land(tmp_path / "landing", cluster, 0, 600)
    jobs.run(tmp_path / "landing", tmp_path / "before", session, SystemClock(), minutes_only=True)
    many = [message(seq, seq / 100) for seq in range(2, 5000)]
    damaged(write(tmp_path / "landing", PROBE_MESSAGES, many, "damaged", cluster="mill"))
    summary = jobs.run(tmp_path / "landing", tmp_path / "after", session, SystemClock(), minutes_only=True)

    assert 1 == summary.quarantined
    assert fingerprint(tmp_path / "before") == fingerprint(tmp_path / "after")
