from dataclasses import replace

import pytest

from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from tests.unit.diagnosis.pictures import NODE, WALL, film, look, told
from tests.unit.diagnosis.publishers.films import busy_queue, of, publisher, shop, whole

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


def test_a_throttled_publisher_is_information_and_said_to_be_normal():
    """Flow control by itself asks for nothing."""
    verdict = look(film(throttled, until=60))

    assert [("info", "node", NODE)] == of(verdict, FLOW)
    assert "by itself this is normal" in told(whole(verdict, FLOW)[0])


def test_where_others_wait_too_it_is_a_warning():
    """The probes send little, and their confirms are slow."""
    verdict = look(film(throttled, until=60), outcomes=(probed(0.4),))

    assert [("warning", "node", NODE)] == of(verdict, FLOW)
    assert "the probes wait 0.40 s" in told(whole(verdict, FLOW)[0])


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"channel": "running"}, "The connections are throttled and the channels are not"),
        ({}, "The channels are throttled and the queues are not"),
        ({"queue": "flow"}, "Queues are throttled as well: 'orders'"),
    ],
    ids=["channel-bound", "queue-bound", "disk-bound"],
)
def test_where_flow_stops_says_what_is_slow(states, words):
    """Connection, channel, queue."""
    assert words in whole(look(film(lambda t: throttled(t, **states), until=60)), FLOW)[0].cause


@pytest.mark.parametrize(
    "change",
    [{"share": 0.5}, {"channel": "running", "connection": "running"}, {"idle_since": WALL}],
    ids=["now and then", "not at all", "idle, without majority"],
)
def test_others_are_left_alone(change):
    """Flow that comes and goes, none, and a channel that waits for a majority."""
    assert [] == of(look(film(lambda t: throttled(t, **change), until=60)), FLOW)


def waiting(t, *, rate=9.0, open_now=1, confirm=True):
    """A publisher with at most so many open."""
    return {
        "queues": (busy_queue(t),),
        "channels": (publisher(t, rate=rate, confirm=confirm, node=NODE, messages_unconfirmed=open_now),),
        "connections": (shop(),),
    }


def test_one_that_waits_for_each_confirm_is_hinted_at_where_confirms_are_slow():
    """9 a second at 100 ms each."""
    verdict = look(film(waiting, until=60), outcomes=(probed(0.1),))

    assert [("info", "vhost", "/")] == of(verdict, SYNC)
    assert "100 ms each allow no more than 10/s" in whole(verdict, SYNC)[0].summary


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, None),
        ({}, probed(0.002)),
        ({"open_now": 40}, probed(0.1)),
        ({"open_now": None}, probed(0.1)),
        ({"rate": 1.0}, probed(0.1)),
        ({"confirm": False}, probed(0.1)),
        ({}, probed(0.1, doubtful="the machine is overloaded")),
        ({}, probed(0.1, stream="unroutable")),
        ({}, replace(probed(0.1), node="rabbit@two")),
    ],
    ids=["no probes", "fast", "many open", "not told", "little to send", "no confirms", "doubtful", "control", "node"],
)
def test_otherwise_there_is_no_hint(change, outcome):
    """No latency to compare with, or no sign of waiting."""
    verdict = look(film(lambda t: waiting(t, **change), until=60), outcomes=(outcome,) if outcome else ())

    assert [] == of(verdict, SYNC)
