"""The landing files of a bucket in memory: what is new, at how many requests."""

import pytest

from ackscope.clock import Instant
from ackscope.object_path import ObjectPath
from ackscope.tables import QUEUE_SAMPLES
from pipeline.shard import Shard
from pipeline.storage import object_listing
from pipeline.storage.object_listing import ObjectListing

pytestmark = pytest.mark.integration

NOON = 1_772_366_400.0


class Hands:
    """A clock that a test moves."""

    def __init__(self):
        self.wall = NOON

    def now(self):
        """Return the same time on both clocks."""
        return Instant(self.wall, self.wall)


@pytest.fixture
def clock():
    """At noon."""
    return Hands()


def land(bucket, moment, cluster="shop", table=QUEUE_SAMPLES.name) -> ObjectPath:
    """A file with a name as the exporter gives it; listings do not read it."""
    day = f"{moment[:4]}-{moment[4:6]}-{moment[6:8]}"
    path = bucket / table / f"cluster={cluster}" / f"date={day}" / f"{moment}-0a1b2c3d-000001.parquet"
    path.write_bytes(b"rows")
    return path


def names(listing):
    """New files, in order."""
    return [path.name[:15] for _, path, _ in listing.new()]


def test_a_quick_listing_finds_what_follows(bucket, clock):
    """With one request for each cluster of a table; also files with names from a little earlier, and the next date."""
    land(bucket, "20260301T115900")
    land(bucket, "20260228T000000")
    listing = ObjectListing(bucket, clock)
    listing.refresh()

    assert ["20260228T000000", "20260301T115900"] == sorted(names(listing))
    assert 0 == listing.reached
    listing.done(path for _, path, _ in listing.new())
    assert NOON == listing.reached

    before = listing.requests
    land(bucket, "20260301T120000")
    land(bucket, "20260301T115000")
    land(bucket, "20260302T000000")
    clock.wall += 1
    listing.refresh()

    assert {"20260301T115000", "20260301T120000", "20260302T000000"} == set(names(listing))
    assert 1 == listing.requests - before
    assert NOON == listing.reached


def test_a_whole_listing_finds_the_rest(bucket, clock):
    """Late files, new clusters, and what is gone; it comes after as many seconds as it costs requests, twice."""
    gone = land(bucket, "20260301T110000")
    land(bucket, "20260301T115900")
    listing = ObjectListing(bucket, clock, shard=Shard(("shop", "bank")))
    listing.refresh()
    whole = listing.requests
    listing.done(path for _, path, _ in listing.new()[:1])
    gone.unlink()
    late = [land(bucket, "20260301T080000"), land(bucket, "20260301T115900", "bank")]
    land(bucket, "20260301T115900", "other")
    clock.wall += whole / object_listing.WHOLE_RATE - 1
    listing.refresh()

    assert not set(late) & {path for _, path, _ in listing.new()}

    clock.wall += 1
    listing.refresh()

    assert set(late) <= {path for _, path, _ in listing.new()}
    assert gone not in listing.folder(gone.parent).files
    assert gone not in {path for _, path, _ in listing.new()}
    assert "cluster=other" not in str(listing.new())


def test_a_time_is_reached_although_files_keep_coming(bucket, clock):
    """Only those that a whole listing found must be done."""
    first = land(bucket, "20260301T115900")
    listing = ObjectListing(bucket, clock)
    listing.refresh()
    clock.wall += 600
    second = land(bucket, "20260301T120000")
    listing.refresh()

    assert 0 == listing.reached

    listing.done([first])

    assert [second] == [path for _, path, _ in listing.new()]
    assert NOON == listing.reached

    clock.wall += 600
    listing.refresh()
    land(bucket, "20260301T120001")
    clock.wall += 5
    listing.refresh()
    listing.done([second])

    assert ["20260301T120001"] == names(listing)
    assert NOON + 1200 == listing.reached


def test_files_before_the_watermark_are_not_new_at_first(bucket, clock):
    """But those that appear later are, whatever time the storage gives them."""
    old = land(bucket, "20260301T115900")
    listing = ObjectListing(bucket, clock, since=1e11)
    listing.refresh()

    assert [] == names(listing)
    assert [old] == list(listing.folder(old.parent).files)

    land(bucket, "20260301T120000")
    clock.wall += 1
    listing.refresh()

    assert ["20260301T120000"] == names(listing)


def test_a_folder_is_listed_again_when_a_file_of_it_is_gone(bucket, clock):
    """What is there stays new, or not new, as it was."""
    gone, stays, new = (land(bucket, f"20260301T1159{second:02}") for second in range(3))
    listing = ObjectListing(bucket, clock)
    listing.refresh()
    listing.done([stays])
    gone.unlink()
    listing.reload(gone.parent)

    assert [new] == [path for _, path, _ in listing.new()]
    assert [stays, new] == list(listing.folder(gone.parent).files)
