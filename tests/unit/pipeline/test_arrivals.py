"""Which landing files count as new, and that one of them is planned whole."""

import os

from ackscope.tables import OUTCOMES_1M, PROBE_MESSAGES, QUEUE_SAMPLES, QUEUES_1M
from pipeline import windows
from pipeline.arrivals import Arrivals
from pipeline.hours import HOUR
from pipeline.look import Look
from pipeline.storage.landing import Landing
from pipeline.transforms import TRANSFORMS
from tests.spark.landing_files import message, sample, write
from tests.spark.moments import NOON

BY_NAME = {transform.rollup.name: transform for transform in TRANSFORMS}
HOUR_OF_NOON = int(NOON) // HOUR


def seen(root):
    """The files of probe messages at noon, as a look finds them."""
    look = Look(Landing(root), "shop")
    look.around(PROBE_MESSAGES, [HOUR_OF_NOON])
    return list(look.seen)


def names(files):
    """Of paths, in order."""
    return sorted(path.stem for path in files)


def test_new_is_what_came_since_and_was_not_taken(tmp_path):
    """A file that was taken is new no more, also once the moment has moved past it; one that comes then is."""
    before = write(tmp_path, PROBE_MESSAGES, [message(1, 0)], "a")
    (_, _, held), *_ = seen(tmp_path)
    arrivals = Arrivals(held.came)

    assert ["a"] == names(arrivals.new(seen(tmp_path)))

    arrivals.take({before: held})

    assert arrivals.took(before)
    assert [] == names(arrivals.new(seen(tmp_path)))

    write(tmp_path, PROBE_MESSAGES, [message(2, 0)], "b")

    assert ["b"] == names(arrivals.new(seen(tmp_path)))

    arrivals.settle(held.came + 1e-3)

    assert not arrivals.took(before)
    assert "a" not in names(arrivals.new(seen(tmp_path)))


def test_a_file_came_when_it_was_renamed(tmp_path):
    """The time that its content tells may be long ago: a copy keeps it. Of files put together it is what counts."""
    for name in ("copied", "compacted-20260301T120000-0a1b2c3d-000000"):
        os.utime(write(tmp_path, PROBE_MESSAGES, [message(1, 0)], name), (NOON, NOON))

    assert ["copied"] == names(Arrivals(NOON + 1).new(seen(tmp_path)))


def test_a_window_is_from_the_first_minute_to_the_last_that_a_row_matters_to():
    """In each hour, and only in hours that may be made anew."""
    first, last = (round((NOON + seconds) * 1e6) for seconds in (3599, 3661))

    assert {HOUR_OF_NOON: (NOON + 3540, NOON + 3600), HOUR_OF_NOON + 1: (NOON + 3600, NOON + 3720)} == windows.narrowed(
        {HOUR_OF_NOON, HOUR_OF_NOON + 1, HOUR_OF_NOON + 2}, [(first, last)], 0
    )
    assert {HOUR_OF_NOON + 1: (NOON + 3600, NOON + 3720)} == windows.narrowed({HOUR_OF_NOON + 1}, [(first, last)], 0)


def test_work_is_joined_and_taken_apart():
    """Windows of both; what is done now and what is left are the whole."""
    messages, queues = BY_NAME[OUTCOMES_1M.name], BY_NAME[QUEUES_1M.name]
    both = windows.joined({messages: {1: (0, 60), 2: (60, 120)}}, {messages: {2: (180, 240)}, queues: {3: (0, 60)}})

    assert {messages: {1: (0, 60), 2: (60, 240)}, queues: {3: (0, 60)}} == both
    assert {1, 2, 3} == windows.hours_of(both)
    assert {messages: {2: (60, 240)}} == windows.only(both, {2})
    assert {messages: {1: (0, 60)}, queues: {3: (0, 60)}} == windows.without(both, {2})


def test_chunks_hold_as_many_rows_as_one_commit_takes(monkeypatch):
    """Hours that lie together are one portion, however many of them; too many rows are several chunks."""
    monkeypatch.setattr(windows, "ROWS_AT_ONCE", 10)
    work = {BY_NAME[OUTCOMES_1M.name]: {hour: windows.whole(hour) for hour in (1, 2, 3, 7)}}

    def rows(of_an_hour):
        return lambda _transform, window: of_an_hour * (window[1] - window[0]) // HOUR

    assert [[[1, 2, 3], [7]]] == list(windows.chunks(work, rows(2)))
    assert [[[1, 2, 3]], [[7]]] == list(windows.chunks(work, rows(3)))
    assert [[[1]], [[2]], [[3]], [[7]]] == list(windows.chunks(work, rows(50)))


def test_steps_grow_once_it_is_known_what_rows_become(monkeypatch):
    """Quiet queues become ten times as many rows, busy ones hardly more: the first step is for the former."""
    monkeypatch.setattr(windows, "COLLECTED_AT_ONCE", 20)
    growth = windows.Growth(10)
    steps = windows.steps(range(8), 4, growth)

    assert [0] == next(steps)

    growth.measured(4, 4)

    assert [[1, 2, 3, 4], [5, 6, 7]] == list(steps)


def test_an_hour_is_never_split_and_what_only_shrinks_is_one_step(monkeypatch):
    """However many rows."""
    monkeypatch.setattr(windows, "COLLECTED_AT_ONCE", 20)

    assert [[5], [6]] == list(windows.steps([5, 6], 1000, windows.Growth(10)))
    assert [[5, 6]] == list(windows.steps([5, 6], 1000, windows.Growth(0)))
    assert [[5, 6]] == list(windows.steps([5, 6], 0, windows.Growth(10)))


def test_a_folder_is_looked_at_once(tmp_path):
    """What comes after the look is not among its files, whoever asks again."""
    write(tmp_path, QUEUE_SAMPLES, [sample(0)], "a")
    look = Look(Landing(tmp_path), "shop")
    first = look.around(QUEUE_SAMPLES, [HOUR_OF_NOON])
    write(tmp_path, QUEUE_SAMPLES, [sample(1)], "b")

    assert first == look.around(QUEUE_SAMPLES, [HOUR_OF_NOON, HOUR_OF_NOON + 1])
    assert 1 == look.rows(QUEUE_SAMPLES, windows.whole(HOUR_OF_NOON))
