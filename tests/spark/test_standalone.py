"""The same jobs on a Spark cluster of several processes, by `--master` or by spark-submit, with the same results."""

import json
import os
import random
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

from ackscope.clock import SystemClock
from ackscope.tables import BASELINES, CHANGES, POLL_SAMPLES, PROBE_MESSAGES, QUEUE_SAMPLES, ROLLUPS
from bench.pipeline.standalone import cluster
from pipeline import jobs
from pipeline.storage.watermark import advance_watermark
from tests.spark.landing_files import message, random_messages, random_polls, random_samples, write

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def python(tmp_path, monkeypatch):
    """The Python of an environment with ackscope as its wheel has it; nobody has the checkout on the path.

    The packages of others are those of the running Python, because an installation takes minutes.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (site,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in ({name: name for name in wheel["only-include"]} | wheel["force-include"]).items():
        shutil.copytree(ROOT / source, site / target, ignore=shutil.ignore_patterns("__pycache__"))
    (site / "others.pth").write_text(f"{Path(pyspark.__file__).parents[1]}\n")
    # As users have it: Spark compiles its queries.
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "venv/bin/python"


def do(words, **environ):
    """A job as a process; its document, and what it said."""
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, timeout=1700, env=os.environ | environ
    )

    assert 0 == done.returncode, done.stderr[-3000:]
    return json.loads(done.stdout), done.stderr


def test_a_standalone_cluster_gives_what_a_local_one_gives(session, fingerprint, tmp_path, python, monkeypatch):
    """Executors in other processes read and write the same folders: rollups, analyses and compacted rows are the same.

    The first job is started by spark-submit with the files for administrators, and executors get a packed environment.
    The second is started by `--master` alone, and executors have the environment at the same path.

    Confirms that take longer from the second hour on are a change, so that the analyses have something to tell.
    """
    dice = random.Random(1)
    slower = [message(it, it * 5, stream="slower", confirm=0.002 if it < 720 else 0.05) for it in range(1440)]
    for half in range(2):
        messages = [*random_messages(dice, 500, half * 1800, 1800), *slower[half::2]]
        write(tmp_path / "landing", PROBE_MESSAGES, messages, f"messages-{half}")
        write(tmp_path / "landing", QUEUE_SAMPLES, random_samples(dice, 3, half * 1800, 1800), f"samples-{half}")
        write(tmp_path / "landing", POLL_SAMPLES, random_polls(dice, half * 1800, 1800), f"polls-{half}")
    folders = ["--landing", tmp_path / "landing", "--rollups", tmp_path / "rollups", "--json"]
    monkeypatch.chdir(tmp_path)
    do([python, "-m", "ackscope", "files", "spark", "-o", "spark", "--json"])
    subprocess.run(["sh", "spark/pack.sh", "venv", "environment.tar.gz"], check=True)
    with cluster(tmp_path) as master:
        submitted = {"VENV": str(tmp_path / "venv"), "MASTER": master, "ARCHIVE": "environment.tar.gz"}
        summary, _ = do(["sh", "spark/standalone.sh", "run", *folders], **submitted)
        advance_watermark(tmp_path / "rollups", jobs.generation(), 1e11)
        is_compacted, said = do([python, "-m", "ackscope", "pipeline", "compact", *folders, "--master", master])
    jobs.run(tmp_path / "landing", tmp_path / "local", session, SystemClock())

    assert list(tmp_path.glob("worker-*/app-*/*/environment/bin/python"))
    assert (True, "") == (0 < summary["rollup_files"], said)
    assert all(fingerprint(tmp_path / "rollups", [table.name]) for table in (BASELINES, CHANGES))
    assert (is_compacted["files_before"], is_compacted["files_after"]) == (
        2 * is_compacted["folders"],
        is_compacted["folders"],
    )
    assert fingerprint(tmp_path / "local", ROLLUPS) == fingerprint(tmp_path / "rollups", ROLLUPS)
    for path in (tmp_path / "landing").rglob("compacted-*.parquet"):
        assert pq.read_metadata(path).num_rows
