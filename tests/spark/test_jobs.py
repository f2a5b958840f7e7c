"""`run` and `stream` with files that arrive late, twice, damaged, or between two streams."""

import threading
import time

import pytest

from ackscope.clock import SystemClock
from ackscope.tables import OUTCOMES_1M, PROBE_MESSAGES, QUEUE_SAMPLES, QUEUES_1M
from pipeline import jobs
from pipeline.shard import ALL
from pipeline.stop import Stop
from tests.spark.landing_files import message, sample, write, write_random

pytestmark = pytest.mark.spark


def run(root, session, rollups="batch"):
    """Roll up `root/landing`."""
    return jobs.run(root / "landing", root / rollups, session, SystemClock(), minutes_only=True)


def stream_until(root, session, condition, seconds=120, shard=ALL):
    """Stream into `root/streamed` until the condition holds; it gets the rollup folder."""
    import orjson

    stop, met = Stop(), []
    status = root / "streamed" / f"_status{shard.suffix}.json"
    status.unlink(missing_ok=True)

    def watch():
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not met:
            if status.exists() and condition(orjson.loads(status.read_bytes())):
                met.append(True)
            time.sleep(0.1)
        stop.requested = True

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        final = jobs.stream(
            root / "landing", root / "streamed", root / "checkpoint", 0.5, session, stop, SystemClock(), shard=shard
        )
    finally:
        met.append(False)
        watcher.join()
    assert met[0], "the condition did not come true in time"
    return final


def test_run_twice_gives_the_same_bytes(session, fingerprint, tmp_path):
    """A rollup file depends on the landing rows alone."""
    write_random(tmp_path / "landing", seed=1)
    first = run(tmp_path, session)
    before = fingerprint(tmp_path / "batch")

    second = run(tmp_path, session)

    assert first.rollup_rows == second.rollup_rows
    assert before == fingerprint(tmp_path / "batch")


def test_stream_then_run_agree(session, fingerprint, tmp_path):
    """Files that come in portions, the stream stopped in between, give what one `run` gives."""
    (tmp_path / "streamed").mkdir()
    total = 0
    for life in range(2):
        made = write_random(tmp_path / "landing", seed=life, first=life * 900)
        total += (arrived := sum(len(rows) for rows in made.values()))
        status = stream_until(tmp_path, session, lambda status, rows=arrived: status["landing_rows"] >= rows)

        assert (arrived, None) == (status.landing_rows, status.last_error)

    summary = run(tmp_path, session)

    assert total == summary.landing_rows
    assert fingerprint(tmp_path / "batch") == fingerprint(tmp_path / "streamed")


def test_stream_waits_for_its_folder(session, tmp_path):
    """A landing folder that is not there yet is made, and followed."""
    status = stream_until(tmp_path, session, lambda status: status["updated_at"])

    assert (tmp_path / "landing").is_dir()
    assert (0, None) == (status.batches, status.last_error)


def test_late_samples_change_the_next_hour(session, fingerprint, rolled, tmp_path):
    """A sample that comes late is where the first increase of the next hour starts: that hour is rebuilt."""
    write(tmp_path / "landing", QUEUE_SAMPLES, [sample(3605, publish=9), sample(3615, publish=10)], "a")
    stream_until(tmp_path, session, lambda status: status["batches"] >= 1)
    write(tmp_path / "landing", QUEUE_SAMPLES, [sample(3595, publish=2)], "late")
    stream_until(tmp_path, session, lambda status: status["batches"] >= 1)

    run(tmp_path, session)

    assert fingerprint(tmp_path / "batch") == fingerprint(tmp_path / "streamed")


def test_an_increase_reaches_back_into_the_hour_before(session, fingerprint, rolled, tmp_path):
    """What is learnt after the hour belongs in part to its last minute: that hour is rebuilt, too."""
    write(tmp_path / "landing", QUEUE_SAMPLES, [sample(3590, publish=0)], "a")
    stream_until(tmp_path, session, lambda status: status["batches"] >= 1)
    write(tmp_path / "landing", QUEUE_SAMPLES, [sample(3610, publish=10)], "b")
    stream_until(tmp_path, session, lambda status: status["batches"] >= 1)

    run(tmp_path, session)

    assert [5, 5] == [row["published"] for row in rolled(tmp_path / "streamed", QUEUES_1M)]
    assert fingerprint(tmp_path / "batch") == fingerprint(tmp_path / "streamed")


def damaged(path):
    """Overwrite the pages of a file and leave its footer."""
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 3] = b"\xff" * (len(data) // 3 - 4)
    path.write_bytes(data)


def spoil(landing):
    """Add three bad files: one truncated, one of another table, one with damaged pages."""
    good = write(landing, PROBE_MESSAGES, [message(1, 0)], "good")
    good.with_name("cut.parquet").write_bytes(good.read_bytes()[:-20])
    foreign = write(landing, QUEUE_SAMPLES, [sample(0)], "foreign")
    foreign.rename(good.with_name("foreign.parquet"))
    damaged(write(landing, PROBE_MESSAGES, [message(seq, seq / 100) for seq in range(2, 5000)], "damaged"))
    good.with_name(".unfinished.parquet").write_bytes(b"half")
    good.with_name("_hidden.parquet").write_bytes(b"half")


def test_run_sets_bad_files_apart(session, rolled, tmp_path):
    """Whatever is wrong with a file, it is moved away and counted, and the others are rolled up."""
    spoil(tmp_path / "landing")

    summary = run(tmp_path, session)

    assert 3 == summary.quarantined
    assert ["cut.parquet", "damaged.parquet", "foreign.parquet"] == sorted(
        path.name for path in (tmp_path / "landing" / "_quarantine").rglob("*.parquet")
    )
    assert [1] == [row["messages"] for row in rolled(tmp_path / "batch", OUTCOMES_1M)]


def test_stream_sets_bad_files_apart_and_goes_on(session, rolled, tmp_path):
    """Bad files end no stream."""
    spoil(tmp_path / "landing")

    status = stream_until(tmp_path, session, lambda status: status["batches"] >= 1)

    assert (3, None) == (status.quarantined, status.last_error)
    assert [1] == [row["messages"] for row in rolled(tmp_path / "streamed", OUTCOMES_1M)]


def test_odd_names_are_only_names(session, rolled, tmp_path):
    """A folder name full of what Spark takes for patterns and escapes is still a folder name."""
    root = tmp_path / "a [1] {b,c} 100%25 *é"
    write(root / "landing", PROBE_MESSAGES, [message(1, 0)], "a b%41[x]", cluster="eu-1.shop_x")

    run(root, session)
    stream_until(root, session, lambda status: status["batches"] >= 1)

    for folder in ("batch", "streamed"):
        assert [1] == [row["messages"] for row in rolled(root / folder, OUTCOMES_1M)]
