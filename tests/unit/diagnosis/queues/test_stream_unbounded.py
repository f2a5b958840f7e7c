from dataclasses import replace

import pytest

from ackscope.findings import flat
from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, connection, film, look, queue, stats, text

RULE = "stream-unbounded"
GIB = 2**30


def growing(t, *, rate=100.0, name="events", free=50 * GIB, fall=0.0, segments=None, **fields):
    """A stream that grows, on a node whose free disk falls by so many bytes a second."""
    messages = int(1000 + rate * t)
    of = {"type": "stream", "messages": messages, "messages_ready": messages, "segments": segments, **fields}
    node = Node(name=NODE, running=True, disk_free=int(free - fall * t), disk_free_limit=GIB, mem_used=1, mem_limit=9)
    return {"queues": (queue(name, stats=stats(publish=messages), members=(NODE,), **of),), "nodes": (node,)}


def said(until, *, others=(), **fields):
    """The findings of this rule."""
    frame = lambda t: {**(it := growing(t, **fields)), "queues": (*it["queues"], *others)}  # noqa: E731
    return [each for each in flat(look(film(frame, until=until)).findings) if each.rule == RULE]


@pytest.mark.parametrize("name", ["events", "audit-log"])
def test_a_stream_without_retention_that_grows_is_information(name):
    """It may be meant, and the disk may be large."""
    (finding,) = said(200, name=name)

    assert ("info", name, None) == (finding.severity, finding.subject.name, finding.facts["eta_seconds"])
    assert 100 == pytest.approx(finding.facts["growth_rate"], rel=0.02)


def test_it_is_a_warning_if_its_segments_fill_the_disk_within_a_day():
    """Ten of them are full: 100 messages a second of nearly 50 kB."""
    (early,), (late,) = said(60, segments=11, rate=1000.0), said(240, segments=11, rate=1000.0)

    assert ("info", "warning") == (early.severity, late.severity)
    assert (5_000_000_000, 5_500_000_000) == (late.facts["least_bytes"], late.facts["most_bytes"])
    assert "reaches its limit in about" in text(late).summary


def test_the_size_of_its_segments_counts():
    """By argument."""
    (finding,) = said(60, segments=3, arguments={"x-stream-max-segment-size-bytes": 1_000_000})

    assert (2_000_000, 3_000_000) == (finding.facts["least_bytes"], finding.facts["most_bytes"])


def test_without_segments_the_free_disk_tells_how_fast_it_grows():
    """If most messages of the node go to this stream."""
    (finding,) = said(240, fall=2_000_000.0)

    assert ("warning", True) == (finding.severity, finding.facts["by_disk"])
    assert 2_000_000 == pytest.approx(finding.facts["bytes_rate"], rel=0.05)


def test_another_queue_may_be_what_fills_the_disk():
    """Then nothing is said about bytes."""
    window = film(
        lambda t: {
            **(it := growing(t, fall=2_000_000.0)),
            "queues": (*it["queues"], queue("orders", stats=stats(publish=int(900 * t)), messages_ready=int(900 * t))),
        },
        until=240,
    )
    (finding,) = [each for each in flat(look(window).findings) if each.rule == RULE]

    assert ("info", None) == (finding.severity, finding.facts["bytes_rate"])


@pytest.mark.parametrize(("received", "by_disk"), [(50_000, False), (900_000, True)])
def test_a_disk_that_falls_faster_than_the_broker_is_sent_bytes_is_filled_by_something_else(received, by_disk):
    """Another program of the host, for example."""
    window = film(
        lambda t: {
            **growing(t, fall=2_000_000.0),
            "connections": (connection("writer", recv_oct=int(received * t)),),
        },
        until=240,
    )
    (finding,) = [each for each in flat(look(window).findings) if each.rule == RULE]

    assert by_disk == finding.facts["by_disk"]


def test_the_disk_that_it_fills_is_its_consequence():
    """One cause, one finding."""
    result = look(film(lambda t: growing(t, fall=15_000_000.0), until=400))

    assert ["disk-trending-full"] == [
        each.rule for finding in result.findings if finding.rule == RULE for each in finding.consequences
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {"x-max-age": "7D"}},
        {"arguments": {"x-max-length-bytes": 10**9}},
        {"policy": "keep", "effective_policy": {"max-length-bytes": 10**9}},
        {"rate": 0.0},
        {"rate": 0.2},
        {"type": "classic"},
    ],
    ids=["age", "size", "policy", "constant", "slow", "no stream"],
)
def test_other_streams_are_not_reported(fields):
    """Each differs in one thing."""
    assert [] == said(240, **fields)


def test_absent_is_not_zero():
    """A node without a known disk."""

    def frame(t):
        it = growing(t, segments=11)
        return {**it, "nodes": tuple(replace(node, disk_free=None) for node in it["nodes"])}

    (finding,) = [each for each in flat(look(film(frame, until=240)).findings) if each.rule == RULE]

    assert ("info", None) == (finding.severity, finding.facts["free_bytes"])
