import logging
import threading
from contextlib import contextmanager
from queue import SimpleQueue

import pytest

from ackscope.clock import Instant, SystemClock
from ackscope.errors import ConfigError
from ackscope.snapshot import FAMILIES
from exporter.broker.settings import ManagementSettings
from exporter.polling.poller import Poller
from tests.unit.exporter.broker.server import broker, json, serve

INTERVAL = 0.05
DEADLINE = 20


class SetClock:
    """A clock that goes when it is told, for single threads by their name too."""

    def __init__(self):
        self.mono = 1000.0
        self.ahead = {}

    def now(self):
        """The set moment."""
        mono = self.mono + self.ahead.get(threading.current_thread().name, 0)
        return Instant(wall=1.7e9 + mono, mono=mono)


class Watch:
    """A poller under way and the snapshots it hands out."""

    def __init__(self, url, clock, **settings):
        self.snapshots = SimpleQueue()
        management = ManagementSettings(url=url, **settings)
        self.poller = Poller("shop", management, INTERVAL, clock, self.snapshots.put)

    def next(self):
        """The next snapshot."""
        return self.snapshots.get(timeout=DEADLINE)

    def until(self, condition):
        """The first snapshot from now on for which the condition holds."""
        for _ in range(2000):
            snapshot = self.next()
            if condition(snapshot):
                return snapshot
        raise AssertionError("the condition never held")


@contextmanager
def polling(server, clock=None, **settings):
    """A poller of a test server, for as long as the block runs."""
    watch = Watch(server.url, clock or SystemClock(), **settings)
    watch.poller.start()
    try:
        yield watch
    finally:
        watch.poller.stop()


def whole(snapshot):
    """Every part was read."""
    return all(part.value is not None and part.error is None for part in snapshot.parts.values())


def fault(request):
    """A route that fails."""
    json({"error": "x", "reason": "boom"}, 500)(request)


@pytest.fixture
def log(caplog):
    """The messages of the poller so far."""
    caplog.set_level(logging.INFO, logger="exporter.polling.poller")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "exporter.polling.poller"]


def test_before_the_first_round_every_part_is_empty():
    """There is always a snapshot, and it promises nothing."""
    poller = Poller("shop", ManagementSettings(url="http://127.0.0.1:1"), INTERVAL, SystemClock(), lambda _: None)

    assert [(None, None, None)] * 7 == [(part.value, part.at, part.error) for part in poller.latest.parts.values()]
    assert {0} == {stats.attempts for stats in poller.stats.values()}


def test_settings_that_cannot_be_used_are_loud(tmp_path):
    """The message names the key in the configuration."""
    settings = ManagementSettings(url="http://mq", password_file=tmp_path / "no")

    with pytest.raises(ConfigError, match=r"^clusters\.shop\.management\.password_file: "):
        Poller("shop", settings, INTERVAL, SystemClock(), lambda _: None)


def test_rounds_follow_each_other():
    """Every round hands out all parts, each read anew, and counts what it cost."""
    with serve(broker("4.3.6")) as server, polling(server) as watch:
        first = watch.until(whole)
        second = watch.until(lambda snapshot: all(snapshot.parts[name].at != first.parts[name].at for name in FAMILIES))
        stats = watch.poller.stats

    assert second.taken.mono > first.taken.mono
    assert second.hidden_queues == 0
    for family in FAMILIES:
        assert stats[family].attempts >= 2
        assert stats[family].failures == 0
        assert stats[family].last_seconds > 0
        assert stats[family].bytes_total > 0
    assert watch.poller.latest.version == (4, 3)


def test_an_endpoint_that_hangs_starves_no_other():
    """The others stay fresh; the hung one keeps its last good value, and is asked once, not again and again."""
    release = threading.Event()
    with serve(broker("4.3.6")) as server, polling(server, timeout=60) as watch:
        good = watch.until(whole)
        hung = threading.Event()

        def hang(request):
            hung.set()
            release.wait(60)

        server.routes["/api/queues"] = hang
        assert hung.wait(DEADLINE)
        since = SystemClock().now()
        before = watch.until(lambda snapshot: snapshot.taken.mono > since.mono)
        others = [name for name in FAMILIES if name != "queues"]
        later = watch.until(
            lambda snapshot: all(snapshot.parts[name].at.mono > before.parts[name].at.mono for name in others)
        )
        release.set()

    assert later.queues.value == good.queues.value
    assert later.queues.age(later.taken) > later.nodes.age(later.taken)
    assert later.queues.at == before.queues.at
    assert [name for name, part in later.parts.items() if part.error] == []
    assert server.most["/api/queues"] == 1


def test_what_fails_keeps_its_last_good_value_and_recovers(log):
    """The error is told, the age grows, and the next good reading mends it; the log tells of both changes once."""
    with serve(broker("4.3.6")) as server, polling(server) as watch:
        good = watch.until(whole)
        route, server.routes["/api/channels"] = server.routes["/api/channels"], fault
        failed = watch.until(lambda snapshot: snapshot.channels.error is not None)
        still = watch.until(lambda snapshot: snapshot.nodes.at.mono > failed.nodes.at.mono)
        server.routes["/api/channels"] = route
        watch.until(whole)
        failures = watch.poller.stats["channels"].failures

    assert (
        f"{server.where}/api/channels: 500 from the server (boom); see the broker's log of this moment"
    ) == failed.channels.error
    assert len(good.channels.value) == len(still.channels.value)
    assert failed.channels.at == still.channels.at
    assert still.channels.age(still.taken) > failed.channels.age(failed.taken)
    assert failures >= 1
    assert [
        "cluster shop: RabbitMQ 4.3.6",
        f"cluster shop: channels cannot be read: {failed.channels.error}",
        "cluster shop: channels can be read again",
    ] == log()


def test_a_broker_that_goes_and_comes_back_with_another_version(log):
    """No crash, one line for each change; the checks of the new version are asked."""
    with serve(broker("3.10.8")) as server, polling(server) as watch:
        watch.until(whole)
        server.routes.clear()
        away = watch.until(lambda snapshot: all(part.error for part in snapshot.parts.values()))
        watch.next()
        server.routes.update(broker("4.3.6"))
        back = watch.until(
            lambda snapshot: (
                whole(snapshot)
                and snapshot.version == (4, 3)
                and "is-in-service" in {check.name for check in snapshot.health.value}
            )
        )

    assert away.overview.value.rabbitmq_version == "3.10.8"
    assert back.nodes.value[0].sockets_total is None
    messages = log()
    assert [f"cluster shop: away: {away.overview.error}"] == [text for text in messages if ": away" in text]
    assert ["cluster shop: back"] == [text for text in messages if text.endswith("back")]
    assert ["cluster shop: RabbitMQ 3.10.8", "cluster shop: RabbitMQ 4.3.6"] == [
        text for text in messages if ": RabbitMQ" in text
    ]


@pytest.mark.parametrize(("failed", "seconds"), [(False, 15), (True, 6)])
def test_a_slow_reading_stretches_its_interval(failed, seconds):
    """A reading that took 3 seconds is begun again 15 after its start, a failed one 6; the others go on."""
    clock = SetClock()
    routes = broker("4.3.6")
    answer = fault if failed else routes["/api/queues"]

    def slow(request):
        clock.ahead["poll-shop-queues"] = clock.ahead.get("poll-shop-queues", 0) + 3
        answer(request)

    routes["/api/queues"] = slow
    with serve(routes) as server, polling(server, clock) as watch:
        watch.until(lambda _: watch.poller.stats["queues"].attempts == 1)
        # Only for the rounds: readings that are under way must not look long too.
        clock.ahead["poll-shop"] = seconds - 1
        rounds = watch.poller.stats["nodes"].attempts + 3
        watch.until(lambda _: watch.poller.stats["nodes"].attempts >= rounds)
        early = watch.poller.stats["queues"]
        clock.ahead["poll-shop"] = seconds
        watch.until(lambda _: watch.poller.stats["queues"].attempts == 2)

    assert (1, 3.0) == (early.attempts, early.last_seconds)


def test_a_receiver_that_fails_does_not_end_polling(log):
    """A fault in what takes the snapshots is logged, and the next one is handed out."""
    got = SimpleQueue()

    def receive(snapshot):
        got.put(snapshot)
        raise RuntimeError("full")

    with serve(broker("4.3.6")) as server:
        poller = Poller("shop", ManagementSettings(url=server.url), INTERVAL, SystemClock(), receive)
        poller.start()
        snapshots = [got.get(timeout=DEADLINE) for _ in range(3)]
        poller.stop()

    assert snapshots[0].taken.mono < snapshots[2].taken.mono
    assert "cluster shop: handing out a snapshot failed" in log()


def test_nothing_runs_after_stop():
    """All threads of a poller end with it."""
    with serve(broker("4.3.6")) as server:
        with polling(server) as watch:
            watch.next()
        left = [thread.name for thread in watch.poller._threads if thread.is_alive()]

    assert left == []
