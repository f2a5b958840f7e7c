from ackscope.clock import Instant
from ackscope.snapshot import Part, Queue, Snapshot
from exporter.runtime.state import StateStore
from exporter.runtime.window_limits import MAX_OLDER_READINGS
from tests.unit.exporter.made import NOW, Verdicts, outcome, small


def test_each_cluster_keeps_its_own():
    """A snapshot of one changes nothing of the other."""
    state = StateStore(["shop", "depot"])
    after = state.put_snapshot(small("shop"))

    assert after is state.clusters()["shop"]
    assert [small("shop")] == state.snapshots()
    assert state.clusters()["depot"].snapshot is None


def test_the_generation_grows_with_snapshots_only():
    """Results of snapshots need not be recomputed for a new probe summary."""
    state = StateStore(["shop"])
    before = state.generation
    state.put_outcomes("shop", [outcome()], NOW)
    state.put_verdict(Verdicts().of("shop"), 0.1, NOW)
    quiet = state.generation
    state.put_snapshot(small())

    assert (before, before, before + 1) == (before, quiet, state.generation)


def test_a_stream_has_one_summary_the_latest():
    """Streams are identified by probe and stream, in a fixed order."""
    state = StateStore(["shop"])
    state.put_outcomes("shop", [outcome(stream="quorum"), outcome(success=False)], NOW)
    state.put_outcomes("shop", [outcome(success=True)], NOW)
    latest = state.clusters()["shop"].latest_outcomes(NOW)

    assert [("classic", True), ("quorum", True)] == [(it.stream, it.success) for it in latest]


def test_what_is_read_does_not_change_under_the_reader():
    """A reader gets a consistent state."""
    state = StateStore(["shop"])
    view = state.clusters()
    state.put_snapshot(small())
    state.count_diagnosis_error("shop")

    assert view["shop"].snapshot is None
    assert 0 == view["shop"].diagnosis_errors
    assert 1 == state.clusters()["shop"].diagnosis_errors


def test_a_cluster_that_is_watched_no_more_is_forgotten():
    """Late updates of it change nothing."""
    state = StateStore(["shop", "depot"])
    state.put_snapshot(small("depot"))
    state.put_snapshot(small("shop"))
    before = state.generation
    state.set_clusters(["shop", "mill"])
    state.put_outcomes("depot", [outcome()], NOW)
    state.put_verdict(Verdicts().of("depot"), 0.1, NOW)
    state.count_diagnosis_error("depot")

    assert state.put_snapshot(small("depot")) is None
    assert ["shop", "mill"] == list(state.clusters())
    assert [small("shop")] == state.snapshots()
    assert before + 1 == state.generation


def test_another_broker_under_a_name_begins_with_nothing():
    """What was known of the first is not true of the second."""
    state = StateStore(["shop"])
    state.put_snapshot(small())
    state.set_clusters(["shop"], ["shop"])

    assert state.clusters()["shop"].snapshot is None


def test_the_past_of_queues_is_bounded():
    """What is let go of it is counted; the latest snapshot is whole."""
    state, queues = StateStore(["shop"]), 20_000
    for reading in range(6):
        moment = Instant(wall=NOW.wall + reading, mono=NOW.mono + reading)
        made = tuple(Queue(vhost="/", name=str(name), messages=reading + 1) for name in range(queues))
        state.put_snapshot(Snapshot(cluster="shop", taken=moment, queues=Part(value=made, at=moment)))
    known = state.clusters()["shop"]

    assert known.snapshot.queues.value == made
    assert known.readings_dropped == 6 * queues - len(
        {id(queue) for snapshot in known.window.snapshots for queue in snapshot.queues.value}
    )
    assert known.readings_dropped >= 6 * queues - (2 * queues + MAX_OLDER_READINGS)
