"""Every recorded set, 3 versions x 8 states of a broker, is decoded without loss."""

from dataclasses import replace

import pytest

from ackscope.clock import SystemClock
from ackscope.snapshot import FAMILIES as PARTS
from ackscope.snapshot import version_of
from exporter.broker.families import FAMILIES, FetchMode
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import FIXTURES, SHAPES, VERSIONS, broker, fixture, recorded, serve

SETS = [(version, shape) for version in VERSIONS for shape in SHAPES]

REFUSED = {
    # Families made of statistics: 400 if none are collected.
    ("3.10.8", "no-statistics"): {"channels", "consumers"},
    ("4.0.5", "no-statistics"): {"channels", "consumers"},
    ("4.3.6", "no-statistics"): {"consumers"},
}

FOR_ADMINISTRATORS = {
    ("3.10.8", "sees-nothing", "features"): {"feature-flags": 1},
    ("4.3.6", "sees-nothing", "limits"): {"user-limits": 1},
}


def decoded(version, shape, family):
    """The objects of a recorded payload and their gaps."""
    value, gaps = FAMILIES[family].decode(fixture(version, family, shape), version_of(version))
    return value, dict(gaps)


def sent(payload, family):
    """Number of objects in a payload."""
    how = FAMILIES[family].mode
    if family == "limits":
        lists = (items for items in payload.values() if isinstance(items, list))
        return sum(len(item["value"]) for items in lists for item in items)
    if family == "memory":
        return len(payload)
    if family == "features":
        return sum(len(items) for path, items in payload.items() if isinstance(items, list) and "used" not in path)
    if how in (FetchMode.MULTIPLE, FetchMode.PER_NODE):
        return sum(len(items) for items in payload.values() if isinstance(items, list))
    if how is FetchMode.HEALTH_CHECKS:
        return len(payload) - ("certificates" in payload)
    return 1 if family == "overview" else len(payload)


def received(value, family):
    """Number of decoded objects."""
    if family == "bindings":
        return sum(value.counts.values())
    if family == "streams":
        return len(value.consumers or ()) + len(value.publishers or ())
    return 1 if family == "overview" else len(value)


def test_all_sets_are_there():
    """24 of them, each with every family that the broker answered, and small."""
    assert len(SETS) == 24
    for version, shape in SETS:
        expected = set(PARTS) - REFUSED.get((version, shape), set())
        size = sum((FIXTURES / version / shape / f"{family}.json").stat().st_size for family in expected)

        assert expected == set(recorded(version, shape))
        assert size < 150_000


@pytest.mark.parametrize(("version", "shape"), SETS)
def test_every_set_decodes_without_loss(version, shape):
    """Every object is decoded, without gaps."""
    for family in recorded(version, shape):
        value, gaps = decoded(version, shape, family)

        assert FOR_ADMINISTRATORS.get((version, shape, family), {}) == gaps
        assert sent(fixture(version, family, shape), family) == received(value, family), family


@pytest.mark.parametrize(("version", "shape"), SETS)
def test_every_set_is_read_over_http(version, shape):
    """All endpoints of each family, requested as from a broker."""
    answered = [family for family in PARTS if family not in REFUSED.get((version, shape), ())]
    with serve(broker(version, shape)) as server:
        reader = BrokerReader(ManagementSettings(url=server.url), SystemClock())
        read = {family: reader.read(family).value for family in answered}
        reader.close()

    expected = {family: decoded(version, shape, family)[0] for family in answered}
    # Both are on this machine.
    expected["overview"] = replace(expected["overview"], clock_offset=0.0)

    assert expected == read


def test_no_recording_contains_secrets_or_paths():
    """No password, no path."""
    for file in FIXTURES.glob("*/**/*.json"):
        text = file.read_text()

        assert not [word for word in ("s3cret", "guest:guest", "/tmp/", "/lab/") if word in text], file


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_broker(version):
    """Zeros that the broker sent are zeros; what it did not send is absent."""
    overview, _ = decoded(version, "empty", "overview")
    bindings, _ = decoded(version, "empty", "bindings")

    assert (0, 0, 0) == (overview.queues, overview.connections, overview.channels)
    assert (None, None) == (overview.stats.publish, overview.stats.ack)
    assert ((), {}) == (bindings.listed, bindings.counts)
    assert [((), {})] * 4 == [
        decoded(version, "empty", family) for family in ("queues", "channels", "consumers", "links")
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backlog(version):
    """Ready and unacknowledged messages, a full queue, redeliveries, and their memory."""
    queues = {queue.name: queue for queue in decoded(version, "backlog", "queues")[0]}

    assert [0, 500, 1000, 1500] == [queues[f"backlog.{number}"].messages for number in range(4)]
    assert (450, 50) == (queues["backlog.1"].messages_ready, queues["backlog.1"].messages_unacked)
    assert queues["backlog.2"].stats.redeliver > 0
    assert queues["backlog.0"].stats.get_empty == 1
    assert (1500, 1500 * 200) == (queues["backlog.3"].messages_persistent, queues["backlog.3"].message_bytes)
    assert 0 <= queues["backlog.3"].messages_ram <= 1500
    assert queues["backlog.1"].rates.keys() >= {"publish"}


@pytest.mark.parametrize("version", VERSIONS)
def test_one_node_of_three_down(version):
    """It has only a name; replicas show who is online; the others know each other."""
    nodes = {node.name: node for node in decoded(version, "one-down", "nodes")[0]}
    queues = {queue.name: queue for queue in decoded(version, "one-down", "queues")[0]}
    down, up = nodes["lab3@localhost"], nodes["lab1@localhost"]

    assert (False, None, None, (), {}) == (down.running, down.mem_used, down.rabbitmq_version, down.links, down.churn)
    assert (True, version) == (up.running, up.rabbitmq_version)
    assert {link.peer for node in nodes.values() for link in node.links} <= set(nodes)
    assert all(link.recv_bytes > 0 < link.send_bytes for link in up.links)
    assert "lab2@localhost" in {link.peer for link in up.links}
    for name in ("quorum.0", "quorum.1", "quorum.2"):
        assert set(nodes) == set(queues[name].members)
        assert {"lab1@localhost", "lab2@localhost"} == set(queues[name].online)
    assert {"lab1@localhost", "lab2@localhost"} == {node.node for node in decoded(version, "one-down", "memory")[0]}
    critical = {check.name: check.ok for check in decoded(version, "one-down", "health")[0]}["node-is-quorum-critical"]
    assert critical is False


@pytest.mark.parametrize("version", VERSIONS)
def test_without_statistics(version):
    """The overview reports it; names and settings are known, measurements are absent and not zero."""
    overview, _ = decoded(version, "no-statistics", "overview")
    (node,), _ = decoded(version, "no-statistics", "nodes")
    queues, _ = decoded(version, "no-statistics", "queues")

    assert (False, 5, None) == (overview.statistics, overview.queues, overview.messages)
    assert (True, None, None) == (node.running, node.mem_used, node.fd_used)
    assert {None} == {queue.consumers for queue in queues} | {queue.memory for queue in queues}
    assert {"classic", "quorum"} == {queue.type for queue in queues}
    assert queues[0].arguments["x-max-length"] == 1000


@pytest.mark.parametrize("version", VERSIONS)
def test_a_user_that_sees_nothing(version):
    """The overview counts objects that are not in the lists."""
    overview, _ = decoded(version, "sees-nothing", "overview")

    assert (4, 1) == (overview.queues, overview.consumers)
    assert ((), ()) == (decoded(version, "sees-nothing", "queues")[0], decoded(version, "sees-nothing", "exchanges")[0])


@pytest.mark.parametrize("version", VERSIONS)
def test_alarms_and_an_expiring_certificate(version):
    """The checks fail, with node, resource and date."""
    checks = {check.name: check for check in decoded(version, "alarmed", "health")[0]}
    (certificate,) = checks["certificate-expiration"].certificates

    assert (False, False, True) == (
        checks["alarms"].ok,
        checks["certificate-expiration"].ok,
        checks["virtual-hosts"].ok,
    )
    assert {("lab1@localhost", "memory"), ("lab1@localhost", "disk")} == {
        (alarm.node, alarm.resource) for alarm in checks["alarms"].alarms
    }
    assert ("lab1@localhost", "amqp/ssl") == (certificate.node, certificate.protocol)
    assert 1_795_000_000 < certificate.expires < 1_797_000_000
    assert certificate.port > 0
    assert "certificates" not in checks
