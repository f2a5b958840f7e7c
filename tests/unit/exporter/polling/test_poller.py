import logging
import threading
import time
from queue import SimpleQueue

import pytest

from ackscope.clock import SystemClock
from ackscope.errors import ConfigError
from ackscope.snapshot import FAMILIES
from exporter.broker.families import FAMILIES as ENDPOINT_FAMILIES
from exporter.broker.queue_reader import QueueMode
from exporter.broker.settings import ManagementSettings
from exporter.broker.visibility import NO_STATISTICS, OWN_OBJECTS_ONLY
from exporter.polling import poller as poller_module
from exporter.polling.poller import Poller
from exporter.polling.pool import BASE_THREADS
from tests.unit.exporter.broker.replay import Replay, by_query
from tests.unit.exporter.broker.server import fixture, json, serve
from tests.unit.exporter.polling.watching import DEADLINE, polling, quickly, whole, whole_broker

FAST = [name for name in FAMILIES if not ENDPOINT_FAMILIES[name].min_interval]


def fault(request):
    """A route that fails."""
    json({"error": "x", "reason": "boom"}, 500)(request)


@pytest.fixture
def log(caplog):
    """The events that polling has logged so far: event and keys."""
    caplog.set_level(logging.INFO, logger="exporter.polling")

    def events():
        records = [record for record in caplog.records if record.name.startswith("exporter.polling")]
        assert all(record.msg["cluster"] == "shop" for record in records)
        return [
            {key: value for key, value in record.msg.items() if key not in ("cluster", "logger", "level", "ts")}
            for record in records
        ]

    return events


def test_before_the_first_round_every_part_is_empty():
    """There is always a snapshot."""
    poller = Poller("shop", ManagementSettings(url="http://127.0.0.1:1"), quickly(), SystemClock(), lambda _: None)

    parts = poller.latest.parts.values()

    assert [(None, None, None)] * len(FAMILIES) == [(part.value, part.at, part.error) for part in parts]
    assert {0} == {stats.attempts for stats in poller.stats.families.values()}


def test_unusable_settings_are_an_error(tmp_path):
    """The error names the setting in the configuration."""
    settings = ManagementSettings(url="http://mq", password_file=tmp_path / "no")

    with pytest.raises(ConfigError, match=r"^clusters\.shop\.management\.password_file: "):
        Poller("shop", settings, quickly(), SystemClock(), lambda _: None)


def test_rounds_follow_each_other():
    """Every round publishes all parts, each read again, and counts their cost."""
    with serve(whole_broker("4.3.6")) as server, polling(server) as watch:
        first = watch.until(whole)
        second = watch.until(lambda snapshot: all(snapshot.parts[name].at != first.parts[name].at for name in FAST))
        stats = watch.poller.stats.families

    assert second.taken.mono > first.taken.mono
    assert second.hidden_queues == 0
    for family in FAST:
        assert stats[family].attempts >= 2
        assert stats[family].failures == 0
        assert stats[family].last_seconds > 0
        assert stats[family].bytes_total > 0
    assert watch.poller.latest.version == (4, 3)


def test_a_late_reading_is_published_immediately():
    """Not with the next round, which may wait for others: it would be half an interval older."""
    with serve(whole_broker("4.3.6")) as server, polling(server, poll=quickly(2.0)) as watch:
        good = watch.until(whole)
        answer = server.routes["/api/nodes"]

        def slowly(request):
            time.sleep(1.4)
            answer(request)

        server.routes["/api/nodes"] = slowly
        later = watch.until(lambda snapshot: snapshot.nodes.at.mono > good.nodes.at.mono + 1.5)

    assert later.nodes.age(later.taken) < 0.5


def test_an_endpoint_that_hangs_starves_no_other():
    """The others stay fresh; the hanging one keeps its last good value and has one request in flight."""
    release = threading.Event()
    with serve(whole_broker("4.3.6")) as server, polling(server, timeout=60) as watch:
        good = watch.until(whole)
        hung = threading.Event()

        def hang(request):
            hung.set()
            release.wait(60)

        server.routes["/api/queues"] = hang
        assert hung.wait(DEADLINE)
        since = SystemClock().now()
        before = watch.until(lambda snapshot: snapshot.taken.mono > since.mono)
        others = [name for name in FAST if name != "queues"]
        later = watch.until(
            lambda snapshot: all(snapshot.parts[name].at.mono > before.parts[name].at.mono for name in others)
        )
        release.set()

    assert later.queues.value == good.queues.value
    assert later.queues.age(later.taken) > later.nodes.age(later.taken)
    assert later.queues.at == before.queues.at
    assert [name for name, part in later.parts.items() if part.error] == []
    assert server.most["/api/queues"] == 1


def test_a_failing_family_keeps_its_last_good_value_and_recovers(log):
    """The error is set, the age grows, and the next good reading clears it; both changes are logged once."""
    with serve(whole_broker("4.3.6")) as server, polling(server) as watch:
        good = watch.until(whole)
        route, server.routes["/api/channels"] = server.routes["/api/channels"], fault
        failed = watch.until(lambda snapshot: snapshot.channels.error is not None)
        later = watch.until(lambda snapshot: snapshot.nodes.at.mono > failed.nodes.at.mono)
        server.routes["/api/channels"] = route
        watch.until(whole)
        failures = watch.poller.stats.families["channels"].failures

    assert (
        f"{server.where}/api/channels: 500 from the server (boom); see the broker's log at this time"
    ) == failed.channels.error
    assert len(good.channels.value) == len(later.channels.value)
    assert failed.channels.at == later.channels.at
    assert later.channels.age(later.taken) > failed.channels.age(failed.taken)
    assert failures >= 1
    assert [
        {"event": "broker version", "version": "4.3.6"},
        {"event": "endpoint cannot be read", "endpoint": "channels", "error": failed.channels.error},
        {"event": "endpoint can be read again", "endpoint": "channels"},
    ] == log()


def test_a_broker_that_comes_back_with_another_version(log):
    """No crash, one line per change; the checks of the new version are read."""
    with serve(whole_broker("3.10.8")) as server, polling(server) as watch:
        watch.until(whole)
        server.routes.clear()
        unreachable = watch.until(lambda snapshot: all(snapshot.parts[name].error for name in FAST))
        watch.next()
        server.routes.update(whole_broker("4.3.6"))
        back = watch.until(
            lambda snapshot: (
                whole(snapshot)
                and snapshot.version == (4, 3)
                and "is-in-service" in {check.name for check in snapshot.health.value}
            )
        )

    assert unreachable.overview.value.rabbitmq_version == "3.10.8"
    assert back.nodes.value[0].sockets_total is None
    assert [
        {"event": "broker version", "version": "3.10.8"},
        {"event": "cluster unreachable", "error": unreachable.overview.error},
        {"event": "cluster reachable again"},
        {"event": "broker version", "version": "4.3.6"},
    ] == [event for event in log() if not event["event"].startswith("endpoint")]


def test_a_family_that_exceeds_its_share_is_read_less_often():
    """Vital families are read in every round, whatever the budget is."""
    with serve(whole_broker("4.3.6")) as server, polling(server, poll=quickly(budget=1e-6)) as watch:
        watch.until(whole)
        watch.until(lambda _: watch.poller.stats.families["channels"].interval > 60)
        before = watch.poller.stats.families["channels"]
        rounds = watch.poller.stats.families["nodes"].attempts + 5
        watch.until(lambda _: watch.poller.stats.families["nodes"].attempts >= rounds)
        stats = watch.poller.stats

    # At most one more, which was in flight.
    assert stats.families["channels"].attempts - before.attempts <= 1
    assert stats.families["channels"].interval > 60
    assert stats.families["channels"].requests == stats.families["channels"].attempts
    assert stats.families["channels"].cost_seconds > 0
    assert stats.families["nodes"].interval < 60
    assert stats.budget == 1e-6


def test_everything_is_read_immediately_when_the_broker_is_back():
    """Nothing waits for the end of its retry delay."""
    routes = whole_broker("4.3.6")
    with serve({}) as server, polling(server) as watch:
        watch.until(lambda _: watch.poller.stats.families["bindings"].failures >= 1)
        server.routes.update(routes)
        back = watch.until(whole)

    assert back.bindings.at is not None


def test_a_broker_without_statistics_is_logged_once(log):
    """Available families are read, the others retried rarely; an empty list is not an answer then."""
    routes = whole_broker("3.10.8")
    disabled = json({"error": "bad_request", "reason": "Stats in management UI are disabled on this node"}, 400)
    totals = {"vhost": "/", "name": "orders", "type": "classic", "state": "running", "node": "a@b", "arguments": {}}
    counts = {"messages": 3, "messages_ready": 2, "messages_unacknowledged": 1}
    overview = {"rates_mode": "basic", "disable_stats": True, "object_totals": {"queues": 1, "connections": 1}}
    routes.update(
        {
            "/api/overview": json({**overview, "rabbitmq_version": "3.10.8"}),
            "/api/consumers": disabled,
            "/api/channels": disabled,
            "/api/connections": json([]),
            "/api/queues": by_query(totals=[{**totals, **counts}], page=[totals]),
        }
    )
    with serve(routes) as server, polling(server) as watch:
        snapshot = watch.until(lambda snapshot: snapshot.queues.value and snapshot.consumers.error)
        rounds = watch.poller.stats.families["nodes"].attempts + 5
        later = watch.until(lambda _: watch.poller.stats.families["nodes"].attempts >= rounds)
        stats = watch.poller.stats

    assert [3] == [queue.messages for queue in snapshot.queues.value]
    assert [3] == [queue.messages for queue in later.queues.value]
    assert stats.families["consumers"].attempts == 1
    assert (None, NO_STATISTICS) == (later.connections.value, later.connections.error)
    assert (QueueMode.TOTALS, None) == (stats.mode, stats.coverage)
    events = [event["event"] for event in log()]
    assert events.count("broker collects no statistics") == 1
    assert {"consumers", "channels"}.isdisjoint(event.get("endpoint") for event in log())


def test_a_user_without_the_monitoring_tag_is_logged_once(log):
    """Lists that look complete are not shown, and one line says why."""
    routes = whole_broker("4.3.6")
    refused = json({"error": "not_authorised", "reason": "Not monitor user"}, 401)
    counts = {"object_totals": {"queues": 1, "connections": 0, "channels": 0}, "queue_totals": {"messages": 0}}
    routes.update({"/api/overview": json({"rabbitmq_version": "4.3.6", **counts}), "/api/nodes": refused})
    routes.update({f"/api/{name}": json([]) for name in ("channels", "consumers", "connections")})
    with serve(routes) as server, polling(server) as watch:
        snapshot = watch.until(lambda snapshot: snapshot.nodes.error and snapshot.connections.error)
        for _ in range(6):
            snapshot = watch.next()

    assert [OWN_OBJECTS_ONLY] * 3 == [
        part.error for part in (snapshot.channels, snapshot.consumers, snapshot.connections)
    ]
    assert [None] * 3 == [part.value for part in (snapshot.channels, snapshot.consumers, snapshot.connections)]
    overview = snapshot.overview.value
    assert ("4.3.6", None, None, None) == (
        overview.rabbitmq_version,
        overview.queues,
        overview.connections,
        overview.messages,
    )
    assert snapshot.queues.value
    assert snapshot.hidden_queues is None
    events = [event["event"] for event in log()]
    assert events.count("user lacks the tag monitoring") == 1
    assert "endpoint cannot be read" not in events


def test_a_user_without_permissions_is_logged_once(log):
    """The overview counts queues, the list is empty: one line says why."""
    routes = whole_broker("4.3.6")
    routes["/api/queues"] = json({"page": 1, "page_count": 1, "items": []})
    with serve(routes) as server, polling(server) as watch:
        for _ in range(12):
            snapshot = watch.next()

    assert snapshot.hidden_queues == 6
    assert [
        {
            "event": "user sees no objects of this kind",
            "kind": "queues",
            "count": 6,
            "reason": "the user has no permission on their virtual hosts",
            "action": "rabbitmqctl set_permissions -p VHOST USER '' '' ''",
        }
    ] == [event for event in log() if event["event"].startswith("user sees")]


def test_a_large_broker_is_read_by_totals(log):
    """All queues in every snapshot, eventually each with its statistics; one line says why."""
    replay = Replay(f"q{number:05}" for number in range(2500))
    replay.queues["q01234"]["messages_ready"] = 9
    routes = whole_broker("4.3.6")
    overview = fixture("4.3.6", "overview")
    overview["object_totals"]["queues"] = 2500
    del routes["/api/queues"]
    with serve({}) as server:
        server.routes = replay.routes()
        server.routes.update({**routes, "/api/overview": json(overview)})
        with polling(server, poll=quickly(budget=0.2)) as watch:
            first = watch.until(lambda snapshot: snapshot.queues.value)
            last = watch.until(
                lambda snapshot: snapshot.queues.value and all(queue.details_at for queue in snapshot.queues.value)
            )
            watch.until(lambda _: watch.poller.stats.spent is not None)
            stats = watch.poller.stats

    assert len(first.queues.value) == len(last.queues.value) == 2500
    assert last.queues.at.mono > first.queues.at.mono
    assert (QueueMode.TOTALS, 2500, 2500) == (stats.mode, stats.coverage.queues, stats.coverage.detailed)
    assert stats.families["queues"].interval >= 0.05
    assert [2500] == [event["count"] for event in log() if event["event"] == "full queue polls exceed the budget"]


def test_a_receiver_that_fails_does_not_end_polling(log):
    """An error in a receiver is logged, and the next snapshot is published."""
    got = SimpleQueue()

    def receive(snapshot):
        got.put(snapshot)
        raise RuntimeError("full")

    with serve(whole_broker("4.3.6")) as server:
        poller = Poller("shop", ManagementSettings(url=server.url), quickly(), SystemClock(), receive)
        poller.start()
        try:
            snapshots = [got.get(timeout=DEADLINE) for _ in range(3)]
        finally:
            poller.stop()

    assert snapshots[0].taken.mono < snapshots[2].taken.mono
    assert "publishing a snapshot failed" in [event["event"] for event in log()]


def test_a_round_uses_two_connections(monkeypatch):
    """However many families are due: each further connection is another handshake."""
    monkeypatch.setattr(poller_module, "_GROW_AFTER_SECONDS", DEADLINE)
    with serve(whole_broker("4.3.6")) as server, polling(server, poll=quickly(interval=2 * DEADLINE)) as watch:
        watch.until(whole)

    assert BASE_THREADS == server.connections


def test_nothing_runs_after_stop():
    """All threads of a poller end with it."""
    with serve(whole_broker("4.3.6")) as server:
        with polling(server) as watch:
            watch.next()
        left = [thread.name for thread in watch.poller.threads]

    assert left == []
