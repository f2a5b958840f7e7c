"""The same jobs on a Spark cluster of several processes: by `--master` alone, with the same results."""

import json
import random
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from ackscope.clock import SystemClock
from ackscope.tables import BASELINES, CHANGES, POLL_SAMPLES, PROBE_MESSAGES, QUEUE_SAMPLES, ROLLUPS
from bench.pipeline.standalone import cluster
from pipeline import jobs
from pipeline.storage.watermark import advance_watermark
from tests.spark.landing_files import message, random_messages, random_polls, random_samples, write

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def do(root, verb, master, *more):
    """A job as a process; its document."""
    folders = ["--landing", str(root / "landing"), "--rollups", str(root / "rollups")]
    words = [sys.executable, "-m", "ackscope", "pipeline", verb, *folders, "--master", master, "--json", *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=500)

    assert (0, "") == (done.returncode, done.stderr)
    return json.loads(done.stdout)


def test_a_standalone_cluster_gives_what_a_local_one_gives(session, fingerprint, tmp_path):
    """Executors in other processes read and write the same folders: rollups, analyses and compacted rows are the same.

    Confirms that take longer from the second hour on are a change, so that the analyses have something to tell.
    """
    dice = random.Random(1)
    slower = [message(it, it * 5, stream="slower", confirm=0.002 if it < 720 else 0.05) for it in range(1440)]
    for half in range(2):
        messages = [*random_messages(dice, 500, half * 1800, 1800), *slower[half::2]]
        write(tmp_path / "landing", PROBE_MESSAGES, messages, f"messages-{half}")
        write(tmp_path / "landing", QUEUE_SAMPLES, random_samples(dice, 3, half * 1800, 1800), f"samples-{half}")
        write(tmp_path / "landing", POLL_SAMPLES, random_polls(dice, half * 1800, 1800), f"polls-{half}")
    with cluster(tmp_path) as master:
        summary = do(tmp_path, "run", master)
        advance_watermark(tmp_path / "rollups", jobs.generation(), 1e11)
        is_compacted = do(tmp_path, "compact", master)
    jobs.run(tmp_path / "landing", tmp_path / "local", session, SystemClock())

    assert 0 < summary["rollup_files"]
    assert all(fingerprint(tmp_path / "rollups", [table.name]) for table in (BASELINES, CHANGES))
    assert (is_compacted["files_before"], is_compacted["files_after"]) == (
        2 * is_compacted["folders"],
        is_compacted["folders"],
    )
    assert fingerprint(tmp_path / "local", ROLLUPS) == fingerprint(tmp_path / "rollups", ROLLUPS)
    for path in (tmp_path / "landing").rglob("compacted-*.parquet"):
        assert pq.read_metadata(path).num_rows
