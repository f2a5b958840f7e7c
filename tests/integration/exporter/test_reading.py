"""Reading real brokers, of the oldest and the newest version."""

import time
from collections.abc import Iterator

import pika
import pytest

from ackscope.clock import SystemClock
from ackscope.errors import Refused
from ackscope.snapshot import version_of
from exporter.broker.client import ManagementClient
from exporter.broker.endpoints.queues import columns_for, decode_queues
from exporter.broker.families import FAMILIES
from exporter.broker.fetch import QUEUES_PATH, fetch_pages
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from exporter.broker.visibility import OWN_OBJECTS_ONLY
from exporter.polling.settings import PollSettings
from lab.cluster import Lab, start_lab
from tests.integration.exporter.polled import polled

pytestmark = [pytest.mark.integration, pytest.mark.slow]

DEADLINE = 60.0
QUEUE = "orders/заказы"


@pytest.fixture(scope="module", params=["3.10", "4.3"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A broker with one node."""
    with start_lab(broker=request.param) as running:
        yield running


def connection_of(lab: Lab, name: str) -> pika.BlockingConnection:
    """A client with a name of its own."""
    parameters = pika.URLParameters(lab.nodes[0].amqp)
    parameters.client_properties = {"connection_name": name}
    return pika.BlockingConnection(parameters)


@pytest.fixture(scope="module")
def queues(lab: Lab) -> tuple[str, ...]:
    """A durable classic queue and a quorum queue."""
    with connection_of(lab, "setup") as client:
        channel = client.channel()
        channel.queue_declare(QUEUE, durable=True, arguments={"x-max-length": 100})
        channel.queue_declare("orders.quorum", durable=True, arguments={"x-queue-type": "quorum"})
    return (QUEUE, "orders.quorum")


@pytest.fixture
def workload(lab: Lab, queues: tuple[str, ...]) -> Iterator[str]:
    """A client that published five messages and has two of them unacknowledged; yields the name of the queue."""
    with connection_of(lab, "worker") as worker:
        channel = worker.channel()
        channel.confirm_delivery()
        channel.queue_purge(queues[0])
        for _ in range(5):
            channel.basic_publish("", queues[0], b"order", pika.BasicProperties(delivery_mode=2))
        channel.basic_qos(prefetch_count=2)
        channel.basic_consume(queues[0], lambda *_: None)
        worker.process_data_events(0)
        yield queues[0]


def until(read, condition):
    """The value of a read as soon as the condition holds: the broker updates its statistics every 5 seconds."""
    deadline = time.monotonic() + DEADLINE
    while not condition(snapshot := read()):
        assert time.monotonic() < deadline, f"never held; last: {snapshot}"
        time.sleep(0.2)
    return snapshot


def settings_of(lab: Lab, **changes) -> ManagementSettings:
    """Settings for the lab's management API."""
    return ManagementSettings(url=lab.nodes[0].management, **changes)


def user(lab: Lab, name: str, *tags: str) -> ManagementSettings:
    """The settings of a user with these tags and no permissions."""
    if name not in lab.ctl(0, "list_users"):
        lab.ctl(0, "add_user", name, "s3cret")
    lab.ctl(0, "set_user_tags", name, *tags)
    return settings_of(lab, username=name, password="s3cret")


def test_a_snapshot_shows_who_does_what(lab, workload):
    """Queue, consumer, channel and connection of one client join by name; the numbers are those of the workload."""

    def complete(snapshot):
        # Families are read separately, and a busy broker may list a new object in one before the other.
        queues = {item.name: item for item in snapshot.queues.value or ()}
        channels = {item.name for item in snapshot.channels.value or ()}
        connections = {item.name for item in snapshot.connections.value or ()}
        return (
            queues.get(QUEUE) is not None
            and queues[QUEUE].messages_unacked == 2
            and any(
                item.queue == QUEUE and item.channel_name in channels and item.connection_name in connections
                for item in snapshot.consumers.value or ()
            )
        )

    snapshot = until(lambda: read_once("lab", settings_of(lab), SystemClock(), 10), complete)

    assert lab.broker == snapshot.overview.value.rabbitmq_version
    assert {} == {name: (part.error, part.gaps) for name, part in snapshot.parts.items() if part.error or part.gaps}
    queue = next(item for item in snapshot.queues.value if item.name == QUEUE)
    assert ("classic", 5, 3, 2, 1, 100) == (
        queue.type,
        queue.messages,
        queue.messages_ready,
        queue.messages_unacked,
        queue.consumers,
        queue.setting("max-length"),
    )
    (consumer,) = [item for item in snapshot.consumers.value if item.queue == QUEUE]
    (channel,) = [item for item in snapshot.channels.value if item.name == consumer.channel_name]
    (connection,) = [item for item in snapshot.connections.value if item.name == consumer.connection_name]
    assert (2, True, "worker", connection.name) == (
        consumer.prefetch_count,
        consumer.ack_required,
        connection.client_name,
        channel.connection_name,
    )
    quorum = next(item for item in snapshot.queues.value if item.name == "orders.quorum")
    assert (None, (lab.nodes[0].name,)) == (quorum.consumer_capacity, quorum.members)
    assert all(check.ok for check in snapshot.health.value)
    assert (snapshot.version >= (4, 0)) == (snapshot.nodes.value[0].sockets_total is None)


def test_selected_columns_give_the_same_queues_as_the_full_list(lab, workload):
    """Including nested objects and counters; on 4.3 no columns are selected."""
    client, version = ManagementClient(settings_of(lab)), version_of(lab.broker)

    def looked():
        forms = ("", columns_for(version), "")
        return [decode_queues(fetch_pages(client, QUEUES_PATH, selected), version) for selected in forms]

    # Both full lists are equal if the broker's statistics did not change in between.
    before, chosen, _ = until(looked, lambda seen: seen[0] == seen[2] and any(q.stats.publish for q in seen[0][0]))

    assert before == chosen


def test_queues_without_permission_are_counted_as_hidden(lab, queues):
    """The tag `monitoring` gives access; without permission on the virtual host its queues are hidden."""
    blind = user(lab, "blind", "monitoring")
    seen = read_once("lab", settings_of(lab), SystemClock(), 10)

    snapshot = until(
        lambda: read_once("lab", blind, SystemClock(), 10),
        lambda snapshot: snapshot.hidden_queues == len(seen.queues.value),
    )

    assert () == snapshot.queues.value
    assert snapshot.hidden_queues >= 2
    assert all(part.error is None for part in snapshot.parts.values())
    assert seen.hidden_queues == 0


def test_incomplete_lists_of_a_user_are_errors(lab, workload):
    """With the tag `management` no empty list and no total stands for the whole broker."""
    own = user(lab, "narrow", "management")
    lab.ctl(0, "set_permissions", "narrow", "", "", ".*")

    snapshot = until(lambda: read_once("lab", own, SystemClock(), 10), lambda snapshot: snapshot.queues.value)

    assert [OWN_OBJECTS_ONLY] * 3 == [
        part.error for part in (snapshot.channels, snapshot.consumers, snapshot.connections)
    ]
    assert snapshot.nodes.error.endswith(
        "/api/nodes: 401 user 'narrow' lacks the tag `monitoring` and sees only its own objects; "
        "rabbitmqctl set_user_tags narrow monitoring"
    )
    assert QUEUE in {queue.name for queue in snapshot.queues.value}
    assert snapshot.hidden_queues is None
    assert (lab.broker, None, None) == (
        snapshot.overview.value.rabbitmq_version,
        snapshot.overview.value.connections,
        snapshot.overview.value.messages,
    )


@pytest.mark.parametrize("path", ["/api/overview", "/api/nodes"])
def test_a_user_without_the_tag_gets_instructions(lab, path):
    """The broker's own refusal, in plain words."""
    client = ManagementClient(user(lab, "plain"))

    with pytest.raises(Refused) as caught:
        client.get(path)
    client.close()

    assert str(caught.value).endswith(
        f"{path}: 401 user 'plain' may not use the management API; "
        "give it the tag: rabbitmqctl set_user_tags plain monitoring"
    )


def test_an_alarm_is_seen_immediately(lab):
    """The health check has the alarm and its node."""
    lab.ctl(0, "set_vm_memory_high_watermark", "0.00001")
    try:
        snapshot = until(
            lambda: read_once("lab", settings_of(lab), SystemClock(), 10),
            lambda snapshot: any(check.alarms for check in snapshot.health.value),
        )
    finally:
        lab.ctl(0, "set_vm_memory_high_watermark", "0.4")

    (check,) = [item for item in snapshot.health.value if item.name == "alarms"]
    assert (False, [(lab.nodes[0].name, "memory")]) == (
        check.ok,
        [(alarm.node, alarm.resource) for alarm in check.alarms],
    )


def test_polling_survives_a_killed_broker(lab, queues):
    """Killed: errors are set, last values stay, ages grow. Restarted: everything is read again without intervention."""
    # Families with longer intervals see an outage later.
    prompt = [name for name, family in FAMILIES.items() if not family.min_interval]

    def whole(snapshot):
        parts = [snapshot.parts[name] for name in prompt]
        return all(part.value is not None and part.error is None for part in parts)

    with polled("lab", settings_of(lab, timeout=5), PollSettings(interval=1, budget=0.5)) as (poller, snapshots):

        def next_snapshot():
            return snapshots.get(timeout=DEADLINE)

        good = until(next_snapshot, whole)
        lab.kill(0)
        down = until(next_snapshot, lambda snapshot: all(snapshot.parts[name].error for name in prompt))
        later = until(next_snapshot, lambda snapshot: snapshot.taken.mono > down.taken.mono + 1)
        lab.restart(0)
        back = until(next_snapshot, whole)

    assert "connection refused" in down.overview.error
    for name in prompt:
        part = later.parts[name]
        assert part.value is not None
        assert part.at == down.parts[name].at
        assert part.age(later.taken) >= down.parts[name].age(down.taken) + 1
    assert {item.name for item in good.queues.value} == {item.name for item in back.queues.value}
    assert back.queues.at.mono > later.taken.mono
    assert all(poller.stats.families[name].failures > 0 for name in prompt)
