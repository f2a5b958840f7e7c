from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.snapshot import Channel, Consumer, Part, Queue
from ackscope.tables import CHANNEL_SAMPLES, CONSUMER_SAMPLES, NODE_SAMPLES, POLL_SAMPLES, QUEUE_SAMPLES
from exporter.landing.samples import ClusterSamples
from exporter.landing.settings import LandingSettings
from tests.unit.exporter.made import NOW, WALL, Verdicts, finding, part, small


def read(snapshot, seconds):
    """Return the snapshot with every family read again this much later."""
    at = Instant(wall=WALL + seconds, mono=NOW.mono + seconds)
    parts = {family: replace(it, at=at) for family, it in snapshot.parts.items() if it.at is not None}
    return replace(snapshot, taken=at, **parts)


def samples(**settings):
    """Return the sampler of the cluster `shop`."""
    return ClusterSamples("shop", LandingSettings(**settings), ("ackscope.probe.",))


def take(made, snapshot, verdict=None):
    """Table name -> rows as a reader finds them, and what was left out."""
    found, dropped = {}, {}
    for table, make in made.steps(snapshot, snapshot, verdict, snapshot.taken):
        taken = make()
        found[table.name] = [row for block in taken.blocks for row in block.arrow().to_pylist()]
        dropped[table.name] = taken.dropped
    return found, dropped


def test_every_table_has_its_rows():
    """The tables are queues, channels, consumers, nodes, readings, and changes of findings."""
    found, dropped = take(samples(), small(), Verdicts((finding(),)).of("shop"))

    assert {
        "queue_samples": 2,
        "channel_samples": 2,
        "consumer_samples": 1,
        "node_samples": 1,
        "poll_samples": 7,
        "finding_events": 1,
    } == {name: len(rows) for name, rows in found.items()}
    assert not any(dropped.values())
    assert ["queues", "channels", "consumers"] == [row["family"] for row in found["poll_samples"] if row["whole"]]


def test_a_reading_that_is_shown_again_is_none():
    """A failed poll repeats the values of the previous one, which are no second sample."""
    made = samples()
    take(made, small())
    failed = replace(small(), queues=replace(small().queues, error="timed out"))
    found, _ = take(made, failed)

    assert {"poll_samples": 1} == {name: len(rows) for name, rows in found.items() if rows}
    assert "timed out" == found["poll_samples"][0]["reason"]


def test_families_that_were_never_read_have_no_rows():
    """No reading, no sample, and no zero."""
    never = {family: Part(error="403") for family in ("queues", "channels", "consumers", "nodes")}
    found, _ = take(samples(), small(**never))

    assert [] == [
        name for name in ("queue_samples", "channel_samples", "consumer_samples", "node_samples") if found[name]
    ]


def test_nodes_are_landed_every_quarter_of_a_minute():
    """However often they are read; their figures always change."""
    made = samples()
    landed = [seconds for seconds in range(0, 61, 5) if take(made, read(small(), seconds))[0]["node_samples"]]

    assert [0, 15, 30, 45, 60] == landed


def test_what_the_probes_cause_is_left_out():
    """Their queues and the consumers of these."""
    own = "ackscope.probe.confirm.classic"
    queues = part((Queue(vhost="/", name=own), Queue(vhost="/", name="ackscope.probes")))
    consumers = part((Consumer(tag="t", vhost="/", queue=own), Consumer(tag="t", vhost="/", queue="orders")))
    found, _ = take(samples(), small(queues=queues, consumers=consumers))

    assert ["ackscope.probes"] == [row["queue"] for row in found["queue_samples"]]
    assert ["orders"] == [row["queue"] for row in found["consumer_samples"]]


@pytest.mark.parametrize(("table", "setting"), [(CHANNEL_SAMPLES, "max_channels"), (CONSUMER_SAMPLES, "max_consumers")])
def test_a_cap_is_counted(table, setting):
    """Rows beyond it are left out, and how many is known; those in trouble come first."""
    channels = part((Channel(name="idle"), Channel(name="holds", messages_unacked=9)))
    consumers = part(
        tuple(Consumer(tag=tag, vhost="/", queue="q", active=active) for tag, active in (("a", True), ("b", False)))
    )
    found, dropped = take(samples(**{setting: 1}), small(channels=channels, consumers=consumers))
    first = [row.get("tag") or row["channel"] for row in found[table.name]]

    assert first in (["holds"], ["b"])
    assert {table.name: 1} == {name: count for name, count in dropped.items() if count}


def test_after_a_new_beginning_all_is_landed_again():
    """The rows are marked as complete, so that readers do not continue from lost rows."""
    made = samples()
    take(made, small())
    quiet, _ = take(made, read(small(), 5))
    made.resend_all(QUEUE_SAMPLES)
    found, _ = take(made, read(small(), 10))

    assert [] == quiet["queue_samples"]
    assert 2 == len(found["queue_samples"])
    assert [False, True] == [
        next(row["whole"] for row in rows["poll_samples"] if row["family"] == "queues") for rows in (quiet, found)
    ]


def test_the_moment_of_a_poll_is_that_of_its_samples():
    """To the microsecond: readers join them by it."""
    found, _ = take(samples(), read(small(), 0.1234567))

    assert {row["at"] for row in found["queue_samples"]} == {
        row["at"] for row in found["poll_samples"] if row["family"] == "queues"
    }
    assert {QUEUE_SAMPLES.name, POLL_SAMPLES.name, NODE_SAMPLES.name} <= set(found)


def test_a_change_is_of_the_next_reading():
    """Details that came between two readings of all queues are no second truth at the moment of the first."""
    made, queue = samples(), Queue(vhost="/", name="orders", consumers=1)
    take(made, small(queues=part((queue,))))
    between, _ = take(made, small(queues=part((replace(queue, consumers=2),))))
    found, _ = take(made, read(small(queues=part((replace(queue, consumers=2),))), 5))

    assert [] == between["queue_samples"]
    assert [(5.0, 2)] == [(row["at"].timestamp() - WALL, row["consumers"]) for row in found["queue_samples"]]
