"""How long files wait for a bucket, while the wall clock of the exporter is set."""

import pyarrow as pa
import pytest

from ackscope.object_path import ObjectStorageError
from exporter.landing.files import LandingFiles
from exporter.landing.upload import Uploader
from tests.unit.exporter.made import SetClock


class AwayBucket:
    """A prefix of a bucket that cannot be reached."""

    def __truediv__(self, _):
        return self

    def write_version(self, _):
        """Fail."""
        raise ObjectStorageError(0, "away")


@pytest.fixture
def waiting(tmp_path):
    """A clock, and an uploader with a function that lands a file and looks at the spool so many seconds later."""
    clock = SetClock()
    uploader, files = Uploader(tmp_path, AwayBucket(), 2**20, clock), LandingFiles(tmp_path)

    def land(*, later=0.0):
        files.write("probe_messages/cluster=shop/date=2027-01-15", pa.table({"a": [1]}), clock.now().wall)
        clock.mono += later
        uploader.send()
        return round(uploader.counts().lag, 1)

    return clock, land


@pytest.mark.parametrize("jump", [7200.0, -7200.0])
def test_a_clock_that_is_set_does_not_change_how_long_a_file_waits(waiting, jump):
    """Neither hours, nor nothing."""
    clock, land = waiting

    assert 2.0 == land(later=2.0)

    clock.jumped = jump

    assert 32.0 == land(later=30.0)

    clock.jumped = 0.0

    assert 62.0 == land(later=30.0)


def test_what_an_earlier_exporter_left_waits_since_it_was_written(waiting):
    """The time of its name is all that is known."""
    _, land = waiting

    assert 600.0 == land(later=600.0)
