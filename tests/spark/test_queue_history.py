"""What queues_1m makes of samples that tell changes only."""

import pytest

from ackscope.clock import SystemClock
from ackscope.tables import HEARTBEAT, QUEUE_SAMPLES, QUEUES_1M
from pipeline import jobs
from tests.spark.landing_files import absent, at, poll, sample, write

pytestmark = pytest.mark.spark


@pytest.fixture
def history(minutes):
    """Roll up samples and polls given as seconds after noon; answers with the rows by minute."""
    return lambda samples, polls: minutes(QUEUE_SAMPLES, samples, polls)


def every(seconds, start, end):
    """Good polls from `start` to before `end`."""
    return [poll(moment) for moment in range(start, end, seconds)]


def test_a_quiet_queue_stays_as_it_was(history):
    """One row is enough for minutes of polls: its levels hold, and its counters stand still."""
    rows = history([sample(0, messages_ready=7, publish=50)], every(10, 0, 180))

    assert [6, 6, 6] == [row["samples"] for row in rows.values()]
    assert [7, 7, 7] == [row["messages_ready_last"] for row in rows.values()]
    assert [None, 0, 0] == [row["published"] for row in rows.values()]


def test_a_minute_without_polls_is_a_gap(history):
    """Where the broker was away, nothing is known, though the row before is young enough."""
    rows = history([sample(0, messages_ready=7)], every(10, 0, 60) + every(10, 180, 240))

    assert [0, 3] == list(rows)


def test_a_poll_that_failed_knows_nothing(history):
    """Nor does one of another family."""
    failed = [poll(70, success=False), poll(80, family="nodes")]

    assert [0] == list(history([sample(0)], [poll(0), *failed]))


def test_without_a_heartbeat_nothing_is_known_any_more(history):
    """A row holds for so long; polls alone prove nothing of a queue."""
    rows = history([sample(0)], every(30, 0, 1200))

    assert list(range(int(HEARTBEAT) // 60)) == list(rows)


def test_a_queue_that_went_ends(history):
    """From the poll on that did not show it."""
    rows = history([sample(0, messages_ready=3), absent(90)], every(10, 0, 240))

    assert [6, 3] == [row["samples"] for row in rows.values()]


def test_what_a_whole_poll_does_not_show_is_not_there(history):
    """A queue that went while the exporter was down has no row that says so."""
    polls = [*every(10, 0, 60), poll(120, whole=True), *every(10, 130, 300)]

    assert [0] == list(history([sample(0)], polls))


def test_a_new_queue_began_at_zero(history):
    """All of its first counts are of its own time, the counters that it never had among them."""
    rows = history([absent(60), sample(65, publish=40, ack=None)], every(5, 0, 120))

    assert [1] == list(rows)
    assert (40, None, 11) == (rows[1]["published"], rows[1]["acked"], rows[1]["samples"])


def test_what_changed_did_so_between_two_polls(history):
    """The row of the last quiet poll keeps an increase out of the quiet minutes before it."""
    rows = history([sample(0, publish=0), sample(205, publish=0), sample(210, publish=99)], every(5, 0, 240))

    assert [0, 0, 0, 99] == [row["published"] for row in rows.values()]


def test_counters_of_late_details_belong_to_the_time_between_them(history):
    """Levels are of each poll; an increase that is known after three minutes is dealt out over them."""
    details = [
        sample(0, publish=100, details_at=at(0), messages_ready=1),
        sample(100, publish=100, details_at=at(0), messages_ready=5),
        sample(190, publish=400, details_at=at(180), messages_ready=5),
    ]
    rows = history(details, every(10, 0, 240))

    assert [100, 100, 100, 0] == [row["published"] for row in rows.values()]
    assert [1, 5, 5, 5] == [row["messages_ready_max"] for row in rows.values()]


def test_counters_that_are_not_read_again_are_not_reported_to_stand(history):
    """Polls that renew only the levels know no increase."""
    rows = history([sample(5, publish=100, details_at=at(0))], every(10, 5, 120))

    assert [None, None] == [row["published"] for row in rows.values()]


def test_an_increase_over_a_gap_keeps_the_gap(history):
    """The minutes in between have their share, and no level."""
    rows = history(
        [sample(0, publish=0), sample(50, publish=0), sample(230, publish=180)], [poll(0), poll(50), poll(230)]
    )

    assert [10, 60, 60, 50] == [row["published"] for row in rows.values()]
    assert [2, 0, 0, 1] == [row["samples"] for row in rows.values()]
    assert [0, None, None, 0] == [row["messages_ready_max"] for row in rows.values()]


def test_a_sample_that_no_poll_goes_with_counts_itself(history):
    """Before the first poll, after the last one, or between them: the minutes of its increases stay as they are."""
    found_rows = [sample(-150, publish=0), sample(5, publish=10), sample(250, publish=250)]
    rows = history(found_rows, [poll(0), poll(10), poll(70)])

    assert {-3: 1, 0: 3, 1: 1, 4: 1} == {minute: row["samples"] for minute, row in rows.items() if row["samples"]}
    assert 250 == sum(row["published"] or 0 for row in rows.values())


def test_a_whole_poll_ends_what_it_does_not_show_however_far_it_is(history):
    """With minutes without a poll before it, or with no poll at all until then."""
    polls = [poll(0), poll(20, whole=True), poll(40), poll(140), poll(240), poll(430, whole=True), poll(440)]
    rows = history([sample(-300), sample(130)], polls)

    assert {-5: 1, 0: 1, 2: 2, 4: 1} == {minute: row["samples"] for minute, row in rows.items()}


def test_of_rows_of_one_poll_that_differ_the_greatest_counts(history):
    """Whichever comes first, and for what is known of the time after it, too."""
    twice = [sample(70, messages_ready=3, publish=9), sample(70, messages_ready=1, publish=40)]
    for both in (twice, twice[::-1]):
        rows = history([sample(10, publish=3), *both, sample(80, publish=12)], every(10, 0, 120))

        assert 3 == rows[1]["messages_ready_max"]
        assert [5, 4] == [row["published"] for row in rows.values()]
        assert [5, 6] == [row["samples"] for row in rows.values()]


def test_samples_of_an_older_exporter_are_read(session, rolled, tmp_path):
    """Its files lack the newer columns and tell every poll."""
    path = write(tmp_path / "landing", QUEUE_SAMPLES, [sample(0, publish=1), sample(10, publish=4)], "a")
    import pyarrow.parquet as pq

    pq.write_table(pq.ParquetFile(path).read().drop_columns(["details_at", "gone"]), path)
    summary = jobs.run(tmp_path / "landing", tmp_path / "rollups", session, SystemClock(), minutes_only=True)

    assert 0 == summary.quarantined
    assert [(2, 3)] == [(row["samples"], row["published"]) for row in rolled(tmp_path / "rollups", QUEUES_1M)]


def test_heartbeats_with_older_counters_show_that_nothing_grew(history):
    """Of a broker so large that its counters are read minutes after its levels."""
    rows = history(
        [sample(0, publish=5, details_at=at(-300)), sample(540, publish=5, details_at=at(500))], every(60, 0, 600)
    )

    assert [0] * 9 + [None] == [rows[minute]["published"] for minute in range(10)]
