import threading

import pytest

from ackscope.clock import Instant, SystemClock
from ackscope.errors import BrokerError, ConfigError
from ackscope.snapshot import Overview, Part, Queue, Snapshot
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import raise_if_unreadable, read_once
from exporter.broker.visibility import hidden_queues
from tests.unit.exporter.broker.replay import Replay
from tests.unit.exporter.broker.server import VERSIONS, broker, fixture, json, serve


@pytest.mark.parametrize("version", VERSIONS)
def test_one_reading_has_everything(version):
    """All parts are present, with a time and without error or gap."""
    with serve(broker(version)) as server:
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 10)

    assert ("shop", version) == (snapshot.cluster, snapshot.overview.value.rabbitmq_version)
    for part in snapshot.parts.values():
        assert part.error is None
        assert not part.gaps
        assert part.seconds > 0
        assert 0 <= part.age(snapshot.taken) < 10
    assert len(snapshot.queues.value) == 6
    assert snapshot.hidden_queues == 0
    raise_if_unreadable(snapshot)


def test_an_endpoint_that_hangs_delays_no_other():
    """At the deadline the others are present, and the late one has an error."""
    release = threading.Event()
    routes = broker("4.3.6")
    routes["/api/queues"] = lambda request: release.wait(30)
    with serve(routes) as server:
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 1.5)
        release.set()

    assert snapshot.queues.value is None
    assert "within 1.5 s" in snapshot.queues.error
    assert ["queues"] == [name for name, part in snapshot.parts.items() if part.error]
    assert snapshot.hidden_queues is None


def test_an_overview_that_hangs_delays_no_other():
    """The version is unknown then, and everything else is read."""
    release = threading.Event()
    routes = broker("4.3.6")
    routes["/api/overview"] = lambda request: release.wait(30)
    with serve(routes) as server:
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 5)
        release.set()

    assert ["overview"] == [name for name, part in snapshot.parts.items() if part.error]
    assert snapshot.nodes.value[0].sockets_total is None
    assert {check.ok for check in snapshot.health.value} == {True}


def test_a_failing_family_has_an_error():
    """A broker without statistics has no consumers to report."""
    routes = broker("3.10.8")
    routes["/api/consumers"] = json(
        {"error": "bad_request", "reason": "Stats in management UI are disabled on this node"}, 400
    )
    with serve(routes) as server:
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 10)

    assert (
        f"{server.where}/api/consumers: 400, this broker collects no statistics (`management.disable_stats` or "
        "`management_agent.disable_metrics_collector`); enable them to see this"
    ) == snapshot.consumers.error


def test_an_unreadable_broker_is_an_error_for_commands():
    """A wrong password: every part has the error, and the command ends with it."""
    with serve({}) as server:
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 10)

    with pytest.raises(BrokerError) as caught:
        raise_if_unreadable(snapshot)

    assert snapshot.overview.error == str(caught.value)
    assert "404, no management API here" in str(caught.value)


def test_only_the_selected_families_are_requested():
    """The parts of the others stay empty, without an error."""
    with serve(broker("4.3.6")) as server:
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 10, iter(["overview", "nodes"]))

    assert {"/api/overview", "/api/nodes"} == {path.partition("?")[0] for path in server.seen}
    assert ["overview", "nodes"] == [name for name, part in snapshot.parts.items() if part != Part()]
    raise_if_unreadable(snapshot)


def test_a_large_broker_is_read_by_totals_and_suspicious_queues():
    """All queues are present; those with a backlog have statistics."""
    replay = Replay(f"q{number:05}" for number in range(2500))
    replay.queues["q01234"]["messages_ready"] = 9
    overview = fixture("4.3.6", "overview")
    overview["object_totals"]["queues"] = 2500
    with serve({}) as server:
        server.routes = replay.routes()
        server.routes["/api/overview"] = json(overview)
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 20)

    assert (1, [], ["q01234"]) == (replay.totals, replay.pages, replay.requested)
    assert len(snapshot.queues.value) == 2500
    assert snapshot.hidden_queues == 0
    assert [("q01234", 9, 7)] == [
        (queue.name, queue.messages, queue.stats.publish)
        for queue in snapshot.queues.value
        if queue.details_at is not None
    ]


def test_unusable_settings_are_an_error(tmp_path):
    """A missing password file is an error immediately, not a failed part."""
    with pytest.raises(ConfigError):
        read_once("shop", ManagementSettings(url="http://mq", password_file=tmp_path / "no"), SystemClock(), 1)


def snapshot_of(overview, queues):
    """A snapshot with these two parts."""
    return Snapshot(cluster="shop", taken=Instant(wall=0, mono=0), overview=overview, queues=queues)


@pytest.mark.parametrize(
    ("overview", "queues", "hidden"),
    [
        (Part(value=Overview(queues=6)), Part(value=()), 6),
        (Part(value=Overview(queues=1)), Part(value=(Queue(vhost="/", name="q"),)), 0),
        (Part(value=Overview(queues=0)), Part(value=(Queue(vhost="/", name="q"),)), 0),
        (Part(value=Overview()), Part(value=()), None),
        (Part(value=Overview(queues=6), error="away"), Part(value=()), None),
        (Part(value=Overview(queues=6)), Part(), None),
    ],
)
def test_hidden_queues(overview, queues, hidden):
    """Queues that the overview counts and the list lacks; never a guess."""
    assert hidden == hidden_queues(snapshot_of(overview, queues))
