from dataclasses import replace

import pytest

from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from tests.unit.diagnosis.pictures import NODE, WALL, film, look
from tests.unit.diagnosis.publishers.films import busy_queue, facts, of, publisher, shop

FLOW, SYNC = "pub-credit-flow", "pub-sync-confirm"


def throttled(t, *, channel="flow", connection="flow", queue="running", share=1.0, **fields):
    """A fast publisher whose channel and connection are in flow in this share of the readings."""
    now = (t // 5) % 10 < 10 * share
    return {
        "queues": (busy_queue(t, rate=5000.0, state=queue),),
        "channels": (publisher(t, rate=5000.0, node=NODE, state=channel if now else "running", **fields),),
        "connections": (shop(node=NODE, state=connection if now else "running"),),
    }


def probed(latency, stream="classic", **fields):
    """The confirm probe with this median latency."""
    return ProbeOutcome(
        **{
            "probe": "confirm",
            "stream": stream,
            "queue_type": stream,
            "vhost": "/",
            "queue": "ackscope.probe.x",
            "node": NODE,
            "at": WALL,
            "state": ProbeState.RUNNING,
            "confirm": Quantiles(count=60, p50=latency, p90=latency, p99=latency, max=latency),
            **fields,
        }
    )


def test_a_throttled_publisher_is_information():
    """Flow control by itself is normal."""
    verdict = look(film(throttled, until=60))

    assert [("info", "node", NODE)] == of(verdict, FLOW)
    expected = {"channels": 1, "clients": ["shop"], "publish_rate": 5000.0, "probe_confirm_seconds": None}
    assert expected == {key: facts(verdict, FLOW)[key] for key in expected}


def test_where_probes_wait_too_it_is_a_warning():
    """The probes send little, and their confirms are slow."""
    verdict = look(film(throttled, until=60), outcomes=(probed(0.4),))

    assert [("warning", "node", NODE)] == of(verdict, FLOW)
    assert 0.4 == facts(verdict, FLOW)["probe_confirm_seconds"]


@pytest.mark.parametrize(
    ("states", "channels", "queues"),
    [({"channel": "running"}, False, []), ({}, True, []), ({"queue": "flow"}, True, ["orders"])],
    ids=["channel-bound", "queue-bound", "disk-bound"],
)
def test_what_is_in_flow_shows_what_is_slow(states, channels, queues):
    """Connection, channel, queue."""
    found = facts(look(film(lambda t: throttled(t, **states), until=60)), FLOW)

    assert (channels, queues) == (found["channels_in_flow"], found["queues_in_flow"])


@pytest.mark.parametrize(
    "change",
    [{"share": 0.5}, {"channel": "running", "connection": "running"}, {"idle_since": WALL}],
    ids=["now and then", "not at all", "idle, without majority"],
)
def test_other_publishers_are_not_reported(change):
    """Flow that comes and goes, no flow, and a channel that waits for a majority."""
    assert [] == of(look(film(lambda t: throttled(t, **change), until=60)), FLOW)


def waiting(t, *, rate=9.0, unconfirmed=1, confirm=True):
    """A publisher with at most this many unconfirmed messages."""
    return {
        "queues": (busy_queue(t),),
        "channels": (publisher(t, rate=rate, confirm=confirm, node=NODE, messages_unconfirmed=unconfirmed),),
        "connections": (shop(),),
    }


def test_waiting_for_each_confirm_is_reported_where_confirms_are_slow():
    """The publisher sends 9 messages per second at 100 ms per confirm."""
    verdict = look(film(waiting, until=60), outcomes=(probed(0.1),))

    assert [("info", "vhost", "/")] == of(verdict, SYNC)
    assert (0.1, 10.0) == (facts(verdict, SYNC)["confirm_seconds"], facts(verdict, SYNC)["max_publish_rate"])


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, None),
        ({}, probed(0.002)),
        ({"unconfirmed": 40}, probed(0.1)),
        ({"unconfirmed": None}, probed(0.1)),
        ({"rate": 1.0}, probed(0.1)),
        ({"confirm": False}, probed(0.1)),
        ({}, probed(0.1, doubtful="the machine is overloaded")),
        ({}, probed(0.1, stream="unroutable")),
        ({}, replace(probed(0.1), node="rabbit@two")),
    ],
    ids=[
        "no probes",
        "fast",
        "many unconfirmed",
        "unknown",
        "little to send",
        "no confirms",
        "doubtful",
        "control",
        "node",
    ],
)
def test_otherwise_nothing_is_reported(change, outcome):
    """No latency to compare with, or no sign of waiting."""
    verdict = look(film(lambda t: waiting(t, **change), until=60), outcomes=(outcome,) if outcome else ())

    assert [] == of(verdict, SYNC)
