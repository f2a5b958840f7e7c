"""Latencies of the probe compared with those on the wire."""

from dataclasses import replace

from ackscope.records import Outcome
from bench.capture.confirms import Confirmed, PublishingChannel
from bench.probes.wire import compare, lines
from tests.unit.bench.records import RECORD


def seen(latencies, late):
    """Return messages with these wire latencies; the probe adds a delay to each, half of it before sending."""
    channel = PublishingChannel("q", confirming=True)
    records = []
    for tag, latency in enumerate(latencies, 1):
        sent = 1000.0 + tag
        channel.messages[tag] = Confirmed(tag, round(sent * 1e9), round((sent + latency) * 1e9))
        records.append(replace(RECORD, seq=tag, intended_at=sent - late / 2, confirm=latency + late))
    return records, channel


def test_a_probe_near_the_wire_is_within():
    """100 microseconds, or 5 % where that is more."""
    records, channel = seen([0.0005] * 99 + [0.01], late=90e-6)
    document = compare(records, channel, {"p50": 0.00059, "p99": 0.00059})

    assert (True, True) == (document["p50"]["within"], document["p99"]["within"])
    assert (100, 0, 0) == (document["messages"], document["only_probe"], document["only_wire"])


def test_a_probe_far_from_the_wire_is_outside():
    """The document has the difference."""
    records, channel = seen([0.0005] * 100, late=200e-6)
    document = compare(records, channel, {"p50": 0.0007, "p99": 0.0007})

    assert document["p50"]["within"] is False
    assert 200 == round(document["p50"]["difference"] * 1e6)


def test_what_the_probe_adds_is_split():
    """Before the packet of the publish, and after that of the ack."""
    records, channel = seen([0.001] * 50, late=100e-6)
    parts = compare(records, channel, {"p50": 0.0011, "p99": 0.0011})["difference"]

    assert {"whole": 100, "sending": 50, "reading": 50} == {
        name: round(part["p50"] * 1e6) for name, part in parts.items()
    }


def test_messages_that_one_side_lacks_are_counted():
    """They are left out of the differences."""
    records, channel = seen([0.001] * 5, late=0.0)
    del channel.messages[2]
    document = compare(
        [*records[:-1], replace(records[-1], confirm=None, outcome=Outcome.LOST)], channel, {"p50": 1, "p99": 1}
    )

    assert (3, 1, 1) == (document["messages"], document["only_probe"], document["only_wire"])


def test_a_run_without_messages_is_not_measured():
    """It says so instead of a verdict."""
    document = compare([], PublishingChannel("q"), {"p50": None, "p99": None})
    row = {"stream": "classic", "rate": 200.0, "doubtful": None, **document}
    text = "\n".join(lines({"broker": "4.3.6", "seconds": 1.0, "rows": [row]}))

    assert "not measured" in text
