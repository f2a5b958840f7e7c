import os
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ackscope.tables import ACK_BURSTS
from exporter.landing.blocks import record_blocks
from exporter.landing.files import LandingFiles
from tests.unit.exporter.made import burst

HOUR, DAY = 3600.0, 86400.0
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()


def names(root):
    """Every file below a folder, hidden ones too, relative to it."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


class Folder:
    """A landing folder with files of several hours."""

    def __init__(self, root):
        self.root, self.files = root, LandingFiles(root)

    def write(self, wall, cluster="shop"):
        """One small file, written at that moment; answers with its size."""
        block = record_blocks(ACK_BURSTS, cluster, [burst(at=wall)])[0]
        return self.files.write(block.key.folder, block.arrow(), wall)

    def expire(self, wall=NOON, max_bytes=2**30, max_age=30 * DAY, *, look=True):
        """What is removed."""
        return self.files.expire(wall, max_bytes, max_age, look=look)

    def hours(self):
        """Day and hour of each file, in the order of their names."""
        return [name.rpartition("/")[2][6:11] for name in names(self.root)]


@pytest.fixture
def folder(tmp_path):
    """An empty landing folder."""
    return Folder(tmp_path)


def test_what_is_too_old_is_removed(folder):
    """Age counts from the time of writing; empty folders are removed too."""
    for back in (3 * DAY, 2 * DAY + HOUR, 2 * DAY - HOUR, 0):
        folder.write(NOON - back)
    removed = folder.expire(max_age=2 * DAY)

    assert (2, 0, None) == (removed.files, removed.errors, removed.trouble)
    assert ["08T13", "10T12"] == folder.hours()
    assert not (folder.root / "ack_bursts/cluster=shop/date=2026-03-07").exists()


def test_the_oldest_go_until_the_rest_fits(folder):
    """The bound is for all clusters together, and past hours go as a whole: half an hour would be rolled up as one."""
    sizes = [
        folder.write(NOON - back * HOUR + second, cluster)
        for back in (3, 2, 1)
        for second, cluster in ((1, "b"), (2, "a"))
    ]
    removed = folder.expire(max_bytes=sum(sizes[3:]))

    assert ["10T11", "10T11"] == folder.hours()
    assert (4, sum(sizes[:4])) == (removed.files, removed.bytes)
    assert sum(sizes[4:]) == folder.files.folder_bytes


def test_of_today_it_goes_file_by_file_when_it_must(folder):
    """The present hour has its oldest file removed only."""
    sizes = [folder.write(NOON + second) for second in range(4)]
    folder.expire(NOON + 5, max_bytes=sum(sizes[1:]))

    assert 3 == len(folder.hours())
    assert (folder.root / "ack_bursts/cluster=shop/date=2026-03-10").is_dir()


def test_what_fits_stays(folder):
    """Nothing is removed below both bounds."""
    size = folder.write(NOON - 5 * DAY)

    assert (0, 0) == folder.expire(max_bytes=size)[:2]
    assert 1 == len(folder.hours())


def test_only_our_own_files_are_removed(folder):
    """Files with other names, in other places, links and unfinished files stay."""
    folder.write(NOON - 20 * DAY)
    mine = next(folder.root.rglob("*.parquet"))
    day = mine.parent
    others = [
        day / "part-0001.parquet",
        day / "20200101T000000-0123456z-000000.parquet",
        day / f".{mine.name}.tmp",
        day.parent / mine.name,
        folder.root / "orders" / "cluster=shop" / day.name / mine.name,
        folder.root / "_quarantine" / "ack_bursts" / "cluster=shop" / day.name / mine.name,
    ]
    for other in others:
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(b"x" * 5000)
    link = day / "20200101T000000-01234567-000000.parquet"
    link.symlink_to(others[0])
    folder.expire(max_bytes=0, max_age=0)

    assert not mine.exists()
    assert all(other.exists() for other in others)
    assert link.is_symlink()


def test_files_that_were_put_together_go_with_the_newest_of_them(folder):
    """The name of a compacted file has the time of its newest source, which is its age."""
    for back in (3 * DAY, 2 * DAY):
        folder.write(NOON - back)
    for path in list(folder.root.rglob("*.parquet")):
        path.rename(path.with_name(f"compacted-{path.name}"))
    first = folder.expire(max_age=2 * DAY + HOUR)

    assert 1 == first.files
    assert ["compacted-20260308T120000"] == [path.name[:25] for path in folder.root.rglob("*.parquet")]

    assert 1 == folder.expire(max_bytes=0).files


def test_files_of_earlier_runs_are_ours(folder):
    """A restart forgets no file."""
    size = folder.write(NOON - 5)
    again = LandingFiles(folder.root)
    removed = again.expire(NOON, 0, DAY, look=False)

    assert (1, size, 0) == (removed.files, removed.bytes, again.folder_bytes)


def test_what_others_removed_is_noticed_at_the_next_look(folder):
    """Between scans, sizes are cached."""
    folder.write(NOON)
    folder.expire()
    before = folder.files.folder_bytes
    next(folder.root.rglob("*.parquet")).unlink()
    folder.expire(look=False)
    remembered = folder.files.folder_bytes
    folder.expire()

    assert before == remembered > 0
    assert 0 == folder.files.folder_bytes


def test_a_file_that_cannot_be_removed_is_reported(folder, monkeypatch):
    """With its path and the reason; the others go."""
    for second in (0, 1):
        folder.write(NOON - 5 * DAY + second)
    unlink, stuck = os.unlink, str(min(folder.root.rglob("*.parquet")))

    def refuse(path, **how):
        if str(path) == stuck:
            raise PermissionError(13, "Permission denied")
        unlink(path, **how)

    monkeypatch.setattr(os, "unlink", refuse)
    removed = folder.expire(max_age=DAY)

    assert (1, 1, f"{stuck}: Permission denied") == (removed.files, removed.errors, removed.trouble)


def test_what_a_killed_exporter_left_is_swept(folder):
    """After an hour nobody writes to it; a younger file may belong to another exporter."""
    folder.write(NOON)
    day = next(folder.root.rglob("*.parquet")).parent
    old, young = (day / f".20260310T{hour}0000-01234567-000001.parquet.tmp" for hour in ("10", "12"))
    for path in (old, young):
        path.write_bytes(b"half")
    folder.files.sweep(NOON)

    assert (False, True) == (old.exists(), young.exists())


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_write_that_fails_leaves_nothing(folder, monkeypatch, step):
    """Whatever fails: no half file, no hidden file."""

    def full(*_args, **_how):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        folder.write(NOON)

    assert [] == names(folder.root)


def test_a_file_is_what_its_name_says(folder):
    """The name has time, run and number; its size is known."""
    size = folder.write(NOON)
    path = next(folder.root.rglob("*.parquet"))

    assert path.name.startswith("20260310T120000-")
    assert size == path.stat().st_size
    assert 1 == pa.parquet.read_metadata(path).num_rows
