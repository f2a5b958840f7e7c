"""AMQP 1.0 sessions: decoding, whose turn it is, and which consumer belongs to which link. Payloads are of 4.3.6."""

import pytest

from ackscope.amqp10 import AmqpLink, AmqpSession
from ackscope.clock import Instant
from ackscope.errors import BrokerError, Unreachable
from ackscope.snapshot import Connection, Consumer, Part
from exporter.broker.amqp_sessions import MOST_CONNECTIONS, AmqpSessions, with_sessions
from exporter.broker.endpoints.connections import decode_connections
from exporter.broker.endpoints.sessions import decode_sessions
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from tests.unit.exporter.broker.server import json, serve
from tests.unit.exporter.broker.test_reader import SetClock

HOLDER = "127.0.0.1:52522 -> 127.0.0.1:22164"
CONSUMING = {
    "channel_number": 0,
    "handle_max": 255,
    "next_incoming_id": 0,
    "incoming_window": 400,
    "next_outgoing_id": 128,
    "remote_incoming_window": 2147483647,
    "remote_outgoing_window": 2147483647,
    "outgoing_unsettled_deliveries": 128,
    "incoming_links": [],
    "outgoing_links": [
        {
            "handle": 0,
            "link_name": "invoice-worker-/queues/invoices.v1",
            "source_address": "/queues/invoices.v1",
            "queue_name": "invoices.v1",
            "send_settled": False,
            "max_message_size": "unlimited",
            "filter": [],
            "delivery_count": 128,
            "credit": 9,
            "consumer_timeout": False,
        }
    ],
}
PUBLISHING = {
    "channel_number": 0,
    "outgoing_unsettled_deliveries": 0,
    "remote_incoming_window": 2147483647,
    "incoming_links": [
        {
            "handle": 0,
            "link_name": "billing-api-/queues/invoices.v1",
            "snd_settle_mode": "mixed",
            "target_address": "/queues/invoices.v1",
            "max_message_size": 16777216,
            "delivery_count": 128,
            "credit": 127,
            "unconfirmed_messages": 3,
        }
    ],
    "outgoing_links": [],
}
CONSUMER = {
    "channel_details": {},
    "arguments": {},
    "ack_required": True,
    "active": True,
    "activity_status": "up",
    "consumer_tag": "0",
    "consumer_timeout": 1800000,
    "exclusive": False,
    "prefetch_count": 0,
    "queue": {"name": "invoices.v1", "vhost": "/"},
}
LISTED = {
    "name": HOLDER,
    "protocol": "AMQP 1-0",
    "container_id": "invoice-worker",
    "client_properties": {},
    "vhost": "/",
    "user": "guest",
    "node": "lab1@localhost",
    "peer_host": "127.0.0.1",
    "peer_port": 52522,
}


def at(seconds):
    """A time."""
    return Instant(wall=1.7e9 + seconds, mono=seconds)


def named(*numbers, protocol="AMQP 1-0"):
    """Connections with these numbers as names."""
    return [Connection(name=str(number), protocol=protocol) for number in numbers]


def test_whether_a_publisher_settles_what_it_sends_is_decoded():
    """A mixed mode leaves it open for each message, and an unknown one is a gap."""

    def mode(text):
        (session,), gaps = decode_sessions(
            {"b": [{**PUBLISHING, "incoming_links": [{**PUBLISHING["incoming_links"][0], "snd_settle_mode": text}]}]},
            (4, 3),
        )
        return session.publishing[0].settled_by_sender, sum(gaps.values())

    assert [(True, 0), (False, 0), (None, 0), (None, 1)] == [mode(t) for t in ("settled", "unsettled", "mixed", "new")]


def test_links_of_both_directions_are_decoded():
    """Links are named by what the client does, not by the direction at the broker."""
    (holder, sender), gaps = decode_sessions({HOLDER: [CONSUMING], "b": [PUBLISHING]}, (4, 3))

    assert {} == dict(gaps)
    assert (HOLDER, 0, 128) == (holder.connection_name, holder.number, holder.unsettled)
    assert (
        AmqpLink(
            handle=0,
            name="invoice-worker-/queues/invoices.v1",
            address="/queues/invoices.v1",
            queue="invoices.v1",
            credit=9,
            delivery_count=128,
            settled_by_sender=False,
        ),
    ) == holder.consuming
    assert ("/queues/invoices.v1", 3, 127) == tuple(
        getattr(sender.publishing[0], name) for name in ("address", "unconfirmed", "credit")
    )


@pytest.mark.parametrize(
    ("payload", "gap"),
    [
        ([], "sessions"),
        ({"a": {"error": "refused"}}, "sessions"),
        ({"a": [{"outgoing_unsettled_deliveries": 3}]}, "number"),
        ({"a": [{"channel_number": 0, "outgoing_links": 7}]}, "outgoing_links"),
        ({"a": [{"channel_number": 0, "outgoing_unsettled_deliveries": -1}]}, "unsettled"),
    ],
)
def test_what_cannot_be_used_is_a_gap(payload, gap):
    """Never a zero."""
    sessions, gaps = decode_sessions(payload, (4, 3))

    assert {gap: 1} == dict(gaps)
    assert all(session.unsettled is None for session in sessions)


@pytest.mark.parametrize("version", [None, (3, 13), (4, 0)])
def test_nobody_is_asked_where_sessions_are_not_reported(version):
    """Before 4.1 the endpoint does not exist."""
    sessions = AmqpSessions()
    sessions.listed(named(1), at(0))

    assert () == sessions.due(version)


def test_connections_take_turns():
    """Each reading asks some; the others keep what they answered, until they close."""
    many = range(MOST_CONNECTIONS + 20)
    sessions = AmqpSessions()
    sessions.listed([*named(*many), *named("other", protocol="AMQP 0-9-1")], at(0))
    first, second, third = (sessions.due((4, 3)) for _ in range(3))

    assert MOST_CONNECTIONS == len(set(first)) == len(set(second))
    assert set(map(str, many)) == {*first, *second}
    assert set(third) >= set(first) - set(second)


def test_without_a_list_of_connections_nobody_knows_whom_to_ask():
    """It is an error, not an empty answer: until the list is read again."""
    sessions = AmqpSessions()
    sessions.listed(named(1), at(0))
    sessions.not_listed(Unreachable("broker:15672: connection refused"))

    with pytest.raises(Unreachable, match="connection refused"):
        sessions.due((4, 3))

    sessions.listed(named(1), at(5))

    assert ("1",) == sessions.due((4, 3))


def test_an_answer_that_was_not_asked_for_is_as_old_as_the_list():
    """Without AMQP 1.0 clients nothing is requested, so nothing new is known."""
    sessions = AmqpSessions()
    sessions.listed([], at(5))
    sessions.due((4, 3))

    assert at(5) == sessions.known_at(at(9))

    sessions.listed(named(1), at(10))
    sessions.due((4, 3))

    assert at(12) == sessions.known_at(at(12))


def test_those_not_asked_keep_what_they_answered():
    """Until they close; one that was asked and answered nothing has no session any more."""
    sessions = AmqpSessions()
    sessions.listed(named(*range(MOST_CONNECTIONS + 1)), at(0))
    first = [AmqpSession(connection_name=name, number=0) for name in sessions.due((4, 3))]

    assert {at(5)} == {each.read_at for each in sessions.merged(first, at(5))}

    asked = sessions.due((4, 3))
    kept = {each.connection_name for each in sessions.merged([], at(10))}

    assert {each.connection_name for each in first} - set(asked) == kept
    assert kept

    sessions.listed([], at(0))

    assert () == sessions.merged([], at(15))


def test_a_consumer_gets_what_its_session_tells():
    """The broker lists it without a channel; queue and handle lead to its link."""
    routes = {
        "/api/overview": json({"rabbitmq_version": "4.3.6"}),
        "/api/connections": json([LISTED]),
        "/api/consumers": json([CONSUMER]),
        f"/api/connections/{HOLDER.replace(':', '%3A').replace(' ', '%20').replace('>', '%3E')}/sessions": json(
            [CONSUMING]
        ),
    }
    with serve(routes) as server:
        families = ("overview", "connections", "consumers", "sessions")
        snapshot = read_once("shop", ManagementSettings(url=server.url), SetClock(), 20, families)
    (consumer,) = snapshot.consumers.value

    assert (HOLDER, "127.0.0.1", 52522, "lab1@localhost", 0, 9, 128) == (
        consumer.connection_name,
        consumer.peer_host,
        consumer.peer_port,
        consumer.node,
        consumer.session_number,
        consumer.credit,
        consumer.unsettled,
    )
    assert consumer.prefetch_count is None
    assert "invoice-worker" == snapshot.connections.value[0].client_name


def joined(consumers, sessions):
    """The consumers of a snapshot with these sessions of connections `a` and `b`."""
    connections = tuple(Connection(name=name, vhost="/", user=name) for name in "ab")
    parts = {"consumers": consumers, "sessions": sessions, "connections": connections}
    return with_sessions({name: Part(value=tuple(value)) for name, value in parts.items()})["consumers"].value


def link(queue="q", handle=0, **fields):
    """A consuming link."""
    return AmqpLink(handle=handle, name=f"l{handle}", queue=queue, settled_by_sender=False, **fields)


def test_of_a_session_with_two_links_it_is_unknown_which_holds():
    """The broker counts unsettled deliveries of the session."""
    session = AmqpSession(connection_name="a", number=0, unsettled=7, consuming=(link(), link("other", 1)))
    (consumer,) = joined([Consumer(tag="0", vhost="/", queue="q")], [session])

    assert (0, None) == (consumer.session_number, consumer.unsettled)


def test_the_active_one_of_two_was_sent_most():
    """Both have the same tag; the standby got nothing."""
    consumers = [Consumer(tag="0", vhost="/", queue="q", active=active) for active in (False, True)]
    sessions = [
        AmqpSession(connection_name=name, number=0, unsettled=held, consuming=(link(delivery_count=held),))
        for name, held in (("a", 9), ("b", 0))
    ]

    assert [("b", 0), ("a", 9)] == [(each.connection_name, each.unsettled) for each in joined(consumers, sessions)]


@pytest.mark.parametrize("fields", [{"vhost": "other"}, {"queue": "other"}, {"tag": "1"}, {"channel_name": "c"}])
def test_other_consumers_stay_as_they_are(fields):
    """Of another virtual host, queue or handle, or with a channel."""
    consumer = Consumer(**{"tag": "0", "vhost": "/", "queue": "q", **fields})
    session = AmqpSession(connection_name="a", number=0, unsettled=7, consuming=(link(),))

    assert (consumer,) == joined([consumer], [session])


@pytest.mark.parametrize(
    ("container", "name"),
    [
        ("invoice-worker", "invoice-worker"),
        ("8b8f7c39-7f9c-4e39-9d8a-2f3b2d1c0a11", None),
        ("ID:8b8f7c39-7f9c-4e39-9d8a-2f3b2d1c0a11:1", None),
    ],
)
def test_a_container_id_is_a_name_unless_a_library_made_it(container, name):
    """A name that changes with each start identifies nobody."""
    (connection,), _ = decode_connections([{**LISTED, "container_id": container}], (4, 3))

    assert (name, container) == (connection.client_name, connection.container_id)


def test_sessions_that_all_fail_are_an_error():
    """The part keeps its last good reading, and says why it is old."""
    with serve(
        {
            "/api/overview": json({"rabbitmq_version": "4.3.6"}),
            "/api/connections": json([LISTED]),
            "/api/connections/127.0.0.1%3A52522%20-%3E%20127.0.0.1%3A22164/sessions": lambda request: None,
        }
    ) as server:
        reader = BrokerReader(ManagementSettings(url=server.url, timeout=0.5), SetClock())
        reader.read("overview")
        reader.read("connections")
        with pytest.raises(BrokerError):
            reader.read("sessions")
        reader.close()
