"""Landing to a bucket: a spool, an uploader, and a bucket that is away."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from ackscope import arrow_files
from ackscope.clock import SystemClock
from ackscope.errors import ConfigError
from ackscope.object_path import ObjectPath
from ackscope.settings import load
from ackscope.tables import POLL_SAMPLES
from exporter.landing.blocks import row_blocks
from exporter.landing.settings import LandingSettings
from exporter.landing.upload import Uploader
from exporter.landing.writer import LandingWriter
from lab.network_link import LinkState, NetworkLink
from tests.buckets import BASE, ENDPOINT, KEY, environment, object_server, through

pytestmark = pytest.mark.integration

ROW = ("queues", True, 0.1, 0.0, 3, 0, False, None)


@pytest.fixture(scope="module")
def link() -> Iterator[NetworkLink]:
    """A link to a server of object storage; the environment names the link."""
    with object_server() as values:
        parts = urlsplit(values[ENDPOINT])
        found = NetworkLink(parts.port)
        with environment(through(values, found.port)):
            yield found
        found.close()


@pytest.fixture(autouse=True)
def _short_retries(monkeypatch):
    monkeypatch.setattr("ackscope.object_path._RETRY_SECONDS", 0.2)
    monkeypatch.setattr("ackscope.object_path._stores", {})
    monkeypatch.setattr("exporter.landing.upload._LONGEST_PAUSE", 1.0)


@pytest.fixture
def target(link) -> ObjectPath:
    """An empty prefix of the bucket."""
    return ObjectPath(BASE, uuid4().hex)


@contextmanager
def _writing(target: ObjectPath, spool, **changes) -> Iterator[LandingWriter]:
    settings = LandingSettings(directory=target, spool=spool, rotate=0.1, **changes)
    writer = LandingWriter(target, settings, SystemClock())
    writer.start()
    try:
        yield writer
    finally:
        writer.stop(30.0)


def _add(writer: LandingWriter) -> None:
    writer.add(row_blocks(POLL_SAMPLES, "shop", time.time(), [ROW]))


def _until(condition) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.05)


def test_rows_land_in_the_bucket_and_leave_the_spool(target, tmp_path):
    """The object has the path that the file would have."""
    with _writing(target, tmp_path) as writer:
        _add(writer)
        _until(lambda: writer.counts().uploaded_files == 1)
        counts = writer.counts()

    [found] = target.below()
    assert str(found.relative_to(target)).startswith("poll_samples/cluster=shop/date=")
    assert [] == list(tmp_path.rglob("*.parquet"))
    assert (0, 0, 0.0) == (counts.upload_errors, counts.spooled_bytes, counts.upload_lag)


def test_a_bucket_that_is_away_loses_nothing_and_comes_back(link, target, tmp_path, caplog):
    """Files wait, their age is known, and they arrive when the bucket is back, without a restart."""
    caplog.set_level("INFO")
    with _writing(target, tmp_path) as writer:
        _add(writer)
        _until(lambda: writer.counts().uploaded_files == 1)
        link.turn(LinkState.CUT)
        for number in range(3):
            _add(writer)
            _until(lambda number=number: writer.counts().files == number + 2)
        _until(lambda: writer.counts().upload_errors and writer.counts().upload_lag)
        assert 1 == writer.counts().uploaded_files
        assert writer.counts().spooled_bytes
        link.turn(LinkState.OPEN)
        _until(lambda: writer.counts().uploaded_files == 4)
        counts = writer.counts()

    assert 4 == len(list(target.below()))
    assert {} == counts.dropped
    assert 1 == caplog.text.count("bucket cannot be reached")
    assert 1 == caplog.text.count("bucket can be reached again")
    assert os.environ[KEY] not in caplog.text


def test_a_full_spool_drops_the_oldest_rows_and_counts_them(link, target, tmp_path):
    """Never more than the bound waits; what is left arrives."""
    link.turn(LinkState.CUT)
    try:
        settings = LandingSettings(directory=target, spool=tmp_path)
        writer = LandingWriter(tmp_path, settings, SystemClock())
        for _ in range(4):
            _add(writer)
            writer.flush()
        sizes = [path.stat().st_size for path in tmp_path.rglob("*.parquet")]
        uploader = Uploader(tmp_path, target, 2 * max(sizes), SystemClock())
        assert not uploader.send()
        assert {"poll_samples": 2} == uploader.counts().dropped
        assert uploader.counts().spooled_bytes <= 2 * max(sizes)
    finally:
        link.turn(LinkState.OPEN)
    _until(uploader.send)
    assert 2 == len(list(target.below()))


def test_what_a_killed_exporter_left_is_uploaded_by_the_next_one(target, tmp_path):
    """And a file that had arrived already stays one object."""
    settings = LandingSettings(directory=target, spool=tmp_path)
    writer = LandingWriter(tmp_path, settings, SystemClock())
    for _ in range(2):
        _add(writer)
        writer.flush()
    [sent, _] = sorted(tmp_path.rglob("*.parquet"))
    (target / sent.relative_to(tmp_path)).write_bytes(sent.read_bytes())
    before = (target / sent.relative_to(tmp_path)).stat()

    assert Uploader(tmp_path, target, 2**30, SystemClock()).send()

    assert 2 == len(list(target.below()))
    assert before == (target / sent.relative_to(tmp_path)).stat()
    assert [] == list(tmp_path.rglob("*.parquet"))


_WRITER = """
import itertools, sys, time
from pathlib import Path
from ackscope import arrow_files
from ackscope.clock import SystemClock
from ackscope.object_path import place
from ackscope.tables import POLL_SAMPLES
from exporter.landing.blocks import row_blocks
from exporter.landing.settings import LandingSettings
from exporter.landing.writer import LandingWriter
target, spool, first = place(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
writer = LandingWriter(target, LandingSettings(directory=target, spool=spool, rotate=3600), SystemClock())
writer.start()
for number in itertools.count(first):
    writer.add(row_blocks(POLL_SAMPLES, "shop", time.time(), [("queues", True, 0.1, 0.0, number, 0, False, None)]))
    writer.flush()
    print(number, flush=True)
"""


@pytest.mark.slow
def test_exporters_killed_at_random_lose_and_double_nothing(target, tmp_path, monkeypatch):
    """Every row that was on disk is in the bucket once, however often the uploader was killed."""
    monkeypatch.setattr("exporter.landing.upload._SEND_SECONDS", 0.0)
    dice, written = random.Random(5), list[int]()
    spool = tmp_path / "spool"
    for _ in range(6):
        command = [sys.executable, "-c", _WRITER, str(target), str(spool), str(1000 * (len(written) + 1))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            written.append(int(process.stdout.readline()))
            time.sleep(dice.uniform(0.0, 2.0))
        finally:
            process.kill()
            rest, _ = process.communicate()
        written += [int(line) for line in rest.split() if line.isdigit()]

    assert Uploader(spool, target, 2**30, SystemClock()).send()

    numbers = Counter(
        number
        for path in target.below()
        for number in arrow_files.parquet_file(path).read(columns=["objects"])["objects"].to_pylist()
    )
    assert {1} == set(numbers.values())
    assert set(written) <= numbers.keys()


def test_a_bucket_needs_a_spool(tmp_path):
    """One line that names the key."""
    file = tmp_path / "a.yml"
    file.write_text("directory: s3://history/a\n")
    with pytest.raises(ConfigError, match="spool: must be set"):
        load(LandingSettings, file, {})
