"""The reported lag of a stream."""

import os

from ackscope.tables import PROBE_MESSAGES
from pipeline.lag import LagTracker
from tests.spark.landing_files import message, write
from tests.spark.moments import NOON

WATERMARK = NOON + 100.0


def landed(root, name, changed, *seconds):
    """A landing file with messages so long after noon, changed at a moment."""
    path = write(root, PROBE_MESSAGES, [message(seq, second) for seq, second in enumerate(seconds)], name)
    os.utime(path, (changed, changed))
    return path


def test_nothing_waits(tmp_path):
    """An empty folder, and one in which everything is older than the watermark."""
    assert (0, None, None) == _seen(LagTracker(tmp_path, 0.0))

    landed(tmp_path, "old", WATERMARK - 1, 0)

    assert 0 == LagTracker(tmp_path, WATERMARK).pending().files


def test_the_oldest_row_that_waits(tmp_path):
    """Over all files after the watermark that were not ingested; with the newest."""
    landed(tmp_path, "old", WATERMARK - 1, 0)
    ingested = landed(tmp_path, "taken", WATERMARK + 1, 20)
    landed(tmp_path, "a", WATERMARK + 2, 40, 45)
    landed(tmp_path, "late", WATERMARK + 3, 30)
    lag = LagTracker(tmp_path, WATERMARK)
    lag.add([ingested], NOON + 20.0)

    assert (2, NOON + 30.0, NOON + 45.0) == _seen(lag)
    assert NOON + 20.0 == lag.newest


def test_a_watermark_forgets_what_was_ingested_before(tmp_path):
    """What was there at the mark is rolled up, whoever took it."""
    landed(tmp_path, "a", WATERMARK + 2, 40)
    lag = LagTracker(tmp_path, WATERMARK)
    lag.advance(WATERMARK + 3)

    assert 0 == lag.pending().files

    landed(tmp_path, "b", WATERMARK + 4, 50)

    assert (1, NOON + 50.0, NOON + 50.0) == _seen(lag)


def test_what_cannot_be_read_waits_without_a_time(tmp_path):
    """The stream itself says what is wrong with it."""
    landed(tmp_path, "a", WATERMARK + 2, 40).write_bytes(b"half")

    assert (1, None, None) == _seen(LagTracker(tmp_path, 0.0))


def _seen(lag):
    pending = lag.pending()
    return pending.files, pending.oldest, pending.newest
