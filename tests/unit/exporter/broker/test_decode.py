"""Decoding of recorded payloads of real brokers."""

from dataclasses import fields

import pytest

from ackscope.snapshot import (
    FAMILIES as PARTS,
)
from ackscope.snapshot import (
    Alarm,
    Channel,
    Connection,
    Consumer,
    HealthCheck,
    MessageStats,
    Node,
    Overview,
    Queue,
    version_of,
)
from exporter.broker.endpoints.queues import columns_for, decode_queues
from exporter.broker.families import FAMILIES
from tests.unit.exporter.broker.server import SHAPES, VERSIONS, fixture, recorded

OLDEST = next(version for version in VERSIONS if version_of(version) == (3, 10))

UNSAID = {
    # What no version reported for some object in the recording, or that only other types of objects have.
    "Queue": {"policy", "head_message_timestamp", "consumer_capacity", "leader", "members", "online"}
    | {"message_bytes", "message_bytes_ready", "message_bytes_unacked", "memory", "delivery_limit"},
    "Channel": {"idle_since"},
}


def decoded(version, family):
    """The objects of a recorded payload."""
    value, _ = FAMILIES[family].decode(fixture(version, family), version_of(version))
    return value


def queue(version, name):
    """A recorded queue, by name."""
    return next(item for item in decoded(version, "queues") if item.name == name)


def absent(items):
    """Names of attributes that are None in all of the objects."""
    return {field.name for field in fields(items[0]) if all(getattr(item, field.name) is None for item in items)}


def test_the_families_are_those_of_a_snapshot():
    """Every part of a snapshot has its family, in the same order."""
    assert tuple(FAMILIES) == PARTS


def test_the_supported_versions_are_recorded():
    """The oldest, a middle and the newest version."""
    assert {(3, 10), (4, 0), (4, 3)} == {version_of(version) for version in VERSIONS}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_real_payload_has_no_gaps(version, family):
    """Every value of a real broker is usable."""
    _, gaps = FAMILIES[family].decode(fixture(version, family), version_of(version))

    assert dict(gaps) == {}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "queues" in recorded(OLDEST, shape)])
def test_the_requested_columns_are_all_that_is_decoded(shape):
    """Before 3.13: the selected columns give the same queues as the full list."""
    whole, columns = fixture(OLDEST, "queues", shape), columns_for((3, 10)).split(",")
    chosen = [{key: value for key, value in item.items() if key in columns} for item in whole]

    assert decode_queues(whole, (3, 10)) == decode_queues(chosen, (3, 10))


def test_a_short_list_is_requested_without_columns():
    """Since 3.13 selecting columns costs the broker more than it saves; the same for an unknown version."""
    assert ["", "", ""] == [columns_for(version) for version in ((3, 13), (4, 3), None)]


ZEROS = {
    # Fields that 4.0 and later fill with zeros.
    *("sockets_used", "sockets_total", "io_read_count", "io_read_bytes", "io_read_avg_time", "io_write_count"),
    *("io_write_bytes", "io_write_avg_time", "io_sync_count", "io_sync_avg_time", "io_seek_count", "io_seek_avg_time"),
    *("io_reopen_count", "mnesia_ram_tx_count", "mnesia_disk_tx_count", "msg_store_read_count"),
    *("msg_store_write_count", "queue_index_read_count", "queue_index_write_count"),
}

NOT_SET = {"operator_policy", "owner", "mirrors", "synchronised_mirrors"}
"""No recorded queue has one, and none is exclusive; mirrored queues of 3.10 would list their mirrors."""


NATIVE = {"session_number", "link_name", "credit", "unsettled", "subscription", "offset_lag"}
"""Of consumers that use AMQP 1.0 or the stream protocol; no recorded client does. Tests of each have some. Nor does a
recorded consumer set a priority."""

CONTAINER = {"connections": {"container_id", "client_id"}}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "3.10.8",
            {
                "nodes": {"being_drained"},
                "queues": {"delivery_limit", "publishers", "segments"} | NOT_SET,
                "consumers": {"consumer_timeout_ms", "priority"} | NATIVE,
                **CONTAINER,
            },
        ),
        (
            "4.0.5",
            {
                "nodes": ZEROS,
                "queues": {"idle_since"} | NOT_SET,
                "channels": {"global_prefetch_count"},
                "consumers": {"priority"} | NATIVE,
                **CONTAINER,
            },
        ),
        (
            "4.3.6",
            {
                "nodes": ZEROS | {"partitions"},
                "queues": {"idle_since", "messages_paged_out", "message_bytes_paged_out"} | NOT_SET,
                "channels": {"global_prefetch_count"},
                "consumers": {"priority"} | NATIVE,
                **CONTAINER,
            },
        ),
    ],
)
def test_only_known_gaps_of_a_version_are_absent(version, expected):
    """A real broker fills every attribute of the kernel's objects, except for the known gaps of its version."""
    lists = ("nodes", "queues", "channels", "consumers", "connections")
    # Set by us: when it was read, and since when nothing came.
    ours = {"details_at", "quiet_since"}

    assert expected == {family: names for family in lists if (names := absent(decoded(version, family)) - ours)}


@pytest.mark.parametrize("version", VERSIONS)
def test_overview(version):
    """Version, totals, counters and churn."""
    overview = decoded(version, "overview")

    assert (version, "shop", True, "basic") == (
        overview.rabbitmq_version,
        overview.cluster_name,
        overview.statistics,
        overview.rates_mode,
    )
    assert (6, 7, 6, 4) == (overview.connections, overview.channels, overview.queues, overview.consumers)
    assert overview.messages == overview.messages_ready + overview.messages_unacked
    assert overview.stats.return_unroutable > 0
    assert overview.stats.publish_in is None
    assert overview.churn["queue_declared"] == 6
    assert not any(name.endswith("_details") for name in overview.churn)
    assert ("lab1@localhost", 0) == (overview.node, overview.disk_reads)
    assert overview.disk_writes > 0
    assert {"publish", "deliver", "deliver_no_ack"} == set(overview.rates)
    assert overview.rates["publish"] > 0


@pytest.mark.parametrize("version", VERSIONS)
def test_queues(version):
    """All three types, a name in two alphabets, arguments and policy."""
    queues = decoded(version, "queues")

    assert {
        "bücher/заказы": "classic",
        "idle": "classic",
        "orders.classic": "classic",
        "orders.dead": "classic",
        "orders.quorum": "quorum",
        "orders.stream": "stream",
    } == {item.name: item.type for item in queues}
    classic = queue(version, "orders.classic")
    assert ("lim", 5000, 600_000) == (classic.policy, classic.setting("max-length"), classic.setting("message-ttl"))
    assert classic.arguments["x-max-length"] == 10_000
    assert 0 < classic.consumer_capacity <= 1
    assert classic.stats.redeliver > 0
    assert classic.reductions > 100_000
    assert classic.consumer_utilisation == pytest.approx(classic.consumer_capacity, abs=0.01)
    assert (version == "3.10.8") == (classic.garbage_collection.get("minor_gcs", 0) > 0)
    assert (None if version == "3.10.8" else 1) == queue(version, "orders.stream").segments
    assert {"publish", "deliver", "deliver_no_ack"} == set(classic.rates)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_queue_with_unacknowledged_messages(version):
    """Ready and unacknowledged messages, and the publisher's timestamp of the oldest one."""
    stuck = queue(version, "bücher/заказы")

    assert (3, 1) == (stuck.messages_unacked, stuck.consumers)
    assert stuck.messages == stuck.messages_ready + 3
    assert stuck.head_message_timestamp > 1_700_000_000
    assert stuck.stats.ack == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_queue_without_events_has_no_counters(version):
    """Absent is not zero: an idle queue has no counters."""
    assert MessageStats() == queue(version, "idle").stats


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["orders.quorum", "orders.stream"])
def test_a_meaningless_capacity_is_ignored(version, name):
    """The API sends 1.0 (up to 4.2) or 0.0 (4.3) for every quorum queue."""
    assert queue(version, name).consumer_capacity is None


@pytest.mark.parametrize("version", VERSIONS)
def test_replicated_queues_have_members(version):
    """Quorum queues and streams report their replicas."""
    quorum = queue(version, "orders.quorum")

    assert (("lab1@localhost",), ("lab1@localhost",), "lab1@localhost") == (
        quorum.members,
        quorum.online,
        quorum.leader,
    )
    assert queue(version, "orders.stream").members == ("lab1@localhost",)
    assert queue(version, "orders.classic").members is None


@pytest.mark.parametrize(("version", "limit"), [("3.10.8", None), ("4.0.5", 5), ("4.3.6", 5)])
def test_the_delivery_limit_is_reported_since_4_0(version, limit):
    """Before, only the queue's argument shows it."""
    assert limit == queue(version, "orders.quorum").delivery_limit


@pytest.mark.parametrize("version", VERSIONS)
def test_consumers_join_channels_and_connections_by_name(version):
    """The channel and connection of every consumer are in their lists under the same names."""
    channels = {item.name: item for item in decoded(version, "channels")}
    connections = {item.name: item for item in decoded(version, "connections")}
    queues = {item.key for item in decoded(version, "queues")}

    joined = {
        item.queue: (
            connections[item.connection_name].client_name,
            item.prefetch_count,
            channels[item.channel_name].messages_unacked,
        )
        for item in decoded(version, "consumers")
        if (item.vhost, item.queue) in queues
    }

    assert joined["bücher/заказы"] == ("stuck", 3, 3)
    assert {"stuck", "shop-worker", "shop-quorum", "shop-stream"} == {name for name, _, _ in joined.values()}


@pytest.mark.parametrize("version", VERSIONS)
def test_channels(version):
    """A publisher with unconfirmed messages, and an idle channel with the time since when."""
    channels = decoded(version, "channels")
    (publisher,) = [item for item in channels if item.confirm]
    idle = [item for item in channels if item.idle_since is not None]

    assert publisher.stats.confirm > 0
    assert publisher.stats.return_unroutable > 0
    assert publisher.stats.deliver is None
    assert len(idle) >= 2
    assert all(0 < item.idle_since - 1_700_000_000 < 1e9 for item in idle)


@pytest.mark.parametrize("version", VERSIONS)
def test_connections(version):
    """Client, connection time and heartbeat."""
    connections = {item.client_name: item for item in decoded(version, "connections")}
    idle = connections["idle-app"]

    assert (2, 30, "AMQP 0-9-1", "Pika Python Client Library") == (
        idle.channels,
        idle.heartbeat,
        idle.protocol,
        idle.client_product,
    )
    assert 0 < idle.connected_at - 1_700_000_000 < 1e9


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("3.10.8", {"node-is-mirror-sync-critical"}),
        ("4.0.5", set()),
        (
            "4.3.6",
            {"ready-to-serve-clients", "is-in-service", "below-node-connection-limit", "metadata-store-initialized"}
            | {"quorum-queues-without-elected-leaders"},
        ),
    ],
)
def test_health_checks_of_a_version(version, names):
    """The checks that each version has, all passed."""
    always = {"alarms", "local-alarms", "virtual-hosts", "node-is-quorum-critical", "certificate-expiration"}
    checks = decoded(version, "health")

    assert always | names == {check.name for check in checks}
    assert all(check.ok is True for check in checks)


def test_an_alarm_in_force():
    """503 with JSON is an answer: the check failed, and why (as seen on 3.10.8)."""
    body = {
        "alarms": [{"node": "rabbit@a", "resource": "memory"}],
        "reason": "There are alarms in effect in the cluster",
        "status": "failed",
    }

    assert (
        (
            HealthCheck(
                name="alarms",
                ok=False,
                reason="There are alarms in effect in the cluster",
                alarms=(Alarm(node="rabbit@a", resource="memory"),),
            ),
        ),
        {},
    ) == FAMILIES["health"].decode({"alarms": {"status": 503, "body": body}}, (3, 10))


def test_a_check_that_could_not_be_read():
    """Neither passed nor failed."""
    payload = {"alarms": {"error": "mq:15672: 500 from the server"}}

    assert (
        (HealthCheck(name="alarms", ok=None, reason="mq:15672: 500 from the server"),),
        {},
    ) == FAMILIES["health"].decode(payload, (4, 0))


def test_no_statistics():
    """A broker with `management.disable_stats` reports that, and has no message totals (as seen on 3.10.8)."""
    payload = {
        "rabbitmq_version": "3.10.8",
        "disable_stats": True,
        "object_totals": {"queues": 6, "exchanges": 7, "connections": 6},
    }

    assert (
        Overview(rabbitmq_version="3.10.8", statistics=False, queues=6, exchanges=7, connections=6),
        {},
    ) == FAMILIES["overview"].decode(payload, (3, 10))


@pytest.mark.parametrize(
    ("family", "identity", "bare"),
    [
        ("nodes", {"name": "n"}, Node(name="n")),
        ("queues", {"vhost": "/", "name": "q"}, Queue(vhost="/", name="q")),
        ("channels", {"name": "c"}, Channel(name="c")),
        (
            "consumers",
            {"consumer_tag": "t", "queue": {"vhost": "/", "name": "q"}},
            Consumer(tag="t", vhost="/", queue="q"),
        ),
        ("connections", {"name": "c"}, Connection(name="c")),
    ],
)
def test_absent_is_none_and_no_gap(family, identity, bare):
    """An object with only a name; one without a name is dropped and counted."""
    value, gaps = FAMILIES[family].decode([identity, {}], (3, 10))

    assert (bare,) == value
    assert sum(gaps.values()) == len(identity.get("queue", ())) + (len(identity) if "queue" not in identity else 1)


def test_a_queue_on_two_pages_is_one_queue():
    """Pages shift while queues are created and deleted; the later reading counts."""
    payload = [{"vhost": "/", "name": "q", "messages": 1}, {"vhost": "/", "name": "q", "messages": 2}]

    value, gaps = FAMILIES["queues"].decode(payload, (4, 3))

    assert ((Queue(vhost="/", name="q", messages=2),), {}) == (value, gaps)


def test_an_empty_list_is_an_empty_object():
    """Erlang sends `[]` for an empty object; that is not a gap."""
    payload = [{"vhost": "/", "name": "q", "arguments": [], "effective_policy_definition": [], "message_stats": []}]

    assert ((Queue(vhost="/", name="q"),), {}) == FAMILIES["queues"].decode(payload, (4, 0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21T08:12:24.339+00:00", 1795248744.339),
        ("2026-11-21T17:12:24.339+09:00", 1795248744.339),
        ("2026-11-21 8:12:24", 1795248744.0),
        ("2026-11-21 08:12:24", 1795248744.0),
        ("", None),
        (None, None),
    ],
)
def test_idle_since_in_every_format(text, expected):
    """With an offset, as 3.10 to 4.3 send it in the node's time zone; without one, as older versions send UTC."""
    (channel,), gaps = FAMILIES["channels"].decode([{"name": "c", "idle_since": text}], (4, 0))

    assert (expected, {}) == (channel.idle_since, gaps)


def test_unusable_values_are_none_and_counted():
    """Each wrong value is one gap of its field; the other fields are read."""
    payload = [
        {
            "vhost": "/",
            "name": "q",
            "type": "undefined",
            "messages": "unknown",
            "messages_ready": None,
            "consumers": True,
            "memory": -1,
            "message_bytes": 1.5,
            "durable": "true",
            "members": {"a": 1},
            "message_stats": {"publish": "many", "ack": 3},
            "node": "rabbit@a",
        },
        "not an object",
    ]

    value, gaps = FAMILIES["queues"].decode(payload, (4, 0))

    assert (Queue(vhost="/", name="q", node="rabbit@a", stats=MessageStats(ack=3)),) == value
    assert {
        "type": 1,
        "messages": 1,
        "messages_ready": 1,
        "consumers": 1,
        "memory": 1,
        "message_bytes": 1,
        "durable": 1,
        "members": 1,
        "publish": 1,
        "queues": 1,
    } == gaps


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"name": "10.0.0.7:50000 -> b", "peer_host": "10.0.0.7", "peer_port": 50000}, "10.0.0.7:50000 -> b"),
        ({}, None),
        ([], None),
        ("none", None),
        (None, None),
    ],
)
def test_the_owner_of_an_exclusive_queue(details, expected):
    """It is empty while the connection has no statistics, and that is no gap."""
    queues, gaps = decode_queues(
        [{"vhost": "/", "name": "mine", "exclusive": True, "owner_pid_details": details}], None
    )

    assert ((expected,), {}) == (tuple(each.owner for each in queues), dict(gaps))


def test_a_queue_may_be_called_undefined():
    """Any name that users chose is valid."""
    (queue,), gaps = FAMILIES["queues"].decode([{"vhost": "unknown", "name": "undefined"}], (4, 0))

    assert (("unknown", "undefined"), {}) == (queue.key, gaps)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("payload", [None, 7, "text", True, [1], {"items": 3}])
def test_an_undocumented_answer_is_a_gap(family, payload):
    """Never a crash."""
    _, gaps = FAMILIES[family].decode(payload, None)

    assert gaps or isinstance(payload, dict)
