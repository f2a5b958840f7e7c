import pytest

from ackscope.snapshot import Node
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import NODE, channel, connection, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "large-messages"
MIB = 1_048_576


def shot(until, *queues, **more):
    """The result after this many seconds."""
    return look(film(lambda _: frame(*queues), until=until), **more)


def large(name="orders", **fields):
    """A queue with ten messages of 2 MiB."""
    return queue(name, **{"messages_ready": 10, "message_bytes": 20 * MIB, **fields})


def test_one_finding_a_virtual_host_lists_them():
    """The largest first, as information."""
    finding = one(RULE, shot(20, large("a"), large("b", message_bytes=40 * MIB)))

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert (60 * MIB, 2) == (finding.facts["total_bytes"], finding.facts["queue_count"])
    assert ("b", 10, 4 * MIB) == tuple(
        finding.facts["largest"][0][key] for key in ("name", "messages", "average_bytes")
    )


def test_quorum_queues_are_counted():
    """Each of their nodes writes every message."""
    assert 1 == one(RULE, shot(20, large(type="quorum"))).facts["quorum_count"]


@pytest.mark.parametrize(
    "fields",
    [{"message_bytes": 9 * MIB}, {"messages_ready": 4}, {"message_bytes": None}, {"messages_ready": 0}],
    ids=["smaller", "few", "absent", "empty"],
)
def test_other_queues_are_not_reported(fields):
    """Absent is not zero, and not large either."""
    assert [] == of(RULE, shot(60, large(**fields)))


def test_it_must_be_seen_for_a_while():
    """One large batch passes."""
    assert [] == of(RULE, shot(5, large()))


def test_it_can_be_allowed_for_some_queues():
    """By an override."""
    allowed = Thresholds.model_validate(
        {"overrides": [{"queues": "^orders$", "values": {"queues": {"large_bytes": 10 * MIB}}}]}
    )

    assert [] == of(RULE, shot(20, large(), thresholds=allowed))


def passing(t, *, size=2 * MIB, rate=2.0, name="scans", more=0):
    """A client whose messages are consumed at once, so that no queue holds them; `more` channels publish small ones."""
    peer = f"{name}:1 -> b:2"
    published = int(10 + rate * t)
    return {
        **frame(queue(stats=stats(publish=published))),
        "channels": tuple(
            channel(f"{peer} ({n})", connection_name=peer, consumer_count=0, stats=stats(publish=published))
            for n in range(1 + more)
        ),
        "connections": (connection(peer, client_name=name, recv_oct=int(published * size)),),
    }


@pytest.mark.parametrize(("name", "size", "rate"), [("scans", 2 * MIB, 2.0), ("x", 12 * MIB, 0.5)])
def test_large_messages_that_no_queue_holds_are_seen_at_their_publisher(name, size, rate):
    """By the bytes received per publish."""
    finding = one(RULE, look(film(lambda t: passing(t, name=name, size=size, rate=rate), until=40)))

    assert ("info", "/", 0) == (finding.severity, finding.subject.name, finding.facts["queue_count"])
    assert name == finding.facts["publishers"][0]["client"]
    assert size == pytest.approx(finding.facts["publishers"][0]["mean_bytes"], rel=0.1)
    assert "publishes large messages" in text(finding).summary


@pytest.mark.parametrize("fields", [{"size": MIB / 2}, {"rate": 0.0}, {"more": 9}], ids=["small", "none", "most small"])
def test_other_clients_are_not_reported(fields):
    """On average their messages are small."""
    assert [] == of(RULE, look(film(lambda t: passing(t, **fields), until=40)))


def test_it_is_a_warning_if_consumers_hold_a_good_part_of_the_memory():
    """A quarter of the limit of the node."""
    node = Node(name=NODE, running=True, mem_used=90 * MIB, mem_limit=100 * MIB, disk_free=10**12, disk_free_limit=1)
    held = large(messages_ready=0, messages_unacked=15, message_bytes=30 * MIB, message_bytes_unacked=30 * MIB)
    finding = one(RULE, look(film(lambda _: {**frame(held), "nodes": (node,)}, until=40)))

    assert ("warning", 30 * MIB, NODE) == (finding.severity, finding.facts["held_bytes"], finding.facts["held_node"])
