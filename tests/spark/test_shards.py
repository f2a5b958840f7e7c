"""Jobs that share a fleet: each handles its own clusters, in the same folders."""

import random

import pytest

from ackscope import manifest
from ackscope.clock import SystemClock
from ackscope.tables import OUTCOMES_1M, PROBE_MESSAGES
from pipeline import jobs
from pipeline.shard import ALL, Shard
from pipeline.storage.watermark import cluster_watermark, read_watermark
from tests.spark.landing_files import random_messages, write
from tests.spark.test_jobs import stream_until

pytestmark = pytest.mark.spark

SHOPS, BANK = Shard.parse("shop-*"), Shard.parse("bank")


def test_two_jobs_make_what_one_makes(session, fingerprint, tmp_path):
    """A stream of one shard and a `run` of another: no cluster is missing, none is handled by the wrong one."""
    for cluster in ("shop-1", "shop-2", "bank"):
        rows = random_messages(random.Random(cluster), 100, 0, 600)
        write(tmp_path / "landing", PROBE_MESSAGES, rows, "a", cluster=cluster)
    (tmp_path / "streamed").mkdir()

    def is_taken_in(status):
        """The rows are there, and a listing after them has found nothing more."""
        return status["batches"] >= 1 and read_watermark(tmp_path / "streamed", jobs.generation(), SHOPS) > 0

    status = stream_until(tmp_path, session, is_taken_in, shard=SHOPS)

    assert 200 == status.landing_rows
    assert 0.0 == status.lag_seconds
    assert ("shop-1", "shop-2") == manifest.clusters(tmp_path / "streamed")
    assert (0.0, 0.0) == tuple(read_watermark(tmp_path / "streamed", jobs.generation(), it) for it in (ALL, BANK))

    summary = jobs.run(
        tmp_path / "landing", tmp_path / "streamed", session, SystemClock(), minutes_only=True, shard=BANK
    )
    jobs.run(tmp_path / "landing", tmp_path / "batch", session, SystemClock(), minutes_only=True)

    assert (1, 100) == (summary.landing_files, summary.landing_rows)
    assert summary.rollup_rows[OUTCOMES_1M.name] < jobs.Rollups(tmp_path / "batch").row_counts()[OUTCOMES_1M.name]
    assert min(cluster_watermark(tmp_path / "streamed", jobs.generation(), it) for it in ("bank", "shop-2")) > 0
    assert fingerprint(tmp_path / "batch") == fingerprint(tmp_path / "streamed")
