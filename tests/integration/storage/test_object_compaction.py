"""Compaction of landing files in a bucket: at every step, readers see each row once."""

import pytest

from ackscope.arrow_files import parquet_file
from ackscope.clock import SystemClock
from pipeline import jobs
from pipeline.compact import Compactor
from pipeline.storage import object_compaction
from pipeline.storage.folder_listing import OBJECT_NOTE
from pipeline.storage.landing import Landing
from pipeline.storage.object_listing import ObjectListing
from pipeline.storage.watermark import advance_watermark
from tests.buckets import upload
from tests.unit.pipeline.test_compaction import BURSTS, Killed, planned, write

pytestmark = pytest.mark.integration

ALL = [1, 2, 2, 3, 61, 62]


@pytest.fixture
def landing(bucket, tmp_path):
    """Three small files of a date; two have the same minute."""
    for number, minutes in enumerate(((1, 2), (2, 3), (61, 62))):
        write(tmp_path, f"20260301T12000{number}.parquet", *minutes)
    upload(tmp_path, bucket / "landing")
    return bucket / "landing"


def add(landing, tmp_path, name, *minutes):
    """A late file."""
    path = write(tmp_path, name, *minutes)
    (landing / BURSTS.folder / name).write_bytes(path.read_bytes())


def visible(landing, listing=None):
    """The numbers of all bursts that a reader sees now."""
    paths = Landing(landing, listing=listing).files(BURSTS)
    return sorted(number for path in paths for number in parquet_file(path).read()["messages"].to_pylist())


def names(landing):
    """Of all objects of the folder."""
    return {it.name for it in (landing / BURSTS.folder).iterdir()}


def compact(landing):
    """All of it is rolled up."""
    rollups = landing.parent / "rollups"
    advance_watermark(rollups, jobs.generation(), 1e11)
    return Compactor(landing, rollups, lambda: 1 / 0, SystemClock(), delta=False).run()


def test_small_files_become_one_and_late_ones_join_it(landing, tmp_path):
    """Sorted, without Spark; a second time there is nothing to do; a source that is uploaded again does not count."""
    source = next(iter(planned(landing).sources))
    content = source.read_bytes()
    summary = compact(landing)

    assert (1, 3, 1, 6, 0) == (
        summary.folders,
        summary.files_before,
        summary.files_after,
        summary.rows,
        summary.finished,
    )
    assert ALL == visible(landing)
    assert {OBJECT_NOTE} == {name for name in names(landing) if not name.startswith("compacted-")}
    assert 2 == len(names(landing))
    assert 0 == compact(landing).folders

    source.write_bytes(content)

    assert ALL == visible(landing)
    assert 1 == compact(landing).finished
    assert source.name not in names(landing)

    add(landing, tmp_path, "20260302T010000.parquet", 99)
    summary = compact(landing)

    assert (2, 1) == (summary.files_before, summary.files_after)
    assert [*ALL, 99] == visible(landing)
    assert 2 == len(names(landing))


@pytest.mark.parametrize("step", ["write_object_note", "ObjectPath.unlink"])
def test_a_kill_at_any_step_loses_and_doubles_nothing(landing, step, monkeypatch):
    """Before the note nothing has changed, after it all has; the next compaction removes what is left."""
    listing = ObjectListing(landing, SystemClock())
    listing.refresh()
    before = names(landing)

    def killed(*_, **__):
        raise Killed

    target = object_compaction if step == "write_object_note" else object_compaction.ObjectPath
    with monkeypatch.context() as patched:
        patched.setattr(target, step.rpartition(".")[2], killed)
        with pytest.raises(Killed):
            compact(landing)

    assert before < names(landing)
    assert ALL == visible(landing) == visible(landing, listing)

    monkeypatch.setattr(object_compaction, "_ORPHAN_SECONDS", -60.0)
    compact(landing)
    compact(landing)

    assert 2 == len(names(landing))
    # The listing still knows the sources, and notices that they are gone.
    assert ALL == visible(landing) == visible(landing, listing)
    listing.refresh()
    assert ALL == visible(landing, listing)


def test_a_writer_that_was_paused_loses(landing):
    """Its new files never count, whether another one compacted meanwhile, or only removed what it had left."""
    plan = planned(landing)
    sizes = object_compaction.merge(landing, plan, lambda: None)
    late = 1e11
    assert object_compaction.is_untidy(landing, BURSTS, late)
    stale = object_compaction.read_folder(landing / BURSTS.folder)
    object_compaction.tidy(landing, BURSTS, late)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(object_compaction, "read_folder", lambda _: stale)
        assert not object_compaction.switch(landing, plan, frozenset(sizes))

    assert ALL == visible(landing)
    compact(landing)
    assert not object_compaction.switch(landing, plan, frozenset(sizes))
    assert ALL == visible(landing)


def test_a_compacted_file_is_as_old_as_its_newest_source(landing):
    """So a stream that rolled up the sources does not take it for new."""
    newest = max(it.arrived_at for it in Landing(landing).files(BURSTS).values())
    ingested, other = (ObjectListing(landing, SystemClock(), since) for since in (newest + 1, newest))
    for listing in (ingested, other):
        listing.refresh()
        listing.done([path for _, path, _ in listing.new()])
    compact(landing)
    for listing in (ingested, other):
        listing.reload(landing / BURSTS.folder)

    assert [newest] == [it.arrived_at for it in Landing(landing).files(BURSTS).values()]
    assert (0, 1) == (len(ingested.new()), len(other.new()))
