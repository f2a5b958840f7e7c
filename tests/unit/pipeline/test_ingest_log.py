"""Which landing files count as new, and how their hours are planned."""

import os

from ackscope.tables import OUTCOMES_1M, PROBE_MESSAGES, QUEUE_SAMPLES, QUEUES_1M
from pipeline import work_ranges
from pipeline.hours import HOUR
from pipeline.ingest_log import IngestLog
from pipeline.listing import LandingListing
from pipeline.storage.landing import Landing
from pipeline.transforms import TRANSFORMS
from tests.spark.landing_files import message, sample, write
from tests.spark.moments import NOON

BY_NAME = {transform.rollup.name: transform for transform in TRANSFORMS}
HOUR_OF_NOON = int(NOON) // HOUR


def files_seen(root):
    """Return the files of probe messages at noon, as a scan finds them."""
    listing = LandingListing(Landing(root), "shop")
    listing.around(PROBE_MESSAGES, [HOUR_OF_NOON])
    return list(listing.seen)


def names(files):
    """Of paths, in order."""
    return sorted(path.stem for path in files)


def test_new_is_what_came_since_and_was_not_ingested(tmp_path):
    """An ingested file is not new, also after the watermark has passed it; a later one is."""
    before = write(tmp_path, PROBE_MESSAGES, [message(1, 0)], "a")
    (_, _, stats), *_ = files_seen(tmp_path)
    log = IngestLog(stats.arrived_at)

    assert ["a"] == names(log.not_ingested(files_seen(tmp_path)))

    log.record({before: stats})

    assert log.contains(before)
    assert [] == names(log.not_ingested(files_seen(tmp_path)))

    write(tmp_path, PROBE_MESSAGES, [message(2, 0)], "b")

    assert ["b"] == names(log.not_ingested(files_seen(tmp_path)))

    log.advance(stats.arrived_at + 1e-3)

    assert not log.contains(before)
    assert "a" not in names(log.not_ingested(files_seen(tmp_path)))


def test_a_file_came_when_it_was_renamed(tmp_path):
    """Its mtime may be old: a copy preserves it. For compacted files the mtime counts."""
    for name in ("copied", "compacted-20260301T120000-0a1b2c3d-000000"):
        os.utime(write(tmp_path, PROBE_MESSAGES, [message(1, 0)], name), (NOON, NOON))

    assert ["copied"] == names(IngestLog(NOON + 1).not_ingested(files_seen(tmp_path)))


def test_a_window_is_from_the_first_minute_to_the_last_that_a_row_matters_to():
    """In each hour, and only in hours that may be rebuilt."""
    first, last = (round((NOON + seconds) * 1e6) for seconds in (3599, 3661))

    assert {
        HOUR_OF_NOON: (NOON + 3540, NOON + 3600),
        HOUR_OF_NOON + 1: (NOON + 3600, NOON + 3720),
    } == work_ranges.narrow({HOUR_OF_NOON, HOUR_OF_NOON + 1, HOUR_OF_NOON + 2}, [(first, last)], 0)
    assert {HOUR_OF_NOON + 1: (NOON + 3600, NOON + 3720)} == work_ranges.narrow({HOUR_OF_NOON + 1}, [(first, last)], 0)


def test_work_is_joined_and_parsed():
    """Windows are merged; the work done now and the rest add up to the whole."""
    messages, queues = BY_NAME[OUTCOMES_1M.name], BY_NAME[QUEUES_1M.name]
    both = work_ranges.merge_work(
        {messages: {1: (0, 60), 2: (60, 120)}}, {messages: {2: (180, 240)}, queues: {3: (0, 60)}}
    )

    assert {messages: {1: (0, 60), 2: (60, 240)}, queues: {3: (0, 60)}} == both
    assert {1, 2, 3} == work_ranges.hours_of(both)
    assert {messages: {2: (60, 240)}} == work_ranges.restrict(both, {2})
    assert {messages: {1: (0, 60)}, queues: {3: (0, 60)}} == work_ranges.exclude(both, {2})


def test_chunks_hold_as_many_rows_as_one_commit_takes():
    """Adjacent hours are one chunk, however many; too many rows become several chunks."""
    work = {BY_NAME[OUTCOMES_1M.name]: {hour: work_ranges.whole_hour(hour) for hour in (1, 2, 3, 7)}}

    def rows(of_an_hour):
        return lambda _transform, window: of_an_hour * (window[1] - window[0]) // HOUR

    assert [[[1, 2, 3], [7]]] == list(work_ranges.chunks(work, rows(2), 10))
    assert [[[1, 2, 3]], [[7]]] == list(work_ranges.chunks(work, rows(3), 10))
    assert [[[1]], [[2]], [[3]], [[7]]] == list(work_ranges.chunks(work, rows(50), 10))


def test_steps_grow_once_it_is_known_what_rows_become(monkeypatch):
    """Quiet queues expand to ten times as many rows, busy ones hardly expand; the first step assumes the former."""
    monkeypatch.setattr(work_ranges, "MAX_COLLECTED_ROWS", 20)
    growth = work_ranges.GrowthRate(10)
    steps = work_ranges.split_steps(range(8), 4, growth)

    assert [0] == next(steps)

    growth.update(4, 4)

    assert [[1, 2, 3, 4], [5, 6, 7]] == list(steps)


def test_an_hour_is_never_split_and_what_only_shrinks_is_one_step(monkeypatch):
    """However many rows."""
    monkeypatch.setattr(work_ranges, "MAX_COLLECTED_ROWS", 20)

    assert [[5], [6]] == list(work_ranges.split_steps([5, 6], 1000, work_ranges.GrowthRate(10)))
    assert [[5, 6]] == list(work_ranges.split_steps([5, 6], 1000, work_ranges.GrowthRate(0)))
    assert [[5, 6]] == list(work_ranges.split_steps([5, 6], 0, work_ranges.GrowthRate(10)))


def test_a_folder_is_looked_at_once(tmp_path):
    """Files that arrive after the scan are not included, even if it is asked again."""
    write(tmp_path, QUEUE_SAMPLES, [sample(0)], "a")
    listing = LandingListing(Landing(tmp_path), "shop")
    first = listing.around(QUEUE_SAMPLES, [HOUR_OF_NOON])
    write(tmp_path, QUEUE_SAMPLES, [sample(1)], "b")

    assert first == listing.around(QUEUE_SAMPLES, [HOUR_OF_NOON, HOUR_OF_NOON + 1])
    assert 1 == listing.rows(QUEUE_SAMPLES, work_ranges.whole_hour(HOUR_OF_NOON))
